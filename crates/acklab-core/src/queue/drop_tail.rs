//! Drop-tail: first in, first out; what does not fit is dropped on arrival.

use super::{Fifo, Queue, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;

/// How much may wait, *not* counting the packet in service. Both limits hold.
///
/// "A buffer of 17 packets" means two things. Seventeen may wait behind the one that is being
/// transmitted: [`Limit::packets`]`(17)`, as in ns-2 and ns-3. Or the one being transmitted still holds
/// its place: [`Limit::with_service`]`(17)`, as in a router whose buffer the transmitter reads from.
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

    /// At most `packets` packets wait.
    pub const fn packets(packets: u32) -> Self {
        Self { packets, bytes: u64::MAX }
    }

    /// At most `bytes` bytes wait.
    pub const fn bytes(bytes: u64) -> Self {
        Self { packets: u32::MAX, bytes }
    }

    /// At most `packets` packets, 2 or more, of which one is in service. Nothing waits at an idle
    /// link, so that is one less that waits.
    pub const fn with_service(packets: u32) -> Self {
        Self::packets(packets.saturating_sub(1))
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
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        if self.waiting.admits(&self.limit, &packet) {
            self.waiting.push(now, packet);
        } else {
            verdicts.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        self.waiting.pop().map(|(_, packet)| packet)
    }

    fn packets(&self) -> u32 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }
}
