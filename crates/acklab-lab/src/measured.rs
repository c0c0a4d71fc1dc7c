//! What a replication measured and how replications are pooled.
//!
//! A metric is a set of samples, a total, or a quotient of totals; pooling joins the samples, adds
//! the totals, and divides only at the end, so that a pooled ratio is weighed as the samples are.
//! Metrics are kept in the order of their names, and pooled in the order of the seeds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Name, unit and meaning of a metric, as `acklab scenarios NAME` lists it.
#[derive(Clone, Copy, Debug)]
pub struct MetricDoc {
    /// Name; its unit is last in it.
    pub name: &'static str,
    /// Unit in words.
    pub unit: &'static str,
    /// What is measured, and how replications are pooled.
    pub doc: &'static str,
}

/// The value of one metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// One value for each message, segment, ...: reported as mean, p50, p95 and max.
    Samples(Vec<f64>),
    /// How often: reported as the sum over the replications.
    Total(u64),
    /// So many of these for each of those: reported as the quotient of the sums.
    Ratio {
        /// Dividend.
        of: f64,
        /// Divisor.
        per: f64,
    },
}

/// Mean and quantiles of a set of samples; NaN where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median: the smallest sample that half of all do not exceed.
    pub p50: f64,
    /// The smallest sample that 95 % of all do not exceed.
    pub p95: f64,
    /// Greatest sample.
    pub max: f64,
}

impl Summary {
    /// Summarises `samples`.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
        };
        Self {
            count: samples.len(),
            mean: samples.iter().sum::<f64>() / samples.len() as f64,
            p50: rank(50),
            p95: rank(95),
            max: rank(100),
        }
    }
}

/// Metrics by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<&'static str, Measured>);

impl Metrics {
    /// Adds a metric under its name.
    pub fn insert(&mut self, name: &'static str, measured: Measured) {
        self.0.insert(name, measured);
    }

    /// Adds another replication's metrics to these.
    pub fn pool(&mut self, other: &Self) {
        for (name, theirs) in &other.0 {
            match (self.0.get_mut(name), theirs) {
                (Some(Measured::Samples(ours)), Measured::Samples(theirs)) => ours.extend(theirs),
                (Some(Measured::Total(ours)), Measured::Total(theirs)) => *ours += theirs,
                (
                    Some(Measured::Ratio { of, per }),
                    Measured::Ratio { of: their_of, per: their_per },
                ) => {
                    *of += their_of;
                    *per += their_per;
                }
                _ => {
                    self.0.insert(name, theirs.clone());
                }
            }
        }
    }

    /// The samples of a metric, in the order of the seeds; empty where it has none.
    pub fn samples(&self, name: &str) -> &[f64] {
        match self.0.get(name) {
            Some(Measured::Samples(samples)) => samples,
            _ => &[],
        }
    }

    /// Mean and quantiles of a metric's samples.
    pub fn summary(&self, name: &str) -> Summary {
        Summary::of(self.samples(name))
    }

    /// A metric as one number: a total, a quotient, or the mean of its samples; NaN if unknown.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).map_or(f64::NAN, |measured| match measured {
            Measured::Samples(samples) => Summary::of(samples).mean,
            Measured::Total(total) => *total as f64,
            Measured::Ratio { of, per } => of / per,
        })
    }

    /// Every metric in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Measured)> {
        self.0.iter().map(|(name, measured)| (*name, measured))
    }

    /// The metrics as the contract's JSON: a number, or an object of mean, p50, p95 and max; what
    /// could not be measured is null.
    pub fn to_json(&self) -> Value {
        self.iter()
            .map(|(name, measured)| (name.to_owned(), measured.to_json()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

impl Measured {
    fn to_json(&self) -> Value {
        match self {
            Self::Samples(samples) => {
                let summary = Summary::of(samples);
                json!({
                    "mean": summary.mean,
                    "p50": summary.p50,
                    "p95": summary.p95,
                    "max": summary.max,
                })
            }
            Self::Total(total) => json!(total),
            Self::Ratio { of, per } => json!(of / per),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(samples: &[f64], total: u64, (of, per): (f64, f64)) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.insert("delay_ms", Measured::Samples(samples.to_vec()));
        metrics.insert("segments", Measured::Total(total));
        metrics.insert("messages_per_segment", Measured::Ratio { of, per });
        metrics
    }

    #[test]
    fn pooling_joins_samples_adds_totals_and_divides_last() {
        let mut pooled = Metrics::default();
        pooled.pool(&metrics(&[1.0, 3.0], 2, (10.0, 2.0)));
        pooled.pool(&metrics(&[2.0], 5, (2.0, 2.0)));
        assert_eq!(pooled, metrics(&[1.0, 3.0, 2.0], 7, (12.0, 4.0)));
        assert_eq!(
            pooled.to_json(),
            json!({
                "delay_ms": {"mean": 2.0, "p50": 2.0, "p95": 3.0, "max": 3.0},
                "segments": 7,
                "messages_per_segment": 3.0,
            })
        );
    }

    #[test]
    fn quantiles_are_samples_by_nearest_rank() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&samples);
        assert_eq!((summary.p50, summary.p95, summary.max), (50.0, 95.0, 100.0));
        assert_eq!(Summary::of(&[7.0]).p50, 7.0);
    }

    #[test]
    fn what_was_never_measured_is_null() {
        assert_eq!(
            metrics(&[], 0, (0.0, 0.0)).to_json(),
            json!({
                "delay_ms": {"mean": null, "p50": null, "p95": null, "max": null},
                "segments": 0,
                "messages_per_segment": null,
            })
        );
    }
}
