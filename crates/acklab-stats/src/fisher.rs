//! Fisher's exact test of two proportions (J. R. Stat. Soc. 85(1), 1922), two-sided.
//!
//! Given how many of all runs succeeded, the number among the left ones is hypergeometric if both have one
//! probability. The p-value is the probability of all outcomes that are at most as probable as what was
//! seen, as R and scipy have it.

use crate::special::ln_gamma;

/// The probability, if both sides have one probability of success, of an outcome at most as probable as
/// `successes` out of `runs` on each side; `None` with more successes than runs.
pub fn fisher_exact(left: (u64, u64), right: (u64, u64)) -> Option<f64> {
    if left.0 > left.1 || right.0 > right.1 {
        return None;
    }
    let (successes, runs) = (left.0 + right.0, left.1 + right.1);
    let ln_probability = |of_left: u64| {
        ln_choose(left.1, of_left) + ln_choose(right.1, successes - of_left)
            - ln_choose(runs, successes)
    };
    let least = successes.saturating_sub(right.1);
    let most = successes.min(left.1);
    // Outcomes that are as probable by symmetry differ in the last digits.
    let seen = ln_probability(left.0) + 1e-9;
    let rarer = (least..=most).map(ln_probability).filter(|found| *found <= seen);
    Some(rarer.map(libm::exp).sum::<f64>().min(1.0))
}

fn ln_choose(runs: u64, successes: u64) -> f64 {
    let factorial = |count: u64| ln_gamma(count as f64 + 1.0);
    factorial(runs) - factorial(successes) - factorial(runs - successes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_the_textbook_and_of_scipy() {
        // Fisher's lady tasting tea: 3 of 4 on each side, 17/35; and scipy.stats.fisher_exact.
        for (left, right, expect) in [
            ((3, 4), (1, 4), 34.0 / 70.0),
            ((4, 4), (0, 4), 2.0 / 70.0),
            ((8, 10), (1, 6), 0.034_965_034_965_034_98),
            ((0, 36), (0, 36), 1.0),
            ((5, 5), (7, 7), 1.0),
        ] {
            let found = fisher_exact(left, right).expect("counts");
            assert!((found - expect).abs() < 1e-9, "{left:?} {right:?}: {found}");
            let mirrored = fisher_exact(right, left).expect("counts");
            assert!((found - mirrored).abs() < 1e-12, "{left:?} {right:?}");
        }
        assert_eq!(fisher_exact((2, 1), (0, 1)), None);
    }
}
