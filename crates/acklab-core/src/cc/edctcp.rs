//! E-DCTCP (Huang and Hu, ICC 2015, by its abstract): a switch that would drop a packet sends it back to
//! its sender instead, which sends it again after a simplified binary exponential back-off.
//!
//! Everything else is DCTCP. The abstract gives no constants; ours are those of Ethernet's back-off
//! (IEEE 802.3 section 4.2.3.2.5) with a round trip for its slot: a segment that came back n times waits
//! for r round trips, r uniform on 0..2^k, k = min(n, 6). The first segment to come back in a window of
//! data also cuts the window as a mark would: by half of alpha.

use super::dctcp::{self, Dctcp};
use super::{CongestionControl, EcnFeedback, ReturnedSample, Start};
use crate::rng::Rng;
use crate::time::{Span, Time};

crate::options! {
    /// E-DCTCP's parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Largest exponent k of the back-off.
        exponent_max: u32 as count(0, 32) = "6",
    }
    within {
        /// DCTCP's.
        dctcp: dctcp::Options,
    }
}

/// The slot of the back-off before a round trip was measured.
const UNMEASURED: Span = Span::from_millis(100);

/// E-DCTCP's sender.
#[derive(Clone, Debug)]
pub struct Edctcp {
    dctcp: Dctcp,
    exponent_max: u32,
    rng: Rng,
}

impl Edctcp {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            dctcp: Dctcp::new(start, options.dctcp),
            exponent_max: options.exponent_max.min(32),
            rng: Rng::named(start.seed, "cc/edctcp"),
        }
    }

    /// The estimated share of marked bytes.
    pub const fn alpha(&self) -> f64 {
        self.dctcp.alpha()
    }
}

impl CongestionControl for Edctcp {
    fn on_returned(&mut self, _now: Time, sample: &ReturnedSample) -> Span {
        self.dctcp.cut(sample.in_flight);
        let slots = self.rng.below(1 << sample.times.min(self.exponent_max));
        sample.srtt.unwrap_or(UNMEASURED) * slots
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }

    crate::forward! { dctcp: on_ack on_loss on_ecn on_rto on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Snapshot;

    fn edctcp(seed: u64) -> Edctcp {
        let start = Start { mss: 1000, initial_window: 20_000, initial_ssthresh: 10_000, seed };
        Edctcp::new(&start, Options::default())
    }

    fn slots(edctcp: &mut Edctcp, times: u32) -> u64 {
        let srtt = Some(Span::from_millis(10));
        let sample = ReturnedSample { in_flight: 20_000, times, srtt };
        edctcp.on_returned(Time::ZERO, &sample).as_nanos() / 10_000_000
    }

    #[test]
    fn the_wait_is_uniform_below_two_to_the_number_of_returns_and_no_more_than_64() {
        let mut edctcp = edctcp(1);
        for (times, bound) in [(1, 2), (2, 4), (3, 8), (6, 64), (7, 64), (100, 64)] {
            let drawn: Vec<u64> = (0..4000).map(|_| slots(&mut edctcp, times)).collect();
            assert_eq!(drawn.iter().max(), Some(&(bound - 1)), "after {times}");
            let mean = drawn.iter().sum::<u64>() as f64 / 4000.0;
            let expected = (bound - 1) as f64 / 2.0;
            // Four standard errors of a uniform mean.
            let error = 4.0 * bound as f64 / (12.0_f64 * 4000.0).sqrt();
            assert!((mean - expected).abs() < error, "after {times}: {mean} for {expected}");
        }
    }

    #[test]
    fn the_wait_depends_on_the_seed_alone() {
        let draw = |seed| {
            let mut edctcp = edctcp(seed);
            (0..20).map(|_| slots(&mut edctcp, 6)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in binary")]
    fn the_first_return_of_a_window_of_data_cuts_the_window_by_half_of_alpha() {
        let mut edctcp = edctcp(1);
        assert_eq!(edctcp.alpha(), 1.0);
        slots(&mut edctcp, 1);
        slots(&mut edctcp, 1);
        assert_eq!(edctcp.snapshot(), Snapshot { cwnd: 10_000, ssthresh: 10_000 });
    }
}
