//! Opening, closing, resetting and the edges of RFC 9293's state machine, between two connections.

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Sink};
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{Flags, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{AppEvent, Config, Connection, KeepAlive, LossRecovery, State, System};

const LATENCY: Span = Span::from_millis(10);

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn pair() -> Pair {
    Pair::new(System::FreeBsd122.config(), System::Linux.config(), LATENCY)
}

fn established() -> Pair {
    let mut pair = pair();
    pair.drive(at(1000));
    pair.log.clear();
    pair.notices.clear();
    pair
}

fn flags_of(pair: &Pair) -> Vec<(Side, u8)> {
    pair.log.iter().map(|s| (s.from, s.segment.flags.0)).collect()
}

fn states(pair: &Pair) -> (State, State) {
    (pair.a.state(), pair.b.state())
}

/// Hands A a segment as if B had sent it.
fn forge(pair: &mut Pair, segment: TcpRepr) {
    let (dst, src) = Pair::addresses();
    let packet = Packet { src, dst, ecn: Ecn::NotEct, returned: false, body: Body::Tcp(segment) };
    pair.a.handle_packet(pair.time, packet, &mut Sink::default());
    pair.settle();
}

fn expected_from_b(pair: &Pair) -> TcpRepr {
    let (_, nxt) = pair.a.send_sequence();
    let seq = pair.a.next_expected();
    TcpRepr { seq, ack: nxt, flags: Flags::ACK, window: 1000, ..TcpRepr::default() }
}

#[test]
fn three_segments_open_a_connection() {
    let mut pair = pair();
    pair.drive(at(1000));
    let syn_ack = Flags::SYN.with(Flags::ACK).0;
    assert_eq!(
        flags_of(&pair),
        [(Side::A, Flags::SYN.0), (Side::B, syn_ack), (Side::A, Flags::ACK.0)]
    );
    assert_eq!(states(&pair), (State::Established, State::Established));
    let connected = |side| (at(if side == Side::A { 20 } else { 30 }), side, AppEvent::Connected);
    assert_eq!(pair.notices, [connected(Side::A), connected(Side::B)]);
    assert_eq!(pair.a.srtt(), Some(Span::from_millis(20)));
}

#[test]
fn a_lost_syn_is_sent_again_after_one_second_and_then_twice_as_late() {
    let mut pair = pair();
    pair.filter = Box::new(|index, _: &Sent| if index < 3 { Fate::Lose } else { Fate::Arrive });
    pair.drive(at(20_000));
    let syns = pair.log.iter().filter(|s| s.segment.flags.has(Flags::SYN) && s.from == Side::A);
    let times: Vec<u64> = syns.map(|s| s.at.as_nanos() / 1_000_000_000).collect();
    // RFC 6298 (2.1), (5.5)
    assert_eq!(times, [0, 1, 3, 7]);
    assert_eq!(states(&pair), (State::Established, State::Established));
    // RFC 5681 section 3.1: a lost SYN leaves one segment of initial window.
    assert_eq!(pair.a.snapshot().cwnd, u64::from(pair.a.mss()));
}

#[test]
fn a_round_trip_beyond_the_first_time_out_costs_linux_no_window() {
    // A path of 1.2 s: both send their SYN twice without a loss.
    let opened = |system: System| {
        let config = system.config();
        let mut pair = Pair::new(config.clone(), config, Span::from_millis(600));
        pair.drive(at(4000));
        let syns = flags_of(&pair).iter().filter(|(_, flags)| flags & Flags::SYN.0 != 0).count();
        assert_eq!((pair.a.state(), syns), (State::Established, 4), "{system}");
        (pair.a.snapshot().cwnd / u64::from(pair.a.mss()), pair.a.srtt())
    };
    // The echoed timestamp measures what Karn's algorithm must not.
    assert_eq!(opened(System::Linux), (10, Some(Span::from_millis(1200))));
    assert_eq!(opened(System::Qnx70), (1, Some(Span::from_millis(1200))));
}

#[test]
fn the_initial_window_of_linux_is_ten_segments_of_any_size() {
    // TCP_INIT_CWND; FreeBSD and Windows 10 bound it in bytes, as RFC 6928 does.
    let opened = |system: System| {
        let config = Config { mss: 8960, ..system.config() };
        let mut pair = Pair::new(config.clone(), config, LATENCY);
        pair.drive(at(1000));
        pair.a.snapshot().cwnd / u64::from(pair.a.mss())
    };
    assert_eq!(opened(System::Linux), 10);
    assert_eq!((opened(System::FreeBsd122), opened(System::Windows10)), (2, 2));
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut pair = pair();
    pair.filter = Box::new(|_, _: &Sent| Fate::Lose);
    pair.drive(at(1_000_000));
    assert_eq!(pair.a.state(), State::Closed);
    assert_eq!(pair.notices.last().map(|n| n.2), Some(AppEvent::TimedOut));
    // The SYN and tcp_syn_retries = 6.
    assert_eq!(pair.log.len(), 7);
}

#[test]
fn a_client_that_is_gone_after_its_syn_is_given_up_after_five_retransmissions() {
    // tcp_synack_retries; crossing SYNs count as SYNs (tcp_syn_retries).
    let linux = || System::Linux.config();
    let mut pair = Pair::new(linux(), linux(), LATENCY);
    pair.filter =
        Box::new(|_, sent: &Sent| if sent.from == Side::B { Fate::Lose } else { Fate::Arrive });
    pair.drive(at(1));
    pair.a.abort(pair.time);
    pair.drive(at(200_000));
    assert_eq!(pair.log.iter().filter(|s| s.from == Side::B).count(), 6);
    let (local, remote) = Pair::addresses();
    let a = Connection::connect(Time::ZERO, linux(), local, remote, Seq(100));
    let b = Connection::connect(Time::ZERO, linux(), remote, local, Seq(300));
    let mut crossing = Pair::of(a, b, LATENCY);
    crossing.filter = Box::new(|index, _: &Sent| if index < 2 { Fate::Arrive } else { Fate::Lose });
    crossing.drive(at(200_000));
    let from_a = crossing.log.iter().filter(|s| s.from == Side::A);
    // The SYN, its answer as SYN-ACK, and six retransmissions of that.
    assert_eq!(from_a.count(), 8);
}

#[test]
fn no_segment_is_smaller_than_the_least_that_linux_sends() {
    // tcp_min_snd_mss = 48, options included: 12 bytes of timestamps leave 36.
    let tiny = |mss| Config { mss, ..System::Linux.config() };
    let payload = |mss| {
        let mut pair = Pair::new(tiny(1460), tiny(mss), LATENCY);
        pair.drive(at(1000));
        pair.a.write(pair.time, 1000);
        pair.run(Span::from_secs(1));
        pair.data_from(Side::A)[0].segment.payload_len
    };
    assert_eq!([88, 60, 48, 1].map(payload), [76, 48, 36, 36]);
}

#[test]
fn syns_that_cross_open_one_connection() {
    let (local, remote) = Pair::addresses();
    let config = System::Linux.config();
    let a = Connection::connect(Time::ZERO, config.clone(), local, remote, Seq(100));
    let b = Connection::connect(Time::ZERO, config, remote, local, Seq(300));
    let mut pair = Pair::of(a, b, LATENCY);
    pair.drive(at(500));
    assert_eq!(states(&pair), (State::Established, State::Established));
    pair.a.write(pair.time, 1000);
    pair.b.write(pair.time, 2000);
    pair.run(Span::from_millis(200));
    assert_eq!((pair.a.total_read(), pair.b.total_read()), (2000, 1000));
}

#[test]
fn closing_takes_a_fin_and_an_ack_each_way_and_two_msl() {
    let mut pair = established();
    pair.a.write(pair.time, 500);
    pair.a.close(pair.time);
    pair.run(Span::from_millis(50));
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
    assert_eq!(pair.b.total_read(), 500);
    // The other direction is still open.
    assert_eq!(pair.b.write(pair.time, 300), 300);
    pair.b.close(pair.time);
    pair.run(Span::from_millis(50));
    assert_eq!(states(&pair), (State::TimeWait, State::Closed));
    assert_eq!(pair.a.total_read(), 300);
    pair.run(Span::from_secs(59));
    assert_eq!(pair.a.state(), State::TimeWait);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.a.state(), State::Closed);
    assert_eq!(pair.next_time(), None);
    let told: Vec<_> = pair.notices.iter().map(|n| (n.1, n.2)).collect();
    assert_eq!(
        told,
        [
            (Side::B, AppEvent::Readable),
            (Side::B, AppEvent::PeerClosed),
            (Side::A, AppEvent::Readable),
            (Side::A, AppEvent::PeerClosed),
            (Side::B, AppEvent::Closed),
            (Side::A, AppEvent::Closed),
        ]
    );
}

