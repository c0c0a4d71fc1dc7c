//! The segments that were sent and are not cumulatively acknowledged: how they were cut, when they left,
//! what the peer reported of them, which of them a switch sent back, and what a stretch of them weighs in
//! the congestion window.
//!
//! BSD and the RFCs count bytes, Linux counts segments whatever their size ([`CwndUnit`]); a segment
//! then weighs one MSS. Whatever is compared with the window or moves it is weighed here: what may
//! leave, the pipe, what is SACKed, lost and acknowledged, and the flight that a loss halves.
//!
//! A segment that came back (E-DCTCP) certainly did not arrive: it waits as long as the congestion control
//! says and goes again. Until the cumulative ACK passes it, duplicate ACKs for it begin no fast recovery,
//! and recovery from other losses passes over it. A copy that is not one of the segments as they were cut
//! last is stale and left to the timers.

use std::collections::VecDeque;

use super::returned::Returned;
use super::scoreboard::Scoreboard;
use crate::config::CwndUnit;
use acklab_core::delivery_rate::Stamp;
use acklab_core::time::Time;

/// A segment, from the end of the one before it.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset after its last byte.
    end: u64,
    /// When it left last.
    at: Time,
}

/// The segments in order, and their weight.
#[derive(Debug)]
struct Flight {
    unit: CwndUnit,
    /// Of a full segment, bytes.
    mss: u64,
    /// Ascending.
    segments: VecDeque<Segment>,
}

/// What is out: [una, nxt) of the sequence space, and a little of what lies beyond once a probe took it.
#[derive(Debug)]
pub(super) struct Queue {
    /// Oldest unacknowledged.
    una: u64,
    /// Next to send for the first time.
    nxt: u64,
    flight: Flight,
    /// What the peer holds beyond `una`, where it does.
    board: Option<Scoreboard>,
    returned: Returned,
    /// For each segment what the delivery rate needs of its latest departure, until it is delivered; empty
    /// where the congestion control asks for no rate.
    stamps: VecDeque<Option<Stamp>>,
    stamped: bool,
    /// When the newest segment left that has arrived, of those that left before `believed`: for what left later there
    /// was no time yet, so that the peer tells of an earlier departure (RACK.xmit_ts, RFC 8985 section 6.2).
    arrived: Time,
    believed: Time,
    /// The highest segment that the peer reported since it was asked for: its end, and when it left last.
    reported: Option<(u64, Time)>,
}

/// How segments are cut and when they left.
impl Queue {
    pub(super) fn new(unit: CwndUnit, mss: u32) -> Self {
        Self {
            una: 0,
            nxt: 0,
            flight: Flight { unit, mss: mss.into(), segments: VecDeque::new() },
            board: None,
            returned: Returned::default(),
            stamps: VecDeque::new(),
            stamped: false,
            arrived: Time::ZERO,
            believed: Time::ZERO,
            reported: None,
        }
    }

    /// The size of a full segment is agreed.
    pub(super) const fn set_mss(&mut self, mss: u32) {
        self.flight.mss = mss as u64;
    }

    /// Departures carry a stamp from now on.
    pub(super) fn keep_stamps(&mut self) {
        self.stamped = true;
        self.stamps.resize(self.flight.segments.len(), None);
    }

    /// Oldest unacknowledged.
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// Next to send for the first time.
    pub(super) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Size of a full segment, bytes.
    pub(super) const fn mss(&self) -> u64 {
        self.flight.mss
    }

    /// A segment up to `end` leaves for the first time.
    pub(super) fn push(&mut self, now: Time, end: u64, stamp: Option<Stamp>) {
        self.nxt = end;
        self.flight.segments.push_back(Segment { end, at: now });
        if self.stamped {
            self.stamps.push_back(stamp);
        }
    }

