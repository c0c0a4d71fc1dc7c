//! Words in rows: tables for a terminal, and the small things that all text needs.

/// Lays out rows under a heading; a column whose cells are all numbers stands to the right.
pub fn lay_out(heading: &[&str], rows: &[Vec<String>]) -> String {
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
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, (width, right)) in cells.zip(&columns) {
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
    let mut text = line(&mut heading.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// A number with `digits` decimals, or a dash where there is none.
pub fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { DASH.into() }
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
        let rows = [vec!["a".into(), "1.5".into()], vec!["long".into(), number(f64::NAN, 1)]];
        assert_eq!(lay_out(&["name", "ms"], &rows), "name   ms\na     1.5\nlong    -\n");
    }
}
