//! The words of a query.
//!
//! White space and line breaks separate; `//` begins a comment to the end of the line. A number may
//! carry a unit of time at its end (`30s`, `500ms`), which only the bounds accept.

use super::error::{QueryError, Span};

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A number with the unit written at its end, if any.
    Number(f64, Option<TimeUnit>),
    /// A name or keyword.
    Name(String),
    /// An operator or bracket.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl Token {
    /// As an error message names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(..) => "a number".to_owned(),
            Self::Name(name) => format!("`{name}`"),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end of the query".to_owned(),
        }
    }
}

/// A unit of time in a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
}

impl TimeUnit {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "us" => Self::Microsecond,
            "ms" => Self::Millisecond,
            "s" => Self::Second,
            "min" => Self::Minute,
            _ => return None,
        })
    }

    /// `value` of this unit, in seconds.
    pub(super) fn seconds(self, value: f64) -> f64 {
        match self {
            Self::Microsecond => value / 1e6,
            Self::Millisecond => value / 1e3,
            Self::Second => value,
            Self::Minute => value * 60.0,
        }
    }
}

/// Longest first, so that `<=` is not read as `<`.
const SIGNS: [&str; 29] = [
    "<>", "[]", "<=", ">=", "==", "!=", "&&", "||", "<", ">", "(", ")", "[", "]", "{", "}", "+",
    "-", "*", "/", "%", "!", ",", ";", ":", "#", ".", "=", "?",
];

/// A query is a line or a few; more is a mistake, such as a wrong file.
const LENGTH_MAX_BYTES: usize = 16 * 1024;

/// The words of `text` with their places; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, QueryError> {
    if text.len() > LENGTH_MAX_BYTES {
        let span = Span { start: 0, end: 1 };
        let what = format!("the query is {} bytes long", text.len());
        return Err(QueryError::new(text, span, what, "write at most 16 KiB"));
    }
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (token, length) = word(text, at, first)?;
            words.push((token, Span { start: at, end: at + length }));
            at += length;
        }
    }
    words.push((Token::End, Span { start: text.len(), end: text.len() }));
    Ok(words)
}

fn word(text: &str, at: usize, first: char) -> Result<(Token, usize), QueryError> {
    let rest = &text[at..];
    let decimal = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if first.is_ascii_digit() || decimal {
        return number(text, at);
    }
    if is_name_start(first) {
        let length = name_length(rest);
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    let span = Span { start: at, end: at + first.len_utf8() };
    let what = format!("`{first}` is not part of the language");
    Err(QueryError::new(text, span, what, "write a query such as Pr[<=30](<> itae > 8727)"))
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn name_length(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
}

fn digits(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
}

fn number(text: &str, at: usize) -> Result<(Token, usize), QueryError> {
    let rest = &text[at..];
    let mut length = digits(rest);
    if rest[length..].starts_with('.') {
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let value = rest[..length].parse::<f64>().ok().filter(|value| value.is_finite());
    let suffix = name_length(&rest[length..]);
    let unit = TimeUnit::from_name(&rest[length..length + suffix]);
    match value {
        Some(value) if suffix == 0 || unit.is_some() => {
            Ok((Token::Number(value, unit), length + suffix))
        }
        Some(_) => Err(QueryError::new(
            text,
            Span { start: at + length, end: at + length + suffix },
            format!("`{}` is not a unit of time", &rest[length..length + suffix]),
            "write us, ms, s or min after a bound's number, or nothing for seconds",
        )),
        None => Err(QueryError::new(
            text,
            Span { start: at, end: at + length },
            "the number is too large",
            "write a number up to 1.8e308",
        )),
    }
}
