//! `[[sweep]]` tables: what varies from one network of a file to the next.
//!
//! A sweep has a name and values; wherever a link, a flow, a query or the measurement says `"$name"`, the
//! value stands there. A value may be a table, such as a queue with its options, or several values that belong
//! together: `"$name.key"` is one of these. A [`Sweep`] with one value is a parameter that `--set` can change.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Fields, Mistake};
use crate::parameter::nearest;

/// What varies.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) name: String,
    /// What each value is called in results: itself, or of a table its `label` or `kind`.
    pub(crate) labels: Vec<String>,
    /// Where the list of values stands in the text.
    pub(super) at: Range<usize>,
}

/// Sweeps while a file is read.
pub(super) struct Sweeps<'a> {
    text: &'a str,
    pub(super) list: Vec<Sweep>,
    values: Vec<Vec<&'a Spanned<DeValue<'a>>>>,
    names: Vec<Range<usize>>,
}

impl<'a> Sweeps<'a> {
    /// Reads them, if there are any.
    pub(super) fn read(text: &'a str, top: &mut Fields<'a>) -> Result<Self, Mistake> {
        let mut sweeps = Self { text, list: Vec::new(), values: Vec::new(), names: Vec::new() };
        let Some(tables) = top.take("sweep") else { return Ok(sweeps) };
        for mut table in tables.tables("a sweep")? {
            let name = table.need("name", "name = \"queue\"")?;
            let word = name.string()?;
            if !is_name(word) || TAKEN.contains(&word) {
                let reason = "a sweep's name is a letter and then letters, digits, hyphens or underscores, and \
                              neither duration nor watch";
                return Err(name.refuse(reason));
            }
            if sweeps.list.iter().any(|sweep| sweep.name == word) {
                return Err(name.refuse("a second sweep of that name"));
            }
            let values = table.need("values", "values = [\"codel\", \"pie\"]")?;
            let listed: Vec<_> =
                values.items()?.iter().map(super::reader::Field::value_ref).collect();
            if listed.is_empty() {
                return Err(values.refuse("a sweep has one value at least"));
            }
            table.finish()?;
            let labels = labels(text, &listed);
            if let Some(again) =
                (1..labels.len()).find(|index| labels[..*index].contains(&labels[*index]))
            {
                let message = format!(
                    "a second value called {:?}; give tables a `label` each",
                    labels[again]
                );
                return Err(Mistake::new(&listed[again].span(), message));
            }
            sweeps.list.push(Sweep { name: word.to_owned(), labels, at: values.span() });
            sweeps.values.push(listed);
            sweeps.names.push(name.span());
        }
        Ok(sweeps)
    }

    /// The root of the file with value number `chosen` of each sweep in its place.
    pub(super) fn put(&self, root: &DeTable<'a>, chosen: &[usize]) -> Result<DeTable<'a>, Mistake> {
        let mut root = root.clone();
        let mut said = vec![false; self.list.len()];
        for key in PLACES {
            if let Some(value) = root.get_mut(*key) {
                self.put_into(value, chosen, &mut said)?;
            }
        }
        if let Some(never) = said.iter().position(|said| !said) {
            let name = &self.list[never].name;
            let message =
                format!("nothing varies with {name:?}: write \"${name}\" where its value belongs");
            return Err(Mistake::new(&self.names[never], message));
        }
        Ok(root)
    }

    fn put_into(
        &self,
        value: &mut Spanned<DeValue<'a>>,
        chosen: &[usize],
        said: &mut [bool],
    ) -> Result<(), Mistake> {
        let span = value.span();
        let put = match value.get_mut() {
            DeValue::String(text) => match text.strip_prefix('$') {
                Some(name) => self.named(name, &span, chosen, said)?,
                None => return Ok(()),
            },
            DeValue::Array(array) => {
                return array.iter_mut().try_for_each(|item| self.put_into(item, chosen, said));
            }
            DeValue::Table(table) => {
                let mut values = table.iter_mut();
                return values.try_for_each(|(_, value)| self.put_into(value, chosen, said));
            }
            _ => return Ok(()),
        };
        *value = put;
        Ok(())
    }

    /// The value of `name`, or of `name.key`.
    fn named(
        &self,
        name: &str,
        span: &Range<usize>,
        chosen: &[usize],
        said: &mut [bool],
    ) -> Result<Spanned<DeValue<'a>>, Mistake> {
        let (name, key) =
            name.split_once('.').map_or((name, None), |(name, key)| (name, Some(key)));
        let Some(index) = self.list.iter().position(|sweep| sweep.name == name) else {
            let names = || self.list.iter().map(|sweep| sweep.name.as_str());
            let known = names().collect::<Vec<_>>().join(", ");
            let message = if known.is_empty() {
                format!("${name}: the file has no [[sweep]]")
            } else {
                format!("${name}: {}the sweeps are {known}", nearest(name, names()))
            };
            return Err(Mistake::new(span, message));
        };
        said[index] = true;
        let value = self.values[index][chosen[index]];
        match (key, value.get_ref()) {
            (None, DeValue::Table(table)) => {
                let mut table = table.clone();
                table.remove(LABEL);
                Ok(Spanned::new(value.span(), DeValue::Table(table)))
            }
            (None, _) => Ok(value.clone()),
            (Some(key), DeValue::Table(table)) if table.contains_key(key) => {
                Ok(table.get(key).cloned().unwrap_or_else(|| value.clone()))
            }
            (Some(key), _) => {
                let source = self.text.get(value.span()).unwrap_or_default();
                let message = format!("${name}.{key}: the value {source} has no key {key:?}");
                Err(Mistake::new(span, message))
            }
        }
    }
}

/// What the values are called.
fn labels(text: &str, values: &[&Spanned<DeValue<'_>>]) -> Vec<String> {
    let source = |value: &Spanned<DeValue<'_>>| {
        text.get(value.span()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let kind = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Table(table) => {
            let word = |key: &str| table.get(key).and_then(|word| word.get_ref().as_str());
            word(LABEL).or(word("kind")).map_or_else(|| source(value), str::to_owned)
        }
        _ => source(value),
    };
    values.iter().map(|value| kind(value)).collect()
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

/// The keys whose values may vary.
const PLACES: &[&str] = &["link", "host", "flow", "measure", "query"];
/// Names of what is set without a sweep.
pub(super) const TAKEN: [&str; 2] = ["duration", "watch"];
/// What a table is called in results; no part of its value.
const LABEL: &str = "label";
