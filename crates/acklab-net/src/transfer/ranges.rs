//! Sets of chunk numbers as ranges: what is held, what is wanted, what is a hole.

use std::ops::Range;

use super::record::{Broken, put_varint, take_varint};

/// Ranges in order, disjoint and not touching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// All numbers below `end`.
    pub fn below(end: u64) -> Self {
        let mut all = Self::default();
        all.insert(0..end);
        all
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.0.partition_point(|other| other.end < range.start);
        let to = self.0.partition_point(|other| other.start <= range.end);
        let merged = self.0[from..to]
            .iter()
            .fold(range, |sum, other| sum.start.min(other.start)..sum.end.max(other.end));
        self.0.splice(from..to, [merged]);
    }

    /// Takes one number out.
    pub fn remove(&mut self, number: u64) {
        let at = self.0.partition_point(|range| range.end <= number);
        let Some(range) = self.0.get(at).filter(|range| range.contains(&number)).cloned() else {
            return;
        };
        let rest = [range.start..number, number + 1..range.end];
        self.0.splice(at..=at, rest.into_iter().filter(|range| !range.is_empty()));
    }

    /// Whether the number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|range| range.end <= number);
        self.0.get(at).is_some_and(|range| range.contains(&number))
    }

    /// The least number that is in the set.
    pub fn first(&self) -> Option<u64> {
        self.0.first().map(|range| range.start)
    }

    /// The numbers below `end` that are in neither set.
    #[must_use]
    pub fn neither(&self, other: &Self, end: u64) -> Self {
        let mut union = self.clone();
        other.iter().for_each(|range| union.insert(range));
        let mut rest = Self::default();
        let mut at = 0;
        for range in union.iter() {
            rest.insert(at..range.start.min(end));
            at = range.end;
        }
        rest.insert(at..end);
        rest
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// How many ranges.
    pub fn parts(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the number of ranges, then for each the gap before it and its length.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.0.len() as u64);
        let mut at = 0;
        for range in &self.0 {
            put_varint(out, range.start - at);
            put_varint(out, range.end - range.start);
            at = range.end;
        }
    }

    /// Reads what [`Ranges::put`] wrote; numbers must be below `end`.
    pub fn take(input: &mut &[u8], end: u64) -> Result<Self, Broken> {
        let count = take_varint(input)?;
        let mut ranges = Self::default();
        let mut at = 0_u64;
        for index in 0..count {
            let gap = take_varint(input)?;
            let len = take_varint(input)?;
            let start = at.checked_add(gap).filter(|_| index == 0 || gap > 0);
            let range = start.and_then(|start| Some(start..start.checked_add(len)?));
            let range = range
                .filter(|range| !range.is_empty() && range.end <= end)
                .ok_or(Broken("a list of chunks is out of order or too long"))?;
            at = range.end;
            ranges.0.push(range);
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use acklab_core::rng::Rng;

    use super::*;

    #[test]
    fn ranges_are_the_set_of_what_was_put_in_and_not_taken_out() {
        let mut rng = Rng::named(1, "ranges");
        for _ in 0..200 {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for _ in 0..30 {
                let (start, len) = (rng.next_u64() % 60, rng.next_u64() % 8);
                if rng.next_u64().is_multiple_of(3) {
                    ranges.remove(start);
                    set.remove(&start);
                } else {
                    ranges.insert(start..start + len);
                    set.extend(start..start + len);
                }
            }
            assert_eq!(ranges.iter().flatten().collect::<BTreeSet<_>>(), set);
            assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!((0..70).all(|number| ranges.contains(number) == set.contains(&number)));
            let rest = ranges.neither(&Ranges::default(), 70);
            assert_eq!(rest.count() + ranges.count(), 70);
            let mut bytes = Vec::new();
            ranges.put(&mut bytes);
            assert_eq!(Ranges::take(&mut &bytes[..], 70), Ok(ranges));
        }
    }

    #[test]
    fn lists_that_lie_are_refused() {
        for bytes in [&[1_u8, 0, 0][..], &[2, 0, 1, 0, 1], &[1, 5, 6], &[1, 0], &[200]] {
            assert!(Ranges::take(&mut &bytes[..], 10).is_err(), "{bytes:?}");
        }
    }
}
