//! Transcendental functions that give the same bits on every platform.
//!
//! `f64::ln` and friends call the platform's C library (or an intrinsic), whose last bit differs
//! between glibc, macOS and WebAssembly; one such bit changes a result hash. `libm` is compiled
//! from the same Rust source everywhere. `sqrt` is exact by IEEE 754 and needs no wrapper.

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Natural exponential.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `base` to the power of `exponent`.
pub fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

/// Cube root.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// Sine of an angle in radians.
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// Cosine of an angle in radians.
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Angle of the point (x, y) in radians, from -π to π.
pub fn atan2(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_the_same_bits_everywhere() {
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5516);
        // One unit in the last place above the true e: it is the same everywhere that matters.
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a);
        assert_eq!(cbrt(27.0).to_bits(), 3.0_f64.to_bits());
        assert_eq!(pow(2.0, 10.0).to_bits(), 1024.0_f64.to_bits());
    }
}
