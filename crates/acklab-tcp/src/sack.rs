//! The sender's SACK scoreboard: RFC 6675 section 3 and the functions of its section 4.
//!
//! Ranges of 64-bit offsets that the peer holds beyond the cumulative ACK. `IsLost` is monotonic (if
//! a byte is lost so is every unsacked byte below it), so it is one boundary, found by walking from
//! the top until `DupThresh` ranges, or more than `DupThresh - 1` segments of bytes, lie above.

/// What the peer reported beyond the cumulative acknowledgment.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// Ascending, neither touching nor overlapping.
    ranges: Vec<(u64, u64)>,
    total: u64,
}

impl Scoreboard {
    /// Marks [left, right) as held by the peer; returns how many bytes of it are news.
    pub fn mark(&mut self, left: u64, right: u64) -> u64 {
        if left >= right {
            return 0;
        }
        let first = self.ranges.partition_point(|&(_, r)| r < left);
        let last = self.ranges.partition_point(|&(l, _)| l <= right);
        if first == last {
            self.ranges.insert(first, (left, right));
            self.total += right - left;
            return right - left;
        }
        let merged = (left.min(self.ranges[first].0), right.max(self.ranges[last - 1].1));
        let covered: u64 = self.ranges[first..last].iter().map(|&(l, r)| r - l).sum();
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        let news = merged.1 - merged.0 - covered;
        self.total += news;
        news
    }

    /// Forgets everything below the cumulative acknowledgment `una`.
    pub fn advance(&mut self, una: u64) {
        if self.ranges.is_empty() {
            return;
        }
        let gone = self.ranges.partition_point(|&(_, r)| r <= una);
        for (l, r) in self.ranges.drain(..gone) {
            self.total -= r - l;
        }
        if let Some((left, _)) = self.ranges.first_mut()
            && *left < una
        {
            self.total -= una - *left;
            *left = una;
        }
    }

    /// Forgets everything: the peer may have reneged (RFC 2018 section 8).
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.total = 0;
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What is marked, ascending.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Bytes marked.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The offset after the highest byte marked.
    pub fn highest(&self) -> Option<u64> {
        self.ranges.last().map(|&(_, right)| right)
    }

    /// Every unmarked byte below this offset is lost (`IsLost` of RFC 6675 section 4).
    pub fn lost_below(&self, mss: u32, dup_thresh: u32) -> u64 {
        let bytes_needed = u64::from(dup_thresh.saturating_sub(1)) * u64::from(mss);
        let mut bytes = 0;
        for (count, &(left, right)) in self.ranges.iter().rev().enumerate() {
            bytes += right - left;
            if count + 1 >= dup_thresh as usize || bytes > bytes_needed {
                return left;
            }
        }
        0
    }

    /// Unmarked bytes in [from, to).
    pub fn unmarked(&self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.ranges.partition_point(|&(_, r)| r <= from);
        let marked: u64 = self.ranges[first..]
            .iter()
            .take_while(|&&(l, _)| l < to)
            .map(|&(l, r)| r.min(to) - l.max(from))
            .sum();
        to - from - marked
    }

    /// The first unmarked stretch at or after `from` and before `limit`.
    pub fn next_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let mut start = from;
        let index = self.ranges.partition_point(|&(_, r)| r <= from);
        for &(left, right) in &self.ranges[index..] {
            if start < left {
                break;
            }
            start = right;
        }
        let above = self.ranges.partition_point(|&(l, _)| l <= start);
        let end = self.ranges.get(above).map_or(limit, |&(l, _)| l.min(limit));
        (start < end).then_some((start, end))
    }

    /// The last unmarked stretch in [from, limit).
    pub fn last_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let mut end = limit;
        let mut start = from;
        for &(left, right) in self.ranges.iter().rev() {
            if right < end {
                start = from.max(right);
                break;
            }
            end = end.min(left);
        }
        (start < end).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(ranges: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(l, r) in ranges {
            board.mark(l, r);
        }
        board
    }

    #[test]
    fn marks_merge_and_count_their_news_once() {
        let mut b = Scoreboard::default();
        assert_eq!(b.mark(200, 300), 100);
        assert_eq!(b.mark(250, 350), 50);
        assert_eq!(b.mark(400, 500), 100);
        assert_eq!(b.mark(350, 400), 50);
        assert_eq!((b.ranges.as_slice(), b.total()), (&[(200, 500)][..], 300));
        b.advance(450);
        assert_eq!((b.ranges.as_slice(), b.total()), (&[(450, 500)][..], 50));
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_above_make_a_byte_lost() {
        // RFC 6675 section 4, IsLost, with SMSS = 100.
        assert_eq!(board(&[(200, 300), (400, 500)]).lost_below(100, 3), 0);
        assert_eq!(board(&[(200, 300), (400, 500), (600, 601)]).lost_below(100, 3), 200);
        assert_eq!(board(&[(200, 400)]).lost_below(100, 3), 0);
        assert_eq!(board(&[(200, 401)]).lost_below(100, 3), 200);
        assert_eq!(board(&[(200, 300), (500, 701)]).lost_below(100, 3), 500);
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
        assert_eq!((b.unmarked(100, 600), b.unmarked(250, 450)), (300, 100));
    }
}
