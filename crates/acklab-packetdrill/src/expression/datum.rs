//! Values, and why code does not come to its end.

use std::collections::BTreeMap;
use std::fmt;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A whole number.
    Int(i128),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several.
    List(Vec<Datum>),
    /// None.
    Nothing,
}

impl Datum {
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Int(n) => *n != 0,
            Self::Float(x) => *x != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Nothing => false,
        }
    }

    pub(super) fn number(&self) -> Result<f64, Fault> {
        match self {
            Self::Int(n) => Ok(*n as f64),
            Self::Float(x) => Ok(*x),
            other => Err(Fault::Unsupported(format!("arithmetic with {other}"))),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Nothing => f.write_str("None"),
        }
    }
}

/// Why code did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An assertion does not hold: its text and its message.
    Assertion(String),
    /// Something is not understood.
    Unsupported(String),
}

/// Names and their values.
pub type Names = BTreeMap<String, Datum>;
