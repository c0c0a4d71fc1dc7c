//! `acklab reproduce rdt`: the tables and claims of a course's reliable transfer over UDP.

use std::fmt::Write as _;
use std::path::PathBuf;

use acklab_papers::reproduce::rdt::MeanInterval;
#[cfg(target_os = "linux")]
use acklab_papers::reproduce::rdt::bench::{self, Bench};
use acklab_papers::reproduce::rdt::emulated::{self, Measured};
use acklab_papers::reproduce::rdt::{self, Plan, Reproduction, paper};
use clap::Args;

#[cfg(target_os = "linux")]
use crate::outcome::interruption;
use crate::outcome::{Failure, Format, print, print_json};
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
    /// Also send real packets through `acklab emulate`, so often each (Linux, root): both protocols, and
    /// each repetition takes about five minutes
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    emulate: Option<u64>,
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
        #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing is emulated"))]
        let mut reproduction = Reproduction::run(plan, |what| bar.set_message(what.to_owned()))
            .map_err(|error| Failure::at("--size", error))?;
        #[cfg(target_os = "linux")]
        if let Some(repetitions) = self.emulate {
            let progress = |what: &str| bar.set_message(what.to_owned());
            reproduction.emulated = self.emulated(repetitions, progress)?;
        }
        bar.finish_and_clear();
        let json = reproduction.to_json();
        super::write(&self.out, rdt::html(&reproduction), &json)?;
        match self.format {
            Format::Json => print_json(&json),
            Format::Text => print(&self.text(&reproduction)),
        }
    }

    #[cfg(target_os = "linux")]
    fn emulated(
        &self,
        repetitions: u64,
        progress: impl FnMut(&str),
    ) -> Result<Vec<Measured>, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::at("the program's own file", error))?;
        let out = self.out.canonicalize();
        let out = out.map_err(|error| Failure::at(self.out.display(), error))?;
        let bench = Bench { program, scratch: out.join("scratch") };
        let interrupted = interruption()?;
        bench::run(&bench, (self.size, repetitions, self.seed), &interrupted, progress)
            .map_err(|error| Failure::at("--emulate", error))
    }

    fn text(&self, reproduction: &Reproduction) -> String {
        let mut text = tables(reproduction);
        text.push('\n');
        text.push_str(&today(reproduction));
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

/// Today's protocol, and what was emulated.
fn today(reproduction: &Reproduction) -> String {
    let mean = |i: MeanInterval| format!("{:.2} +- {:.2}", i.mean, i.half_width);
    let show = |interval: Option<_>| interval.map_or_else(|| "-".to_owned(), mean);
    let mut headings = vec!["paths", "loss", "course, s", "acklab, s", "median"];
    if !reproduction.emulated.is_empty() {
        headings.extend(["course, emulated", "acklab send, emulated"]);
    }
    let ideal = &reproduction.experiments[0].measured;
    let rows: Vec<Vec<String>> = ideal
        .iter()
        .zip(&reproduction.today)
        .enumerate()
        .map(|(index, (course, today))| {
            let mut cells = vec![
                course.paper.paths.to_string(),
                format!("{:.0} %", 100.0 * course.paper.loss),
                show(course.interval()),
                show(today.interval()),
                today.median_and_longest().map_or("-".to_owned(), |(m, _)| format!("{m:.2}")),
            ];
            if let Some(measured) = reproduction.emulated.get(index) {
                let transfers = [&measured.course, &measured.today];
                cells.extend(transfers.map(|transfers| match transfers.as_slice() {
                    [alone] => format!("{:.2}", alone.seconds),
                    several => show(emulated::interval(several)),
                }));
            }
            cells
        })
        .collect();
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
  acklab reproduce rdt --repetitions 400 --seed 7 --out out/rdt
  sudo acklab reproduce rdt --emulate 3               and on real packets, a quarter of an hour";
