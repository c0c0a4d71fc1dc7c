//! The mean of one value per run: `E[<=T; N](max: x)`.
//!
//! Values between 0 and 1, as shares of time are, have the confidence sequence by betting, which holds
//! for every law and at every look.
//!
//! Other values have for a number of runs Student's t, which is what it says if the values are normal, and
//! nearly so for large N otherwise. On the way to N, and where the width ends the runs, they have an
//! asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, Ann. Stat. 52(6), 2024,
//! theorem 2.2): with s the standard error, after n runs
//!
//!   mean +- s sqrt(2 (1 + 1/(n r)) ln(sqrt(n r + 1) / alpha)),   r = (-2 ln alpha + ln(1 - 2 ln alpha)) / 1000,
//!
//! for every law with a variance, at all looks from a number of runs on that has to be large; r makes it
//! tightest about the thousandth. To the variance is added (2R)²/n, R the range of the values seen: as
//! though four more runs had been off by all of R, as Agresti and Coull (Am. Stat. 52, 1998) add four to a
//! proportion, so that values which happen to be alike end nothing. R²/n vanishes in the limit.
//!
//! What was not seen cannot be in such an interval. So there is none before the number of runs by which
//! an outcome of probability [`UNSEEN`] has shown itself with confidence 1 - alpha: 299 runs at 0.05.
//! If all values are one until then, there is no spread to judge by, and no interval is given, nor is
//! one for a number of runs with one value; [`Expectation::differing_at_most`] is what can be said.
//!
//! A run in which the expression never had a finite value has none; such runs are counted apart.

use crate::betting::Betting;
use crate::interval::{Interval, Validity};
use crate::sprt::{Claim, Decision};
use crate::student::t_quantile;

/// Where a mean without a number of runs ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfWidth {
    /// At most this share of the mean.
    Relative(f64),
    /// At most this much, in the expression's unit.
    Absolute(f64),
}

impl HalfWidth {
    pub(crate) fn is_usable(self) -> bool {
        let (Self::Relative(width) | Self::Absolute(width)) = self;
        width > 0.0
    }

    /// In the unit of `value`.
    pub(crate) fn about(self, value: f64) -> f64 {
        match self {
            Self::Relative(share) => share * value.abs(),
            Self::Absolute(width) => width,
        }
    }
}

/// How well a mean is to be known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanPlan {
    /// 1 - confidence, inside 0..1.
    pub alpha: f64,
    /// Where the runs end without a number of them or a test.
    pub half_width: HalfWidth,
    /// Exactly so many runs; with a test, at most. Above 1.
    pub runs: Option<u64>,
    /// The values lie between 0 and 1.
    pub is_share: bool,
    /// Is the mean that large? For shares alone.
    pub test: Option<MeanTest>,
}

/// Is a mean at least, or at most, so large?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTest {
    /// What it is compared with, inside 0..=1.
    pub threshold: f64,
    /// `>=`; else `<=`.
    pub at_least: bool,
    /// Down to so far below the threshold either answer is right enough. Above 0.
    pub delta_minus: f64,
    /// Up to so far above it either answer is right enough. Above 0.
    pub delta_plus: f64,
}

impl MeanTest {
    /// The answer is the one that the interval leaves; of both, the likelier.
    fn decide(&self, interval: &Interval, mean: f64) -> Decision {
        let Self { threshold, at_least, delta_minus, delta_plus } = *self;
        let is_high = interval.low >= threshold - delta_minus;
        let is_low = interval.high <= threshold + delta_plus;
        let is_high = match (is_high, is_low) {
            (false, false) => return Decision::Undecided,
            (true, true) => mean >= threshold,
            _ => is_high,
        };
        if is_high == at_least { Decision::Accepted } else { Decision::Rejected }
    }
}

/// A running mean.
#[derive(Clone, Debug)]
pub struct Expectation {
    plan: MeanPlan,
    values: Values,
    betting: Option<Betting>,
    /// When the betting is looked at next, which takes a while, and its ends at the last look.
    next_look: u64,
    ends: (f64, f64),
    without_value: u64,
    decision: Decision,
    done: bool,
}

