//! `acklab reproduce`: a paper's experiments, all of them, in one report. One paper, one file.

mod ance;
mod rdt;
#[cfg(target_os = "linux")]
mod rdt_host;
mod xudp;

use std::fs;
use std::path::Path;
use std::time::Duration;

use acklab_lab::report::ReportError;
use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use serde_json::Value;

use crate::outcome::Failure;
#[cfg(target_os = "linux")]
pub(crate) use rdt_host::RdtHost;

/// Run a paper's experiments again and judge its claims
#[derive(Args)]
pub(crate) struct Reproduce {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Subcommand)]
enum Paper {
    Ance(ance::Ance),
    Xudp(xudp::Xudp),
    Rdt(rdt::Rdt),
}

impl Reproduce {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.paper {
            Paper::Ance(paper) => paper.run(),
            Paper::Xudp(paper) => paper.run(),
            Paper::Rdt(paper) => paper.run(),
        }
    }
}

/// Tells on standard error what is being done.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Makes the folder of a report: whatever cannot be written is refused before anything is computed.
fn folder(out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out).map_err(|error| Failure::at(out.display(), error))
}

/// Writes `report.html` and `result.json` into `out`.
fn write(out: &Path, html: Result<String, ReportError>, json: &Value) -> Result<(), Failure> {
    let html = html.map_err(|error| Failure::at(out.join("report.html").display(), error))?;
    for (name, text) in [("report.html", html), ("result.json", format!("{json:#}\n"))] {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| Failure::at(path.display(), error))?;
    }
    Ok(())
}
