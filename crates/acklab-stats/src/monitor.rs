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

use crate::query::{Expression, Extreme, Filter, Limit, Measure, Path, Window, Within};

/// What is known about a formula so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run has to go on.
    Undecided,
    /// The formula holds, whatever follows.
    Holds,
    /// The formula fails, whatever follows.
    Fails,
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutcome {
    /// Of a probability, a test or a comparison.
    Formula {
        /// Whether the formula held.
        holds: bool,
        /// The clock (seconds, or the value of the clock signal) when that was decided.
        at: f64,
    },
    /// Of an expectation: the extreme; `None` if the expression never had a finite value.
    Extreme(Option<f64>),
    /// Of a simulation.
    Trajectory(Trajectory),
}

/// The recorded values of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// (clock, value of each expression), one row per change.
    pub rows: Vec<(f64, Vec<f64>)>,
    /// Whether the filter's condition held at some time; true without a filter.
    pub kept: bool,
}

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
    Extreme {
        extreme: Extreme,
        value: Expression<usize>,
        found: Option<f64>,
        over: bool,
    },
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

    pub(crate) fn of_extreme(
        window: &Window<usize>,
        extreme: Extreme,
        value: &Expression<usize>,
    ) -> Self {
        let value = value.clone();
        Self::new(window, Task::Extreme { extreme, value, found: None, over: false })
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
            Task::Extreme { extreme, value, found, over } => {
                *over |= self.clock > end;
                if !*over {
                    let value = value.evaluate(values);
                    *found = further(*extreme, *found, value);
                }
                *over
            }
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
        match &self.task {
            Task::Formula(until) => until.verdict,
            Task::Extreme { over: true, .. } | Task::Simulation { over: true, .. } => {
                Verdict::Holds
            }
            Task::Extreme { .. } | Task::Simulation { .. } => Verdict::Undecided,
        }
    }

    /// The outcome of a run that ended at `end_s`, its signals having kept their values up to there.
    pub fn finish(mut self, end_s: f64) -> RunOutcome {
        if let Limit::Time(_) = self.limit {
            self.clock = self.clock.max(end_s);
        }
        match self.task {
            Task::Formula(mut until) => {
                let holds = until.finish(self.clock) == Verdict::Holds;
                RunOutcome::Formula { holds, at: until.decided_at }
            }
            Task::Extreme { found, .. } => RunOutcome::Extreme(found),
            Task::Simulation { filter, rows, .. } => {
                let clock = self.clock;
                let kept = filter.is_none_or(|mut until| until.finish(clock) == Verdict::Holds);
                RunOutcome::Trajectory(Trajectory { rows, kept })
            }
        }
    }
}

fn further(extreme: Extreme, found: Option<f64>, value: f64) -> Option<f64> {
    if !value.is_finite() {
        return found;
    }
    Some(found.map_or(value, |found| match extreme {
        Extreme::Max => found.max(value),
        Extreme::Min => found.min(value),
    }))
}

fn same_bits(left: &[f64], right: &[f64]) -> bool {
    left.iter().map(|value| value.to_bits()).eq(right.iter().map(|value| value.to_bits()))
}

/// `hold U[from, to] goal`, to which all path formulas come down: `<> p` is `true U p`, and `[] p`
/// is not `<> !p`.
#[derive(Clone, Debug)]
struct Until {
    hold: Expression<usize>,
    goal: Expression<usize>,
    /// The formula asks for the opposite: `goal` holds where the formula's condition fails.
    always: bool,
    within: Within,
    /// The goal held at the last state, before the interval, from this clock on.
    waiting: bool,
    verdict: Verdict,
    decided_at: f64,
}

