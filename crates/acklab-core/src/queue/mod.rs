//! Queueing disciplines: who waits, who is dropped or marked, who goes next. One discipline, one file.
//!
//! A [`Queue`] sees `now` at both ends, so that it can act on arrival (drop-tail, RED, PIE), on
//! departure (CoDel) or reorder (fair queueing); [`Fifo`] keeps the time each packet came in, for
//! those that judge by sojourn time. What a discipline throws away goes into [`Dropped`], which the
//! link that owns the queue empties and reports; nothing is allocated per packet.
//!
//! A [`crate::link::Link`] serves plain drop-tail without asking this trait: there the departure of
//! every packet is known when it arrives.

pub mod drop_tail;

pub use drop_tail::DropTail;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;
use crate::units::BitRate;

/// A queueing discipline. It may hold any number of packets and hands each out at most once.
pub trait Queue {
    /// A packet arrives: it is kept (perhaps with its ECN field changed) or dropped, and others may
    /// be dropped in its favour.
    fn enqueue(&mut self, now: Time, packet: Packet, dropped: &mut Dropped);

    /// The link is free: the packet that goes next, `None` where nothing waits.
    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Packet>;

    /// Packets waiting.
    fn packets(&self) -> u32;

    /// Bytes waiting, as the IP layer counts them.
    fn bytes(&self) -> u64;
}

/// What a discipline threw away, until the link takes it.
#[derive(Debug, Default)]
pub struct Dropped(Vec<(Packet, DropReason)>);

impl Dropped {
    /// Throws a packet away.
    pub fn push(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet, reason));
    }

    /// Takes everything out, oldest first.
    pub fn drain(&mut self) -> std::vec::Drain<'_, (Packet, DropReason)> {
        self.0.drain(..)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Packets in order of arrival with the time each came: what most disciplines are built on.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    packets: VecDeque<(Time, Packet)>,
    bytes: u64,
}

impl Fifo {
    /// Appends a packet that came at `now`.
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += u64::from(packet.size());
        self.packets.push_back((now, packet));
    }

    /// Takes the oldest out, with the time it came.
    pub fn pop(&mut self) -> Option<(Time, Packet)> {
        let (came, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some((came, packet))
    }

    /// When the oldest came.
    pub fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|&(came, _)| came)
    }

    /// Packets waiting.
    pub fn packets(&self) -> u32 {
        self.packets.len() as u32
    }

    /// Bytes waiting.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Which discipline a link gets.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// First in, first out, up to a limit.
    DropTail(drop_tail::Limit),
    /// A user's own.
    Custom(Factory),
}

/// What a link tells the discipline that it builds.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The transmitter's rate (PIE and E-DCTCP may want it).
    pub rate: BitRate,
    /// Seed of the world.
    pub seed: u64,
    /// Name of the link's streams: a discipline that flips coins draws from `NAME/queue`.
    pub name: &'a str,
}

/// Without a limit.
impl Default for Discipline {
    fn default() -> Self {
        Self::DropTail(drop_tail::Limit::NONE)
    }
}

type Build = dyn Fn(&Setup<'_>) -> Box<dyn Queue + Send> + Send + Sync;

/// Builds a user's own discipline for each link.
#[derive(Clone)]
pub struct Factory(Arc<Build>);

impl Factory {
    /// A factory from a closure.
    pub fn new(
        build: impl Fn(&Setup<'_>) -> Box<dyn Queue + Send> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(build))
    }

    /// A fresh queue.
    pub fn build(&self, setup: &Setup<'_>) -> Box<dyn Queue + Send> {
        (self.0)(setup)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}
