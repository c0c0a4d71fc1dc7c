//! Sequential tests: is a probability that high, and which of two is higher?
//!
//! Wald's sequential probability ratio test ("Sequential Analysis", 1947, sections 5.2 and 6): for
//! `Pr >= p0`, H says p >= p0 + delta+ and K says p <= p0 - delta-. H is given up in favour of K with
//! probability alpha at most where H is true, and accepted with probability beta at most where K is. In
//! between, the region of indifference, either answer may come: so an acceptance says p > p0 - delta-, a
//! rejection p < p0 + delta+, and these [`Claim`]s are wrong with beta and alpha at most, whatever p is.
//! `Pr <= p0` is the same test of the failures.
//!
//! Wald's own limits, ln((1 - beta) / alpha) and ln(beta / (1 - alpha)), which UPPAAL uses too, keep the
//! sum of both errors to what was asked, but each alone to alpha / (1 - beta) and beta / (1 - alpha) only
//! (section 3.2). The limits here, ln(1 / alpha) and ln(beta), keep each (by Ville's inequality), for 2 %
//! more runs.
//!
//! Two probabilities are compared as Wald does with two Bernoulli sequences (section 6.3): runs are
//! paired, pairs that agree tell nothing, and among the others the left one alone succeeds with
//! probability u / (1 + u), where u = p1 (1 - p2) / (p2 (1 - p1)) is the ratio of odds. H says
//! u >= u1 and K says u <= u0. Two that are equal could keep it going for ever, so it also ends once
//! pairs that disagree are rarer than epsilon, by the upper end of a confidence sequence, since one
//! looks after each pair.

use serde::Serialize;

use crate::estimate::Estimate;
use crate::mixture;
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

/// What a decision says for certain but for its error: the inequality of the query with the region of
/// indifference taken off it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// `probability`, `mean`, `odds-ratio` (of the left to the right) or `difference`.
    pub about: &'static str,
    /// It is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// It is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// 1 less the probability of error.
    pub confidence: f64,
}

impl Claim {
    pub(crate) fn at_least(about: &'static str, bound: f64, error: f64) -> Self {
        Self { about, at_least: Some(bound), at_most: None, confidence: 1.0 - error }
    }

