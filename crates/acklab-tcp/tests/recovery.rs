//! Loss recovery between two connections: RFC 5681, 6298, 6582, 6675 and 3042.

use acklab_core::event::EventKind;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{Config, InitialWindow, LossRecovery, Nagle, System};

const LATENCY: Span = Span::from_millis(10);

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A sender with 1000-byte segments and `window` of them at once, in bytes; every segment is
/// acknowledged.
fn pair(sack: bool, window: u32) -> Pair {
    pair_by(if sack { LossRecovery::Sack } else { LossRecovery::NewReno }, window)
}

fn pair_by(recovery: LossRecovery, window: u32) -> Pair {
    let mut config = Config {
        mss: 1000,
        timestamps: false,
        nagle: Nagle::Off,
        ack: acklab_core::ack::Profile::EverySegment,
        ..System::FreeBsd122.config()
    };
    config.loss.recovery = recovery;
    config.window.initial = InitialWindow::Segments(window);
    (config.rto.min, config.rto.slop) = (Span::from_millis(200), Span::ZERO);
    let mut pair = Pair::new(config.clone(), config, LATENCY);
    pair.drive(at(900));
    // The first scaled window differs from the SYN's; a duplicate ACK's may not (RFC 5681 section 2).
    pair.b.write(pair.time, 1);
    pair.drive(at(1000));
    pair.log.clear();
    pair.events.clear();
    pair
}

/// Loses the data segments with these numbers (by first transmission order from the client).
fn lose(pair: &mut Pair, numbers: &'static [usize]) {
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        if sent.from == Side::B || sent.segment.payload_len == 0 {
            return Fate::Arrive;
        }
        count += 1;
        if numbers.contains(&(count - 1)) { Fate::Lose } else { Fate::Arrive }
    });
}

/// Data segments of A as (number of the first kilobyte, ms since 1 s).
fn transmissions(pair: &Pair) -> Vec<(u32, u64)> {
    pair.data_from(Side::A)
        .iter()
        .map(|s| {
            (
                (s.segment.seq - acklab_core::seq::Seq(1001)) / 1000,
                s.at.since(at(1000)).as_micros() / 1000,
            )
        })
        .collect()
}

fn losses(pair: &Pair) -> Vec<bool> {
    pair.events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Loss { timeout, .. } => Some(timeout),
            _ => None,
        })
        .collect()
}

#[test]
fn the_third_duplicate_ack_sends_the_segment_again() {
    for sack in [false, true] {
        let mut pair = pair(sack, 6);
        lose(&mut pair, &[1]);
        pair.a.write(pair.time, 6000);
        pair.run(Span::from_secs(1));
        assert_eq!(pair.b.total_read(), 6000);
        let sent = transmissions(&pair);
        assert_eq!(&sent[6..], [(1, 20)], "sack {sack}: {sent:?}");
        assert_eq!(losses(&pair), [false]);
        // RFC 5681 equation 4: FlightSize / 2, with 5 segments in flight.
        assert_eq!(pair.a.snapshot().ssthresh, 2500);
    }
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicate_acks() {
    // RFC 3042: a window of 4 with the first lost gives 3 duplicate ACKs only thanks to new data.
    for sack in [false, true] {
        let mut pair = pair(sack, 4);
        lose(&mut pair, &[0, 4]);
        pair.a.write(pair.time, 20_000);
        pair.run(Span::from_secs(3));
        assert_eq!(pair.b.total_read(), 20_000);
        let sent = transmissions(&pair);
        assert_eq!(&sent[4..7], [(4, 20), (5, 20), (0, 20)], "sack {sack}: {sent:?}");
    }
}

#[test]
fn newreno_sends_one_hole_per_round_trip_and_sack_all_in_one() {
    let recovered_in = |sack| {
        let mut pair = pair(sack, 12);
        lose(&mut pair, &[0, 2, 4]);
        pair.a.write(pair.time, 12_000);
        pair.run(Span::from_secs(1));
        assert_eq!(pair.b.total_read(), 12_000);
        assert_eq!(losses(&pair), [false]);
        transmissions(&pair).split_off(12)
    };
    // RFC 6582 section 3.2, step 3: one partial ACK, one retransmission.
    assert_eq!(recovered_in(false), [(0, 20), (2, 40), (4, 60)]);
    // RFC 6675 section 5, step 4.3 and (C): 0 at once; 2 and 4 as the pipe drains below cwnd.
    assert_eq!(recovered_in(true), [(0, 20), (2, 20), (4, 20)]);
}

#[test]
fn a_rescue_retransmission_saves_a_lost_tail_from_the_time_out() {
    // RFC 6675 section 4, rule 4: 0 and the last are lost; nothing above the last can tell.
    let mut pair = pair(true, 8);
    lose(&mut pair, &[0, 7]);
    pair.a.write(pair.time, 8000);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.b.total_read(), 8000);
    assert_eq!(losses(&pair), [false]);
    let again = transmissions(&pair).split_off(8);
    assert_eq!(again, [(0, 20), (7, 40)]);
}

