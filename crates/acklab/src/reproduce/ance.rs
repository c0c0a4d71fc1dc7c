//! `acklab reproduce ance`: the figures, table 4 and claims of the ANCE paper.

use std::fs;
use std::path::PathBuf;

use acklab_papers::reproduce::ance::{Reproduction, sensitivity};
use clap::Args;

use super::delivery::{deliver, folder, spinner};
use crate::outcome::{Failure, Format};

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
        let bar = spinner();
        let progress = |what: &str| bar.set_message(what.to_owned());
        if let Some(path) = &self.sensitivity {
            // Whatever cannot be written is refused before anything is computed; what is there stays
            // until there is something better.
            let writable = fs::OpenOptions::new().append(true).create(true).open(path);
            writable.map_err(|error| Failure::at(path.display(), error))?;
            let mut tables = Vec::new();
            for preset in ["plain", "paper-fit"] {
                let rows = sensitivity::run(preset, self.seed, self.replications, progress);
                tables.push((preset, rows.map_err(|error| Failure::at("--set", error))?));
            }
            bar.finish_and_clear();
            let text = sensitivity::markdown(&tables, self.seed, self.replications);
            return fs::write(path, text).map_err(|error| Failure::at(path.display(), error));
        }
        folder(&self.out)?;
        let reproduction =
            Reproduction::run(self.seed, self.replications, self.table4_runs, progress)
                .map_err(|error| Failure::Unusable(error.to_string()))?;
        bar.finish_and_clear();
        deliver(&reproduction, &self.out, self.format)
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce ance                               figures, table 4 and claims, some minutes
  acklab reproduce ance --replications 400 --seed 7 --out out/ance
  acklab reproduce ance --sensitivity docs/ance-sensitivity.md";
