//! Retransmissions that were lost in their turn, by the order of time (RFC 8985 section 6.2, step 5): what left a
//! fourth of the least round trip before something that has arrived is lost. RFC 6675 cannot tell, and leaves it
//! to the retransmission time-out, one after the other.
//!
//! Left out of RFC 8985: first transmissions, which RFC 6675 finds; the timer of step 5, so that the next ACK
//! tells; the reordering window's growth by DSACK; tail loss probes.

use super::queue::Queue;
use acklab_core::time::Span;

/// Those that leave again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resent {
    /// [next, until) was sent again and is lost, where the peer did not report it.
    next: u64,
    until: u64,
}

impl Resent {
    /// A recovery begins or ends.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// What the ACKs show by now, where everything missing below `below` was sent again; returns what that weighs.
    pub(super) fn update(&mut self, below: u64, reordering: Span, queue: &Queue) -> u64 {
        if self.pending(queue).is_none() {
            (self.next, self.until) = (queue.una(), queue.una());
        }
        let from = self.until.max(queue.una());
        self.until = from;
        while let Some((start, end)) = queue.next_hole(self.until, below)
            && let Some((segment, left)) = queue.segment_at(start)
            && left + reordering < queue.arrived()
        {
            self.until = segment.min(end);
        }
        queue.unmarked(from, self.until)
    }

    /// The first stretch to be sent again.
    pub(super) fn pending(&self, queue: &Queue) -> Option<(u64, u64)> {
        queue.next_hole(self.next.max(queue.una()), self.until)
    }

    /// What is to be sent again weighs.
    pub(super) fn weight(&self, queue: &Queue) -> u64 {
        queue.unmarked(self.next.max(queue.una()), self.until)
    }

    /// What is missing below `end` left once more.
    pub(super) fn on_filled(&mut self, end: u64) {
        self.next = self.next.max(end);
    }
}
