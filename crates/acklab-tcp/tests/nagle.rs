//! Nagle's algorithm, CORK and delayed ACKs between two connections, to the nanosecond.

use acklab_core::ack::Profile;
use acklab_core::event::{AckReason, EventKind, Release};
use acklab_core::options::Word as _;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Pair, Side};
use acklab_tcp::{Config, Nagle, State, System};

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A sender of the given variant to a receiver of the given system, 30 ms apart and back, both
/// established; returns at 1 s.
fn established(nagle: Nagle, ack: Profile) -> Pair {
    let sender = Config { nagle, ..System::Qnx70.config() };
    let receiver = Config { ack, ..System::Linux.config() };
    let mut pair = Pair::new(sender, receiver, Span::from_millis(15));
    pair.drive(at(1000));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    pair.log.clear();
    pair.events.clear();
    pair
}

fn sizes_and_times(pair: &Pair, side: Side) -> Vec<(u32, u64)> {
    pair.data_from(side)
        .iter()
        .map(|s| (s.segment.payload_len, s.at.since(at(1000)).as_nanos()))
        .collect()
}

#[test]
fn a_lone_segment_is_acknowledged_when_each_profile_says() {
    let check = |ack: Profile, phase: f64, expect: Span| {
        let name = format!("{ack:?}");
        let sender = Config { nagle: Nagle::Off, ..System::Qnx70.config() };
        let receiver = Config { ack, ack_phase: phase, ..System::Linux.config() };
        let mut pair = Pair::new(sender, receiver, Span::from_millis(15));
        pair.reads = [false, false];
        pair.drive(at(1000));
        // Use up whatever budget of quick ACKs there is.
        for _ in 0..20 {
            pair.a.write(pair.time, 100);
            pair.run(Span::from_millis(700));
        }
        pair.log.clear();
        let written = pair.time;
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(700));
        let acks = pair.bare_from(Side::B);
        assert_eq!(acks.len(), 1, "{name}");
        assert_eq!(
            acks[0].at.since(written).saturating_sub(Span::from_millis(15)),
            expect,
            "{name}"
        );
    };
    check(Profile::EverySegment, 0.0, Span::ZERO);
    check(System::FreeBsd121.config().ack, 0.0, Span::from_millis(100));
    check(System::FreeBsd122.config().ack, 0.0, Span::from_millis(40));
    check(System::Windows7.config().ack, 0.0, Span::from_millis(200));
    check(System::Windows10.config().ack, 0.0, Span::from_millis(40));
    check(System::Qnx70.config().ack, 0.0, Span::from_millis(200));
    check(Profile::delayed(2, Span::from_millis(73)), 0.0, Span::from_millis(73));
    // PSH is acknowledged at once.
    check(System::MacOs.config().ack, 0.0, Span::ZERO);
    // The segment arrives at 15,015 ms: ticks of 100 ms, the second after it.
    check(System::Windows7Tick.config().ack, 0.0, Span::from_millis(185));
    check(System::Windows7Tick.config().ack, 0.2, Span::from_millis(105));
    check(System::Windows7Tick.config().ack, 0.15, Span::from_millis(200));
    // 4.4BSD.
    check(Profile::tick(2, Span::from_millis(200), 1), 0.0, Span::from_millis(185));
}

#[test]
fn every_second_segment_of_any_size_is_acknowledged_at_once() {
    for name in
        [System::FreeBsd121, System::FreeBsd122, System::Windows7, System::Windows10, System::Qnx70]
    {
        let mut pair = established(Nagle::Off, name.config().ack);
        for _ in 0..4 {
            pair.a.write(pair.time, 10);
            pair.run(Span::from_millis(1));
        }
        pair.run(Span::from_millis(500));
        let acks: Vec<_> = pair.bare_from(Side::B).iter().map(|s| s.at).collect();
        assert_eq!(acks, [at(1016), at(1018)], "{name}");
    }
}

#[test]
fn nagle_and_a_delayed_ack_hold_the_second_write_for_a_round_trip_and_the_delay() {
    for nagle in [Nagle::Classic, Nagle::Bsd, Nagle::Minshall] {
        let mut pair = established(nagle, System::Qnx70.config().ack);
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(100));
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(100));
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(1000));
        assert_eq!(sizes_and_times(&pair, Side::A), [(100, 0), (200, 230_000_000)], "{nagle}");
        let released = pair.events.iter().find_map(|event| match event.kind {
            EventKind::Released { bytes, held, by, .. } => Some((bytes, held, by)),
            _ => None,
        });
        assert_eq!(released, Some((200, Span::from_millis(130), Release::Ack)));
        let reasons: Vec<_> = pair
            .events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::AckSent { reason, delay, .. } => Some((reason, delay)),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [(AckReason::Timer, Span::from_millis(200)); 2]);
    }
}

