//! Values as TOML, and a file's text with some of its values replaced.

use std::ops::Range;

use toml::de::DeTable;

/// `text` with the places of `changes` replaced.
pub(super) fn replaced(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(span, _)| span.start);
    let (mut new, mut from) = (String::new(), 0);
    for (span, value) in changes {
        new.push_str(&text[from..span.start]);
        new.push_str(&value);
        from = span.end;
    }
    new.push_str(&text[from..]);
    new
}

/// A value as it is typed, as TOML: a number, a flag, a list or table, or else a text.
pub(super) fn as_toml(value: &str) -> String {
    let line = format!("x = {value}");
    let parsed = DeTable::parse(&line).ok().is_some_and(|root| {
        let value = root.get_ref().get("x").filter(|_| root.get_ref().len() == 1);
        value.is_some_and(|value| !value.get_ref().is_datetime())
    });
    if parsed { value.to_owned() } else { quoted(value) }
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
