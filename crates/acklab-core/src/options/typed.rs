//! [`Typed`]: from values to the types of fields and back; [`Word`], enums whose variants have names.

use std::fmt;

use super::{Kind, Row, Value, spells};
use crate::time::Span;
use crate::units::BitRate;

/// A type whose values can be chosen.
pub trait Typed: Sized {
    /// What is allowed where a declaration says nothing narrower.
    const KIND: Kind;

    /// From a value of that kind; `None` for any other.
    fn from_value(value: Value) -> Option<Self>;

    /// As a value.
    fn to_value(&self) -> Value;

    /// The default that a declaration writes as text.
    ///
    /// # Panics
    /// If the text is none of `kind`: a mistake in the declaration, which the registry's test finds.
    fn declared(kind: Kind, text: &str) -> Self {
        let value = kind.parse(text).ok().and_then(Self::from_value);
        value.unwrap_or_else(|| panic!("{text:?} is no default: it must be {}", kind.allowed()))
    }
}

/// An enum whose variants have names; [`words!`](crate::words) writes this.
pub trait Word: Copy + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// Their names, in the same order.
    const NAMES: &'static [&'static str];

    /// Its name.
    fn name(self) -> &'static str;

    /// The one of that name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| spells(name, word.name()))
    }
}

impl<W: Word> Typed for W {
    const KIND: Kind = Kind::Choice(W::NAMES);

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Choice(word) => W::named(word),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        Value::Choice(self.name())
    }
}

/// There is nothing of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    what: &'static str,
    name: String,
    known: &'static [&'static str],
}

impl Unknown {
    /// `name` is no `what`; those that are have the names `known`.
    pub fn new(what: &'static str, name: &str, known: &'static [&'static str]) -> Self {
        Self { what, name: name.to_owned(), known }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} \"{}\"; known: {}", self.what, self.name, self.known.join(", "))
    }
}

impl std::error::Error for Unknown {}

/// A type with one variant of [`Value`] to itself.
macro_rules! typed {
    ($($Type:ty: $kind:expr, $Variant:ident;)+) => {$(
        impl Typed for $Type {
            const KIND: Kind = $kind;

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$Variant(value) => value.try_into().ok(),
                    _ => None,
                }
            }

            fn to_value(&self) -> Value {
                Value::$Variant((*self).into())
            }
        }
    )+};
}

typed! {
    Span: Kind::Span, Span;
    BitRate: Kind::Rate, Rate;
    u64: Kind::Count { min: 0, max: u64::MAX }, Count;
    u32: Kind::Count { min: 0, max: u32::MAX as u64 }, Count;
    u16: Kind::Count { min: 0, max: u16::MAX as u64 }, Count;
    u8: Kind::Count { min: 0, max: u8::MAX as u64 }, Count;
    f64: Kind::Number { min: f64::MIN, max: f64::MAX, unit: "" }, Number;
    bool: Kind::Flag, Flag;
    Row: Kind::Row, Row;
    &'static str: Kind::Choice(&[]), Choice;
}

/// 0 stands for none.
macro_rules! optional {
    ($($Type:ty),+) => {$(
        impl Typed for Option<$Type> {
            const KIND: Kind = <$Type>::KIND;

            fn from_value(value: Value) -> Option<Self> {
                let value = <$Type>::from_value(value)?;
                Some((value != <$Type>::default()).then_some(value))
            }

            fn to_value(&self) -> Value {
                self.unwrap_or_default().to_value()
            }
        }
    )+};
}

optional!(Span, u32, u64);