    /// [start, end) leaves again as one segment, as it was cut before or not.
    pub(super) fn cut_again(&mut self, now: Time, start: u64, end: u64, stamp: Option<Stamp>) {
        let (from, to) = (self.flight.count_to(start), self.flight.count_to(end - 1));
        let segments = &mut self.flight.segments;
        if !self.returned.is_empty() {
            self.returned.leave(start, end, segments.get(from).map(|segment| segment.end));
        }
        if self.stamped {
            let beyond = (to + 1).min(self.stamps.len());
            let undelivered = self.stamps.range(from..beyond).any(Option::is_some);
            self.stamps.drain(from..to);
            if segments.get(to).is_none_or(|segment| segment.end != end) {
                self.stamps.insert(from, None);
            }
            self.stamps[from] = stamp.filter(|_| undelivered);
        }
        segments.drain(from..to);
        match segments.get_mut(from).filter(|segment| segment.end == end) {
            Some(segment) => segment.at = now,
            None => segments.insert(from, Segment { end, at: now }),
        }
        if let Some(board) = &mut self.board {
            board.weigh_again(start, end, |left, right| self.flight.weigh(left, right));
        }
    }

    /// Everything below `ack` is acknowledged, and tells its stamps; returns when the newest segment of it
    /// left last.
    pub(super) fn acknowledge(
        &mut self,
        ack: u64,
        mut delivered: impl FnMut(Stamp),
    ) -> Option<Time> {
        let mut newest = None;
        while let Some(segment) = self.flight.segments.pop_front_if(|segment| segment.end <= ack) {
            newest = Some(segment.at);
            note(&mut self.arrived, self.believed, segment.at);
            if self.stamped {
                self.stamps.pop_front().flatten().into_iter().for_each(&mut delivered);
            }
        }
        self.una = self.una.max(ack);
        self.nxt = self.nxt.max(ack);
        self.returned.acknowledge(ack);
        if let Some(board) = &mut self.board {
            board.advance(self.una, |left, right| self.flight.weigh(left, right));
            if board.is_empty() {
                self.board = None;
            }
        }
        newest
    }
}

/// What stretches weigh.
impl Queue {
    /// What one segment of `bytes` weighs.
    pub(super) const fn weigh_one(&self, bytes: u64) -> u64 {
        match self.flight.unit {
            CwndUnit::Bytes => bytes,
            CwndUnit::Segments => self.flight.mss,
        }
    }

    /// What is sent and not acknowledged (RFC 5681's FlightSize).
    pub(super) fn flight_size(&self) -> u64 {
        match self.flight.unit {
            CwndUnit::Bytes => self.nxt - self.una,
            CwndUnit::Segments => self.flight.segments.len() as u64 * self.flight.mss,
        }
    }

    /// What [from, to) weighs; a segment belongs to the stretch that its last byte is in.
    pub(super) fn weigh(&self, from: u64, to: u64) -> u64 {
        self.flight.weigh(from, to)
    }

    /// What of [from, to) the peer did not report weighs.
    pub(super) fn unmarked(&self, from: u64, to: u64) -> u64 {
        let weigh = |left, right| self.flight.weigh(left, right);
        match &self.board {
            Some(board) => board.unmarked(from, to, weigh),
            None => weigh(from, to),
        }
    }
}

impl Flight {
    fn weigh(&self, from: u64, to: u64) -> u64 {
        match self.unit {
            CwndUnit::Bytes => to.saturating_sub(from),
            CwndUnit::Segments => {
                self.count_to(to).saturating_sub(self.count_to(from)) as u64 * self.mss
            }
        }
    }

    /// Segments whose last byte lies below `offset`.
    fn count_to(&self, offset: u64) -> usize {
        match (self.segments.front(), self.segments.back()) {
            (Some(first), Some(last)) if first.end <= offset => {
                if last.end <= offset {
                    self.segments.len()
                } else {
                    self.search(offset)
                }
            }
            _ => 0,
        }
    }

    /// The same where some do and some do not. Most segments are full, which gives the place away.
    fn search(&self, offset: u64) -> usize {
        let ends_by = |index: usize| self.segments.get(index).map(|segment| segment.end <= offset);
        let place = 1 + ((offset - self.segments[0].end) / self.mss) as usize;
        if ends_by(place - 1) == Some(true) && ends_by(place) == Some(false) {
            return place;
        }
        self.segments.partition_point(|segment| segment.end <= offset)
    }
}

/// What the peer reported (RFC 6675 section 4).
impl Queue {
    /// The peer holds [left, right); returns what of it is news, `None` where nothing is.
    pub(super) fn mark(&mut self, left: u64, right: u64) -> Option<u64> {
        if self.holds(left, right) {
            return None;
        }
        let news = self.unmarked(left, right);
        if self.believed > Time::ZERO {
            self.note_arrived(left, right);
        }
        let board = self.board.get_or_insert_default();
        board.mark(left, right, |left, right| self.flight.weigh(left, right));
        Some(news)
    }

