//! `acklab reproduce xudp`: the protocol of 1997, with its acknowledgment timer and without.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use acklab_papers::reproduce::xudp::experiment::Figures;
use acklab_papers::reproduce::xudp::{self, Reproduction, paper, parameters};
use clap::Args;

use crate::outcome::{Failure, Format, print, print_json};
use crate::table::lay_out;

/// Andrews: XUDP, A Real-Time Multimedia Networking Protocol (1997)
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Xudp {
    /// Change what the thesis leaves open: name=value, as often as needed
    #[arg(long = "set", value_name = "NAME=VALUE")]
    sets: Vec<String>,
    /// List the parameters, what they mean and their defaults, and run nothing
    #[arg(long)]
    parameters: bool,
    /// Seed of the timer's phase and of losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the table of what each open parameter decides, as Markdown, instead of the report
    #[arg(long, value_name = "FILE")]
    sensitivity: Option<PathBuf>,
    /// Write report.html and result.json into this folder
    #[arg(long, value_name = "DIR", default_value = "xudp-report")]
    out: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Xudp {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.parameters {
            return print(&list());
        }
        let settings = parameters::settings(self.sets.iter().map(String::as_str))
            .map_err(|error| Failure::at("--set", error))?;
        if self.sensitivity.is_none() {
            super::folder(&self.out)?;
        }
        let bar = super::spinner();
        let reproduction =
            Reproduction::run(settings, self.seed, |what| bar.set_message(what.to_owned()));
        bar.finish_and_clear();
        if let Some(path) = &self.sensitivity {
            let text = xudp::markdown(&reproduction.sensitivity);
            return fs::write(path, text).map_err(|error| Failure::at(path.display(), error));
        }
        let json = reproduction.to_json();
        super::write(&self.out, xudp::html(&reproduction), &json)?;
        match self.format {
            Format::Json => print_json(&json),
            Format::Text => print(&self.text(&reproduction)),
        }
    }

    fn text(&self, reproduction: &Reproduction) -> String {
        let mut text = String::new();
        let printed = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let runs = reproduction.stream.iter().chain(&reproduction.frames);
        let rows: Vec<Vec<String>> = runs
            .map(|run| {
                let (figures, table) = (&run.figures, run.printed);
                vec![
                    run.name.to_owned(),
                    table.map_or("-", |table| table.table).to_owned(),
                    format!("{:.2}", figures.rate() / 1e3),
                    printed(table.map(|table| table.rate_kbps), 2),
                    format!("{:.1}", figures.rtt_ms),
                    printed(table.map(|table| table.rtt_ms), 1),
                    format!("{:.1}", figures.window),
                    printed(table.map(|table| table.window), 1),
                    format!("{} of {}", run.parcels.0, run.parcels.1),
                    table
                        .and_then(|table| table.parcels)
                        .map_or_else(|| "-".to_owned(), |(got, of)| format!("{got} of {of}")),
                ]
            })
            .collect();
        let headings = [
            "run", "table", "KB/s", "thesis", "RTT ms", "thesis", "window", "thesis", "parcels",
            "thesis",
        ];
        text.push_str(&lay_out(&headings, &rows));
        let _ = writeln!(
            text,
            "\nWithout the timer, and nothing else changed, {:.1} times as fast; with the tweaked window, too, \
             {:.1} times; the thesis, which changed both, {:.1} times.",
            reproduction.factor(xudp::REMOVED),
            reproduction.factor(xudp::TWEAKED),
            paper::FACTOR,
        );
        let figures = |figures: &Figures| {
            let values = [figures.rate() / 1e3, figures.rtt_ms, figures.window];
            values.map(|value| format!("{value:.1}"))
        };
        let rows: Vec<Vec<String>> = reproduction
            .today
            .iter()
            .map(|run| {
                let parcels = format!("{} of {}", run.parcels.0, run.parcels.1);
                let cells = figures(&run.figures).into_iter().chain([parcels]);
                [run.name.to_owned()].into_iter().chain(cells).collect()
            })
            .collect();
        text.push_str("\nThe same parcels over today's protocol, on computers that take no time\n");
        text.push_str(&lay_out(&["run", "KB/s", "RTT ms", "window", "parcels"], &rows));
        let rows: Vec<Vec<String>> = reproduction
            .policies
            .iter()
            .map(|row| {
                let cells = figures(&row.figures).into_iter();
                [row.name.to_owned()].into_iter().chain(cells).collect()
            })
            .collect();
        text.push_str("\nThe protocol of 1997 under other ACK policies\n");
        text.push_str(&lay_out(&["acknowledges", "KB/s", "RTT ms", "window"], &rows));
        let _ = writeln!(
            text,
            "\n{:.1} CPU s; graphs, and what each open parameter decides: {}",
            reproduction.timing.cpu_s,
            self.out.join("report.html").display()
        );
        text
    }
}

/// The parameters.
fn list() -> String {
    let rows: Vec<Vec<String>> = parameters::PARAMETERS
        .iter()
        .map(|parameter| {
            let words =
                [parameter.name, parameter.default, &parameter.kind.allowed(), parameter.doc];
            words.map(str::to_owned).into()
        })
        .collect();
    lay_out(&["name", "default", "allowed", "what it is"], &rows)
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce xudp                              tables 8.1 and 8.2 with their graphs, a few seconds
  acklab reproduce xudp --parameters                 what the thesis leaves open
  acklab reproduce xudp --set exchange=1 --set host=0 --out out/xudp";
