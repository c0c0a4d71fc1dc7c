//! Goal: a sender that may ask for ACKs gets as many as it asks for, nothing changes where the peer does not know the
//! option, a request is not lost with its segment, and none makes a segment too large.
//! Method: two connections with a wire between them whose filter loses what it is told to.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{Body, Packet};
use acklab_core::segment::AckRequest;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Filter, Pair, Sent, Side};
use acklab_tcp::{AckRequests, Config};

const LATENCY: Span = Span::from_millis(10);

/// Without Linux's quick ACKs, which no request takes back.
fn config(ack_requests: AckRequests) -> Config {
    let ack = Profile::delayed(2, Span::from_millis(40));
    Config { ack, ack_requests, congestion: Algorithm::Reno, ..Config::default() }
}

/// A bulk transfer of `bytes` from A to B.
fn transfer([a, b]: [Config; 2], bytes: u32, filter: Filter) -> Pair {
    let mut pair = Pair::new(a, b, LATENCY);
    pair.filter = filter;
    pair.drive(Time::ZERO + Span::from_secs(1));
    assert_eq!(pair.a.write(pair.time, bytes), bytes);
    pair.drive(Time::ZERO + Span::from_secs(100));
    assert_eq!(pair.b.total_read(), u64::from(bytes));
    pair
}

fn both(by: AckRequests, bytes: u32, filter: Filter) -> Pair {
    transfer([config(by), config(by)], bytes, filter)
}

fn nothing() -> Filter {
    Box::new(|_, _| Fate::Arrive)
}

/// Requests beside those of the SYNs, with the offset where their segment began.
fn requests(pair: &Pair) -> Vec<AckRequest> {
    let carried = |sent: &Sent| sent.segment.options.ack_request;
    pair.data_from(Side::A).iter().filter_map(carried).collect()
}

#[test]
fn a_sender_asks_for_eight_acks_in_its_window_and_gets_them() {
    let pair = both(AckRequests::Tarr, 3_000_000, nothing());
    let plain = both(AckRequests::Off, 3_000_000, nothing());
    let asked = requests(&pair);
    let numbers: Vec<u8> = asked
        .iter()
        .map(|request| match request {
            AckRequest::Tarr(segments) => *segments,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(numbers.is_sorted() && numbers.len() >= 3, "{numbers:?}");
    let [data, acks] = [pair.data_from(Side::A).len(), pair.bare_from(Side::B).len()];
    let without = plain.bare_from(Side::B).len();
    assert!(acks * 4 < without, "{acks} ACKs for {data} segments, {without} without requests");
    // The last window: as many segments per ACK as were asked for last.
    let last = usize::from(*numbers.last().expect("some"));
    let mut ends: Vec<u32> = pair.bare_from(Side::B).iter().map(|s| s.segment.ack.0).collect();
    ends.truncate(ends.len() - 1);
    let mss = pair.a.mss();
    let steps: Vec<u32> =
        ends.windows(2).rev().take(5).map(|w| w[1].wrapping_sub(w[0]) / mss).collect();
    assert!(steps.iter().all(|&step| step as usize == last), "{steps:?}, asked for {last}");
}

#[test]
fn where_one_end_does_not_know_the_option_nothing_changes() {
    let (on, off) = (config(AckRequests::Tarr), config(AckRequests::Off));
    let plain = transfer([off.clone(), off.clone()], 1_000_000, nothing());
    for ends in [[on.clone(), off.clone()], [off, on.clone()], [on, config(AckRequests::AckCc)]] {
        let pair = transfer(ends, 1_000_000, nothing());
        assert_eq!(requests(&pair), []);
        let shape = |pair: &Pair| -> Vec<(Time, u32, u32)> {
            let of = |s: &Sent| (s.at, s.segment.ack.0, s.segment.payload_len);
            pair.log.iter().map(of).collect()
        };
        assert!(shape(&pair) == shape(&plain));
    }
}

#[test]
fn no_segment_with_a_request_is_larger_than_a_packet() {
    for mss in [536, 1460] {
        let ends = [AckRequests::Tarr; 2].map(|by| Config { mss, ..config(by) });
        let pair = transfer(ends, 1_000_000, nothing());
        assert!(!requests(&pair).is_empty());
        let largest = pair.log.iter().map(|s| s.segment.header_len() + s.segment.payload_len).max();
        assert_eq!(largest, Some(u32::from(mss) + 20));
    }
}

#[test]
fn a_request_that_is_lost_with_its_segment_is_said_again() {
    let mut lost = false;
    let filter = move |_: usize, sent: &Sent| {
        let is_first = sent.segment.payload_len > 0 && sent.segment.options.ack_request.is_some();
        if is_first && !std::mem::replace(&mut lost, true) { Fate::Lose } else { Fate::Arrive }
    };
    let pair = both(AckRequests::Tarr, 3_000_000, Box::new(filter));
    let asked = requests(&pair);
    assert!(asked.len() >= 2, "{asked:?}");
    let acks = pair.bare_from(Side::B).len();
    assert!(acks * 3 < pair.data_from(Side::A).len(), "{acks} ACKs");
}

#[test]
fn zero_segments_is_one_ack_at_once() {
    let mut pair = both(AckRequests::Tarr, 100_000, nothing());
    let last = *pair.data_from(Side::A).last().expect("data");
    let (local, remote) = Pair::addresses();
    for (request, at_once) in [(None, false), (Some(AckRequest::Tarr(0)), true)] {
        // A lone segment waits for others.
        pair.time += Span::from_millis(1);
        let mut segment = last.segment;
        (segment.seq, segment.payload_len) = (pair.b.next_expected(), 1000);
        segment.options.ack_request = request;
        let body = Body::Tcp(segment);
        let packet = Packet { src: local, dst: remote, ecn: last.ecn, returned: false, body };
        let mut sink = Sink::default();
        pair.b.handle_packet(pair.time, packet, &mut sink);
        assert_eq!(pair.b.poll_transmit(pair.time, &mut sink).is_some(), at_once, "{request:?}");
    }
}

#[test]
fn ack_congestion_control_asks_for_rarer_acks_while_acks_are_lost() {
    let clean = both(AckRequests::AckCc, 3_000_000, nothing());
    assert_eq!(requests(&clean), []);
    let mut count = 0;
    let filter = move |_: usize, sent: &Sent| {
        count += usize::from(sent.from == Side::B);
        let is_third = sent.from == Side::B && sent.segment.seq_len() == 0 && count % 3 == 0;
        if is_third { Fate::Lose } else { Fate::Arrive }
    };
    let pair = both(AckRequests::AckCc, 3_000_000, Box::new(filter));
    let asked = requests(&pair);
    assert!(matches!(asked[..], [AckRequest::AckCc(4), AckRequest::AckCc(8), ..]), "{asked:?}");
    let [acks, without] = [&pair, &clean].map(|pair| pair.bare_from(Side::B).len());
    assert!(acks * 2 < without, "{acks} of {without}");
}
