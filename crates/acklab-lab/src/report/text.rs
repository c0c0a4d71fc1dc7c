//! Words in rows: tables for a terminal, and the small things that all text needs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many columns the terminal has, once it is known: tables are broken to fit.
pub fn set_width(columns: usize) {
    WIDTH.store(columns, Ordering::Relaxed);
}

static WIDTH: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Lays out rows under a heading; a column whose cells are all numbers stands to the right. A table wider than the
/// terminal goes on below, each part with the first column.
pub fn lay_out(heading: &[&str], rows: &[Vec<String>]) -> String {
    lay_out_within(WIDTH.load(Ordering::Relaxed), heading, rows)
}

fn lay_out_within(most: usize, heading: &[&str], rows: &[Vec<String>]) -> String {
    let numeric = |column: usize| {
        rows.iter().all(|row| {
            row[column].parse::<f64>().is_ok() || matches!(row[column].as_str(), "" | DASH)
        })
    };
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heading[column].chars().count()]).max().unwrap_or(0)
    };
    let columns: Vec<_> = (0..heading.len()).map(|c| (width(c), numeric(c))).collect();
    let line = |part: &[usize], cells: &[&str]| {
        let mut text = String::new();
        for (cell, (width, right)) in part.iter().map(|column| (cells[*column], &columns[*column]))
        {
            let padding = " ".repeat(width - cell.chars().count());
            if *right {
                text.extend([padding.as_str(), cell, "  "]);
            } else {
                text.extend([cell, padding.as_str(), "  "]);
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    };
    let (mut parts, mut part, mut used) = (Vec::new(), Vec::new(), 0);
    for (column, (width, _)) in columns.iter().enumerate() {
        // A part has one column at least beside the first.
        if used + width > most && part.len() > 1 {
            parts.push(std::mem::replace(&mut part, vec![0]));
            used = columns[0].0 + 2;
        }
        used += width + 2;
        part.push(column);
    }
    parts.push(part);
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push('\n');
        }
        let all = std::iter::once(heading.to_vec())
            .chain(rows.iter().map(|row| row.iter().map(String::as_str).collect()));
        for cells in all {
            text.push_str(&line(&part, &cells));
        }
    }
    text
}

/// A number with `digits` decimals, or a dash where there is none.
pub fn number(value: f64, digits: usize) -> String {
    match value {
        _ if !value.is_finite() => DASH.into(),
        // Counts are exact up to here; a number with more digits says less than its size.
        _ if value.abs() >= 1e12 => format!("{value:.3e}"),
        _ => format!("{value:.digits$}"),
    }
}

/// Words as the beginning of a sentence.
pub fn capitalised(words: &str) -> String {
    if words == "rtt" {
        return "RTT".into();
    }
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What stands for a value that could not be measured.
pub(super) const DASH: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        assert_eq!(
            lay_out_within(8, &["name", "ms", "s"], &[vec!["a".into(), "1".into(), "2".into()]]),
            "name  ms\na      1\n\nname  s\na     2\n"
        );
        assert_eq!(
            (number(1e12, 1), number(999_999_999_999.0, 0)),
            ("1.000e12".into(), "999999999999".into())
        );
        let rows = [vec!["a".into(), "1.5".into()], vec!["long".into(), number(f64::NAN, 1)]];
        assert_eq!(lay_out(&["name", "ms"], &rows), "name   ms\na     1.5\nlong    -\n");
    }
}
