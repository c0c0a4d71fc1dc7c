//! The diagnosis of exchanges whose packets are written out one by one: what real hosts do beside
//! Nagle's rule and a plain timer (loss probes, retransmissions that a slow ACK provokes, captures
//! that begin late), each as it was first seen in a capture.
//!
//! Goal: one case per way in which a judgement once went wrong. Method: [`Exchange`] takes the packets
//! as the capture point saw them.

mod exchange;

use acklab_trace::diagnosis::{Lack, Mechanism, NagleState};

use exchange::{Exchange, count};

/// A Nagle sender on a path of 30 ms, captured at the sender; every tenth exchange loses its
/// segment, and after 230 ms of silence a tail loss probe carries what has gathered: a hold, and so is what leaves
/// when the repair is acknowledged.
#[test]
fn a_loss_probe_ends_a_hold_and_says_nothing_against_nagle() {
    let mut exchange = Exchange::with_handshake(0.02, 30.0);
    let (mut now, mut sent, mut written) = (40.0, 0u64, 1u64);
    let mut held = 0;
    for i in 0..200 {
        let len = (written * 100 - sent) as u32;
        exchange.data(now, 0, sent, len, 0);
        let lost = i % 10 == 9;
        if lost {
            held += 1;
            let gathered = ((now + 230.0 - 40.0) / 20.0) as u64 + 1;
            let probe = (gathered * 100 - sent) as u32 - len;
            exchange.data(now + 230.0, 0, sent + u64::from(len), probe, 0);
            exchange.ack(now + 260.0, 1, sent);
            exchange.data(now + 260.05, 0, sent, len, 0);
            now += 290.1;
            sent = gathered * 100;
        } else {
            now += 30.05;
            sent += u64::from(len);
        }
        exchange.ack(now, 1, sent);
        now += 0.03;
        written = ((now - 40.0) / 20.0) as u64 + 1;
        if written * 100 == sent {
            now = 40.0 + written as f64 * 20.0;
            written += 1;
        } else {
            held += 1;
        }
    }
    let [found, _] = exchange.diagnose();
    assert_eq!(found.nagle.state, NagleState::On, "{:?}", found.nagle.evidence);
    assert_eq!(found.nagle.variant, None);
    let by_ack = count(&found, Mechanism::AckClocked);
    assert!(by_ack.abs_diff(held) * 50 <= held, "{by_ack} of {held}: {:?}", found.nagle.evidence);
}

/// Header and body in two writes over 30 ms to a receiver whose ACK of the header waits 40 ms more;
/// the capture, at the sender, begins late.
#[test]
fn without_a_handshake_the_fastest_ack_shows_the_round_trip() {
    let mut exchange = Exchange::default();
    for i in 0..50u64 {
        let (at, sent) = (f64::from(i as u32) * 170.0, i * 110);
        let delayed = at + 71.0 + (i % 3) as f64 * 0.7;
        exchange.data(at, 0, sent, 10, i * 20);
        exchange.ack(delayed, 1, sent + 10);
        exchange.data(delayed + 0.05, 0, sent + 10, 100, i * 20);
        exchange.ack(delayed + 30.1, 1, sent + 110);
        exchange.data(delayed + 30.2, 1, i * 20, 20, sent + 110);
        exchange.ack(delayed + 30.25, 0, i * 20 + 20);
    }
    let [found, _] = exchange.diagnose();
    assert_eq!(count(&found, Mechanism::DelayedAckTimer), 50, "{:?}", found.receiver_policy);
    assert_eq!(found.receiver_policy.timer_ms, Some(40.0));
    assert!(found.receiver_policy.confidence < 0.8);
}

/// Twice as many write-write-read exchanges as a direction keeps on record.
#[test]
fn holds_beyond_what_is_kept_on_record_are_scaled_up() {
    let exchanges = 140_000u64;
    let mut exchange = Exchange::with_handshake(0.02, 0.3);
    for i in 0..exchanges {
        let (at, sent) = (10.0 + i as f64 * 100.0 + (i * 7_919 % 31) as f64, i * 110);
        let delayed = at + 40.0 + (i % 5) as f64 * 0.7;
        exchange.data(at, 0, sent, 10, i * 20);
        exchange.ack(delayed, 1, sent + 10);
        exchange.data(delayed + 0.05, 0, sent + 10, 100, i * 20);
        exchange.data(delayed + 0.5, 1, i * 20, 20, sent + 110);
    }
    let [found, _] = exchange.diagnose();
    let count = count(&found, Mechanism::DelayedAckTimer);
    assert!(found.sampled);
    assert!(count.abs_diff(exchanges) * 50 <= exchanges, "{count}");
    assert!((found.stalled_s() / (exchanges as f64 * 0.0415) - 1.0).abs() < 0.02);
}

