//! Tables whose columns say once what they hold: for the page, for JSON, for the terminal and for Markdown.
//!
//! A cell keeps what was measured, in the unit in which JSON has it. In which unit it is read, and with how
//! many digits, is its column's affair. A column without a key is not in JSON, one without a name is not on
//! the page, and one without [`Column::plain`] is neither on the terminal nor in Markdown, so that one table
//! serves all of them.

mod cell;
mod column;
mod unit;

use serde::Serialize;
use serde_json::{Map, Value};

use super::text::lay_out;

pub use cell::Cell;
pub(super) use cell::{grouped, measure};
pub use column::Column;
pub use unit::Unit;

/// A table: columns of equally many cells.
///
/// ```
/// use acklab_lab::report::{Column, Table, Unit};
///
/// let runs = [("timer", 9_520.0), ("none", 206_525.0)];
/// let table = Table::new(
///     "The stream",
///     vec![
///         Column::text("Run").key("run").plain("run", 0).over(runs, |(name, _)| name),
///         Column::number("Rate", Unit::kilo("KB/s"))
///             .key("bytes_per_second")
///             .plain("KB/s", 1)
///             .over(runs, |(_, rate)| rate),
///     ],
/// );
/// assert_eq!(table.to_text(), "run     KB/s\ntimer    9.5\nnone   206.5\n");
/// assert_eq!(table.to_json()[0]["bytes_per_second"], 9520.0);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    note: Option<String>,
    flags: Vec<bool>,
    choices: Vec<Option<String>>,
}

impl Table {
    /// The columns from left to right under a caption. Rows stand in the order of their cells at first; a
    /// reader of the page can sort them.
    ///
    /// # Panics
    /// If the columns are not equally long.
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        let rows = columns.first().map_or(0, Column::len);
        assert!(columns.iter().all(|column| column.len() == rows), "columns of unequal length");
        Self { caption: caption.into(), columns, ..Self::default() }
    }

    /// What the reader has to know to read it, below it; such as how many rows were left out.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Which rows are marked as ones to look at, row by row.
    pub fn flag(mut self, rows: impl IntoIterator<Item = bool>) -> Self {
        self.flags = rows.into_iter().collect();
        self
    }

    /// For each row the key of the sections that choosing it shows; see [`super::Section::choice`].
    pub fn choose(mut self, rows: impl IntoIterator<Item = Option<String>>) -> Self {
        self.choices = rows.into_iter().collect();
        self
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Whether JSON has any of its columns.
    pub fn is_in_json(&self) -> bool {
        self.columns.iter().any(Column::is_in_json)
    }

    /// Whether the page has.
    pub fn is_on_page(&self) -> bool {
        self.columns.iter().any(Column::is_on_page)
    }

    /// Whether the terminal and Markdown have.
    pub fn is_on_terminal(&self) -> bool {
        self.columns.iter().any(|column| column.heading().is_some())
    }

    /// An array with an object for each row.
    pub fn to_json(&self) -> Value {
        let object = |row| {
            let fields = self.columns.iter().flat_map(|column| column.json(row));
            Value::Object(fields.collect::<Map<String, Value>>())
        };
        (0..self.rows()).map(object).collect()
    }

    /// For a terminal: words to the left, numbers to the right.
    pub fn to_text(&self) -> String {
        let (headings, rows) = self.plain();
        lay_out(&headings, &rows)
    }

    /// The same for Markdown.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
        let (headings, rows) = self.plain();
        let columns = self.columns.iter().filter(|column| column.heading().is_some());
        let rules: String = columns.map(Column::markdown_rule).collect();
        let mut text = format!("{}|{rules}\n", line(&headings));
        for row in &rows {
            text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        text
    }

    fn plain(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let cells = |row| self.columns.iter().filter_map(|column| column.plain_cell(row)).collect();
        let headings = self.columns.iter().filter_map(Column::heading).collect();
        (headings, (0..self.rows()).map(cells).collect())
    }

    /// Whether choosing a row shows something.
    pub(super) fn chooses(&self) -> bool {
        self.choices.iter().any(Option::is_some)
    }

    /// What the page's template reads.
    pub(super) fn on_page(&self) -> impl Serialize + use<> {
        let columns: Vec<&Column> =
            self.columns.iter().filter(|column| column.is_on_page()).collect();
        let row = |row: usize| PageRow {
            cells: columns.iter().map(|column| column.page_cell(row)).collect(),
            choice: self.choices.get(row).cloned().flatten(),
            flagged: self.flags.get(row).copied().unwrap_or_default(),
        };
        PageTable {
            caption: self.caption.clone(),
            columns: columns.iter().map(|column| column.page_heading()).collect(),
            rows: (0..self.rows()).map(row).collect(),
            note: self.note.clone(),
        }
    }
}