    /// The peer is the first to report [left, right), but for what it reported before.
    fn note_arrived(&mut self, left: u64, right: u64) {
        let mut from = left;
        while let Some((start, end)) = self.next_hole(from, right) {
            let news = self.flight.count_to(start)..self.flight.count_to(end);
            for segment in self.flight.segments.range(news) {
                note(&mut self.arrived, self.believed, segment.at);
                let highest = self.reported.is_none_or(|(end, _)| end < segment.end);
                self.reported =
                    if highest { Some((segment.end, segment.at)) } else { self.reported };
            }
            from = end;
        }
    }

    /// Tells the stamps of what the peer holds, each once.
    pub(super) fn deliver_marked(&mut self, mut delivered: impl FnMut(Stamp)) {
        if !self.stamped {
            return;
        }
        for (left, right) in self.board.iter().flat_map(Scoreboard::ranges) {
            let marked = self.flight.count_to(left)..self.flight.count_to(right);
            for stamp in self.stamps.range_mut(marked) {
                stamp.take().into_iter().for_each(&mut delivered);
            }
        }
    }

    /// The peer may have reneged (RFC 2018 section 8).
    pub(super) fn forget_marks(&mut self) {
        self.board = None;
    }

    /// Whether it reported nothing.
    pub(super) fn is_unmarked(&self) -> bool {
        self.board.is_none()
    }

    /// Whether the peer holds every byte of [from, to).
    pub(super) fn holds(&self, from: u64, to: u64) -> bool {
        self.board.as_ref().is_some_and(|board| board.holds(from, to))
    }

    /// Every unmarked byte below this offset is lost (`IsLost`).
    pub(super) fn lost_below(&self, dup_thresh: u32) -> u64 {
        self.board.as_ref().map_or(0, |board| board.lost_below(self.flight.mss, dup_thresh))
    }

    /// The offset after the highest byte marked, where there is one.
    pub(super) fn highest_marked(&self) -> Option<u64> {
        self.board.as_ref().and_then(Scoreboard::highest)
    }

    /// The first unmarked stretch at or after `from` and before `limit`.
    pub(super) fn next_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        match &self.board {
            Some(board) => board.next_hole(from, limit),
            None => (from < limit).then_some((from, limit)),
        }
    }

    /// The last unmarked stretch in [from, limit).
    pub(super) fn last_hole(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        match &self.board {
            Some(board) => board.last_hole(from, limit),
            None => (from < limit).then_some((from, limit)),
        }
    }
}

/// The order of time (RFC 8985).
impl Queue {
    /// Of segments that left after `at` the peer cannot know yet.
    pub(super) const fn believe(&mut self, at: Time) {
        self.believed = at;
    }

    /// When the newest segment left that has arrived.
    pub(super) const fn arrived(&self) -> Time {
        self.arrived
    }

    /// The highest segment that was reported since the last call: its end, and when it left last.
    pub(super) const fn take_reported(&mut self) -> Option<(u64, Time)> {
        self.reported.take()
    }

    /// The end of the segment that holds `offset`, and when it left last.
    pub(super) fn segment_at(&self, offset: u64) -> Option<(u64, Time)> {
        let segment = self.flight.segments.get(self.flight.count_to(offset))?;
        Some((segment.end, segment.at))
    }
}

fn note(arrived: &mut Time, believed: Time, left: Time) {
    if left <= believed {
        *arrived = (*arrived).max(left);
    }
}

/// What came back.
impl Queue {
    /// The end of the segment that came back in which `offset` lies.
    #[inline]
    pub(super) fn returned_until(&self, offset: u64) -> Option<u64> {
        if self.returned.is_empty() {
            return None;
        }
        self.end_of(offset).filter(|&end| self.returned.has(end))
    }

    /// [start, end) came back; returns how often it has, `None` where it is no segment, waits or arrived.
    pub(super) fn take_back(&mut self, now: Time, start: u64, end: u64) -> Option<u32> {
        let is_one = self.end_of(start) == Some(end) && self.start_of(end) == start;
        if !is_one || self.holds(start, end) {
            return None;
        }
        self.returned.come_back(now, end)
    }

