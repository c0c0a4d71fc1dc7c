//! A column: what its cells are called in each rendering, and in which unit they are read.

use serde::Serialize;
use serde_json::Value;

use super::cell::Cell;
use super::unit::Unit;
use crate::report::text::DASH;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Align {
    Left,
    Right,
}

/// What a column is called in JSON.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// It is not there.
    None,
    Value(&'static str),
    /// Three: `mean_`, `low_` and `high_` before this.
    Interval(&'static str),
}

/// How a column stands on the terminal.
#[derive(Clone, Debug)]
struct Plain {
    heading: String,
    decimals: usize,
    /// What follows each value.
    suffix: &'static str,
}

#[derive(Clone, Debug)]
#[must_use]
pub struct Column {
    key: Key,
    name: String,
    unit: Unit,
    align: Align,
    plain: Option<Plain>,
    missing: Option<&'static str>,
    cells: Vec<Cell>,
}

impl Column {
    fn new(name: impl Into<String>, unit: Unit, align: Align) -> Self {
        let name = name.into();
        Self { key: Key::None, name, unit, align, plain: None, missing: None, cells: Vec::new() }
    }

    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, Unit::from(""), Align::Left)
    }

    /// A column of numbers in `unit` (empty for counts).
    pub fn number(name: impl Into<String>, unit: impl Into<Unit>) -> Self {
        Self::new(name, unit.into(), Align::Right)
    }

    /// A column that JSON alone has.
    pub fn in_json(key: &'static str) -> Self {
        Self::text("").key(key)
    }

    /// A column that the terminal and Markdown alone have.
    pub fn on_terminal(heading: impl Into<String>, decimals: usize) -> Self {
        Self::text("").plain(heading, decimals)
    }

    /// In JSON under this key.
    pub fn key(self, key: &'static str) -> Self {
        Self { key: Key::Value(key), ..self }
    }

    /// An interval in JSON: `mean_`, `low_` and `high_` with this unit.
    pub fn keys(self, unit: &'static str) -> Self {
        Self { key: Key::Interval(unit), ..self }
    }

    /// On the terminal under this heading, measured values with so many decimals.
    pub fn plain(self, heading: impl Into<String>, decimals: usize) -> Self {
        let plain = Plain { heading: heading.into(), decimals, suffix: "" };
        Self { plain: Some(plain), ..self }
    }

    /// The same with a percent sign behind each value.
    pub fn plain_percent(self, heading: impl Into<String>, decimals: usize) -> Self {
        let plain = Plain { heading: heading.into(), decimals, suffix: " %" };
        Self { plain: Some(plain), ..self }
    }

    /// What stands where nothing was measured, instead of a dash.
    pub fn missing(self, words: &'static str) -> Self {
        Self { missing: Some(words), ..self }
    }

    /// The same under another name on the page.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// A cell for each row.
    pub fn over<R, C: Into<Cell>>(
        self,
        rows: impl IntoIterator<Item = R>,
        cell: impl Fn(R) -> C,
    ) -> Self {
        Self { cells: rows.into_iter().map(|row| cell(row).into()).collect(), ..self }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Keys and values of a row.
    pub(super) fn json(&self, row: usize) -> Vec<(String, Value)> {
        let cell = &self.cells[row];
        match self.key {
            Key::None => vec![],
            Key::Value(key) => vec![(key.to_owned(), cell.to_json())],
            Key::Interval(unit) => {
                let names = ["mean", "low", "high"].map(|end| format!("{end}_{unit}"));
                names.into_iter().zip(cell.interval_json()).collect()
            }
        }
    }

    /// Heading on the terminal, if it stands there.
    pub(super) fn heading(&self) -> Option<&str> {
        self.plain.as_ref().map(|plain| plain.heading.as_str())
    }

    pub(super) fn plain_cell(&self, row: usize) -> Option<String> {
        let Plain { decimals, suffix, .. } = self.plain.as_ref()?;
        let text = self.cells[row].plain(&self.unit, *decimals);
        Some(text.map_or_else(|| self.missing.unwrap_or(DASH).into(), |text| text + suffix))
    }

    pub(super) fn markdown_rule(&self) -> &'static str {
        match self.align {
            Align::Left => "---|",
            Align::Right => "---:|",
        }
    }

    pub(super) fn is_in_json(&self) -> bool {
        !matches!(self.key, Key::None)
    }

    pub(super) fn is_on_page(&self) -> bool {
        !self.name.is_empty()
    }

    pub(super) fn page_heading(&self) -> Heading {
        Heading { name: self.name.clone(), unit: self.unit.name().to_owned(), align: self.align }
    }

    pub(super) fn page_cell(&self, row: usize) -> PageCell {
        let cell = &self.cells[row];
        let text = cell.on_page(&self.unit);
        let text = text.unwrap_or_else(|| self.missing.unwrap_or("–").into());
        PageCell { text, value: cell.rank(&self.unit) }
    }
}

/// A heading as the page's template reads it; the unit stands below the name.
#[derive(Serialize)]
pub(super) struct Heading {
    name: String,
    unit: String,
    align: Align,
}

/// A cell as the page's template reads it: what is shown, and by what it is sorted.
#[derive(Serialize)]
pub(super) struct PageCell {
    text: String,
    value: Option<f64>,
}
