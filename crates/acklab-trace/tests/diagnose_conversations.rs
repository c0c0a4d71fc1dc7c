//! The diagnosis of conversations that the lab of known truth showed to be judged wrongly, each written out with what is
//! essential of it.
//!
//! Goal: holds are found by what really tells them, and nothing is claimed of what only looks alike. Method: as in
//! `diagnose_packet_by_packet.rs`, captures at the sender unless said otherwise; pauses that look random come from a
//! fixed sequence.

mod exchange;

use acklab_trace::diagnosis::{Direction, Mechanism, NagleState};

use exchange::{Exchange, MSS, count};

/// Looks random, 0 to 1.
fn noise(i: u64) -> f64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1u64 << 24) as f64
}

/// Holds of 10 ms or longer.
fn stalls(found: &Direction) -> u64 {
    found.holds()
}

/// A unit writes every 20 ms; the ACK takes 11 ms, and 35 ms each fifteenth time: the write that comes meanwhile waits,
/// and the one after it a little. All others leave on the beat, at the same distance from the ACK before.
#[test]
fn holds_are_found_between_free_writes_on_a_beat() {
    let mut exchange = Exchange::with_handshake(0.02, 11.0);
    let (mut free, mut truth) = (0.0_f64, 0);
    for i in 0..300u64 {
        let written = 40.0 + i as f64 * 20.0 + 0.3 * noise(i);
        let leaves = written.max(free + 0.03);
        truth += u64::from(leaves - written >= 10.0);
        exchange.data(leaves, 0, i * 50, 50, 0);
        free = leaves + if i % 15 == 7 { 35.0 } else { 11.0 + 0.5 * noise(i + 1_000) };
        exchange.ack(free, 1, (i + 1) * 50);
    }
    let [found, _] = exchange.diagnose();
    assert_eq!(truth, 20);
    assert!(stalls(&found).abs_diff(truth) <= 2, "{}: {:?}", stalls(&found), found.nagle.evidence);
    assert_eq!(found.nagle.state, NagleState::On);
}

/// Both hosts write at times of their own. The second write of the client waits for the server's data; data of the
/// server that comes while nothing is unacknowledged is never answered.
#[test]
fn acks_on_data_count_where_the_sender_does_not_answer_what_comes() {
    let mut exchange = Exchange::with_handshake(0.02, 4.0);
    let mut now = 40.0;
    for i in 0..60u64 {
        let sent = i * 200;
        let [first, second] = [2 * i, 2 * i + 1].map(|k| k * 70);
        exchange.data(now, 0, sent, 80, first);
        let heard = now + 15.0 + 20.0 * noise(i);
        exchange.data(heard, 1, first, 70, sent + 80);
        exchange.data(heard + 0.04, 0, sent + 80, 120, second);
        exchange.ack(heard + 4.1, 1, sent + 200);
        let alone = heard + 30.0 + 20.0 * noise(i + 500);
        exchange.data(alone, 1, second, 70, sent + 200);
        exchange.ack(alone + 40.0, 0, second + 70);
        now = alone + 45.0 + 30.0 * noise(i + 900);
    }
    let [found, _] = exchange.diagnose();
    assert!(stalls(&found) >= 50, "{}: {:?}", stalls(&found), found.nagle.evidence);
    assert_eq!(count(&found, Mechanism::DelayedAckTimer), 0);
}

/// A broker answers each message of MQTT 5.0 (PUBLISH by PUBREC, PUBREL by PUBCOMP) at once; `late` by one answer, as each leaves
/// with the ACK that rides on the next message; else as it is written. Captured at the broker; of `lacking` messages one is
/// not captured, nor is the last.
fn brokered(late: bool, lacking: u64) -> Direction {
    let mut exchange = Exchange::with_handshake(0.4, 0.02);
    let publish: Vec<u8> = [&[0x34, 16, 0, 3][..], b"a/bxx0123456789"].concat()[..18].to_vec();
    let (released, answer) = ([0x62, 2, 0, 1], [0x50, 2, 0, 1]);
    let (mut heard, mut said, mut owed) = (0u64, 0u64, 0usize);
    let mut takes = |at: f64, bytes: &[u8], messages: usize, late: bool, lacks: bool| {
        exchange.say(at, 0, bytes, said);
        if lacks {
            exchange.lacks();
        }
        heard += bytes.len() as u64;
        let answers = if late { owed } else { messages };
        if answers > 0 {
            let behind = if late { 0.02 } else { 0.3 };
            exchange.say(at + behind, 1, &answer.repeat(answers), heard);
            said += 4 * answers as u64;
        }
        if !late {
            exchange.ack(at + 0.7, 0, said);
        }
        owed = if late { messages } else { 0 };
    };
    takes(40.0, &publish, 1, false, false);
    takes(45.0, &publish.repeat(4), 4, false, false);
    for i in 0..100u64 {
        let at = 80.0 + 20.0 * i as f64 + noise(i);
        let lacks = lacking > 0 && (i % lacking == lacking / 2 || i == 99);
        // Now and then the broker is not behind.
        takes(at, &publish, 1, late && (lacking == 0 || i % 10 > 0), lacks);
        takes(at + 1.5 + 0.2 * noise(i + 300), &released, 1, late, false);
    }
    let [_, found] = exchange.diagnose();
    found
}

