//! The segments of a direction that were sent and not yet acknowledged, and the holes in between.
//!
//! Positions are sequence numbers unwrapped to 64 bits. Both lists are bounded: a capture that
//! holds one side of the connection only would let them grow for ever.

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// First position.
    pub(super) start: u64,
    /// First position after it.
    pub(super) end: u64,
    /// When it passed the capture point.
    pub(super) time: Time,
    /// IPv4 identification.
    pub(super) ip_id: u16,
    /// Some of its bytes were sent again: an ACK does not tell which copy it answers (Karn).
    pub(super) resent: bool,
}

/// What an ACK took off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    pub(super) segments: u32,
    pub(super) oldest: Option<Time>,
    pub(super) newest: Option<Time>,
    pub(super) resent: bool,
}

impl Acked {
    /// Time since the oldest segment taken off passed; `None` if none did or any was sent again.
    pub(super) fn age_of_oldest(&self, now: Time) -> Option<Span> {
        if self.resent { None } else { self.oldest.map(|time| now.since(time)) }
    }

    /// The same for the newest.
    pub(super) fn age_of_newest(&self, now: Time) -> Option<Span> {
        if self.resent { None } else { self.newest.map(|time| now.since(time)) }
    }
}

/// Segments in order of position, none overlapping.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    sent: VecDeque<Sent>,
}

impl Outstanding {
    /// Adds a segment beyond all others.
    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        if self.sent.len() == OUTSTANDING_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// Adds a segment that fills a hole, in its place.
    pub(super) fn insert(&mut self, sent: Sent) {
        let at = self.sent.partition_point(|s| s.start < sent.start);
        let fits = self.sent.get(at).is_none_or(|after| sent.end <= after.start)
            && at.checked_sub(1).is_none_or(|before| self.sent[before].end <= sent.start);
        if fits && self.sent.len() < OUTSTANDING_MAX {
            self.sent.insert(at, sent);
        }
    }

    /// Marks what lies in `start..end` as sent again.
    pub(super) fn mark_resent(&mut self, start: u64, end: u64) {
        let at = self.sent.partition_point(|s| s.end <= start);
        for sent in self.sent.range_mut(at..).take_while(|s| s.start < end) {
            sent.resent = true;
        }
    }

    /// The segment at exactly `start..end`.
    pub(super) fn find(&self, start: u64, end: u64) -> Option<&Sent> {
        let at = self.sent.partition_point(|s| s.start < start);
        self.sent.get(at).filter(|s| s.start == start && s.end == end)
    }

    /// Takes off everything below `acked_to`.
    #[inline]
    pub(super) fn acknowledge(&mut self, acked_to: u64) -> Acked {
        let mut acked = Acked::default();
        while let Some(&sent) = self.sent.front().filter(|s| s.end <= acked_to) {
            self.sent.pop_front();
            acked.segments += 1;
            acked.resent |= sent.resent;
            acked.oldest = Some(acked.oldest.map_or(sent.time, |t| t.min(sent.time)));
            acked.newest = Some(acked.newest.map_or(sent.time, |t| t.max(sent.time)));
        }
        // An ACK within a segment: the sender cut it up, or the capture shows a super-frame.
        if acked.segments == 0
            && let Some(sent) = self.sent.front().filter(|s| s.start < acked_to)
        {
            acked.resent = sent.resent;
            acked.oldest = Some(sent.time);
            acked.newest = Some(sent.time);
        }
        acked
    }
}

/// A stretch of the stream that was jumped over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    start: u64,
    end: u64,
    /// When it opened.
    pub(super) time: Time,
    /// IPv4 identification of the segment that jumped over it; 0 for an ACK.
    pub(super) ip_id: u16,
}

/// The holes of a direction in order of position.
#[derive(Debug, Default)]
pub(super) struct Holes(VecDeque<Hole>);

impl Holes {
    /// Notes that the stream jumped from `start` to `end`.
    pub(super) fn open(&mut self, start: u64, end: u64, time: Time, ip_id: u16) {
        if self.0.len() == HOLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Hole { start, end, time, ip_id });
    }

    /// Fills what lies in `start..end`; the first hole that it met, as it was.
    pub(super) fn fill(&mut self, start: u64, end: u64) -> Option<Hole> {
        let at = self.0.iter().position(|h| h.start < end && start < h.end)?;
        let met = self.0[at];
        let mut i = at;
        while let Some(&hole) = self.0.get(i).filter(|h| h.start < end) {
            match (hole.start < start, end < hole.end) {
                (false, false) => {
                    self.0.remove(i);
                    continue;
                }
                (false, true) => self.0[i].start = end,
                (true, false) => self.0[i].end = start,
                (true, true) => {
                    self.0[i].end = start;
                    if self.0.len() < HOLES_MAX {
                        self.0.insert(i + 1, Hole { start: end, ..hole });
                    }
                }
            }
            i += 1;
        }
        Some(met)
    }
}

/// 640 KB at most; a window of 23 MB in full segments.
const OUTSTANDING_MAX: usize = 16_384;
/// More holes than a sender's SACK scoreboard would hold.
const HOLES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(start: u64, end: u64, millis: u64) -> Sent {
        let time = Time::from_nanos(millis * 1_000_000);
        Sent { start, end, time, ip_id: 0, resent: false }
    }

    #[test]
    fn an_ack_takes_off_whole_segments_and_tells_oldest_and_newest() {
        let mut outstanding = Outstanding::default();
        outstanding.push(sent(0, 100, 1));
        outstanding.push(sent(100, 1_100, 2));
        outstanding.push(sent(1_100, 1_150, 3));
        let acked = outstanding.acknowledge(1_120);
        assert_eq!(acked.segments, 2);
        assert_eq!(acked.oldest, Some(Time::from_nanos(1_000_000)));
        assert_eq!(acked.newest, Some(Time::from_nanos(2_000_000)));
        assert_eq!(outstanding.acknowledge(1_150).segments, 1);
    }

    #[test]
    fn a_hole_fills_from_both_ends_and_from_the_middle() {
        let mut holes = Holes::default();
        holes.open(100, 200, Time::ZERO, 7);
        assert!(holes.fill(0, 100).is_none());
        assert!(holes.fill(140, 160).is_some());
        assert!(holes.fill(140, 160).is_none());
        assert!(holes.fill(100, 140).is_some());
        assert!(holes.fill(150, 250).is_some());
        assert!(holes.0.is_empty());
    }
}
