//! [`SquareWave`]: the set point, as both sides know it.
//!
//! The ANCE article's section 4.3: a square wave between 1 and 2 rad with a period of 2 s. Which
//! level comes first is not said; 1 is taken here, and the costs hardly depend on it.

use acklab_core::time::{Span, Time};

/// Two levels in turn, each for half a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquareWave {
    /// Level from time zero, in the plant's unit.
    pub first: f64,
    /// Level after half a period.
    pub second: f64,
    /// Length of both levels together; zero stays at the first.
    pub period: Span,
}

impl Default for SquareWave {
    fn default() -> Self {
        Self { first: 1.0, second: 2.0, period: Span::from_secs(2) }
    }
}

impl SquareWave {
    /// The level at `now`.
    pub const fn at(&self, now: Time) -> f64 {
        let (now, period) = (now.as_nanos(), self.period.as_nanos());
        if period == 0 || now % period < period / 2 { self.first } else { self.second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in binary")]
    fn the_level_changes_at_every_half_period_to_the_nanosecond() {
        let wave = SquareWave::default();
        let at = |nanos| wave.at(Time::from_nanos(nanos));
        assert_eq!([at(0), at(999_999_999), at(1_000_000_000)], [1.0, 1.0, 2.0]);
        assert_eq!([at(1_999_999_999), at(2_000_000_000)], [2.0, 1.0]);
    }
}
