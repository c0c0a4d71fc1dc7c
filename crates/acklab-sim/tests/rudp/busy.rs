//! A host whose processor is busy elsewhere now and then.

use std::collections::VecDeque;

use acklab_core::event::Sink;
use acklab_core::packet::Packet;
use acklab_core::time::Time;
use acklab_sim::Store;
use acklab_sim::peer::Peer;

/// Lets what arrives wait, and what would leave.
pub(crate) struct Busy<P> {
    pub(crate) inner: P,
    pub(crate) until: Option<Time>,
    waiting: VecDeque<Packet>,
}

impl<P> Busy<P> {
    pub(crate) const fn new(inner: P) -> Self {
        Self { inner, until: None, waiting: VecDeque::new() }
    }
}

impl<P: Peer> Peer for Busy<P> {
    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink, store: &mut Store) {
        if self.until.is_some() {
            self.waiting.push_back(packet);
        } else {
            self.inner.handle_packet(now, packet, sink, store);
        }
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.until = self.until.filter(|until| *until > now);
        if self.until.is_none() && self.waiting.is_empty() {
            self.inner.handle_timeout(now, sink);
        }
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink, store: &mut Store) -> Option<Packet> {
        if self.until.is_some() {
            return None;
        }
        while let Some(packet) = self.waiting.pop_front() {
            self.inner.handle_packet(now, packet, sink, store);
            if self.waiting.is_empty() {
                self.inner.handle_timeout(now, sink);
            }
        }
        self.inner.poll_transmit(now, sink, store)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.until.or_else(|| self.inner.poll_timeout())
    }

    fn reseed(&mut self, seed: u64) {
        self.inner.reseed(seed);
    }
}
