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

mod report;
mod settings;

use crate::bind::BoundQuery;
use crate::estimate::{Estimate, EstimatePlan, Estimator};
use crate::expectation::{Expectation, HalfWidth, MeanPlan, MeanTest};
use crate::monitor::{RunOutcome, Trajectory, times};
use crate::proportion::ProportionMethod;
use crate::quantile::{QuantileOverRuns, QuantilePlan};
use crate::query::{Bound, Path, Query, Reduction, Value, Window};
use crate::reach::ReachCurve;
use crate::sprt::{Comparison, ComparisonPlan, ErrorRates, Sprt, SprtPlan};
use crate::steady::{SteadyPlan, SteadyState};

pub use self::report::Report;
pub use self::settings::{Settings, SettingsError};

/// A query's running procedure.
#[derive(Clone, Debug)]
pub struct Procedure {
    task: Task,
    settings: Settings,
    runs: u64,
    /// Whether the query says how many runs there are.
    is_fixed: bool,
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
    Quantile(QuantileOverRuns),
    SteadyState(SteadyState),
    Simulation(Kept),
}

/// The runs of a simulation.
#[derive(Clone, Debug)]
struct Kept {
    trajectories: Vec<Trajectory>,
    filtered: bool,
    keep: Option<u64>,
    runs: u64,
}

impl Task {
    /// `None` where a number of runs is too small.
    fn of(query: &Query<usize>, settings: &Settings) -> Option<Self> {
        let runs = query.windows().filter_map(|window| window.runs).min();
        let Settings { alpha, beta, epsilon, delta_minus, delta_plus, .. } = *settings;
        let rates = ErrorRates { alpha, beta };
        let relative = HalfWidth::Relative(epsilon);
        let half_width = settings.epsilon_abs.map_or(relative, HalfWidth::Absolute);
        match query {
            Query::Probability(_) => {
                let Settings { method, stop, .. } = *settings;
                Estimator::new(EstimatePlan { alpha, epsilon, method, stop, runs })
                    .map(Self::Probability)
            }
            Query::Hypothesis { bound: Bound { at_least, threshold }, .. } => {
                let (threshold, at_least, runs_max) = (*threshold, *at_least, runs);
                let plan =
                    SprtPlan { threshold, at_least, delta_minus, delta_plus, rates, runs_max };
                Sprt::new(plan).map(Self::Hypothesis)
            }
            Query::Comparison { .. } => {
                let Settings { u0, u1, .. } = *settings;
                let plan = ComparisonPlan { u0, u1, rates, epsilon, pairs_max: runs };
                Comparison::new(plan).map(Self::Comparison)
            }
            Query::Expectation { value, bound, .. } => {
                let is_share = value.reduction == Reduction::Share;
                // A share is a number between 0 and 1, as a probability is.
                let half_width = match half_width {
                    HalfWidth::Relative(epsilon) if is_share => HalfWidth::Absolute(epsilon),
                    other => other,
                };
                let test = bound.map(|Bound { at_least, threshold }| MeanTest {
                    threshold,
                    at_least,
                    delta_minus,
                    delta_plus,
                });
                Expectation::new(MeanPlan { alpha, half_width, runs, is_share, test })
                    .map(Self::Expectation)
            }
            Query::Quantile { p, .. } => {
                QuantileOverRuns::new(QuantilePlan { p: *p, alpha, half_width, runs })
                    .map(Self::Quantile)
            }
            Query::SteadyState { window, value } => {
                SteadyState::new(steady_plan(window, value, alpha)).map(Self::SteadyState)
            }
            Query::Simulation { filter, .. } => Some(Self::Simulation(Kept {
                trajectories: Vec::new(),
                filtered: filter.is_some(),
                keep: filter.as_ref().and_then(|filter| filter.runs),
                runs: runs.unwrap_or(1),
            })),
        }
    }
}

/// One run if none are named; a warm-up that is named lies before the times that count.
fn steady_plan(window: &Window<usize>, value: &Value<usize>, alpha: f64) -> SteadyPlan {
    let within = times(window, value.within);
    SteadyPlan {
        alpha,
        runs: window.runs.unwrap_or(1),
        times: (within.from.max(0.0), within.to),
        is_warm: value.within.is_some(),
    }
}

impl Procedure {
    /// The procedure that answers `query`.
    ///
    /// # Errors
    /// A setting, or a number of runs in the query, that nothing can be concluded with.
    pub fn new(query: &BoundQuery, settings: &Settings) -> Result<Self, SettingsError> {
        let refuse = |message: &str| Err(SettingsError { message: message.to_owned() });
        settings.check()?;
        let query = query.query();
        let is_fixed = query.windows().any(|window| window.runs.is_some());
        let narrows = match query {
            Query::Expectation { bound, .. } => !is_fixed && bound.is_none(),
            Query::Quantile { .. } => !is_fixed,
            _ => false,
        };
        if settings.epsilon_abs.is_some() && !narrows {
            return refuse(
                "an absolute epsilon says where a mean or quantile without a number of runs ends: \
                 write E[<=30](max: …), or leave it out",
            );
        }
        let Some(task) = Task::of(query, settings) else {
            return refuse(match query {
                Query::SteadyState { .. } => {
                    "no time is left in which a steady state could show itself"
                }
                _ => "a mean needs at least two runs: write E[<=30; 100](max: …)",
            });
        };
        let reaches = match query {
            Query::Probability(measure) | Query::Hypothesis { measure, .. } => {
                !matches!(measure.path, Path::Always(..))
            }
            _ => false,
        };
        let limit = settings.runs_max;
        let settings = *settings;
        Ok(Self { task, settings, runs: 0, is_fixed, reaches, reached_at: Vec::new(), limit })
    }

