//! The segments that were sent and are not cumulatively acknowledged, and what a stretch of them weighs
//! in the congestion window.
//!
//! BSD and the RFCs count bytes, Linux counts segments whatever their size ([`CwndUnit`]); a segment
//! then weighs one MSS. Whatever is compared with the window or moves it is weighed here: what may
//! leave, the pipe, what is SACKed, lost and acknowledged, and the flight that a loss halves.

use std::collections::VecDeque;

use super::config::CwndUnit;
use acklab_core::time::Time;

/// A segment, by its place in the stream.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset after its last byte.
    end: u64,
    /// When it left for the first time.
    at: Time,
}

/// The segments on their way, lost or SACKed.
#[derive(Debug)]
pub(super) struct Flight {
    unit: CwndUnit,
    /// Of a full segment, bytes.
    pub(super) mss: u64,
    /// Ascending.
    segments: VecDeque<Segment>,
}

impl Flight {
    pub(super) const fn new(unit: CwndUnit, mss: u32) -> Self {
        Self { unit, mss: mss as u64, segments: VecDeque::new() }
    }

    /// A segment up to `end` leaves for the first time.
    pub(super) fn push(&mut self, end: u64, at: Time) {
        self.segments.push_back(Segment { end, at });
    }

    /// Everything below `ack` is acknowledged; returns when the newest segment of it left.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Option<Time> {
        let mut newest = None;
        while let Some(segment) = self.segments.pop_front_if(|segment| segment.end <= ack) {
            newest = Some(segment.at);
        }
        newest
    }

    /// [start, end) leaves again as one segment, as it was cut before or not.
    pub(super) fn cut_again(&mut self, now: Time, start: u64, end: u64) {
        let (from, to) = (self.count_to(start), self.count_to(end - 1));
        if from < to {
            self.segments.drain(from..to);
        }
        if self.segments.get(from).is_none_or(|segment| segment.end != end) {
            self.segments.insert(from, Segment { end, at: now });
        }
    }

    /// What one segment of `bytes` weighs.
    pub(super) const fn weigh_one(&self, bytes: u64) -> u64 {
        match self.unit {
            CwndUnit::Bytes => bytes,
            CwndUnit::Segments => self.mss,
        }
    }

    /// What [una, nxt), which is all that is out, weighs.
    pub(super) fn weigh_all(&self, una: u64, nxt: u64) -> u64 {
        match self.unit {
            CwndUnit::Bytes => nxt - una,
            CwndUnit::Segments => self.segments.len() as u64 * self.mss,
        }
    }

    /// What [from, to) weighs; a segment belongs to the stretch that its last byte is in.
    pub(super) fn weigh(&self, from: u64, to: u64) -> u64 {
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

    /// Whether every segment ends in (una, max].
    pub(super) fn is_within(&self, una: u64, max: u64) -> bool {
        self.segments.iter().all(|segment| una < segment.end && segment.end <= max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(unit: CwndUnit) -> Flight {
        let mut flight = Flight::new(unit, 1000);
        for end in [101, 201, 1201, 1301] {
            flight.push(end, Time::from_nanos(end));
        }
        flight
    }

    #[test]
    fn a_stretch_weighs_its_bytes_or_a_full_segment_for_each_segment_that_ends_in_it() {
        let weights = |unit| {
            let flight = flight(unit);
            [(1, 1301), (1, 101), (1, 100), (100, 101), (101, 1200), (201, 1201), (1301, 1301)]
                .map(|(from, to)| flight.weigh(from, to))
        };
        assert_eq!(weights(CwndUnit::Bytes), [1300, 100, 99, 1, 1099, 1000, 0]);
        assert_eq!(weights(CwndUnit::Segments), [4000, 1000, 0, 1000, 1000, 1000, 0]);
    }

    #[test]
    fn what_leaves_again_in_other_pieces_is_weighed_as_it_left_last() {
        let mut flight = flight(CwndUnit::Segments);
        // Two small ones and 800 bytes of the third in one segment; the rest of it in another.
        flight.cut_again(Time::ZERO, 1, 1001);
        assert_eq!((flight.weigh(1, 1001), flight.weigh(1, 1301)), (1000, 3000));
        flight.cut_again(Time::ZERO, 1001, 1201);
        assert_eq!((flight.weigh(1001, 1201), flight.weigh(1, 1301)), (1000, 3000));
        flight.cut_again(Time::ZERO, 1001, 1301);
        assert_eq!((flight.weigh(1001, 1301), flight.weigh(1, 1301)), (1000, 2000));
        assert_eq!(flight.acknowledge(1301), Some(Time::from_nanos(1301)));
    }
}
