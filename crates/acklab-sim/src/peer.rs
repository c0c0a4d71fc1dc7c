//! Peers: what sends and receives datagrams at addresses that no socket has.
//!
//! [`Peer`] is what the world asks of them. Whatever keeps the core's contract with packets as values is
//! one; reliable UDP, whose datagrams are bytes, comes as [`crate::rudp::Host`]. [`Datagrams`] is traffic
//! that no transport controls: it sends what an arrival process brings, each datagram with its number and
//! the time it left, and takes what comes; without arrivals it is a sink. What it receives it tells as
//! [`EventKind::App`] events.

use std::any::Any;
use std::convert::Infallible;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::time::Time;

use crate::arrivals::Arrivals;
use crate::store::Store;

/// The contract's verbs for packets, as the world can keep them in one list, with the bytes of those
/// that have any. It fills in source and destination itself.
pub trait Peer: Any + Send {
    /// Takes a packet that arrived at `now`, and its bytes out of `store`.
    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink, store: &mut Store);

    /// Acts on every deadline that is due at `now`; does nothing where none is.
    fn handle_timeout(&mut self, now: Time, sink: &mut Sink);

    /// The next packet that leaves at `now`, its bytes in `store`.
    fn poll_transmit(&mut self, now: Time, sink: &mut Sink, store: &mut Store) -> Option<Packet>;

    /// When [`Peer::handle_timeout`] must be called next, if nothing else happens before.
    fn poll_timeout(&self) -> Option<Time>;

    /// It draws from its streams under another seed from now on.
    fn reseed(&mut self, seed: u64);
}

impl<E> Peer for E
where
    E: for<'a> Endpoint<Arrival<'a> = Packet, Departure<'a> = Packet, AppEvent = Infallible>
        + Any
        + Send,
{
    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink, store: &mut Store) {
        // Bytes that it cannot read.
        if let Some(bytes) = store.take(&packet) {
            store.recycle(bytes);
        }
        Endpoint::handle_packet(self, now, packet, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        Endpoint::handle_timeout(self, now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink, _store: &mut Store) -> Option<Packet> {
        Endpoint::poll_transmit(self, now, sink)
    }

    fn poll_timeout(&self) -> Option<Time> {
        Endpoint::poll_timeout(self)
    }

    fn reseed(&mut self, seed: u64) {
        Endpoint::reseed(self, seed);
    }
}

/// Code of the [`EventKind::App`] event with which a peer tells how long a datagram was on its way,
/// in ms from its departure.
pub const DATAGRAM_DELAY_MS: u32 = 2;

/// Sends by an arrival process and takes what comes.
#[derive(Clone, Debug)]
pub struct Datagrams {
    local: Addr,
    sending: Option<(Addr, Arrivals)>,
    sent: u64,
}

impl Datagrams {
    /// A peer at `local` that sends what `arrivals` brings, payload bytes, to `remote`.
    pub fn new(local: Addr, remote: Addr, arrivals: Arrivals) -> Self {
        Self { local, sending: Some((remote, arrivals)), sent: 0 }
    }

    /// A peer that only receives.
    pub fn sink(local: Addr) -> Self {
        Self { local, sending: None, sent: 0 }
    }
}

impl Endpoint for Datagrams {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        let Body::Datagram { words: [_, left], .. } = packet.body else { return };
        if packet.returned || !sink.wants(Interest::MESSAGE) {
            return;
        }
        let value = now.since(Time::from_nanos(left)).as_millis_f64();
        let node = self.local.node;
        sink.record(now, EventKind::App { node, code: DATAGRAM_DELAY_MS, value });
    }

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Packet> {
        let (remote, arrivals) = self.sending.as_mut()?;
        let len = arrivals.take_due(now)?;
        let words = [self.sent, now.as_nanos()];
        self.sent += 1;
        Some(Packet {
            src: self.local,
            dst: *remote,
            ecn: Ecn::NotEct,
            returned: false,
            body: Body::Datagram { len, words },
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.sending.as_ref()?.1.next_time()
    }

    fn reseed(&mut self, seed: u64) {
        if let Some((_, arrivals)) = &mut self.sending {
            arrivals.reseed(seed);
        }
    }
}