    pub(crate) fn at_most(about: &'static str, bound: f64, error: f64) -> Self {
        Self { about, at_least: None, at_most: Some(bound), confidence: 1.0 - error }
    }
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
        if ratio >= -libm::log(alpha) {
            Decision::Rejected
        } else if ratio <= libm::log(beta) {
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

    /// What the decision says; `None` while undecided.
    pub fn claim(&self) -> Option<Claim> {
        let RatioTest { high, low, rates: ErrorRates { alpha, beta } } = self.test;
        let about = "probability";
        Some(match (self.decision, self.at_least) {
            (Decision::Accepted, true) => Claim::at_least(about, low, beta),
            (Decision::Accepted, false) => Claim::at_most(about, 1.0 - low, beta),
            (Decision::Rejected, true) => Claim::at_most(about, high, alpha),
            (Decision::Rejected, false) => Claim::at_least(about, 1.0 - high, alpha),
            _ => return None,
        })
    }

    /// The share of successes with the confidence sequence's interval: the outcomes decide how many runs
    /// there are.
    pub fn estimate(&self) -> Estimate {
        describe(self.successes, self.runs, self.test.rates.alpha)
    }
}

fn describe(successes: u64, runs: u64, alpha: f64) -> Estimate {
    Estimate::stopped(successes, runs, ProportionMethod::SEQUENCE, alpha)
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

    /// What the decision says; `None` while undecided.
    pub fn claim(&self) -> Option<Claim> {
        let ComparisonPlan { u0, u1, rates: ErrorRates { alpha, beta }, epsilon, .. } = self.plan;
        Some(match self.decision {
            Decision::Accepted => Claim::at_least("odds-ratio", u0, beta),
            Decision::Rejected => Claim::at_most("odds-ratio", u1, alpha),
            Decision::Indistinguishable => Claim::at_most("difference", epsilon, alpha),
            Decision::Undecided => return None,
        })
    }

    /// |p1 - p2| is at most the probability of a pair that disagrees.
    fn is_too_close(&self) -> bool {
        let disagreeing = (self.left_only + self.right_only) as f64;
        let agreeing = self.pairs as f64 - disagreeing;
        let ComparisonPlan { epsilon, rates, .. } = self.plan;
        // As the upper end of the sequence's interval, which would take longer to find.
        disagreeing < epsilon * self.pairs as f64
            && mixture::ln_capital(disagreeing, agreeing, epsilon, mixture::PRECISION)
                >= -libm::log(rates.alpha)
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

    /// Both shares of successes, left first, with intervals of the confidence sequence.
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
        // ln(20) / ln(0.51/0.49) = 74.9 successes, ln(20) / ln(0.91/0.89) = 134.8.
        assert_eq!(end_of(plan(0.5, true), true), (Decision::Accepted, 75));
        assert_eq!(end_of(plan(0.5, true), false), (Decision::Rejected, 75));
        assert_eq!(end_of(plan(0.5, false), true), (Decision::Rejected, 75));
        assert_eq!(end_of(plan(0.9, true), true), (Decision::Accepted, 135));
        assert_eq!(end_of(plan(0.1, false), false), (Decision::Accepted, 135));
    }

    #[test]
    fn a_region_that_reaches_certainty_is_cut_there() {
        // One failure refutes p = 1; ln(20) / ln(1/0.99) = 298.07 successes speak for it.
        assert_eq!(end_of(plan(1.0, true), false), (Decision::Rejected, 1));
        assert_eq!(end_of(plan(1.0, true), true), (Decision::Accepted, 299));
        assert_eq!(end_of(plan(0.0, false), true), (Decision::Rejected, 1));
        assert!(Sprt::new(SprtPlan { delta_minus: 0.0, ..plan(1.0, true) }).is_none());
        assert!(Sprt::new(SprtPlan { threshold: 1.1, ..plan(1.0, true) }).is_none());
    }

    #[test]
    fn a_decision_says_what_it_says_with_the_indifference_taken_off() {
        let claim = |plan, outcome| {
            let mut sprt = Sprt::new(plan).expect("a usable plan");
            assert_eq!(sprt.claim(), None);
            while !sprt.push(outcome) {}
            let claim = sprt.claim().expect("decided");
            assert!((claim.confidence - 0.95).abs() < 1e-12 && claim.about == "probability");
            [claim.at_least, claim.at_most].map(|end| end.map(|end| (end * 1e9).round() / 1e9))
        };
        assert_eq!(claim(plan(0.5, true), true), [Some(0.49), None]);
        assert_eq!(claim(plan(0.5, true), false), [None, Some(0.51)]);
        assert_eq!(claim(plan(0.1, false), false), [None, Some(0.11)]);
        assert_eq!(claim(plan(0.1, false), true), [Some(0.09), None]);
        assert_eq!(claim(plan(1.0, true), true), [Some(0.99), None]);
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
        // ln(20) / ln((1.1/2.1) / (0.9/1.9)) = 29.8 pairs.
        let (decision, [left, right]) = compare(&[(true, false)], 100);
        assert_eq!((decision, left.runs, left.successes), (Decision::Accepted, 30, 30));
        assert_eq!((right.runs, right.successes), (30, 0));
        assert_eq!(compare(&[(false, true)], 100).0, Decision::Rejected);
        assert_eq!(compare(&[(true, false), (false, true)], 9_999).0, Decision::Undecided);
    }

    #[test]
    fn equal_sides_end_when_they_cannot_differ_by_more_than_epsilon() {
        let (decision, [left, right]) = compare(&[(true, true)], 200);
        assert_eq!((decision, left), (Decision::Indistinguishable, right));
        // The sequence's upper end for none of 115 pairs is 0.05; one look's would be it after 72.
        assert_eq!(left.runs, 115);
    }
}