/// Messages of 50 bytes each 20 ms over a path of 4 ms, captured at the receiver, which acknowledges at once. Two are lost on the
/// way there: the capture shows neither that nor anything unacknowledged, only silences of 580 ms and then all that
/// was written meanwhile. Where each message of that time comes by itself, nothing was held.
#[test]
fn what_gathered_behind_a_loss_before_the_capture_point_was_held() {
    for nagle in [true, false] {
        let mut exchange = Exchange::with_handshake(0.02, 4.0);
        let mut offset = 0;
        let mut send = |exchange: &mut Exchange, ms: f64, len: u32| {
            exchange.data(ms, 0, offset, len, 0);
            offset += u64::from(len);
            exchange.ack(ms + 0.02, 1, offset);
        };
        for message in 0..200 {
            let written = 20.0 * f64::from(message) + 10.0;
            match message {
                60..88 | 130..158 if nagle => {}
                88 | 158 if nagle => {
                    send(&mut exchange, written, 1_448);
                    send(&mut exchange, written + 4.1, 2);
                }
                _ => send(&mut exchange, written + 0.1 * f64::from(message % 7), 50),
            }
        }
        let [found, _] = exchange.diagnose();
        assert_eq!(found.holds(), if nagle { 2 } else { 0 });
        if nagle {
            let wait = found.held[0].wait_ms[1];
            assert!((520.0..=560.0).contains(&wait), "{wait} ms");
        }
    }
}

/// Log lines of 60 to 180 bytes, 5 to 35 ms apart, over 4 ms, captured at the receiver; every 25th is lost on the way there. What
/// was written meanwhile leaves as the loss probe, and the lost line behind it; or, without a probe, the lost line comes
/// after 215 ms and the others at its ACK. Without Nagle's algorithm each line comes by itself, the lost one soon after.
#[test]
fn lines_of_any_length_that_gathered_behind_a_loss_were_held() {
    for (nagle, probes) in [(true, true), (true, false), (false, true)] {
        let mut exchange = Exchange::with_handshake(4.0, 0.02);
        let len = |line: u64| (60 + (line * 47) % 121) as u32;
        let lengths = |lines: std::ops::Range<u64>| lines.map(len).sum::<u32>();
        let at =
            |line: u64| (0..line).map(|one| 5.0 + ((one * 13) % 31) as f64).sum::<f64>() + 20.0;
        let offset = |line: u64| u64::from(lengths(0..line));
        let mut line = 0;
        while line < 200 {
            let (lost, after) = (line % 25 == 24, line + 1);
            let whole = |to: u64| offset(to);
            if !lost {
                exchange.data(at(line), 0, offset(line), len(line), 0);
                exchange.ack(at(line) + 0.02, 1, whole(after));
                line = after;
            } else if nagle {
                let repaired = at(line) + 215.0;
                let next =
                    (after..after + 80).find(|one| at(*one) > repaired).expect("a later line");
                let rest = lengths(after..next);
                let [first, second] = [(offset(line), len(line)), (offset(after), rest)];
                let [first, second] = if probes { [second, first] } else { [first, second] };
                exchange.data(repaired, 0, first.0, first.1, 0);
                exchange.ack(repaired + 0.02, 1, whole(if probes { line } else { after }));
                exchange.data(repaired + 4.1, 0, second.0, second.1, 0);
                exchange.ack(repaired + 4.12, 1, whole(next));
                line = next;
            } else {
                exchange.data(at(after), 0, offset(after), len(after), 0);
                exchange.ack(at(after) + 0.02, 1, whole(line));
                exchange.data(at(after) + 4.1, 0, offset(line), len(line), 0);
                exchange.ack(at(after) + 4.12, 1, whole(after + 1));
                line = after + 1;
            }
        }
        let [found, _] = exchange.diagnose();
        let held = found.holds();
        assert_eq!(held > 0, nagle, "{held} with probes {probes}");
        if nagle {
            assert!((5..=8).contains(&held), "{held} with probes {probes}");
            let wait = found.held[0].wait_ms[1];
            assert!((150.0..=215.0).contains(&wait), "{wait} ms");
        }
    }
}