#[test]
fn a_lost_retransmission_waits_for_the_time_out() {
    for sack in [false, true] {
        let mut pair = pair(sack, 8);
        lose(&mut pair, &[0, 8]);
        pair.a.write(pair.time, 8000);
        pair.run(Span::from_secs(2));
        assert_eq!(pair.b.total_read(), 8000, "sack {sack}");
        assert_eq!(losses(&pair), [false, true], "sack {sack}");
    }
}

#[test]
fn a_lost_retransmission_leaves_again_once_what_left_later_has_arrived() {
    // RFC 8985 section 6.2, with segments that are lost so many times.
    let again = |recovery, mut lost: Vec<(u32, u32)>| {
        let mut pair = pair_by(recovery, 10);
        pair.filter = Box::new(move |_, sent: &Sent| {
            let number = (sent.segment.seq - acklab_core::seq::Seq(1001)) / 1000;
            let is_data = sent.from == Side::A && sent.segment.payload_len > 0;
            match lost.iter_mut().find(|(which, times)| is_data && *which == number && *times > 0) {
                Some((_, times)) => {
                    *times -= 1;
                    Fate::Lose
                }
                None => Fate::Arrive,
            }
        });
        pair.a.write(pair.time, 60_000);
        pair.run(Span::from_secs(3));
        assert_eq!(pair.b.total_read(), 60_000);
        let sent = transmissions(&pair);
        let is_again = |i: &usize| sent[..*i].iter().any(|before| before.0 == sent[*i].0);
        let resent = (0..sent.len()).filter(is_again).map(|i| sent[i]).collect::<Vec<_>>();
        (losses(&pair), resent)
    };
    let rack = |lost| again(LossRecovery::Rack, lost);
    assert_eq!(rack(vec![(0, 1)]), again(LossRecovery::Sack, vec![(0, 1)]), "RFC 6675 finds it");
    // 0 leaves again at 20 ms, with what is new by then; what leaves at 40 ms is reported at 60.
    assert_eq!(rack(vec![(0, 2)]), (vec![false], vec![(0, 20), (0, 60)]));
    assert_eq!(rack(vec![(0, 3)]), (vec![false], vec![(0, 20), (0, 60), (0, 100)]));
    // Of three retransmissions only that one which is lost leaves again.
    let (timeouts, sent) = rack(vec![(0, 1), (2, 2), (4, 1)]);
    assert_eq!(
        (timeouts, sent.iter().map(|sent| sent.0).collect()),
        (vec![false], vec![0, 2, 4, 2])
    );
    // RFC 6675 alone waits for the time-out.
    assert_eq!(again(LossRecovery::Sack, vec![(0, 2)]).0, [false, true]);
}

#[test]
fn the_time_out_doubles_with_each_expiry_and_karns_algorithm_keeps_it() {
    let mut pair = pair(true, 4);
    pair.filter = Box::new(|_, sent: &Sent| {
        if sent.from == Side::A && sent.at < at(8000) { Fate::Lose } else { Fate::Arrive }
    });
    pair.a.write(pair.time, 1000);
    pair.run(Span::from_secs(30));
    let times: Vec<u64> = transmissions(&pair).iter().map(|&(_, ms)| ms).collect();
    // RFC 6298 (5.1), (5.4), (5.5): RTO 200 ms, then 400, 800, ...
    assert_eq!(times, [0, 200, 600, 1400, 3000, 6200, 12_600]);
    assert_eq!(pair.b.total_read(), 1000);
    // (5.7), Karn: no sample from a segment sent twice, the time-out stays backed off ...
    assert_eq!(pair.a.snapshot().rto, Span::from_millis(12_800));
    assert_eq!(pair.a.snapshot().cwnd, 2000, "slow start from one segment");
    // ... until a segment sent once is acknowledged.
    pair.a.write(pair.time, 1000);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.a.snapshot().rto, Span::from_millis(200));
}