#[test]
fn only_the_segment_that_contains_the_fin_bears_it() {
    // FIN-WAIT-2 and TIME-WAIT acknowledge; the FIN lies below what they have sent.
    let mut pair = established();
    pair.a.write(pair.time, 500);
    pair.a.close(pair.time);
    pair.run(Span::from_millis(50));
    for _ in 0..3 {
        pair.b.write(pair.time, 5000);
        pair.run(Span::from_millis(300));
    }
    pair.b.close(pair.time);
    pair.run(Span::from_millis(50));
    assert_eq!(states(&pair), (State::TimeWait, State::Closed));
    for side in [Side::A, Side::B] {
        let fin = |s: &&Sent| s.from == side && s.segment.flags.has(Flags::FIN);
        assert_eq!(pair.log.iter().filter(fin).count(), 1, "{side:?}: {:?}", flags_of(&pair));
    }
}

#[test]
fn duplicates_from_a_half_closed_peer_bring_a_fast_retransmission() {
    // RFC 5681 section 2: a duplicate ACK bears no FIN, or it would not count without SACK.
    let mut newreno = System::FreeBsd122.config();
    newreno.loss.recovery = LossRecovery::NewReno;
    let mut pair = Pair::new(newreno.clone(), newreno, LATENCY);
    pair.drive(at(100));
    pair.a.close(pair.time);
    pair.run(Span::from_millis(100));
    let start = pair.time;
    let mut data = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        data += u32::from(sent.from == Side::B && sent.segment.payload_len > 0);
        if data == 1 { Fate::Lose } else { Fate::Arrive }
    });
    pair.b.write(pair.time, 10_000);
    pair.run(Span::from_millis(100));
    assert_eq!(pair.a.total_read(), 10_000);
    let losses = pair.events.iter().filter_map(|event| match event.kind {
        EventKind::Loss { timeout, .. } => Some((event.time.since(start), timeout)),
        _ => None,
    });
    assert_eq!(losses.collect::<Vec<_>>(), [(Span::from_millis(20), false)]);
}

