//! Order statistics on samples: quantiles, spread, the tightest cluster.
//!
//! Everything here is robust: captures hold outliers (scheduling, retransmissions) that must not
//! move an estimate. Ranks are taken without interpolation.

/// A sorted sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// Sorts `values`; NaN is not expected and sorts last.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        // Equal values are the same bits in this order, so stability means nothing.
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values in ascending order.
    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    /// The `p` quantile, `p` in 0..=1; 0 for an empty sample.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let rank = (p * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The interquartile range.
    pub(crate) fn iqr(&self) -> f64 {
        self.quantile(0.75) - self.quantile(0.25)
    }

    /// The least value; 0 for an empty sample.
    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// The largest value; 0 for an empty sample.
    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// How many values lie in `low..=high`.
    pub(crate) fn count_between(&self, low: f64, high: f64) -> usize {
        let from = self.0.partition_point(|v| *v < low);
        let to = self.0.partition_point(|v| *v <= high);
        to.saturating_sub(from)
    }

    /// The window of width `width` that holds most values: its first value and how many it holds.
    /// Of equals the lowest wins.
    pub(crate) fn densest(&self, width: f64) -> (f64, usize) {
        let mut best = (self.min(), 0);
        let mut from = 0;
        for to in 0..self.0.len() {
            while self.0[to] - self.0[from] > width {
                from += 1;
            }
            if to - from + 1 > best.1 {
                best = (self.0[from], to - from + 1);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let s = Sample::new(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((s.median(), s.quantile(0.0), s.quantile(1.0)), (3.0, 1.0, 5.0));
        assert!(Sample::default().median().abs() < f64::EPSILON);
    }

    #[test]
    fn the_densest_window_finds_the_cluster_among_outliers() {
        let s = Sample::new(vec![0.1, 7.0, 7.1, 7.2, 30.0, 44.0]);
        assert_eq!(s.densest(0.5), (7.0, 3));
    }
}
