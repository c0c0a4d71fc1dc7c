//! The event queue: what happens next, in the order (time, sequence).
//!
//! An entry is one 128-bit number, time above sequence above target, so that the heap compares
//! integers and the order is total: two events of the same nanosecond happen in the order in which
//! they were scheduled, on every machine. Entries are never searched for or removed: a component
//! whose deadline moved ignores the stale entry when it surfaces ([`crate::world`]). With one pending
//! entry per link and per socket the heap stays as small as the topology, whatever the number of
//! packets.
//!
//! Nearly every event schedules its successor, so the place of an entry taken out is kept open: the
//! next push falls into it and sinks, which is one walk through the heap instead of two. Four
//! children to a node make that walk half as deep (docs/simulator.md has what each was worth).

use std::hint::select_unpredictable;

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
    /// A processor is done with a packet, or interrupted.
    Processor(u32),
}

/// Pending events, the earliest first.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A heap of [`FAN_OUT`] children to a node, least entry at the [`ROOT`]; [`NONE`] where no entry is.
    /// Siblings are one chunk, so the places before the root are empty.
    heap: Vec<u128>,
    /// Entries, one that was taken out and whose place is kept open included.
    len: usize,
    /// The root was taken out and nothing stands in its place yet.
    hollow: bool,
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { heap: vec![NONE; FAN_OUT], len: 0, hollow: false, scheduled: 0 }
    }
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
            Target::Processor(index) => (3, index),
        };
        let order = self.scheduled << (INDEX_BITS + KIND_BITS)
            | kind << INDEX_BITS
            | u64::from(index & (Self::MAX_TARGETS - 1));
        self.scheduled += 1;
        let entry = u128::from(at.as_nanos()) << 64 | u128::from(order);
        if self.hollow {
            self.hollow = false;
            self.sink(entry);
        } else {
            self.rise(entry);
        }
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        let next = if self.hollow {
            // One of the root's children.
            self.heap.iter().skip(ROOT + 1).take(FAN_OUT).min()
        } else {
            self.heap.get(ROOT)
        };
        next.filter(|&&entry| entry != NONE).map(|&entry| time_of(entry))
    }

    /// Takes out the next event if it happens by `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Time) -> Option<(Time, Target)> {
        self.fill();
        if self.heap[ROOT] == NONE || time_of(self.heap[ROOT]) > limit {
            return None;
        }
        self.pop()
    }

    /// Takes out the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Target)> {
        self.fill();
        let entry = self.heap[ROOT];
        if entry == NONE {
            return None;
        }
        self.hollow = true;
        let index = entry as u32 & (Self::MAX_TARGETS - 1);
        let target = match entry >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => Target::Link(index),
            1 => Target::Socket(index),
            2 => Target::Peer(index),
            _ => Target::Processor(index),
        };
        Some((time_of(entry), target))
    }

    /// Entries pending, stale ones included.
    pub fn len(&self) -> usize {
        self.len - usize::from(self.hollow)
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the place of the entry taken out last, if nothing was pushed since.
    #[inline]
    fn fill(&mut self) {
        if self.hollow {
            self.close();
        }
    }

    /// The last entry takes the place of the root.
    fn close(&mut self) {
        self.hollow = false;
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[ROOT + self.len], NONE);
        if self.len > 0 {
            self.sink(last);
        }
    }

    /// Puts `entry` at the root and lets it sink to its place.
    fn sink(&mut self, entry: u128) {
        let mut place = ROOT;
        while let Some(children) = self.heap.as_chunks::<FAN_OUT>().0.get(place - (ROOT - 1)) {
            // Which is the least is a coin toss that no processor predicts: computed, not branched on.
            let left = usize::from(children[1] < children[0]);
            let right = 2 + usize::from(children[3] < children[2]);
            let child = select_unpredictable(children[right] < children[left], right, left);
            let least = children[child];
            if entry < least {
                break;
            }
            self.heap[place] = least;
            place = FAN_OUT * (place - (ROOT - 1)) + child;
        }
        self.heap[place] = entry;
    }

    /// Puts `entry` at the end and lets it rise to its place.
    fn rise(&mut self, entry: u128) {
        let mut place = ROOT + self.len;
        if place == self.heap.len() {
            self.heap.extend([NONE; FAN_OUT]);
        }
        self.len += 1;
        while place > ROOT {
            let parent = place / FAN_OUT + (ROOT - 1);
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }
}

#[inline]
fn time_of(entry: u128) -> Time {
    Time::from_nanos((entry >> 64) as u64)
}

/// A million components of a kind; 2^42 sequence numbers are left, five days at 10 M events/s.
const INDEX_BITS: u32 = 20;
const KIND_BITS: u32 = 2;
/// Children of a node in the heap.
const FAN_OUT: usize = 4;
/// Place of the least entry: the last of the first chunk, so that its children are the second.
const ROOT: usize = FAN_OUT - 1;
/// No entry, behind all there are: its number is never given out.
const NONE: u128 = u128::MAX;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use acklab_core::rng::Rng;

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

    #[test]
    fn any_order_of_pushes_and_pops_agrees_with_a_sorted_set() {
        let mut rng = Rng::named(9, "test/event-queue");
        let (mut queue, mut sorted) = (EventQueue::default(), BTreeSet::new());
        for index in 0..20_000_u32 {
            let pops = if index % 2000 < 1000 { rng.below(2) } else { rng.below(4) };
            for _ in 0..pops {
                let expected = sorted.pop_first().map(|(at, index)| (at, Target::Link(index)));
                assert_eq!(queue.pop(), expected);
            }
            // The set orders equal times by index, the queue by scheduling: the same here.
            let at = Time::from_nanos(rng.below(500));
            queue.push(at, Target::Link(index));
            sorted.insert((at, index));
            assert_eq!(queue.len(), sorted.len());
            let next = sorted.first().map(|&(at, _)| at);
            assert_eq!(queue.next_time(), next);
            if let Some(at) = next.filter(|&at| at > Time::ZERO) {
                assert_eq!(queue.pop_until(Time::from_nanos(at.as_nanos() - 1)), None);
            }
        }
    }
}