#[test]
fn fins_that_cross_lead_through_closing_to_time_wait() {
    let mut pair = established();
    pair.a.close(pair.time);
    pair.b.close(pair.time);
    pair.run(Span::from_millis(11));
    assert_eq!(states(&pair), (State::Closing, State::Closing));
    pair.run(Span::from_millis(100));
    assert_eq!(states(&pair), (State::TimeWait, State::TimeWait));
}

#[test]
fn a_lost_last_ack_is_answered_from_time_wait() {
    let mut pair = established();
    pair.a.close(pair.time);
    pair.run(Span::from_millis(50));
    pair.b.close(pair.time);
    let mut lost = false;
    pair.filter = Box::new(move |_, sent: &Sent| {
        if sent.from == Side::A && !std::mem::replace(&mut lost, true) {
            Fate::Lose
        } else {
            Fate::Arrive
        }
    });
    pair.run(Span::from_millis(100));
    assert_eq!(states(&pair), (State::TimeWait, State::LastAck));
    pair.run(Span::from_secs(2));
    assert_eq!(states(&pair), (State::TimeWait, State::Closed));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = established();
    pair.a.abort(pair.time);
    pair.run(Span::from_millis(50));
    assert_eq!(states(&pair), (State::Closed, State::Closed));
    assert_eq!(pair.notices.last().map(|n| (n.1, n.2)), Some((Side::B, AppEvent::Reset)));
    assert_eq!(pair.next_time(), None);
}

#[test]
fn a_reset_inside_the_window_is_challenged_and_one_outside_ignored() {
    // RFC 5961 section 3.2
    let mut pair = established();
    let rst = TcpRepr { flags: Flags::RST, ..expected_from_b(&pair) };
    forge(&mut pair, TcpRepr { seq: rst.seq + 10, ..rst });
    assert_eq!((pair.a.state(), pair.log.len()), (State::Established, 1));
    assert_eq!(pair.log[0].segment.flags, Flags::ACK);
    forge(&mut pair, TcpRepr { seq: rst.seq - 10, ..rst });
    assert_eq!((pair.a.state(), pair.log.len()), (State::Established, 1));
    forge(&mut pair, rst);
    assert_eq!(pair.a.state(), State::Closed);
}

