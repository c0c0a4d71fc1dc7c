//! Rare events: [`Job::split`] answers `Pr[<=T](<> x > c)` by importance splitting.
//!
//! The importance is the query's own x, which rises towards c. An x that only adds up, such as itae, is a
//! poor one: whoever comes near does so at the end, when no time is left to come nearer. Levels come from a pilot under another
//! seed. A trajectory that splits off is the run from its beginning up to the instant at which the level
//! was reached, computed again, and after it the scenario's links draw from another seed; so what is
//! drawn at the start (when flows begin, where a clock stands) is the past's. It gains where what
//! happens on the way decides, such as early drops and jitter, and nothing where the start decides all.

use std::ops::{ControlFlow, RangeInclusive};

use acklab_core::time::Time;
use acklab_stats::query::{Binary, Expression, Path, Query};
use acklab_stats::{
    Passage, Segment as Split, SplitEstimate, SplitPlan, SplitRun, Splittable, choose_levels,
};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::{Job, SCHEMA, sets};
use crate::signal::Segment;
use crate::timing::{Stopwatch, Timing};

/// How much work splitting may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Trajectories of each stage.
    pub trajectories: u32,
    /// Independent replications, whose mean is the estimate.
    pub replications: u32,
}

/// Why a query cannot be answered by splitting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// Its form.
    #[error(
        "splitting needs a query of the form Pr[<=T](<> x > c) or Pr[<=T](<>[a,b] x > c), with a number c \
         and an x that rises towards it, such as Pr[<=30](<>[10,30] queue.length > 12)"
    )]
    Form,
    /// No trajectory of a pilot stage came nearer to the event.
    #[error(
        "no pilot trajectory came nearer to the event than the stage before: it may be impossible, or \
         more --effort is needed"
    )]
    Stuck,
    /// No replication reached the event.
    #[error("no replication reached the event: more --effort is needed")]
    Never,
}

/// A probability found by splitting.
#[derive(Clone, Debug)]
pub struct SplitVerification {
    /// The estimate with its interval.
    pub estimate: SplitEstimate,
    /// The values of x between the stages; the last is c.
    pub levels: Vec<f64>,
    /// Share of trajectories that each stage let through, over all replications.
    pub passed: Vec<f64>,
    /// What it cost.
    pub timing: Timing,
    object: Value,
}

impl Job {
    /// Answers the query by splitting.
    pub fn split(&self, effort: Effort) -> Result<SplitVerification, SplitError> {
        let watch = Stopwatch::start();
        let importance = Importance::of(self.query.query()).ok_or(SplitError::Form)?;
        let mut model = Model { job: self, importance: &importance };
        let goal = importance.goal;
        let levels = choose_levels(&mut model, goal, effort.trajectories, PASS, self.seed)
            .ok_or(SplitError::Stuck)?;
        let plan =
            SplitPlan::new(levels, effort.trajectories, self.seed).ok_or(SplitError::Stuck)?;
        let replications = 0..u64::from(effort.replications);
        let runs: Vec<SplitRun> = replications
            .into_par_iter()
            .map(|replication| {
                plan.replicate(&mut Model { job: self, importance: &importance }, replication)
            })
            .collect();
        let confidence = 1.0 - self.precision.alpha;
        let estimate = SplitEstimate::from_runs(&runs, confidence).ok_or(SplitError::Never)?;
        let passed = (0..plan.levels().len()).map(|stage| passed(&runs, stage, effort)).collect();
        let levels = plan.levels().iter().map(|level| level * importance.sign).collect();
        let object = json!({
            "schema": SCHEMA,
            "scenario": self.scenario.declaration().name,
            "sets": sets(&self.settings),
            "seed": self.seed,
            "query": self.query.text(),
            "kind": "probability",
        });
        let timing = watch.read(estimate.trajectories);
        Ok(SplitVerification { estimate, levels, passed, timing, object })
    }
}

/// Share of a stage's trajectories that reached its level, over the replications that had the stage.
fn passed(runs: &[SplitRun], stage: usize, effort: Effort) -> f64 {
    let reached: Vec<u32> = runs.iter().filter_map(|run| run.reached.get(stage)).copied().collect();
    let all = f64::from(effort.trajectories) * reached.len() as f64;
    f64::from(reached.iter().sum::<u32>()) / all
}

impl SplitVerification {
    /// The contract's JSON; `runs` counts trajectories.
    pub fn to_json(&self) -> Value {
        let mut object = self.object.clone();
        object["runs"] = json!(self.estimate.trajectories);
        object["successes"] = Value::Null;
        object["estimate"] = json!(self.estimate.estimate);
        object["interval"] = json!({
            "low": self.estimate.low,
            "high": self.estimate.high,
            "confidence": self.estimate.confidence,
            "method": "splitting, student-t",
        });
        object["complete"] = json!(true);
        object["splitting"] = json!({
            "levels": self.levels,
            "passed": self.passed,
            "replications": self.estimate.replications,
        });
        object["timing"] = self.timing.to_json();
        object
    }
}

/// What rises towards the event: `sign` times an expression, until `goal`, at the times that count.
struct Importance {
    counts: RangeInclusive<f64>,
    expression: Expression<usize>,
    sign: f64,
    goal: f64,
}

impl Importance {
    fn of(query: &Query<usize>) -> Option<Self> {
        let Query::Probability(measure) = query else { return None };
        let Path::Eventually(within, Expression::Binary(operator, left, right)) = &measure.path
        else {
            return None;
        };
        // What needs no signal is a number.
        let bound = right.evaluate(&[]);
        let (sign, strict) = match operator {
            Binary::Greater => (1.0, true),
            Binary::GreaterEqual => (1.0, false),
            Binary::Less => (-1.0, true),
            Binary::LessEqual => (-1.0, false),
            _ => return None,
        };
        let goal = sign * bound;
        let goal = if strict { goal.next_up() } else { goal };
        bound.is_finite().then(|| Self {
            expression: (**left).clone(),
            sign,
            goal,
            counts: within.map_or(0.0..=f64::INFINITY, |within| within.from..=within.to),
        })
    }
}

/// A job's runs, for splitting.
struct Model<'a> {
    job: &'a Job,
    importance: &'a Importance,
}

impl Splittable for Model<'_> {
    fn run(&mut self, path: &[Split], level: f64) -> Passage {
        // A scenario draws anew before the events of a segment's time, a trajectory after those that
        // reached its level: one nanosecond lies between, or the replay would miss the level.
        let segment = |(index, split): (usize, &Split)| Segment {
            from: Time::from_nanos(split.from + u64::from(index > 0)),
            seed: split.seed,
        };
        let segments: Vec<Segment> = path.iter().enumerate().map(segment).collect();
        let mut passage = Passage { reached: None, best: f64::NEG_INFINITY };
        let Job { scenario, settings, until, wanted, .. } = self.job;
        scenario.watch(settings, &segments, *until, wanted, &mut |now, values| {
            if !self.importance.counts.contains(&now.as_secs_f64()) {
                return ControlFlow::Continue(());
            }
            let value = self.importance.sign * self.importance.expression.evaluate(values);
            passage.best = passage.best.max(value);
            if value >= level {
                passage.reached = Some(now.as_nanos());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        passage
    }
}

/// Share of a pilot stage's trajectories that its level is chosen to let through.
const PASS: f64 = 0.25;
