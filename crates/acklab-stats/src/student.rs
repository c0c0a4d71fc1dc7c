//! Quantiles of Student's t distribution.
//!
//! The tail probability is half the regularised incomplete beta function I_x(v/2, 1/2) with
//! x = v / (v + t^2) (Abramowitz and Stegun 26.7.1). The quantile is its root, bracketed and halved,
//! so that it needs no starting value and cannot run away.

use crate::special::beta_cdf_with_complement;

/// The `p`-quantile of Student's t with `degrees` of freedom (any positive real number), to about
/// 1e-12 relative; NaN outside 0 < p < 1 or degrees > 0.
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && degrees > 0.0) {
        return f64::NAN;
    }
    if p < 0.5 {
        return -t_quantile(1.0 - p, degrees);
    }
    let tail = 1.0 - p;
    let mut low = 0.0;
    let mut high = 1.0;
    while upper_tail(high, degrees) > tail && high < f64::MAX / 4.0 {
        low = high;
        high *= 2.0;
    }
    // Halving ends when no number lies between the two.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if upper_tail(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// P(T > t) for t >= 0.
fn upper_tail(t: f64, degrees: f64) -> f64 {
    // Both x and 1 - x in full precision: one of them is tiny for large or small t.
    let square = t * t;
    let x = degrees / (degrees + square);
    let complement = square / (degrees + square);
    0.5 * beta_cdf_with_complement(x, complement, degrees / 2.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_mirror_about_the_median() {
        assert!(t_quantile(0.5, 7.0).abs() < 1e-15);
        assert_eq!(t_quantile(0.25, 3.0).to_bits(), (-t_quantile(0.75, 3.0)).to_bits());
        assert!(t_quantile(0.0, 3.0).is_nan() && t_quantile(0.9, 0.0).is_nan());
    }
}
