//! From a query to its statistical procedure: outcomes of runs in, a report out.
//!
//! ```text
//! bound = query::parse(text)?.bind(text, &names)?
//! procedure = Procedure::new(&bound, &settings)?
//! for run in 0.. { judge = bound.monitor(run); … judge.observe(t, values) …; outcome = judge.finish(end);
//!                  if procedure.push(outcome) { break } }
//! ```
//!
//! Runs are numbered from 0 and pushed in that order; the seed of a run is a function of its number.
//! They may be computed in parallel, any number at a time: outcomes pushed after the end are dropped,
//! so that the report does not depend on how many processors there were.

use serde::Serialize;

use crate::bind::BoundQuery;
use crate::estimate::{Estimate, EstimatePlan, Estimator, StopRule};
use crate::expectation::{Expectation, HalfWidth};
use crate::monitor::{RunOutcome, Trajectory};
use crate::proportion::{ProportionInterval, ProportionMethod};
use crate::query::{Path, Query};
use crate::reach::ReachCurve;
use crate::sprt::{Comparison, ComparisonPlan, Decision, ErrorRates, Sprt, SprtPlan};

/// The statistical parameters, named as in UPPAAL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// 1 - confidence; of a test, the probability of rejecting what holds.
    pub alpha: f64,
    /// Of a test, the probability of accepting what fails.
    pub beta: f64,
    /// Half the width of an interval; of a mean, relative to it.
    pub epsilon: f64,
    /// Of a mean: half the width in its own unit, in place of `epsilon`.
    pub epsilon_abs: Option<f64>,
    /// Indifference below a tested probability.
    pub delta_minus: f64,
    /// Indifference above a tested probability.
    pub delta_plus: f64,
    /// Ratio of odds at which the left of a comparison is not the larger.
    pub u0: f64,
    /// Ratio of odds at which the left of a comparison is the larger.
    pub u1: f64,
    /// Interval of an estimate.
    pub method: ProportionMethod,
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
            method: ProportionMethod::ClopperPearson,
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
    fn check(&self) -> Result<(), SettingsError> {
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
        } else if self.method.interval(0, 0, 1.0 - self.alpha).is_none() {
            "the prior's parameters must be above 0".to_owned()
        } else {
            return Ok(());
        };
        Err(SettingsError { message: complaint })
    }
}

/// A query's running procedure.
#[derive(Clone, Debug)]
pub struct Procedure {
    task: Task,
    settings: Settings,
    runs: u64,
    /// Whether a time of decision is a time of the formula becoming true.
    reaches: bool,
    reached_at: Vec<f64>,
    limit: Option<u64>,
}

#[derive(Clone, Debug)]
enum Task {
    Probability(Estimator),
    Hypothesis(Sprt),
    Comparison(Comparison),
    Expectation(Expectation),
    Simulation { kept: Vec<Trajectory>, filtered: bool, keep: Option<u64>, runs: u64 },
}

/// What is known, at the end or on the way. Fields that the kind of query has not are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `probability`, `hypothesis`, `comparison`, `expectation` or `simulation`.
    pub kind: &'static str,
    /// Runs counted; of a comparison, those of both sides.
    pub runs: u64,
    /// Whether the procedure came to its end; else this is what was known when it was stopped.
    pub complete: bool,
    /// Runs in which the formula held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successes: Option<u64>,
    /// The probability or mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// The estimate's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<ReportInterval>,
    /// Of a hypothesis or comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Of a comparison: left and right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<[Estimate; 2]>,
    /// Of an expectation: runs in which the expression never had a finite value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_without_value: Option<u64>,
    /// Of an expectation whose runs all gave one value, which has no interval: how probable another
    /// value is at most, with confidence 1 - alpha.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differing_at_most: Option<f64>,
}

/// An interval and how it was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReportInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// 1 - alpha.
    pub confidence: f64,
    /// `clopper-pearson`, …, `student-t`, `chow-robbins`.
    pub method: &'static str,
}

impl From<ProportionInterval> for ReportInterval {
    fn from(interval: ProportionInterval) -> Self {
        let ProportionInterval { low, high, confidence, method } = interval;
        Self { low, high, confidence, method }
    }
}

