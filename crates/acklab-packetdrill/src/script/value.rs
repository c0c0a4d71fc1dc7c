//! Arguments and results of calls.

use super::SyntaxError;
use super::cursor::Cursor;

/// A value in a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `...`: anything.
    Any,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// A name of a constant.
    Name(String),
    /// Several joined by `|`.
    Or(Vec<Value>),
    /// `[...]`.
    List(Vec<Value>),
    /// `{name=value, ...}`; names may be missing and may have a size in parentheses.
    Fields(Vec<(String, Value)>),
    /// A function such as `htons(8080)`.
    Apply(String, Vec<Value>),
}

impl Value {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The value of the field at `index`.
    pub fn nth(&self, index: usize) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.get(index).map(|(_, v)| v),
            Self::List(items) => items.get(index),
            _ => None,
        }
    }
}

/// Nested deeper than this no value makes sense.
const DEEPEST: usize = 24;

pub(super) fn value(at: &mut Cursor<'_>, depth: usize) -> Result<Value, SyntaxError> {
    if depth > DEEPEST {
        return Err(at.error("values are nested too deeply"));
    }
    let first = single(at, depth)?;
    let mut all = vec![first];
    while at.take("|") {
        all.push(single(at, depth)?);
    }
    Ok(if all.len() == 1 { all.swap_remove(0) } else { Value::Or(all) })
}

fn single(at: &mut Cursor<'_>, depth: usize) -> Result<Value, SyntaxError> {
    if at.take("...") {
        return Ok(Value::Any);
    }
    at.take("&");
    if at.take("[") {
        return list(at, "]", depth).map(Value::List);
    }
    if at.take("{") {
        return fields(at, depth).map(Value::Fields);
    }
    at.skip();
    match at.peek() {
        Some('"') => text(at).map(Value::Text),
        Some(c) if c.is_ascii_digit() || c == '-' => {
            let number = at.number()?;
            // Some scripts write seconds with a fraction; nothing here takes them.
            Ok(Value::Int(number))
        }
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let name = at.word().to_owned();
            if at.take("(") {
                return list(at, ")", depth).map(|args| Value::Apply(name, args));
            }
            Ok(meaning(at, name))
        }
        _ => Err(at.expected("a value")),
    }
}

/// What a name was defined to be: a text, a number, another name; itself where it was not.
fn meaning(at: &Cursor<'_>, name: String) -> Value {
    let meaning = at.meaning(&name);
    match meaning.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Value::Text(text.to_owned()),
        None if meaning.starts_with(|c: char| c.is_ascii_digit()) => Value::Name(name),
        None => Value::Name(meaning.to_owned()),
    }
}

/// Values up to `end`, which is taken.
pub(super) fn list(
    at: &mut Cursor<'_>,
    end: &str,
    depth: usize,
) -> Result<Vec<Value>, SyntaxError> {
    let mut items = Vec::new();
    if at.take(end) {
        return Ok(items);
    }
    loop {
        items.push(value(at, depth + 1)?);
        if at.take(end) {
            return Ok(items);
        }
        at.want(",")?;
        if at.take(end) {
            return Ok(items);
        }
    }
}

fn fields(at: &mut Cursor<'_>, depth: usize) -> Result<Vec<(String, Value)>, SyntaxError> {
    let mut fields = Vec::new();
    loop {
        if at.take("}") {
            return Ok(fields);
        }
        let mut probe = at.clone();
        probe.take(".");
        let name = probe.word().to_owned();
        if !name.is_empty() && probe.take("(") {
            // A size: `msg_iov(1)=`.
            list(&mut probe, ")", depth)?;
        }
        if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && probe.take("=") {
            *at = probe;
            fields.push((name, value(at, depth + 1)?));
        } else {
            fields.push((String::new(), value(at, depth + 1)?));
        }
        if !at.take(",") {
            at.want("}")?;
            return Ok(fields);
        }
    }
}

fn text(at: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    let mut all = String::new();
    while at.take("\"") {
        loop {
            let Some(c) = at.peek() else { return Err(at.error("a text without its end")) };
            at.advance(c.len_utf8());
            match c {
                '"' => break,
                '\\' => {
                    if let Some(escaped) = at.peek() {
                        at.advance(escaped.len_utf8());
                        all.push(escaped);
                    }
                }
                _ => all.push(c),
            }
        }
        at.skip();
    }
    Ok(all)
}
