//! Checks of a diagnosis for use in CI: `stalls==0`, `stalled_s<1`, `p99_ms<50`.
//!
//! An expression is a metric, a comparison and a number; several may be joined by commas, and all
//! must hold. Metrics are over the whole capture; [`METRICS`] names them.

use super::diagnosis::Diagnosis;
use super::direction::Direction;
pub use super::outcome::Outcome;

/// Every metric with its meaning.
pub const METRICS: [(&str, &str); 9] = [
    ("stalls", "writes held 10 ms or longer"),
    ("small_holds", "writes held for less than 10 ms"),
    ("stalled_s", "time in which a write was held, summed over directions, seconds"),
    ("stalled_share", "largest share of a direction's time, 0 to 1"),
    ("p50_ms", "added delay per message, median of the worst direction"),
    ("p95_ms", "the same, 95th percentile"),
    ("p99_ms", "the same, 99th percentile"),
    ("max_ms", "the same, largest"),
    ("retransmissions", "segments sent again"),
];

/// One comparison.
///
/// ```
/// use acklab_trace::check::Check;
///
/// let demo = "../../demo/nodelay-linux.pcapng".as_ref();
/// let diagnosis = acklab_trace::diagnose(demo, &acklab_trace::Options::default(), |_| {})?;
/// assert!(Check::parse("stalls==0, p99_ms<1")?.iter().all(|check| check.apply(&diagnosis).holds));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Check {
    metric: &'static str,
    sign: Sign,
    limit: f64,
}

/// A sign and what it means.
type Sign = (&'static str, fn(f64, f64) -> bool);

/// The longer signs first, so that `<=` is not read as `<`.
const SIGNS: [Sign; 6] = [
    ("==", |value, limit| (value - limit).abs() < f64::EPSILON),
    ("!=", |value, limit| (value - limit).abs() >= f64::EPSILON),
    ("<=", |value, limit| value <= limit),
    (">=", |value, limit| value >= limit),
    ("<", |value, limit| value < limit),
    (">", |value, limit| value > limit),
];

/// Why an expression is no check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No comparison sign.
    #[error("check `{0}` has no comparison: write for example `stalls==0` (==, !=, <, <=, >, >=)")]
    NoComparison(String),
    /// Not a metric.
    #[error("check `{expression}`: `{metric}` is no metric; there are {}", names())]
    UnknownMetric {
        /// The whole expression.
        expression: String,
        /// What stood where a metric should.
        metric: String,
    },
    /// Not a number.
    #[error("check `{expression}`: `{number}` is not a number")]
    NotANumber {
        /// The whole expression.
        expression: String,
        /// What stood where a number should.
        number: String,
    },
}

fn names() -> String {
    METRICS.iter().map(|m| m.0).collect::<Vec<_>>().join(", ")
}

impl Check {
    /// Parses checks separated by commas.
    pub fn parse(text: &str) -> Result<Vec<Self>, CheckError> {
        text.split(',').map(Self::parse_one).collect()
    }

    fn parse_one(text: &str) -> Result<Self, CheckError> {
        let text = text.trim();
        let (at, sign) = SIGNS
            .iter()
            .filter_map(|s| text.find(s.0).map(|at| (at, *s)))
            .min_by_key(|(at, s)| (*at, std::cmp::Reverse(s.0.len())))
            .ok_or_else(|| CheckError::NoComparison(text.to_owned()))?;
        let (name, number) = (text[..at].trim(), text[at + sign.0.len()..].trim());
        let metric = METRICS.iter().find(|m| m.0 == name).map(|m| m.0).ok_or_else(|| {
            CheckError::UnknownMetric { expression: text.to_owned(), metric: name.to_owned() }
        })?;
        let limit = number.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| {
            CheckError::NotANumber { expression: text.to_owned(), number: number.to_owned() }
        })?;
        Ok(Self { metric, sign, limit })
    }

    /// Holds the diagnosis to the check.
    pub fn apply(&self, diagnosis: &Diagnosis) -> Outcome {
        let value = measure(diagnosis, self.metric);
        let (sign, compare) = self.sign;
        let holds = compare(value, self.limit);
        Outcome { check: format!("{}{sign}{}", self.metric, self.limit), value, holds }
    }
}

impl Diagnosis {
    /// Holds the diagnosis to `checks` and keeps what becomes of them.
    pub fn hold_to(&mut self, checks: &[Check]) {
        self.checks = checks.iter().map(|check| check.apply(self)).collect();
    }
}

fn measure(diagnosis: &Diagnosis, metric: &str) -> f64 {
    let directions = || diagnosis.flows.iter().flat_map(|f| &f.directions);
    let sum = |of: fn(&Direction) -> f64| directions().fold(0.0, |sum, d| sum + of(d));
    let worst = |of: fn(&Direction) -> f64| directions().map(of).fold(0.0, f64::max);
    match metric {
        "stalls" => sum(|d| d.holds() as f64),
        "small_holds" => sum(|d| d.small_holds as f64),
        "stalled_s" => sum(Direction::stalled_s),
        "stalled_share" => worst(Direction::stalled_share),
        "p50_ms" => worst(|d| d.added_delay_ms.p50),
        "p95_ms" => worst(|d| d.added_delay_ms.p95),
        "p99_ms" => worst(|d| d.added_delay_ms.p99),
        "max_ms" => worst(|d| d.added_delay_ms.max),
        _ => sum(|d| d.retransmissions as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_a_metric_a_comparison_and_a_number() {
        let checks = Check::parse("stalls==0, p99_ms <= 50.5,stalled_s<1").expect("parses");
        assert_eq!(checks.len(), 3);
        let Check { metric, sign, limit } = checks[1];
        assert_eq!((metric, sign.0, limit), ("p99_ms", "<=", 50.5));
    }

    #[test]
    fn what_is_wrong_with_a_check_is_said() {
        let said = |text| Check::parse(text).expect_err("refused").to_string();
        assert!(said("stalls").contains("no comparison"));
        assert!(said("stall==0").contains("`stall` is no metric; there are stalls, "));
        assert!(said("stalls==none").contains("`none` is not a number"));
    }

    #[test]
    fn an_empty_diagnosis_has_no_stalls() {
        let diagnosis = Diagnosis {
            schema: crate::judged::SCHEMA,
            capture: crate::judged::Capture::default(),
            verdict: crate::judged::Verdict::default(),
            flows: Vec::new(),
            causes: Vec::new(),
            flows_not_listed: 0,
            pair: None,
            cure: None,
            checks: Vec::new(),
        };
        let outcome = |text: &str| Check::parse(text).expect("parses")[0].apply(&diagnosis);
        assert!(outcome("stalls==0").holds);
        assert!(!outcome("stalls>0").holds);
        assert_eq!(outcome("stalled_s<1").check, "stalled_s<1");
    }
}
