//! [`Exchange`]: one run of a sender of messages as the sender's wire shows it, in whichever world.
//!
//! Every world hands over the same two lists, what the application stamped just before each write and which
//! segments passed the sender's wire when, so that all figures are counted in one way.

use std::net::SocketAddr;

use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_core::wire::parse_tcp;
use acklab_lab::blueprint::Blueprint;
use serde::{Deserialize, Serialize};

use crate::seen::{Account, Seen, message_delays_ms, seconds};

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The sender's end, then the receiver's.
    pub ends: [SocketAddr; 2],
    /// Each message: just before its write, ns; bytes. Times are those of one clock, which stamps segments, too.
    pub writes: Vec<(u64, u32)>,
    /// The same instants on a clock that nothing sets, ns since the connection; empty in virtual time.
    pub monotonic: Vec<u64>,
    /// What the receiving application read: just after the call, ns; bytes. Empty where that is not known.
    pub reads: Vec<(u64, u32)>,
    /// Every segment that passed the sender's wire, either way.
    pub segments: Vec<Segment>,
}

/// A segment on the sender's wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Segment {
    /// When, ns.
    pub at: u64,
    /// Whether it leaves the sender.
    pub leaves: bool,
    /// Numbers, flags and length; no options.
    pub tcp: TcpRepr,
}

/// A segment in a file: time, whether it leaves, sequence and acknowledgment number, flags, bytes.
type Row = (u64, u8, u32, u32, u8, u32);

impl From<Row> for Segment {
    fn from((at, leaves, seq, ack, flags, payload_len): Row) -> Self {
        let (seq, ack, flags) = (Seq(seq), Seq(ack), Flags(flags));
        let tcp = TcpRepr { seq, ack, flags, payload_len, ..TcpRepr::default() };
        Self { at, leaves: leaves == 1, tcp }
    }
}

impl From<Segment> for Row {
    fn from(Segment { at, leaves, tcp }: Segment) -> Self {
        (at, leaves.into(), tcp.seq.0, tcp.ack.0, tcp.flags.0, tcp.payload_len)
    }
}

impl Segment {
    /// The segment in an IP packet that passed `sender`'s wire at `at`; `None`: it is none.
    pub fn of_packet(at: u64, sender: SocketAddr, bytes: &[u8]) -> Option<Self> {
        let packet = parse_tcp(bytes).ok()?;
        Some(Self { at, leaves: packet.source == sender, tcp: packet.segment })
    }
}

/// A segment that left the sender, and what of its payload had not left before.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// Payload that leaves for the first time, bytes.
    pub new: u32,
}

impl Exchange {
    /// The segments that left the sender, in order.
    pub fn departures(&self) -> Vec<Departure<'_>> {
        let mut highest = None;
        let left = self.segments.iter().filter(|segment| segment.leaves);
        left.map(|segment| {
            let tcp = &segment.tcp;
            let first = if tcp.flags.has(Flags::SYN) { tcp.seq + 1 } else { tcp.seq };
            let end = first + tcp.payload_len;
            let before = *highest.get_or_insert(first);
            // An ACK behind the FIN is beyond the payload and brings none.
            let new = if tcp.payload_len > 0 && end.after(before) { end - before } else { 0 };
            if new > 0 {
                highest = Some(end);
            }
            Departure { segment, new }
        })
        .collect()
    }

    /// Segments with payload, all of which had left before.
    pub fn retransmissions(&self) -> usize {
        let again = |one: &Departure<'_>| one.segment.tcp.payload_len > 0 && one.new == 0;
        self.departures().iter().filter(|one| again(one)).count()
    }

    /// When the last byte of each message left, ns; shorter where some have not.
    pub fn left_at(&self) -> Vec<u64> {
        let departures = self.departures();
        let mut departures = departures.iter();
        let (mut written, mut gone, mut last) = (0, 0, 0);
        let times = self.writes.iter().map_while(|(_, bytes)| {
            written += u64::from(*bytes);
            while gone < written {
                let next = departures.next()?;
                gone += u64::from(next.new);
                last = next.segment.at;
            }
            Some(last)
        });
        times.collect()
    }

    /// What the account of `network`'s only flow makes of it, with times since the first segment.
    pub fn seen(&self, network: &Blueprint<'_>) -> Option<Seen> {
        let flow = network.flows.first()?;
        let zero = self.segments.first().map_or(0, |segment| segment.at);
        let at = |ns: u64| seconds(Time::from_nanos(ns.saturating_sub(zero)));
        let ends = [flow.sender(), *flow.ends.iter().find(|end| **end != flow.sender())?];
        let mut account = Account::new(network);
        for segment in &self.segments {
            let [src, dst] = if segment.leaves { ends } else { [ends[1], ends[0]] };
            let packet = packet(src, dst, segment.tcp);
            account.on_packet(Time::from_nanos(segment.at - zero), ends[0].node, &packet);
        }
        let mut seen = account.finish().into_iter().next()?;
        let list = |list: &[(u64, u32)]| -> Vec<(f64, u64)> {
            list.iter().map(|(time, bytes)| (at(*time), u64::from(*bytes))).collect()
        };
        let writes = list(&self.writes);
        seen.buffering_ms = message_delays_ms(&writes, &seen.departures);
        seen.delays_ms = message_delays_ms(&writes, &list(&self.reads));
        Some(seen)
    }
}

fn packet(src: Addr, dst: Addr, tcp: TcpRepr) -> Packet {
    Packet { src, dst, ecn: Ecn::NotEct, returned: false, body: Body::Tcp(tcp) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(at: u64, seq: u32, length: u32) -> Segment {
        (at, 1, seq, 0, 0, length).into()
    }

    #[test]
    fn a_message_leaves_with_the_segment_of_its_last_byte_and_a_retransmission_is_none() {
        let syn = TcpRepr { seq: Seq(u32::MAX), flags: Flags::SYN, ..TcpRepr::default() };
        let first = Segment { tcp: syn, ..segment(5, 0, 0) };
        let exchange = Exchange {
            ends: ["10.0.0.1:1", "10.0.0.2:2"].map(|end| end.parse().unwrap()),
            writes: vec![(10, 100), (11, 100), (12, 100), (13, 100)],
            monotonic: vec![],
            reads: vec![],
            // Its sequence numbers wrap with the SYN.
            segments: vec![
                first,
                segment(20, 0, 100),
                segment(30, 0, 100),
                segment(40, 100, 150),
                segment(50, 250, 50),
            ],
        };
        assert_eq!(exchange.left_at(), [20, 40, 50], "the fourth has not left");
        assert_eq!(exchange.retransmissions(), 1);
        let behind_the_fin = Segment { at: 60, ..segment(60, 301, 0) };
        let segments = [exchange.segments.clone(), vec![behind_the_fin]].concat();
        let exchange = Exchange { segments, ..exchange };
        assert_eq!(exchange.departures().iter().map(|one| one.new).sum::<u32>(), 300);
    }
}