impl Until {
    fn new(window: &Window<usize>, path: &Path<usize>) -> Self {
        let (hold, within, goal, always) = match path {
            Path::Eventually(within, goal) => (Expression::Truth(true), within, goal, false),
            Path::Always(within, goal) => (Expression::Truth(true), within, goal, true),
            Path::Until(hold, within, goal) => (hold.clone(), within, goal, false),
        };
        let end = match window.limit {
            Limit::Time(limit) | Limit::Signal(_, limit) => limit,
            Limit::Steps(_) => f64::INFINITY,
        };
        let within = within.map_or(Within { from: f64::NEG_INFINITY, to: end }, |within| Within {
            from: within.from,
            to: within.to.min(end),
        });
        Self {
            hold,
            goal: goal.clone(),
            always,
            within,
            waiting: false,
            verdict: Verdict::Undecided,
            decided_at: f64::NAN,
        }
    }

    fn observe(&mut self, clock: f64, values: &[f64]) -> Verdict {
        if self.verdict != Verdict::Undecided {
            return self.verdict;
        }
        let Within { from, to } = self.within;
        if self.waiting && clock > from {
            // The last state reached into the interval.
            return self.decide(from <= to, from.min(to));
        }
        if clock > to {
            return self.decide(false, to);
        }
        let goal = self.goal.holds(values) ^ self.always;
        if goal && clock >= from {
            return self.decide(true, clock);
        }
        if !self.hold.holds(values) {
            return self.decide(false, clock);
        }
        self.waiting = goal;
        Verdict::Undecided
    }

    fn finish(&mut self, clock: f64) -> Verdict {
        if self.verdict != Verdict::Undecided {
            return self.verdict;
        }
        let Within { from, to } = self.within;
        let reached = self.waiting && clock >= from && from <= to;
        self.decide(reached, if reached { from } else { clock.min(to) })
    }