impl Procedure {
    /// The procedure that answers `query`.
    ///
    /// # Errors
    /// A setting, or a number of runs in the query, that nothing can be concluded with.
    pub fn new(query: &BoundQuery, settings: &Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let query = query.query();
        let window_runs = query.windows().filter_map(|window| window.runs).min();
        let narrows = matches!(query, Query::Expectation { .. }) && window_runs.is_none();
        if settings.epsilon_abs.is_some() && !narrows {
            let message = "an absolute epsilon says where a mean without a number of runs ends: write \
                           E[<=30](max: …), or leave it out";
            return Err(SettingsError { message: message.to_owned() });
        }
        let rates = ErrorRates { alpha: settings.alpha, beta: settings.beta };
        let task = match query {
            Query::Probability(_) => Estimator::new(EstimatePlan {
                alpha: settings.alpha,
                epsilon: settings.epsilon,
                method: settings.method,
                stop: settings.stop,
                runs: window_runs,
            })
            .map(Task::Probability),
            Query::Hypothesis { at_least, threshold, .. } => Sprt::new(SprtPlan {
                threshold: *threshold,
                at_least: *at_least,
                delta_minus: settings.delta_minus,
                delta_plus: settings.delta_plus,
                rates,
                runs_max: window_runs,
            })
            .map(Task::Hypothesis),
            Query::Comparison { .. } => Comparison::new(ComparisonPlan {
                u0: settings.u0,
                u1: settings.u1,
                rates,
                epsilon: settings.epsilon,
                pairs_max: window_runs,
            })
            .map(Task::Comparison),
            Query::Expectation { .. } => {
                let relative = HalfWidth::Relative(settings.epsilon);
                let half_width = settings.epsilon_abs.map_or(relative, HalfWidth::Absolute);
                Expectation::new(window_runs, settings.alpha, half_width).map(Task::Expectation)
            }
            Query::Simulation { filter, .. } => Some(Task::Simulation {
                kept: Vec::new(),
                filtered: filter.is_some(),
                keep: filter.as_ref().and_then(|filter| filter.runs),
                runs: window_runs.unwrap_or(1),
            }),
        };
        let task = task.ok_or_else(|| SettingsError {
            message: "a mean needs at least two runs: write E[<=30; 100](max: …)".to_owned(),
        })?;
        let reaches = match query {
            Query::Probability(measure) | Query::Hypothesis { measure, .. } => {
                !matches!(measure.path, Path::Always(..))
            }
            _ => false,
        };
        let limit = settings.runs_max;
        Ok(Self { task, settings: *settings, runs: 0, reaches, reached_at: Vec::new(), limit })
    }

    /// Takes the outcome of the next run; says whether the procedure is done. An outcome of another
    /// query's monitor is dropped, as is one that comes after the end.
    pub fn push(&mut self, outcome: RunOutcome) -> bool {
        if self.is_done() {
            return true;
        }
        match (&mut self.task, outcome) {
            (Task::Probability(estimator), RunOutcome::Formula { holds, at }) => {
                estimator.push(holds);
                if holds && self.reaches {
                    self.reached_at.push(at);
                }
            }
            (Task::Hypothesis(sprt), RunOutcome::Formula { holds, at }) => {
                sprt.push(holds);
                if holds && self.reaches {
                    self.reached_at.push(at);
                }
            }
            (Task::Comparison(comparison), RunOutcome::Formula { holds, .. }) => {
                comparison.push(holds);
            }
            (Task::Expectation(expectation), RunOutcome::Extreme(value)) => {
                expectation.push(value);
            }
            (Task::Simulation { kept, .. }, RunOutcome::Trajectory(trajectory)) => {
                if trajectory.kept {
                    kept.push(trajectory);
                }
            }
            _ => return false,
        }
        self.runs += 1;
        self.is_done()
    }

    /// Whether no further run is needed: decided, or at a limit.
    pub fn is_done(&self) -> bool {
        self.is_complete() || self.limit.is_some_and(|limit| self.runs >= limit)
    }

