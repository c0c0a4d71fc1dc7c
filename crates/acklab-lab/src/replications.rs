//! Each replication's own values, and the intervals of their means.
//!
//! A pooled metric weighs samples alike, wherever they came from; samples of one replication hang together.
//! What can be told about the mean rests on one value per replication: Student's interval for a number of
//! replications that was fixed ahead, as that of a run is.

use std::collections::BTreeMap;

use acklab_stats::MeanInterval;
use serde_json::{Value, json};

use crate::columns::{Column, Columns};
use crate::measured::Metrics;

/// What every replication of one case measured.
#[derive(Clone, Debug, Default)]
pub struct Replications {
    /// Flow (none for the metrics over all), replication, metric, value.
    rows: Vec<(Option<String>, u32, &'static str, f64)>,
}

impl Replications {
    /// Takes in the metrics of replication `number`, and those of its flows.
    pub(crate) fn push<'a>(
        &mut self,
        number: u32,
        metrics: &Metrics,
        flows: impl Iterator<Item = (&'a str, &'a Metrics)>,
    ) {
        let mut add = |flow: Option<&str>, metrics: &Metrics| {
            let values = metrics.iter().map(|(name, _)| (name, metrics.number(name)));
            self.rows
                .extend(values.map(|(name, value)| (flow.map(str::to_owned), number, name, value)));
        };
        add(None, metrics);
        for (flow, metrics) in flows {
            add(Some(flow), metrics);
        }
    }

    /// The values of a metric over all flows, one per replication that measured it.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        let of = |(flow, _, name, value): &(Option<String>, u32, &'static str, f64)| {
            (flow.is_none() && *name == metric && value.is_finite()).then_some(*value)
        };
        self.rows.iter().filter_map(of).collect()
    }

    /// The 95 % interval of a metric's mean over replications; `None` below two of them.
    pub fn interval(&self, metric: &str) -> Option<MeanInterval> {
        MeanInterval::from_replications(&self.values(metric), 0.95)
    }

    /// Every metric's values, one per replication, by name; null where a replication measured none.
    pub(crate) fn values_json(&self) -> Value {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (_, _, name, value) in self.rows.iter().filter(|(flow, ..)| flow.is_none()) {
            values.entry(name).or_default().push(*value);
        }
        json!(values)
    }

    /// Every metric's interval, by name.
    pub(crate) fn to_json(&self) -> Value {
        let mut names: Vec<&str> = self.rows.iter().map(|(_, _, name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let interval = |name: &str| {
            let found = self.interval(name)?;
            let value = json!({
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "confidence": found.confidence,
                "replications": found.replications,
                "method": "student-t",
                "validity": "fixed-runs",
            });
            Some((name.to_owned(), value))
        };
        Value::Object(names.into_iter().filter_map(interval).collect())
    }
}

/// The name of a case, and its values of the axes.
pub(crate) type Named = (String, Vec<(&'static str, String)>);

/// All values of all cases: one row per case, flow, replication and metric, with a column per axis. The flow is
/// empty for what was measured over all flows.
pub(crate) fn columns<'a>(each: impl Iterator<Item = (Named, &'a Replications)>) -> Columns {
    let (mut cases, mut flows, mut names) = (Words::default(), Words::default(), Words::default());
    let mut axes: Vec<(&'static str, Words)> = Vec::new();
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    for ((case, values_of_axes), replications) in each {
        if axes.is_empty() {
            axes = values_of_axes.iter().map(|(name, _)| (*name, Words::default())).collect();
        }
        for (flow, number, metric, value) in &replications.rows {
            cases.push(&case);
            for ((_, words), (_, value)) in axes.iter_mut().zip(&values_of_axes) {
                words.push(value);
            }
            flows.push(flow.as_deref().unwrap_or(""));
            names.push(metric);
            numbers.push(*number);
            values.push(*value);
        }
    }
    let by_case = Columns::default().with("case", cases.into_column());
    let columns = axes
        .into_iter()
        .fold(by_case, |columns, (name, words)| columns.with(name, words.into_column()));
    columns
        .with("flow", flows.into_column())
        .with("replication", Column::U32(numbers))
        .with("metric", names.into_column())
        .with("value", Column::F64(values))
}

/// A column of words that come again and again.
#[derive(Default)]
struct Words {
    dictionary: Vec<String>,
    indices: Vec<u32>,
}

impl Words {
    fn push(&mut self, word: &str) {
        let found = self.dictionary.iter().position(|known| known == word);
        let index = found.unwrap_or_else(|| {
            self.dictionary.push(word.to_owned());
            self.dictionary.len() - 1
        });
        self.indices.push(index as u32);
    }

    fn into_column(self) -> Column {
        Column::Words { dictionary: self.dictionary, indices: self.indices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Measured;

    fn metrics(delay: &[f64], drops: u64) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.insert("delay_ms", Measured::Samples(delay.to_vec()));
        metrics.insert("drops", Measured::Total(drops));
        metrics
    }

    #[test]
    fn an_interval_rests_on_one_value_per_replication() {
        let mut replications = Replications::default();
        assert_eq!(replications.to_json(), json!({}));
        for (number, (delay, drops)) in (0..).zip([(&[1.0, 3.0][..], 4), (&[4.0], 6), (&[], 8)]) {
            let flow = metrics(&[99.0], 1);
            replications.push(number, &metrics(delay, drops), std::iter::once(("flow", &flow)));
        }
        // The third measured no delay.
        assert_eq!(replications.values("delay_ms"), [2.0, 4.0]);
        let drops = replications.interval("drops").expect("three values");
        // t(2) = 4.303, standard error 2 / sqrt(3).
        assert!((drops.mean - 6.0).abs() < 1e-12 && (drops.half_width - 4.968).abs() < 1e-3);
        let json = replications.to_json();
        assert_eq!(json["delay_ms"]["replications"], 2);
        assert_eq!(json["drops"]["validity"], "fixed-runs");
    }
}
