//! What one run came to.

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
    /// Of an expectation or a quantile: the run's value; `None` if the expression never had a finite one.
    Value(Option<f64>),
    /// Of a steady state: the run in equal slices.
    Slices(Vec<Slice>),
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

/// One of the equal slices of a run.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Slice {
    /// How much time there was, or how much was counted, with a finite value.
    pub weight: f64,
    /// The integral or sum of the values.
    pub sum: f64,
}