/// Messages of several lengths, some of them together: what answers what, shows by their framing alone.
#[test]
fn answers_that_leave_with_the_next_message_had_waited() {
    let found = brokered(true, 0);
    assert!((95..=102).contains(&stalls(&found)), "{}: {:?}", stalls(&found), found.nagle.evidence);
    let seconds = found.stalled_s();
    assert!((1.4..2.0).contains(&seconds), "{seconds}");
    assert_eq!(stalls(&brokered(false, 0)), 0);
    // Where the capture lacks messages, what is counted begins anew behind each.
    let found = brokered(true, 30);
    assert!(stalls(&found) >= 65, "{}: {:?}", stalls(&found), found.nagle.evidence);
    assert_eq!(stalls(&brokered(false, 30)), 0);
}

/// Both hosts write lines that count, many in each round trip: whatever leaves does so with an ACK on data.
#[test]
fn lines_that_grow_show_what_gathered() {
    let line = |number: u64| format!("message {number}\n").len() as u32;
    let mut exchange = Exchange::with_handshake(0.15, 60.0);
    let (mut now, mut ends, mut next) = (40.0, [0u64, 0], [0u64, 0]);
    exchange.data(now, 0, 0, line(0), 0);
    (ends[0], next[0]) = (u64::from(line(0)), 1);
    for i in 0..90u64 {
        for host in [1, 0] {
            // The client's leave with the ACK, unless none was written in time.
            let late = host == 0 && i % 6 == 5;
            let at = now + [if late { 65.0 } else { 60.16 }, 60.0][host];
            let count = if late { 1 } else { 1 + (noise(2 * i + host as u64) * 5.0) as u64 };
            let bytes = (0..count).map(|k| line(next[host] + k)).sum::<u32>();
            exchange.data(at, host, ends[host], bytes, ends[1 - host]);
            ends[host] += u64::from(bytes);
            next[host] += count;
        }
        now += if i % 6 == 5 { 65.0 } else { 60.16 };
    }
    let [found, _] = exchange.diagnose();
    assert!(stalls(&found) >= 60, "{}: {:?}", stalls(&found), found.nagle.evidence);
}

/// A server needs 8 ms for each answer, and requests come every 40 ms or so; `late` by one answer, each leaves with the
/// ACK that rides on the next request; else it answers at once. Captured at the server.
fn served(late: bool) -> Direction {
    let mut exchange = Exchange::with_handshake(8.0, 0.02);
    let all = 100u64;
    for i in 0..all {
        let at = 40.0 + i as f64 * 40.0 + 4.0 * noise(i);
        let answered = if late { i.saturating_sub(1) } else { i };
        exchange.data(at, 0, i * 48, 48, answered * 64);
        if !late || i > 1 {
            exchange.data(at + 0.04, 1, answered * 64, 64, (i + 1) * 48);
        } else if i == 0 {
            exchange.data(at + 8.0, 1, 0, 64, 48);
        }
    }
    let end = 40.0 + all as f64 * 40.0;
    if late {
        exchange.ack(end + 40.0, 0, (all - 1) * 64);
        exchange.data(end + 40.04, 1, (all - 1) * 64, 64, all * 48);
    }
    let [_, found] = exchange.diagnose();
    found
}

