//! Intervals for a probability, from a number of successes in a number of independent runs.
//!
//! Clopper-Pearson inverts the binomial tests and covers at least as often as it says (Biometrika 26,
//! 1934); Wilson inverts the score test (JASA 22, 1927): shorter, right on average; Okamoto's bound
//! (Ann. Inst. Stat. Math. 10, 1959; Chernoff and Hoeffding in UPPAAL's words) has one width
//! for all outcomes; the Bayesian interval is the equal-tailed credible one under a Beta prior, and
//! Jeffreys' is that with Beta(1/2, 1/2), taken to 0 or 1 where the outcome lies there (Brown, Cai,
//! DasGupta, Statistical Science 16(2), 2001, section 3.1). All of these are for a number of runs that
//! is fixed ahead. The beta-binomial confidence sequence alone holds whenever one looks
//! (`mixture.rs` has its sources).

use serde::Serialize;

use crate::mixture;
use crate::special::{beta_quantile, normal_quantile};

/// How an interval for a probability is computed.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum ProportionMethod {
    /// The exact interval: covers with at least its confidence, for a number of runs fixed ahead.
    #[default]
    ClopperPearson,
    /// The score interval: covers with about its confidence.
    Wilson,
    /// The Chernoff-Hoeffding bound: estimate +- sqrt(ln(2/alpha) / (2 n)).
    Okamoto,
    /// The equal-tailed credible interval under the prior Beta(a, b).
    Bayes {
        /// First parameter of the prior: 1 more than the successes it stands for. Above 0.
        a: f64,
        /// Second parameter of the prior: 1 more than the failures it stands for. Above 0.
        b: f64,
    },
    /// The credible interval under Beta(1/2, 1/2).
    Jeffreys,
    /// The beta-binomial confidence sequence: covers with at least its confidence at every look.
    BetaBinomial {
        /// How many runs the mixture is worth: it is tightest after 10 to 50 times as many. At least 0.
        precision: f64,
    },
}

impl ProportionMethod {
    /// The uniform prior, Beta(1, 1).
    pub const UNIFORM_PRIOR: Self = Self::Bayes { a: 1.0, b: 1.0 };

    /// The confidence sequence for no half-width in particular: that for 0.05.
    pub const SEQUENCE: Self = Self::BetaBinomial { precision: mixture::PRECISION };

    /// The confidence sequence that is to narrow to +-`epsilon`, above 0.
    pub fn sequence(epsilon: f64) -> Self {
        // Some 1003 runs for +-0.05 at 1/2, 63 at 0 and 1; half as much or twice as much precision: 1067 and
        // 56, 960 and 81. In between for other half-widths, too.
        Self::BetaBinomial { precision: 1.0 / epsilon }
    }

    /// The name used in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClopperPearson => "clopper-pearson",
            Self::Wilson => "wilson",
            Self::Okamoto => "okamoto",
            Self::Bayes { .. } => "bayes",
            Self::Jeffreys => "jeffreys",
            Self::BetaBinomial { .. } => "beta-binomial",
        }
    }

    /// The method of that name; `bayes` has the uniform prior, `beta-binomial` is
    /// [`SEQUENCE`](Self::SEQUENCE).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// One of each.
    pub const ALL: [Self; 6] = [
        Self::SEQUENCE,
        Self::ClopperPearson,
        Self::Wilson,
        Self::Okamoto,
        Self::UNIFORM_PRIOR,
        Self::Jeffreys,
    ];

    /// The interval for `successes` out of `runs`; [0, 1] when nothing has been seen.
    ///
    /// ```
    /// use acklab_stats::ProportionMethod;
    ///
    /// // No success in 36 runs: how many there may be nevertheless, with 95 % confidence.
    /// let exact = ProportionMethod::ClopperPearson.interval(0, 36, 0.95).expect("usable");
    /// assert!(exact.low == 0.0 && (0.097..0.098).contains(&exact.high));
    /// assert!(ProportionMethod::Wilson.interval(2, 1, 0.95).is_none());
    /// ```
    ///
    /// `None` with more successes than runs, `confidence` outside 0..1 (ends excluded), a prior that is
    /// not positive, or a precision that is negative.
    pub fn interval(
        self,
        successes: u64,
        runs: u64,
        confidence: f64,
    ) -> Option<ProportionInterval> {
        if successes > runs || !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let usable = match self {
            Self::Bayes { a, b } => a > 0.0 && b > 0.0 && (a + b).is_finite(),
            Self::BetaBinomial { precision } => precision >= 0.0 && precision.is_finite(),
            _ => true,
        };
        if !usable {
            return None;
        }
        let (low, high) = self.ends(successes as f64, runs as f64, 1.0 - confidence);
        Some(ProportionInterval { low, high, confidence, method: self.name() })
    }

    fn ends(self, successes: f64, runs: f64, alpha: f64) -> (f64, f64) {
        let failures = runs - successes;
        match self {
            Self::Bayes { a, b } => (
                beta_quantile(alpha / 2.0, successes + a, failures + b),
                beta_quantile(1.0 - alpha / 2.0, successes + a, failures + b),
            ),
            _ if runs < 1.0 => (0.0, 1.0),
            Self::ClopperPearson => (
                clopper_pearson_low(successes, failures, alpha / 2.0),
                1.0 - clopper_pearson_low(failures, successes, alpha / 2.0),
            ),
            Self::Wilson => wilson(successes, failures, alpha),
            Self::BetaBinomial { precision } => mixture::ends(successes, runs, alpha, precision),
            Self::Okamoto => {
                let half = okamoto_half_width(runs, alpha);
                let share = successes / runs;
                ((share - half).max(0.0), (share + half).min(1.0))
            }
            Self::Jeffreys => (
                if successes < 1.0 {
                    0.0
                } else {
                    beta_quantile(alpha / 2.0, successes + 0.5, failures + 0.5)
                },
                if failures < 1.0 {
                    1.0
                } else {
                    beta_quantile(1.0 - alpha / 2.0, successes + 0.5, failures + 0.5)
                },
            ),
        }
    }
}

