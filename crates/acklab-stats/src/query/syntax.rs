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
        /// `>=`; else `<=`.
        at_least: bool,
        /// p, inside 0..=1.
        threshold: f64,
    },
    /// `Pr[bound](path) >= Pr[bound](path)`: is the left the more probable one?
    Comparison {
        /// Left of the sign.
        left: Measure<S>,
        /// Right of the sign.
        right: Measure<S>,
    },
    /// `E[bound; runs](max: x)`: what is the mean of a run's extreme?
    Expectation {
        /// How long a run is, and how many.
        window: Window<S>,
        /// Which extreme.
        extreme: Extreme,
        /// Of what.
        value: Expression<S>,
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

/// Which extreme of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
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
            Self::Hypothesis { measure, at_least, threshold } => {
                write!(f, "{measure} {} ", if *at_least { ">=" } else { "<=" })?;
                write_number(f, *threshold)
            }
            Self::Comparison { left, right } => write!(f, "{left} >= {right}"),
            Self::Expectation { window, extreme, value } => {
                let extreme = if *extreme == Extreme::Max { "max" } else { "min" };
                write!(f, "E[{window}]({extreme}: {value})")
            }
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
            let Some(Within { from, to }) = within else { return Ok(()) };
            f.write_str("[")?;
            write_number(f, *from)?;
            f.write_str(",")?;
            write_number(f, *to)?;
            f.write_str("]")
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
