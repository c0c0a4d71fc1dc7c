//! Tables: columns with units, rows that can be sorted and chosen.
//!
//! A cell keeps the number beside its text, so that sorting is by value and the text can carry as
//! many digits as mean something.

use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Caption above it.
    pub caption: String,
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows in the order shown at first.
    pub rows: Vec<Row>,
    /// What the reader has to know to read it, below it; such as how many rows were left out.
    pub note: Option<String>,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Unit, shown below the heading; empty where there is none.
    pub unit: String,
    /// Where the text stands.
    pub align: Align,
}

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

impl Column {
    /// A column of words.
    pub fn text(name: &str) -> Self {
        Self { name: name.into(), unit: String::new(), align: Align::Left }
    }

    /// A column of numbers in `unit` (empty for counts).
    pub fn number(name: &str, unit: &str) -> Self {
        Self { name: name.into(), unit: unit.into(), align: Align::Right }
    }
}

/// A row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// Key of the sections that choosing this row shows; see [`super::Section::choice`].
    pub choice: Option<String>,
    /// Whether the row is marked as one to look at.
    pub flagged: bool,
}

/// A cell: what is shown and what it is sorted by.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Shown text.
    pub text: String,
    /// Sort key; cells without one sort by text.
    pub value: Option<f64>,
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A count, with thin spaces between groups of three digits.
    pub fn count(count: u64) -> Self {
        Self { text: grouped(count), value: Some(count as f64) }
    }

    /// A measured value with three significant digits (more for whole numbers), or "–" if it is not
    /// finite.
    pub fn measure(value: f64) -> Self {
        Self { text: measure(value), value: value.is_finite().then_some(value) }
    }

    /// A measured value that may be missing: "–".
    pub fn measure_or_dash(value: Option<f64>) -> Self {
        Self::measure(value.unwrap_or(f64::NAN))
    }
}

/// `value` with three significant digits, at most three decimals, no exponent: "0.12", "38.5",
/// "1234".
pub(super) fn measure(value: f64) -> String {
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
pub(super) fn grouped(count: u64) -> String {
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
