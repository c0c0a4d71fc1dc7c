//! [`Arrivals`]: when an application has something to send, and how much.
//!
//! One process serves both worlds: a [`crate::app::Source`] writes what arrives into a TCP
//! connection, a [`crate::peer::Datagrams`] sends it as datagrams. Times are counted from a start,
//! which its user sets. On/off sources with Pareto periods are those whose superposition is
//! self-similar (Willinger et al., SIGCOMM 1995). A process draws from the stream that it was given
//! and from nothing else.

use std::sync::Arc;

use acklab_core::math;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use crate::distribution::Draws;

/// How long a period lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Always as long.
    Constant(Span),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Span,
    },
    /// Pareto: with a shape of at most 2 its variance is infinite.
    Pareto {
        /// Mean.
        mean: Span,
        /// Shape, above 1.
        shape: f64,
    },
}

impl Length {
    fn draw(self, rng: &mut Rng) -> Span {
        match self {
            Self::Constant(span) => span,
            Self::Exponential { mean } => Span::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Self::Pareto { mean, shape } => {
                let shape = shape.max(LEAST_SHAPE);
                let least = mean.as_secs_f64() * (shape - 1.0) / shape;
                // Inversion of P(X > x) = (least / x)^shape.
                Span::from_secs_f64(least * math::exp(rng.exponential(1.0 / shape)))
            }
        }
    }
}

/// A process of arrivals.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `bytes` every `period`.
    Constant {
        /// From one arrival to the next.
        period: Span,
        /// Bytes of each.
        bytes: u32,
    },
    /// `bytes` at exponential intervals.
    Poisson {
        /// Mean interval.
        mean: Span,
        /// Bytes of each.
        bytes: u32,
    },
    /// Constant while on, silent while off.
    OnOff {
        /// How long it is on.
        on: Length,
        /// How long it is off.
        off: Length,
        /// From one arrival to the next while on.
        period: Span,
        /// Bytes of each.
        bytes: u32,
    },
    /// What a trace says: (time from the start, bytes), in order of time.
    Trace(Arc<[(Span, u32)]>),
}

/// Arrivals of a pattern between a start and a stop.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pattern: Pattern,
    rng: Rng,
    stop: Time,
    next: Option<(Time, u32)>,
    /// When the present on period ends.
    on_until: Time,
    /// Entries of the trace that are behind `next`.
    passed: usize,
    start: Time,
    /// Where the bytes of each are random, and the most that they may be.
    sizes: Option<(Draws, u32)>,
}

impl Arrivals {
    /// Arrivals from `start` on, and none at or after `stop`; `rng` draws what is random.
    pub fn new(pattern: Pattern, rng: Rng, start: Time, stop: Time) -> Self {
        let mut arrivals =
            Self { pattern, rng, stop, next: None, on_until: start, passed: 0, start, sizes: None };
        arrivals.next = match &arrivals.pattern {
            Pattern::Constant { bytes, .. } => Some((start, *bytes)),
            Pattern::Poisson { mean, bytes } => {
                let wait = arrivals.rng.exponential(mean.as_secs_f64());
                Some((start + Span::from_secs_f64(wait), *bytes))
            }
            Pattern::OnOff { on, bytes, .. } => {
                arrivals.on_until = start + on.draw(&mut arrivals.rng);
                Some((start, *bytes))
            }
            Pattern::Trace(entries) => entries.first().map(|&(at, bytes)| (start + at, bytes)),
        };
        arrivals.end_at_stop();
        arrivals
    }

    /// The same with random bytes in place of the pattern's, at most so many.
    #[must_use]
    pub fn with_sizes(self, draws: Draws, most: u32) -> Self {
        Self { sizes: Some((draws, most)), ..self }
    }