#[test]
fn a_reset_in_time_wait_ends_what_was_closed_in_order() {
    // The peer answers so where it forgot the connection and a copy of our last ACK reaches it.
    let mut pair = established();
    pair.a.close(pair.time);
    pair.b.close(pair.time);
    pair.run(LATENCY * 4);
    assert_eq!(pair.a.state(), State::TimeWait);
    let rst = TcpRepr { flags: Flags::RST, ..expected_from_b(&pair) };
    forge(&mut pair, rst);
    assert_eq!(pair.a.state(), State::Closed);
    let ends: Vec<_> = pair.notices.iter().filter(|n| n.1 == Side::A).map(|n| n.2).collect();
    assert_eq!(ends.last(), Some(&AppEvent::Closed), "{ends:?}");
    assert!(!ends.contains(&AppEvent::Reset), "{ends:?}");
}

#[test]
fn a_syn_inside_the_window_is_challenged_at_most_twice_a_second() {
    // RFC 5961 sections 4.2 and 7
    let mut pair = established();
    let syn = TcpRepr { flags: Flags::SYN, ..expected_from_b(&pair) };
    for _ in 0..10 {
        forge(&mut pair, syn);
    }
    assert_eq!((pair.a.state(), pair.log.len()), (State::Established, 1));
    pair.run(Span::from_millis(500));
    forge(&mut pair, syn);
    assert_eq!(pair.log.len(), 2);
}

#[test]
fn an_ack_of_what_was_never_sent_is_challenged() {
    // RFC 5961 section 5.2
    let mut pair = established();
    let expected = expected_from_b(&pair);
    forge(&mut pair, TcpRepr { ack: expected.ack + 1, payload_len: 10, ..expected });
    assert_eq!((pair.log.len(), pair.a.unread()), (1, 0));
}

#[test]
fn a_segment_with_an_old_timestamp_is_refused() {
    // RFC 7323 section 5.3
    let mut pair = established();
    pair.b.write(pair.time, 100);
    pair.run(Span::from_millis(300));
    let mut replayed = pair.data_from(Side::B)[0].segment;
    replayed.seq = pair.a.next_expected();
    pair.log.clear();
    forge(&mut pair, replayed);
    assert_eq!(pair.a.total_read(), 200, "the same timestamp is not older");
    replayed.seq = pair.a.next_expected();
    if let Some(stamp) = &mut replayed.options.timestamp {
        stamp.value -= 1;
    }
    pair.log.clear();
    forge(&mut pair, replayed);
    assert_eq!((pair.a.total_read(), pair.log.len()), (200, 1));
}

#[test]
fn a_segment_that_acknowledges_what_was_never_sent_leaves_no_timestamp() {
    // RFC 5961 section 5.2: nothing of it counts; else PAWS would refuse the peer from here on.
    let mut pair = established();
    let segment = expected_from_b(&pair);
    let options = TcpOptions {
        timestamp: Some(Timestamp { value: 1 << 30, echo: 1 }),
        ..TcpOptions::default()
    };
    forge(&mut pair, TcpRepr { ack: segment.ack + 5000, options, ..segment });
    pair.b.write(pair.time, 300);
    pair.run(Span::from_millis(50));
    assert_eq!(pair.a.total_read(), 300);
}

#[test]
fn a_segment_to_a_closed_connection_is_answered_with_a_reset() {
    let mut pair = established();
    pair.a.abort(pair.time);
    pair.filter = Box::new(|_, _: &Sent| Fate::Lose);
    pair.settle();
    pair.log.clear();
    let segment = expected_from_b(&pair);
    forge(&mut pair, segment);
    assert_eq!(pair.log[0].segment.flags, Flags::RST);
    assert_eq!(pair.log[0].segment.seq, segment.ack);
}

#[test]
fn a_closed_window_is_probed_with_growing_intervals_and_opens_again() {
    let mut pair = Pair::new(
        System::Linux.config(),
        Config { receive_buffer: 5000, window_scale: None, ..System::Linux.config() },
        LATENCY,
    );
    pair.drive(at(1000));
    pair.reads = [true, false];
    pair.a.write(pair.time, 20_000);
    pair.run(Span::from_secs(10));
    assert_eq!((pair.b.unread(), pair.a.snapshot().peer_window), (5000, 0));
    let probes: Vec<u64> = pair
        .data_from(Side::A)
        .iter()
        .filter(|s| s.segment.payload_len == 1)
        .map(|s| s.at.as_nanos() / 1_000_000)
        .collect();
    // RFC 9293 section 3.8.6.1: the first after one RTO, then twice as long each time.
    let gaps: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 4 && gaps.windows(2).all(|g| g[1].abs_diff(2 * g[0]) <= 2), "{gaps:?}");
    pair.reads = [true, true];
    pair.run(Span::from_secs(10));
    assert_eq!(pair.b.total_read(), 20_000);
}

