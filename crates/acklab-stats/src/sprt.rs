//! Sequential tests: is a probability that high, and which of two is higher?
//!
//! Wald's sequential probability ratio test ("Sequential Analysis", 1947, sections 5.2 and 6): for
//! `Pr >= p0`, H says p >= p0 + delta+ and K says p <= p0 - delta-. H is given up in favour of K with
//! probability alpha where H is true, and accepted with probability beta where K is. Wald's limits,
//! which UPPAAL uses too, keep the sum of both to what was asked, and each to alpha / (1 - beta) and
//! beta / (1 - alpha) (section 3.2). In between, the region of indifference, either answer may come. `Pr <= p0` is the same test of the failures.
//!
//! Two probabilities are compared as Wald does with two Bernoulli sequences (section 6.3): runs are
//! paired, pairs that agree tell nothing, and among the others the left one alone succeeds with
//! probability u / (1 + u), where u = p1 (1 - p2) / (p2 (1 - p1)) is the ratio of odds. H says
//! u >= u1 and K says u <= u0.

use serde::Serialize;

use crate::estimate::Estimate;
use crate::proportion::ProportionMethod;

/// What a test has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// More runs are needed.
    Undecided,
    /// The inequality of the query is taken to hold.
    Accepted,
    /// The inequality of the query is taken to fail.
    Rejected,
    /// Of a comparison: the two probabilities differ by at most epsilon (with confidence 1 - alpha),
    /// and the test of their odds could go on for ever.
    Indistinguishable,
}

/// How sure a test is to be. All inside 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRates {
    /// Probability of rejecting an inequality that holds.
    pub alpha: f64,
    /// Probability of accepting an inequality that fails.
    pub beta: f64,
}

impl ErrorRates {
    fn usable(self) -> bool {
        self.alpha > 0.0 && self.beta > 0.0 && self.alpha + self.beta < 1.0
    }
}

/// The ratio test of one Bernoulli sequence: success probability at least `high` against at most `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RatioTest {
    high: f64,
    low: f64,
    rates: ErrorRates,
}

impl RatioTest {
    /// ln of the likelihood under `low` over that under `high`.
    fn log_ratio(&self, successes: u64, failures: u64) -> f64 {
        // 0 times infinity is 0 here: what has not been seen does not count.
        let term = |count: u64, low: f64, high: f64| {
            if count == 0 { 0.0 } else { count as f64 * (libm::log(low) - libm::log(high)) }
        };
        term(successes, self.low, self.high) + term(failures, 1.0 - self.low, 1.0 - self.high)
    }

    fn decide(&self, successes: u64, failures: u64) -> Decision {
        let ErrorRates { alpha, beta } = self.rates;
        let ratio = self.log_ratio(successes, failures);
        if ratio >= libm::log((1.0 - beta) / alpha) {
            Decision::Rejected
        } else if ratio <= libm::log(beta / (1.0 - alpha)) {
            Decision::Accepted
        } else {
            Decision::Undecided
        }
    }
}

/// Wald's test of `Pr >= p0` or `Pr <= p0`. Outcomes after the decision are not counted.
#[derive(Clone, Debug)]
pub struct Sprt {
    test: RatioTest,
    at_least: bool,
    successes: u64,
    runs: u64,
    runs_max: Option<u64>,
    decision: Decision,
}

/// What to test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SprtPlan {
    /// p0.
    pub threshold: f64,
    /// `Pr >= p0`; else `Pr <= p0`.
    pub at_least: bool,
    /// How far below p0 the region of indifference reaches.
    pub delta_minus: f64,
    /// How far above p0 the region of indifference reaches.
    pub delta_plus: f64,
    /// How sure to be.
    pub rates: ErrorRates,
    /// Give up, undecided, after so many runs.
    pub runs_max: Option<u64>,
}