    /// Puts the next departure of the segment that holds `offset` off until `at`.
    pub(super) fn postpone(&mut self, offset: u64, at: Time) {
        if let Some(end) = self.end_of(offset) {
            self.returned.postpone(end, at);
        }
    }

    /// The segment that came back and goes again now.
    #[inline]
    pub(super) fn next_returned(&mut self, now: Time) -> Option<(u64, u64)> {
        while let Some(end) = self.returned.first_due(now) {
            let start = self.start_of(end);
            if !self.holds(start, end) {
                return Some((start, end));
            }
            // It arrived after all.
            self.returned.postpone(end, Time::MAX);
        }
        None
    }

    /// When the next one goes.
    pub(super) fn earliest_return(&self) -> Option<Time> {
        self.returned.earliest()
    }

    /// A time-out sends everything again.
    pub(super) fn forget_returns(&mut self) {
        self.returned.forget();
    }

    /// What the segments that came back weigh, but for those that are `counted` (by their first offset)
    /// otherwise, or arrived: they keep their place although loss recovery does not see them.
    pub(super) fn weigh_returned(&self, counted: impl Fn(u64) -> bool) -> u64 {
        let weights = self.returned.ends().map(|end| {
            let start = self.start_of(end);
            let here = !counted(start) && !self.holds(start, start + 1);
            if here { self.weigh(start, end) } else { 0 }
        });
        weights.sum()
    }

    /// Where the segment that holds `offset` ends.
    fn end_of(&self, offset: u64) -> Option<u64> {
        self.flight.segments.get(self.flight.count_to(offset)).map(|segment| segment.end)
    }

    /// Where the segment up to `end` begins.
    fn start_of(&self, end: u64) -> u64 {
        let before = self.flight.count_to(end - 1).checked_sub(1);
        before.map_or(self.una, |index| self.flight.segments[index].end)
    }
}

