//! `acklab reproduce ance`: the figures, table 4 and claims of the ANCE paper.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use acklab_papers::reproduce::ance::{self, Reproduction, sensitivity};
use clap::Args;

use crate::outcome::{Failure, Format, print, print_json};
use crate::table::lay_out;

/// Sup, de Moraes, Bauchspiess: Acknowledge-Based Non-Congestion Estimation (2020)
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ance {
    /// Seed of the first replication; the others' are derived from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replications of each configuration
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    reps: u64,
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
        let bar = super::spinner();
        let progress = |what: &str| bar.set_message(what.to_owned());
        if let Some(path) = &self.sensitivity {
            // Whatever cannot be written is refused before anything is computed; what is there stays
            // until there is something better.
            let writable = fs::OpenOptions::new().append(true).create(true).open(path);
            writable.map_err(|error| Failure::at(path.display(), error))?;
            let mut tables = Vec::new();
            for preset in ["plain", "paper-fit"] {
                let rows = sensitivity::run(preset, self.seed, self.reps, progress);
                tables.push((preset, rows.map_err(|error| Failure::at("--set", error))?));
            }
            bar.finish_and_clear();
            let text = sensitivity::markdown(&tables, self.seed, self.reps);
            return fs::write(path, text).map_err(|error| Failure::at(path.display(), error));
        }
        super::folder(&self.out)?;
        let reproduction = Reproduction::run(self.seed, self.reps, progress)
            .map_err(|error| Failure::Unusable(error.to_string()))?;
        bar.finish_and_clear();
        let json = reproduction.to_json();
        super::write(&self.out, ance::html(&reproduction), &json)?;
        match self.format {
            Format::Json => print_json(&json),
            Format::Text => print(&self.text(&reproduction)),
        }
    }

    fn text(&self, reproduction: &Reproduction) -> String {
        let mut text = String::new();
        let first = &reproduction.presets[0];
        let rows: Vec<Vec<String>> = (0..first.claims.len())
            .map(|index| {
                let claim = first.claims[index].claim;
                let outcomes = reproduction.presets.iter().map(|p| p.claims[index].outcome.word());
                let mut row = vec![claim.text.to_owned()];
                row.extend(outcomes.map(str::to_owned));
                row
            })
            .collect();
        let mut headings = vec!["claim"];
        headings.extend(ance::PRESETS);
        text.push_str(&lay_out(&headings, &rows));
        for preset in &reproduction.presets {
            let rows: Vec<Vec<String>> = preset
                .table4
                .iter()
                .map(|row| {
                    let ((low, high), report) = (row.interval(), &row.ours.report);
                    vec![
                        row.paper.technique.name.to_owned(),
                        format!("{} to {}", row.paper.interval.0, row.paper.interval.1),
                        format!("{low:.3} to {high:.3}"),
                        format!("{} of {}", report.successes.unwrap_or(0), report.runs),
                        if row.overlaps() { "yes" } else { "no" }.to_owned(),
                    ]
                })
                .collect();
            let _ = writeln!(text, "\ntable 4, preset {}", preset.name);
            text.push_str(&lay_out(&["technique", "paper", "here", "runs", "overlap"], &rows));
        }
        let _ = writeln!(
            text,
            "\n{} replications of each configuration, {:.1} CPU s; the report with all figures: {}",
            reproduction.replications,
            reproduction.timing.cpu_s,
            self.out.join("report.html").display()
        );
        text
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce ance                               figures, table 4 and claims, about a minute
  acklab reproduce ance --reps 400 --seed 7 --out out/ance
  acklab reproduce ance --sensitivity docs/ance-sensitivity.md";
