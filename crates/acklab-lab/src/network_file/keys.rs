//! `--set` of keys that a file gives a value: `queue=codel,pie`, or `web.cc=reno` where flows differ.
//!
//! A key that is set becomes a `[[sweep]]` of that name, and `"$name"` stands where its value was: from there on it
//! is as if the author had written the sweep. A bare key means every place where it stands, if they agree.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::writing::{as_toml, quoted, replaced};
use crate::parameter::nearest;
use crate::sweep::values;

/// A value that the file gives a key.
struct Place {
    /// Name of the link, flow or host, where it has one.
    whose: Option<String>,
    /// The same by its kind and number, from 0: `flow[2]`.
    numbered: String,
    key: String,
    at: Range<usize>,
}

/// The file's text with a sweep of `name` over the values of `listed`; else what is wrong.
pub(super) fn swept(text: &str, name: &str, listed: &str) -> Result<String, String> {
    let root = DeTable::parse(text).map_err(|error| error.to_string())?;
    let places = places(root.get_ref());
    let (whose, key) = name.rsplit_once('.').map_or((None, name), |(who, key)| (Some(who), key));
    let meant: Vec<&Place> = places
        .iter()
        .filter(|place| place.key == key)
        .filter(|place| whose.is_none_or(|who| place.is_of(who)))
        .collect();
    let said = |place: &Place| text.get(place.at.clone()).unwrap_or_default().to_owned();
    let Some(first) = meant.first() else { return Err(unknown(&places, name)) };
    if let Some(other) = meant.iter().find(|place| said(place) != said(first)) {
        return Err(format!(
            "it is {} in {} and {} in {}; say which is meant: {}.{key}=...",
            said(first),
            first.name(),
            said(other),
            other.name(),
            first.name()
        ));
    }
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let sweep = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_");
    let listed: Vec<_> = values(listed)?.iter().map(|value| as_toml(value)).collect();
    let changes = meant.iter().map(|place| (place.at.clone(), quoted(&format!("${sweep}"))));
    let mut text = replaced(text, changes.collect());
    let table = format!("name = {}\nvalues = [{}]\n", quoted(&sweep), listed.join(", "));
    text.extend(["\n[[sweep]]\n", &table]);
    Ok(text)
}

/// Every key with a value that can be set, and who has it: a list for people.
pub(super) fn listed(text: &str) -> Vec<String> {
    let root = DeTable::parse(text);
    let places = root.as_ref().map(|root| places(root.get_ref())).unwrap_or_default();
    let line = |place: &Place| {
        let value = text.get(place.at.clone()).unwrap_or_default();
        format!("{}.{} = {value}", place.name(), place.key)
    };
    places.iter().map(line).collect()
}

impl Place {
    fn is_of(&self, name: &str) -> bool {
        self.whose.as_deref() == Some(name) || self.numbered == name
    }

    fn name(&self) -> &str {
        self.whose.as_deref().unwrap_or(&self.numbered)
    }
}

/// Every key of links, flows and hosts that has a value of its own.
fn places(root: &DeTable<'_>) -> Vec<Place> {
    let mut places = Vec::new();
    for kind in ["link", "flow", "host"] {
        let tables = root.get(kind).and_then(|tables| tables.get_ref().as_array());
        for (number, table) in tables.into_iter().flatten().enumerate() {
            let DeValue::Table(table) = table.get_ref() else { continue };
            let whose = (name_of(table), format!("{kind}[{number}]"));
            collect(table, &whose, &mut places);
        }
    }
    places
}

fn collect(table: &DeTable<'_>, whose: &(Option<String>, String), places: &mut Vec<Place>) {
    for (key, value) in table {
        match value.get_ref() {
            DeValue::String(text) if text.starts_with('$') => continue,
            DeValue::Table(inner) if ["forward", "reverse"].contains(&&**key.get_ref()) => {
                collect(inner, whose, places);
                continue;
            }
            _ => {}
        }
        if FIXED.contains(&&**key.get_ref()) {
            continue;
        }
        let (whose, numbered) = whose.clone();
        let key = key.get_ref().to_string();
        places.push(Place { whose, numbered, key, at: value.span() });
    }
}

/// What a link, flow or host is called.
fn name_of(table: &DeTable<'_>) -> Option<String> {
    let text = |key: &str| table.get(key)?.get_ref().as_str().map(str::to_owned);
    let ends = |from: Option<String>, to: Option<String>| Some(format!("{} -> {}", from?, to?));
    let between = table.get("between").and_then(|nodes| nodes.get_ref().as_array());
    let node = |number: usize| {
        let node: &Spanned<DeValue<'_>> = between?.get(number)?;
        node.get_ref().as_str().map(str::to_owned)
    };
    let link = ends(node(0), node(1));
    text("name").or(link).or_else(|| ends(text("from"), text("to")))
}

fn unknown(places: &[Place], name: &str) -> String {
    let mut keys: Vec<&str> = places.iter().map(|place| place.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    format!(
        "the file gives no such key a value, and --set changes what it says: write it there first, in the [[link]] or \
         [[flow]] that it is of; {}there are duration, watch and {}",
        nearest(name, keys.iter().copied()),
        keys.join(", ")
    )
}

/// Who is meant, not what it is like.
const FIXED: [&str; 4] = ["name", "between", "from", "to"];
