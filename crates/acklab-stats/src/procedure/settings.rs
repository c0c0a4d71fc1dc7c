//! How sure and how precise an answer is to be.

use crate::estimate::StopRule;
use crate::proportion::ProportionMethod;

/// The statistical parameters, named as in UPPAAL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// 1 - confidence; of a test, the probability of rejecting what holds.
    pub alpha: f64,
    /// Of a test, the probability of accepting what fails.
    pub beta: f64,
    /// Half the width of an interval; of a mean, unless it is that of a share, and of a quantile, relative
    /// to it.
    pub epsilon: f64,
    /// Of a mean or quantile: half the width in its own unit, in place of `epsilon`.
    pub epsilon_abs: Option<f64>,
    /// Indifference below a tested probability or share.
    pub delta_minus: f64,
    /// Indifference above a tested probability or share.
    pub delta_plus: f64,
    /// Ratio of odds at which the left of a comparison is not the larger.
    pub u0: f64,
    /// Ratio of odds at which the left of a comparison is the larger.
    pub u1: f64,
    /// Interval of a probability; without one, the confidence sequence, and Clopper-Pearson's for a number
    /// of runs.
    pub method: Option<ProportionMethod>,
    /// When an estimate is precise enough.
    pub stop: StopRule,
    /// Give up after so many runs, whatever the query.
    pub runs_max: Option<u64>,
}

impl Default for Settings {
    /// UPPAAL's defaults: alpha, beta and epsilon 0.05, delta 0.01, u0 0.9, u1 1.1.
    fn default() -> Self {
        Self {
            alpha: 0.05,
            beta: 0.05,
            epsilon: 0.05,
            epsilon_abs: None,
            delta_minus: 0.01,
            delta_plus: 0.01,
            u0: 0.9,
            u1: 1.1,
            method: None,
            stop: StopRule::Width,
            runs_max: None,
        }
    }
}

/// A setting that no procedure can work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// What is wrong, and how to mend it.
    pub message: String,
}

impl std::fmt::Display for SettingsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SettingsError {}

impl Settings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let inside = |value: f64| value > 0.0 && value < 1.0;
        let complaint = if !inside(self.alpha) {
            format!(
                "alpha = {} is not a probability of error: write one above 0, below 1",
                self.alpha
            )
        } else if !inside(self.beta) || self.alpha + self.beta >= 1.0 {
            format!("beta = {}: write one above 0 with alpha + beta below 1", self.beta)
        } else if !(self.epsilon > 0.0 && self.epsilon <= 0.5) {
            format!(
                "epsilon = {} is not a half-width: write one above 0, at most 0.5",
                self.epsilon
            )
        } else if self.epsilon_abs.is_some_and(|width| !(width > 0.0 && width.is_finite())) {
            "the absolute epsilon is no half-width: write one above 0".to_owned()
        } else if !(inside(self.delta_minus) && inside(self.delta_plus)) {
            format!(
                "delta = -{} +{} is no region of indifference: write both above 0, below 1",
                self.delta_minus, self.delta_plus
            )
        } else if !(self.u0 > 0.0 && self.u1 > self.u0 && self.u1.is_finite()) {
            format!("u0 = {}, u1 = {}: write 0 < u0 < u1", self.u0, self.u1)
        } else if self.runs_max == Some(0) {
            "at most 0 runs tell nothing: write a limit of 1 or more".to_owned()
        } else if self
            .method
            .is_some_and(|method| method.interval(0, 0, 1.0 - self.alpha).is_none())
        {
            "the prior's parameters must be above 0".to_owned()
        } else {
            return Ok(());
        };
        Err(SettingsError { message: complaint })
    }
}
