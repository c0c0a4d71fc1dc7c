//! Rates: [`BitRate`].

use std::fmt;
use std::str::FromStr;

use crate::time::Span;

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// So fast that serialisation takes no time.
    pub const INFINITE: Self = Self(u64::MAX);

    /// A rate of `bps` bit/s; `None` for zero, over which nothing would ever arrive.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time to put `bytes` on the wire, rounded up to the nanosecond.
    pub const fn serialisation(self, bytes: u64) -> Span {
        if self.0 == u64::MAX {
            return Span::ZERO;
        }
        // 64 bits suffice below 2.3 GB at once; packets are far smaller.
        match bytes.checked_mul(8_000_000_000) {
            Some(bit_nanos) => Span::from_nanos(bit_nanos.div_ceil(self.0)),
            None => {
                Span::from_nanos((bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128) as u64)
            }
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("infinite"),
            n if n % 1_000_000_000 == 0 => write!(f, "{}gbit", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}mbit", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}kbit", n / 1_000),
            n => write!(f, "{n}bit"),
        }
    }
}

/// Why a text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseRateError;

impl fmt::Display for ParseRateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate is a positive number and a unit, for example 1.5mbit, 100kbit, 1gbit, or infinite")
    }
}

impl std::error::Error for ParseRateError {}

/// Parses tc's vocabulary: `1.5mbit`, `100kbit`, `10gbit`, `9600bit`, and `infinite`.
impl FromStr for BitRate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        if text == "infinite" {
            return Ok(Self::INFINITE);
        }
        let (number, factor) = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]
            .into_iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
            .ok_or(ParseRateError)?;
        let bps = number.trim().parse::<f64>().map_err(|_| ParseRateError)? * factor;
        if !(1.0..1.8e19).contains(&bps) {
            return Err(ParseRateError);
        }
        Ok(Self((bps + 0.5) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kilobyte_takes_5333_microseconds_at_1500_kbit() {
        let rate: BitRate = "1.5mbit".parse().unwrap();
        assert_eq!(rate.serialisation(1000), Span::from_nanos(5_333_334));
        assert_eq!(rate.to_string(), "1500kbit");
        assert_eq!(BitRate::INFINITE.serialisation(u64::MAX), Span::ZERO);
    }

    #[test]
    fn bad_rates_are_refused() {
        for text in ["", "0bit", "-1mbit", "10", "mbit", "1e99gbit", "NaNbit"] {
            assert_eq!(text.parse::<BitRate>(), Err(ParseRateError), "{text}");
        }
    }
}