    fn is_complete(&self) -> bool {
        match &self.task {
            Task::Probability(estimator) => estimator.is_done(),
            Task::Hypothesis(sprt) => sprt.is_done(),
            Task::Comparison(comparison) => comparison.is_done(),
            Task::Expectation(expectation) => expectation.is_done(),
            Task::Simulation { kept, keep, runs, .. } => {
                keep.is_some_and(|keep| kept.len() as u64 >= keep) || self.runs >= *runs
            }
        }
    }

    /// Runs counted so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// How many runs it will have taken if things go on as so far, for a progress bar; `None` where
    /// that cannot be told.
    pub fn runs_expected(&self) -> Option<u64> {
        let own = match &self.task {
            Task::Probability(estimator) => Some(estimator.runs_expected()),
            Task::Simulation { runs, .. } => Some(*runs),
            Task::Expectation(expectation) => expectation.runs_fixed(),
            Task::Hypothesis(_) | Task::Comparison(_) => None,
        };
        own.into_iter().chain(self.limit).min()
    }

    /// What is known now.
    pub fn report(&self) -> Report {
        let mut report = Report {
            kind: self.kind(),
            runs: self.runs,
            complete: self.is_complete(),
            successes: None,
            estimate: None,
            interval: None,
            decision: None,
            sides: None,
            runs_without_value: None,
            differing_at_most: None,
        };
        let mut proportion = None;
        match &self.task {
            Task::Probability(estimator) => proportion = Some(estimator.estimate()),
            Task::Hypothesis(sprt) => {
                report.decision = Some(sprt.decision());
                proportion = Some(sprt.estimate());
            }
            Task::Comparison(comparison) => {
                report.decision = Some(comparison.decision());
                report.sides = Some(comparison.estimates());
            }
            Task::Expectation(expectation) => {
                report.runs_without_value = Some(expectation.runs_without_value());
                report.estimate = expectation.mean();
                report.differing_at_most = expectation.differing_at_most();
                report.interval = expectation.interval().map(|interval| ReportInterval {
                    low: interval.low,
                    high: interval.high,
                    confidence: interval.confidence,
                    method: expectation.method(),
                });
            }
            Task::Simulation { kept, filtered: true, .. } => {
                let Settings { method, alpha, .. } = self.settings;
                proportion = Some(Estimate::of(kept.len() as u64, self.runs, method, 1.0 - alpha));
            }
            Task::Simulation { .. } => {}
        }
        if let Some(proportion) = proportion {
            report.successes = Some(proportion.successes);
            report.estimate = Some(proportion.estimate).filter(|share| share.is_finite());
            report.interval = Some(proportion.interval.into());
        }
        report
    }

