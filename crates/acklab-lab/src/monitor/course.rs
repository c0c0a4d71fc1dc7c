//! [`Course`]: a quantity over time in several replications, cell by cell.

use std::collections::BTreeMap;

use acklab_stats::quantile_of_sorted;

use super::cells::Points;

/// A quantity over time, in each replication that was kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course(Vec<Points>);

impl From<Points> for Course {
    fn from(points: Points) -> Self {
        Self(vec![points])
    }
}

impl Course {
    pub(super) fn pool(&mut self, other: &Self) {
        self.0.extend(other.0.iter().filter(|points| !points.is_empty()).cloned());
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// In how many replications.
    pub fn replications(&self) -> usize {
        self.0.len()
    }

    /// The median over the replications at each time at which one has a value.
    pub fn median(&self) -> Points {
        self.each(|values| quantile_of_sorted(values, 0.5)).collect()
    }

    /// (seconds, 5 % quantile, 95 % quantile) over the replications; nothing where there is only one.
    pub fn band(&self) -> Vec<(f64, f64, f64)> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        let low = self.each(|values| quantile_of_sorted(values, 0.05));
        let high = self.each(|values| quantile_of_sorted(values, 0.95));
        low.zip(high).map(|((at, low), (_, high))| (at, low, high)).collect()
    }

    /// The greatest value of all replications at each time.
    pub fn greatest(&self) -> Points {
        self.each(|values| values.last().copied().unwrap_or(f64::NAN)).collect()
    }

    fn each(&self, of: impl Fn(&[f64]) -> f64) -> impl Iterator<Item = (f64, f64)> {
        // Times are positive, so that their bits are in their order.
        let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (time, value) in self.0.iter().flatten() {
            at.entry(time.to_bits()).or_default().push(*value);
        }
        at.into_iter().map(move |(time, mut values)| {
            values.sort_by(f64::total_cmp);
            (f64::from_bits(time), of(&values))
        })
    }
}

/// Replications whose courses are kept: more would fill memory and change no line.
pub(crate) const MOST_KEPT: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_band_are_those_of_the_replications_that_have_a_value() {
        let mut course = Course::from(vec![(0.5, 1.0), (1.5, 4.0)]);
        assert_eq!((course.median(), course.band()), (vec![(0.5, 1.0), (1.5, 4.0)], vec![]));
        course.pool(&Course::from(vec![(0.5, 3.0), (1.5, 8.0), (2.5, 7.0)]));
        course.pool(&Course::from(vec![(0.5, 2.0)]));
        assert_eq!(course.median(), [(0.5, 2.0), (1.5, 6.0), (2.5, 7.0)]);
        let band = course.band();
        assert!((band[0].1 - 1.1).abs() < 1e-12 && (band[0].2 - 2.9).abs() < 1e-12, "{band:?}");
        assert_eq!(course.greatest()[1], (1.5, 8.0));
    }
}