/// Moments and range of the runs' values (Welford, Technometrics 4, 1962).
#[derive(Clone, Copy, Debug)]
struct Values {
    count: u64,
    mean: f64,
    /// Sum of the squared deviations from the mean.
    squares: f64,
    least: f64,
    largest: f64,
}

impl Values {
    const NONE: Self = Self {
        count: 0,
        mean: 0.0,
        squares: 0.0,
        least: f64::INFINITY,
        largest: f64::NEG_INFINITY,
    };

    fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        self.least = self.least.min(value);
        self.largest = self.largest.max(value);
    }

    fn range(&self) -> f64 {
        self.largest - self.least
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count as f64 - 1.0)
    }
}

impl Expectation {
    /// Nothing seen yet; `None` if the plan is useless.
    pub fn new(plan: MeanPlan) -> Option<Self> {
        let MeanPlan { alpha, half_width, runs, is_share, test } = plan;
        let tested = test.is_none_or(|test| {
            is_share
                && test.delta_minus > 0.0
                && test.delta_plus > 0.0
                && (0.0..=1.0).contains(&test.threshold)
        });
        let usable = alpha > 0.0
            && alpha < 1.0
            && half_width.is_usable()
            && runs.is_none_or(|runs| runs > 1)
            && tested;
        usable.then(|| Self {
            plan,
            values: Values::NONE,
            betting: is_share.then(|| Betting::new(alpha, runs)),
            next_look: 1,
            ends: (0.0, 1.0),
            without_value: 0,
            decision: Decision::Undecided,
            done: false,
        })
    }

    /// Takes one run's value, unless it is done; says whether it is now.
    pub fn push(&mut self, value: Option<f64>) -> bool {
        if self.done {
            return true;
        }
        match value.filter(|value| value.is_finite()) {
            Some(value) => {
                self.values.push(value);
                if let Some(betting) = &mut self.betting {
                    betting.push(value.clamp(0.0, 1.0));
                }
            }
            None => self.without_value += 1,
        }
        let spent = self.plan.runs.is_some_and(|runs| self.runs() >= runs);
        if spent {
            self.next_look = 0;
        }
        self.done = self.is_enough() || spent;
        self.done
    }

    /// Whether the interval decides, or is narrow enough.
    fn is_enough(&mut self) -> bool {
        if let (Some(betting), true) = (&self.betting, self.values.count >= self.next_look) {
            self.next_look = self.values.count + 1 + self.values.count / LOOKS;
            self.ends = betting.ends();
            let interval = self.any_time(self.ends);
            return match self.plan.test {
                Some(test) => {
                    self.decision = test.decide(&interval, self.values.mean);
                    self.decision != Decision::Undecided
                }
                None => self.plan.runs.is_none() && interval.width() <= 2.0 * self.wanted(),
            };
        }
        let alike = self.values.range() <= 0.0;
        self.betting.is_none()
            && self.plan.runs.is_none()
            && self.has_seen_enough()
            && (alike || self.asymptotic_half_width() <= self.wanted())
    }

    fn wanted(&self) -> f64 {
        self.plan.half_width.about(self.values.mean)
    }

    /// Whether an outcome of probability [`UNSEEN`] would have shown itself: (1 - UNSEEN)^n <= alpha.
    fn has_seen_enough(&self) -> bool {
        self.values.count as f64 * libm::log1p(-UNSEEN) <= libm::log(self.plan.alpha)
    }

    fn asymptotic_half_width(&self) -> f64 {
        let count = self.values.count as f64;
        let extra = EXTRA * self.values.range() * self.values.range() / count;
        let standard_error = ((self.values.variance() + extra) / count).sqrt();
        standard_error * sequence_quantile(count, self.plan.alpha)
    }

