//! The delay that holding added to messages: by time stamps in the data where a protocol carries
//! them, by the beat of the writes where they have one, else bounded: none waited longer than since
//! the segment before.

use schemars::JsonSchema;
use serde::Serialize;

use super::hold::DELAYED_MS;
use super::{Hold, Messages, Sample};
use crate::noted::Notes;

/// Distribution of a delay over messages, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AddedDelay {
    /// Messages counted.
    pub messages: u64,
    /// Of these, messages delayed by 1 ms or more.
    pub delayed: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// `in_band` (time stamps in the data), `period` (the writes are periodic), `upper_bound` (time
    /// since the previous segment) or `none` (nothing was held).
    pub source: &'static str,
}

impl AddedDelay {
    /// Nothing was held.
    pub(crate) fn none() -> Self {
        Self { source: "none", ..Self::default() }
    }
}

/// A distribution of delays, and the sample behind it.
pub(crate) struct Delays {
    pub(crate) added: AddedDelay,
    pub(crate) sample: Sample,
}

impl Delays {
    /// Over all messages, by the time stamps in the data.
    pub(crate) fn stamped(notes: &Notes<'_>, holds: &[Hold], messages: &Messages) -> Option<Self> {
        let values = &notes.content.stamped_delays_ms;
        let all = values.len() as u64 * 10 >= messages.total(notes.facts.packets.segments) * 9;
        (!holds.is_empty() && all).then(|| Self::all(values.clone(), "in_band"))
    }

    /// Over all messages, without time stamps.
    pub(crate) fn estimated(notes: &Notes<'_>, holds: &[Hold], messages: &Messages) -> Self {
        if holds.is_empty() {
            return Self { added: AddedDelay::none(), sample: Sample::default() };
        }
        let total = messages.total(notes.facts.packets.segments);
        match &messages.beat {
            Some(beat) => Self::among(beat.delays_ms.clone(), 0, source(messages)),
            None => Self::among(of_holds(holds, messages), total, source(messages)),
        }
    }

    /// Over the messages in held segments alone.
    pub(crate) fn held<'h>(holds: impl IntoIterator<Item = &'h Hold>, messages: &Messages) -> Self {
        Self::all(of_holds(holds, messages), source(messages))
    }

    fn all(delays_ms: Vec<f64>, source: &'static str) -> Self {
        let sample = Sample::new(delays_ms);
        let delayed = sample.values().iter().filter(|d| **d >= DELAYED_MS).count();
        let added = AddedDelay {
            messages: sample.len() as u64,
            delayed: delayed as u64,
            p50: sample.median(),
            p95: sample.quantile(0.95),
            p99: sample.quantile(0.99),
            max: sample.max(),
            source,
        };
        Self { added, sample }
    }

    /// `delays_ms` among `total` messages, of which the rest waited not at all. A capture may hold
    /// billions of messages: beyond [`SAMPLE_MAX`] the sample is thinned evenly, its largest value
    /// kept.
    fn among(mut delays_ms: Vec<f64>, total: u64, source: &'static str) -> Self {
        let total = total.max(delays_ms.len() as u64);
        let delayed = delays_ms.iter().filter(|d| **d >= DELAYED_MS).count() as u64;
        let stride = total.div_ceil(SAMPLE_MAX as u64).max(1);
        if stride > 1 {
            delays_ms.sort_unstable_by(|a, b| b.total_cmp(a));
            delays_ms = delays_ms.into_iter().step_by(stride as usize).collect();
        }
        delays_ms.resize(delays_ms.len().max((total / stride) as usize), 0.0);
        let found = Self::all(delays_ms, source);
        Self { added: AddedDelay { messages: total, delayed, ..found.added }, ..found }
    }
}

fn source(messages: &Messages) -> &'static str {
    if messages.beat.is_some() { "period" } else { "upper_bound" }
}

/// Delays of the messages in held segments, milliseconds.
fn of_holds<'h>(holds: impl IntoIterator<Item = &'h Hold>, messages: &Messages) -> Vec<f64> {
    let period = messages.beat.as_ref().map_or(0.0, |beat| beat.period_ms);
    let of_hold = |hold: &'h Hold| {
        let length = hold.length_ms();
        let count = messages.in_segment(hold.end);
        (0..count).map(move |i| (length - f64::from(i) * period).max(0.0))
    };
    holds.into_iter().flat_map(of_hold).collect()
}

/// More are not kept.
const SAMPLE_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn billions_of_messages_that_did_not_wait_are_counted_without_being_kept() {
        let held: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let found = Delays::among(held, 4_000_000_000, "upper_bound");
        assert_eq!((found.added.messages, found.added.delayed), (4_000_000_000, 1_000));
        assert_eq!((found.added.p99, found.added.max), (0.0, 1_000.0));
        assert!(found.sample.len() <= SAMPLE_MAX);
        let few = Delays::among(vec![5.0; 30], 40, "upper_bound").added;
        assert_eq!((few.messages, few.delayed, few.p50), (40, 30, 5.0));
    }
}