impl Sprt {
    /// Nothing seen yet; `None` if the plan's rates or probabilities are useless. The region of
    /// indifference is cut at 0 and 1, and must not be empty.
    pub fn new(plan: SprtPlan) -> Option<Self> {
        let SprtPlan { threshold, delta_minus, delta_plus, at_least, rates, runs_max } = plan;
        let region = (0.0..=1.0).contains(&threshold) && delta_minus >= 0.0 && delta_plus >= 0.0;
        if !(rates.usable() && region) {
            return None;
        }
        let above = (threshold + delta_plus).min(1.0);
        let below = (threshold - delta_minus).max(0.0);
        let (high, low) = if at_least { (above, below) } else { (1.0 - below, 1.0 - above) };
        (high > low).then_some(Self {
            test: RatioTest { high, low, rates },
            at_least,
            successes: 0,
            runs: 0,
            runs_max,
            decision: Decision::Undecided,
        })
    }

    /// Counts one run's outcome, unless the test is done; says whether it is now.
    pub fn push(&mut self, holds: bool) -> bool {
        if self.is_done() {
            return true;
        }
        self.runs += 1;
        self.successes += u64::from(holds);
        let failures = self.runs - self.successes;
        self.decision = if self.at_least {
            self.test.decide(self.successes, failures)
        } else {
            self.test.decide(failures, self.successes)
        };
        self.is_done()
    }

    /// Whether it has decided or given up.
    pub fn is_done(&self) -> bool {
        self.decision != Decision::Undecided || self.runs_max.is_some_and(|most| self.runs >= most)
    }

    /// What it has come to.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The share of successes with the Clopper-Pearson interval of so many runs. The number of runs
    /// depends on the outcomes, so this describes; it is not what the decision rests on.
    pub fn estimate(&self) -> Estimate {
        describe(self.successes, self.runs, self.test.rates.alpha)
    }
}

fn describe(successes: u64, runs: u64, alpha: f64) -> Estimate {
    Estimate::of(successes, runs, ProportionMethod::ClopperPearson, 1.0 - alpha)
}

/// What to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparisonPlan {
    /// The left side is not the larger one if the ratio of odds is at most this.
    pub u0: f64,
    /// The left side is the larger one if the ratio of odds is at least this. Above `u0`.
    pub u1: f64,
    /// How sure to be.
    pub rates: ErrorRates,
    /// A difference that does not matter, above 0.
    pub epsilon: f64,
    /// Give up, undecided, after so many pairs.
    pub pairs_max: Option<u64>,
}

/// Wald's comparison of two probabilities, `left >= right`. Outcomes come in turns, left first.
#[derive(Clone, Debug)]
pub struct Comparison {
    test: RatioTest,
    plan: ComparisonPlan,
    left: Option<bool>,
    pairs: u64,
    both: u64,
    left_only: u64,
    right_only: u64,
    decision: Decision,
}

impl Comparison {
    /// Nothing seen yet; `None` if the plan is useless.
    pub fn new(plan: ComparisonPlan) -> Option<Self> {
        let ordered = plan.u0 > 0.0 && plan.u1 > plan.u0 && plan.u1.is_finite();
        if !(plan.rates.usable() && ordered && plan.epsilon > 0.0) {
            return None;
        }
        let (low, high) = (plan.u0 / (1.0 + plan.u0), plan.u1 / (1.0 + plan.u1));
        Some(Self {
            test: RatioTest { high, low, rates: plan.rates },
            plan,
            left: None,
            pairs: 0,
            both: 0,
            left_only: 0,
            right_only: 0,
            decision: Decision::Undecided,
        })
    }

    /// Takes one run's outcome, in turns left and right; says whether the test is done.
    pub fn push(&mut self, holds: bool) -> bool {
        if self.is_done() {
            return true;
        }
        let Some(left) = self.left.take() else {
            self.left = Some(holds);
            return false;
        };
        self.pairs += 1;
        match (left, holds) {
            (true, true) => self.both += 1,
            (true, false) => self.left_only += 1,
            (false, true) => self.right_only += 1,
            (false, false) => {}
        }
        self.decision = self.test.decide(self.left_only, self.right_only);
        if self.decision == Decision::Undecided && self.is_too_close() {
            self.decision = Decision::Indistinguishable;
        }
        self.is_done()
    }

    /// |p1 - p2| is at most the probability of a pair that disagrees.
    fn is_too_close(&self) -> bool {
        let disagreeing = self.left_only + self.right_only;
        describe(disagreeing, self.pairs, self.plan.rates.alpha).interval.high <= self.plan.epsilon
    }

