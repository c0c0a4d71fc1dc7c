//! A transmitter whose rate changes: by a schedule, or at random as that of a radio channel does.
//!
//! The rate is constant between changes; what is being transmitted goes on at the new one. Gauss-Markov: every
//! `every`, r' = mean + memory (r - mean) + sd sqrt(1 - memory^2) N(0, 1), so that mean and standard deviation are
//! those in the long run and neighbours have the correlation `memory` (Liang and Haas, INFOCOM 1999, for speeds);
//! values below `least` are `least`.

use std::sync::Arc;

use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// How a rate changes.
#[derive(Clone, Debug, PartialEq)]
pub enum RateChanges {
    /// From each of these times on its rate, times rising from 0; begun anew after `period`, if there is one.
    Schedule {
        /// When, and what from then on; at least one.
        steps: Arc<[(Span, BitRate)]>,
        /// After the last step's time.
        period: Option<Span>,
    },
    /// At random about a mean.
    GaussMarkov {
        /// In the long run.
        mean: BitRate,
        /// Standard deviation, bit/s.
        sd: f64,
        /// Correlation of neighbours, from 0 to 1.
        memory: f64,
        /// From one value to the next.
        every: Span,
        /// The lowest rate.
        least: BitRate,
    },
}

/// Puts packets on the wire.
#[derive(Clone, Debug)]
pub(super) enum Transmitter {
    /// Always as fast.
    Constant(BitRate),
    /// With a rate that changes.
    Changing(Box<Changing>),
}

/// A rate, until it changes.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    changes: RateChanges,
    rng: Rng,
    rate: BitRate,
    until: Time,
    /// The next entry of a schedule, and how often it began anew.
    next: usize,
    turns: u64,
}

impl Transmitter {
    pub(super) fn new(rate: BitRate, changes: Option<RateChanges>, seed: u64, name: &str) -> Self {
        let Some(changes) = changes else { return Self::Constant(rate) };
        let rng = Rng::named(seed, &format!("{name}/rate"));
        let mut changing = Changing { changes, rng, rate, until: Time::ZERO, next: 0, turns: 0 };
        changing.change();
        Self::Changing(Box::new(changing))
    }

    /// When a packet is on the wire whose transmission begins at `start`, no earlier than that of the one before.
    #[inline]
    pub(super) fn finish(&mut self, start: Time, bytes: u64) -> Time {
        match self {
            Self::Constant(rate) => start + rate.serialisation(bytes),
            Self::Changing(changing) => changing.finish(start, bytes),
        }
    }

    pub(super) fn reseed(&mut self, seed: u64) {
        if let Self::Changing(changing) = self {
            changing.reseed(seed);
        }
    }
}

impl Changing {
    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }

    fn finish(&mut self, start: Time, bytes: u64) -> Time {
        while self.until <= start {
            self.change();
        }
        let (mut at, mut bit_nanos) = (start, u128::from(bytes) * 8_000_000_000);
        loop {
            let left = u128::from(self.until.since(at).as_nanos());
            let passes = left * u128::from(self.rate.as_bps());
            if bit_nanos <= passes {
                return at
                    + Span::from_nanos(bit_nanos.div_ceil(u128::from(self.rate.as_bps())) as u64);
            }
            bit_nanos -= passes;
            at = self.until;
            self.change();
        }
    }

    /// The next rate, and how long it lasts.
    fn change(&mut self) {
        match &self.changes {
            RateChanges::Schedule { steps, period } => {
                let begin = |turns: u64| Time::ZERO + period.unwrap_or(Span::ZERO) * turns;
                if self.next == steps.len() {
                    (self.next, self.turns) = (0, self.turns + 1);
                }
                self.rate = steps[self.next].1;
                self.next += 1;
                self.until = match (steps.get(self.next), period) {
                    (Some((at, _)), _) => begin(self.turns) + *at,
                    (None, Some(_)) => begin(self.turns + 1),
                    (None, None) => Time::MAX,
                };
            }
            RateChanges::GaussMarkov { mean, sd, memory, every, least } => {
                let mean = mean.as_bps() as f64;
                let before = if self.next == 0 { mean } else { self.rate.as_bps() as f64 };
                let spread = if self.next == 0 { *sd } else { sd * (1.0 - memory * memory).sqrt() };
                let bps = mean + memory * (before - mean) + self.rng.normal(0.0, spread);
                let bps = bps.max(least.as_bps() as f64) as u64;
                self.rate = BitRate::from_bps(bps).unwrap_or(*least);
                self.until += *every;
                self.next = 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    fn mbit(rate: u64) -> BitRate {
        BitRate::from_bps(rate * 1_000_000).expect("a rate")
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + MS * ms
    }

    #[test]
    fn a_packet_that_meets_a_change_goes_on_at_the_new_rate() {
        let steps = [(Span::ZERO, mbit(8)), (MS * 10, mbit(1)), (MS * 20, mbit(4))].into();
        let changes = RateChanges::Schedule { steps, period: Some(MS * 30) };
        let mut link = Transmitter::new(mbit(8), Some(changes), 1, "link");
        // 1000 bytes are 1 ms at 8, 8 ms at 1, 2 ms at 4 Mbit/s.
        assert_eq!(link.finish(at(0), 1000), at(1));
        // Half a millisecond at 8 is 500 bytes; the others take 4 ms at 1.
        assert_eq!(link.finish(at(9) + Span::from_micros(500), 1000), at(14));
        // 19.0: 125 bytes in the last millisecond, 875 at 4: 1.75 ms.
        assert_eq!(link.finish(at(19), 1000), at(20) + Span::from_micros(1750));
        // Over a whole turn: 10 ms at 4 are 5000 bytes, then 8 again.
        assert_eq!(link.finish(at(25), 3500), at(31));
        assert_eq!(link.finish(at(61), 1000), at(62));
    }

    #[test]
    fn a_gauss_markov_rate_has_its_mean_spread_and_correlation() {
        let changes = RateChanges::GaussMarkov {
            mean: mbit(10),
            sd: 2e6,
            memory: 0.9,
            every: MS,
            least: mbit(1),
        };
        let Transmitter::Changing(mut rate) = Transmitter::new(mbit(10), Some(changes), 3, "link")
        else {
            panic!("changes")
        };
        let rates: Vec<f64> = (0..200_000)
            .map(|_| {
                rate.change();
                rate.rate.as_bps() as f64
            })
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let of = |lag: usize| {
            let pairs = rates.windows(lag + 1).map(|pair| (pair[0] - mean) * (pair[lag] - mean));
            pairs.sum::<f64>() / rates.len() as f64
        };
        assert!((mean / 10e6 - 1.0).abs() < 0.01, "{mean}");
        assert!((of(0).sqrt() / 2e6 - 1.0).abs() < 0.03, "{}", of(0));
        assert!((of(1) / of(0) - 0.9).abs() < 0.01, "{}", of(1) / of(0));
    }
}