/// JSON by lines each 8 ms over 60 ms, captured at the receiver from the middle on: every segment leaves with the ACK of the one
/// before, and holds the lines of that time. A program that writes a message of three lines for each ACK is no such one.
#[test]
fn lines_of_various_numbers_gathered() {
    let talk = |lines: &dyn Fn(u32) -> u32| {
        let mut exchange = Exchange::default();
        let mut sent = 0;
        for i in 0..40 {
            let now = 60.15 * f64::from(i);
            let line =
                |n: u32| format!("{{\"count\":{i},\"value\":{}}}\n", (i * 37 + n * 91) % 1_009);
            let text: String = (0..lines(i)).map(line).collect();
            exchange.say(now, 0, text.as_bytes(), 0);
            sent += text.len() as u64;
            exchange.ack(now + 0.02, 1, sent);
        }
        let [found, _] = exchange.diagnose();
        (found.holds(), found.writes.protocol)
    };
    let (holds, protocol) = talk(&|i| if i == 0 { 1 } else { 6 + (i * 7) % 4 });
    assert_eq!(protocol, Some("lines"));
    assert!(holds >= 35, "{holds}");
    assert_eq!(talk(&|_| 3), (0, None));
}

/// The last segment's every repetition is lost, too; what is written meanwhile leaves with the FIN, 10 s later: the loss held
/// it, and before nothing did.
#[test]
fn what_leaves_with_fin_while_a_loss_is_repaired_was_not_held_by_nagle() {
    let mut exchange = Exchange::with_handshake(0.02, 80.0);
    let mut sent = 0u64;
    for i in 0..20u64 {
        let now = 100.0 + 300.0 * i as f64;
        exchange.data(now, 0, sent, 100, 0);
        exchange.ack(now + 80.0, 1, sent + 100);
        exchange.data(now + 80.05, 0, sent + 100, 40, 0);
        exchange.ack(now + 160.1, 1, sent + 140);
        sent += 140;
    }
    let lost = 6_500.0;
    for after in [0.0, 430.0, 1_300.0, 3_000.0, 6_500.0] {
        exchange.data(lost + after, 0, sent, 100, 0);
    }
    exchange.data(lost + 10_000.0, 0, sent + 100, 250, 0);
    let [found, _] = exchange.diagnose();
    assert_eq!(found.holds(), 20, "{:?}", found.stalls);
    assert!(found.stalled_s() < 2.0, "{}", found.stalled_s());
}

/// A server's bulk of which the capture holds some segments: the last, a small one, comes when a window's worth was acknowledged
/// that never passed.
#[test]
fn what_follows_segments_that_were_not_captured_has_no_known_beginning() {
    let mut exchange = Exchange::with_handshake(0.02, 20.0);
    exchange.data(50.0, 0, 0, 500, 0);
    exchange.ack(55.0, 1, 500);
    let mut acked = 500;
    for i in 0..6u64 {
        acked += 8_688;
        exchange.ack(200.0 * (i + 1) as f64, 1, acked);
    }
    exchange.data(1_200.03, 0, acked, 376, 0);
    exchange.ack(1_222.0, 1, acked + 376);
    let [found, _] = exchange.diagnose();
    assert_eq!(found.holds(), 0, "{:?}", found.stalls);
}