#[test]
fn with_nagle_off_every_write_leaves_at_once() {
    let mut pair = established(Nagle::Off, System::Qnx70.config().ack);
    for _ in 0..3 {
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(10));
    }
    assert_eq!(sizes_and_times(&pair, Side::A), [(100, 0), (100, 10_000_000), (100, 20_000_000)]);
}

#[test]
fn the_tail_of_a_write_beyond_one_mss_tells_the_variants_apart() {
    // On an idle connection, and 10 ms after 100 bytes that are not acknowledged yet.
    let idle = |nagle| {
        let mut pair = established(nagle, System::Qnx70.config().ack);
        pair.a.write(pair.time, 1448 + 100);
        pair.run(Span::from_millis(1000));
        sizes_and_times(&pair, Side::A)
    };
    let busy = |nagle| {
        let mut pair = established(nagle, System::Qnx70.config().ack);
        pair.a.write(pair.time, 1448);
        pair.run(Span::from_millis(10));
        pair.a.write(pair.time, 1448 + 100);
        pair.run(Span::from_millis(1000));
        sizes_and_times(&pair, Side::A)
    };
    let ms = |millis: u64| millis * 1_000_000;
    let at_once = [(1448, 0), (100, 0)];
    let waiting = [(1448, 0), (100, ms(230))];
    // The second full segment is acknowledged at once, so its ACK is there after a round trip.
    let busy_at_once = [(1448, 0), (1448, ms(10)), (100, ms(10))];
    let busy_waiting = [(1448, 0), (1448, ms(10)), (100, ms(40))];
    assert_eq!(idle(Nagle::Off), at_once);
    assert_eq!(idle(Nagle::Classic), waiting);
    assert_eq!(idle(Nagle::Bsd), at_once);
    assert_eq!(idle(Nagle::Minshall), at_once);
    assert_eq!(busy(Nagle::Off), busy_at_once);
    assert_eq!(busy(Nagle::Classic), busy_waiting);
    assert_eq!(busy(Nagle::Bsd), busy_waiting);
    assert_eq!(busy(Nagle::Minshall), busy_at_once);
}

#[test]
fn bsd_holds_a_second_small_write_as_classic_does() {
    for nagle in [Nagle::Classic, Nagle::Bsd, Nagle::Minshall] {
        let mut pair = established(nagle, System::Qnx70.config().ack);
        pair.a.write(pair.time, 1448 + 100);
        pair.run(Span::from_millis(1000));
        pair.log.clear();
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(10));
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(1000));
        let ms = |millis: u64| millis * 1_000_000;
        assert_eq!(sizes_and_times(&pair, Side::A), [(100, ms(1000)), (100, ms(1230))], "{nagle}");
    }
}

#[test]
fn bsd_sends_half_of_a_small_window_without_waiting() {
    let sent_at_once = |nagle| {
        let sender = Config { nagle, ..System::Qnx70.config() };
        let receiver = Config { receive_buffer: 400, window_scale: None, ..System::Qnx70.config() };
        let mut pair = Pair::new(sender, receiver, Span::from_millis(15));
        pair.drive(at(1000));
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(5));
        pair.a.write(pair.time, 199);
        pair.run(Span::from_millis(5));
        let below_half = pair.a.unsent() == 0;
        pair.a.write(pair.time, 1);
        pair.run(Span::from_millis(1));
        (below_half, pair.a.unsent() == 0)
    };
    assert_eq!(sent_at_once(Nagle::Classic), (false, false));
    assert_eq!(sent_at_once(Nagle::Bsd), (false, true));
}

#[test]
fn every_system_has_the_variant_of_its_own() {
    let check = |system: System, nagle| assert_eq!(system.config().nagle, nagle, "{system}");
    check(System::Linux, Nagle::Minshall);
    check(System::FreeBsd121, Nagle::Bsd);
    check(System::FreeBsd122, Nagle::Bsd);
    check(System::Qnx70, Nagle::Bsd);
    check(System::Windows7, Nagle::Classic);
    check(System::Windows7Tick, Nagle::Classic);
    check(System::Windows10, Nagle::Classic);
    check(System::MacOs, Nagle::Minshall);
}

#[test]
fn linux_has_cubic_and_the_others_reno() {
    for system in System::ALL.iter().copied() {
        let expected = if system == System::Linux { "cubic" } else { "reno" };
        assert_eq!(system.config().congestion.name(), expected, "{system}");
    }
    assert_eq!(Config::textbook(960).congestion.name(), "reno");
}

