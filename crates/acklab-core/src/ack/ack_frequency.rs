//! QUIC's ACK frequency (draft-ietf-quic-ack-frequency-13, sections 4 and 6) as a receiver that was asked once and
//! for all: after more than `threshold` segments, or `delay` after the first, the first `warm_up` segments apart.
//!
//! The values that the draft leaves to the sender are those of practice: Google's QUICHE and Go's x/net/quic
//! acknowledge every second packet of the first 100 and then every tenth, and no later than a quarter of a round
//! trip where they know one. The draft's Reordering Threshold is the transport's: TCP acknowledges disorder at
//! once (RFC 5681 section 4.2), reliable UDP lets its sender ask (docs/rudp.md, section 5).

use super::delayed::{expire, is_due};
use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

crate::options! {
    /// The frame's fields.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Ack-Eliciting Threshold: so many segments may wait; the next one brings the ACK. 0 is every segment.
        threshold: u32 as count(0, 1_000_000) = "9",
        /// Requested Max Ack Delay.
        delay: Span as positive_span() = "25ms",
        /// At most this share of a round trip, where one is known; 1 leaves the delay as it is.
        rtt_share: f64 as positive_share() = "0.25",
        /// Segments of which every second one is acknowledged, before the threshold counts.
        warm_up: u32 as count(0, 1_000_000) = "100",
    }
}

/// A threshold and a delay, after a warm-up.
#[derive(Clone, Copy, Debug)]
pub struct AckFrequency {
    options: Options,
    seen: u32,
    deadline: Option<Time>,
}

impl AckFrequency {
    /// A fresh connection; `phase` is not used.
    pub const fn new(_phase: f64, options: Options) -> Self {
        Self { options, seen: 0, deadline: None }
    }
}

impl AckPolicy for AckFrequency {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        let Options { threshold, delay, rtt_share, warm_up } = self.options;
        self.seen = self.seen.saturating_add(1);
        let threshold = if self.seen > warm_up { threshold } else { threshold.min(1) };
        if is_due(threshold + 1, sample) {
            return Decision::Now;
        }
        let share = sample
            .srtt
            .filter(|_| rtt_share < 1.0)
            .map(|srtt| Span::from_secs_f64(srtt.as_secs_f64() * rtt_share));
        let share = share.map_or(delay, |share| share.max(GRANULARITY));
        self.deadline.get_or_insert(now + delay.min(share));
        Decision::Wait
    }

    fn on_request(&mut self, segments: u32) {
        (self.options.threshold, self.options.warm_up) = (segments.saturating_sub(1), 0);
    }

    fn on_ack_sent(&mut self, _now: Time) {
        self.deadline = None;
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        expire(&mut self.deadline, now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

/// kGranularity of RFC 9002 section 6.1.2: no timer is finer.
const GRANULARITY: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(waiting: u32, srtt: Option<Span>) -> DataSample {
        DataSample {
            len: 1000,
            mss: 1000,
            unacked_segments: waiting,
            unacked_bytes: waiting * 1000,
            srtt,
            ..DataSample::default()
        }
    }

    #[test]
    fn every_second_of_the_first_hundred_and_then_every_tenth() {
        let mut policy = AckFrequency::new(0.0, Options::default());
        let (mut waiting, mut at) = (0, Vec::new());
        for number in 1..=140 {
            waiting += 1;
            if policy.on_data(Time::ZERO, &sample(waiting, None)) == Decision::Now {
                policy.on_ack_sent(Time::ZERO);
                waiting = 0;
                at.push(number);
            }
        }
        let expected: Vec<u32> = (2..=100).step_by(2).chain((110..=140).step_by(10)).collect();
        assert_eq!(at, expected);
    }

    #[test]
    fn the_delay_is_a_quarter_of_the_round_trip_and_at_most_what_was_asked() {
        let due = |srtt| {
            let mut policy = AckFrequency::new(0.0, Options::default());
            policy.on_data(Time::ZERO, &sample(1, srtt));
            policy.poll_timeout().map(|at| at.since(Time::ZERO))
        };
        assert_eq!(due(None), Some(Span::from_millis(25)));
        assert_eq!(due(Some(Span::from_millis(40))), Some(Span::from_millis(10)));
        assert_eq!(due(Some(Span::from_millis(400))), Some(Span::from_millis(25)));
        assert_eq!(due(Some(Span::from_micros(400))), Some(Span::from_millis(1)));
    }
}