/// What must hold between any two calls.
impl Queue {
    pub(super) fn check(&self, max: u64) -> Result<(), &'static str> {
        let (una, nxt, segments) = (self.una, self.nxt, &self.flight.segments);
        let weigh = |left, right| self.weigh(left, right);
        let is_segment = |end| self.end_of(end - 1) == Some(end);
        let rules = [
            (una <= nxt && nxt <= max, "una <= nxt <= max"),
            (self.highest_marked().is_none_or(|top| top <= max), "SACK within what was sent"),
            (self.board.as_ref().map_or(0, Scoreboard::total) <= nxt - una, "SACK below flight"),
            (self.board.iter().all(|b| b.is_weighed(weigh)), "SACKed segments weigh what they do"),
            (segments.iter().all(|s| una < s.end && s.end <= max), "segments in flight"),
            (segments.iter().is_sorted_by_key(|s| s.end), "segments in order"),
            (self.returned.ends().all(is_segment), "what came back are segments"),
            (self.returned.ends().is_sorted(), "what came back is in order"),
            (!self.stamped || self.stamps.len() == segments.len(), "a stamp for each segment"),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |&(_, rule)| Err(rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::delivery_rate::Estimator;
    use acklab_core::time::Span;

    fn queue(unit: CwndUnit) -> Queue {
        let mut queue = Queue::new(unit, 1000);
        queue.una = 1;
        for end in [101, 201, 1201, 1301] {
            queue.push(Time::from_nanos(end), end, None);
        }
        queue
    }

    #[test]
    fn a_stretch_weighs_its_bytes_or_a_full_segment_for_each_segment_that_ends_in_it() {
        let weights = |unit| {
            let queue = queue(unit);
            [(1, 1301), (1, 101), (1, 100), (100, 101), (101, 1200), (201, 1201), (1301, 1301)]
                .map(|(from, to)| queue.weigh(from, to))
        };
        assert_eq!(weights(CwndUnit::Bytes), [1300, 100, 99, 1, 1099, 1000, 0]);
        assert_eq!(weights(CwndUnit::Segments), [4000, 1000, 0, 1000, 1000, 1000, 0]);
    }

    #[test]
    fn what_sack_reports_first_tells_once_when_its_highest_segment_left() {
        let mut queue = queue(CwndUnit::Bytes);
        queue.believe(Time::from_nanos(5000));
        queue.mark(1201, 1301);
        queue.mark(101, 201);
        assert_eq!(queue.take_reported(), Some((1301, Time::from_nanos(1301))));
        queue.mark(1201, 1301);
        assert_eq!(queue.take_reported(), None, "known already");
        queue.mark(201, 1201);
        assert_eq!(queue.take_reported(), Some((1201, Time::from_nanos(1201))));
    }

    #[test]
    fn what_leaves_again_in_other_pieces_is_weighed_as_it_left_last() {
        let mut queue = queue(CwndUnit::Segments);
        // Two small ones and 800 bytes of the third in one segment; the rest of it in another.
        queue.cut_again(Time::ZERO, 1, 1001, None);
        assert_eq!((queue.weigh(1, 1001), queue.weigh(1, 1301)), (1000, 3000));
        queue.cut_again(Time::ZERO, 1001, 1201, None);
        assert_eq!((queue.weigh(1001, 1201), queue.weigh(1, 1301)), (1000, 3000));
        queue.cut_again(Time::from_nanos(2000), 1001, 1301, None);
        assert_eq!((queue.weigh(1001, 1301), queue.weigh(1, 1301)), (1000, 2000));
        assert_eq!(queue.acknowledge(1301, drop), Some(Time::from_nanos(2000)));
    }

    #[test]
    fn what_came_back_goes_again_when_it_is_due_in_pieces_if_need_be() {
        let at = Time::from_nanos;
        let mut queue = queue(CwndUnit::Segments);
        assert_eq!(queue.take_back(at(0), 1, 201), None, "no segment");
        assert_eq!(queue.take_back(at(0), 201, 1201), Some(1));
        assert_eq!(queue.take_back(at(0), 201, 1201), None, "it waits already");
        queue.postpone(201, at(50));
        assert_eq!((queue.next_returned(at(49)), queue.earliest_return()), (None, Some(at(50))));
        assert_eq!(queue.next_returned(at(50)), Some((201, 1201)));
        queue.cut_again(at(50), 201, 1001, None);
        assert_eq!(queue.next_returned(at(50)), Some((1001, 1201)), "the rest");
        queue.cut_again(at(50), 1001, 1201, None);
        assert_eq!((queue.next_returned(at(99)), queue.earliest_return()), (None, None));
        assert_eq!(queue.take_back(at(60), 201, 1001), Some(2));
        let ends = [200, 201, 1001, 1201].map(|offset| queue.returned_until(offset));
        assert_eq!(ends, [None, Some(1001), Some(1201), None]);
        assert_eq!((queue.weigh_returned(|_| false), queue.check(1301)), (2000, Ok(())));
        queue.acknowledge(1001, drop);
        assert_eq!(queue.weigh_returned(|_| false), 1000);
        queue.forget_returns();
        assert_eq!((queue.returned_until(1001), queue.check(1301)), (None, Ok(())));
    }

    #[test]
    fn what_was_delivered_tells_its_stamp_once_and_what_left_again_its_last() {
        let mut rate = Estimator::new(Time::ZERO);
        let mut queue = Queue::new(CwndUnit::Bytes, 1000);
        queue.keep_stamps();
        for number in 0..4 {
            let stamp = rate.on_sent(Time::ZERO, 1000, 1000 * number);
            queue.push(Time::ZERO, 1000 * (number + 1), Some(stamp));
        }
        let mut told = 0;
        queue.mark(1000, 3000);
        queue.deliver_marked(|_| told += 1);
        queue.deliver_marked(|_| told += 1);
        assert_eq!(told, 2);
        let again = rate.on_sent(Time::ZERO + Span::from_millis(5), 1000, 1000);
        queue.cut_again(Time::ZERO, 0, 1000, Some(again));
        queue.cut_again(Time::ZERO, 1000, 2000, Some(again));
        queue.acknowledge(4000, |stamp| rate.on_delivered(stamp));
        let sample = rate.sample(Time::ZERO + Span::from_millis(9), (4000, 0), None);
        assert_eq!(sample.map(|sample| sample.tx_in_flight), Some(2000), "of the last departure");
        assert_eq!(queue.check(4000), Ok(()));
    }
}
