//! An XUDP server with one connection, as an endpoint of the simulated network.
//!
//! It tells what it knows as [`EventKind::App`] events; the codes are below. The three log files of the
//! thesis (section 8: bytes acknowledged, round trip times, window, each 20 ms) are made of them.

use std::convert::Infallible;

use acklab_core::ack::Policy;
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Sink};
use acklab_core::packet::{Addr, Body, Ecn, Packet as Datagram};
use acklab_core::time::{Span, Time};

use super::acknowledging::Acknowledging;
use super::application::Application;
use super::host::{Host, Work};
use super::incoming::Incoming;
use super::outgoing::{Outgoing, Sending};
use super::packet::{Command, Packet, Wire};

/// Bytes of a packet that was acknowledged.
pub const ACKNOWLEDGED_BYTES: u32 = 0x5801;
/// The round trip of that packet, ms.
pub const ROUND_TRIP_MS: u32 = 0x5802;
/// The window after a change, packets.
pub const WINDOW_PACKETS: u32 = 0x5803;
/// A parcel was completed at the receiver: its number.
pub const PARCEL_RECEIVED: u32 = 0x5804;
/// The sender has nothing left to do.
pub const FINISHED: u32 = 0x5805;
/// A packet found the socket's buffer full.
pub const OVERFLOWED: u32 = 0x5806;

/// What a server is made of.
pub struct Setup {
    /// Its address.
    pub local: Addr,
    /// The other server's.
    pub remote: Addr,
    /// What lies between them.
    pub wire: Wire,
    pub sending: Sending,
    /// What holds its commands back.
    pub policy: Policy,
    /// Time to send or to receive a packet.
    pub per_packet: Span,
    /// Packets that its socket holds.
    pub buffer: usize,
    /// Whether it reads what has arrived before it sends what may leave.
    pub reads_first: bool,
    /// What hands it parcels.
    pub application: Application,
}

pub struct Server {
    local: Addr,
    remote: Addr,
    wire: Wire,
    application: Application,
    next_parcel: u64,
    outgoing: Outgoing,
    incoming: Incoming,
    acknowledging: Acknowledging,
    exchange: u32,
    reads_first: bool,
    host: Host,
    leaving: Option<Packet>,
    window: f64,
    finished: bool,
}

impl Server {
    /// A server at rest.
    pub fn new(setup: Setup) -> Self {
        Self {
            local: setup.local,
            remote: setup.remote,
            wire: setup.wire,
            application: setup.application,
            next_parcel: 0,
            acknowledging: Acknowledging::new(setup.policy, setup.sending.packet),
            exchange: setup.sending.exchange,
            reads_first: setup.reads_first,
            outgoing: Outgoing::new(setup.sending),
            incoming: Incoming::default(),
            host: Host::new(setup.per_packet, setup.buffer),
            leaving: None,
            window: 0.0,
            finished: false,
        }
    }

    fn tell(&self, now: Time, code: u32, value: f64, sink: &mut Sink) {
        sink.record(now, EventKind::App { node: self.local.node, code, value });
    }

    /// Lets the application hand over, and the process work, until nothing more happens at `now`.
    fn work(&mut self, now: Time, sink: &mut Sink) {
        self.accept(now);
        while self.leaving.is_none() {
            match self.host.take_done(now) {
                Some(Work::Receive(packet)) => self.on_received(now, packet, sink),
                Some(Work::Send(packet)) => self.leaving = Some(packet),
                None if self.host.is_free() && self.begin(now) => {}
                None => break,
            }
            self.accept(now);
        }
        let window = self.outgoing.window();
        if window.to_bits() != self.window.to_bits() {
            self.window = window;
            self.tell(now, WINDOW_PACKETS, window, sink);
        }
        let all = self.application.parcel(self.next_parcel).is_none();
        if all && self.next_parcel > 0 && self.outgoing.is_idle() && !self.finished {
            self.finished = true;
            self.tell(now, FINISHED, self.outgoing.skipped() as f64, sink);
        }
    }

