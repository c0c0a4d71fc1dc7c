//! What is known of a query, at the end or on the way.

use serde::Serialize;

use crate::estimate::Estimate;
use crate::interval::Interval;
use crate::sprt::{Claim, Decision};
use crate::steady::Steadiness;

/// What is known, at the end or on the way. Fields that the kind of query has not are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `probability`, `hypothesis`, `comparison`, `expectation`, `quantile`, `steady-state` or
    /// `simulation`.
    pub kind: &'static str,
    /// Runs counted; of a comparison, those of both sides.
    pub runs: u64,
    /// Whether the procedure came to its end; else this is what was known when it was stopped.
    pub complete: bool,
    /// Runs in which the formula held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successes: Option<u64>,
    /// The probability, mean or quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// The estimate's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Of a test or comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the decision says, but for its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Of a comparison: left and right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<[Estimate; 2]>,
    /// Of an expectation or quantile: runs in which the expression never had a finite value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_without_value: Option<u64>,
    /// Of an expectation whose runs all gave one value, which has no interval: how probable another
    /// value is at most, with confidence 1 - alpha.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differing_at_most: Option<f64>,
    /// Of a quantile: the fewest runs for which its interval has two ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_least: Option<u64>,
    /// Of a steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
}

impl Report {
    /// Nothing known.
    pub(super) fn of(kind: &'static str, runs: u64) -> Self {
        Self {
            kind,
            runs,
            complete: false,
            successes: None,
            estimate: None,
            interval: None,
            decision: None,
            claim: None,
            sides: None,
            runs_without_value: None,
            differing_at_most: None,
            runs_least: None,
            steadiness: None,
        }
    }

    pub(super) fn set_proportion(&mut self, found: &Estimate) {
        self.successes = Some(found.successes);
        self.estimate = Some(found.estimate).filter(|share| share.is_finite());
        self.interval = Some(found.interval);
    }
}
