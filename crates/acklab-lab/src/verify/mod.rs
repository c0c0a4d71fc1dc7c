//! Verification: a query about a scenario, answered with an interval or a decision.
//!
//! A [`Job`] is a scenario, its settings and a bound query. Replications are independent; they are
//! computed on all cores in batches, and their outcomes counted one by one in the order of their seeds,
//! so that the answer, and the number of runs behind it, is the same whatever the number of cores. What a
//! batch computed beyond the end is not counted. A run stops as soon as its outcome is known.
//!
//! Methods, stop rules and the query language are acklab-stats'; docs/verification.md explains them.

mod cases;
mod splitting;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::rng;
use acklab_core::time::{Span, Time};
use acklab_stats::BoundQuery;
use acklab_stats::query::{self, Query, QueryError};
use acklab_stats::{Procedure, RunOutcome, SettingsError};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::parameter::{SetError, Settings};
use crate::results::sets;
use crate::scenario::Scenario;
use crate::signal::Segment;
use crate::timing::{Stopwatch, Timing};

/// How sure and how precise an answer is to be.
pub use acklab_stats::Settings as Precision;
pub use acklab_stats::{
    Claim, Decision, Interval, ProportionMethod, ReachCurve, Report, Steadiness, StopRule,
    TooShort, Trajectory, Validity,
};
pub use cases::{Answered, Cases};
pub use splitting::{Effort, SplitError, SplitVerification};

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.verify/1";

/// Why a query cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The scenario shows no signals.
    #[error(
        "scenario {0} shows no signals that a query could be about; ance-dumbbell does, and `acklab \
         scenarios ance-dumbbell` lists them"
    )]
    NoSignals(&'static str),
    /// The settings do not go together.
    #[error("--set: {0}")]
    Settings(#[from] SetError),
    /// The query.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// A run would take too long.
    #[error("a run of {seconds} s is longer than the {limit} s that a query may ask for")]
    TooLong {
        /// What was asked for.
        seconds: f64,
        /// What may be.
        limit: f64,
    },
    /// A file that asks nothing.
    #[error(
        "what is the query? Such as 'Pr[<=30](<> queue.length > 100)', in quotation marks, or [[query]] tables with a \
         bound in the file"
    )]
    NoQuery,
    /// Precision or confidence make no sense.
    #[error("{0}")]
    Precision(#[from] SettingsError),
}

/// A query about a scenario, ready to run.
pub struct Job {
    scenario: &'static dyn Scenario,
    settings: Settings,
    query: BoundQuery,
    precision: Precision,
    seed: u64,
    wanted: Vec<bool>,
    until: Time,
}

/// An answered query.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The scenario.
    pub scenario: &'static str,
    /// What was set.
    pub settings: Settings,
    /// The query in its canonical form.
    pub query: String,
    /// Seed of the first run.
    pub seed: u64,
    /// Whether it was asked whether something holds.
    pub is_test: bool,
    /// The answer, or what was known when it was interrupted.
    pub report: Report,
    /// When the formula became true, over the runs.
    pub reached: Option<ReachCurve>,
    /// Of a simulation: what the columns of its trajectories are.
    pub columns: Vec<String>,
    /// Of a simulation: the runs that were kept.
    pub trajectories: Vec<Trajectory>,
    /// What it cost.
    pub timing: Timing,
}

impl Job {
    /// Binds a query to a scenario under settings.
    pub fn new(
        scenario: &'static dyn Scenario,
        settings: Settings,
        text: &str,
        precision: Precision,
        seed: u64,
    ) -> Result<Self, VerifyError> {
        scenario.check(&settings)?;
        let signals = scenario.signals(&settings);
        if signals.is_empty() {
            return Err(VerifyError::NoSignals(scenario.declaration().name));
        }
        let names: Vec<_> = signals.iter().map(|signal| signal.name.as_str()).collect();
        let query = query::parse(text)?.bind(text, &names)?;
        Procedure::new(&query, &precision)?;
        let mut wanted = vec![false; signals.len()];
        for slot in query.signals() {
            wanted[*slot] = true;
        }
        let seconds = query.duration_s();
        let seconds = seconds.unwrap_or(settings.duration().unwrap_or_default().as_secs_f64());
        if seconds > LONGEST_S {
            return Err(VerifyError::TooLong { seconds, limit: LONGEST_S });
        }
        let until = Time::ZERO + Span::from_secs_f64(seconds);
        Ok(Self { scenario, settings, query, precision, seed, wanted, until })
    }

