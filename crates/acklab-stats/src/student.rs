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
    fn quantiles_are_those_of_scipy() {
        for (p, degrees, expect) in SCIPY {
            let got = t_quantile(p, degrees);
            assert!((got / expect - 1.0).abs() < 1e-10, "p {p}, {degrees}: {got:?} {expect:?}");
        }
    }

    #[test]
    fn quantiles_mirror_about_the_median() {
        assert!(t_quantile(0.5, 7.0).abs() < 1e-15);
        assert_eq!(t_quantile(0.25, 3.0).to_bits(), (-t_quantile(0.75, 3.0)).to_bits());
        assert!(t_quantile(0.0, 3.0).is_nan() && t_quantile(0.9, 0.0).is_nan());
    }

    /// (p, degrees, scipy.stats.t.ppf(p, degrees))
    const SCIPY: [(f64, f64, f64); 54] = [
        (0.9, 1.0, 3.077_683_537_175_254_4),
        (0.9, 2.0, 1.885_618_083_164_127_2),
        (0.9, 3.0, 1.637_744_353_696_209),
        (0.9, 4.0, 1.533_206_274_058_944),
        (0.9, 9.0, 1.383_028_738_396_632_9),
        (0.9, 29.0, 1.311_433_647_301_551),
        (0.9, 99.0, 1.290_161_442_034_485_4),
        (0.9, 1004.0, 1.282_395_344_070_300_2),
        (0.9, 2.5, 1.730_250_928_807_176_6),
        (0.95, 1.0, 6.313_751_514_675_037),
        (0.95, 2.0, 2.919_985_580_353_724_2),
        (0.95, 3.0, 2.353_363_434_801_823_3),
        (0.95, 4.0, 2.131_846_786_326_649_5),
        (0.95, 9.0, 1.833_112_932_656_237),
        (0.95, 29.0, 1.699_127_026_533_497_2),
        (0.95, 99.0, 1.660_391_156_016_990_6),
        (0.95, 1004.0, 1.646_372_735_186_522_5),
        (0.95, 2.5, 2.558_218_614_135_935_5),
        (0.975, 1.0, 12.706_204_736_174_694),
        (0.975, 2.0, 4.302_652_729_749_462),
        (0.975, 3.0, 3.182_446_305_283_707_8),
        (0.975, 4.0, 2.776_445_105_197_793_4),
        (0.975, 9.0, 2.262_157_162_798_205),
        (0.975, 29.0, 2.045_229_642_132_703),
        (0.975, 99.0, 1.984_216_951_586_417_4),
        (0.975, 1004.0, 1.962_329_607_070_926_2),
        (0.975, 2.5, 3.574_654_842_003_681_7),
        (0.995, 1.0, 63.656_741_162_871_526),
        (0.995, 2.0, 9.924_843_200_918_287),
        (0.995, 3.0, 5.840_909_309_733_355),
        (0.995, 4.0, 4.604_094_871_349_992),
        (0.995, 9.0, 3.249_835_541_592_126),
        (0.995, 29.0, 2.756_385_903_670_605),
        (0.995, 99.0, 2.626_405_457_280_827),
        (0.995, 1004.0, 2.580_735_039_825_869_5),
        (0.995, 2.5, 7.163_728_138_948_783),
        (0.9995, 1.0, 636.619_248_768_789_7),
        (0.9995, 2.0, 31.599_054_576_445_365),
        (0.9995, 3.0, 12.923_978_636_687_961),
        (0.9995, 4.0, 8.610_301_581_379_522),
        (0.9995, 9.0, 4.780_912_585_931_217),
        (0.9995, 29.0, 3.659_405_019_466_374_8),
        (0.9995, 99.0, 3.391_528_833_363_685),
        (0.9995, 1004.0, 3.300_243_676_106_110_7),
        (0.9995, 2.5, 18.277_893_528_131_457),
        (0.6, 1.0, 0.324_919_696_232_906_34),
        (0.6, 2.0, 0.288_675_134_594_812_8),
        (0.6, 3.0, 0.276_670_662_332_689_8),
        (0.6, 4.0, 0.270_722_294_707_597_6),
        (0.6, 9.0, 0.260_955_336_473_911),
        (0.6, 29.0, 0.255_683_634_571_256_04),
        (0.6, 99.0, 0.254_029_012_151_806_73),
        (0.6, 1004.0, 0.253_414_247_220_675_4),
        (0.6, 2.5, 0.281_459_512_748_547_7),
    ];
}
