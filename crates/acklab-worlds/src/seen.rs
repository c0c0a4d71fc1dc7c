//! What a world showed of each flow: one account for all worlds, of the packets that pass its sender.
//!
//! Every world hands over packets as values with their times since time zero, so that differences between
//! worlds are differences of their TCP and not of two ways of counting.

use std::collections::BTreeMap;

use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_lab::blueprint::Blueprint;
use acklab_lab::monitor::RoundTrips;
use acklab_stats::Ecdf;

/// What one world showed of one flow in one replication.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Acknowledged payload, bytes.
    pub acknowledged: u64,
    /// Segments with payload that left.
    pub segments: u64,
    /// Those of them with bytes that had left before.
    pub retransmissions: u64,
    /// Segments without payload, SYN, FIN and RST that came back.
    pub acks: u64,
    /// Round trips, ms: from a segment's departure to the ACK that covers it, those sent again left out.
    pub round_trips_ms: Vec<f64>,
    /// (s, bytes acknowledged) at each ACK that covers more.
    pub progress: Vec<(f64, f64)>,
    /// (s, congestion window in full segments), at each change or look.
    pub windows: Vec<(f64, f64)>,
    /// From the write of each message to its last byte's read, or from each request to its answer, ms.
    pub delays_ms: Vec<f64>,
    /// From the write of each message to the departure of its last byte, ms: what Nagle's algorithm and the
    /// windows hold back.
    pub buffering_ms: Vec<f64>,
    /// (s, bytes) of each departure of payload that had not left before.
    pub departures: Vec<(f64, u64)>,
    /// A hash of every packet: time, direction, numbers.
    pub hash: u64,
    /// What went wrong with it.
    pub error: Option<String>,
}

/// Makes [`Seen`]s of packets.
#[derive(Debug)]
pub struct Account {
    flows: Vec<OneFlow>,
    /// By the sender's and then the receiver's address.
    by_ends: BTreeMap<[Addr; 2], usize>,
}

#[derive(Debug)]
struct OneFlow {
    sender: Addr,
    seen: Seen,
    trips: RoundTrips,
    /// Where the sender's data begins, and the end of what has left of it.
    stretch: Option<(Seq, Seq)>,
    acknowledged: Option<Seq>,
}

impl Account {
    /// An account of the flows of `network`.
    pub fn new(network: &Blueprint<'_>) -> Self {
        let mut by_ends = BTreeMap::new();
        let flows = network.flows.iter().enumerate().map(|(index, flow)| {
            let sender = flow.sender();
            let receiver = if sender == flow.ends[0] { flow.ends[1] } else { flow.ends[0] };
            by_ends.insert([sender, receiver], index);
            OneFlow {
                sender,
                seen: Seen { hash: Fnv::default().0, ..Seen::default() },
                trips: RoundTrips::default(),
                stretch: None,
                acknowledged: None,
            }
        });
        let flows = flows.collect();
        Self { flows, by_ends }
    }

    /// A packet passed `node`. Those that do not concern a flow whose sender is there are ignored.
    pub fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let Body::Tcp(tcp) = &packet.body else { return };
        let ends = [packet.src, packet.dst];
        let leaving = self.by_ends.get(&ends);
        let arriving = self.by_ends.get(&[ends[1], ends[0]]);
        match (leaving, arriving) {
            (Some(&flow), _) if packet.src.node == node => self.flows[flow].on_sent(now, tcp),
            (_, Some(&flow)) if packet.dst.node == node => self.flows[flow].on_heard(now, tcp),
            _ => {}
        }
    }

    /// The flow whose sender is `addr`.
    pub fn of_sender(&mut self, addr: Addr) -> Option<&mut Seen> {
        self.flows.iter_mut().find(|flow| flow.sender == addr).map(|flow| &mut flow.seen)
    }

    /// What was seen, in the order of the flows.
    pub fn finish(self) -> Vec<Seen> {
        self.flows.into_iter().map(|flow| flow.seen).collect()
    }
}

impl OneFlow {
    fn on_sent(&mut self, now: Time, tcp: &TcpRepr) {
        self.hash(now, b'>', tcp);
        if tcp.flags.has(Flags::SYN) {
            let first = tcp.seq + 1;
            self.stretch = Some((first, first));
        }
        if tcp.payload_len == 0 {
            return;
        }
        let end = tcp.seq + tcp.payload_len;
        self.seen.segments += 1;
        if let Some((_, highest)) = &mut self.stretch {
            self.seen.retransmissions += u64::from(tcp.seq.before(*highest));
            if end.after(*highest) {
                self.seen.departures.push((seconds(now), u64::from(end - *highest)));
                *highest = end;
            }
        }
        self.trips.on_sent(now, tcp);
    }

    fn on_heard(&mut self, now: Time, tcp: &TcpRepr) {
        self.hash(now, b'<', tcp);
        let control = [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| tcp.flags.has(*flag));
        if tcp.payload_len == 0 && !control {
            self.seen.acks += 1;
        }
        if let Some(trip) = self.trips.on_acknowledged(now, tcp) {
            self.seen.round_trips_ms.push(trip.as_secs_f64() * 1e3);
        }
        let Some((first, highest)) = self.stretch.filter(|_| tcp.flags.has(Flags::ACK)) else {
            return;
        };
        // An ACK of the FIN is beyond the payload.
        let upto = if tcp.ack.after(highest) { highest } else { tcp.ack };
        if upto.after(self.acknowledged.unwrap_or(first)) {
            self.seen.acknowledged += u64::from(upto - self.acknowledged.unwrap_or(first));
            self.acknowledged = Some(upto);
            self.seen.progress.push((seconds(now), self.seen.acknowledged as f64));
        }
    }

    fn hash(&mut self, now: Time, direction: u8, tcp: &TcpRepr) {
        let words =
            [now.as_nanos(), u64::from(direction), u64::from(tcp.seq.0), u64::from(tcp.ack.0)];
        let mut hash = Fnv(self.seen.hash);
        for word in words {
            hash.add(&word.to_be_bytes());
        }
        self.seen.hash = hash.0;
    }
}

/// The delay of each message: `writes` and `reads` are (s, bytes) in order of time. Bytes that were not read yet
/// have none.
pub fn message_delays_ms(writes: &[(f64, u64)], reads: &[(f64, u64)]) -> Vec<f64> {
    let (mut written, mut read) = (0, 0);
    let mut reads = reads.iter();
    let mut last = f64::NAN;
    let delays = writes.iter().map_while(|(at, bytes)| {
        written += bytes;
        while read < written {
            let (time, more) = reads.next()?;
            (last, read) = (*time, read + more);
        }
        Some((last - at) * 1e3)
    });
    delays.collect()
}

/// Seconds since time zero.
pub fn seconds(at: Time) -> f64 {
    at.since(Time::ZERO).as_secs_f64()
}

/// The smallest of `samples` that so large a share of them does not exceed; no number where there are none.
pub(crate) fn quantile(samples: &[f64], p: f64) -> f64 {
    Ecdf::from_samples(samples.to_vec()).map_or(f64::NAN, |ecdf| ecdf.quantile(p))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_delivered_with_the_read_that_brings_its_last_byte() {
        let writes = [(0.0, 100), (0.1, 100), (0.2, 100)];
        let reads = [(0.05, 150), (0.15, 50), (0.5, 99)];
        let delays = message_delays_ms(&writes, &reads);
        assert_eq!(delays.len(), 2, "the third is not complete");
        assert!((delays[0] - 50.0).abs() < 1e-9 && (delays[1] - 50.0).abs() < 1e-9, "{delays:?}");
    }
}
