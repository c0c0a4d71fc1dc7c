//! What a replication measured and how replications are pooled.
//!
//! A metric is a set of samples, a total, or a quotient of totals; pooling joins the samples, adds
//! the totals, and divides only at the end, so that a pooled ratio is weighed as the samples are.
//! Metrics are kept in the order of their names, and pooled in the order of the seeds.

use std::collections::BTreeMap;

use acklab_stats::Summary;
use serde_json::{Value, json};

use crate::monitor::Delays;

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
    /// A quantity over time, as (value, seconds at that value) with values rising: reported as mean,
    /// p50, p95 and max, weighted by time.
    Shares(Vec<(f64, f64)>),
    /// As samples, of so many that they are counted in classes: quantiles are right to 0.4 %.
    Delays(Box<Delays>),
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
                (Some(Measured::Delays(ours)), Measured::Delays(theirs)) => ours.pool(theirs),
                (Some(Measured::Total(ours)), Measured::Total(theirs)) => *ours += theirs,
                (Some(Measured::Shares(ours)), Measured::Shares(theirs)) => {
                    add_shares(ours, theirs);
                }
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

    /// The delays of a metric that counts them; `None` where it is another.
    pub fn delays(&self, name: &str) -> Option<&Delays> {
        match self.0.get(name) {
            Some(Measured::Delays(delays)) => Some(delays),
            _ => None,
        }
    }

    /// Mean and quantiles of a metric; `None` where it has none.
    pub fn spread(&self, name: &str) -> Option<Spread> {
        self.0.get(name).and_then(Measured::spread)
    }

    /// A metric as one number: a total, a quotient, or the mean of its samples; NaN if unknown.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).map_or(f64::NAN, |measured| match measured {
            Measured::Samples(_) | Measured::Shares(_) | Measured::Delays(_) => {
                measured.spread().map_or(f64::NAN, |spread| spread.mean)
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
    /// Mean and quantiles of samples, or of a quantity over time; `None` for other metrics, and where
    /// nothing was measured.
    fn spread(&self) -> Option<Spread> {
        match self {
            Self::Samples(samples) => Summary::from_samples(samples).map(|summary| Spread {
                mean: summary.mean,
                p50: summary.p50,
                p95: summary.p95,
                max: summary.max,
            }),
            Self::Shares(shares) => Spread::over_time(shares),
            Self::Delays(delays) => Spread::of_delays(delays),
            Self::Total(_) | Self::Ratio { .. } => None,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Samples(_) | Self::Shares(_) | Self::Delays(_) => {
                let spread = self.spread();
                let field = |of: fn(&Spread) -> f64| spread.as_ref().map(of);
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

/// Mean and quantiles of samples, or of a quantity over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median; over time, the least value that is not exceeded half of it.
    pub p50: f64,
    /// 95 % quantile, likewise.
    pub p95: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Of many delays, ms.
    fn of_delays(delays: &Delays) -> Option<Self> {
        Some(Self {
            mean: delays.mean_ms()?,
            p50: delays.quantile_ms(0.5)?,
            p95: delays.quantile_ms(0.95)?,
            max: delays.max_ms()?,
        })
    }

    /// Of (value, seconds) with values rising; `None` where no time passed.
    fn over_time(shares: &[(f64, f64)]) -> Option<Self> {
        let total: f64 = shares.iter().map(|(_, time)| time).sum();
        if total <= 0.0 {
            return None;
        }
        let quantile = |share: f64| {
            let mut sum = 0.0;
            let reached = shares.iter().find(|(_, time)| {
                sum += time;
                // One part in 10^12 for the rounding of the sums.
                sum >= share * total * (1.0 - 1e-12)
            });
            reached.or(shares.last()).map_or(f64::NAN, |(value, _)| *value)
        };
        Some(Self {
            mean: shares.iter().map(|(value, time)| value * time).sum::<f64>() / total,
            p50: quantile(0.5),
            p95: quantile(0.95),
            max: shares.iter().rfind(|(_, time)| *time > 0.0).map_or(f64::NAN, |(value, _)| *value),
        })
    }
}

/// Adds the times of `theirs` to `ours`, value by value.
fn add_shares(ours: &mut Vec<(f64, f64)>, theirs: &[(f64, f64)]) {
    for &(value, time) in theirs {
        match ours.binary_search_by(|(other, _)| other.total_cmp(&value)) {
            Ok(found) => ours[found].1 += time,
            Err(place) => ours.insert(place, (value, time)),
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
    fn a_quantity_over_time_is_weighted_by_time() {
        let mut pooled = Metrics::default();
        let one = |shares: &[(f64, f64)]| {
            let mut metrics = Metrics::default();
            metrics.insert("queue_packets", Measured::Shares(shares.to_vec()));
            metrics
        };
        pooled.pool(&one(&[(0.0, 6.0), (2.0, 1.0), (9.0, 0.0)]));
        pooled.pool(&one(&[(1.0, 2.0), (2.0, 1.0)]));
        assert_eq!(
            pooled.to_json(),
            json!({"queue_packets": {"mean": 0.6, "p50": 0.0, "p95": 2.0, "max": 2.0}})
        );
        assert_eq!(Spread::over_time(&[(3.0, 0.0)]), None);
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
