//! How far distributions of times are apart: the Kolmogorov-Smirnov distance, for which times that are at most 0.1 ms
//! apart are the same: a value that half of the samples have may lie 1 us higher in another world.

use crate::Ecdf;

/// The largest difference between two empirical distributions of times in ms. `None` where one has no samples.
pub fn two_sample_ks(a: Vec<f64>, b: Vec<f64>) -> Option<f64> {
    let (a, b) = (Ecdf::from_samples(a)?, Ecdf::from_samples(b)?);
    let ahead = |a: &Ecdf, b: &Ecdf| {
        let gaps = a.sorted().iter().map(|x| a.evaluate(*x) - b.evaluate(x + SAME_MS));
        gaps.fold(0.0, f64::max)
    };
    Some(ahead(&a, &b).max(ahead(&b, &a)))
}

/// The largest difference between samples in ms and a law: (value, share at or below it), straight between these
/// points. `None` without samples or points.
pub fn ks_to_law(samples: Vec<f64>, law: &[(f64, f64)]) -> Option<f64> {
    let samples = Ecdf::from_samples(samples)?;
    let (count, _) = (samples.sorted().len() as f64, law.first()?);
    let ranks = (0..).zip(samples.sorted());
    let gaps = ranks.map(|(below, x)| {
        let ahead = samples.evaluate(*x) - share(law, x + SAME_MS);
        let behind = share(law, x - SAME_MS) - f64::from(below) / count;
        ahead.max(behind)
    });
    Some(gaps.fold(0.0, f64::max))
}

fn share(law: &[(f64, f64)], x: f64) -> f64 {
    let after = law.partition_point(|(value, _)| *value <= x);
    match (after.checked_sub(1).map(|at| law[at]), law.get(after)) {
        (None, _) => 0.0,
        (Some((_, share)), None) => share,
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
    }
}

/// Times that are as close as this count as the same, ms.
const SAME_MS: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_distributions_is_between_0_and_1() {
        assert_eq!(two_sample_ks(vec![1.0, 2.0], vec![1.0, 2.0]), Some(0.0));
        assert_eq!(two_sample_ks(vec![1.0, 2.0], vec![3.0]), Some(1.0));
        assert_eq!(two_sample_ks(vec![1.0, 2.0, 3.0, 4.0], vec![2.5]), Some(0.5));
        assert_eq!(two_sample_ks(vec![0.0, 0.0, 9.0], vec![0.001, 0.002, 9.0]), Some(0.0));
        assert_eq!(two_sample_ks(vec![], vec![2.5]), None);
    }

    #[test]
    fn the_distance_to_a_law_is_that_of_the_worst_place_on_either_side() {
        let at_once = [(0.0, 1.0)];
        assert_eq!(
            ks_to_law(vec![0.02, 0.05, 0.03], &at_once),
            Some(0.0),
            "the same within 0.1 ms"
        );
        assert_eq!(ks_to_law(vec![0.0, 0.0, 0.0, 7.0], &at_once), Some(0.25));
        let even = [(0.0, 0.0), (100.0, 1.0)];
        let lattice = |step: u32| (0..100).step_by(step as usize).map(f64::from).collect();
        // The staircase is a step above the line; 0.1 ms of it are not counted.
        let distance = ks_to_law(lattice(10), &even).unwrap();
        assert!((distance - (0.1 - 0.001)).abs() < 1e-12, "{distance}");
        assert!((ks_to_law(vec![100.0; 9], &even).unwrap() - 0.999).abs() < 1e-12);
        assert_eq!(ks_to_law(vec![], &even), None);
        assert_eq!(ks_to_law(vec![1.0], &[]), None);
    }
}
