//! What becomes of a paper that was run again: two files, and standard output.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use acklab_papers::reproduce::{Course, Reproduced, Stop};
use indicatif::ProgressBar;

use crate::outcome::{Failure, Format, command_line, print, print_json};

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

/// A paper as the command line asks for it.
pub(super) struct Asked<'a> {
    pub(super) name: &'static str,
    pub(super) out: &'a Path,
    pub(super) format: Format,
    /// What is wrong where the paper refuses.
    pub(super) option: &'static str,
}

impl Asked<'_> {
    /// Runs a paper and tells of it; ended by Ctrl-C, of what was done.
    pub(super) fn perform<P: Reproduced>(
        &self,
        ended: &AtomicBool,
        run: impl FnOnce(&mut Course<'_>) -> Result<P, Stop>,
    ) -> Result<(), Failure> {
        folder(self.out)?;
        let bar = spinner();
        let mut course = Course::new(ended, |what| bar.set_message(what.to_owned()));
        let outcome = run(&mut course);
        bar.finish_and_clear();
        match outcome {
            Ok(paper) => self.deliver(&paper, true),
            Err(Stop::Refused(reason)) => Err(Failure::at(self.option, reason)),
            Err(Stop::Ended) => self.deliver(&course.into_parts(self.name, command_line()), false),
        }
    }

    /// Writes `report.html` and `result.json`, and tells the result.
    pub(super) fn deliver(
        &self,
        paper: &impl Reproduced,
        is_complete: bool,
    ) -> Result<(), Failure> {
        let report = self.out.join("report.html");
        let mut json = paper.to_json();
        json["complete"] = is_complete.into();
        let html = paper.page().to_html().map_err(|error| Failure::at(report.display(), error))?;
        for (path, text) in
            [(&report, html), (&self.out.join("result.json"), format!("{json:#}\n"))]
        {
            fs::write(path, text).map_err(|error| Failure::at(path.display(), error))?;
        }
        match self.format {
            Format::Json => print_json(&json)?,
            Format::Text => print(&paper.text(&report))?,
        }
        if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }
}
