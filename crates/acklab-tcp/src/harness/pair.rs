//! [`Pair`]: two connections and the wire between them, driven in virtual time.
//!
//! The wire has one latency each way and no rate; a filter may lose, delay or copy what is on it.
//! Everything that left is in a log, so that a test can state exact times.

use std::collections::VecDeque;

use crate::{AppEvent, Config, Connection};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Event, Interest, Sink};
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::TcpRepr;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    A,
    /// The server.
    B,
}

/// A segment that left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// From whom.
    pub from: Side,
    /// What.
    pub segment: TcpRepr,
    /// ECN field of its packet.
    pub ecn: Ecn,
}

/// What the wire does with a segment, by its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the latency.
    Arrive,
    /// It is lost.
    Lose,
    /// It arrives so much later than the others.
    Delay(Span),
    /// It arrives twice.
    Twice,
    /// A switch sends it back: it is at its sender's again after twice the latency.
    Return,
    /// It arrives, marked congestion-experienced if its sender understands marks.
    Mark,
}

/// Decides the fate of each segment.
pub type Filter = Box<dyn FnMut(usize, &Sent) -> Fate>;

/// Two ends, the time, and what is on the wire.
pub struct Pair {
    /// The client.
    pub a: Connection,
    /// The server.
    pub b: Connection,
    /// Now.
    pub time: Time,
    /// One way.
    pub latency: Span,
    /// Whether A and B read whatever they can at once.
    pub reads: [bool; 2],
    /// Everything that left.
    pub log: Vec<Sent>,
    /// Everything the connections told.
    pub events: Vec<Event>,
    /// Everything they told their applications.
    pub notices: Vec<(Time, Side, AppEvent)>,
    /// What the wire does.
    pub filter: Filter,
    wire: VecDeque<(Time, Side, Packet)>,
    sink: Sink,
}

impl Pair {
    /// A client that connects at time zero to a listening server.
    pub fn new(a: Config, b: Config, latency: Span) -> Self {
        let (local, remote) = Self::addresses();
        let client = Connection::connect(Time::ZERO, a, local, remote, Seq(1000));
        Self::of(client, Connection::listen(b, remote, Seq(5000)), latency)
    }

    /// The addresses of A and B.
    pub const fn addresses() -> (Addr, Addr) {
        (Addr { node: NodeId(0), port: 40_000 }, Addr { node: NodeId(1), port: 80 })
    }

    /// Two ends in any state.
    pub fn of(a: Connection, b: Connection, latency: Span) -> Self {
        Self {
            a,
            b,
            time: Time::ZERO,
            latency,
            reads: [true, true],
            log: Vec::new(),
            events: Vec::new(),
            notices: Vec::new(),
            filter: Box::new(|_, _| Fate::Arrive),
            wire: VecDeque::new(),
            sink: Sink::new(Interest::ALL),
        }
    }

    /// Runs until nothing happens any more or `until` has come; time then stands at `until` or at
    /// the last thing that happened before it.
    pub fn drive(&mut self, until: Time) {
        self.settle();
        while let Some(next) = self.next_time().filter(|&at| at <= until) {
            self.step(next);
        }
        self.time = self.time.max(until);
    }

    /// Runs for `span`.
    pub fn run(&mut self, span: Span) {
        self.drive(self.time + span);
    }

    /// When something happens next.
    pub fn next_time(&self) -> Option<Time> {
        let arrival = self.wire.front().map(|&(at, _, _)| at);
        [arrival, self.a.poll_timeout(), self.b.poll_timeout()].into_iter().flatten().min()
    }

    /// Everything that is due at `at`.
    pub fn step(&mut self, at: Time) {
        self.time = at;
        while let Some((_, to, packet)) = self.wire.pop_front_if(|(due, _, _)| *due <= at) {
            let end = if to == Side::A { &mut self.a } else { &mut self.b };
            end.handle_packet(at, packet, &mut self.sink);
            self.settle();
        }
        for side in [Side::A, Side::B] {
            let end = if side == Side::A { &mut self.a } else { &mut self.b };
            if end.poll_timeout().is_some_and(|due| due <= at) {
                end.handle_timeout(at, &mut self.sink);
            }
        }
        self.settle();
    }

    /// Drains both ends: packets onto the wire, events into the log, and prompt reads.
    pub fn settle(&mut self) {
        for side in [Side::A, Side::B] {
            while self.drain(side) {}
        }
    }

    fn drain(&mut self, side: Side) -> bool {
        let end = if side == Side::A { &mut self.a } else { &mut self.b };
        let mut out = Vec::new();
        while let Some(packet) = end.poll_transmit(self.time, &mut self.sink) {
            out.push(packet);
        }
        while let Some(event) = end.poll_event() {
            self.notices.push((self.time, side, event));
        }
        let read = self.reads[side as usize] && end.read(self.time, u32::MAX) > 0;
        self.events.extend(self.sink.drain());
        for packet in out {
            self.put_on_wire(side, packet);
        }
        read
    }

    fn put_on_wire(&mut self, from: Side, packet: Packet) {
        let Body::Tcp(segment) = packet.body else { return };
        let sent = Sent { at: self.time, from, segment, ecn: packet.ecn };
        let fate = (self.filter)(self.log.len(), &sent);
        self.log.push(sent);
        let at = self.time + self.latency;
        match fate {
            Fate::Lose => {}
            Fate::Arrive => self.insert(at, from, packet),
            Fate::Delay(extra) => self.insert(at + extra, from, packet),
            Fate::Return => {
                self.insert_for(from, at + self.latency, Packet { returned: true, ..packet });
            }
            Fate::Mark => {
                let ecn = if packet.ecn == Ecn::NotEct { Ecn::NotEct } else { Ecn::Ce };
                self.insert(at, from, Packet { ecn, ..packet });
            }
            Fate::Twice => {
                self.insert(at, from, packet);
                self.insert(at, from, packet);
            }
        }
    }

    fn insert(&mut self, at: Time, from: Side, packet: Packet) {
        self.insert_for(if from == Side::A { Side::B } else { Side::A }, at, packet);
    }

    fn insert_for(&mut self, to: Side, at: Time, packet: Packet) {
        let place = self.wire.partition_point(|&(due, _, _)| due <= at);
        self.wire.insert(place, (at, to, packet));
    }

    /// Segments from one side that carry data.
    pub fn data_from(&self, side: Side) -> Vec<Sent> {
        self.log
            .iter()
            .filter(|s: &&Sent| s.from == side && s.segment.payload_len > 0)
            .copied()
            .collect()
    }

    /// Segments from one side that carry none, after the handshake.
    pub fn bare_from(&self, side: Side) -> Vec<Sent> {
        self.log
            .iter()
            .filter(|s: &&Sent| s.from == side && s.segment.seq_len() == 0)
            .copied()
            .collect()
    }
}