/// Two routers greet each other; one update follows, and in its shadow a keep-alive, which leaves with the delayed ACK: one hold,
/// too few to say so, and what denies it would have to explain why it left just then.
#[test]
fn one_hold_of_a_short_conversation_is_not_denied() {
    let mut exchange = Exchange::with_handshake(0.1, 0.05);
    exchange.data(0.45, 0, 0, 55, 0);
    exchange.ack(0.5, 1, 55);
    exchange.data(0.72, 1, 0, 49, 55);
    exchange.ack(0.75, 0, 49);
    exchange.data(0.8, 1, 49, 19, 55);
    exchange.ack(0.85, 0, 68);
    exchange.data(0.9, 0, 55, 19, 68);
    exchange.data(1.7, 1, 68, 19, 74);
    exchange.ack(44.4, 0, 87);
    exchange.data(144.5, 0, 74, 88, 87);
    exchange.ack(188.44, 1, 162);
    exchange.data(188.48, 0, 162, 19, 87);
    exchange.ack(188.52, 1, 181);
    exchange.data(7_022.2, 0, 181, 48, 87);
    exchange.ack(7_022.3, 1, 229);
    exchange.data(8_293.5, 0, 229, 72, 87);
    exchange.ack(8_293.6, 1, 301);
    let [found, answers] = exchange.diagnose();
    assert!((0.2..0.6).contains(&found.stalled_probability), "{}", found.stalled_probability);
    assert!(answers.stalled_probability < 0.05, "{}", answers.stalled_probability);
}

/// Header and body in two writes, five times, each body held until the ACK of its header is back after 10 ms; then a last
/// line, and a good-bye that leaves with the FIN while that line is unacknowledged, for the program has closed.
#[test]
fn what_leaves_with_the_fin_breaks_no_rule() {
    let farewell = |with_fin: bool| {
        let mut exchange = Exchange::with_handshake(0.02, 10.0);
        for i in 0..2 {
            let (at, sent) = (100.0 + 200.0 * f64::from(i), 50 * u64::from(i as u32));
            exchange.data(at, 0, sent, 10, 0);
            exchange.ack(at + 10.1, 1, sent + 10);
            exchange.data(at + 10.12, 0, sent + 10, 40, 0);
            exchange.ack(at + 20.2, 1, sent + 50);
        }
        exchange.data(900.0, 0, 100, 30, 0);
        if with_fin {
            exchange.last(900.2, 0, 130, 8, 0);
        } else {
            exchange.data(900.2, 0, 130, 8, 0);
        }
        exchange.ack(910.3, 1, 138);
        exchange.diagnose()[0].clone()
    };
    let closed = farewell(true);
    assert_eq!(closed.nagle.state, NagleState::On, "{:?}", closed.nagle.evidence);
    assert!(closed.nagle.evidence.iter().any(|e| e.starts_with("no small segment left")));
    let open = farewell(false);
    assert!(open.nagle.evidence.iter().any(|e| e.starts_with("1 small segment")));
}

/// A stack with one segment under way at a time, as uIP has it, to a receiver that delays its ACKs by 41 to 51 ms: what its
/// program wrote meanwhile leaves at once with the ACK, small or several segments long.
#[test]
fn one_segment_at_a_time_is_not_nagles_algorithm() {
    let flow = |large: u32| {
        let mut exchange = Exchange::with_handshake(2.0, 0.05);
        let (mut at, mut sent) = (10.0, 0u64);
        for i in 0..40u32 {
            let len = if i % 2 == 0 { 300 } else { large + 7 * i };
            exchange.data(at, 1, sent, len, 0);
            sent += u64::from(len);
            // Delayed, but for what is two segments long.
            let waits = if len > 2 * 1_448 { 0.3 } else { 41.0 + f64::from(i * 13 % 11) };
            exchange.ack(at + waits, 0, sent);
            at += waits + 2.05 + if i % 4 == 3 { 137.0 + f64::from(i) } else { 0.0 };
        }
        exchange.diagnose()[1].clone()
    };
    let lockstep = flow(4_000);
    assert_eq!(lockstep.nagle.variant, Some("lockstep"), "{:?}", lockstep.nagle);
    assert!(lockstep.holds() >= 8, "{:?}", lockstep.stalls);
    let small = flow(100);
    assert_eq!((small.nagle.state, small.nagle.variant), (NagleState::On, None));
}