#[test]
fn the_retransmission_timer_restarts_with_every_ack_of_new_data() {
    // RFC 6298 (5.3): the second segment, lost, is sent again one RTO after the first one's ACK.
    let mut pair = pair(true, 4);
    lose(&mut pair, &[1]);
    pair.a.write(pair.time, 2000);
    pair.run(Span::from_secs(1));
    assert_eq!(transmissions(&pair), [(0, 0), (1, 0), (1, 220)]);
}

#[test]
fn the_retransmission_timer_restarts_when_the_oldest_segment_is_sent_again() {
    // A round trip of 300 ms and a time-out of 500 ms. The burst after idleness loses its head: the
    // duplicates bring it again after 300 ms, and its ACK is due at 600 ms.
    let config = Config { nagle: Nagle::Off, ..System::Linux.config() };
    let mut pair = Pair::new(config.clone(), config, Span::from_millis(150));
    pair.drive(at(1000));
    for _ in 0..40 {
        pair.a.write(pair.time, 1000);
        pair.run(Span::from_millis(400));
    }
    assert_eq!(pair.a.snapshot().rto, Span::from_millis(500));
    lose(&mut pair, &[0]);
    let before = pair.data_from(Side::A).len();
    pair.a.write(pair.time, 8 * pair.a.mss());
    pair.run(Span::from_secs(3));
    assert_eq!(losses(&pair), [false]);
    assert_eq!(pair.data_from(Side::A).len() - before, 9);
}

#[test]
fn after_a_time_out_everything_lost_is_sent_again_in_slow_start() {
    for sack in [false, true] {
        let mut pair = pair(sack, 10);
        lose(&mut pair, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        pair.a.write(pair.time, 10_000);
        pair.run(Span::from_secs(2));
        assert_eq!(pair.b.total_read(), 10_000);
        let again: Vec<_> = transmissions(&pair).split_off(10);
        // One, then two, then four, then the rest: a round trip apart.
        let expect = [
            (0, 200),
            (1, 220),
            (2, 220),
            (3, 240),
            (4, 240),
            (5, 240),
            (6, 240),
            (7, 260),
            (8, 260),
            (9, 260),
        ];
        assert_eq!(again, expect, "sack {sack}");
    }
}

#[test]
fn reordering_by_less_than_three_segments_is_not_loss() {
    for sack in [false, true] {
        let mut pair = pair(sack, 10);
        let mut count = 0;
        pair.filter = Box::new(move |_, sent: &Sent| {
            count += usize::from(sent.from == Side::A);
            if sent.from == Side::A && count == 2 {
                // Two others pass it.
                Fate::Delay(Span::from_micros(150))
            } else {
                Fate::Arrive
            }
        });
        for _ in 0..6 {
            pair.a.write(pair.time, 1000);
            pair.run(Span::from_micros(70));
        }
        pair.run(Span::from_secs(1));
        assert_eq!(pair.b.total_read(), 6000);
        assert_eq!((losses(&pair).len(), pair.data_from(Side::A).len()), (0, 6), "sack {sack}");
    }
}

/// Two ends by the book, `window` segments at once, opened, at 1 s. B does not read: its reads would
/// change the window on the first duplicate ACK, since here they follow the ACK.
fn textbook(window: u32, change: impl Fn(&mut Config)) -> Pair {
    let mut config = Config::textbook(1000);
    config.window.initial = InitialWindow::Segments(window);
    change(&mut config);
    let mut pair = Pair::new(config.clone(), config, LATENCY);
    pair.reads[1] = false;
    pair.drive(at(1000));
    pair.log.clear();
    pair.events.clear();
    pair
}

#[test]
fn by_the_book_packets_have_headers_of_forty_bytes_and_slow_start_begins_with_one() {
    let mut pair = textbook(1, |_| {});
    pair.a.write(pair.time, 7000);
    pair.run(Span::from_secs(1));
    let sent = transmissions(&pair);
    assert_eq!(sent, [(0, 0), (1, 20), (2, 20), (3, 40), (4, 40), (5, 40), (6, 40)]);
    let sizes = |sent: Vec<Sent>| -> Vec<u32> {
        sent.iter().map(|s| 20 + s.segment.header_len() + s.segment.payload_len).collect()
    };
    assert_eq!(sizes(pair.data_from(Side::A)), [1040; 7]);
    assert_eq!(sizes(pair.bare_from(Side::B)), [40; 7]);
    assert_eq!(pair.bare_from(Side::B)[0].segment.window, 63_000, "64 segments, one of them full");
}

#[test]
fn the_ack_before_the_duplicates_is_none_of_them() {
    // Segments 3 and 4 are late, so that two duplicates come: below the threshold, whatever window
    // stands on the ACKs.
    let mut pair = textbook(8, |_| {});
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        count += usize::from(sent.segment.payload_len > 0);
        let late = sent.segment.payload_len > 0 && count == 4;
        if late { Fate::Delay(Span::from_millis(2)) } else { Fate::Arrive }
    });
    pair.a.write(pair.time, 6000);
    pair.run(Span::from_secs(1));
    assert_eq!((losses(&pair).len(), pair.data_from(Side::A).len()), (0, 6));
}

