//! `acklab reproduce ance`: the figures, table 4 and claims of the ANCE paper.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_papers::reproduce::ance::{Reproduction, sensitivity};
use acklab_papers::reproduce::{Course, Stop};
use clap::Args;

use super::delivery::{Asked, spinner};
use crate::outcome::{Failure, Format, early_end};

/// Sup, de Moraes, Bauchspiess: Acknowledge-Based Non-Congestion Estimation (2020)
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ance {
    /// Seed of the first replication; the others' are derived from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replications of each configuration
    #[arg(long, alias = "reps", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(2..=10_000))]
    replications: u64,
    /// Runs of each row of table 4, under each of five readings
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    table4_runs: u64,
    /// Write the tables of what each open parameter decides, as Markdown, instead of the report
    #[arg(long, value_name = "FILE")]
    sensitivity: Option<PathBuf>,
    /// Write report.html and result.json into this folder
    #[arg(long, value_name = "DIR", default_value = "ance-report")]
    out: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Ance {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let ended = early_end()?;
        if let Some(path) = &self.sensitivity {
            return self.decide(path, &ended);
        }
        let asked = Asked { name: "ance", out: &self.out, format: self.format, option: "ance" };
        asked.perform(&ended, |course| {
            Reproduction::run(self.seed, self.replications, self.table4_runs, course)
        })
    }

    /// What each open parameter decides; ended by Ctrl-C, the rows that are done.
    fn decide(&self, path: &Path, ended: &AtomicBool) -> Result<(), Failure> {
        // Whatever cannot be written is refused before anything is computed; what is there stays
        // until there is something better.
        let writable = fs::OpenOptions::new().append(true).create(true).open(path);
        writable.map_err(|error| Failure::at(path.display(), error))?;
        let bar = spinner();
        let mut course = Course::new(ended, |what| bar.set_message(what.to_owned()));
        let mut tables = Vec::new();
        for preset in ["plain", "paper-fit"] {
            match sensitivity::run(preset, self.seed, self.replications, &mut course) {
                Ok(rows) => tables.push((preset, rows)),
                Err(Stop::Refused(reason)) => return Err(Failure::at("--set", reason)),
                Err(Stop::Ended) => {}
            }
        }
        drop(course);
        bar.finish_and_clear();
        let mut text = sensitivity::markdown(&tables, self.seed, self.replications);
        let is_complete = !ended.load(Ordering::Relaxed);
        if !is_complete {
            text.push_str("\nNot complete: ended early.\n");
        }
        fs::write(path, text).map_err(|error| Failure::at(path.display(), error))?;
        if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce ance                               figures, table 4 and claims, some minutes
  acklab reproduce ance --replications 400 --seed 7 --out out/ance
  acklab reproduce ance --sensitivity docs/ance-sensitivity.md";
