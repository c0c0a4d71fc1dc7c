//! Drop-tail: first in, first out; what does not fit is dropped on arrival.

use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;

crate::options! {
    /// Nothing but room.
    #[derive(Copy, PartialEq)]
    pub struct Options {}
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// Room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets) }
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
    pub fn new(Options { limit }: Options, _setup: &Setup<'_>) -> Self {
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

    crate::forward! { waiting: packets bytes }
}
