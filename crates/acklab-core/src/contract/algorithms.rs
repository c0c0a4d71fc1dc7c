//! Arbitrary samples for one algorithm: the property test that each congestion control, ACK policy,
//! queue and link gets with one line.

use super::{Choices, check_quiet, drain, expire};
use crate::ack::{AckPolicy, DataSample, Decision, Disorder, ReadSample};
use crate::cc::{
    AckSample, CongestionControl, EcnSample, LossSample, ReturnedSample, RtoSample, SentSample,
};
use crate::endpoint::Endpoint;
use crate::event::{DropReason, Event, EventKind, Interest, Sink};
use crate::link::Link;
use crate::packet::{Addr, Body, Ecn, NodeId, Packet};
use crate::queue::{Queue, Verdict, Verdicts};
use crate::segment::{Flags, TcpOptions, TcpRepr};
use crate::seq::Seq;
use crate::time::{Span, Time};

/// Runs a congestion control through arbitrary samples in any order and asserts that its window
/// never falls below one segment; returns its last window.
///
/// # Panics
/// Where the window falls below one MSS.
pub fn attack_congestion_control(cc: &mut impl CongestionControl, mss: u32, bytes: &[u8]) -> u64 {
    let mut choices = Choices::new(bytes);
    let mut now = Time::ZERO;
    while !choices.is_empty() {
        now += Span::from_micros(u64::from(choices.word()));
        let in_flight = u64::from(choices.long() >> choices.below(32));
        let rtt = choices.flip().then(|| Span::from_micros(u64::from(choices.word())));
        match choices.below(9) {
            0 => cc.on_loss(now, &LossSample { in_flight, ece: choices.flip() }),
            1 => {
                let [again, recovering] = [choices.flip(), choices.flip()];
                cc.on_rto(now, &RtoSample { in_flight, again, recovering });
            }
            2 => cc.on_ecn(now, &EcnSample { in_flight }),
            3 => cc.on_recovered(now),
            4 => cc.on_idle(now),
            5 => {
                let retransmission = choices.flip();
                cc.on_sent(now, &SentSample { bytes: mss, in_flight, retransmission });
            }
            6 => {
                let times = u32::from(choices.byte());
                cc.on_returned(now, &ReturnedSample { in_flight, times, srtt: rtt });
            }
            _ => cc.on_ack(
                now,
                &AckSample {
                    acked: u64::from(choices.word()),
                    delivered: u64::from(choices.word()),
                    lost: u64::from(choices.word()) * u64::from(choices.flip()),
                    ece: choices.flip(),
                    marked: u64::from(choices.word()) * u64::from(choices.flip()),
                    rate: None,
                    in_flight,
                    rtt,
                    srtt: rtt,
                    cwnd_limited: choices.flip(),
                    in_fast_recovery: choices.flip(),
                },
            ),
        }
        assert!(cc.cwnd() >= u64::from(mss), "cwnd {} below one MSS at {now}", cc.cwnd());
        assert_eq!(cc.snapshot().cwnd, cc.cwnd());
    }
    cc.cwnd()
}