    /// Whether it has decided or given up.
    pub fn is_done(&self) -> bool {
        let spent = self.plan.pairs_max.is_some_and(|most| self.pairs >= most);
        self.decision != Decision::Undecided || spent
    }

    /// What it has come to.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Both shares of successes, left first, with Clopper-Pearson intervals that describe.
    pub fn estimates(&self) -> [Estimate; 2] {
        let alpha = self.plan.rates.alpha;
        [self.left_only, self.right_only].map(|only| describe(self.both + only, self.pairs, alpha))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: ErrorRates = ErrorRates { alpha: 0.05, beta: 0.05 };

    fn plan(threshold: f64, at_least: bool) -> SprtPlan {
        SprtPlan {
            threshold,
            at_least,
            delta_minus: 0.01,
            delta_plus: 0.01,
            rates: RATES,
            runs_max: None,
        }
    }

    fn end_of(plan: SprtPlan, outcome: bool) -> (Decision, u64) {
        let mut sprt = Sprt::new(plan).expect("a usable plan");
        while !sprt.push(outcome) {}
        sprt.push(!outcome);
        (sprt.decision(), sprt.estimate().runs)
    }

    #[test]
    fn runs_to_decision_are_those_of_walds_formula() {
        // ln(19) / ln(0.51/0.49) = 73.6 successes, ln(19) / ln(0.91/0.89) = 132.5.
        assert_eq!(end_of(plan(0.5, true), true), (Decision::Accepted, 74));
        assert_eq!(end_of(plan(0.5, true), false), (Decision::Rejected, 74));
        assert_eq!(end_of(plan(0.5, false), true), (Decision::Rejected, 74));
        assert_eq!(end_of(plan(0.9, true), true), (Decision::Accepted, 133));
        assert_eq!(end_of(plan(0.1, false), false), (Decision::Accepted, 133));
    }

    #[test]
    fn a_region_that_reaches_certainty_is_cut_there() {
        // One failure refutes p = 1; ln(19) / ln(1/0.99) = 292.97 successes speak for it.
        assert_eq!(end_of(plan(1.0, true), false), (Decision::Rejected, 1));
        assert_eq!(end_of(plan(1.0, true), true), (Decision::Accepted, 293));
        assert_eq!(end_of(plan(0.0, false), true), (Decision::Rejected, 1));
        assert!(Sprt::new(SprtPlan { delta_minus: 0.0, ..plan(1.0, true) }).is_none());
        assert!(Sprt::new(SprtPlan { threshold: 1.1, ..plan(1.0, true) }).is_none());
    }

    #[test]
    fn a_test_gives_up_at_its_limit() {
        let limited = SprtPlan { runs_max: Some(10), ..plan(0.5, true) };
        assert_eq!(end_of(limited, true), (Decision::Undecided, 10));
    }

    fn compare(pairs: &[(bool, bool)], rounds: usize) -> (Decision, [Estimate; 2]) {
        let plan =
            ComparisonPlan { u0: 0.9, u1: 1.1, rates: RATES, epsilon: 0.05, pairs_max: None };
        let mut comparison = Comparison::new(plan).expect("a usable plan");
        for (left, right) in pairs.iter().cycle().take(rounds) {
            comparison.push(*left);
            comparison.push(*right);
        }
        (comparison.decision(), comparison.estimates())
    }

    #[test]
    fn the_larger_side_is_found_from_pairs_that_disagree() {
        // ln(19) / ln((1.1/2.1) / (0.9/1.9)) = 29.4 pairs.
        let (decision, [left, right]) = compare(&[(true, false)], 100);
        assert_eq!((decision, left.runs, left.successes), (Decision::Accepted, 30, 30));
        assert_eq!((right.runs, right.successes), (30, 0));
        assert_eq!(compare(&[(false, true)], 100).0, Decision::Rejected);
        assert_eq!(compare(&[(true, false), (false, true)], 9_999).0, Decision::Undecided);
    }

    #[test]
    fn equal_sides_end_when_they_cannot_differ_by_more_than_epsilon() {
        let (decision, [left, right]) = compare(&[(true, true)], 100);
        assert_eq!((decision, left), (Decision::Indistinguishable, right));
        assert_eq!(left.runs, 72);
    }
}
