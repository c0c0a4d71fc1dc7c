//! Typed access to a TOML text whose every refusal says where: [`Fields`] and [`Field`].
//!
//! A table is read by asking for its keys one by one; [`Fields::finish`] then refuses whatever was not
//! asked for, with the nearest key that would have been understood. A refusal ([`Mistake`]) carries a
//! place in the text, which [`Place`] turns into line and column.

use std::fmt;
use std::ops::Range;

use acklab_core::options::{Conflict, Options, Word, spells};
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::parameter::{Kind, Parameter, Value, nearest};

/// Something in the text that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Where in the text, a byte offset.
    at: usize,
    message: String,
}

impl Mistake {
    pub(super) fn new(span: &Range<usize>, message: impl Into<String>) -> Self {
        Self { at: span.start, message: message.into() }
    }

    /// With line and column.
    pub(super) fn locate(self, text: &str) -> FileMistake {
        FileMistake { place: Place::of(text, self.at), message: self.message }
    }
}

/// A mistake in a scenario file: where, what, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct FileMistake {
    pub place: Place,
    /// What, and how to mend it.
    pub message: String,
}

impl From<(&str, toml::de::Error)> for FileMistake {
    fn from((text, error): (&str, toml::de::Error)) -> Self {
        let span = error.span().unwrap_or_default();
        let message = match (error.message().trim_end(), text.get(span.clone())) {
            ("duplicate key", Some(key)) => format!(
                "a second {key:?}; a key stands once in a table, and of several tables each is under \
                 [[...]]"
            ),
            (message, _) => message.replace('\n', "; "),
        };
        Self { place: Place::of(text, span.start), message }
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

impl Place {
    /// The place of the byte at `offset`.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = String::from_utf8_lossy(&text.as_bytes()[..offset.min(text.len())]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A table that is being read.
pub(super) struct Fields<'a> {
    text: &'a str,
    /// What it describes, for messages: `a link`.
    what: String,
    table: &'a DeTable<'a>,
    /// Where it begins.
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        text: &'a str,
        what: impl Into<String>,
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Self {
        Self { text, what: what.into(), table, span, known: Vec::new() }
    }

    /// What it describes, once that is known better.
    pub(super) fn describe(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// What it describes.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> &Range<usize> {
        &self.span
    }

    /// The value of `key`, where it is there.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let name = self.spelled(key)?;
        let value = self.table.get(name.get_ref().as_ref())?;
        Some(Field { text: self.text, key: key.to_owned(), value })
    }

    /// Whether `key` is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.spelled(key).is_some()
    }

    /// `key` as the table writes it.
    fn spelled(&self, key: &str) -> Option<&'a Spanned<DeString<'a>>> {
        self.table.keys().find(|name| spells(name.get_ref(), key))
    }

    /// The value of `key`, which must be there; `example` is one that would do.
    pub(super) fn need(&mut self, key: &'static str, example: &str) -> Result<Field<'a>, Mistake> {
        self.take(key).ok_or_else(|| {
            let strange = self.table.keys().find(|other| is_near(other.get_ref(), key));
            if let Some(strange) = strange {
                let message =
                    format!("{} needs `{key}`; {:?} is unknown", self.what, strange.get_ref());
                return Mistake::new(&strange.span(), message);
            }
            let message = format!("{} needs `{key}`; write for example {example}", self.what);
            Mistake::new(&self.span, message)
        })
    }

    /// Gives `options` the values of those keys that are there.
    pub(super) fn options(&mut self, options: &mut dyn Options) -> Result<(), Mistake> {
        for Parameter { name, kind, .. } in options.list() {
            if let Some(field) = self.take(name) {
                options.set(name, field.value(kind)?);
            }
        }
        options.check().map_err(|Conflict { name, reason }| {
            let at = self.take(name).map_or(self.span.clone(), |field| field.span());
            Mistake::new(&at, reason)
        })
    }

    /// Refuses the first key that was never asked for.
    pub(super) fn finish(self) -> Result<(), Mistake> {
        let unknown = self.table.keys().filter(|key| {
            !self.known.iter().any(|known| self.spelled(known).is_some_and(|name| name == *key))
        });
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let name = key.get_ref().as_ref();
        let hint = nearest(name, self.known.iter().copied());
        let known = self.known.join(", ");
        let message = format!("{} has no key {name:?}; {hint}its keys are {known}", self.what);
        Err(Mistake::new(&key.span(), message))
    }
}

/// A value with its key.
#[derive(Clone)]
pub(super) struct Field<'a> {
    text: &'a str,
    key: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Field<'a> {
    /// The value of `key` in `text`.
    pub(super) fn new(text: &'a str, key: &str, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { text, key: key.to_owned(), value }
    }