/// Runs an ACK policy through arbitrary samples and asserts that it always either acknowledges or
/// has a deadline within 500 ms (RFC 9293 section 3.8.6.3), that a deadline before its time does
/// nothing, and that an ACK disarms it; returns how often it acknowledged.
///
/// # Panics
/// Where it does not hold.
pub fn attack_ack_policy(policy: &mut impl AckPolicy, bytes: &[u8]) -> u32 {
    let mut choices = Choices::new(bytes);
    let (mut now, mut acks, mut segments, mut unacked) = (Time::ZERO, 0, 0, 0);
    let mut oldest = None;
    while !choices.is_empty() {
        now += Span::from_micros(u64::from(choices.word()) * u64::from(choices.byte()));
        if let Some(at) = policy.poll_timeout().filter(|&at| at <= now) {
            now = at;
        }
        let rto = Span::from_millis(200);
        let mut decision = policy.handle_timeout(now, rto);
        match choices.below(7) {
            0..=2 => {
                let len = 1 + u32::from(choices.word() % 1460);
                (segments, unacked) = (segments + 1, unacked + len);
                oldest.get_or_insert(now);
                let sample = DataSample {
                    len,
                    push: choices.flip(),
                    mss: 1460,
                    unacked_segments: segments,
                    unacked_bytes: unacked,
                    window: choices.long(),
                    window_not_shrunk: choices.flip(),
                    was_zero_window: choices.below(8) == 0,
                    window_grew: choices.flip(),
                    srtt: choices.flip().then(|| Span::from_micros(u64::from(choices.word()))),
                    rto,
                };
                if policy.on_data(now, &sample) == Decision::Now {
                    decision = Decision::Now;
                }
            }
            3 => {
                let copied = u32::from(choices.word());
                let [queue_empty, window, advertised] = [copied & 1, copied, copied];
                let queue_empty = queue_empty == 1;
                let unacked_bytes = unacked;
                let sample = ReadSample { copied, unacked_bytes, queue_empty, window, advertised };
                if policy.on_read(now, &sample) == Decision::Now {
                    decision = Decision::Now;
                }
            }
            4 => policy.on_data_sent(now),
            5 => policy.on_request(1 + u32::from(choices.byte())),
            _ => {
                let kinds = [Disorder::Ahead, Disorder::Filling, Disorder::Repeated];
                let disorder = kinds[usize::from(choices.byte()) % 3];
                policy.on_disorder(now, disorder, choices.long());
            }
        }
        if decision == Decision::Now {
            policy.on_ack_sent(now);
            assert_eq!(policy.poll_timeout(), None, "an ACK at {now} left the timer armed");
            (acks, segments, unacked, oldest) = (acks + 1, 0, 0, None);
        }
        if let Some(oldest) = oldest {
            let due = policy.poll_timeout();
            assert!(due.is_some(), "data of {oldest} waits with neither ACK nor deadline");
            assert!(due.is_none_or(|at| at <= oldest + Span::from_millis(500)), "over 500 ms");
        }
        if policy.poll_timeout().is_none_or(|at| at > now) {
            let before = policy.poll_timeout();
            assert_eq!(policy.handle_timeout(now, rto), Decision::Wait, "a spurious timeout acts");
            assert_eq!(policy.poll_timeout(), before);
        }
    }
    acks
}

/// Runs a queue through arbitrary arrivals and departures of all kinds of packets and asserts that each
/// comes out once, is dropped once, or still waits, unchanged but for a mark, that an ACK is filtered only where a newer
/// one waits behind it, and that the counts say so; returns how many came out and a digest of which and when.
///
/// # Panics
/// Where it does not hold.
pub fn attack_queue(queue: &mut dyn Queue, bytes: &[u8]) -> (u32, u64) {
    let mut choices = Choices::new(bytes);
    let (mut now, mut verdicts) = (Time::ZERO, Verdicts::default());
    let mut inside: Vec<Packet> = Vec::new();
    let (mut entered, mut left, mut digest) = (0_u32, 0_u32, 0_u64);
    while !choices.is_empty() {
        now += Span::from_micros(u64::from(choices.word()));
        let out = if choices.below(5) < 3 {
            let packet = any_packet(&mut choices, entered);
            inside.push(packet);
            entered += 1;
            queue.enqueue(now, packet, &mut verdicts);
            None
        } else {
            let waited = queue.packets() > 0;
            let out = queue.dequeue(now, &mut verdicts);
            assert!(out.is_some() || !waited || queue.packets() == 0, "one waits and none leaves");
            out
        };
        left += u32::from(out.is_some());
        for (packet, _) in verdicts.as_slice().iter().filter(|(_, verdict)| is_filtered(*verdict)) {
            let is_newer = |other: &Packet| acknowledges_more(other, packet);
            assert!(inside.iter().any(is_newer), "{packet:?} was filtered for nothing");
        }
        let dropped = verdicts.drain().filter(|(_, verdict)| *verdict != Verdict::Marked);
        for packet in dropped.map(|(packet, _)| packet).chain(out) {
            let same = |other: &Packet| {
                let marked =
                    packet.ecn == other.ecn || (packet.ecn == Ecn::Ce && other.ecn != Ecn::NotEct);
                packet.body == other.body && marked
            };
            let place = inside.iter().position(same);
            assert!(place.is_some(), "{packet:?} at {now} came out without having gone in");
            inside.remove(place.unwrap_or_default());
            let mark = u64::from(packet.ecn == Ecn::Ce);
            digest = digest.rotate_left(7) ^ now.as_nanos() ^ number_of(&packet) << 1 ^ mark;
        }
        assert_eq!(queue.packets() as usize, inside.len(), "packets at {now}");
        let waiting: u64 = inside.iter().map(|packet| u64::from(packet.size())).sum();
        assert_eq!(queue.bytes(), waiting, "bytes at {now}");
    }
    (left, digest)
}

