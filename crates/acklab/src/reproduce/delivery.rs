//! What becomes of a paper that was run again: two files, and standard output.

use std::fs;
use std::path::Path;
use std::time::Duration;

use acklab_papers::reproduce::Reproduced;
use indicatif::ProgressBar;

use crate::outcome::{Failure, Format, print, print_json};

/// Tells on standard error what is being done.
pub(super) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Makes the folder of a report: whatever cannot be written is refused before anything is computed.
pub(super) fn folder(out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out).map_err(|error| Failure::at(out.display(), error))
}

/// Writes `report.html` and `result.json` into `out`, and tells the result.
pub(super) fn deliver(paper: &impl Reproduced, out: &Path, format: Format) -> Result<(), Failure> {
    let report = out.join("report.html");
    let json = paper.to_json();
    let html = paper.page().to_html().map_err(|error| Failure::at(report.display(), error))?;
    for (path, text) in [(&report, html), (&out.join("result.json"), format!("{json:#}\n"))] {
        fs::write(path, text).map_err(|error| Failure::at(path.display(), error))?;
    }
    match format {
        Format::Json => print_json(&json),
        Format::Text => print(&paper.text(&report)),
    }
}