#[test]
fn the_threshold_of_duplicates_can_be_set() {
    for (threshold, expect) in [(1, 1), (4, 1), (5, 0)] {
        let mut pair = textbook(8, |config| config.loss.dup_thresh = threshold);
        lose(&mut pair, &[3]);
        pair.a.write(pair.time, 8000);
        pair.run(Span::from_millis(500));
        assert_eq!(losses(&pair).len(), expect, "threshold {threshold}");
    }
}

#[test]
fn classic_reno_leaves_recovery_at_the_first_new_ack_and_halves_again_for_the_second_loss() {
    let run = |recovery| {
        let mut pair = textbook(12, move |config| config.loss.recovery = recovery);
        lose(&mut pair, &[0, 2]);
        pair.a.write(pair.time, 40_000);
        pair.run(Span::from_millis(70));
        (losses(&pair), pair.a.snapshot().ssthresh)
    };
    // RFC 6582: one reduction for the window. 12 segments out, then half of them.
    assert_eq!(run(LossRecovery::NewReno), (vec![false], 6000));
    // 4.3BSD-Reno: a partial ACK ends recovery; the new segments' duplicates begin another.
    assert_eq!(run(LossRecovery::Reno), (vec![false, false], 3000));
}

#[test]
fn slow_start_doubles_and_congestion_avoidance_adds_one_segment_per_round_trip() {
    let mut pair = pair(true, 2);
    pair.a.write(pair.time, 1_000_000);
    let mut windows = Vec::new();
    for _ in 0..4 {
        pair.run(Span::from_millis(20));
        windows.push(pair.a.snapshot().cwnd / 1000);
    }
    assert_eq!(windows, [4, 8, 16, 32]);
}

/// Segments that left until 200 kB were across, time in ms, and losses noticed, for each loss rate
/// and window: integers, so that any change of behaviour shows.
#[test]
fn transfers_across_loss_and_buffer_are_as_recorded() {
    use std::fmt::Write as _;
    let mut table = String::new();
    for sack in [false, true] {
        for every in [0, 50, 20, 7, 3] {
            for buffer in [4_000, 16_000, 60_000] {
                let mut pair = pair(sack, 4);
                let mut rng = acklab_core::rng::Rng::named(1, "test/loss");
                pair.filter = Box::new(move |_, _: &Sent| {
                    if every > 0 && rng.below(every) == 0 { Fate::Lose } else { Fate::Arrive }
                });
                let mut done = None;
                let mut left = 200_000;
                while done.is_none() {
                    let room = pair
                        .a
                        .room()
                        .min(buffer - (pair.a.in_flight() + pair.a.unsent()).min(buffer));
                    left -= pair.a.write(pair.time, left.min(room as u32));
                    pair.settle();
                    let next = pair.next_time().expect("the transfer goes on");
                    pair.step(next);
                    if pair.b.total_read() == 200_000 {
                        done = Some(pair.time);
                    }
                }
                let millis = done.map_or(0, |t| t.since(at(1000)).as_micros() / 1000);
                let (fast, slow): (Vec<bool>, Vec<bool>) =
                    losses(&pair).into_iter().partition(|t| !t);
                writeln!(
                    table,
                    "sack={sack:5} loss=1/{every:<2} buffer={buffer:5} segments={:4} ms={millis:6} fast={:2} rto={:2}",
                    pair.data_from(Side::A).len(),
                    fast.len(),
                    slow.len(),
                )
                .unwrap();
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loss_by_buffer.txt");
    if std::env::var_os("ACKLAB_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let recorded = std::fs::read_to_string(path).unwrap();
    assert!(
        recorded == table,
        "differs from tests/loss_by_buffer.txt (ACKLAB_BLESS=1 records anew):\n{table}"
    );
}