    /// When the next arrival is.
    pub fn next_time(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    /// Takes the next arrival out if it is due at `now`; returns its bytes.
    pub fn take_due(&mut self, now: Time) -> Option<u32> {
        let (at, bytes) = self.next.filter(|&(at, _)| at <= now)?;
        self.next = self.after(at);
        self.end_at_stop();
        Some(self.sizes.as_mut().map_or(bytes, |(draws, most)| draws.bytes(*most)))
    }

    /// Draws from its stream under another seed from now on. The next arrival stays when it is.
    pub fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
        if let Some((draws, _)) = &mut self.sizes {
            draws.reseed(seed);
        }
    }

    fn after(&mut self, at: Time) -> Option<(Time, u32)> {
        match &self.pattern {
            Pattern::Constant { period, bytes } => Some((at + at_least_a_tick(*period), *bytes)),
            Pattern::Poisson { mean, bytes } => {
                let wait = self.rng.exponential(mean.as_secs_f64());
                Some((at + Span::from_secs_f64(wait), *bytes))
            }
            Pattern::OnOff { on, off, period, bytes } => {
                let mut next = at + at_least_a_tick(*period);
                if next >= self.on_until {
                    next = self.on_until + off.draw(&mut self.rng);
                    self.on_until = next + at_least_a_tick(on.draw(&mut self.rng));
                }
                Some((next, *bytes))
            }
            Pattern::Trace(entries) => {
                self.passed += 1;
                let &(from_start, bytes) = entries.get(self.passed)?;
                Some(((self.start + from_start).max(at), bytes))
            }
        }
    }

    fn end_at_stop(&mut self) {
        self.next = self.next.filter(|&(at, _)| at < self.stop);
    }
}

/// A process that stood still would never let time pass.
fn at_least_a_tick(period: Span) -> Span {
    period.max(Span::from_nanos(1))
}

/// Below it a Pareto distribution has no mean.
const LEAST_SHAPE: f64 = 1.01;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pattern: Pattern, until: Span) -> Vec<(Time, u32)> {
        let rng = Rng::named(5, "test/arrivals");
        let mut arrivals = Arrivals::new(pattern, rng, Time::ZERO, Time::ZERO + until);
        let mut seen = Vec::new();
        while let Some(at) = arrivals.next_time() {
            assert_eq!(
                arrivals.take_due(at.max(Time::ZERO)).map(|bytes| seen.push((at, bytes))),
                Some(())
            );
        }
        seen
    }

    const MS: Span = Span::from_millis(1);

    #[test]
    fn a_constant_pattern_keeps_its_period_and_its_stop() {
        let seen = all(Pattern::Constant { period: MS * 14, bytes: 20 }, MS * 42);
        let times: Vec<u64> = seen.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 14, 28]);
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_its_variance() {
        let seen = all(Pattern::Poisson { mean: MS, bytes: 1 }, MS * 100_000);
        // 100 000 expected; five standard deviations of a Poisson count.
        assert!((98_419..=101_581).contains(&seen.len()), "{}", seen.len());
    }

    #[test]
    fn on_and_off_periods_have_their_means() {
        let pareto = Length::Pareto { mean: MS * 100, shape: 1.9 };
        for length in [Length::Exponential { mean: MS * 100 }, pareto] {
            let pattern = Pattern::OnOff { on: length, off: length, period: MS, bytes: 1 };
            let seen = all(pattern, MS * 2_000_000);
            // On for half of the time, an arrival per ms.
            let share = seen.len() as f64 / 2e6;
            assert!((0.47..0.53).contains(&share), "{length:?}: {share}");
            let gaps = seen.windows(2).filter(|pair| pair[1].0.since(pair[0].0) > MS * 2).count();
            assert!(gaps > 3000, "{length:?}: {gaps} silences");
        }
    }

    #[test]
    fn a_trace_is_followed_and_never_runs_backwards() {
        let trace: Arc<[(Span, u32)]> = [(MS, 10), (MS * 3, 20), (MS * 2, 30)].into();
        let seen = all(Pattern::Trace(trace), MS * 10);
        let at = |ms| Time::ZERO + MS * ms;
        assert_eq!(seen, [(at(1), 10), (at(3), 20), (at(3), 30)]);
    }
}