    /// Takes the outcome of the next run; says whether the procedure is done. An outcome of another
    /// query's monitor is dropped, as is one that comes after the end.
    pub fn push(&mut self, outcome: RunOutcome) -> bool {
        if self.is_done() {
            return true;
        }
        if let (true, &RunOutcome::Formula { holds: true, at }) = (self.reaches, &outcome) {
            self.reached_at.push(at);
        }
        match (&mut self.task, outcome) {
            (Task::Probability(estimator), RunOutcome::Formula { holds, .. }) => {
                estimator.push(holds);
            }
            (Task::Hypothesis(sprt), RunOutcome::Formula { holds, .. }) => {
                sprt.push(holds);
            }
            (Task::Comparison(comparison), RunOutcome::Formula { holds, .. }) => {
                comparison.push(holds);
            }
            (Task::Expectation(expectation), RunOutcome::Value(value)) => {
                expectation.push(value);
            }
            (Task::Quantile(quantile), RunOutcome::Value(value)) => {
                quantile.push(value);
            }
            (Task::SteadyState(steady), RunOutcome::Slices(slices)) => {
                steady.push(slices);
            }
            (Task::Simulation(kept), RunOutcome::Trajectory(trajectory)) => {
                if trajectory.kept {
                    kept.trajectories.push(trajectory);
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
            Task::Quantile(quantile) => quantile.is_done(),
            Task::SteadyState(steady) => steady.is_done(),
            Task::Simulation(Kept { trajectories, keep, runs, .. }) => {
                keep.is_some_and(|keep| trajectories.len() as u64 >= keep) || self.runs >= *runs
            }
        }
    }

    /// How many runs it will have taken if things go on as so far, for a progress bar; `None` where
    /// that cannot be told.
    pub fn runs_expected(&self) -> Option<u64> {
        let own = match &self.task {
            Task::Probability(estimator) => Some(estimator.runs_expected()),
            Task::Simulation(kept) => Some(kept.runs),
            Task::Expectation(expectation) => expectation.runs_fixed(),
            Task::Quantile(quantile) => quantile.runs_fixed(),
            Task::SteadyState(steady) => Some(steady.runs_fixed()),
            Task::Hypothesis(_) | Task::Comparison(_) => None,
        };
        own.into_iter().chain(self.limit).min()
    }

    /// What is known now.
    pub fn report(&self) -> Report {
        let mut report =
            Report { complete: self.is_complete(), ..Report::of(self.kind(), self.runs) };
        match &self.task {
            Task::Probability(estimator) => report.set_proportion(&estimator.estimate()),
            Task::Hypothesis(sprt) => {
                report.decision = Some(sprt.decision());
                report.claim = sprt.claim();
                report.set_proportion(&sprt.estimate());
            }
            Task::Comparison(comparison) => {
                report.decision = Some(comparison.decision());
                report.claim = comparison.claim();
                report.sides = Some(comparison.estimates());
            }
            Task::Expectation(expectation) => {
                report.runs_without_value = Some(expectation.runs_without_value());
                report.estimate = expectation.mean();
                report.differing_at_most = expectation.differing_at_most();
                report.interval = expectation.interval();
                report.decision = expectation.decision();
                report.claim = expectation.claim();
            }
            Task::Quantile(quantile) => {
                report.runs_without_value = Some(quantile.runs_without_value());
                report.estimate = quantile.estimate();
                report.interval = quantile.interval();
                report.runs_least = Some(quantile.runs_least());
            }
            Task::SteadyState(steady) => {
                let found = steady.estimate();
                report.estimate = found.mean;
                report.interval = found.interval;
                report.steadiness = Some(found.steadiness);
            }
            Task::Simulation(kept) if kept.filtered => {
                report.set_proportion(&self.kept(kept));
            }
            Task::Simulation(_) => {}
        }
        // Values beyond what a double holds leave bounds that are no numbers, and say nothing.
        report.interval = report.interval.filter(|found| found.low <= found.high);
        report
    }

    /// The share of a simulation's runs that were kept: for the number of runs asked for, unless enough
    /// that were kept ended it.
    fn kept(&self, kept: &Kept) -> Estimate {
        let Settings { method, alpha, .. } = self.settings;
        let count = kept.trajectories.len() as u64;
        if kept.keep.is_none() && self.is_complete() {
            let method = method.unwrap_or(ProportionMethod::ClopperPearson);
            Estimate::fixed(count, self.runs, method, alpha)
        } else {
            Estimate::stopped(count, self.runs, ProportionMethod::SEQUENCE, alpha)
        }
    }

    fn kind(&self) -> &'static str {
        match &self.task {
            Task::Probability(_) => "probability",
            Task::Hypothesis(_) => "hypothesis",
            Task::Comparison(_) => "comparison",
            Task::Expectation(_) => "expectation",
            Task::Quantile(_) => "quantile",
            Task::SteadyState(_) => "steady-state",
            Task::Simulation(_) => "simulation",
        }
    }

    /// When the formula became true, over all runs so far; `None` for `[]` and for queries that are
    /// not about one formula, and before the first run.
    pub fn reach_curve(&self) -> Option<ReachCurve> {
        if !self.reaches {
            return None;
        }
        let is_fixed =
            self.is_fixed && matches!(self.task, Task::Probability(_)) && self.is_complete();
        ReachCurve::new(&self.reached_at, self.runs, self.settings.alpha, is_fixed)
    }

    /// Of a simulation: the runs that were kept, in their order.
    pub fn trajectories(&self) -> &[Trajectory] {
        match &self.task {
            Task::Simulation(kept) => &kept.trajectories,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