    /// The number of runs that was asked for, if one was.
    pub fn runs_fixed(&self) -> Option<u64> {
        self.plan.runs
    }

    /// Whether there are enough runs.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Runs counted, those without a value included.
    pub fn runs(&self) -> u64 {
        self.values.count + self.without_value
    }

    /// Runs in which the expression never had a finite value.
    pub fn runs_without_value(&self) -> u64 {
        self.without_value
    }

    /// The mean of the values; `None` before the first.
    pub fn mean(&self) -> Option<f64> {
        (self.values.count > 0).then_some(self.values.mean)
    }

    /// Of a test, what it has come to.
    pub fn decision(&self) -> Option<Decision> {
        self.plan.test.map(|_| self.decision)
    }

    /// Of a test, what its decision says; `None` while undecided.
    pub fn claim(&self) -> Option<Claim> {
        let MeanTest { threshold, at_least, delta_minus, delta_plus } = self.plan.test?;
        let is_high = match self.decision {
            Decision::Accepted => at_least,
            Decision::Rejected => !at_least,
            _ => return None,
        };
        let alpha = self.plan.alpha;
        Some(if is_high {
            Claim::at_least("mean", threshold - delta_minus, alpha)
        } else {
            Claim::at_most("mean", threshold + delta_plus, alpha)
        })
    }

    /// The mean's interval; `None` before there can be one, and while all values are one, unless their
    /// bounds are known.
    pub fn interval(&self) -> Option<Interval> {
        let Values { count, mean, .. } = self.values;
        if self.betting.is_some() {
            return (count > 0).then(|| self.any_time(self.ends));
        }
        if count < 2 || self.values.range() <= 0.0 {
            return None;
        }
        if self.done && self.plan.runs.is_some() {
            let quantile = t_quantile(1.0 - self.plan.alpha / 2.0, count as f64 - 1.0);
            let half_width = quantile * (self.values.variance() / count as f64).sqrt();
            return Some(Interval {
                low: mean - half_width,
                high: mean + half_width,
                confidence: 1.0 - self.plan.alpha,
                method: "student-t",
                validity: Validity::FixedRuns,
            });
        }
        let half_width = self.asymptotic_half_width();
        self.has_seen_enough().then(|| self.any_time((mean - half_width, mean + half_width)))
    }

    fn any_time(&self, (low, high): (f64, f64)) -> Interval {
        let method = if self.betting.is_some() { "betting" } else { "asymptotic" };
        let confidence = 1.0 - self.plan.alpha;
        Interval { low, high, confidence, method, validity: Validity::AnyTime }
    }

    /// Where all values are one and their bounds unknown: the largest probability q of another value
    /// that is not refuted with confidence 1 - alpha, from (1 - q)^n = alpha (Clopper and Pearson's bound,
    /// one-sided).
    pub fn differing_at_most(&self) -> Option<f64> {
        let alike = self.values.count > 0 && self.values.range() <= 0.0 && self.betting.is_none();
        alike.then(|| -libm::expm1(libm::log(self.plan.alpha) / self.values.count as f64))
    }
}

/// How many standard errors the asymptotic confidence sequence is wide to either side after `count` runs.
fn sequence_quantile(count: f64, alpha: f64) -> f64 {
    let twice = -2.0 * libm::log(alpha);
    let scaled = count / TIGHTEST * (twice + libm::log1p(twice));
    ((1.0 + 1.0 / scaled) * (libm::log1p(scaled) + twice)).sqrt()
}

/// An outcome of this probability is to show itself before there is an interval for values without bounds.
pub const UNSEEN: f64 = 0.01;
/// Further runs that are taken to be off by the whole range.
const EXTRA: f64 = 4.0;
/// After so many runs the asymptotic confidence sequence is the tightest. From a third of it to ten times as
/// many it costs at most a seventh more runs.
const TIGHTEST: f64 = 1000.0;
/// The betting is looked at whenever there is so much more of the runs, one over this.
const LOOKS: u64 = 50;

#[cfg(test)]
mod tests;
