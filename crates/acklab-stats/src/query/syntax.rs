//! A parsed query, and how it prints.

use std::fmt;

use super::expression::{Expression, SignalName, write_number};

/// A query over signals `S`: names as parsed, slots once bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Query<S = SignalName> {
    /// `Pr[bound](path)`: how probable is it?
    Probability(Measure<S>),
    /// `Pr[bound](path) >= p` or `<= p`: is it that probable?
    Hypothesis {
        /// What is measured.
        measure: Measure<S>,
        /// What it is compared with.
        bound: Bound,
    },
    /// `Pr[bound](path) >= Pr[bound](path)`: is the left the more probable one?
    Comparison {
        /// Left of the sign.
        left: Measure<S>,
        /// Right of the sign.
        right: Measure<S>,
    },
    /// `E[bound; runs](max: x)`: what is the mean of a run's maximum, time average, …?
    /// `E[bound](share: p) <= c`: is it that small?
    Expectation {
        /// How long a run is, and how many.
        window: Window<S>,
        /// A run's value.
        value: Value<S>,
        /// What the mean of a share is compared with.
        bound: Option<Bound>,
    },
    /// `quantile[bound; runs](p, max: x)`: what do a run's values stay below with probability p?
    Quantile {
        /// How long a run is, and how many.
        window: Window<S>,
        /// p, inside 0..1, ends excluded.
        p: f64,
        /// A run's value.
        value: Value<S>,
    },
    /// `S[bound; runs](avg: x)`: what is x on average in the long run?
    SteadyState {
        /// How long a run is, and how many.
        window: Window<S>,
        /// An average or a share, within the times after the warm-up if that is given.
        value: Value<S>,
    },
    /// `simulate [bound; runs] {x, y} : n : p`: record runs, optionally only those that meet `p`.
    Simulation {
        /// How long a run is, and how many.
        window: Window<S>,
        /// What to record, at least one.
        values: Vec<Expression<S>>,
        /// Which runs to keep.
        filter: Option<Filter<S>>,
    },
}

impl<S> Query<S> {
    /// What a probability or the mean of a share is compared with.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Self::Hypothesis { bound, .. } => Some(*bound),
            Self::Expectation { bound, .. } => *bound,
            _ => None,
        }
    }
}

/// A path formula under a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure<S = SignalName> {
    /// How long a run is, and how many.
    pub window: Window<S>,
    /// What is asked of a run.
    pub path: Path<S>,
}

/// `[limit; runs]`
#[derive(Clone, Debug, PartialEq)]
pub struct Window<S = SignalName> {
    /// Where a run ends.
    pub limit: Limit<S>,
    /// How many runs; by the stop rule without.
    pub runs: Option<u64>,
}

/// Where a run ends, the limit included.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit<S = SignalName> {
    /// `<=T`, in seconds.
    Time(f64),
    /// `#<=N`, a number of transitions; no trace of packets has them, so binding refuses it.
    Steps(u64),
    /// `x<=C`: the signal serves as the clock.
    Signal(S, f64),
}

/// What is asked of one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Path<S = SignalName> {
    /// `<> p`, with `<>[a,b] p` only at a time in a..=b.
    Eventually(Option<Within>, Expression<S>),
    /// `[] p`, with `[][a,b] p` only at the times in a..=b.
    Always(Option<Within>, Expression<S>),
    /// `p U q`, with `p U[a,b] q` for q at a time in a..=b.
    Until(Expression<S>, Option<Within>, Expression<S>),
}

/// `[a,b]`: times (or values of the clock signal) at which a path formula counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// a, in seconds.
    pub from: f64,
    /// b >= a, in seconds.
    pub to: f64,
}

/// `>= c` or `<= c`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// `>=`; else `<=`.
    pub at_least: bool,
    /// c, inside 0..=1.
    pub threshold: f64,
}

/// What a run comes down to: `max: x`, `share[10,20] per drops: x > 3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<S = SignalName> {
    /// How it is reduced to one number.
    pub reduction: Reduction,
    /// The times (or values of the clock signal) that count; all of the run without.
    pub within: Option<Within>,
    /// The counter whose increments weigh, in place of time.
    pub per: Option<S>,
    /// What is reduced: a condition if the reduction is a share, else a number.
    pub expression: Expression<S>,
}