    fn kind(&self) -> &'static str {
        match &self.task {
            Task::Probability(_) => "probability",
            Task::Hypothesis(_) => "hypothesis",
            Task::Comparison(_) => "comparison",
            Task::Expectation(_) => "expectation",
            Task::Simulation { .. } => "simulation",
        }
    }

    /// When the formula became true, over all runs so far; `None` for `[]` and for queries that are
    /// not about one formula, and before the first run.
    pub fn reach_curve(&self) -> Option<ReachCurve> {
        if !self.reaches {
            return None;
        }
        ReachCurve::new(&self.reached_at, self.runs, self.settings.alpha)
    }

    /// Of a simulation: the runs that were kept, in their order.
    pub fn trajectories(&self) -> &[Trajectory] {
        match &self.task {
            Task::Simulation { kept, .. } => kept,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;

    fn procedure(text: &str, settings: Settings) -> (BoundQuery, Procedure) {
        let bound = parse(text).and_then(|query| query.bind(text, &["x"]));
        let bound = bound.unwrap_or_else(|error| panic!("{error}"));
        let procedure = Procedure::new(&bound, &settings).expect("usable settings");
        (bound, procedure)
    }

    /// Runs in which x is `value(run)` from second 1 on, pushed in batches of `batch`.
    fn carry_out(text: &str, batch: u64, value: impl Fn(u64) -> f64) -> Procedure {
        let (bound, mut procedure) = procedure(text, Settings::default());
        let mut first = 0;
        while !procedure.is_done() {
            let outcomes: Vec<RunOutcome> = (first..first + batch)
                .map(|run| {
                    let mut monitor = bound.monitor(run);
                    monitor.observe(0.0, &[0.0]);
                    monitor.observe(1.0, &[value(run)]);
                    monitor.finish(2.0)
                })
                .collect();
            for outcome in outcomes {
                procedure.push(outcome);
            }
            first += batch;
        }
        procedure
    }

    #[test]
    fn the_report_does_not_depend_on_the_size_of_a_batch() {
        let value = |run: u64| f64::from(u32::try_from(run * 7919 % 101).expect("small"));
        for text in [
            "Pr[<=2](<> x > 60)",
            "Pr[<=2]([] x < 60) >= 0.4",
            "Pr[<=2](<> x > 20) >= Pr[<=2](<> x > 80)",
            "E[<=2; 50](max: x)",
            "simulate [<=2; 40] {x} : 7 : x > 50",
        ] {
            let alone = carry_out(text, 1, value);
            let batched = carry_out(text, 64, value);
            assert!(alone.report().complete, "{text}");
            assert_eq!(alone.report(), batched.report(), "{text}");
            assert_eq!(alone.reach_curve(), batched.reach_curve(), "{text}");
            assert_eq!(alone.trajectories(), batched.trajectories(), "{text}");
        }
    }

    #[test]
    fn a_formula_that_never_holds_takes_36_runs_and_has_an_empty_curve() {
        let done = carry_out("Pr[<=2](<> x > 60)", 1, |_| 0.0);
        let report = done.report();
        assert_eq!((report.runs, report.successes, report.estimate), (36, Some(0), Some(0.0)));
        let interval = report.interval.expect("an interval");
        assert!((interval.high - 0.097_393_755_914).abs() < 1e-12);
        let curve = done.reach_curve().expect("runs");
        assert!(curve.points.is_empty() && curve.runs == 36);
    }

    #[test]
    fn decisions_and_means_are_reported() {
        let hypothesis = carry_out("Pr[<=2](<> x > 0) >= 0.9", 8, |_| 1.0).report();
        assert_eq!(
            (hypothesis.kind, hypothesis.decision),
            ("hypothesis", Some(Decision::Accepted))
        );
        let compared = carry_out("Pr[<=2](<> x > 2) >= Pr[<=2](<> x > 0)", 8, |_| 1.0).report();
        assert_eq!(compared.decision, Some(Decision::Rejected));
        assert_eq!(compared.sides.expect("two sides").map(|side| side.successes), [0, 30]);
        let mean = carry_out("E[<=2; 4](max: x)", 3, |run| [1.0, 3.0][run as usize % 2]).report();
        assert_eq!((mean.runs, mean.estimate), (4, Some(2.0)));
        let alike = carry_out("E[<=2](max: x)", 8, |_| 1.0).report();
        assert_eq!((alike.runs, alike.estimate, alike.interval), (299, Some(1.0), None));
        assert!((alike.differing_at_most.expect("alike") - 0.01).abs() < 1e-4, "{alike:?}");
    }

    #[test]
    fn runs_have_a_limit_and_settings_a_meaning() {
        let settings = Settings { runs_max: Some(5), ..Settings::default() };
        let (bound, mut limited) = procedure("Pr[<=2](<> x > 0)", settings);
        for run in 0..9 {
            limited.push(bound.monitor(run).finish(2.0));
        }
        assert_eq!((limited.report().runs, limited.report().complete), (5, false));
        assert_eq!(limited.runs_expected(), Some(5));
        for wrong in [
            Settings { alpha: 0.0, ..settings },
            Settings { beta: 0.99, ..settings },
            Settings { epsilon: f64::NAN, ..settings },
            Settings { epsilon_abs: Some(0.0), ..settings },
            // Of a mean without a number of runs alone.
            Settings { epsilon_abs: Some(0.1), ..settings },
            Settings { delta_plus: -0.1, ..settings },
            Settings { u1: 0.5, ..settings },
            Settings { runs_max: Some(0), ..settings },
        ] {
            let error = Procedure::new(&bound, &wrong).expect_err("unusable");
            assert!(error.message.contains("write"), "{error}");
        }
    }
}
