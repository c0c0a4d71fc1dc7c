//! What a replication measured and how replications are pooled.
//!
//! A metric is a set of samples, a total, or a quotient of totals; pooling joins the samples, adds
//! the totals, and divides only at the end, so that a pooled ratio is weighed as the samples are.
//! Metrics are kept in the order of their names, and pooled in the order of the seeds.

use std::collections::BTreeMap;

use acklab_stats::Summary;
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

/// Metrics by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<&'static str, Measured>);

impl Metrics {
    /// Adds a metric under its name.
    pub fn insert(&mut self, name: &'static str, measured: Measured) {
        self.0.insert(name, measured);
    }

    /// Takes a metric out.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
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

    /// Mean and quantiles of a metric's samples; `None` where it has none.
    pub fn summary(&self, name: &str) -> Option<Summary> {
        Summary::from_samples(self.samples(name))
    }

    /// A metric as one number: a total, a quotient, or the mean of its samples; NaN if unknown.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).map_or(f64::NAN, |measured| match measured {
            Measured::Samples(samples) => {
                Summary::from_samples(samples).map_or(f64::NAN, |summary| summary.mean)
            }
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
                let summary = Summary::from_samples(samples);
                let field = |of: fn(&Summary) -> f64| summary.as_ref().map(of);
                json!({
                    "mean": field(|summary| summary.mean),
                    "p50": field(|summary| summary.p50),
                    "p95": field(|summary| summary.p95),
                    "max": field(|summary| summary.max),
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
                "delay_ms": {"mean": 2.0, "p50": 2.0, "p95": 2.9, "max": 3.0},
                "segments": 7,
                "messages_per_segment": 3.0,
            })
        );
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
