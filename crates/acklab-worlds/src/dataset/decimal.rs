//! [`Decimal`]: numbers as their files write them, so that differences are exact and what was read is written again
//! as it was.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// `units` times 10^-`digits`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    units: i128,
    digits: u32,
}

impl Decimal {
    /// `units` times 10^-`digits`.
    pub const fn new(units: i128, digits: u32) -> Self {
        Self { units, digits }
    }

    /// Decimals after the point.
    pub const fn digits(self) -> u32 {
        self.digits
    }

    /// How many 10^-`digits` it is; exact from its own digits up, else cut.
    pub fn units(self, digits: u32) -> i128 {
        match digits.cmp(&self.digits) {
            Ordering::Less => self.units / 10_i128.pow(self.digits - digits),
            _ => self.units.saturating_mul(10_i128.pow(digits - self.digits)),
        }
    }

    /// The difference, with the digits of the finer of the two.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let digits = self.digits.max(other.digits);
        Self { units: self.units(digits) - other.units(digits), digits }
    }

    /// The same number times 10^`places`.
    #[must_use]
    pub fn times_ten_to(self, places: u32) -> Self {
        match self.digits.checked_sub(places) {
            Some(digits) => Self { digits, ..self },
            None => Self { units: self.units(places), digits: 0 },
        }
    }

    /// The same number divided by 10^`places`.
    #[must_use]
    pub const fn over_ten_to(self, places: u32) -> Self {
        Self { units: self.units, digits: self.digits + places }
    }

    /// The nearest number of the machine.
    pub fn value(self) -> f64 {
        self.units as f64 / 10_i128.pow(self.digits) as f64
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let digits = self.digits.max(other.digits);
        self.units(digits).cmp(&other.units(digits))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = 10_u128.pow(self.digits);
        let (whole, rest) = (self.units.unsigned_abs() / size, self.units.unsigned_abs() % size);
        let sign = if self.units < 0 { "-" } else { "" };
        match self.digits {
            0 => write!(f, "{sign}{whole}"),
            digits => write!(f, "{sign}{whole}.{rest:0width$}", width = digits as usize),
        }
    }
}

impl FromStr for Decimal {
    type Err = String;

    /// `12`, `-12.345`, `1.2e-05`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no number");
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().map_err(|_| wrong())?),
            None => (text, 0_i32),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = fraction.len() as i32 - exponent;
        let figures = format!("{whole}{fraction}");
        let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain
            || !(-MOST_DIGITS..=MOST_DIGITS).contains(&digits)
            || figures.len() > MOST_FIGURES
        {
            return Err(wrong());
        }
        let units: i128 = figures.parse().map_err(|_| wrong())?;
        Ok(match u32::try_from(digits) {
            Ok(digits) => Self { units, digits },
            Err(_) => Self { units: units * 10_i128.pow(digits.unsigned_abs()), digits: 0 },
        })
    }
}

/// Beyond these no time or share of a data set goes; within them nothing overflows.
const MOST_DIGITS: i32 = 15;
const MOST_FIGURES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again_and_differences_are_exact() {
        for text in ["0", "12", "-0.5", "1634.123456789", "0.000000001", "1700000000.000001"] {
            assert_eq!(text.parse::<Decimal>().unwrap().to_string(), text);
        }
        let [a, b] =
            ["1700000000.1", "1699999999.999999999"].map(|text| text.parse::<Decimal>().unwrap());
        assert_eq!(a.minus(b).to_string(), "0.100000001");
        assert_eq!(a.minus(b).times_ten_to(6).to_string(), "100000.001");
        assert_eq!("1.2e-05".parse::<Decimal>().unwrap().to_string(), "0.000012");
        assert_eq!("3e2".parse::<Decimal>().unwrap(), "300.0".parse().unwrap());
        assert!("0.10".parse::<Decimal>().unwrap() > "0.099".parse().unwrap());
        for text in [
            "",
            "-",
            "1.2.3",
            "1,5",
            "nan",
            "1.-5",
            "1e99",
            "999999999999999999999999999999999999999999",
        ] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }
}
