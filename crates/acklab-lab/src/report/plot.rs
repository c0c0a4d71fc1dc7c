//! The plots that reports use, as data: what is drawn, not how.
//!
//! Four kinds that people in the field know: cumulative distribution, tcptrace time-sequence
//! diagram, histogram with reference marks, and lines over a parameter or over time. The drawing is
//! made by `vega`.

#[derive(Clone, Debug)]
pub enum Plot {
    /// Cumulative distribution functions of one quantity.
    Cdf(Cdf),
    /// Sequence numbers over time, as tcptrace draws them.
    TimeSequence(TimeSequence),
    /// Counts per interval.
    Histogram(Histogram),
    /// Lines or points over a common horizontal axis.
    Lines(Lines),
    /// Samples case by case.
    Boxes(Boxes),
}

macro_rules! plots {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Plot {
            fn from(plot: $kind) -> Self {
                Self::$kind(plot)
            }
        }
    )*};
}
plots!(Cdf, TimeSequence, Histogram, Lines, Boxes);

/// A reference line with its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Position on the horizontal axis, in its unit.
    pub at: f64,
    /// What is there: "40 ms: Linux".
    pub label: String,
}

/// Cumulative distribution functions of one quantity.
#[derive(Clone, Debug, Default)]
pub struct Cdf {
    /// Horizontal axis with its unit: "buffering delay (ms)".
    pub x_title: String,
    /// One line each; drawn in this order no two with the same colour and dash.
    pub series: Vec<CdfSeries>,
    /// Vertical reference lines.
    pub marks: Vec<Mark>,
}

/// One distribution.
#[derive(Clone, Debug, Default)]
pub struct CdfSeries {
    /// Name in the legend.
    pub name: String,
    /// (value, share of samples at or below it), both rising.
    pub points: Vec<(f64, f64)>,
    /// How the points are joined: by steps, as samples are, or straight, as a formula is.
    pub straight: bool,
}

/// Sequence numbers over time for one direction of a connection.
#[derive(Clone, Debug, Default)]
pub struct TimeSequence {
    /// Data segments in time order, each drawn as a bar.
    pub segments: Vec<SequenceSegment>,
    /// (seconds, highest byte sent) in time order: a line for the whole of a long connection, where
    /// single segments would not be seen.
    pub sent: Vec<(f64, f64)>,
    /// (seconds, highest byte acknowledged) in time order.
    pub acks: Vec<(f64, f64)>,
}

/// One data segment of a [`TimeSequence`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceSegment {
    /// When it passed, in seconds from the plot's origin.
    pub time_s: f64,
    /// First byte.
    pub from_byte: f64,
    /// One past the last byte.
    pub to_byte: f64,
    /// How it is drawn.
    pub kind: SegmentKind,
    /// Frame number in the capture, for the pointer's label.
    pub frame: Option<u64>,
    /// For a held segment, how long its oldest byte waited, in ms (drawn as a bar before it).
    pub held_ms: Option<f64>,
}

/// How a data segment is told apart in a [`TimeSequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentKind {
    /// New data, sent without a hold.
    New,
    /// New data that the sender held back.
    Held,
    /// Data sent again.
    Retransmitted,
}

/// Counts per interval.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Horizontal axis with its unit.
    pub x_title: String,
    /// What is counted: "ACKs".
    pub y_title: String,
    /// Interval borders, rising; one more than `counts`.
    pub edges: Vec<f64>,
    /// Count per interval.
    pub counts: Vec<u64>,
    /// Vertical reference lines.
    pub marks: Vec<Mark>,
}

/// Lines over a common horizontal axis.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Horizontal axis with its unit.
    pub x_title: String,
    /// Vertical axis with its unit.
    pub y_title: String,
    /// One line each.
    pub series: Vec<LineSeries>,
    /// Points instead of lines.
    pub scatter: bool,
    /// Logarithmic horizontal axis.
    pub log_x: bool,
    /// Lines without dashes while there are colours: dashes disturb a line that goes up and down.
    pub solid: bool,
    /// So many of the first series are areas down to zero, behind the lines.
    pub areas: usize,
    /// Vertical bars around points.
    pub intervals: Vec<ErrorBar>,
    /// What lies around lines.
    pub bands: Vec<Band>,
}

/// What lies around a line of [`Lines`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// Name of the line.
    pub series: String,
    /// (x, lower end, upper end) in the order drawn.
    pub points: Vec<(f64, f64, f64)>,
}

/// Samples of several cases, side by side: a box from quartile to quartile with the median in it, whiskers to the
/// least and the greatest sample, and the mean with its interval.
#[derive(Clone, Debug, Default)]
pub struct Boxes {
    /// What the boxes stand over: "queue".
    pub x_title: String,
    /// Vertical axis with its unit.
    pub y_title: String,
    /// Names of what is told apart by colour, in order; one alone has no legend.
    pub series: Vec<String>,
    /// From left to right.
    pub boxes: Vec<BoxOf>,
    /// A horizontal line with its label.
    pub limit: Option<Mark>,
}

/// One case of [`Boxes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxOf {
    /// Where it stands.
    pub category: String,
    /// Which of [`Boxes::series`] it is.
    pub series: String,
    /// Least sample, lower quartile, median, upper quartile, greatest sample.
    pub ends: [f64; 5],
    /// Mean, and the ends of its interval.
    pub mean: Option<[f64; 3]>,
}

/// A vertical bar of [`Lines`].
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBar {
    /// Name of the line to which it belongs.
    pub series: String,
    /// Where it stands on the horizontal axis.
    pub x: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One line of [`Lines`].
#[derive(Clone, Debug, Default)]
pub struct LineSeries {
    /// Name in the legend.
    pub name: String,
    /// (x, y) in the order drawn.
    pub points: Vec<(f64, f64)>,
}
