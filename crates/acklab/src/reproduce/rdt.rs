//! `acklab reproduce rdt`: the tables and claims of a course's reliable transfer over UDP.

use std::fmt::Write as _;
use std::path::PathBuf;

use acklab_lab::reproduce::rdt::{self, Plan, Reproduction, paper};
use clap::Args;

use crate::Format;
use crate::outcome::{Failure, print, print_json};
use crate::table::lay_out;

/// Sehlaver, Yalcinkaya: CENG 435 term project part II, a reliable transfer over UDP
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rdt {
    /// Seed of the first repetition; the others' are derived from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Repetitions of each experiment
    #[arg(long, value_name = "N", default_value_t = 40,
          value_parser = clap::value_parser!(u64).range(2..=10_000))]
    repetitions: u64,
    /// Bytes of the file; the paper's tables are about the default
    #[arg(long, value_name = "BYTES", default_value_t = paper::SIZE)]
    size: usize,
    /// Write report.html and result.json into this folder
    #[arg(long, value_name = "DIR", default_value = "rdt-report")]
    out: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Rdt {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let bar = super::spinner();
        super::folder(&self.out)?;
        let plan = Plan { seed: self.seed, repetitions: self.repetitions, size: self.size };
        let reproduction = Reproduction::run(plan, |what| bar.set_message(what.to_owned()))
            .map_err(|error| Failure::at("--size", error))?;
        bar.finish_and_clear();
        let json = reproduction.to_json();
        super::write(&self.out, rdt::html(&reproduction), &json)?;
        match self.format {
            Format::Json => print_json(&json),
            Format::Text => print(&self.text(&reproduction)),
        }
    }

    fn text(&self, reproduction: &Reproduction) -> String {
        let mut text = tables(reproduction);
        text.push('\n');
        text.push_str(&stop_rules(reproduction));
        text.push('\n');
        text.push_str(&claims(reproduction));
        let _ = writeln!(
            text,
            "\n{} repetitions of each experiment, {:.1} CPU s; the report: {}",
            reproduction.plan.repetitions,
            reproduction.timing.cpu_s,
            self.out.join("report.html").display()
        );
        text
    }
}

/// Tables 1 and 2.
fn tables(reproduction: &Reproduction) -> String {
    let rows: Vec<Vec<String>> = paper::ROWS
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let mut cells = vec![
                row.paths.to_string(),
                format!("{:.0} %", 100.0 * row.loss),
                format!("{:.2}", row.mean),
            ];
            cells.extend(reproduction.experiments.iter().map(|experiments| {
                match experiments.measured[index].interval() {
                    Some(interval) => format!("{:.2} +- {:.2}", interval.mean, interval.half_width),
                    None => "not all ended".to_owned(),
                }
            }));
            cells
        })
        .collect();
    let mut headings = vec!["paths", "loss", "paper, s"];
    headings.extend(reproduction.experiments.iter().map(|e| e.machine.name));
    lay_out(&headings, &rows)
}

fn stop_rules(reproduction: &Reproduction) -> String {
    let rows: Vec<Vec<String>> = reproduction
        .stopping
        .iter()
        .map(|stopping| {
            vec![
                stopping.row.paths.to_string(),
                format!("{:.0} %", 100.0 * stopping.row.loss),
                stopping.rule.name().to_owned(),
                format!(
                    "{}{}",
                    stopping.campaign.runs,
                    if stopping.campaign.stopped { "" } else { ", no end" }
                ),
                format!("{:.2} +- {:.2}", stopping.campaign.mean, stopping.campaign.margin),
                stopping.campaigns.median_runs.to_string(),
                format!("{:.1} %", 100.0 * stopping.campaigns.coverage),
            ]
        })
        .collect();
    let headings =
        ["paths", "loss", "stop rule", "runs", "mean, s", "median runs", "holds the mean"];
    lay_out(&headings, &rows)
}

fn claims(reproduction: &Reproduction) -> String {
    let rows: Vec<Vec<String>> = reproduction
        .claims
        .iter()
        .map(|claim| {
            let words: Vec<&str> = claim.outcomes.iter().map(|outcome| outcome.word()).collect();
            vec![words.join(", "), claim.text.to_owned()]
        })
        .collect();
    lay_out(&["holds?", "claim"], &rows)
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce rdt                                tables, graphs, stop rules and claims, in seconds
  acklab reproduce rdt --repetitions 400 --seed 7 --out out/rdt";
