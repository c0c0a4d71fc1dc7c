//! The event queue: what happens next, in the order (time, sequence).
//!
//! An entry is one 128-bit number, time above sequence above target, so that the heap compares
//! integers and the order is total: two events of the same nanosecond happen in the order in which
//! they were scheduled, on every machine. Entries are never searched for or removed: a component
//! whose deadline moved ignores the stale entry when it surfaces ([`crate::world`]).
//!
//! std's `BinaryHeap` suffices: with one pending entry per link and per socket the heap stays as
//! small as the topology, whatever the number of packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use acklab_core::time::Time;

/// Whose turn it is: a component of the world by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A link has a packet at its far end.
    Link(u32),
    /// A socket's transport or application has a deadline.
    Socket(u32),
    /// A datagram peer has a deadline.
    Peer(u32),
}

/// Pending events, the earliest first.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    scheduled: u64,
}

impl EventQueue {
    /// Components of one kind that an entry can name.
    pub const MAX_TARGETS: u32 = 1 << INDEX_BITS;

    /// Schedules `target` for `at`, behind everything already scheduled for that instant.
    pub fn push(&mut self, at: Time, target: Target) {
        let (kind, index) = match target {
            Target::Link(index) => (0_u64, index),
            Target::Socket(index) => (1, index),
            Target::Peer(index) => (2, index),
        };
        let order = self.scheduled << (INDEX_BITS + KIND_BITS)
            | kind << INDEX_BITS
            | u64::from(index & (Self::MAX_TARGETS - 1));
        self.scheduled += 1;
        self.heap.push(Reverse(u128::from(at.as_nanos()) << 64 | u128::from(order)));
    }

    /// When the next event happens.
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| time_of(*entry))
    }

    /// Takes out the next event.
    pub fn pop(&mut self) -> Option<(Time, Target)> {
        let Reverse(entry) = self.heap.pop()?;
        let index = entry as u32 & (Self::MAX_TARGETS - 1);
        let target = match entry >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => Target::Link(index),
            1 => Target::Socket(index),
            _ => Target::Peer(index),
        };
        Some((time_of(entry), target))
    }

    /// Entries pending, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

fn time_of(entry: u128) -> Time {
    Time::from_nanos((entry >> 64) as u64)
}

/// A million components of a kind; 2^42 sequence numbers are left, five days at 10 M events/s.
const INDEX_BITS: u32 = 20;
const KIND_BITS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_scheduling() {
        let mut queue = EventQueue::default();
        let at = Time::from_nanos;
        queue.push(at(5), Target::Socket(3));
        queue.push(at(2), Target::Link(EventQueue::MAX_TARGETS - 1));
        queue.push(at(5), Target::Link(0));
        queue.push(at(5), Target::Socket(0));
        assert_eq!(queue.next_time(), Some(at(2)));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            order,
            [
                (at(2), Target::Link(EventQueue::MAX_TARGETS - 1)),
                (at(5), Target::Socket(3)),
                (at(5), Target::Link(0)),
                (at(5), Target::Socket(0)),
            ]
        );
    }

    #[test]
    fn the_end_of_time_is_still_a_time() {
        let mut queue = EventQueue::default();
        queue.push(Time::MAX, Target::Link(1));
        queue.push(Time::ZERO, Target::Link(2));
        assert_eq!(queue.pop(), Some((Time::ZERO, Target::Link(2))));
        assert_eq!(queue.pop(), Some((Time::MAX, Target::Link(1))));
        assert!(queue.is_empty());
    }
}
