//! [`Fifo`]: packets in order of arrival, which most disciplines are built on, and [`Unit`], what a
//! queue's length is counted in.

use std::collections::VecDeque;

use super::limit::Limit;
use crate::packet::Packet;
use crate::time::Time;

/// Packets in order of arrival with the time each came.
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

    /// Takes one out of the middle: the one with `index` others before it.
    pub fn remove(&mut self, index: usize) -> Option<(Time, Packet)> {
        let (came, packet) = self.packets.remove(index)?;
        self.bytes -= u64::from(packet.size());
        Some((came, packet))
    }

    /// The packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().map(|(_, packet)| packet)
    }

    /// When the oldest came.
    pub fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|&(came, _)| came)
    }

    /// Whether `packet` fits under `limit`.
    pub fn admits(&self, limit: &Limit, packet: &Packet) -> bool {
        limit.admits(self.packets(), self.bytes, packet.size())
    }

    /// Packets waiting.
    pub fn packets(&self) -> u32 {
        self.packets.len() as u32
    }

    /// Bytes waiting.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

crate::words! {
    /// What a queue's length is counted in. The packet in service is not part of it.
    #[derive(Default)]
    pub enum Unit {
        /// Packets of any size.
        #[default]
        Packets = "packets",
        /// Bytes, as the IP layer counts them.
        Bytes = "bytes",
    }
}

impl Unit {
    /// The length of `queue` in this unit.
    pub fn length(self, queue: &Fifo) -> f64 {
        match self {
            Self::Packets => f64::from(queue.packets()),
            Self::Bytes => queue.bytes() as f64,
        }
    }
}
