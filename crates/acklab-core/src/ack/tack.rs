//! TACK (Li et al., SIGCOMM 2020, section 4): an ACK each `segments` full segments or `beta` times per least round
//! trip, whichever is rarer: f = min(bw / (L MSS), beta / RTTmin).
//!
//! So at high rates the number of ACKs depends on the round trip alone, and at low ones it is that of counting.
//! What counting leaves over waits for `delay` (RFC 9293 section 3.8.6.3). Events are answered at once: disorder
//! by the transport, a window that was closed here. The paper's sender tells its least round trip to the receiver;
//! TCP has no field for it, so the receiver takes the least that it measured itself, which for a host that only
//! receives is that of the handshake. Without one, counting alone decides.

use super::delayed::expire;
use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

crate::options! {
    /// The paper's parameters with its values.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// ACKs per least round trip; 2 is the least that keeps a window moving, 4 costs a third of a window more buffer.
        beta: u32 as count(2, 1000) = "4",
        /// L: full segments per ACK at low rates.
        segments: u32 as count(1, 1000) = "2",
        /// How long less than that waits.
        delay: Span as positive_span() = "40ms",
    }
}

/// The rarer of counting and a period.
#[derive(Clone, Copy, Debug)]
pub struct Tack {
    options: Options,
    least_rtt: Option<Span>,
    last_ack: Option<Time>,
    deadline: Option<Time>,
}

impl Tack {
    /// A fresh connection; `phase` is not used.
    pub const fn new(_phase: f64, options: Options) -> Self {
        Self { options, least_rtt: None, last_ack: None, deadline: None }
    }

    /// Before when no ACK leaves for its count.
    fn earliest(&self, now: Time) -> Time {
        let period = self.least_rtt.map(|rtt| rtt / u64::from(self.options.beta));
        let at = self.last_ack.zip(period).map(|(last, period)| last + period.min(LONGEST));
        at.unwrap_or(now)
    }
}

impl AckPolicy for Tack {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        self.least_rtt = [self.least_rtt, sample.srtt].into_iter().flatten().min();
        let counted = sample.unacked_bytes >= self.options.segments.saturating_mul(sample.mss);
        let due = if counted { self.earliest(now) } else { now + self.options.delay };
        if sample.was_zero_window || due <= now {
            return Decision::Now;
        }
        self.deadline = Some(self.deadline.map_or(due, |at| at.min(due)));
        Decision::Wait
    }

    fn on_ack_sent(&mut self, now: Time) {
        (self.last_ack, self.deadline) = (Some(now), None);
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        expire(&mut self.deadline, now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

/// RFC 9293 section 3.8.6.3: less than half a second.
const LONGEST: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// ACKs of `seconds` of full segments `gap` apart behind a round trip of `rtt`.
    fn acks(options: Options, rtt: Option<Span>, gap: Span, seconds: u64) -> u64 {
        let mut policy = Tack::new(0.0, options);
        let (mut now, mut waiting, mut acks) = (Time::ZERO, 0, 0);
        let end = now + Span::from_secs(seconds);
        let mut next = now + gap;
        while next <= end {
            let timer = policy.poll_timeout().filter(|&at| at <= next);
            now = timer.unwrap_or(next);
            let decision = if timer.is_some() {
                policy.handle_timeout(now, Span::from_secs(1))
            } else {
                next += gap;
                waiting += 1;
                let sample = DataSample {
                    len: MSS,
                    mss: MSS,
                    unacked_segments: waiting,
                    unacked_bytes: waiting * MSS,
                    srtt: rtt,
                    ..DataSample::default()
                };
                policy.on_data(now, &sample)
            };
            if decision == Decision::Now {
                policy.on_ack_sent(now);
                (waiting, acks) = (0, acks + 1);
            }
        }
        acks
    }

    #[test]
    fn the_frequency_is_the_lesser_of_counting_and_beta_per_round_trip() {
        let options = Options::default();
        let rtt = Some(Span::from_millis(40));
        // 10 000 segments per second: 4 per 40 ms are 100 per second, counting would give 5000.
        let fast = acks(options, rtt, Span::from_micros(100), 10);
        assert!((990..=1001).contains(&fast), "{fast}");
        // 100 per second: each second one is 50, less than 100.
        assert_eq!(acks(options, rtt, Span::from_millis(10), 10), 500);
        // No round trip known: counting.
        assert_eq!(acks(options, None, Span::from_micros(100), 1), 5000);
    }

    #[test]
    fn what_counting_leaves_over_waits_no_longer_than_the_delay() {
        // One segment a second: each waits for its own timer, the last one's comes after the end.
        assert_eq!(acks(Options::default(), None, Span::from_secs(1), 10), 9);
    }
}
