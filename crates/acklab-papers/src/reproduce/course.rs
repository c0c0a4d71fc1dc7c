//! The way through a paper, part by part, and what is known of it when it ends early.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_lab::report::{Page, Section, Table, Tone, Verdict, conditions};
use serde_json::{Value, json};

use super::{Reproduced, SCHEMA};

/// The parts of a paper, run one after another. A part that was ended early is not kept: its means would be of fewer
/// replications than are asked for, and of other seeds than those that they are compared with.
pub struct Course<'a> {
    ended: &'a AtomicBool,
    tell: Box<dyn FnMut(&str) + 'a>,
    parts: Vec<Part>,
}

/// Why a paper was not run to its end.
#[derive(Debug)]
pub enum Stop {
    /// It was ended.
    Ended,
    /// It cannot be run, for this reason.
    Refused(String),
}

impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}

struct Part {
    title: String,
    tables: Vec<Table>,
}

impl<'a> Course<'a> {
    /// No part begins once `ended` is set; `tell` hears what is being done.
    pub fn new(ended: &'a AtomicBool, tell: impl FnMut(&str) + 'a) -> Self {
        Self { ended, tell: Box::new(tell), parts: Vec::new() }
    }

    /// Runs a part, which may look whether it is to end, and keeps what `tables` says of it.
    pub(super) fn part<T>(
        &mut self,
        title: impl Into<String>,
        run: impl FnOnce(&AtomicBool) -> T,
        tables: impl FnOnce(&T) -> Vec<Table>,
    ) -> Result<T, Stop> {
        let title = title.into();
        (self.tell)(&title);
        let done = (!self.is_ended()).then(|| run(self.ended));
        let Some(done) = done.filter(|_| !self.is_ended()) else { return Err(Stop::Ended) };
        self.parts.push(Part { title, tables: tables(&done) });
        Ok(done)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The parts of `paper` that are done, where it was ended; `command` is what would run all of it.
    pub fn into_parts(self, paper: &'static str, command: String) -> Parts {
        Parts { paper, command, done: self.parts }
    }
}

/// What is known of a paper that was ended early: tables, and no judgement of its claims.
pub struct Parts {
    paper: &'static str,
    command: String,
    done: Vec<Part>,
}

impl Parts {
    fn headline(&self) -> String {
        let done = match self.done.len() {
            0 => "before a part was done".to_owned(),
            1 => "after 1 part".to_owned(),
            parts => format!("after {parts} parts"),
        };
        format!("Not complete: ended {done}.")
    }
}

/// The paper's claims are compared once everything has been run.
const NO_CLAIMS: &str =
    "Claims are judged only when everything has been run; what stands here is what was done.";

impl Reproduced for Parts {
    fn to_json(&self) -> Value {
        let rows = |table: &Table| table.to_json();
        let part = |part: &Part| {
            let tables = part.tables.iter().filter(|table| table.is_in_json()).map(rows);
            json!({ "title": part.title, "tables": tables.collect::<Vec<_>>() })
        };
        json!({
            "schema": SCHEMA,
            "paper": self.paper,
            "complete": false,
            "parts": self.done.iter().map(part).collect::<Vec<_>>(),
        })
    }

    fn page(&self) -> Page {
        let section = |part: &Part| {
            let tables = part.tables.iter().filter(|table| table.is_on_page());
            Section::new(part.title.clone(), tables.cloned().map(Into::into).collect())
        };
        Page {
            title: format!("acklab reproduce {}", self.paper),
            subject: "Ended early".into(),
            verdict: Verdict {
                tone: Tone::Unsure,
                headline: self.headline(),
                explanation: vec![NO_CLAIMS.into()],
                ..Verdict::default()
            },
            sections: self.done.iter().map(section).collect(),
            terms: vec!["rtt"],
            conditions: conditions(self.command.clone()),
        }
    }

    fn text(&self, report: &Path) -> String {
        let mut text = String::new();
        for part in &self.done {
            let _ = writeln!(text, "{}", part.title);
            for table in part.tables.iter().filter(|table| table.is_on_terminal()) {
                let _ = write!(text, "{}", table.to_text());
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{}\n{NO_CLAIMS}\nreport: {}", self.headline(), report.display());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_lab::report::Column;

    #[test]
    fn what_was_done_before_the_end_is_told_and_the_part_that_was_under_way_is_not() {
        let ended = AtomicBool::new(false);
        let mut course = Course::new(&ended, |_| {});
        let table = |value: &u64| {
            vec![Table::new(
                "",
                vec![Column::number("A", "").key("a").plain("a", 0).over([*value], |a| a)],
            )]
        };
        assert_eq!(course.part("first", |_| 7, table).expect("not ended"), 7);
        let end = |ended: &AtomicBool| {
            ended.store(true, Ordering::Relaxed);
            8
        };
        assert!(matches!(course.part("second", end, table), Err(Stop::Ended)));
        let third = |_: &AtomicBool| -> u64 { panic!("it was ended before") };
        assert!(matches!(course.part("third", third, table), Err(Stop::Ended)));
        let parts = course.into_parts("paper", "acklab reproduce paper".into());
        let json = parts.to_json();
        assert_eq!(json["parts"], json!([{ "title": "first", "tables": [[{ "a": 7 }]] }]));
        assert_eq!(json["complete"], false);
        assert!(
            parts
                .text(Path::new("r"))
                .starts_with("first\na\n7\n\nNot complete: ended after 1 part.\n")
        );
        assert!(parts.page().to_html().expect("templates").contains("ended after 1 part"));
    }
}