/// How one run's course is reduced to one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The last value.
    Last,
    /// The average over time, or over what a counter counts.
    Average,
    /// The share of time, or of what a counter counts, in which a condition holds.
    Share,
    /// The integral over time, or the sum over what a counter counts.
    Sum,
    /// The value below which the expression is for this share of time, or of what a counter counts.
    Quantile(f64),
}

impl Reduction {
    /// How it is written, without the share of a quantile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
            Self::Last => "last",
            Self::Average => "avg",
            Self::Share => "share",
            Self::Sum => "sum",
            Self::Quantile(_) => "quantile",
        }
    }

    /// Whether a counter may weigh in place of time.
    pub(crate) fn is_weighted(self) -> bool {
        !matches!(self, Self::Max | Self::Min | Self::Last)
    }
}

/// `: runs : condition`
#[derive(Clone, Debug, PartialEq)]
pub struct Filter<S = SignalName> {
    /// Stop after so many runs that met it.
    pub runs: Option<u64>,
    /// A run is kept if it holds at some time.
    pub condition: Expression<S>,
}

impl<S: fmt::Display> fmt::Display for Query<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probability(measure) => write!(f, "{measure}"),
            Self::Hypothesis { measure, bound } => write!(f, "{measure} {bound}"),
            Self::Comparison { left, right } => write!(f, "{left} >= {right}"),
            Self::Expectation { window, value, bound } => {
                write!(f, "E[{window}]({value})")?;
                bound.map_or(Ok(()), |bound| write!(f, " {bound}"))
            }
            Self::Quantile { window, p, value } => {
                write!(f, "quantile[{window}](")?;
                write_number(f, *p)?;
                write!(f, ", {value})")
            }
            Self::SteadyState { window, value } => write!(f, "S[{window}]({value})"),
            Self::Simulation { window, values, filter } => {
                write!(f, "simulate [{window}] {{")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")?;
                let Some(filter) = filter else { return Ok(()) };
                if let Some(runs) = filter.runs {
                    write!(f, " : {runs}")?;
                }
                write!(f, " : {}", filter.condition)
            }
        }
    }
}

impl<S: fmt::Display> fmt::Display for Measure<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pr[{}]({})", self.window, self.path)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.at_least { ">= " } else { "<= " })?;
        write_number(f, self.threshold)
    }
}

impl<S: fmt::Display> fmt::Display for Value<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reduction.name())?;
        if let Reduction::Quantile(share) = self.reduction {
            f.write_str("(")?;
            write_number(f, share)?;
            f.write_str(")")?;
        }
        self.within.map_or(Ok(()), |within| write!(f, "{within}"))?;
        if let Some(counter) = &self.per {
            write!(f, " per {counter}")?;
        }
        write!(f, ": {}", self.expression)
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        write_number(f, self.from)?;
        f.write_str(",")?;
        write_number(f, self.to)?;
        f.write_str("]")
    }
}

impl<S: fmt::Display> fmt::Display for Window<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.limit {
            Limit::Time(seconds) => {
                f.write_str("<=")?;
                write_number(f, *seconds)?;
            }
            Limit::Steps(steps) => write!(f, "#<={steps}")?,
            Limit::Signal(signal, value) => {
                write!(f, "{signal}<=")?;
                write_number(f, *value)?;
            }
        }
        self.runs.map_or(Ok(()), |runs| write!(f, "; {runs}"))
    }
}

impl<S: fmt::Display> fmt::Display for Path<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = |f: &mut fmt::Formatter<'_>, within: &Option<Within>| {
            within.map_or(Ok(()), |within| write!(f, "{within}"))
        };
        match self {
            Self::Eventually(within, goal) => {
                f.write_str("<>")?;
                interval(f, within)?;
                write!(f, " {goal}")
            }
            Self::Always(within, goal) => {
                f.write_str("[]")?;
                interval(f, within)?;
                write!(f, " {goal}")
            }
            Self::Until(hold, within, goal) => {
                write!(f, "{hold} U")?;
                interval(f, within)?;
                write!(f, " {goal}")
            }
        }
    }
}
