//! The beta-binomial confidence sequence: an interval for a probability that holds at every look.
//!
//! Who bets against "the probability is p" with a share of the capital that never depends on what is to
//! come multiplies the capital by a factor of mean 1 if p is right. Betting as a mixture over all
//! alternatives q gives after k successes and m failures
//!
//!   M(p) = B(a + k, b + m) / (B(a, b) p^k (1 - p)^m),   q ~ Beta(a, b),
//!
//! which by Ville's inequality (1939) ever reaches 1/alpha with probability alpha at most. So the p
//! with M(p) < 1/alpha are a confidence sequence: whenever one looks, after whichever run one stops and
//! for whatever reason, the interval covers with at least 1 - alpha (Robbins, Ann. Math. Stat. 41, 1970;
//! Howard, Ramdas, McAuliffe, Sekhon, Ann. Stat. 49(2), 2021; as betting: Waudby-Smith and Ramdas, J. R.
//! Stat. Soc. B 86(1), 2024).
//!
//! The mixture may depend on p. As in Howard et al. it is centred at p, a = 1/2 + R p and b = 1/2 + R (1 - p):
//! with the precision R it is tightest after some 10 to 50 R runs. The halves keep it from being blind
//! next to 0 and 1, where R p vanishes.

use crate::special::ln_gamma;

/// The ends of the sequence after `successes` of `runs`, which must be at least 1.
pub(crate) fn ends(successes: f64, runs: f64, alpha: f64, precision: f64) -> (f64, f64) {
    let failures = runs - successes;
    (
        low_end(successes, failures, alpha, precision),
        1.0 - low_end(failures, successes, alpha, precision),
    )
}

/// The largest p below successes / runs that is refuted.
fn low_end(successes: f64, failures: f64, alpha: f64, precision: f64) -> f64 {
    if successes < 1.0 {
        return 0.0;
    }
    let limit = -libm::log(alpha);
    // The capital is at most 1 at the share of successes and rises towards 0.
    let (mut refuted, mut held) = (0.0, successes / (successes + failures));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(refuted, held);
        if middle <= refuted || middle >= held {
            break;
        }
        if ln_capital(successes, failures, middle, precision) >= limit {
            refuted = middle;
        } else {
            held = middle;
        }
    }
    refuted
}

/// ln M(p), 0 < p < 1.
pub(crate) fn ln_capital(successes: f64, failures: f64, p: f64, precision: f64) -> f64 {
    let (a, b) = (0.5 + precision * p, 0.5 + precision * (1.0 - p));
    let term = |count: f64, chance: f64| if count > 0.0 { count * libm::log(chance) } else { 0.0 };
    ln_beta(a + successes, b + failures)
        - ln_beta(a, b)
        - term(successes, p)
        - term(failures, 1.0 - p)
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The precision for no half-width in particular: that for 0.05.
pub(crate) const PRECISION: f64 = 20.0;
/// Of an interval of at most 1, down to 1e-18.
const HALVINGS: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_refuted_is_an_interval_with_these_ends() {
        for (successes, runs) in [(0, 1), (1, 1), (1, 60), (3, 1000), (7, 9), (200, 402), (55, 55)]
        {
            for precision in [2.0, 20.0, 100.0] {
                let (k, n) = (f64::from(successes), f64::from(runs));
                let (low, high) = ends(k, n, 0.05, precision);
                assert!(low <= k / n && k / n <= high, "{successes}/{runs}: {low} {high}");
                for step in 1..4000 {
                    let p = f64::from(step) / 4000.0;
                    if (p - low).abs().min((p - high).abs()) < 1e-9 {
                        continue;
                    }
                    let held = ln_capital(k, n - k, p, precision) < libm::log(20.0);
                    let inside = (low..=high).contains(&p);
                    assert_eq!(held, inside, "{successes}/{runs}, {precision}: {p}, {low} {high}");
                }
            }
        }
    }

    #[test]
    fn the_capital_is_a_fair_bet() {
        // Its mean over the next outcome is what it was.
        for p in [0.003, 0.3, 0.9] {
            for (k, m) in [(0.0, 0.0), (2.0, 5.0), (40.0, 1.0)] {
                let capital = |k: f64, m: f64| libm::exp(ln_capital(k, m, p, 20.0));
                let next = p * capital(k + 1.0, m) + (1.0 - p) * capital(k, m + 1.0);
                assert!((next / capital(k, m) - 1.0).abs() < 1e-9, "{p} {k} {m}");
            }
        }
    }
}
