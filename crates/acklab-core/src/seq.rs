//! TCP sequence numbers: 32 bits that wrap (RFC 9293 section 3.4).

use std::ops::{Add, Sub};

/// A sequence number; comparisons are modular and valid within half the number space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether `self` comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// The distance from `earlier` to `self`, negative where `self` comes before.
    pub const fn distance(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

impl Sub<u32> for Seq {
    type Output = Self;
    fn sub(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }
}

/// Bytes from `earlier` to `self`; only meaningful where `self` is not before `earlier`.
impl Sub for Seq {
    type Output = u32;
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let (high, low) = (Seq(0xffff_fff0), Seq(0x10));
        assert!(high.before(low) && low.after(high) && !low.before(high));
        assert_eq!((low - high, low.distance(high), high.distance(low)), (32, 32, -32));
        assert_eq!(high.max(low), low);
    }
}
