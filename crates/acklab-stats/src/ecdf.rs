//! The empirical distribution function, its points for a plot, and its distance to a closed form.
//!
//! The Kolmogorov-Smirnov distance is exact for any closed form, continuous or with atoms: both
//! functions are compared at each sample and just below it, which is where the supremum lies because
//! one is constant and the other monotone in between. For a closed form with atoms the critical
//! value is conservative (Noether, "Note on the Kolmogorov statistic in the discrete case", Metrika
//! 7, 1963).

use serde::Serialize;

use crate::summary::quantile_of_sorted;

/// Empirical cumulative distribution function of a set of samples.
///
/// ```
/// use acklab_stats::Ecdf;
///
/// let waits_ms = Ecdf::from_samples(vec![40.0, 0.0, 0.0, 40.0]).expect("finite samples");
/// assert_eq!((waits_ms.evaluate(39.0), waits_ms.quantile(0.5)), (0.5, 20.0));
/// assert_eq!(waits_ms.points(10), [(0.0, 0.5), (40.0, 1.0)]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ecdf {
    sorted: Vec<f64>,
}

impl Ecdf {
    /// The distribution of `samples`; `None` if there are none or one is not finite.
    pub fn from_samples(mut samples: Vec<f64>) -> Option<Self> {
        if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        samples.sort_unstable_by(f64::total_cmp);
        Some(Self { sorted: samples })
    }

    /// The samples in rising order.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The share of samples at or below `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.sorted.partition_point(|sample| *sample <= x) as f64 / self.sorted.len() as f64
    }

    /// The type-7 quantile; see [`quantile_of_sorted`].
    pub fn quantile(&self, p: f64) -> f64 {
        quantile_of_sorted(&self.sorted, p)
    }

    /// At most `limit` (and at least two) points (x, share at or below x) for a step plot: x rising,
    /// beginning at (smallest, its share) and ending at (largest, 1). Every point lies on the
    /// function; steps between two points are lost, each at most 1/(limit - 1) high.
    pub fn points(&self, limit: usize) -> Vec<(f64, f64)> {
        let count = self.sorted.len();
        let ranks = limit.max(2).min(count) - 1;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for step in 0..=ranks {
            let rank = (step * (count - 1)).checked_div(ranks).unwrap_or(0);
            let x = self.sorted[rank];
            // Points come with rising x; several ranks may fall on one value.
            if points.last().is_none_or(|last| last.0 < x) {
                points.push((x, self.evaluate(x)));
            }
        }
        points
    }

    /// The Kolmogorov-Smirnov distance to `cdf`, which must be a right-continuous distribution
    /// function, that is P(X <= x).
    pub fn ks_distance(&self, cdf: impl Fn(f64) -> f64) -> f64 {
        let count = self.sorted.len() as f64;
        let mut distance: f64 = 0.0;
        let mut below = 0;
        while below < self.sorted.len() {
            let x = self.sorted[below];
            let equal = self.sorted[below..].partition_point(|sample| *sample <= x);
            let at = below + equal;
            distance = distance
                .max((below as f64 / count - cdf(x.next_down())).abs())
                .max((at as f64 / count - cdf(x)).abs());
            below = at;
        }
        distance
    }
}

/// The Kolmogorov-Smirnov distance that `count` independent samples of the closed form itself exceed
/// with probability `alpha`.
///
/// Kolmogorov's limit law with Stephens' correction for finite samples (JRSS B 32(1), 1970, section
/// 4): within 1 % for alpha in 0.01..=0.2 and any count from 5.
pub fn ks_critical_value(count: usize, alpha: f64) -> f64 {
    let root = (count as f64).sqrt();
    (-libm::log(alpha / 2.0) / 2.0).sqrt() / (root + 0.12 + 0.11 / root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ecdf(samples: &[f64]) -> Ecdf {
        Ecdf::from_samples(samples.to_vec()).expect("finite samples")
    }

    #[test]
    fn evaluation_is_right_continuous() {
        let ecdf = ecdf(&[3.0, 1.0, 2.0, 2.0]);
        for (x, share) in
            [(0.9, 0.0), (1.0, 0.25), (1.9, 0.25), (2.0, 0.75), (3.0, 1.0), (9.0, 1.0)]
        {
            assert_eq!(ecdf.evaluate(x).to_bits(), f64::to_bits(share), "{x}");
        }
    }

    #[test]
    fn points_lie_on_the_function_and_end_at_one() {
        let samples: Vec<f64> = (0..1005).map(|index| f64::from(index * index % 997)).collect();
        let ecdf = ecdf(&samples);
        let points = ecdf.points(64);
        assert!(points.len() <= 64);
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert!(points.iter().all(|(x, y)| (ecdf.evaluate(*x) - y).abs() < 1e-15));
        let last = points.last().expect("points");
        assert_eq!((last.0, last.1), (ecdf.quantile(1.0), 1.0));
        assert_eq!(
            super::Ecdf::from_samples(vec![7.0; 9]).expect("finite").points(5),
            [(7.0, 1.0)]
        );
    }

    #[test]
    fn distance_to_the_uniform_law_is_that_of_scipy() {
        // scipy.stats.kstest([0.05, 0.21, 0.22, 0.7, 0.93], "uniform").statistic
        let distance = ecdf(&[0.05, 0.21, 0.22, 0.7, 0.93]).ks_distance(|x| x.clamp(0.0, 1.0));
        assert!((distance - 0.38).abs() < 1e-12, "{distance}");
    }

    #[test]
    fn an_atom_of_the_closed_form_is_not_held_against_it() {
        // Half the mass at 0, the rest uniform on (0, 1]: the samples follow it exactly.
        let samples = ecdf(&[0.0, 0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0]);
        let cdf = |x: f64| if x < 0.0 { 0.0 } else { f64::midpoint(1.0, x.min(1.0)) };
        let distance = samples.ks_distance(cdf);
        assert!((distance - 0.125).abs() < 1e-12, "{distance}");
        assert!(samples.ks_distance(|x: f64| x.clamp(0.0, 1.0)) >= 0.5);
    }

    #[test]
    fn critical_values_are_near_those_of_scipy() {
        // scipy.stats.kstwo.ppf(1 - alpha, count)
        for (count, alpha, expect) in [
            (10, 0.05, 0.409_246_109),
            (100, 0.05, 0.134_027_907),
            (1005, 0.01, 0.051_161_0),
            (1005, 0.2, 0.033_704),
        ] {
            let got = ks_critical_value(count, alpha);
            assert!((got / expect - 1.0).abs() < 0.012, "{count} {alpha}: {got}");
        }
    }
}
