//! Mean, spread and quantiles of a set of samples.
//!
//! The standard deviation is the sample's (divisor n - 1), two-pass. Quantiles are Hyndman and
//! Fan's type 7 ("Sample Quantiles in Statistical Packages", The American Statistician 50(4), 1996),
//! which is numpy's and R's default: linear interpolation at h = (n - 1) p between order statistics.

use serde::Serialize;

/// Summary of a set of samples, in the samples' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many samples.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single sample.
    pub sd: f64,
    /// Smallest.
    pub min: f64,
    /// Median (type 7).
    pub p50: f64,
    /// 95 % quantile (type 7).
    pub p95: f64,
    /// 99 % quantile (type 7).
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summarises `samples`; `None` if there are none or one is not finite.
    pub fn from_samples(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self::from_sorted(&sorted)
    }

    /// Summarises samples in rising order; `None` if there are none or one is not finite.
    pub fn from_sorted(sorted: &[f64]) -> Option<Self> {
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // NaN sorts to one of the ends under the total order.
        if !(min.is_finite() && max.is_finite()) {
            return None;
        }
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
        let sd = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let quantile = |p| quantile_of_sorted(sorted, p);
        Some(Self {
            count,
            mean: mean.clamp(min, max),
            sd,
            min,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max,
        })
    }
}

/// The type-7 quantile of samples in rising order, `p` clamped to 0..=1; NaN if there are none.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let h = last as f64 * p.clamp(0.0, 1.0);
    let below = h as usize;
    let above = (below + 1).min(last);
    sorted[below] + (h - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.quantile([1, 2, 4, 8, 16, 32], p)
        let sorted = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        for (p, expect) in [
            (0.0, 1.0),
            (0.1, 1.5),
            (0.25, 2.5),
            (0.5, 6.0),
            (0.95, 28.0),
            (0.99, 31.2),
            (1.0, 32.0),
        ] {
            let got = quantile_of_sorted(&sorted, p);
            assert!((got - expect).abs() < 1e-12, "p = {p}: {got}");
        }
    }

    #[test]
    fn spread_is_the_samples_own() {
        // numpy.std([2, 4, 4, 4, 5, 5, 7, 9], ddof=1)
        let summary = Summary::from_samples(&[9.0, 2.0, 4.0, 5.0, 4.0, 7.0, 4.0, 5.0]);
        let summary = summary.expect("finite samples");
        assert!((summary.sd - 2.138_089_935_299_395).abs() < 1e-14);
        assert!((summary.mean - 5.0).abs() < 1e-15);
        assert_eq!((summary.min, summary.max, summary.count), (2.0, 9.0, 8));
    }

    #[test]
    fn nothing_and_nonsense_have_no_summary() {
        for samples in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY], &[-f64::NAN, 2.0]] {
            assert_eq!(Summary::from_samples(samples), None, "{samples:?}");
        }
    }

    #[test]
    fn one_sample_is_all_its_quantiles() {
        let summary = Summary::from_samples(&[3.5]).expect("one sample");
        assert_eq!((summary.p50, summary.p99, summary.sd), (3.5, 3.5, 0.0));
    }

    #[test]
    fn the_mean_of_equal_samples_is_that_sample() {
        let summary = Summary::from_samples(&[0.1; 3]).expect("samples");
        assert_eq!((summary.min, summary.mean, summary.max), (0.1, 0.1, 0.1));
    }
}
