//! One flow, watched from its sender.

use acklab_core::event::{DropReason, EventKind};
use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::time::Time;

use super::cells::{Grid, Level, Points, Portions};
use super::course::Course;
use super::delays::Delays;
use super::rtt::RoundTrips;

/// A flow to be watched. Both of its ends have the same port, which no other flow has.
#[derive(Clone, Debug)]
pub struct WatchedFlow {
    /// Its name.
    pub name: String,
    /// From where to where, and what it is: "a → b", "bulk, cubic".
    pub words: [String; 2],
    /// Where its data comes from.
    pub sender: Addr,
    /// Over TCP: bytes on the wire for each byte of payload, and the payload of a full segment.
    pub over_tcp: Option<(f64, f64)>,
}

/// What was seen of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FlowRecord {
    /// Its name.
    pub name: String,
    /// From where to where.
    pub way: String,
    /// What it is.
    pub kind: String,
    /// Whether it is one over TCP: others have neither window nor round trip.
    pub over_tcp: bool,
    /// Round trips of all replications.
    pub round_trips: Delays,
    /// Its data packets that the network lost, in queues and on the wire, summed over the replications.
    pub drops: u64,
    /// Its data packets that queues marked, summed likewise.
    pub marks: u64,
    /// In bit/s: acknowledged bytes, or datagrams that arrived, headers included.
    pub throughput: Course,
    /// The congestion window, full segments: the mean of each cell.
    pub window: Course,
    /// The mean round trip of each cell, ms.
    pub round_trip: Course,
    /// Segments with data that left over TCP, retransmissions included, and ACKs without data that came back: of each
    /// second.
    pub segments: Course,
    pub acks: Course,
    /// Segments per ACK that a policy allows which limits its ACKs, and the most that it may ever.
    pub ack_rate: Course,
    pub ack_rate_most: Course,
}

impl FlowRecord {
    pub(super) fn pool(&mut self, other: &Self) {
        self.round_trips.pool(&other.round_trips);
        self.drops += other.drops;
        self.marks += other.marks;
        self.throughput.pool(&other.throughput);
        self.window.pool(&other.window);
        self.round_trip.pool(&other.round_trip);
        self.segments.pool(&other.segments);
        self.acks.pool(&other.acks);
        self.ack_rate.pool(&other.ack_rate);
        self.ack_rate_most.pool(&other.ack_rate_most);
    }
}

/// Watches a flow.
pub(super) struct FlowMonitor {
    flow: WatchedFlow,
    acked: u64,
    unacknowledged: RoundTrips,
    round_trips: Delays,
    drops: u64,
    marks: u64,
    courses: Option<Courses>,
}

/// What is kept for plots.
struct Courses {
    delivered: Portions,
    window: Level,
    round_trip: Portions,
    segments: Portions,
    acks: Portions,
    /// Segments per ACK, and the most; where a policy limits its ACKs.
    ack_rate: Option<[Level; 2]>,
    grid: Grid,
}

impl FlowMonitor {
    /// Keeps courses in cells of `grids`: a fine one, and one for what comes in portions.
    pub(super) fn new(flow: WatchedFlow, grids: Option<[Grid; 2]>) -> Self {
        Self {
            flow,
            acked: 0,
            unacknowledged: RoundTrips::default(),
            round_trips: Delays::default(),
            drops: 0,
            marks: 0,
            courses: grids.map(|[fine, coarse]| Courses {
                delivered: Portions::new(coarse),
                window: Level::new(fine),
                round_trip: Portions::new(coarse),
                segments: Portions::new(coarse),
                acks: Portions::new(coarse),
                ack_rate: None,
                grid: fine,
            }),
        }
    }

    /// The measurement begins: what was counted is forgotten, courses are not.
    pub(super) fn begin(&mut self) {
        self.round_trips = Delays::default();
        (self.drops, self.marks) = (0, 0);
    }

    pub(super) fn on_congestion(&mut self, now: Time, local: Addr, cwnd: u64, acked: u64) {
        if local != self.flow.sender {
            return;
        }
        // The SYN counts as one.
        let acked = acked.saturating_sub(1);
        let more = acked.saturating_sub(self.acked);
        self.acked = acked;
        if let Some(courses) = &mut self.courses {
            courses.delivered.add(now, more as f64);
            courses.window.set(now, cwnd as f64);
        }
    }

    /// The receiver's policy allows so many segments per ACK, and so many at most.
    pub(super) fn on_ack_rate(&mut self, now: Time, sender: Addr, rate: [u32; 2]) {
        if let Some(courses) = self.courses.as_mut().filter(|_| sender == self.flow.sender) {
            let grid = courses.grid;
            let levels =
                courses.ack_rate.get_or_insert_with(|| [Level::new(grid), Level::new(grid)]);
            for (level, value) in levels.iter_mut().zip(rate) {
                level.set(now, f64::from(value));
            }
        }
    }

    /// Datagrams of so many bytes arrived.
    pub(super) fn on_datagrams(&mut self, now: Time, bytes: u64) {
        if let Some(courses) = &mut self.courses {
            courses.delivered.add(now, bytes as f64);
        }
    }

    /// A link dropped or marked a packet of the flow.
    pub(super) fn on_packet_event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Dropped { reason, packet, .. } if packet.src == self.flow.sender => {
                self.drops += u64::from(*reason != DropReason::Unreachable);
            }
            EventKind::Marked { packet, .. } if packet.src == self.flow.sender => self.marks += 1,
            _ => {}
        }
    }

    /// A packet of the flow passed a node.
    pub(super) fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        let (Body::Tcp(tcp), false) = (&packet.body, packet.returned) else { return };
        if node != self.flow.sender.node {
            return;
        }
        let leaves = packet.src == self.flow.sender;
        if let Some(courses) = &mut self.courses {
            match (leaves, tcp.payload_len > 0) {
                (true, true) => courses.segments.add(now, 1.0),
                (false, false) => courses.acks.add(now, 1.0),
                _ => {}
            }
        }
        if leaves {
            self.unacknowledged.on_sent(now, tcp);
        } else if let Some(trip) = self.unacknowledged.on_acknowledged(now, tcp) {
            self.round_trips.add(trip);
            if let Some(courses) = &mut self.courses {
                courses.round_trip.add_span(now, trip);
            }
        }
    }

    pub(super) fn finish(self, end: Time) -> FlowRecord {
        let WatchedFlow { name, words: [way, kind], over_tcp, .. } = self.flow;
        let (wire_factor, mss) = over_tcp.unwrap_or((1.0, 1.0));
        let mut record = FlowRecord {
            name,
            way,
            kind,
            over_tcp: over_tcp.is_some(),
            round_trips: self.round_trips,
            drops: self.drops,
            marks: self.marks,
            ..FlowRecord::default()
        };
        if let Some(mut courses) = self.courses {
            courses.window.pass(end);
            record.throughput = courses.delivered.rates(8.0 * wire_factor).into();
            if record.over_tcp {
                // There is none before the connection begins.
                let open = courses.window.means().into_iter().skip_while(|point| point.1 <= 0.0);
                record.window =
                    open.map(|(at, bytes)| (at, bytes / mss)).collect::<Points>().into();
            }
            record.round_trip = courses.round_trip.means().into();
            if record.over_tcp {
                record.segments = courses.segments.rates(1.0).into();
                record.acks = courses.acks.rates(1.0).into();
            }
            if let Some(levels) = courses.ack_rate {
                [record.ack_rate, record.ack_rate_most] = levels.map(|mut level| {
                    level.pass(end);
                    level.means().into()
                });
            }
        }
        record
    }
}
