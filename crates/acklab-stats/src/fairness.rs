//! Jain's fairness index (Jain, Chiu, Hawe: DEC-TR-301, 1984).

/// (sum x)^2 / (n sum x^2): 1 when all shares are equal, 1/n when one has everything.
///
/// `None` without shares, with a negative or non-finite one, or when all are zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    if !shares.iter().all(|share| share.is_finite() && *share >= 0.0) {
        return None;
    }
    // Scaled by the largest share, so that nothing overflows.
    let largest = shares.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let sum: f64 = shares.iter().map(|share| share / largest).sum();
    let squares: f64 = shares.iter().map(|share| (share / largest) * (share / largest)).sum();
    Some(sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_spans_from_one_to_one_nth() {
        let index = |shares: &[f64]| jain_index(shares).expect("valid shares");
        assert!((index(&[5.0; 7]) - 1.0).abs() < 1e-15);
        assert!((index(&[3.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-15);
        assert!((index(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-15);
        assert!((index(&[1e300, 1e300]) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_to_share_has_no_index() {
        for shares in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN]] {
            assert_eq!(jain_index(shares), None, "{shares:?}");
        }
    }
}
