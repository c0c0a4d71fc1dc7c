//! A quantile over runs: `quantile[<=T; N](0.95, max: x)`.
//!
//! Its interval lies between two of the values seen, whatever their law (David and Nagaraja, "Order
//! Statistics", 2003, section 7.1). The number of runs whose value does not exceed the true quantile is a
//! number of successes of probability p, or more where the quantile itself has a probability. So the
//! interval goes from the first value to the last of which p is not refuted by how many lie below: by
//! Clopper and Pearson's interval for a number of runs fixed ahead, and by the confidence sequence on the
//! way, and where the width ends the runs (Howard and Ramdas, Bernoulli 28(3), 2022).
//!
//! An end beyond all values is infinite: the runs were too few for one. The estimate is the quantile of
//! the values (type 7). A run without a finite value has none; such runs are counted apart.

use crate::expectation::HalfWidth;
use crate::interval::{Interval, Validity};
use crate::mixture;
use crate::proportion::ProportionMethod;
use crate::summary::quantile_of_sorted;

/// How well a quantile is to be known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantilePlan {
    /// The share of the runs whose value is at most the quantile; inside 0..1.
    pub p: f64,
    /// 1 - confidence, inside 0..1.
    pub alpha: f64,
    /// Where the runs end without a number of them.
    pub half_width: HalfWidth,
    /// Exactly so many runs.
    pub runs: Option<u64>,
}

/// A running quantile.
#[derive(Clone, Debug)]
pub struct QuantileOverRuns {
    plan: QuantilePlan,
    values: Vec<f64>,
    /// When the width is looked at next, which takes a while.
    next_look: usize,
    without_value: u64,
    done: bool,
}

impl QuantileOverRuns {
    /// Nothing seen yet; `None` if the plan is useless.
    pub fn new(plan: QuantilePlan) -> Option<Self> {
        let inside = |value: f64| value > 0.0 && value < 1.0;
        let usable = inside(plan.p) && inside(plan.alpha) && plan.half_width.is_usable();
        (usable && plan.runs != Some(0)).then_some(Self {
            plan,
            values: Vec::new(),
            next_look: 1,
            without_value: 0,
            done: false,
        })
    }

    /// The fewest runs whose interval has two ends: with fewer, all values may lie on one side with a
    /// probability of more than alpha / 2.
    pub fn runs_least(&self) -> u64 {
        let one_side = |share: f64| libm::log(self.plan.alpha / 2.0) / libm::log(share);
        one_side(self.plan.p).max(one_side(1.0 - self.plan.p)).ceil() as u64
    }

    /// Takes one run's value, unless it is done; says whether it is now.
    pub fn push(&mut self, value: Option<f64>) -> bool {
        if self.done {
            return true;
        }
        match value.filter(|value| value.is_finite()) {
            Some(value) => self.values.push(value),
            None => self.without_value += 1,
        }
        self.done = match self.plan.runs {
            Some(runs) => self.runs() >= runs,
            None => self.values.len() >= self.next_look && self.is_narrow(),
        };
        self.done
    }

    fn is_narrow(&mut self) -> bool {
        self.next_look = self.values.len() + 1 + self.values.len() / LOOKS;
        let (Some(interval), Some(estimate)) = (self.interval(), self.estimate()) else {
            return false;
        };
        let wanted = self.plan.half_width.about(estimate);
        interval.width() <= 2.0 * wanted
    }

    /// Runs counted, those without a value included.
    pub fn runs(&self) -> u64 {
        self.values.len() as u64 + self.without_value
    }

    /// Runs in which the expression never had a finite value.
    pub fn runs_without_value(&self) -> u64 {
        self.without_value
    }

    /// The number of runs that was asked for, if one was.
    pub fn runs_fixed(&self) -> Option<u64> {
        self.plan.runs
    }

    /// Whether there are enough runs.
    pub fn is_done(&self) -> bool {
        self.done
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }

    /// The quantile of the values; `None` before the first.
    pub fn estimate(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| quantile_of_sorted(&self.sorted(), self.plan.p))
    }

    /// Its interval; `None` before the first value.
    pub fn interval(&self) -> Option<Interval> {
        let QuantilePlan { p, alpha, runs, .. } = self.plan;
        let sorted = self.sorted();
        let count = sorted.len() as u64;
        if count == 0 {
            return None;
        }
        let is_fixed = self.done && runs.is_some();
        let exact = ProportionMethod::ClopperPearson;
        let refutes = |below: u64| {
            if is_fixed {
                exact.interval(below, count, 1.0 - alpha).is_some_and(|ends| !ends.covers(p))
            } else {
                // As the sequence's interval, whose ends would take a hundred times as long to find.
                let (below, above) = (below as f64, (count - below) as f64);
                mixture::ln_capital(below, above, p, mixture::PRECISION) >= -libm::log(alpha)
            }
        };
        // What is refuted are the first numbers of values below and the last ones.
        let likely = (p * count as f64) as u64;
        let low = first(likely, |below| !refutes(below));
        let high = likely
            + first(count + 1 - likely, |more| likely + more > count || refutes(likely + more));
        let value = |rank: u64| sorted.get((rank as usize).wrapping_sub(1)).copied();
        Some(Interval {
            low: value(low).unwrap_or(f64::NEG_INFINITY),
            high: value(high).unwrap_or(f64::INFINITY),
            confidence: 1.0 - alpha,
            method: if is_fixed { "order-statistics" } else { "quantile-sequence" },
            validity: if is_fixed { Validity::FixedRuns } else { Validity::AnyTime },
        })
    }
}

/// The first number from 0 on for which a condition holds that goes on holding; `end` if none below it.
fn first(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The width is looked at whenever there is so much more of the runs, one over this.
const LOOKS: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: Option<u64>, p: f64, values: u32) -> QuantileOverRuns {
        let half_width = HalfWidth::Absolute(0.1);
        let plan = QuantilePlan { p, alpha: 0.05, half_width, runs };
        let mut quantile = QuantileOverRuns::new(plan).expect("usable");
        // 1, 2, …, in another order.
        (0..values).for_each(|index| {
            quantile.push(Some(f64::from(index * 37 % values) + 1.0));
        });
        quantile
    }

    #[test]
    fn the_interval_of_a_median_is_the_textbooks() {
        // Conover, "Practical Nonparametric Statistics": of 16 values the 4th and the 13th (97.9 %), of 100
        // the 40th and the 61st (96.5 %).
        for (runs, low, high) in [(16, 4.0, 13.0), (100, 40.0, 61.0)] {
            let interval = after(Some(u64::from(runs)), 0.5, runs).interval().expect("values");
            assert_eq!((interval.low, interval.high), (low, high), "{interval:?}");
            assert_eq!(interval.validity, Validity::FixedRuns);
        }
    }

    #[test]
    fn an_end_beyond_all_values_is_infinite_and_the_least_number_of_runs_avoids_it() {
        for (p, least) in [(0.95, 72), (0.5, 6), (0.01, 368)] {
            let two_ends = |runs: u64| {
                let quantile = after(Some(runs), p, u32::try_from(runs).expect("small"));
                assert_eq!(quantile.runs_least(), least);
                quantile.interval().expect("values").width().is_finite()
            };
            assert!(two_ends(least) && !two_ends(least - 1), "{p}");
        }
    }

    #[test]
    fn without_a_number_the_interval_narrows_to_what_is_wanted() {
        let half_width = HalfWidth::Relative(0.05);
        let plan = QuantilePlan { p: 0.9, alpha: 0.05, half_width, runs: None };
        let mut quantile = QuantileOverRuns::new(plan).expect("usable");
        let ended = (0..100_000).position(|run| quantile.push(Some(f64::from(run * 37 % 1009))));
        let interval = quantile.interval().expect("values");
        let estimate = quantile.estimate().expect("values");
        assert!(ended.is_some_and(|runs| (300..3000).contains(&runs)), "{ended:?}");
        assert!(interval.width() <= 0.1 * estimate && interval.covers(907.0), "{interval:?}");
        assert_eq!((interval.method, interval.validity), ("quantile-sequence", Validity::AnyTime));
    }

    #[test]
    fn runs_without_a_value_and_useless_plans_are_told_apart() {
        let plan = |p, runs| {
            let half_width = HalfWidth::Absolute(0.1);
            QuantileOverRuns::new(QuantilePlan { p, alpha: 0.05, half_width, runs })
        };
        assert!(plan(0.0, None).is_none() && plan(1.0, None).is_none());
        assert!(plan(0.5, Some(0)).is_none());
        let mut quantile = plan(0.5, Some(2)).expect("usable");
        assert_eq!((quantile.estimate(), quantile.interval()), (None, None));
        assert!(!quantile.push(None) && quantile.push(Some(2.0)));
        assert_eq!((quantile.runs(), quantile.runs_without_value()), (2, 1));
        assert_eq!(quantile.estimate(), Some(2.0));
    }
}
