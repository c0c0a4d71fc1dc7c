//! The contract's five verbs ([`Endpoint`]) of a connection and of a listener: datagrams come as bytes and
//! leave in batches out of the endpoint's own buffer.

use std::mem;

use super::connection::Connection;
use super::listener::{Handle, Listener};
use super::report::{Event, PathAddrs, Transmit};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::time::Time;

/// A datagram that arrived. Its bytes are decrypted in place.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// To where from where, as the receiver sees it.
    pub addrs: PathAddrs,
    /// The ECN field of its packet.
    pub ecn: Ecn,
    /// UDP payload.
    pub bytes: &'a mut [u8],
}

/// Datagrams that leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// From where to where.
    pub addrs: PathAddrs,
    /// ECN field of all.
    pub ecn: Ecn,
    /// Their UDP payload, one behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last, which may be shorter.
    pub segment: usize,
}

impl<'a> Batch<'a> {
    /// The datagrams, one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.segment.max(1))
    }

    const fn of(transmit: &Transmit, buffer: &'a [u8]) -> Self {
        let Transmit { addrs, ecn, len, segment } = *transmit;
        Self { addrs, ecn, bytes: buffer.split_at(len).0, segment }
    }
}

/// The largest IPv4 packet without its headers, however many datagrams it becomes.
const BUFFER: usize = 65_535 - 20 - 8;

impl Connection {
    /// Does `act`, and tells `sink` what there is to tell about it.
    pub(super) fn telling<T>(
        &mut self,
        now: Time,
        sink: &mut Sink,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.telling.exchange(sink);
        let done = act(self);
        self.tell_paths(now);
        self.telling.exchange(sink);
        done
    }
}

impl Endpoint for Connection {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = Event;

    fn handle_packet(&mut self, now: Time, arrival: Datagram<'_>, sink: &mut Sink) {
        let Datagram { addrs, ecn, bytes } = arrival;
        self.telling(now, sink, |connection| connection.on_datagram(now, addrs, ecn, bytes));
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.telling(now, sink, |connection| connection.on_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Batch<'_>> {
        let mut buffer = mem::take(&mut self.buffer);
        // The first time only.
        buffer.resize(BUFFER, 0);
        let sent = self.telling(now, sink, |connection| connection.transmit_into(now, &mut buffer));
        self.buffer = buffer;
        sent.map(|transmit| Batch::of(&transmit, &self.buffer))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next_deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn reseed(&mut self, seed: u64) {
        self.draw_from(seed);
    }
}

impl Endpoint for Listener {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = (Handle, Event);

    fn handle_packet(&mut self, now: Time, arrival: Datagram<'_>, sink: &mut Sink) {
        let Datagram { addrs, ecn, bytes } = arrival;
        self.on_datagram(now, addrs, ecn, bytes, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.on_timeout(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Batch<'_>> {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.resize(BUFFER, 0);
        let sent = self.transmit_into(now, &mut buffer, sink);
        self.buffer = buffer;
        sent.map(|transmit| Batch::of(&transmit, &self.buffer))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next_deadline()
    }

    fn poll_event(&mut self) -> Option<(Handle, Event)> {
        self.next_event()
    }

    fn reseed(&mut self, seed: u64) {
        self.draw_from(seed);
    }
}