#[test]
fn an_answer_that_leaves_another_one_owing_had_waited() {
    let found = served(true);
    assert!(stalls(&found) >= 80, "{}: {:?}", stalls(&found), found.nagle.evidence);
    let found = served(false);
    assert_eq!(stalls(&found), 0, "{:?}", found.nagle.evidence);
}

/// Small records of 48 bytes, all that were written meanwhile leaving with the ACK on the peer's data, once a round trip
/// of 100 ms: only the first segment shows what one record is.
#[test]
fn various_numbers_of_the_first_message_have_gathered() {
    let mut exchange = Exchange::with_handshake(0.02, 100.0);
    exchange.data(40.0, 0, 0, 48, 0);
    let (mut now, mut sent) = (140.0, 48u64);
    for i in 0..40u64 {
        let records = 4 + (noise(i) * 6.0) as u64;
        exchange.data(now, 1, i * 64, 64, sent);
        exchange.data(now + 0.04, 0, sent, records as u32 * 48, (i + 1) * 64);
        sent += records * 48;
        now += 100.1;
    }
    let [found, _] = exchange.diagnose();
    assert!(stalls(&found) >= 35, "{}: {:?}", stalls(&found), found.nagle.evidence);
}

/// A header, and a body of several segments in one write, which a pacing timer lets go one every 15 ms; the tail waits
/// for the ACK of the header.
#[test]
fn paced_segments_of_one_large_write_have_not_filled_up() {
    let mut exchange = Exchange::with_handshake(0.02, 100.0);
    let full = u64::from(MSS);
    let (mut now, mut sent) = (40.0, 0u64);
    for i in 0..40u64 {
        exchange.data(now, 0, sent, 200, i * 100);
        let mut at = now + 1.2 + noise(i);
        for k in 0..3 {
            exchange.data(at, 0, sent + 200 + k * full, MSS.into(), i * 100);
            at += 15.0;
        }
        let tail = sent + 200 + 3 * full;
        exchange.ack(now + 100.0, 1, sent + 200);
        exchange.data(now + 100.04, 0, tail, 500, i * 100);
        exchange.ack(now + 101.2, 1, tail);
        sent = tail + 500;
        exchange.data(now + 201.0, 1, i * 100, 100, sent);
        exchange.ack(now + 241.0, 0, (i + 1) * 100);
        now += 280.0 + 50.0 * noise(i + 77);
    }
    let [found, _] = exchange.diagnose();
    assert_eq!(count(&found, Mechanism::MssFilled), 0, "{:?}", found.nagle.evidence);
    assert!(stalls(&found) >= 36, "the tails wait: {}", stalls(&found));
}

/// Log lines to a receiver that delays its ACKs for 200 ms: in every second interval enough gathers to fill a segment. A
/// FIN at the end leaves while a small segment is unacknowledged, one among few.
#[test]
fn one_break_among_few_segments_does_not_hide_what_filled_up() {
    let mut exchange = Exchange::with_handshake(0.02, 10.0);
    let full = u64::from(MSS);
    let (mut now, mut sent) = (40.0, 0u64);
    for i in 0..12u64 {
        exchange.data(now, 0, sent, 150, 0);
        let filled = now + 120.0 + 40.0 * noise(i);
        exchange.data(filled, 0, sent + 150, MSS.into(), 0);
        let rest = sent + 150 + full;
        exchange.ack(filled + 10.0, 1, rest);
        exchange.data(filled + 10.03, 0, rest, 60, 0);
        exchange.ack(filled + 210.0, 1, rest + 60);
        exchange.data(filled + 210.03, 0, rest + 60, 700 + 10 * i as u32, 0);
        sent = rest + 760 + 10 * i;
        exchange.ack(filled + 410.0, 1, sent);
        now = filled + 430.0 + 60.0 * noise(i + 300);
    }
    exchange.data(now, 0, sent, 150, 0);
    exchange.data(now + 30.0, 0, sent + 150, 90, 0);
    exchange.ack(now + 40.0, 1, sent + 240);
    let [found, _] = exchange.diagnose();
    assert!(count(&found, Mechanism::MssFilled) >= 10, "{:?}", found.nagle.evidence);
}

