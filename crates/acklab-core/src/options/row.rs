//! [`Row`]: a few numbers in a row, such as the coefficients of a polynomial.

use std::fmt;

use super::{Kind, Typed, Value};

/// Numbers with blanks between: `1 36.17 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    numbers: [f64; Self::LONGEST],
    len: usize,
}

impl Row {
    /// So many numbers it may have.
    pub const LONGEST: usize = 12;

    /// At least one number and at most [`Self::LONGEST`], all of them finite.
    pub fn new(given: &[f64]) -> Option<Self> {
        let fits =
            (1..=Self::LONGEST).contains(&given.len()) && given.iter().all(|n| n.is_finite());
        let mut numbers = [0.0; Self::LONGEST];
        fits.then(|| numbers[..given.len()].copy_from_slice(given));
        fits.then_some(Self { numbers, len: given.len() })
    }

    /// The numbers, in their order.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers[..self.len]
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        let row = numbers.ok().and_then(|numbers| Self::new(&numbers));
        row.ok_or_else(|| format!("must be 1 to {} numbers with blanks between", Self::LONGEST))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.numbers().iter().enumerate() {
            write!(f, "{}{number}", if index > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl Typed for Row {
    const KIND: Kind = Kind::Row;

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Row(row) => Some(row),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        Value::Row(*self)
    }
}