    /// Takes what the application has.
    fn accept(&mut self, now: Time) {
        while let Some((at, parcel)) = self.application.parcel(self.next_parcel) {
            if at > now || (self.application.waits() && self.outgoing.waiting() > 0) {
                break;
            }
            self.outgoing.offer(now, parcel);
            self.next_parcel += 1;
        }
    }

    /// Begins the next piece of work.
    fn begin(&mut self, now: Time) -> bool {
        (self.reads_first && self.host.receive(now)) || self.send(now) || self.host.receive(now)
    }

    /// Begins to send what may leave.
    fn send(&mut self, now: Time) -> bool {
        let fragment = self.outgoing.next_fragment(now, self.host.done(now));
        if fragment.is_none() && !self.acknowledging.is_due() {
            return false;
        }
        let commands = self.acknowledging.take(now);
        for command in &commands {
            if let Command::Parcel { id, step } = *command
                && step.is_multiple_of(2)
            {
                self.outgoing.on_parcel_command_sent(id, step);
            }
        }
        self.host.send(now, Packet { fragment, commands });
        true
    }

    fn on_received(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        let mut answers = Vec::new();
        for command in packet.commands {
            match command {
                Command::Packet(number) => {
                    if let Some(acknowledged) = self.outgoing.on_packet_ack(now, number) {
                        let rtt = acknowledged.rtt.as_millis_f64();
                        self.tell(now, ACKNOWLEDGED_BYTES, f64::from(acknowledged.bytes), sink);
                        self.tell(now, ROUND_TRIP_MS, rtt, sink);
                    }
                }
                Command::Parcel { id, step } => {
                    let next = if step.is_multiple_of(2) {
                        (step < self.exchange).then_some(step + 1)
                    } else {
                        self.outgoing.on_parcel_command(now, id, step)
                    };
                    answers.extend(next.map(|step| Command::Parcel { id, step }));
                }
            }
        }
        let mut bytes = 0;
        if let Some(fragment) = packet.fragment {
            let (commands, completed) = self.incoming.on_fragment(&fragment);
            answers.extend(commands);
            bytes = fragment.bytes;
            if let Some(id) = completed {
                self.tell(now, PARCEL_RECEIVED, id as f64, sink);
            }
        }
        if !answers.is_empty() {
            let round_trip = (self.outgoing.mean_rtt(), self.outgoing.timeout());
            self.acknowledging.on_packet(now, bytes, answers, round_trip);
        }
    }
}

impl Endpoint for Server {
    type Arrival<'a> = Datagram;
    type Departure<'a> = Datagram;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Datagram, sink: &mut Sink) {
        let Body::Datagram { words: [word, _], .. } = packet.body else { return };
        let Some(packet) = self.wire.take(word) else { return };
        if !self.host.on_arrival(packet) {
            self.tell(now, OVERFLOWED, 1.0, sink);
        }
        self.work(now, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        let rto = self.outgoing.timeout();
        self.acknowledging.handle_timeout(now, rto);
        if self.outgoing.poll_timeout().is_some_and(|due| due <= now) {
            self.outgoing.handle_timeout(now);
        }
        self.work(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Datagram> {
        if self.leaving.is_none() {
            self.work(now, sink);
        }
        let packet = self.leaving.take()?;
        let len = packet.size();
        let words = [self.wire.put(packet), 0];
        let body = Body::Datagram { len, words };
        Some(Datagram {
            src: self.local,
            dst: self.remote,
            ecn: Ecn::NotEct,
            returned: false,
            body,
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let next = self.application.parcel(self.next_parcel);
        let next = next.filter(|_| !self.application.waits()).map(|(at, _)| at);
        let timers = [
            self.host.poll_timeout(),
            self.acknowledging.poll_timeout(),
            self.outgoing.poll_timeout(),
            next,
        ];
        timers.into_iter().flatten().min()
    }
}
