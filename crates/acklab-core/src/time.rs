//! Time in the world: [`Time`], an instant, and [`Span`], a length; both whole nanoseconds.
//!
//! Never `std::time`: in virtual time nothing may read a clock, and on the real network the clock
//! is read once, at the edge, and passed inwards as `now`. 2^64 ns are 584 years, so arithmetic
//! saturates rather than wraps and a saturated value means "never".

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

/// An instant: nanoseconds since the world began (virtual time) or since the epoch (captures).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The beginning of the world.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` ns after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning, rounded to a double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time elapsed since `earlier`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self - earlier` in nanoseconds with its sign.
    pub const fn signed_since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` ns.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` µs.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` ms.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` s.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// A span of `secs` s, rounded to the nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates: negative and NaN to 0, too large to u64::MAX.
        Self((secs * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Microseconds as a double.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Milliseconds as a double.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds as a double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, zero where `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Writes the span in the largest unit that keeps it exact: `30ms`, `1500us`, `7ns`, `2s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0s"),
            n if n % 1_000_000_000 == 0 => write!(f, "{}s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

/// Why a text is not a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseSpanError {
    /// No number stands before the unit.
    Number,
    /// The unit is none of ns, us, µs, ms, s, min, h.
    Unit,
    /// Negative, infinite, or longer than 584 years.
    Range,
}

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "no number before the unit; write for example 30ms",
            Self::Unit => "the unit must be one of ns, us, ms, s, min, h; write for example 30ms",
            Self::Range => "a time must be finite and not negative",
        })
    }
}

impl std::error::Error for ParseSpanError {}

/// Parses `30ms`, `1.5s`, `200us`, `7ns`, `2min`, `1h` and a bare `0`.
impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
            .unwrap_or(text.len());
        let number: f64 = text[..end].parse().map_err(|_| ParseSpanError::Number)?;
        let nanos_per_unit = match text[end..].trim() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "min" => 60e9,
            "h" => 3600e9,
            "" if number == 0.0 => 1.0,
            _ => return Err(ParseSpanError::Unit),
        };
        let nanos = number * nanos_per_unit;
        if !(0.0..1.8e19).contains(&nanos) {
            return Err(ParseSpanError::Range);
        }
        Ok(Self((nanos + 0.5) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse_in_every_unit_and_print_back() {
        let check = |text: &str, nanos: u64, shown: &str| {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.as_nanos(), span.to_string().as_str()), (nanos, shown), "{text}");
        };
        check("30ms", 30_000_000, "30ms");
        check("1.5s", 1_500_000_000, "1500ms");
        check("7ns", 7, "7ns");
        check("200 us", 200_000, "200us");
        check("2min", 120_000_000_000, "120s");
        check("0", 0, "0s");
    }

    #[test]
    fn bad_spans_say_what_is_wrong() {
        assert_eq!("ms".parse::<Span>(), Err(ParseSpanError::Number));
        assert_eq!("30".parse::<Span>(), Err(ParseSpanError::Unit));
        assert_eq!("30 parsecs".parse::<Span>(), Err(ParseSpanError::Unit));
        assert_eq!("-1s".parse::<Span>(), Err(ParseSpanError::Range));
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Span::ZERO);
        assert_eq!(Time::ZERO.signed_since(Time::from_nanos(5)), -5);
        assert_eq!(Span::MAX * 2, Span::MAX);
    }
}
