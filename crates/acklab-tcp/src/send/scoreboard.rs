//! The sender's SACK scoreboard: RFC 6675 section 3 and the functions of its section 4.
//!
//! Ranges of 64-bit offsets that the peer holds beyond the cumulative ACK. `IsLost` is monotonic (if
//! a byte is lost so is every unsacked byte below it), so it is one boundary, found by walking from
//! the top until `DupThresh` ranges, or more than `DupThresh - 1` segments of bytes, lie above.

/// A stretch that the peer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    left: u64,
    right: u64,
    /// What it counted when it was marked or cut last.
    weight: u64,
}

/// What the peer reported beyond the cumulative acknowledgment. `weigh` says what a stretch counts: its
/// bytes, or segments.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// Ascending, neither touching nor overlapping.
    ranges: Vec<Range>,
    total: u64,
}

impl Scoreboard {
    /// Marks [left, right) as held by the peer; returns how many bytes of it are news.
    pub(super) fn mark(&mut self, left: u64, right: u64, weigh: impl Fn(u64, u64) -> u64) -> u64 {
        if left >= right {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.right < left);
        let last = self.ranges.partition_point(|range| range.left <= right);
        if first == last {
            self.ranges.insert(first, Range { left, right, weight: weigh(left, right) });
            self.total += right - left;
            return right - left;
        }
        let left = left.min(self.ranges[first].left);
        let right = right.max(self.ranges[last - 1].right);
        let covered: u64 = self.ranges[first..last].iter().map(|r| r.right - r.left).sum();
        let news = right - left - covered;
        if news > 0 {
            self.ranges[first] = Range { left, right, weight: weigh(left, right) };
            self.ranges.drain(first + 1..last);
            self.total += news;
        }
        news
    }

    /// Forgets everything below the cumulative acknowledgment `una`.
    pub(super) fn advance(&mut self, una: u64, weigh: impl Fn(u64, u64) -> u64) {
        if self.ranges.is_empty() {
            return;
        }
        let gone = self.ranges.partition_point(|range| range.right <= una);
        for range in self.ranges.drain(..gone) {
            self.total -= range.right - range.left;
        }
        if let Some(range) = self.ranges.first_mut()
            && range.left < una
        {
            self.total -= una - range.left;
            range.left = una;
            range.weight = weigh(una, range.right);
        }
    }

    /// Whether nothing is marked.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What is marked, ascending.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|range| (range.left, range.right))
    }

    /// [from, to) was cut anew: what of it is marked counts what `weigh` says now.
    pub(super) fn weigh_again(&mut self, from: u64, to: u64, weigh: impl Fn(u64, u64) -> u64) {
        let first = self.ranges.partition_point(|range| range.right <= from);
        for range in self.ranges[first..].iter_mut().take_while(|range| range.left < to) {
            range.weight = weigh(range.left, range.right);
        }
    }

    /// Whether every stretch counts what `weigh` says of it.
    pub(super) fn is_weighed(&self, weigh: impl Fn(u64, u64) -> u64) -> bool {
        self.ranges.iter().all(|range| range.weight == weigh(range.left, range.right))
    }

    /// Bytes marked.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The offset after the highest byte marked.
    pub(super) fn highest(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.right)
    }

    /// Every unmarked byte below this offset is lost (`IsLost` of RFC 6675 section 4), where a full
    /// segment counts `mss`.
    pub(super) fn lost_below(&self, mss: u64, dup_thresh: u32) -> u64 {
        let needed = u64::from(dup_thresh.saturating_sub(1)) * mss;
        let mut above = 0;
        for (count, range) in self.ranges.iter().rev().enumerate() {
            above += range.weight;
            if count + 1 >= dup_thresh as usize || above > needed {
                return range.left;
            }
        }
        0
    }

    /// What the unmarked part of [from, to) counts.
    pub(super) fn unmarked(&self, from: u64, to: u64, weigh: impl Fn(u64, u64) -> u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.right <= from);
        let marked = self.ranges[first..].iter().take_while(|range| range.left < to).map(|range| {
            if from <= range.left && range.right <= to {
                range.weight
            } else {
                weigh(range.left.max(from), range.right.min(to))
            }
        });
        weigh(from, to).saturating_sub(marked.sum())
    }

    /// Whether the peer holds every byte of [from, to).
    pub(super) fn holds(&self, from: u64, to: u64) -> bool {
        let place = self.ranges.partition_point(|range| range.right <= from);
        self.ranges.get(place).is_some_and(|range| range.left <= from && to <= range.right)
    }

    /// The first unmarked stretch at or after `from` and before `limit`.
    pub(super) fn next_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let mut start = from;
        let index = self.ranges.partition_point(|range| range.right <= from);
        for range in &self.ranges[index..] {
            if start < range.left {
                break;
            }
            start = range.right;
        }
        let above = self.ranges.partition_point(|range| range.left <= start);
        let end = self.ranges.get(above).map_or(limit, |range| range.left.min(limit));
        (start < end).then_some((start, end))
    }

    /// The last unmarked stretch in [from, limit).
    pub(super) fn last_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let mut end = limit;
        let mut start = from;
        for range in self.ranges.iter().rev() {
            if range.right < end {
                start = from.max(range.right);
                break;
            }
            end = end.min(range.left);
        }
        (start < end).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(left: u64, right: u64) -> u64 {
        right - left
    }

    fn board(ranges: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(l, r) in ranges {
            board.mark(l, r, bytes);
        }
        board
    }

    #[test]
    fn marks_merge_and_count_their_news_once() {
        let mut b = Scoreboard::default();
        assert_eq!(b.mark(200, 300, bytes), 100);
        assert_eq!(b.mark(250, 350, bytes), 50);
        assert_eq!(b.mark(400, 500, bytes), 100);
        assert_eq!(b.mark(350, 400, bytes), 50);
        assert_eq!((b.ranges().collect(), b.total()), (vec![(200, 500)], 300));
        b.advance(450, bytes);
        assert_eq!((b.ranges().collect(), b.total()), (vec![(450, 500)], 50));
        assert_eq!((b.holds(460, 500), b.holds(449, 460), b.holds(460, 501)), (true, false, false));
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_above_make_a_byte_lost() {
        // RFC 6675 section 4, IsLost, with SMSS = 100.
        let lost_below = |ranges| board(ranges).lost_below(100, 3);
        assert_eq!(lost_below(&[(200, 300), (400, 500)]), 0);
        assert_eq!(lost_below(&[(200, 300), (400, 500), (600, 601)]), 200);
        assert_eq!(lost_below(&[(200, 400)]), 0);
        assert_eq!(lost_below(&[(200, 401)]), 200);
        assert_eq!(lost_below(&[(200, 300), (500, 701)]), 500);
    }

    #[test]
    fn holes_are_found_from_either_end() {
        let b = board(&[(200, 300), (400, 500)]);
        assert_eq!(b.next_hole(100, 600), Some((100, 200)));
        assert_eq!(b.next_hole(200, 600), Some((300, 400)));
        assert_eq!(b.next_hole(250, 350), Some((300, 350)));
        assert_eq!(b.next_hole(450, 600), Some((500, 600)));
        assert_eq!(b.next_hole(450, 500), None);
        assert_eq!(b.last_hole(100, 600), Some((500, 600)));
        assert_eq!(b.last_hole(100, 500), Some((300, 400)));
        assert_eq!(b.last_hole(320, 500), Some((320, 400)));
        assert_eq!(b.last_hole(400, 500), None);
        assert_eq!((b.unmarked(100, 600, bytes), b.unmarked(250, 450, bytes)), (300, 100));
    }
}