#[test]
fn a_window_smaller_than_a_segment_does_not_cause_silly_segments() {
    // RFC 9293 section 3.8.6.2: the reader takes 100 bytes at a time out of a full buffer.
    let config = Config { receive_buffer: 4000, ..System::Linux.config() };
    let mut pair = Pair::new(System::Linux.config(), config, LATENCY);
    pair.drive(at(1000));
    pair.reads = [true, false];
    pair.a.write(pair.time, 40_000);
    for _ in 0..390 {
        pair.run(Span::from_millis(100));
        pair.b.read(pair.time, 100);
        pair.settle();
    }
    pair.reads = [true, true];
    pair.run(Span::from_secs(5));
    assert_eq!(pair.b.total_read(), 40_000);
    let small = pair
        .data_from(Side::A)
        .iter()
        .filter(|s| s.segment.payload_len > 1 && s.segment.payload_len < 1000)
        .count();
    // What is left of the window after whole segments leaves when the override timer fires, seldom.
    assert!(small <= 8, "{small} small segments");
}

#[test]
fn a_dead_peer_is_noticed_by_keep_alive() {
    let [idle, interval] = [Span::from_secs(10), Span::from_secs(2)];
    let keep_alive = Some(KeepAlive { idle, interval, probes: 3 });
    let mut config = System::Linux.config();
    config.patience.keep_alive = keep_alive;
    let mut pair = Pair::new(config, System::Linux.config(), LATENCY);
    pair.drive(at(30_000));
    assert_eq!(pair.a.state(), State::Established);
    let dead_from = pair.time;
    pair.filter = Box::new(|_, _: &Sent| Fate::Lose);
    pair.run(Span::from_secs(60));
    assert_eq!(pair.a.state(), State::Closed);
    let (when, _, event) = pair.notices[pair.notices.len() - 1];
    assert_eq!(event, AppEvent::TimedOut);
    assert!(when.since(dead_from) <= Span::from_secs(16), "{}", when.since(dead_from));
}

#[test]
fn a_full_send_buffer_takes_part_of_a_write_and_tells_when_there_is_room() {
    let config = Config { send_buffer: 3000, ..System::Linux.config() };
    let mut pair = Pair::new(config, System::Linux.config(), LATENCY);
    pair.drive(at(1000));
    assert_eq!(pair.a.write(pair.time, 5000), 3000);
    assert_eq!(pair.a.write(pair.time, 1), 0);
    pair.notices.clear();
    pair.run(Span::from_millis(100));
    assert!(pair.notices.iter().any(|n| (n.1, n.2) == (Side::A, AppEvent::Writable)));
    assert_eq!(pair.a.write(pair.time, 5000), 3000);
}

#[test]
fn ranges_of_the_stream_follow_a_segment() {
    let mut pair = established();
    pair.a.write(pair.time, 100);
    pair.run(Span::from_millis(1));
    pair.a.write(pair.time, 100);
    pair.a.set_nodelay(pair.time, true);
    pair.run(Span::from_millis(1));
    let segments = pair.data_from(Side::A);
    assert_eq!(pair.a.outbound_range(&segments[1].segment), 100..200);
    pair.run(LATENCY);
    // With the later timestamp, lest PAWS refuse it.
    let old = TcpRepr { seq: segments[0].segment.seq, ..segments[1].segment };
    let (src, dst) = (pair.b.flow().remote, pair.b.flow().local);
    let mut arrive = |seq, payload_len| {
        let body = Body::Tcp(TcpRepr { seq, payload_len, ..old });
        let packet = Packet { src, dst, ecn: Ecn::NotEct, returned: false, body };
        pair.b.take_packet(pair.time, packet, &mut Sink::default())
    };
    // What is there already brings nothing; otherwise what is new counts.
    assert!(arrive(old.seq, 100).is_empty());
    assert_eq!(arrive(old.seq + 150, 100), 200..250);
    assert_eq!(arrive(old.seq + 300, 10), 300..310);
    assert!(arrive(old.seq + 300, 10).is_empty());
    assert_eq!(arrive(old.seq + 240, 70), 250..310);
    assert!(arrive(old.seq + 100_000_000, 10).is_empty());
}