    fn decide(&mut self, reached: bool, at: f64) -> Verdict {
        self.decided_at = at;
        self.verdict = if reached ^ self.always { Verdict::Holds } else { Verdict::Fails };
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;

    /// Runs `query` over the signals x and y; returns the verdict's time of decision, the outcome.
    fn judge(query: &str, states: &[(f64, f64, f64)], end: f64) -> (bool, f64) {
        let bound = parse(query).and_then(|parsed| parsed.bind(query, &["x", "y"]));
        let mut monitor = bound.unwrap_or_else(|error| panic!("{error}")).monitor(0);
        for (time, x, y) in states {
            monitor.observe(*time, &[*x, *y]);
        }
        match monitor.finish(end) {
            RunOutcome::Formula { holds, at } => (holds, at),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn formulas_hold_as_defined_up_to_and_at_their_limits() {
        let run =
            [(0.0, 0.0, 1.0), (1.0, 1.0, 1.0), (2.0, 2.0, 1.0), (3.0, 0.0, 0.0), (4.0, 5.0, 0.0)];
        for (query, holds, at) in [
            ("Pr[<=10](<> x > 1)", true, 2.0),
            ("Pr[<=2](<> x > 1)", true, 2.0),
            ("Pr[<=1.5](<> x > 1)", false, 1.5),
            ("Pr[<=10](<> x > 9)", false, 5.0),
            ("Pr[<=10]([] x < 3)", false, 4.0),
            ("Pr[<=3]([] x < 3)", true, 3.0),
            ("Pr[<=10]([] x < 9)", true, 5.0),
            ("Pr[<=10](y > 0 U x >= 2)", true, 2.0),
            // y falls at the very state at which x has not yet risen.
            ("Pr[<=10](y > 0 U x >= 5)", false, 3.0),
            ("Pr[<=10](x < 5 U y < 1)", true, 3.0),
            ("Pr[x<=1](<> y < 1)", false, 1.0),
        ] {
            assert_eq!(judge(query, &run, 5.0), (holds, at), "{query}");
        }
    }

    #[test]
    fn intervals_see_what_a_signal_holds_in_between() {
        let run = [(0.0, 0.0, 1.0), (1.0, 1.0, 1.0), (2.0, 0.0, 1.0)];
        for (query, holds, at) in [
            ("Pr[<=10](<>[1.5,1.7] x == 1)", true, 1.5),
            ("Pr[<=10](<>[2,3] x == 1)", false, 3.0),
            ("Pr[<=10](<>[1,1] x == 1)", true, 1.0),
            ("Pr[<=10]([][1,1.9] x == 1)", true, 1.9),
            ("Pr[<=10]([][1,2] x == 1)", false, 2.0),
            ("Pr[<=10]([][0.5,1.5] x == 1)", false, 0.5),
            ("Pr[<=10](y > 0 U[2.5,9] x == 0)", true, 2.5),
            ("Pr[<=10](x == 0 U[2.5,9] y > 0)", false, 1.0),
            ("Pr[<=10](<>[4,5] x == 0)", true, 4.0),
            ("Pr[<=3](<>[4,5] x == 0)", false, 3.0),
        ] {
            let end = if query.starts_with("Pr[<=3]") { 3.0 } else { 6.0 };
            assert_eq!(judge(query, &run, end), (holds, at), "{query}");
        }
    }

    #[test]
    fn states_of_no_duration_count() {
        let run = [(0.0, 0.0, 1.0), (1.0, 9.0, 1.0), (1.0, 0.0, 1.0), (2.0, 0.0, 1.0)];
        assert_eq!(judge("Pr[<=3](<> x > 5)", &run, 3.0), (true, 1.0));
        assert_eq!(judge("Pr[<=3]([] x < 5)", &run, 3.0), (false, 1.0));
    }

    #[test]
    fn a_decided_run_may_stop_and_looks_no_further() {
        let text = "Pr[<=3](<> x > 5)";
        let bound = parse(text).and_then(|query| query.bind(text, &["x"])).expect("a query");
        let mut monitor = bound.monitor(0);
        assert!(!monitor.observe(0.0, &[1.0]));
        assert_eq!(monitor.verdict(), Verdict::Undecided);
        assert!(monitor.observe(1.0, &[6.0]));
        assert!(monitor.observe(9.0, &[0.0]));
        assert_eq!(monitor.verdict(), Verdict::Holds);
        assert_eq!(monitor.finish(9.0), RunOutcome::Formula { holds: true, at: 1.0 });
    }

    #[test]
    fn extremes_skip_what_is_not_a_number_and_what_is_past_the_limit() {
        for (text, expect) in [
            ("E[<=2; 9](max: x / y)", Some(4.0)),
            ("E[<=2; 9](min: x / y)", Some(2.0)),
            ("E[<=2; 9](max: x / (y - y))", None),
        ] {
            let bound = parse(text).and_then(|query| query.bind(text, &["x", "y"]));
            let mut monitor = bound.expect("a query").monitor(0);
            for (time, x, y) in [(0.0, 2.0, 1.0), (1.0, 4.0, 1.0), (2.0, 1.0, 0.0), (3.0, 9.0, 1.0)]
            {
                assert_eq!(monitor.observe(time, &[x, y]), time > 2.0);
            }
            assert_eq!(monitor.finish(3.0), RunOutcome::Extreme(expect), "{text}");
        }
    }

    #[test]
    fn a_simulation_records_changes_and_says_whether_its_filter_held() {
        let text = "simulate [<=2] {x, x + y} : y > 3";
        let bound = parse(text).and_then(|query| query.bind(text, &["x", "y"]));
        let mut monitor = bound.expect("a query").monitor(0);
        for (time, x) in [(0.0, 1.0), (0.5, 1.0), (1.0, 2.0), (2.5, 3.0)] {
            monitor.observe(time, &[x, 1.0]);
        }
        let rows = vec![(0.0, vec![1.0, 2.0]), (1.0, vec![2.0, 3.0])];
        let expect = RunOutcome::Trajectory(Trajectory { rows, kept: false });
        assert_eq!(monitor.finish(2.5), expect);
    }
}
