//! When a formula became true: the cumulative distribution over all runs, with bands.
//!
//! F(t) is the share of runs in which the formula had been met by t; runs that never met it count in
//! the denominator, so that F ends at the estimate of the probability itself (figure 31 of the ANCE
//! paper). Two bands: an interval at each t by itself, and one for the whole curve at once (Dvoretzky,
//! Kiefer, Wolfowitz with Massart's constant, Ann. Prob. 18, 1990), which holds for the sub-distribution
//! too, since a run that never meets the formula is one that meets it at infinity.
//!
//! For a number of runs fixed ahead the intervals are Clopper and Pearson's. Where the outcomes decided how
//! many runs there are, they are the confidence sequence's, and the band is that of alpha / (n (n + 1)):
//! these add up to alpha over all n, so that it holds at every look.

use serde::Serialize;

use crate::estimate::Estimate;
use crate::interval::Validity;
use crate::proportion::ProportionMethod;

/// One step of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReachPoint {
    /// Clock: seconds, or the value of the clock signal.
    pub at: f64,
    /// Share of runs that had met the formula by then.
    pub share: f64,
    /// Lower end at this point by itself.
    pub low: f64,
    /// Upper end at this point by itself.
    pub high: f64,
}

/// The distribution of the clock at which a formula became true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReachCurve {
    /// Runs, those that never met the formula included.
    pub runs: u64,
    /// 1 - alpha.
    pub confidence: f64,
    /// Half the height of the band for the whole curve: F -+ this, cut at 0 and 1.
    pub band: f64,
    /// When intervals and band cover with this confidence.
    pub validity: Validity,
    /// One point per clock value at which a run met the formula, rising.
    pub points: Vec<ReachPoint>,
}

impl ReachCurve {
    /// From the clock values of the runs that met the formula, out of `runs`, whose number was fixed ahead
    /// or not.
    ///
    /// `None` if there are more of them than runs or none at all of either, if one is not finite, or
    /// if `alpha` is not inside 0..1.
    pub fn new(reached_at: &[f64], runs: u64, alpha: f64, is_fixed: bool) -> Option<Self> {
        let usable = runs > 0 && reached_at.len() as u64 <= runs && alpha > 0.0 && alpha < 1.0;
        if !usable || !reached_at.iter().all(|at| at.is_finite()) {
            return None;
        }
        let n = runs as f64;
        let (method, error, validity) = if is_fixed {
            (ProportionMethod::ClopperPearson, alpha, Validity::FixedRuns)
        } else {
            (ProportionMethod::SEQUENCE, alpha / (n * (n + 1.0)), Validity::AnyTime)
        };
        let mut sorted = reached_at.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut points: Vec<ReachPoint> = Vec::new();
        for (index, at) in sorted.iter().enumerate() {
            if sorted.get(index + 1).is_some_and(|next| next <= at) {
                continue;
            }
            let Estimate { estimate: share, interval, .. } =
                Estimate::fixed(index as u64 + 1, runs, method, alpha);
            points.push(ReachPoint { at: *at, share, low: interval.low, high: interval.high });
        }
        let band = (libm::log(2.0 / error) / (2.0 * n)).sqrt();
        Some(Self { runs, confidence: 1.0 - alpha, band, validity, points })
    }

    /// F(t).
    pub fn share_at(&self, at: f64) -> f64 {
        let below = self.points.partition_point(|point| point.at <= at);
        below.checked_sub(1).map_or(0.0, |last| self.points[last].share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_never_met_the_formula_keep_the_curve_below_one() {
        let curve = ReachCurve::new(&[2.0, 1.0, 2.0, 5.0], 10, 0.05, true).expect("a curve");
        let shares: Vec<(f64, f64)> = curve.points.iter().map(|p| (p.at, p.share)).collect();
        assert_eq!(shares, [(1.0, 0.1), (2.0, 0.3), (5.0, 0.4)]);
        assert_eq!(
            (curve.share_at(0.5), curve.share_at(2.0), curve.share_at(9.0)),
            (0.0, 0.3, 0.4)
        );
        assert!(curve.points.iter().all(|p| p.low < p.share && p.share < p.high));
        // sqrt(ln(40) / 20)
        assert!((curve.band - 0.429_469_4).abs() < 1e-7, "{}", curve.band);
        // sqrt(ln(40 * 10 * 11) / 20)
        let stopped = ReachCurve::new(&[2.0, 1.0, 2.0, 5.0], 10, 0.05, false).expect("a curve");
        assert!((stopped.band - 0.647_663_5).abs() < 1e-7, "{}", stopped.band);
        assert_eq!((curve.validity, stopped.validity), (Validity::FixedRuns, Validity::AnyTime));
        let wider = curve.points.iter().zip(&stopped.points);
        assert!(wider.clone().all(|(fixed, any)| any.low < fixed.low && fixed.high < any.high));
    }

    #[test]
    fn nonsense_has_no_curve() {
        assert_eq!(ReachCurve::new(&[1.0, 2.0], 1, 0.05, true), None);
        assert_eq!(ReachCurve::new(&[], 0, 0.05, true), None);
        assert_eq!(ReachCurve::new(&[f64::NAN], 2, 0.05, true), None);
    }
}
