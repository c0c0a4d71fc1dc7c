//! Goal: the congestion window of a Linux sender counts segments, whatever their size: it is spent, grows
//! and is halved in them, with SACK as without; and that of the others counts bytes.
//! Method: small messages between two connections, every segment acknowledged, states after each step.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::event::EventKind;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{Config, CwndUnit, InitialWindow, Nagle, System};

const MESSAGE: u32 = 100;
const LATENCY: Span = Span::from_millis(10);

/// A sender without Nagle whose window begins with ten segments, established.
fn pair(congestion: &str, unit: CwndUnit) -> Pair {
    let congestion: Algorithm = congestion.parse().expect("a known name");
    let mut config = Config {
        congestion,
        nagle: Nagle::Off,
        ack: Profile::EverySegment,
        ..System::Linux.config()
    };
    (config.window.unit, config.window.initial) = (unit, InitialWindow::Segments(10));
    let mut pair = Pair::new(config.clone(), config, LATENCY);
    pair.drive(Time::ZERO + Span::from_millis(100));
    pair.log.clear();
    pair
}

/// So many messages, each in a segment.
fn write(pair: &mut Pair, messages: u32) {
    for _ in 0..messages {
        pair.a.write(pair.time, MESSAGE);
        pair.settle();
    }
}

/// Window and threshold, tenths of a segment.
fn window(pair: &Pair) -> (u64, u64) {
    let tenths = |bytes: u64| bytes.saturating_mul(10) / u64::from(pair.a.mss());
    let state = pair.a.snapshot();
    (tenths(state.cwnd), tenths(state.ssthresh))
}

/// Loses the first data segment from here on.
fn lose_one(pair: &mut Pair) {
    let mut lost = false;
    pair.filter = Box::new(move |_, sent: &Sent| {
        let loses = !lost && sent.from == Side::A && sent.segment.payload_len > 0;
        lost |= loses;
        if loses { Fate::Lose } else { Fate::Arrive }
    });
}

#[test]
fn a_window_of_ten_segments_takes_ten_messages_and_doubles_as_they_are_acknowledged() {
    for congestion in ["reno", "cubic"] {
        let mut pair = pair(congestion, CwndUnit::Segments);
        write(&mut pair, 12);
        let sizes: Vec<u32> =
            pair.data_from(Side::A).iter().map(|s| s.segment.payload_len).collect();
        assert_eq!(sizes, [MESSAGE; 10], "{congestion}");
        let mut pair = self::pair(congestion, CwndUnit::Segments);
        write(&mut pair, 10);
        pair.run(Span::from_millis(50));
        assert_eq!(window(&pair).0, 200, "{congestion}");
    }
}

#[test]
fn a_lost_message_of_ten_halves_ten_segments() {
    for (congestion, left) in [("reno", 50), ("cubic", 70)] {
        let mut pair = pair(congestion, CwndUnit::Segments);
        lose_one(&mut pair);
        write(&mut pair, 10);
        pair.run(Span::from_millis(25));
        assert_eq!(window(&pair), (left, left), "{congestion}");
        pair.run(Span::from_millis(50));
        assert_eq!(pair.b.total_read(), 1000);
        // Without anything that the peer could report a time-out is what is left.
        let mut pair = self::pair(congestion, CwndUnit::Segments);
        pair.filter = Box::new(|_, sent: &Sent| {
            if sent.at < Time::ZERO + Span::from_millis(110) { Fate::Lose } else { Fate::Arrive }
        });
        write(&mut pair, 10);
        pair.run(Span::from_secs(1));
        assert_eq!(window(&pair).1, left, "{congestion}");
        assert_eq!(pair.b.total_read(), 1000);
    }
}

#[test]
fn a_sacked_message_makes_room_for_one_segment() {
    let mut pair = pair("reno", CwndUnit::Segments);
    let (mut messages, mut acks) = (0, 0);
    // The first message is lost, and every ACK but the one that SACKs the second.
    pair.filter = Box::new(move |_, sent: &Sent| {
        let count = if sent.from == Side::A { &mut messages } else { &mut acks };
        *count += 1;
        if (*count == 1) == (sent.from == Side::A) { Fate::Lose } else { Fate::Arrive }
    });
    write(&mut pair, 10);
    pair.a.write(pair.time, 20 * pair.a.mss());
    pair.settle();
    assert_eq!(pair.data_from(Side::A).len(), 10, "the window is full");
    pair.run(Span::from_millis(25));
    let sizes: Vec<u32> = pair.data_from(Side::A).iter().map(|s| s.segment.payload_len).collect();
    assert_eq!(sizes[10..], [pair.a.mss()]);
}

#[test]
fn a_window_of_bytes_is_spent_and_halved_in_bytes() {
    let mut pair = pair("reno", CwndUnit::Bytes);
    write(&mut pair, 140);
    assert_eq!(pair.data_from(Side::A).len(), 140);
    let mut pair = self::pair("reno", CwndUnit::Bytes);
    lose_one(&mut pair);
    write(&mut pair, 100);
    pair.run(Span::from_millis(25));
    assert_eq!(window(&pair).1, u64::from(10 * 100 * MESSAGE / 2 / pair.a.mss()));
}

#[test]
fn messages_over_a_lossy_path_wait_for_less_than_a_sixth_of_a_round_trip() {
    // 2000 messages, one per 5 ms, a round trip of 100 ms, 1 % of loss each way. Linux 6.18 let them wait
    // for 3.7 ms on average (one run); a window that mixed bytes with segments 32 ms.
    let wait_ms = |seed: u64| {
        let config = Config {
            congestion: "reno".parse().expect("a known name"),
            nagle: Nagle::Off,
            ..System::Linux.config()
        };
        let mut pair = Pair::new(config.clone(), config, Span::from_millis(50));
        pair.drive(Time::ZERO + Span::from_secs(1));
        let mut rng = Rng::named(seed, "test/loss");
        pair.filter = Box::new(
            move |_, _: &Sent| if rng.below(100) == 0 { Fate::Lose } else { Fate::Arrive },
        );
        for _ in 0..2000 {
            pair.a.write(pair.time, MESSAGE);
            pair.run(Span::from_millis(5));
        }
        pair.run(Span::from_secs(5));
        let waits = pair.events.iter().filter_map(|event| match event.kind {
            EventKind::MessageSent { written_at, .. } => Some(event.time.since(written_at)),
            _ => None,
        });
        let (count, sum) =
            waits.fold((0, 0.0), |(count, sum), wait| (count + 1, sum + wait.as_millis_f64()));
        assert_eq!(count, 2000);
        sum / 2000.0
    };
    let mean = (1..=10).map(wait_ms).sum::<f64>() / 10.0;
    assert!(mean < 16.0, "{mean} ms");
}
