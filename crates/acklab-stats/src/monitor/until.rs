//! Path formulas: what is asked of one run, decided as early as can be.

use crate::query::{Expression, Limit, Path, Window, Within};

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

/// `hold U[from, to] goal`, to which all path formulas come down: `<> p` is `true U p`, and `[] p`
/// is not `<> !p`.
#[derive(Clone, Debug)]
pub(super) struct Until {
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
    pub(super) fn new(window: &Window<usize>, path: &Path<usize>) -> Self {
        let (hold, within, goal, always) = match path {
            Path::Eventually(within, goal) => (Expression::Truth(true), within, goal, false),
            Path::Always(within, goal) => (Expression::Truth(true), within, goal, true),
            Path::Until(hold, within, goal) => (hold.clone(), within, goal, false),
        };
        let within = times(window, *within);
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

    pub(super) fn observe(&mut self, clock: f64, values: &[f64]) -> Verdict {
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

    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The run ended at `clock`: whether the formula holds, and when that was decided.
    pub(super) fn finish(mut self, clock: f64) -> (bool, f64) {
        if self.verdict == Verdict::Undecided {
            let Within { from, to } = self.within;
            let reached = self.waiting && clock >= from && from <= to;
            self.decide(reached, if reached { from } else { clock.min(to) });
        }
        (self.verdict == Verdict::Holds, self.decided_at)
    }

    fn decide(&mut self, reached: bool, at: f64) -> Verdict {
        self.decided_at = at;
        self.verdict = if reached ^ self.always { Verdict::Holds } else { Verdict::Fails };
        self.verdict
    }
}

/// The times that count under a bound: those that the query names, else all.
pub(crate) fn times(window: &Window<usize>, within: Option<Within>) -> Within {
    let end = match window.limit {
        Limit::Time(limit) | Limit::Signal(_, limit) => limit,
        // Refused when the query was bound.
        Limit::Steps(_) => f64::INFINITY,
    };
    let Within { from, to } =
        within.unwrap_or(Within { from: f64::NEG_INFINITY, to: f64::INFINITY });
    Within { from, to: to.min(end) }
}