/// A unit writes 60 bytes every 40 ms; each segment waits for an ACK that is delayed for 200 ms, so that five gather.
#[test]
fn the_first_message_shows_how_many_gathered_and_so_how_long_the_oldest_waited() {
    let mut exchange = Exchange::with_handshake(0.02, 1.0);
    exchange.data(40.0, 0, 0, 60, 0);
    let mut truth = 0.0;
    for i in 0..30u64 {
        let at = 241.0 + i as f64 * 200.8;
        exchange.ack(at, 1, 60 + i * 300);
        exchange.data(at + 0.03, 0, 60 + i * 300, 300, 0);
        let before = at - 200.8;
        truth += (at - (40.0 + ((before - 40.0) / 40.0).ceil() * 40.0)) / 1e3;
    }
    let [found, _] = exchange.diagnose();
    let said = found.stalled_s();
    assert!((said / truth - 1.0).abs() < 0.15, "{said} s of {truth}");
}

/// Header and body in two writes; of every sixth body the ACK that let it go was not captured.
#[test]
fn a_hold_counts_though_its_ack_was_not_captured() {
    let mut exchange = Exchange::with_handshake(0.02, 1.0);
    let mut now = 40.0;
    for i in 0..90u64 {
        let (sent, heard) = (i * 220, i * 30);
        exchange.data(now, 0, sent, 20, heard);
        let acked = now + 41.0 + 2.0 * noise(i);
        if i % 6 != 5 {
            exchange.ack(acked, 1, sent + 20);
        }
        exchange.data(acked + 0.03, 0, sent + 20, 200, heard);
        // Of the answers some were not captured either.
        if i % 5 != 4 {
            exchange.data(acked + 1.5, 1, heard, 30, sent + 220);
        }
        now = acked + 5.0 + 20.0 * noise(i + 400);
    }
    let [found, _] = exchange.diagnose();
    assert!(stalls(&found) >= 86, "{}: {:?}", stalls(&found), found.nagle.evidence);
}

/// Header and body in two writes, until the program sets TCP_NODELAY: what leaves then says nothing of how it wrote
/// before.
#[test]
fn how_long_holds_lasted_is_told_by_the_time_before_tcp_nodelay() {
    let mut exchange = Exchange::with_handshake(0.02, 4.0);
    let (mut now, mut truth) = (40.0, 0.0);
    for i in 0..90u64 {
        let (sent, heard) = (i * 350, i * 30);
        exchange.data(now, 0, sent, 150, heard);
        let body = now + if i < 30 { 44.0 + 2.0 * noise(i) } else { 0.05 };
        if i < 30 {
            exchange.ack(body - 0.03, 1, sent + 150);
            truth += (body - now) / 1e3;
        }
        exchange.data(body, 0, sent + 150, 200, heard);
        exchange.data(body + 5.0, 1, heard, 30, sent + 350);
        now = body + 8.0 + 20.0 * noise(i + 400);
    }
    let [found, _] = exchange.diagnose();
    let said = found.stalled_s();
    assert!((said / truth - 1.0).abs() < 0.1, "{said} s of {truth}");
}

/// Two programs that write at any time, both with Nagle's algorithm, 20 ms apart; what the client keeps leaves `after`
/// ms behind the server's next data, now and then it writes first. Captured at the client, whose kernel answers the handshake
/// within 20 us.
fn both_write(after: f64) -> Direction {
    let mut exchange = Exchange::with_handshake(0.02, 20.0);
    let (mut now, mut sent, mut heard) = (50.0, 0u64, 0u64);
    exchange.data(now, 0, 0, 90, 0);
    sent += 90;
    for i in 0..60u64 {
        now += 25.0 + 20.0 * noise(i);
        let theirs = 40 + (noise(i + 900) * 100.0) as u64;
        exchange.data(now, 1, heard, theirs as u32, sent);
        heard += theirs;
        let held = noise(i + 300) < 0.7;
        let leaves = now + if held { after } else { 2.0 + 15.0 * noise(i + 600) };
        let mine = 30 + (noise(i + 1200) * 120.0) as u64;
        exchange.data(leaves, 0, sent, mine as u32, heard);
        sent += mine;
    }
    let [found, _] = exchange.diagnose();
    found
}

#[test]
fn what_leaves_with_the_ack_on_data_as_soon_as_a_kernel_reacts_had_waited() {
    let found = both_write(0.025);
    assert!(stalls(&found) >= 30, "{}: {:?}", stalls(&found), found.nagle.evidence);
    // A program has to be woken first.
    let found = both_write(0.11);
    assert_eq!(stalls(&found), 0, "{:?}", found.nagle.evidence);
}
