//! Rare events: [`Job::split`] answers `Pr[<=T](<> x > c)` by importance splitting.
//!
//! The importance is the query's own x, which rises towards c. An x that only adds up, such as itae_rad_s, is a
//! poor one: whatever comes near does so at the end, when no time is left to come nearer. Levels come
//! from a pilot under another seed. A trajectory that splits off is the run from its beginning up to the
//! instant at which the level was reached, computed again, and after it everything that draws does so
//! from another seed; what was drawn before (when flows begin, where a clock stands, when the next
//! arrival comes) is the past's. It gains where what happens on the way decides, such as arrivals, early
//! drops and jitter, and nothing where the start decides all.
//!
//! In `<>[a,b]` only the times from a to b count, at which x may just be holding its value, as for plain
//! runs ([`acklab_stats`]'s monitor).

use std::ops::ControlFlow;

use acklab_core::time::{Span, Time};
use acklab_sim::ResultHash;
use acklab_stats::query::{Binary, Expression, Limit, Path, Query, Within};
use acklab_stats::{
    Passage, Segment as Split, SplitEstimate, SplitPlan, SplitRun, Splittable, Stuck, choose_levels,
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
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SplitError {
    #[error(
        "splitting needs a query of the form Pr[<=T](<> x > c) or Pr[<=T](<>[a,b] x > c), with a number c \
         and an x that rises towards it, such as Pr[<=30](<>[10,30] queue.length > 12)"
    )]
    Form,
    #[error(
        "splitting has no number of runs: --effort and --split-replications say how many trajectories there are. Write \
         Pr[<=30](...) without one"
    )]
    Runs,
    #[error(
        "splitting needs runs that are bounded by time, as by Pr[<=30](...): ask about runs that are \
         bounded by a signal without --splitting"
    )]
    Bound,
    #[error(
        "x has no value at the times that count: they lie beyond the end of the run, or x is not a number \
         there. The event is impossible"
    )]
    NoValue,
    #[error(
        "from x = {0} on, nothing is random that x depends on: there is nothing to split. Ask without \
         --splitting"
    )]
    Decided(f64),
    #[error(
        "of {count} trajectories of the pilot that came to x = {level}, none came nearer to the event: fewer than about 1 in {few} do. \
         With --effort {more}, in ten times the time, a rarer step would show; if x cannot go beyond, as where a buffer is full or a \
         congestion control keeps it there, the event is impossible",
        few = count / 3, more = count * 10
    )]
    Stuck { level: f64, count: usize },
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
    pub timing: Timing,
    object: Value,
}

impl Job {
    /// Answers the query by splitting.
    pub fn split(&self, effort: Effort) -> Result<SplitVerification, SplitError> {
        let watch = Stopwatch::start();
        let importance = Importance::of(self.query.query())?;
        let mut model = Model { job: self, importance: &importance };
        let goal = importance.goal;
        let levels = choose_levels(&mut model, goal, effort.trajectories, PASS, self.seed)
            .map_err(|stuck| model.why(&stuck))?;
        let plan =
            SplitPlan::new(levels, effort.trajectories, self.seed).ok_or(SplitError::Never)?;
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
            "method": "splitting",
            "validity": "fixed-runs",
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
    within: Within,
    expression: Expression<usize>,
    sign: f64,
    goal: f64,
}

impl Importance {
    fn of(query: &Query<usize>) -> Result<Self, SplitError> {
        let Query::Probability(measure) = query else { return Err(SplitError::Form) };
        let Path::Eventually(within, Expression::Binary(operator, left, right)) = &measure.path
        else {
            return Err(SplitError::Form);
        };
        if measure.window.runs.is_some() {
            return Err(SplitError::Runs);
        }
        let Limit::Time(_) = measure.window.limit else { return Err(SplitError::Bound) };
        // What needs no signal is a number.
        let bound = right.evaluate(&[]);
        let (sign, strict) = match operator {
            Binary::Greater => (1.0, true),
            Binary::GreaterEqual => (1.0, false),
            Binary::Less => (-1.0, true),
            Binary::LessEqual => (-1.0, false),
            _ => return Err(SplitError::Form),
        };
        let goal = sign * bound;
        let goal = if strict { goal.next_up() } else { goal };
        let within = within.unwrap_or(Within { from: f64::NEG_INFINITY, to: f64::INFINITY });
        let importance = Self { expression: (**left).clone(), sign, goal, within };
        if bound.is_finite() { Ok(importance) } else { Err(SplitError::Form) }
    }
}

/// The importance of one run as it goes, until it reaches a level.
struct Climb<'a> {
    importance: &'a Importance,
    level: f64,
    /// The importance of the last state, as long as that lies before the times that count.
    held: Option<f64>,
    passage: Passage,
}