fn is_filtered(verdict: Verdict) -> bool {
    verdict == Verdict::Dropped(DropReason::Filtered)
}

/// Whether `packet` says of the same connection whatever the ACK `other` does, and more.
fn acknowledges_more(packet: &Packet, other: &Packet) -> bool {
    let same_way = packet.src == other.src && packet.dst == other.dst;
    match (&packet.body, &other.body) {
        (Body::Tcp(newer), Body::Tcp(older)) => same_way && older.ack.before(newer.ack),
        _ => false,
    }
}

/// A packet with any ECN field, of one of a few flows; its number is in its body. Of the TCP segments that bear no data
/// each acknowledges more than those before it.
fn any_packet(choices: &mut Choices<'_>, number: u32) -> Packet {
    let word = u32::from(choices.word());
    let payload_len = if word >= 0xa000 { 0 } else { word % 1460 };
    let kind = choices.byte();
    let src = Addr { node: NodeId(0), port: u16::from(kind >> 4 & 3) };
    let dst = Addr { node: NodeId(1), port: u16::from(kind >> 6) };
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(kind & 3)];
    let body = if kind & 4 == 0 {
        Body::Datagram { len: payload_len, words: [u64::from(number), 0] }
    } else {
        Body::Tcp(TcpRepr {
            seq: Seq(number),
            ack: Seq(number),
            flags: Flags::ACK,
            window: 0,
            options: TcpOptions::default(),
            payload_len,
        })
    };
    Packet { src, dst, ecn, returned: kind & 8 != 0, body }
}

fn number_of(packet: &Packet) -> u64 {
    match &packet.body {
        Body::Tcp(tcp) => u64::from(tcp.seq.0),
        Body::Datagram { words: [number, _], .. } | Body::Stored { number, .. } => *number,
    }
}

/// Runs a link through arbitrary arrivals and asserts that it keeps the endpoint contract, and that every
/// packet arrives once (twice where it was copied), comes back or is reported as dropped; returns the
/// numbers of those that arrived, in that order, counted as they were sent.
///
/// # Panics
/// Where it does not hold.
pub fn attack_link(link: &mut Link, bytes: &[u8]) -> Vec<u64> {
    let mut choices = Choices::new(bytes);
    let (mut now, mut sink) = (Time::ZERO, Sink::new(Interest::QUEUE));
    let (mut entered, mut arrived, mut dropped) = (0_u32, Vec::new(), 0);
    loop {
        let until = now + Span::from_micros(u64::from(choices.word()));
        while let Some(at) = link.poll_timeout().filter(|&at| choices.is_empty() || at <= until) {
            now = at;
            expire(link, now, &mut sink, |packet| arrived.push(number_of(&packet)));
            check_quiet(link, now, &mut sink);
        }
        let is_drop = |event: &Event| matches!(event.kind, EventKind::Dropped { .. });
        dropped += sink.drain().filter(is_drop).count();
        if choices.is_empty() {
            break;
        }
        now = until;
        let packet = any_packet(&mut choices, entered);
        entered += 1;
        link.handle_packet(now, packet, &mut sink);
        let back = drain(link, now, &mut sink, |packet| arrived.push(number_of(&packet)));
        assert!(back.iter().all(|packet| packet.returned), "a returned packet without a stamp");
    }
    let mut once = arrived.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((arrived.len() - once.len()) as u64, link.copies(), "copies");
    assert_eq!(entered as usize, once.len() + dropped, "packets in = arrived + dropped");
    arrived
}
