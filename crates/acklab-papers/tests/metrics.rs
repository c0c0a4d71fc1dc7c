//! Goal: metrics mean what their documentation says, also when buffers fill and packets are lost.
//! Method: count the packets of a capture point oneself and compare; write more than a buffer holds.

use acklab_core::packet::Body;
use acklab_core::segment::Flags;
use acklab_lab::measured::Metrics;
use acklab_lab::scenario::{self, Capture, CapturePoint};
use acklab_papers::scenario::SCENARIOS;

/// Runs one replication; returns its metrics, the segments with data and the pure ACKs that passed
/// `at`, as (from the sender, from the receiver).
fn run_and_count(name: &str, pairs: &str, at: CapturePoint) -> (Metrics, [[u64; 2]; 2]) {
    let scenario = SCENARIOS.find(name).expect("a built-in scenario");
    let mut settings = scenario::defaults(scenario);
    for pair in pairs.split_whitespace() {
        settings.set_pair(pair).expect("a valid setting");
    }
    let mut counts = [[0; 2]; 2];
    let mut count = |_, packet: &acklab_core::packet::Packet| {
        let Body::Tcp(segment) = &packet.body else { return };
        let side = usize::from(packet.src.node.0 != 0);
        let is_bare = segment.seq_len() == 0 && !segment.flags.has(Flags::RST);
        counts[side][0] += u64::from(segment.payload_len > 0);
        counts[side][1] += u64::from(is_bare);
    };
    let replication = scenario.run(&settings, 1, Some(Capture { at, tap: &mut count }));
    (replication.metrics, counts)
}

fn total(metrics: &Metrics, name: &str) -> u64 {
    metrics.number(name) as u64
}

#[test]
fn segments_and_pure_acks_are_what_a_capture_at_their_host_shows() {
    for (name, pairs) in [
        ("nagle-delack", "receiver=qnx-7.0"),
        ("nagle-delack", "receiver=linux loss=3 messages=300"),
        ("nagle-delack", "receiver=freebsd-12.1 nagle=off rtt=1s"),
        ("nagle-delack", "receiver=macos reads=every reads-delay=1s message=3000 messages=200"),
        ("write-write-read", "receiver=windows-7"),
        ("write-write-read", "loss=5"),
    ] {
        let (metrics, [sender, _]) = run_and_count(name, pairs, CapturePoint::Sender);
        let sent = total(&metrics, "segments") + total(&metrics, "retransmissions");
        assert_eq!(sent, sender[0], "{name} {pairs}");
        let (metrics, [_, receiver]) = run_and_count(name, pairs, CapturePoint::Receiver);
        assert_eq!(total(&metrics, "pure_acks"), receiver[1], "{name} {pairs}");
    }
}

#[test]
fn a_message_that_found_no_room_at_once_is_still_one_message() {
    let pairs = "message=100000 messages=40 period=500ms";
    let (metrics, _) = run_and_count("nagle-delack", pairs, CapturePoint::Sender);
    assert_eq!(total(&metrics, "messages"), 40);
    assert_eq!(total(&metrics, "undelivered_messages"), 0);
    assert_eq!(metrics.samples("buffering_delay_ms").len(), 40);
    // QNX's buffer holds 32 kB: each message takes several round trips of 30 ms.
    assert!(metrics.number("buffering_delay_ms") > 60.0);
}

#[test]
fn a_delay_margin_beyond_what_was_looked_at_is_not_known() {
    let margin = |pairs| {
        let (metrics, _) = run_and_count("motor-loop", pairs, CapturePoint::Sender);
        metrics.samples("delay_margin_ms").to_vec()
    };
    assert_eq!(margin("kp=5 ki=10 period=5ms duration=1s"), [0.0; 0]);
    let known = margin("duration=1s");
    assert!(known.len() == 1 && (20.0..200.0).contains(&known[0]), "{known:?}");
}

#[test]
fn requests_and_replies_larger_than_the_send_buffer_are_exchanged() {
    let pairs = "sender=qnx-7.0 receiver=qnx-7.0 body=100000 reply=90000 exchanges=3";
    let (metrics, _) = run_and_count("write-write-read", pairs, CapturePoint::Sender);
    assert_eq!(total(&metrics, "exchanges"), 3);
}
