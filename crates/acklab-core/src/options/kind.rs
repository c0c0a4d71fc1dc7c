//! [`Kind`]: which values are allowed, and [`Value`], one of them.

use std::fmt;

use super::Row;
use crate::time::Span;
use crate::units::BitRate;

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A length of time with its unit: `30ms`, `1.5s`, `0`.
    Span,
    /// The same, and not 0.
    PositiveSpan,
    /// A rate with its unit: `10mbit`, `infinite`.
    Rate,
    /// A whole number from `min` to `max`.
    Count {
        /// Least value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
    },
    /// A number from `min` to `max`, in `unit`.
    Number {
        /// Least value allowed.
        min: f64,
        /// Greatest value allowed.
        max: f64,
        /// Its unit, as shown.
        unit: &'static str,
    },
    /// A share or probability: `5%`, or a number from 0 to 1.
    Share,
    /// The same, and not 0.
    PositiveShare,
    /// `true` or `false`.
    Flag,
    /// A few numbers.
    Row,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A value of a [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Span`] and [`Kind::PositiveSpan`].
    Span(Span),
    /// Of [`Kind::Rate`].
    Rate(BitRate),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Number`], and of the shares as a number from 0 to 1.
    Number(f64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Row`].
    Row(Row),
    /// Of [`Kind::Choice`].
    Choice(&'static str),
}

/// A whole number within bounds.
pub const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// A number within bounds, with its unit.
pub const fn number(min: f64, max: f64, unit: &'static str) -> Kind {
    Kind::Number { min, max, unit }
}

/// A share from 0 to 1.
pub const fn share() -> Kind {
    Kind::Share
}

/// A share above 0.
pub const fn positive_share() -> Kind {
    Kind::PositiveShare
}

/// A time above 0.
pub const fn positive_span() -> Kind {
    Kind::PositiveSpan
}

/// One of these words.
pub const fn choice(words: &'static [&'static str]) -> Kind {
    Kind::Choice(words)
}

impl Kind {
    /// Reads a value of this kind; else what would be right.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Span | Self::PositiveSpan => match text.parse() {
                Ok(Span::ZERO) if self == Self::PositiveSpan => Err("must be longer than 0".into()),
                Ok(span) if span <= LONGEST => Ok(Value::Span(span)),
                Ok(_) => Err(format!("must be at most {LONGEST}")),
                Err(error) => Err(format!("{error}")),
            },
            Self::Rate => text.parse().map(Value::Rate).map_err(|error| format!("{error}")),
            Self::Count { min, max } => match text.parse() {
                Ok(count) if (min..=max).contains(&count) => Ok(Value::Count(count)),
                _ => Err(format!("must be a whole number from {min} to {max}")),
            },
            Self::Number { min, max, unit } => {
                // Its unit may stand behind it: 5% where percent are meant.
                let bare = text.strip_suffix(unit).filter(|_| unit == PERCENT).unwrap_or(text);
                match bare.trim_end().parse() {
                    Ok(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
                    _ if unit == PERCENT => Err(format!("must be a share from {min}% to {max}%")),
                    _ => Err(format!("must be a number from {min} to {max}")),
                }
            }
            Self::Share | Self::PositiveShare => match share_of(text) {
                Some(0.0) if self == Self::PositiveShare => Err("must be above 0".into()),
                Some(share) => Ok(Value::Number(share)),
                None => Err(NO_SHARE.into()),
            },
            Self::Flag => match text.parse() {
                Ok(flag) => Ok(Value::Flag(flag)),
                Err(_) => Err("must be true or false".into()),
            },
            Self::Row => Row::parse(text).map(Value::Row),
            Self::Choice(words) => match words.iter().find(|word| spells(text, word)) {
                Some(word) => Ok(Value::Choice(word)),
                None => Err(format!("must be one of {}", words.join(", "))),
            },
        }
    }

    /// The unit, as a list shows it; empty for words, flags and counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Span | Self::PositiveSpan => "time",
            Self::Rate => "rate",
            Self::Number { unit, .. } => unit,
            Self::Share | Self::PositiveShare => "share",
            Self::Count { .. } | Self::Flag | Self::Row | Self::Choice(_) => "",
        }
    }

    /// The allowed values in words.
    pub fn allowed(self) -> String {
        match self {
            Self::Span => "a time: 30ms, 1.5s, 200us, 0".into(),
            Self::PositiveSpan => "a time above 0: 30ms, 1.5s, 200us".into(),
            Self::Rate => "a rate: 10mbit, 100kbit, infinite".into(),
            Self::Count { min, max } => format!("{min} to {max}"),
            Self::Number { min, max, unit } if unit == PERCENT => format!("{min}% to {max}%"),
            Self::Number { min, max, .. } => format!("{min} to {max}"),
            Self::Share => "0% to 100%, or 0 to 1".into(),
            Self::PositiveShare => "above 0, to 100% or 1".into(),
            Self::Flag => "true | false".into(),
            Self::Row => "numbers with blanks between: 1 36.17 0".into(),
            Self::Choice(words) => words.join(" | "),
        }
    }
}

/// Whether `text` is `word`, which may be written with hyphens where it has underscores and the other way
/// round: names of parameters have underscores, words hyphens.
pub fn spells(text: &str, word: &str) -> bool {
    let plain = |letter| if letter == b'_' { b'-' } else { letter };
    text.bytes().map(plain).eq(word.bytes().map(plain))
}

/// `5%`, or a number from 0 to 1.
fn share_of(text: &str) -> Option<f64> {
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => span.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Row(row) => row.fmt(f),
            Self::Choice(word) => f.write_str(word),
        }
    }
}

/// The longest time a parameter may be, a day: sums of many then stay within what [`Span`] holds.
pub const LONGEST: Span = Span::from_secs(86_400);

/// Of numbers that are shares in percent.
const PERCENT: &str = "%";
const NO_SHARE: &str = "must be a share, from \"0%\" to \"100%\" or from 0 to 1";
