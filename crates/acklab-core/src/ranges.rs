//! A set of numbers kept as ranges: offsets that arrived or were lost, packet numbers.
//!
//! Half-open ranges in rising order that never touch, in a deque: what happens at either end, which is
//! nearly everything, takes constant time; what happens in between takes a binary search and the
//! moving of a few ranges. Its owners bound how many ranges there are.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of `u64`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
    /// How many numbers are in it.
    total: u64,
}

impl RangeSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many numbers are in it.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// The ranges in rising order; `.rev()` for the falling one.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + Clone + '_ {
        self.ranges.iter().cloned()
    }

    /// Whether `number` is in it.
    pub fn contains(&self, number: u64) -> bool {
        self.covers(&(number..number + 1))
    }

    /// Whether all of `range` is in it; of an empty one it is.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.first_gap(range).is_none()
    }

    /// The first part of `within` that is not in it.
    pub fn first_gap(&self, within: &Range<u64>) -> Option<Range<u64>> {
        if within.is_empty() {
            return None;
        }
        let at = self.ranges.partition_point(|range| range.end <= within.start);
        let (mut start, mut next) = (within.start, at);
        if let Some(range) = self.ranges.get(at).filter(|range| range.start <= start) {
            (start, next) = (range.end, at + 1);
        }
        let end = self.ranges.get(next).map_or(within.end, |range| range.start.min(within.end));
        (start < end).then_some(start..end)
    }

    /// Whether inserting `range` would make one range more: it touches none.
    pub fn would_add(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|known| known.end < range.start);
        self.ranges.get(at).is_none_or(|known| known.start > range.end)
    }

    /// Puts `range` into it; how many numbers were not in it before.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let added = match self.ranges.back_mut() {
            Some(last) if last.start <= range.start && range.start <= last.end => {
                let added = range.end.saturating_sub(last.end);
                last.end += added;
                added
            }
            Some(last) if range.start < last.start => self.insert_between(range),
            _ => {
                let added = range.end - range.start;
                self.ranges.push_back(range);
                added
            }
        };
        self.total += added;
        added
    }

    fn insert_between(&mut self, range: Range<u64>) -> u64 {
        let from = self.ranges.partition_point(|known| known.end < range.start);
        let to = self.ranges.partition_point(|known| known.start <= range.end);
        if from == to {
            let added = range.end - range.start;
            self.ranges.insert(from, range);
            return added;
        }
        let known: u64 = self.ranges.range(from..to).map(|known| known.end - known.start).sum();
        let start = range.start.min(self.ranges[from].start);
        let end = range.end.max(self.ranges[to - 1].end);
        self.ranges[from] = start..end;
        if to - from > 1 {
            self.ranges.drain(from + 1..to);
        }
        end - start - known
    }

    /// Takes `range` out of it; how many numbers were in it.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let from = self.ranges.partition_point(|known| known.end <= range.start);
        let to = self.ranges.partition_point(|known| known.start < range.end);
        if range.is_empty() || from >= to {
            return 0;
        }
        let known: u64 = self.ranges.range(from..to).map(|known| known.end - known.start).sum();
        let left = self.ranges[from].start..range.start;
        let right = range.end..self.ranges[to - 1].end;
        let kept = left.end.saturating_sub(left.start) + right.end.saturating_sub(right.start);
        match (left.is_empty(), right.is_empty()) {
            (true, true) if from == 0 && to == 1 => drop(self.ranges.pop_front()),
            (true, true) => drop(self.ranges.drain(from..to)),
            (false, true) => {
                self.ranges[from] = left;
                self.ranges.drain(from + 1..to);
            }
            (true, false) => {
                self.ranges[to - 1] = right;
                self.ranges.drain(from..to - 1);
            }
            (false, false) => {
                self.ranges[from] = left;
                if to - from > 1 {
                    self.ranges[to - 1] = right;
                    self.ranges.drain(from + 1..to - 1);
                } else {
                    self.ranges.insert(to, right);
                }
            }
        }
        self.total -= known - kept;
        known - kept
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_set(
            steps in prop::collection::vec((any::<bool>(), 0..60_u64, 0..12_u64), 0..60)
        ) {
            let (mut ranges, mut plain) = (RangeSet::new(), BTreeSet::new());
            for (insert, start, len) in steps {
                let range = start..start + len;
                let before = plain.len();
                let would_add = ranges.would_add(&range);
                if insert {
                    let count = ranges.len();
                    let added = ranges.insert(range.clone());
                    plain.extend(range.clone());
                    prop_assert_eq!(added as usize, plain.len() - before);
                    prop_assert_eq!(would_add && len > 0, ranges.len() > count);
                } else {
                    let removed = ranges.remove(range.clone());
                    plain.retain(|number| !range.contains(number));
                    prop_assert_eq!(removed as usize, before - plain.len());
                }
                let all: Vec<u64> = ranges.iter().flatten().collect();
                prop_assert_eq!(&all, &plain.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.total() as usize, plain.len());
                for pair in ranges.iter().zip(ranges.iter().skip(1)) {
                    prop_assert!(pair.0.end < pair.1.start);
                }
                let within = 5..50;
                let missing = within.clone().find(|number| !plain.contains(number));
                prop_assert_eq!(ranges.first_gap(&within).map(|gap| gap.start), missing);
                if let Some(gap) = ranges.first_gap(&within) {
                    prop_assert!(gap.clone().all(|number| !plain.contains(&number)));
                    prop_assert!(gap.end == within.end || plain.contains(&gap.end));
                }
            }
        }
    }
}
