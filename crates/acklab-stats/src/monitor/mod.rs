//! Judges one run of a query, observation by observation.
//!
//! A signal keeps its value from one observation to the next. Several observations may fall on one
//! instant; each is a state of the run, and counts, also when it lasts no time. The limit belongs to
//! the run: `<> p` within T holds if p does at some time <= T. Before the first observation there is
//! nothing, so give one at the start. `p U q` needs p at every state before the one at which q
//! holds, not at that one. With an interval, q counts at the times in a..=b only, at which the
//! signals may just be holding their values. A monitor decides as early as it can.
//!
//! A run that ends before the limit is judged by what it showed.

mod outcome;
mod reducer;
mod until;

use self::reducer::Reducer;
use self::until::Until;
use crate::query::{Expression, Filter, Limit, Measure, Path, Value, Window};

pub(crate) use self::until::times;

pub use self::outcome::{RunOutcome, Slice, Trajectory};
pub use self::until::Verdict;

/// The judge of one run; see [`BoundQuery::monitor`](crate::BoundQuery::monitor).
#[derive(Clone, Debug)]
pub struct RunMonitor {
    limit: Limit<usize>,
    clock: f64,
    task: Task,
}

#[derive(Clone, Debug)]
enum Task {
    Formula(Until),
    Reduction(Reducer),
    Simulation {
        values: Vec<Expression<usize>>,
        filter: Option<Until>,
        rows: Vec<(f64, Vec<f64>)>,
        over: bool,
    },
}

impl RunMonitor {
    pub(crate) fn of_measure(measure: &Measure<usize>) -> Self {
        Self::new(&measure.window, Task::Formula(Until::new(&measure.window, &measure.path)))
    }

    pub(crate) fn of_value(window: &Window<usize>, value: &Value<usize>) -> Self {
        Self::new(window, Task::Reduction(Reducer::new(window, value)))
    }

    pub(crate) fn of_steady_state(window: &Window<usize>, value: &Value<usize>) -> Self {
        Self::new(window, Task::Reduction(Reducer::in_slices(window, value)))
    }

    pub(crate) fn of_simulation(
        window: &Window<usize>,
        values: &[Expression<usize>],
        filter: Option<&Filter<usize>>,
    ) -> Self {
        let filter = filter
            .map(|filter| Until::new(window, &Path::Eventually(None, filter.condition.clone())));
        let values = values.to_vec();
        Self::new(window, Task::Simulation { values, filter, rows: Vec::new(), over: false })
    }

    fn new(window: &Window<usize>, task: Task) -> Self {
        Self { limit: window.limit.clone(), clock: f64::NEG_INFINITY, task }
    }

    /// Takes the signals' values from time `time_s` on, by slot. Time must not fall; neither must the
    /// clock signal where there is one (a fall counts as standing still).
    ///
    /// Says whether the outcome is known, so that the run may stop; what comes after is not looked at.
    pub fn observe(&mut self, time_s: f64, values: &[f64]) -> bool {
        let (reading, end) = self.reading(time_s, values);
        self.clock = self.clock.max(reading);
        match &mut self.task {
            Task::Formula(until) => until.observe(self.clock, values) != Verdict::Undecided,
            Task::Reduction(reducer) => reducer.observe(self.clock, values),
            Task::Simulation { values: expressions, filter, rows, over } => {
                *over |= self.clock > end;
                if *over {
                    return true;
                }
                if let Some(filter) = filter {
                    filter.observe(self.clock, values);
                }
                let row: Vec<f64> =
                    expressions.iter().map(|expression| expression.evaluate(values)).collect();
                if rows.last().is_none_or(|(_, last)| !same_bits(last, &row)) {
                    rows.push((self.clock, row));
                }
                false
            }
        }
    }

    fn reading(&self, time_s: f64, values: &[f64]) -> (f64, f64) {
        match &self.limit {
            Limit::Time(seconds) => (time_s, *seconds),
            Limit::Signal(slot, value) => (values.get(*slot).copied().unwrap_or(f64::NAN), *value),
            // Refused when the query was bound.
            Limit::Steps(_) => (time_s, f64::INFINITY),
        }
    }

    /// What is known about the formula; of other queries, undecided until the limit is passed.
    pub fn verdict(&self) -> Verdict {
        let over = match &self.task {
            Task::Formula(until) => return until.verdict(),
            Task::Reduction(reducer) => reducer.is_over(),
            Task::Simulation { over, .. } => *over,
        };
        if over { Verdict::Holds } else { Verdict::Undecided }
    }

    /// The outcome of a run that ended at `end_s`, its signals having kept their values up to there.
    pub fn finish(mut self, end_s: f64) -> RunOutcome {
        if let Limit::Time(_) = self.limit {
            self.clock = self.clock.max(end_s);
        }
        match self.task {
            Task::Formula(until) => {
                let (holds, at) = until.finish(self.clock);
                RunOutcome::Formula { holds, at }
            }
            Task::Reduction(reducer) => reducer.finish(self.clock),
            Task::Simulation { filter, rows, .. } => {
                let kept = filter.is_none_or(|until| until.finish(self.clock).0);
                RunOutcome::Trajectory(Trajectory { rows, kept })
            }
        }
    }
}

fn same_bits(left: &[f64], right: &[f64]) -> bool {
    left.iter().map(|value| value.to_bits()).eq(right.iter().map(|value| value.to_bits()))
}

#[cfg(test)]
mod tests;