/// An interval for a probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProportionInterval {
    /// Lower end, at least 0.
    pub low: f64,
    /// Upper end, at most 1.
    pub high: f64,
    /// 1 - alpha.
    pub confidence: f64,
    /// [`ProportionMethod::name`].
    pub method: &'static str,
}

impl ProportionInterval {
    /// Upper end less lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether `probability` lies in it, ends included.
    pub fn covers(&self, probability: f64) -> bool {
        (self.low..=self.high).contains(&probability)
    }
}

/// Okamoto's number of runs for estimate +- `epsilon` with confidence 1 - `alpha`:
/// ceil(ln(2/alpha) / (2 epsilon^2)).
pub fn okamoto_runs(alpha: f64, epsilon: f64) -> u64 {
    (libm::log(2.0 / alpha) / (2.0 * epsilon * epsilon)).ceil() as u64
}

fn okamoto_half_width(runs: f64, alpha: f64) -> f64 {
    (libm::log(2.0 / alpha) / (2.0 * runs)).sqrt()
}

/// The p at which `successes` or more have probability `tail`.
fn clopper_pearson_low(successes: f64, failures: f64, tail: f64) -> f64 {
    if successes < 1.0 {
        0.0
    } else if failures < 1.0 {
        // p^n = tail.
        libm::exp(libm::log(tail) / successes)
    } else {
        beta_quantile(tail, successes, failures + 1.0)
    }
}

fn wilson(successes: f64, failures: f64, alpha: f64) -> (f64, f64) {
    let z = -normal_quantile(alpha / 2.0);
    let square = z * z;
    let runs = successes + failures;
    let centre = successes + square / 2.0;
    let half = z * (successes * failures / runs + square / 4.0).sqrt();
    let (low, high) = ((centre - half) / (runs + square), (centre + half) / (runs + square));
    // Exactly 0 or 1 in these cases; rounding would miss it.
    (if successes < 1.0 { 0.0 } else { low }, if failures < 1.0 { 1.0 } else { high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(method: ProportionMethod, successes: u64, runs: u64) -> ProportionInterval {
        method.interval(successes, runs, 0.95).expect("a valid question")
    }

    #[test]
    fn the_papers_intervals_come_out() {
        // (successes, runs, low, high) of Table 4, cut after three digits there.
        for (successes, runs, low, high) in [
            (36, 36, 0.902, 1.0),
            (239, 341, 0.649, 0.749),
            (204, 402, 0.457, 0.557),
            (19, 171, 0.068, 0.168),
            (0, 36, 0.0, 0.097),
        ] {
            let got = interval(ProportionMethod::ClopperPearson, successes, runs);
            let cut = |value: f64| (value * 1e3).floor() / 1e3;
            assert_eq!((cut(got.low), cut(got.high)), (low, high), "{successes}/{runs}");
        }
    }

    #[test]
    fn okamoto_takes_738_runs_for_five_per_cent() {
        assert_eq!(okamoto_runs(0.05, 0.05), 738);
        let got = interval(ProportionMethod::Okamoto, 369, 738);
        assert!(got.width() <= 0.1 && got.width() > 0.0999);
    }

    #[test]
    fn every_method_mirrors_and_contains_its_estimate() {
        for method in ProportionMethod::ALL {
            let name = method.name();
            assert_eq!(ProportionMethod::from_name(name), Some(method));
            for (successes, runs) in [(0, 0), (0, 1), (0, 40), (3, 40), (20, 40), (40, 40)] {
                let got = interval(method, successes, runs);
                let mirror = interval(method, runs - successes, runs);
                assert!((got.low + mirror.high - 1.0).abs() < 1e-14, "{name} {successes}/{runs}");
                assert!(0.0 <= got.low && got.low < got.high && got.high <= 1.0);
                if runs > 0 && name != "bayes" {
                    assert!(got.covers(successes as f64 / runs as f64), "{name}");
                }
            }
        }
        assert_eq!(ProportionMethod::from_name("wald"), None);
    }

    #[test]
    fn nonsense_has_no_interval() {
        let method = ProportionMethod::ClopperPearson;
        assert_eq!(method.interval(3, 2, 0.95), None);
        assert_eq!(method.interval(1, 2, 1.0), None);
        assert_eq!(ProportionMethod::Bayes { a: 0.0, b: 1.0 }.interval(1, 2, 0.95), None);
    }
}
