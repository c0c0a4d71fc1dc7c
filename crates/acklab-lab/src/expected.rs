//! What a scenario wants said of its result: what theory expects, and which cases to compare.

/// The closed form of a case, in the main metric's unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The least mean it allows (ideal clocks).
    pub mean_low: f64,
    /// The greatest mean it allows (drifting clocks).
    pub mean_high: f64,
    /// The maximum.
    pub max: f64,
    /// (value, share at or below it): the law's distribution function, for the plot.
    pub law: Vec<(f64, f64)>,
}

/// Distributions to draw in one figure: the cases that hold `fixed`, told apart by `series`.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub title: &'static str,
    /// How to read it.
    pub caption: &'static str,
    /// (parameter, value) that all cases of the figure share.
    pub fixed: &'static [(&'static str, &'static str)],
    /// The parameter that tells its lines apart.
    pub series: &'static str,
}
