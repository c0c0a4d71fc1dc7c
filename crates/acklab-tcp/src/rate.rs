//! Delivery-rate samples of TCP ([`acklab_core::delivery_rate`]): stamps by place in the stream.
//!
//! Kept only for an algorithm that asks ([`CongestionControl::wants_rate`]). Round trips come from
//! cumulative ACKs only, so the least one is known a little later than with SACK's help.

use std::collections::VecDeque;

use super::connection::Connection;
use super::sack::Scoreboard;
use acklab_core::cc::{CongestionControl, RateSample};
use acklab_core::delivery_rate::{Estimator, Stamp};
use acklab_core::time::{Span, Time};

/// A segment that is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: u64,
    /// `None` once it was delivered.
    stamp: Option<Stamp>,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct RateSampler {
    /// In order of their place in the stream.
    segments: VecDeque<Segment>,
    path: Estimator,
}

impl RateSampler {
    pub(super) const fn new(now: Time) -> Self {
        Self { segments: VecDeque::new(), path: Estimator::new(now) }
    }

    /// The stretch [start, end) of that weight leaves; `pipe` was on the way before it.
    pub(super) fn on_sent(&mut self, now: Time, (start, end): (u64, u64), weight: u64, pipe: u64) {
        let stamp = self.path.on_sent(now, weight, pipe);
        if self.segments.back().is_none_or(|last| last.end < end) {
            self.segments.push_back(Segment { end, stamp: Some(stamp) });
            return;
        }
        // Sent again, perhaps in other pieces.
        let first = self.segments.partition_point(|segment| segment.end <= start);
        let mut from = start;
        for segment in self.segments.range_mut(first..) {
            if from >= end {
                break;
            }
            if segment.stamp.is_some() {
                segment.stamp = Some(stamp);
            }
            from = segment.end;
        }
    }

    /// Segments up to `ack` and those that `board` holds are delivered; `sacked`: the board has news.
    pub(super) fn on_ack(&mut self, ack: u64, board: &Scoreboard, sacked: bool) {
        while let Some(segment) = self.segments.pop_front_if(|segment| segment.end <= ack) {
            segment.stamp.into_iter().for_each(|stamp| self.path.on_delivered(stamp));
        }
        if !sacked {
            return;
        }
        for (left, right) in board.ranges() {
            let first = self.segments.partition_point(|segment| segment.end <= left);
            let mut index = first;
            while let Some(segment) = self.segments.get_mut(index).filter(|s| s.end <= right) {
                if let Some(stamp) = segment.stamp.take() {
                    self.path.on_delivered(stamp);
                }
                index += 1;
            }
        }
    }

    /// The sample of an ACK that delivered and lost so many bytes.
    pub(super) fn sample(
        &mut self,
        now: Time,
        news: (u64, u64),
        rtt: Option<Span>,
    ) -> Option<RateSample> {
        self.path.sample(now, news, rtt)
    }

    /// A time-out inferred the loss of `bytes`.
    pub(super) const fn on_lost(&mut self, bytes: u64) {
        self.path.on_lost(bytes);
    }
}

impl Connection {
    /// Nothing waits to be sent: samples of what leaves next tell of the application.
    pub(super) fn note_app_limited(&mut self) {
        if self.rate.is_some() {
            let pipe = self.pipe();
            if pipe < self.cc.cwnd()
                && let Some(rate) = &mut self.rate
            {
                rate.path.on_app_limited(pipe);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Sends segments of 1000 bytes at these times, from offset 1 on.
    fn sent(times: &[u64]) -> RateSampler {
        let mut rate = RateSampler::new(Time::ZERO);
        for (number, &ms) in times.iter().enumerate() {
            let start = 1 + 1000 * number as u64;
            rate.on_sent(at(ms), (start, start + 1000), 1000, 1000 * number as u64);
        }
        rate
    }

    #[test]
    fn a_burst_that_is_acknowledged_at_the_bottlenecks_pace_shows_its_rate() {
        // Ten at once; ACKs 10 ms apart from 100 ms on, each of which sends another.
        let mut rate = sent(&[0; 10]);
        let board = Scoreboard::default();
        let mut samples = Vec::new();
        for number in 0..30 {
            let now = 100 + 10 * number;
            rate.on_ack(1001 + 1000 * number, &board, false);
            let rtt = Some(Span::from_millis(100));
            let sample = rate.sample(at(now), (1000, 0), rtt).expect("a least round trip long");
            samples.push((sample.delivered, sample.interval.as_micros() / 1000));
            assert_eq!(sample.total_delivered, 1000 * (number + 1));
            let start = 10_001 + 1000 * number;
            rate.on_sent(at(now), (start, start + 1000), 1000, 9000);
        }
        assert_eq!((samples[0], samples[9]), ((1000, 100), (10_000, 190)), "since the burst");
        // The eleventh left at 100 ms, when one was delivered; the burst before it at 0.
        assert_eq!((samples[10], samples[19]), ((10_000, 100), (10_000, 190)));
        assert_eq!(samples[20..], [(10_000, 100); 10], "1000 bytes in 10 ms");
    }

    #[test]
    fn sacked_segments_make_samples_once_and_losses_are_counted() {
        let mut rate = sent(&[0; 4]);
        let mut board = Scoreboard::default();
        board.mark(1001, 3001, |left, right| right - left);
        rate.on_ack(1, &board, true);
        let sample = rate.sample(at(50), (2000, 1000), None).expect("a sample");
        assert_eq!((sample.delivered, sample.lost, sample.tx_in_flight), (2000, 1000, 3000));
        rate.on_ack(1, &board, true);
        assert_eq!(rate.sample(at(51), (0, 0), None), None, "nothing new");
        rate.on_ack(4001, &board, false);
        let sample = rate.sample(at(60), (2000, 0), None).expect("a sample");
        assert_eq!((sample.delivered, sample.total_delivered), (4000, 4000));
    }

    #[test]
    fn a_pause_of_the_application_marks_what_leaves_until_its_pipe_is_delivered() {
        let mut rate = sent(&[0]);
        rate.path.on_app_limited(1000);
        rate.on_sent(at(10), (1001, 2001), 1000, 1000);
        let board = Scoreboard::default();
        rate.on_ack(1001, &board, false);
        assert!(!rate.sample(at(20), (1000, 0), None).expect("a sample").app_limited);
        rate.on_ack(2001, &board, false);
        assert!(rate.sample(at(30), (1000, 0), None).expect("a sample").app_limited);
        rate.on_sent(at(40), (2001, 3001), 1000, 0);
        rate.on_ack(3001, &board, false);
        assert!(!rate.sample(at(50), (1000, 0), None).expect("a sample").app_limited);
    }
}