    /// The value as it was parsed.
    pub(super) fn value_ref(&self) -> &'a Spanned<DeValue<'a>> {
        self.value
    }

    /// Where the value is.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// Refuses the value as it was written.
    pub(super) fn refuse(&self, reason: impl fmt::Display) -> Mistake {
        let source = self.text.get(self.span()).unwrap_or_default();
        let mut shown: String =
            source.chars().take_while(|c| *c != '\n').take(MOST_SHOWN).collect();
        if shown.len() < source.len() {
            shown.push_str(" ...");
        }
        Mistake::new(&self.span(), format!("{} = {shown}: {reason}", self.key))
    }

    /// The text of a string.
    pub(super) fn string(&self) -> Result<&'a str, Mistake> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.as_ref()),
            _ => Err(self.refuse("must be a text in quotes")),
        }
    }

    fn of_kind(&self, kind: Kind, example: &str) -> Result<Value, Mistake> {
        match self.value.get_ref() {
            DeValue::String(text) => kind.parse(text).map_err(|reason| self.refuse(reason)),
            // A bare 0 is the same in every unit.
            DeValue::Integer(zero) if zero.as_str() == "0" && kind == Kind::Span => {
                Ok(Value::Span(Span::ZERO))
            }
            _ => Err(self.refuse(format!("must be a text with its unit, such as {example:?}"))),
        }
    }

    /// A value of any kind.
    fn value(&self, kind: Kind) -> Result<Value, Mistake> {
        match kind {
            Kind::Span => self.time().map(Value::Span),
            Kind::PositiveSpan => self.time_above_zero().map(Value::Span),
            Kind::Rate => self.rate().map(Value::Rate),
            Kind::Count { min, max } => self.count(min, max).map(Value::Count),
            Kind::Number { min, max, .. } => self.number(min, max).map(Value::Number),
            Kind::Share => self.share().map(Value::Number),
            Kind::PositiveShare => match self.share()? {
                0.0 => Err(self.refuse("must be above 0")),
                share => Ok(Value::Number(share)),
            },
            Kind::Flag => self.flag().map(Value::Flag),
            Kind::Row => kind.parse(self.string()?).map_err(|reason| self.refuse(reason)),
            Kind::Choice(words) => self.word(words).map(Value::Choice),
        }
    }

    /// A name of a registry, or a table that names it as `kind` and gives it options; `what` it is for
    /// messages, with an `example` of a name.
    pub(super) fn named(
        &self,
        names: &[&'static str],
        what: &str,
        example: &str,
    ) -> Result<(&'static str, Option<Fields<'a>>), Mistake> {
        self.named_or(names, what, example, None)
    }

    /// The same, where a table without `kind` is one of kind `usual`.
    pub(super) fn named_or(
        &self,
        names: &[&'static str],
        what: &str,
        example: &str,
        usual: Option<&'static str>,
    ) -> Result<(&'static str, Option<Fields<'a>>), Mistake> {
        if !self.is_table() {
            return Ok((self.word(names)?, None));
        }
        let mut table = self.fields(what)?;
        let name = match (table.take("kind"), usual) {
            (Some(kind), _) => kind.word(names)?,
            (None, Some(usual)) => usual,
            (None, None) => table.need("kind", &format!("kind = {example:?}"))?.word(names)?,
        };
        table.describe(format!("{what} of kind {name}"));
        Ok((name, Some(table)))
    }

    /// A length of time.
    pub(super) fn time(&self) -> Result<Span, Mistake> {
        match self.of_kind(Kind::Span, "30ms")? {
            Value::Span(span) => Ok(span),
            _ => Err(self.refuse("must be a time")),
        }
    }

    /// A length of time above zero.
    pub(super) fn time_above_zero(&self) -> Result<Span, Mistake> {
        let time = self.time()?;
        if time.is_zero() { Err(self.refuse("must be longer than 0")) } else { Ok(time) }
    }

    pub(super) fn rate(&self) -> Result<BitRate, Mistake> {
        match self.of_kind(Kind::Rate, "10mbit")? {
            Value::Rate(rate) => Ok(rate),
            _ => Err(self.refuse("must be a rate")),
        }
    }

    /// A whole number from `min` to `max`.
    pub(super) fn count(&self, min: u64, max: u64) -> Result<u64, Mistake> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.filter(|count| (min..=max).contains(count)).ok_or_else(|| match max {
            u64::MAX => self.refuse(format!("must be a whole number, {min} or more")),
            _ => self.refuse(format!("must be a whole number from {min} to {max}")),
        })
    }

    /// A number from `min` to `max`.
    pub(super) fn number(&self, min: f64, max: f64) -> Result<f64, Mistake> {
        let digits = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.refuse(format!("must be a number from {min} to {max}"))),
        };
        let number = digits.parse().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.refuse(format!("must be a number from {min} to {max}")))
    }

    /// A share or probability: `"1%"`, or a number from 0 to 1.
    pub(super) fn share(&self) -> Result<f64, Mistake> {
        let wrong = || self.refuse("must be a share, from \"0%\" to \"100%\" or from 0 to 1");
        let share = match self.value.get_ref() {
            DeValue::String(text) => {
                let percent = text.trim().strip_suffix('%').ok_or_else(wrong)?;
                percent.trim().parse::<f64>().map_err(|_| wrong())? / 100.0
            }
            _ => self.number(0.0, 1.0).map_err(|_| wrong())?,
        };
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong()) }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, Mistake> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.refuse("must be true or false, without quotes")),
        }
    }

    /// One of `words`.
    pub(super) fn word(&self, words: &[&'static str]) -> Result<&'static str, Mistake> {
        let text = self.value.get_ref().as_str().unwrap_or_default();
        words.iter().find(|word| spells(text, word)).copied().ok_or_else(|| {
            let hint = nearest(text, words.iter().copied());
            self.refuse(format!("{hint}must be one of {}", words.join(", ")))
        })
    }

    /// One of the words of an enum.
    pub(super) fn typed<W: Word>(&self) -> Result<W, Mistake> {
        let name = self.word(W::NAMES)?;
        W::named(name).ok_or_else(|| self.refuse("is no word"))
    }

    /// The fields of a table.
    pub(super) fn fields(&self, what: impl Into<String>) -> Result<Fields<'a>, Mistake> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Fields::new(self.text, what, table, self.span())),
            _ => Err(self.refuse("must be a table, such as { key = value }")),
        }
    }

    /// Whether the value is a table.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The values of an array.
    pub(super) fn items(&self) -> Result<Vec<Field<'a>>, Mistake> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.refuse("must be a list in square brackets"));
        };
        Ok(self.each(array))
    }

    fn each(&self, array: &'a DeArray<'a>) -> Vec<Field<'a>> {
        let item = |(index, value)| Field {
            text: self.text,
            key: format!("{}[{index}]", self.key),
            value,
        };
        array.iter().enumerate().map(item).collect()
    }

    /// The two values of an array of two.
    pub(super) fn pair(&self, example: &str) -> Result<[Field<'a>; 2], Mistake> {
        let wrong = || self.refuse(format!("must be a pair, such as {example}"));
        let items = self.items().map_err(|_| wrong())?;
        <[Field<'a>; 2]>::try_from(items).map_err(|_| wrong())
    }

    /// The tables of an array of tables; at least one.
    pub(super) fn tables(&self, what: &str) -> Result<Vec<Fields<'a>>, Mistake> {
        let wrong =
            || self.refuse(format!("must be tables, at least one, each under [[{}]]", self.key));
        let items = self.items().ok().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
        items.iter().map(|item| item.fields(what).map_err(|_| wrong())).collect()
    }
}

/// Whether `text` may have been meant to be `key`.
fn is_near(text: &str, key: &str) -> bool {
    text != key && !nearest(text, [key].into_iter()).is_empty()
}

/// How much of a refused value is shown, characters.
const MOST_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "ab\nçd";
        let place = |offset| Place::of(text, offset).to_string();
        assert_eq!((place(0), place(1), place(3)), ("1:1".into(), "1:2".into(), "2:1".into()));
        assert_eq!((place(5), place(99)), ("2:2".into(), "2:3".into()));
    }
}
