//! The data for the report's figures.

use schemars::JsonSchema;
use serde::Serialize;

use super::ladder::Ladder;
use crate::inferred::{Hold, Sample};
use crate::noted::{Line, Notes};

/// Data for the figures of the report; times in seconds from the first data of the direction.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Plots {
    /// The packets around one typical or the worst hold.
    pub ladder: Option<Ladder>,
    /// Last byte of each data segment over time.
    pub data: Points,
    /// Acknowledgment line over time.
    pub acks: Points,
    /// Added delay per message: value in milliseconds, and the share of messages at or below it.
    pub delay_cdf: Points,
    /// How long pure acknowledgments waited at the receiver after the oldest segment they acknowledge:
    /// upper edge of each bin in milliseconds, and how many.
    pub ack_delay_histogram: Points,
}

/// A list of points as two columns of the same length.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Points {
    /// Horizontal values.
    pub x: Vec<f64>,
    /// Vertical values.
    pub y: Vec<f64>,
}

impl Plots {
    /// All figures of a direction; `delays` are those of its messages.
    pub(super) fn of(notes: &Notes<'_>, holds: &[Hold], delays: &Sample) -> Self {
        let origin = notes.facts.first_time;
        let line = |line: &Line| {
            let mut points = Points::default();
            for (time, value) in line.points() {
                points.push(time.signed_since(origin) as f64 / 1e9, *value as f64);
            }
            points
        };
        let mut ack_delay_histogram = Points::default();
        for (bin, count) in notes.facts.ack_delay.iter().flat_map(|d| &d.bins_1ms).enumerate() {
            ack_delay_histogram.push(bin as f64 + 1.0, *count as f64);
        }
        Self {
            ladder: Ladder::of(notes, holds),
            data: line(&notes.data_line),
            acks: line(&notes.ack_line),
            delay_cdf: cdf(delays),
            ack_delay_histogram,
        }
    }
}

impl Points {
    /// Adds a point.
    pub(super) fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }
}

fn cdf(sample: &Sample) -> Points {
    let mut points = Points::default();
    if sample.is_empty() {
        return points;
    }
    for i in 0..=CDF_POINTS {
        let share = i as f64 / CDF_POINTS as f64;
        points.push(sample.quantile(share), share);
    }
    points
}

/// Points of a distribution function.
pub(super) const CDF_POINTS: usize = 200;
