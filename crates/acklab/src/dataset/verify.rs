//! `acklab dataset verify`.

use std::fmt::Write as _;
use std::path::PathBuf;

use acklab_worlds::dataset;
use clap::Args;
use serde_json::json;

use super::files::unusable;
use crate::outcome::{Failure, Format, print, print_json};

/// Check that the files of a data set agree with each other; exit 1 where they do not
#[derive(Args)]
pub(super) struct Verify {
    /// The folder that has Data, or Data itself
    dir: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Verify {
    pub(super) fn run(self) -> Result<(), Failure> {
        let checked = dataset::check(&self.dir).map_err(|fault| unusable(&fault))?;
        let messages: usize = checked.cases.iter().map(|case| case.all.rows.len()).sum();
        match self.format {
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "cases": checked.cases.len(),
                "messages": messages,
                "faults": checked.faults.iter().map(|fault| json!({
                    "file": fault.path.display().to_string(), "line": fault.line, "what": fault.what,
                })).collect::<Vec<_>>(),
            }))?,
            Format::Text => {
                let shown = checked.faults.iter().take(MOST_SHOWN);
                let mut lines = shown.fold(String::new(), |mut lines, fault| {
                    let _ = writeln!(lines, "{fault}");
                    lines
                });
                if let Some(more @ 1..) = checked.faults.len().checked_sub(MOST_SHOWN) {
                    let _ = writeln!(lines, "and {more} more; --format json has all");
                }
                print(&format!(
                    "{lines}{} cases, {messages} messages: {}\n",
                    checked.cases.len(),
                    match checked.faults.len() {
                        0 => "all files agree".to_owned(),
                        count => format!("{count} faults"),
                    }
                ))?;
            }
        }
        if checked.faults.is_empty() { Ok(()) } else { Err(Failure::Check) }
    }
}

/// Name of the result's form.
const SCHEMA: &str = "acklab.dataset-verify/1";
/// Faults that a terminal shows.
const MOST_SHOWN: usize = 50;
