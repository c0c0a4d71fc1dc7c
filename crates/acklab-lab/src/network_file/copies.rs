//! `[[flow]]` tables with `copies = 20` as so many tables, each with its own values.
//!
//! A list gives each copy its value in turn, from the beginning again where it is shorter; a range of times or
//! rates, `"14ms..166ms"`, spreads them evenly, both ends included. Copy 3 of `"bulk"` is called `"bulk[3]"`,
//! and all of them are the group `bulk`, unless they name another.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::network::MOST_FLOWS;
use super::reader::{Field, Mistake};
use crate::sweep::spread;

/// Puts the copies in place of the tables that ask for them.
pub(super) fn unfold(text: &str, root: &mut DeTable<'_>) -> Result<(), Mistake> {
    let Some(DeValue::Array(array)) = root.get_mut("flow").map(Spanned::get_mut) else {
        return Ok(());
    };
    let mut unfolded = DeArray::new();
    for flow in std::mem::replace(array, DeArray::new()) {
        let copies = match flow.get_ref() {
            DeValue::Table(table) => copies(text, table)?,
            _ => None,
        };
        let Some(copies) = copies else {
            unfolded.push(flow);
            continue;
        };
        if unfolded.len() + copies.len() > MOST_FLOWS {
            return Err(Mistake::new(&flow.span(), format!("more than {MOST_FLOWS} flows")));
        }
        for copy in copies {
            unfolded.push(Spanned::new(flow.span(), DeValue::Table(copy)));
        }
    }
    *array = unfolded;
    Ok(())
}

fn copies<'a>(text: &str, table: &DeTable<'a>) -> Result<Option<Vec<DeTable<'a>>>, Mistake> {
    let Some(asked) = table.get(COPIES) else { return Ok(None) };
    let count = Field::new(text, COPIES, asked).count(1, MOST_FLOWS as u64)? as usize;
    let name =
        table.get("name").map(|name| (name.get_ref().as_str().unwrap_or_default(), name.span()));
    let Some((name, at)) = name else {
        let message = "copies of a flow need a `name`, such as name = \"bulk\"; they are called bulk[0], bulk[1] and so on";
        return Err(Mistake::new(&asked.span(), message));
    };
    let one = |index: usize| {
        let mut copy = DeTable::new();
        for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != COPIES) {
            let own = match key.get_ref().as_ref() {
                "name" => string(format!("{name}[{index}]"), &at),
                word if WHOLE.contains(&word) => value.clone(),
                _ => own_value(value, index, count),
            };
            copy.insert(key.clone(), own);
        }
        if !copy.contains_key("group") {
            copy.insert(
                Spanned::new(at.clone(), Cow::Borrowed("group")),
                string(name.to_owned(), &at),
            );
        }
        copy
    };
    Ok(Some((0..count).map(one).collect()))
}

/// What copy number `index` of `count` has.
fn own_value<'a>(value: &Spanned<DeValue<'a>>, index: usize, count: usize) -> Spanned<DeValue<'a>> {
    match value.get_ref() {
        DeValue::Array(list) if !list.is_empty() => list[index % list.len()].clone(),
        DeValue::String(text) => match spread(text, index, count) {
            Some(text) => string(text, &value.span()),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn string<'a>(text: String, at: &Range<usize>) -> Spanned<DeValue<'a>> {
    Spanned::new(at.clone(), DeValue::String(Cow::Owned(text)))
}

/// How many copies there are.
const COPIES: &str = "copies";
/// Keys whose lists are one value.
const WHOLE: [&str; 2] = ["trace", "sizes"];
