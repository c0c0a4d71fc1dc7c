//! `acklab reproduce xudp`: the protocol of 1997, with its acknowledgment timer and without.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use acklab_papers::reproduce::xudp::{Reproduction, parameters, sensitivity, tables};
use clap::Args;

use super::delivery::{Asked, spinner};
use crate::outcome::{Failure, Format, early_end, print};
use crate::set;

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
            return print(&tables::declared().to_text());
        }
        set::distinct(&self.sets)?;
        let settings = parameters::settings(self.sets.iter().map(String::as_str))
            .map_err(|error| Failure::at("--set", error))?;
        let ended = early_end()?;
        if let Some(path) = &self.sensitivity {
            let bar = spinner();
            let rows = sensitivity::run(&settings, self.seed, &ended);
            bar.finish_and_clear();
            let text = tables::changes(&rows).to_markdown();
            fs::write(path, text).map_err(|error| Failure::at(path.display(), error))?;
            let is_complete = !ended.load(Ordering::Relaxed);
            return if is_complete { Ok(()) } else { Err(Failure::Incomplete) };
        }
        let asked = Asked { name: "xudp", out: &self.out, format: self.format, option: "xudp" };
        asked.perform(&ended, |course| Reproduction::run(settings, self.seed, course))
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce xudp                              tables 8.1 and 8.2 with their graphs, a few seconds
  acklab reproduce xudp --parameters                 what the thesis leaves open
  acklab reproduce xudp --set exchange=1 --set host=0 --out out/xudp";
