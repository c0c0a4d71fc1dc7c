//! Counts per interval.
//!
//! Intervals are half-open, [edge, next edge), the last one closed. What lies outside is counted
//! apart, so that the counts always add up to the samples.

use serde::Serialize;

/// Counts of samples per interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// Interval borders, rising; one more than `counts`.
    pub edges: Vec<f64>,
    /// Samples per interval.
    pub counts: Vec<u64>,
    /// Samples below the first edge.
    pub below: u64,
    /// Samples above the last edge, and what is not a number.
    pub above: u64,
}

impl Histogram {
    /// `bins` intervals of equal width from `low` to `high`; at least one, and `low < high`.
    pub fn with_equal_bins(low: f64, high: f64, bins: usize) -> Self {
        assert!(low < high && bins > 0, "a histogram needs low < high and a bin");
        let edge = |index: usize| low + (high - low) * (index as f64 / bins as f64);
        let edges = (0..=bins).map(edge).collect();
        Self { edges, counts: vec![0; bins], below: 0, above: 0 }
    }

    /// Counts `sample`.
    pub fn record(&mut self, sample: f64) {
        let bins = self.counts.len();
        match self.edges.partition_point(|edge| *edge <= sample) {
            _ if sample.is_nan() => self.above += 1,
            0 => self.below += 1,
            index if index <= bins => self.counts[index - 1] += 1,
            _ if sample <= self.edges[bins] => self.counts[bins - 1] += 1,
            _ => self.above += 1,
        }
    }

    /// All samples, inside or out.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.below + self.above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_half_open_and_the_last_is_closed() {
        let mut histogram = Histogram::with_equal_bins(0.0, 10.0, 2);
        for sample in [-0.1, 0.0, 4.999, 5.0, 9.0, 10.0, 10.1, f64::NAN] {
            histogram.record(sample);
        }
        assert_eq!(histogram.counts, [2, 3]);
        assert_eq!((histogram.below, histogram.above, histogram.total()), (1, 2, 8));
    }
}
