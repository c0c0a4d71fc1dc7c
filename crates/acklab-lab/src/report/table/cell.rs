//! What stands in a table: a value with its kind, and how each kind is written.

use acklab_stats::MeanInterval;
use serde_json::{Value, json};

use super::unit::Unit;

/// A cell. Values are in the unit of JSON.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// Nothing was measured.
    #[default]
    Missing,
    Words(String),
    Count(u64),
    /// A measured value; one that is not finite counts as missing.
    Measure(f64),
    /// A mean and half the width of its interval.
    Interval {
        mean: f64,
        /// From it to either end.
        half_width: f64,
    },
    /// Words that are sorted by a value.
    Ranked {
        words: String,
        /// By what it is sorted.
        value: f64,
    },
    Truth(bool),
    /// What JSON alone has.
    Data(Value),
}

impl Cell {
    /// As a reader of the page sees it: measured values with three significant digits.
    pub(super) fn on_page(&self, unit: &Unit) -> Option<String> {
        Some(match self {
            Self::Count(count) => grouped(*count),
            Self::Measure(value) if value.is_finite() => measure(unit.of(*value)),
            Self::Interval { mean, half_width } => {
                format!("{:.2} ± {:.2}", unit.of(*mean), unit.of(*half_width))
            }
            _ => return self.words(),
        })
    }

    /// As a reader of the terminal sees it.
    pub(super) fn plain(&self, unit: &Unit, decimals: usize) -> Option<String> {
        Some(match self {
            Self::Count(count) => count.to_string(),
            Self::Measure(value) if value.is_finite() => format!("{:.decimals$}", unit.of(*value)),
            Self::Interval { mean, half_width } => {
                let (mean, half_width) = (unit.of(*mean), unit.of(*half_width));
                format!("{mean:.decimals$} +- {half_width:.decimals$}")
            }
            _ => return self.words(),
        })
    }

    /// What does not depend on where it is read.
    fn words(&self) -> Option<String> {
        match self {
            Self::Words(words) | Self::Ranked { words, .. } => Some(words.clone()),
            Self::Truth(truth) => Some(if *truth { "yes" } else { "no" }.into()),
            _ => None,
        }
    }

    /// What the page sorts by; `None` sorts by the words.
    pub(super) fn rank(&self, unit: &Unit) -> Option<f64> {
        let value = match self {
            Self::Count(count) => *count as f64,
            Self::Measure(value) | Self::Interval { mean: value, .. } => unit.of(*value),
            Self::Ranked { value, .. } => *value,
            _ => return None,
        };
        value.is_finite().then_some(value)
    }

    /// The value alone.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Missing => Value::Null,
            Self::Words(words) => json!(words),
            Self::Count(count) => json!(count),
            Self::Measure(value)
            | Self::Interval { mean: value, .. }
            | Self::Ranked { value, .. } => json!(value),
            Self::Truth(truth) => json!(truth),
            Self::Data(value) => value.clone(),
        }
    }

    /// Mean, lower and upper end of an interval; null where there is none.
    pub(super) fn interval_json(&self) -> [Value; 3] {
        let Self::Interval { mean, half_width } = self else { return [const { Value::Null }; 3] };
        [*mean, mean - half_width, mean + half_width].map(Value::from)
    }
}

macro_rules! kinds {
    ($($from:ty => $kind:ident),*) => {$(
        impl From<$from> for Cell {
            fn from(value: $from) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}
kinds!(&str => Words, String => Words, u64 => Count, f64 => Measure, bool => Truth, Value => Data);

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<MeanInterval> for Cell {
    fn from(interval: MeanInterval) -> Self {
        Self::Interval { mean: interval.mean, half_width: interval.half_width }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Missing, Into::into)
    }
}

/// `value` with three significant digits, at most three decimals, no exponent: "0.12", "38.5",
/// "1234"; "–" if it is not finite.
pub(in crate::report) fn measure(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() => return "–".into(),
        _ if size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// 1234567 as "1 234 567", with narrow no-break spaces.
pub(in crate::report) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_carry_three_digits_and_no_idle_zeros() {
        for (value, text) in [
            (0.0, "0"),
            (0.0004, "0"),
            (0.123_4, "0.123"),
            (1.234, "1.23"),
            (40.04, "40"),
            (40.0, "40"),
            (881.4, "881"),
            (12_345.6, "12346"),
            (-3.0, "-3"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(measure(value), text, "{value}");
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1\u{202f}000"),
            (12_345_678, "12\u{202f}345\u{202f}678"),
        ] {
            assert_eq!(grouped(count), text);
        }
    }
}
