//! Drop-tail: first in, first out; what does not fit is dropped on arrival.

use super::{Dropped, Fifo, Queue};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;

/// How much may wait, not counting the packet in service. Both limits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub packets: u32,
    /// Bytes, as the IP layer counts them.
    pub bytes: u64,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { packets: u32::MAX, bytes: u64::MAX };

    /// At most `packets` packets.
    pub const fn packets(packets: u32) -> Self {
        Self { packets, bytes: u64::MAX }
    }

    /// At most `bytes` bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self { packets: u32::MAX, bytes }
    }

    /// Whether a packet of `size` bytes fits where `packets` and `bytes` wait.
    pub const fn admits(&self, packets: u32, bytes: u64, size: u32) -> bool {
        packets < self.packets && bytes.saturating_add(size as u64) <= self.bytes
    }
}

/// First in, first out, up to a limit.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: Limit,
    waiting: Fifo,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { limit, waiting: Fifo::default() }
    }
}

impl Queue for DropTail {
    fn enqueue(&mut self, now: Time, packet: Packet, dropped: &mut Dropped) {
        if self.limit.admits(self.waiting.packets(), self.waiting.bytes(), packet.size()) {
            self.waiting.push(now, packet);
        } else {
            dropped.push(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut Dropped) -> Option<Packet> {
        self.waiting.pop().map(|(_, packet)| packet)
    }

    fn packets(&self) -> u32 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }
}
