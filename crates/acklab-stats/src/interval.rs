//! What an interval's confidence is worth, and Student's interval of a mean.
//!
//! Student's t on the replications' own values: mean +- t(n - 1) sd / sqrt(n). Correlated samples
//! (messages of one run) have to be reduced to one value per replication first.

use serde::Serialize;

use crate::student::t_quantile;
use crate::summary::Summary;

/// When an interval covers with its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// Whenever one looks, and whatever ended the runs: it is one of a confidence sequence.
    AnyTime,
    /// For a number of runs fixed ahead, as it was.
    FixedRuns,
    /// For a number of runs fixed ahead, which it was not: the outcomes ended the runs, and the interval
    /// covers less often than it says.
    Nominal,
}

/// An interval and how it was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end; negative infinity if there is none.
    pub low: f64,
    /// Upper end; infinity if there is none.
    pub high: f64,
    /// 1 - alpha.
    pub confidence: f64,
    /// `beta-binomial`, `clopper-pearson`, …, `student-t`, `asymptotic`, `betting`.
    pub method: &'static str,
    /// When it covers with its confidence.
    pub validity: Validity,
}

impl Interval {
    /// Whether `value` lies in it, ends included.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Upper end less lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// A mean with its confidence interval, in the samples' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanInterval {
    /// Mean over the replications.
    pub mean: f64,
    /// Half the interval's width.
    pub half_width: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability with which such an interval covers the true mean, as asked for.
    pub confidence: f64,
    /// How many replications it rests on.
    pub replications: usize,
}

impl MeanInterval {
    /// The interval from one value per replication; `None` below two replications, with a value
    /// that is not finite, or with `confidence` outside 0..1 (ends excluded).
    pub fn from_replications(values: &[f64], confidence: f64) -> Option<Self> {
        if values.len() < 2 || !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let summary = Summary::from_samples(values)?;
        let count = values.len() as f64;
        let t = t_quantile(f64::midpoint(1.0, confidence), count - 1.0);
        let half_width = t * summary.sd / count.sqrt();
        Some(Self {
            mean: summary.mean,
            half_width,
            low: summary.mean - half_width,
            high: summary.mean + half_width,
            confidence,
            replications: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_scipy() {
        // scipy.stats.t.interval(0.95, 4, loc=mean(x), scale=sem(x)) of the values below
        let values = [10.1, 9.7, 10.4, 10.0, 9.9];
        let interval = MeanInterval::from_replications(&values, 0.95).expect("five values");
        assert!((interval.low - 9.698_603_242_926_8).abs() < 1e-10, "{interval:?}");
        assert!((interval.high - 10.341_396_757_073_198).abs() < 1e-10, "{interval:?}");
    }

    #[test]
    fn one_replication_has_no_interval() {
        assert_eq!(MeanInterval::from_replications(&[1.0], 0.95), None);
        assert_eq!(MeanInterval::from_replications(&[1.0, 2.0], 1.0), None);
        assert_eq!(MeanInterval::from_replications(&[1.0, f64::NAN], 0.95), None);
    }
}