#[test]
fn a_full_segment_ends_a_hold() {
    let mut pair = established(Nagle::Classic, System::Qnx70.config().ack);
    pair.a.write(pair.time, 100);
    for _ in 0..15 {
        pair.run(Span::from_millis(1));
        pair.a.write(pair.time, 100);
    }
    pair.run(Span::from_millis(5));
    assert_eq!(sizes_and_times(&pair, Side::A), [(100, 0), (1448, 15_000_000)]);
    let by = pair.events.iter().find_map(|event| match event.kind {
        EventKind::Released { by, .. } => Some(by),
        _ => None,
    });
    assert_eq!(by, Some(Release::Full));
}

#[test]
fn setting_nodelay_releases_what_is_held() {
    let mut pair = established(Nagle::Classic, System::Qnx70.config().ack);
    pair.a.write(pair.time, 100);
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(5));
    pair.a.write(pair.time, 50);
    pair.run(Span::from_millis(5));
    assert!(pair.a.is_holding());
    pair.a.set_nodelay(pair.time, true);
    pair.run(Span::from_millis(5));
    assert!(!pair.a.is_holding());
    assert_eq!(sizes_and_times(&pair, Side::A), [(200, 0), (50, 10_000_000)]);
}

#[test]
fn cork_holds_for_two_hundred_milliseconds_at_most() {
    let mut pair = established(Nagle::Off, System::Qnx70.config().ack);
    pair.a.set_cork(pair.time, true);
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(50));
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(950));
    assert_eq!(sizes_and_times(&pair, Side::A), [(200, 200_000_000)]);
    pair.log.clear();
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(50));
    pair.a.set_cork(pair.time, false);
    pair.run(Span::from_millis(50));
    assert_eq!(sizes_and_times(&pair, Side::A), [(100, 1_050_000_000)]);
}

#[test]
fn a_linux_reader_acknowledges_small_segments_as_it_reads() {
    let linux = System::Linux.config().ack;
    let mut pair = established(Nagle::Classic, linux);
    for _ in 0..40 {
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(100));
    }
    // No message waits: each ACK is back after one round trip.
    assert_eq!(pair.data_from(Side::A).len(), 40);
    let delays: Vec<_> = pair
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::AckSent { delay, .. } => Some(delay),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [Span::ZERO; 40]);
}

#[test]
fn a_linux_host_that_answers_delays_its_acks_by_forty_milliseconds() {
    let linux = System::Linux.config().ack;
    let mut pair = established(Nagle::Classic, linux);
    // A request and its answer make the conversation ping-pong.
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(15));
    pair.b.write(pair.time, 100);
    pair.run(Span::from_millis(985));
    pair.log.clear();
    let start = pair.time;
    for _ in 0..2 {
        pair.a.write(pair.time, 100);
        pair.run(Span::from_millis(5));
    }
    pair.run(Span::from_millis(500));
    let times: Vec<_> = pair.data_from(Side::A).iter().map(|s| s.at.since(start)).collect();
    // The first ACK waits 40 ms; its time-out ends the mode, and the next is sent on read.
    assert_eq!(times, [Span::ZERO, Span::from_millis(70)]);
    let acks: Vec<_> = pair.bare_from(Side::B).iter().map(|s| s.at.since(start)).collect();
    assert_eq!(acks, [Span::from_millis(55), Span::from_millis(85)]);
}

#[test]
fn a_linux_host_that_sends_keeps_its_quick_acks_for_what_arrives() {
    // `tcp_dec_quickack_mode`: only a segment that answers data spends one of the sixteen.
    let linux = Profile::Linux(acklab_core::ack::linux::Options::default());
    let mut pair = established(Nagle::Off, linux);
    pair.reads = [true, false];
    pair.b.set_nodelay(pair.time, true);
    let send = |pair: &mut Pair, bytes| {
        pair.a.write(pair.time, bytes);
        let start = pair.time;
        pair.log.clear();
        pair.run(Span::from_millis(60));
        let acks = pair.bare_from(Side::B);
        acks.first().map(|ack| ack.at.since(start))
    };
    assert_eq!(send(&mut pair, 100), Some(Span::from_millis(15)));
    // Twenty segments that acknowledge nothing new, too late after the data to be its answer.
    for _ in 0..20 {
        pair.b.write(pair.time, 100);
        pair.run(Span::from_millis(5));
    }
    assert_eq!(pair.data_from(Side::B).len(), 20);
    assert_eq!(send(&mut pair, 100), Some(Span::from_millis(15)), "not after 40 ms");
}