#[derive(Serialize)]
struct PageTable {
    caption: String,
    columns: Vec<column::Heading>,
    rows: Vec<PageRow>,
    note: Option<String>,
}

#[derive(Serialize)]
struct PageRow {
    cells: Vec<column::PageCell>,
    choice: Option<String>,
    flagged: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Table {
        let runs = [("timer", 9520.0, Some((103.6, 0.5)), true), ("none", 206_525.0, None, false)];
        Table::new(
            "Runs",
            vec![
                Column::text("Run").key("run").plain("run", 0).over(&runs, |run| run.0),
                Column::number("Rate", Unit::kilo("KB/s"))
                    .key("bytes_per_second")
                    .plain("KB/s", 1)
                    .over(&runs, |run| run.1),
                Column::number("Round trip", "ms")
                    .keys("ms")
                    .plain("RTT, ms", 1)
                    .over(&runs, |run| {
                        run.2.map(|(mean, half_width)| Cell::Interval { mean, half_width })
                    }),
                Column::in_json("held").over(&runs, |run| run.3),
            ],
        )
    }

    #[test]
    fn json_has_every_key_and_the_value_as_it_was_measured() {
        assert_eq!(
            table().to_json(),
            json!([
                {"run": "timer", "bytes_per_second": 9520.0, "mean_ms": 103.6, "low_ms": 103.1,
                 "high_ms": 104.1, "held": true},
                {"run": "none", "bytes_per_second": 206_525.0, "mean_ms": null, "low_ms": null,
                 "high_ms": null, "held": false},
            ])
        );
    }

    #[test]
    fn the_terminal_has_the_units_of_the_page() {
        assert_eq!(
            table().to_text(),
            "run     KB/s  RTT, ms\n\
             timer    9.5  103.6 +- 0.5\n\
             none   206.5  -\n"
        );
    }

    #[test]
    fn markdown_is_the_terminals_table_with_rules() {
        assert_eq!(
            table().to_markdown(),
            "| run | KB/s | RTT, ms |\n\
             |---|---:|---:|\n\
             | timer | 9.5 | 103.6 +- 0.5 |\n\
             | none | 206.5 | - |\n"
        );
    }

    #[test]
    fn the_page_sorts_by_what_it_shows() {
        let page = serde_json::to_value(table().flag([false, true]).on_page()).expect("a table");
        let columns: Vec<_> = page["columns"].as_array().expect("columns").iter().collect();
        assert_eq!(columns.len(), 3, "what JSON alone has is not on the page");
        assert_eq!(*columns[1], json!({"name": "Rate", "unit": "KB/s", "align": "right"}));
        assert_eq!(page["rows"][0]["cells"][1], json!({"text": "9.52", "value": 9.52}));
        assert_eq!(page["rows"][1]["cells"][2], json!({"text": "–", "value": null}));
        assert_eq!(page["rows"][1]["flagged"], true);
    }

    #[test]
    #[should_panic(expected = "unequal length")]
    fn a_column_that_is_too_short_is_noticed() {
        let _ = Table::new("", vec![Column::text("a").over([1_u64, 2], |n| n), Column::text("b")]);
    }
}