/// A publisher and a broker of MQTT over 60 ms, captured at the publisher: each acknowledges with what it has to say. Where
/// the broker's segments carry several acknowledgments each, they may have gathered or not; one for one it answers.
#[test]
fn answers_that_may_have_gathered_far_away_are_not_denied() {
    let broker = |each: u16| {
        let mut exchange = Exchange::with_handshake(0.05, 60.0);
        let (mut at, mut sent, mut answered) = (100.0, 0u64, 0u64);
        for round in 0..40u16 {
            let ids: Vec<u16> = (0..each).map(|i| round * each + i).collect();
            let publish =
                |id: &u16| [&[0x32, 9, 0, 1, b't'], &id.to_be_bytes()[..], b"1234"].concat();
            let publishes: Vec<u8> = ids.iter().flat_map(publish).collect();
            exchange.say(at, 0, &publishes, answered);
            sent += publishes.len() as u64;
            let acks: Vec<u8> =
                ids.iter().flat_map(|id| [&[0x40, 2], &id.to_be_bytes()[..]].concat()).collect();
            exchange.say(at + 60.1 + f64::from(round % 7) * 0.1, 1, &acks, sent);
            answered += acks.len() as u64;
            at += 61.0 + f64::from(round % 5);
        }
        exchange.diagnose()[1].clone()
    };
    let several = broker(3);
    assert_eq!(several.writes.protocol, Some("mqtt"));
    assert_eq!(several.lacks, Some(Lack::SenderSide), "{}", several.stalled_probability);
    let one = broker(1);
    assert_eq!((one.holds(), one.lacks), (0, None));
    assert!((0.1..0.2).contains(&one.stalled_probability), "{}", one.stalled_probability);
}

/// Writes of one segment and 12 bytes by a system that sends the tail behind a full segment at once, whatever is unacknowledged
/// (macOS, Windows), and small writes that it holds: the tails do not say that Nagle's algorithm was off.
#[test]
fn tails_of_large_writes_break_no_rule() {
    let mut exchange = Exchange::with_handshake(0.02, 30.0);
    let (mut at, mut sent) = (100.0, 0u64);
    for round in 0..20u32 {
        for _ in 0..3 {
            exchange.data(at, 0, sent, 1_448, 0);
            exchange.data(at, 0, sent + 1_448, 12, 0);
            sent += 1_460;
        }
        exchange.ack(at + 30.1, 1, sent);
        if round % 2 == 0 {
            exchange.data(at + 50.0, 0, sent, 90, 0);
            exchange.ack(at + 80.1, 1, sent + 90);
            exchange.data(at + 80.12, 0, sent + 90, 40 + round, 0);
            exchange.ack(at + 110.3, 1, sent + 130 + u64::from(round));
            sent += 130 + u64::from(round);
        }
        at += 300.0 + f64::from(round * 7 % 11);
    }
    let [found, _] = exchange.diagnose();
    assert_eq!(found.nagle.state, NagleState::On, "{:?}", found.nagle.evidence);
    assert_eq!(found.holds(), 10, "{:?}", found.stalls);
    assert!(found.nagle.evidence.iter().any(|e| e.starts_with("40 more")), "{:?}", found.nagle);
}

/// Movements of a mouse every few milliseconds over 36 ms, captured at a viewed host of whose screens the capture lost most: what
/// leaves far sooner than any ACK can come waited for none.
#[test]
fn segments_that_outrun_every_ack_were_not_held_whatever_is_missing() {
    let mut exchange = Exchange::with_handshake(36.0, 0.01);
    let mut at = 100.0;
    for i in 0..300u64 {
        // What the viewer has seen left 24 movements ago.
        let (screens, seen) = (1_448 * (i / 8), 1_448 * (i / 8).saturating_sub(3));
        exchange.data(at, 0, 27 * i, 27, seen);
        if i % 2 == 1 {
            exchange.ack(at + 0.01, 1, 27 * i + 27);
        }
        // Every fifth screen is captured.
        if i % 40 == 0 {
            exchange.data(at + 0.2, 1, screens, 1_448, 27 * i);
        }
        at += 1.5 + (i * 7 % 5) as f64 * 0.6;
    }
    let [moves, _] = exchange.diagnose();
    assert_eq!(moves.nagle.state, NagleState::Off, "{:?}", moves.nagle.evidence);
    assert_eq!(moves.lacks, None, "{}", moves.stalled_probability);
    assert!(moves.stalled_probability < 0.1, "{}", moves.stalled_probability);
}
