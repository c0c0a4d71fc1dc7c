//! The answer: `acklab.whatif/1`. Delays are from a message's last write to its last byte's departure.

use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "acklab.whatif/1";

/// What a change would do to one direction of a connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhatIf {
    /// Always `acklab.whatif/1`.
    pub schema: &'static str,
    /// Number of the connection, from 0 in order of its first packet (Wireshark's `tcp.stream`).
    pub flow: u64,
    /// Data sender, `ip:port`.
    pub from: String,
    /// Data receiver, `ip:port`.
    pub to: String,
    /// The changes of `predicted`, as `--set` has them; where none was asked for, the remedy that saves most.
    pub set: Vec<String>,
    /// Round trip of the path as it was, milliseconds.
    pub rtt_ms: f64,
    /// Only so many seconds from the connection's first data on were played; `null`: all of it.
    pub first_s: Option<f64>,
    /// What the prediction stands on, in sentences.
    pub assumed: Vec<String>,
    /// Delays as the diagnosis infers them from the capture.
    pub measured: Sum,
    /// The conversation played in virtual time as it was.
    pub replay: Replay,
    /// The same with the changes.
    pub predicted: Predicted,
    /// Without `--set`: the usual remedies, the one that saves most first.
    pub remedies: Vec<Remedy>,
}

/// A distribution of delays in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Delays")]
pub struct Sum {
    /// Messages counted: what is written between two pieces of the peer's data by a program that takes turns, or at once.
    pub messages: u64,
    /// Median, milliseconds; quantiles are values of the sample.
    pub p50_ms: f64,
    /// 95th percentile, milliseconds.
    pub p95_ms: f64,
    /// Mean, milliseconds.
    pub mean_ms: f64,
    /// All delays together, seconds.
    pub seconds: f64,
}

impl Sum {
    /// Of delays in milliseconds.
    pub fn of(delays_ms: &[f64]) -> Self {
        let mut sorted = delays_ms.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let quantile = |share: f64| {
            let rank = (share * count as f64).ceil() as usize;
            sorted.get(rank.clamp(1, count.max(1)) - 1).copied().unwrap_or(0.0)
        };
        let total: f64 = sorted.iter().sum();
        Self {
            messages: count as u64,
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            mean_ms: total / count.max(1) as f64,
            seconds: total / 1e3,
        }
    }
}

/// The conversation played as it was: how far that is from the capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Replay {
    #[serde(flatten)]
    pub delay: Sum,
    /// Kolmogorov-Smirnov distance of its delays from those measured, 0 to 1; delays less than 0.1 ms apart are the
    /// same.
    pub ks: f64,
    /// Segments with data, captured and played.
    pub segments: Segments,
}

/// Segments with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Segments {
    /// In the capture.
    pub captured: u64,
    /// Of these, held.
    pub captured_held: u64,
    /// In the replay.
    pub replayed: u64,
    /// Of these, held.
    pub replayed_held: u64,
}

/// The delays with the changes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Predicted {
    #[serde(flatten)]
    pub delay: Sum,
    /// What the inference leaves open: the held writes at their earliest and at their latest.
    pub interval: Interval,
    /// Delay saved against the replay, all messages together, seconds.
    pub saved_s: f64,
}

/// Least and greatest of each number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Median, milliseconds.
    pub p50_ms: Range,
    /// 95th percentile, milliseconds.
    pub p95_ms: Range,
    /// Mean, milliseconds.
    pub mean_ms: Range,
}

/// Least and greatest.
pub type Range = [f64; 2];

impl Interval {
    /// Over several plays.
    pub fn of(sums: &[Sum]) -> Self {
        let over = |number: fn(&Sum) -> f64| {
            let values = sums.iter().map(number);
            [values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max)]
        };
        Self {
            p50_ms: over(|sum| sum.p50_ms),
            p95_ms: over(|sum| sum.p95_ms),
            mean_ms: over(|sum| sum.mean_ms),
        }
    }
}

/// A usual remedy and what it would save.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Remedy {
    /// As `--set` has it.
    pub set: String,
    #[serde(flatten)]
    pub delay: Sum,
    /// Delay saved against the replay, all messages together, seconds.
    pub saved_s: f64,
}

impl WhatIf {
    /// The answer as one JSON object.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::*;

    /// Set `ACKLAB_WRITE_SCHEMA=1` to write the file anew after changing the types.
    #[test]
    fn the_schema_in_the_repository_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/whatif.schema.json");
        let now = serde_json::to_string_pretty(&schema_for!(WhatIf)).expect("a schema") + "\n";
        if std::env::var_os("ACKLAB_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &now).expect("write the schema");
        }
        let stored = std::fs::read_to_string(path).expect("docs/schema/whatif.schema.json");
        assert_eq!(stored, now, "run this test with ACKLAB_WRITE_SCHEMA=1");
    }

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let sum = Sum::of(&[40.0, 0.0, 40.0, 0.0]);
        assert_eq!((sum.messages, sum.p50_ms, sum.p95_ms), (4, 0.0, 40.0));
        assert_eq!((sum.mean_ms, sum.seconds), (20.0, 0.08));
        assert_eq!(Sum::of(&[]), Sum::default());
    }
}