impl Climb<'_> {
    /// Takes the signals' values from `now` on.
    fn observe(&mut self, now: Time, values: &[f64]) -> ControlFlow<()> {
        let Importance { within: Within { from, to }, expression, sign, .. } = self.importance;
        let (at, value) = (now.as_secs_f64(), sign * expression.evaluate(values));
        if at < *from {
            self.held = Some(value);
            return ControlFlow::Continue(());
        }
        let held = self.held.take().filter(|_| at > *from);
        if let Some(held) = held {
            self.reach(Time::ZERO + Span::from_secs_f64(*from), held)?;
        }
        if at > *to { ControlFlow::Break(()) } else { self.reach(now, value) }
    }

    fn reach(&mut self, at: Time, value: f64) -> ControlFlow<()> {
        self.passage.best = self.passage.best.max(value);
        if value < self.level || value.is_nan() {
            return ControlFlow::Continue(());
        }
        self.passage.reached = Some(at.as_nanos());
        ControlFlow::Break(())
    }

    /// The run ended at `end`, its signals having kept their values up to there.
    fn finish(mut self, end: Time) -> Passage {
        let from = self.importance.within.from;
        if let Some(held) = self.held.filter(|_| end.as_secs_f64() >= from) {
            // Whether that is enough stands in the passage.
            let _ = self.reach(Time::ZERO + Span::from_secs_f64(from), held);
        }
        self.passage
    }
}

/// A job's runs, for splitting.
struct Model<'a> {
    job: &'a Job,
    importance: &'a Importance,
}

impl Model<'_> {
    fn watch(&self, path: &[Split], mut each: impl FnMut(Time, &[f64]) -> ControlFlow<()>) {
        // A scenario draws anew before the events of a segment's time, a trajectory after those that
        // reached its level: one nanosecond lies between, or the replay would miss the level.
        let segment = |(index, split): (usize, &Split)| Segment {
            from: Time::from_nanos(split.from + u64::from(index > 0)),
            seed: split.seed,
        };
        let segments: Vec<Segment> = path.iter().enumerate().map(segment).collect();
        let Job { scenario, settings, until, wanted, .. } = self.job;
        scenario.watch(settings, &segments, *until, wanted, &mut each);
    }

    /// Why a pilot stage did not rise.
    fn why(&self, stuck: &Stuck) -> SplitError {
        let level = stuck.best * self.importance.sign;
        if stuck.best == f64::NEG_INFINITY {
            SplitError::NoValue
        } else if self.is_decided(&stuck.paths) {
            SplitError::Decided(level)
        } else {
            SplitError::Stuck { level, count: stuck.paths.len() }
        }
    }

    /// Whether trajectories that branch from one state all have one course.
    fn is_decided(&self, paths: &[Vec<Split>]) -> bool {
        let mut courses: Vec<(&[Split], u64)> = Vec::new();
        let mut compared = false;
        for path in paths {
            let Some((_, past)) = path.split_last() else { continue };
            let course = self.course(path);
            match courses.iter().find(|(other, _)| *other == past) {
                Some((_, other)) if *other != course => return false,
                Some(_) => compared = true,
                None => courses.push((past, course)),
            }
        }
        compared
    }

    /// A hash of all values of x and their times.
    fn course(&self, path: &[Split]) -> u64 {
        let mut hash = ResultHash::default();
        self.watch(path, |now, values| {
            hash.word(now.as_nanos());
            hash.word(self.importance.expression.evaluate(values).to_bits());
            ControlFlow::Continue(())
        });
        hash.finish()
    }
}

impl Splittable for Model<'_> {
    fn run(&mut self, path: &[Split], level: f64) -> Passage {
        let passage = Passage { reached: None, best: f64::NEG_INFINITY };
        let mut climb = Climb { importance: self.importance, level, held: None, passage };
        self.watch(path, |now, values| climb.observe(now, values));
        climb.finish(self.job.until)
    }
}

/// Share of a pilot stage's trajectories that its level is chosen to let through.
const PASS: f64 = 0.25;