    /// Answers the query. `progress` sees what is known after each batch, with the number of runs that
    /// are expected in all; once `stop` is set, or a simulation has [`MAX_ROWS`], what is known is
    /// returned.
    pub fn run(
        &self,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Report, Option<u64>),
    ) -> Verification {
        let watch = Stopwatch::start();
        let mut procedure =
            Procedure::new(&self.query, &self.precision).expect("checked when the job was made");
        let (mut next, mut observations, mut rows, mut full) = (0, 0, 0, false);
        // Trajectories are large, and those of a batch are in memory together.
        let each = if self.is_simulation() { 1 } else { BATCH };
        let batch = each * rayon::current_num_threads() as u64;
        while !procedure.is_done() && !full && !stop.load(Ordering::Relaxed) {
            let most = procedure.runs_expected().map_or(batch, |all| all.saturating_sub(next));
            let runs = next..next + most.clamp(1, batch);
            next = runs.end;
            let outcomes: Vec<_> =
                runs.into_par_iter().map(|run| self.run_one(run, stop)).collect();
            // A run that was cut short says nothing, and the order forbids to count those after it.
            full = outcomes.iter().any(Option::is_none);
            for (outcome, observed) in outcomes.into_iter().map_while(|outcome| outcome) {
                if let RunOutcome::Trajectory(trajectory) = &outcome {
                    rows += trajectory.rows.len() as u64;
                    full |= rows > MAX_ROWS;
                    if full {
                        break;
                    }
                }
                observations += observed;
                procedure.push(outcome);
            }
            progress(&procedure.report(), procedure.runs_expected());
        }
        let trajectories = procedure.trajectories().to_vec();
        Verification {
            scenario: self.scenario.declaration().name,
            settings: self.settings.clone(),
            query: self.query.text().to_owned(),
            seed: self.seed,
            is_test: self.query.query().bound().is_some()
                || matches!(self.query.query(), Query::Comparison { .. }),
            report: procedure.report(),
            reached: procedure.reach_curve(),
            columns: if trajectories.is_empty() { vec![] } else { columns(self.query.text()) },
            trajectories,
            timing: watch.read(observations),
        }
    }

    fn is_simulation(&self) -> bool {
        matches!(self.query.query(), Query::Simulation { .. })
    }

    /// One run, unless it was told to stop or would be too long to keep, with the observations that it
    /// took.
    fn run_one(&self, run: u64, stop: &AtomicBool) -> Option<(RunOutcome, u64)> {
        let seed = rng::replication_seed(self.seed, run);
        let path = [Segment { from: Time::ZERO, seed }];
        let mut monitor = self.query.monitor(run);
        let (mut observations, mut cut) = (0, false);
        self.scenario.watch(&self.settings, &path, self.until, &self.wanted, &mut |now, values| {
            observations += 1;
            cut = stop.load(Ordering::Relaxed) || (observations > MAX_ROWS && self.is_simulation());
            if cut || monitor.observe(now.as_secs_f64(), values) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        (!cut).then(|| (monitor.finish(self.until.as_secs_f64()), observations))
    }
}

/// The expressions of a simulation as written: what stands between its braces.
fn columns(text: &str) -> Vec<String> {
    let inner = text.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    // Commas inside parentheses belong to a function.
    let mut depth = 0;
    let separates = |letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    };
    inner.map_or("", |(list, _)| list).split(separates).map(|part| part.trim().to_owned()).collect()
}

impl Verification {
    /// Whether the precision that was asked for was reached and, of a test, something decided.
    pub fn is_answered(&self) -> bool {
        self.report.complete
            && (!self.is_test
                || self.report.decision.is_some_and(|made| made != Decision::Undecided))
    }

    /// The contract's JSON: [`Report`]'s keys, with null for those that its kind of query has not.
    pub fn to_json(&self) -> Value {
        let report = json!(self.report);
        let mut object = json!({
            "schema": SCHEMA,
            "scenario": self.scenario,
            "sets": sets(&self.settings),
            "seed": self.seed,
            "query": self.query,
        });
        for key in ["kind", "runs", "successes", "estimate", "interval", "complete"] {
            object[key] = report[key].clone();
        }
        if let Value::Object(report) = report {
            for (key, value) in report {
                object[key] = value;
            }
        }
        if let Some(reached) = &self.reached {
            object["reached"] = json!(reached);
        }
        if !self.trajectories.is_empty() {
            object["columns"] = json!(self.columns);
            object["trajectories"] = self.trajectories.iter().map(trajectory).collect();
        }
        object["timing"] = self.timing.to_json();
        object
    }
}

/// Rows of time and values.
fn trajectory(run: &Trajectory) -> Value {
    let row = |(time, values): &(f64, Vec<f64>)| -> Value {
        std::iter::once(time).chain(values).copied().collect()
    };
    run.rows.iter().map(row).collect()
}

/// Runs of each thread in a batch: between two looks at the stop rule.
const BATCH: u64 = 8;
/// Rows that the trajectories of a simulation may have together: some hundred megabytes.
pub const MAX_ROWS: u64 = 2_000_000;
/// The longest run, in simulated seconds.
const LONGEST_S: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_split_at_commas_outside_functions() {
        assert_eq!(
            columns("simulate [<=1; 2] {x, max(y, 2) + 1} : 3 : x > 1"),
            ["x", "max(y, 2) + 1"]
        );
    }
}
