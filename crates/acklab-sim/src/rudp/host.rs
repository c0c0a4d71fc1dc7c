//! [`Host`]: an endpoint of reliable UDP and its user, between the world's packets and their bytes.

use std::collections::VecDeque;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Packet;
use acklab_core::time::Time;
use acklab_rudp::{Batch, Datagram, PathAddrs};

use crate::peer::Peer;
use crate::store::Store;

/// What uses an endpoint: takes its events and data, and writes.
pub trait User<E> {
    /// Called after something came, a deadline passed, or what was to be sent has left.
    fn on_progress(&mut self, now: Time, endpoint: &mut E, sink: &mut Sink);

    /// When it wants to be called though nothing has happened.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// It draws from its streams under another seed from now on.
    fn reseed(&mut self, _seed: u64) {}
}

impl<E, F: FnMut(Time, &mut E)> User<E> for F {
    fn on_progress(&mut self, now: Time, endpoint: &mut E, _sink: &mut Sink) {
        self(now, endpoint);
    }
}

/// A connection or a listener in the world.
#[derive(Debug)]
pub struct Host<E, U> {
    /// The endpoint.
    pub endpoint: E,
    /// Its user.
    pub user: U,
    /// The rest of the batch that leaves.
    leaving: VecDeque<Packet>,
    /// Something left since the user was last called.
    left: bool,
}

impl<E, U> Host<E, U> {
    /// A host.
    pub const fn new(endpoint: E, user: U) -> Self {
        Self { endpoint, user, leaving: VecDeque::new(), left: true }
    }
}

impl<E, U> Peer for Host<E, U>
where
    E: for<'a> Endpoint<Arrival<'a> = Datagram<'a>, Departure<'a> = Batch<'a>> + Send + 'static,
    U: User<E> + Send + 'static,
{
    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink, store: &mut Store) {
        let Some(mut bytes) = store.take(&packet) else { return };
        // What a full queue handed back says nothing to a protocol that does not know of that.
        if !packet.returned {
            let addrs = PathAddrs { local: packet.dst.into(), remote: packet.src.into() };
            let arrival = Datagram { addrs, ecn: packet.ecn, bytes: &mut bytes };
            self.endpoint.handle_packet(now, arrival, sink);
            self.user.on_progress(now, &mut self.endpoint, sink);
        }
        store.recycle(bytes);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now, sink);
        }
        self.user.on_progress(now, &mut self.endpoint, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink, store: &mut Store) -> Option<Packet> {
        if let Some(packet) = self.leaving.pop_front() {
            return Some(packet);
        }
        loop {
            if let Some(batch) = self.endpoint.poll_transmit(now, sink) {
                self.left = true;
                let Batch { addrs, ecn, .. } = batch;
                let (src, dst) = (addrs.local.into(), addrs.remote.into());
                self.leaving.extend(batch.datagrams().map(|bytes| {
                    let body = store.put(bytes);
                    Packet { src, dst, ecn, returned: false, body }
                }));
                return self.leaving.pop_front();
            }
            if !std::mem::take(&mut self.left) {
                return None;
            }
            self.user.on_progress(now, &mut self.endpoint, sink);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.endpoint.poll_timeout(), self.user.poll_timeout()].into_iter().flatten().min()
    }

    fn reseed(&mut self, seed: u64) {
        self.endpoint.reseed(seed);
        self.user.reseed(seed);
    }
}
