//! `acklab reproduce rdt`: the tables and claims of a course's reliable transfer over UDP.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
use acklab_papers::reproduce::rdt::bench::{self, Bench};
#[cfg(target_os = "linux")]
use acklab_papers::reproduce::rdt::emulated::Real;
use acklab_papers::reproduce::rdt::{Plan, Reproduction, paper};
use clap::Args;

use super::delivery::{deliver, folder, spinner};
#[cfg(target_os = "linux")]
use crate::outcome::interruption;
use crate::outcome::{Failure, Format};

/// Sehlaver, Yalcinkaya: CENG 435 term project part II, a reliable transfer over UDP
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rdt {
    /// Seed of the first replication; the others' are derived from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replications of each experiment
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 40,
          value_parser = clap::value_parser!(u64).range(2..=10_000))]
    replications: u64,
    /// Bytes of the file; the paper's tables are about the default
    #[arg(long, value_name = "BYTES", default_value_t = paper::SIZE)]
    size: usize,
    /// Also send real packets through `acklab emulate`, so often each (Linux, root): both protocols, and
    /// each replication takes about five minutes
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
        let bar = spinner();
        folder(&self.out)?;
        let plan = Plan { seed: self.seed, repetitions: self.replications, size: self.size };
        #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing is emulated"))]
        let mut reproduction = Reproduction::run(plan, |what| bar.set_message(what.to_owned()))
            .map_err(|error| Failure::at("--size", error))?;
        #[cfg(target_os = "linux")]
        if let Some(repetitions) = self.emulate {
            let progress = |what: &str| bar.set_message(what.to_owned());
            reproduction.emulated = self.emulated(Plan { repetitions, ..plan }, progress)?;
        }
        bar.finish_and_clear();
        deliver(&reproduction, &self.out, self.format)
    }

    #[cfg(target_os = "linux")]
    fn emulated(&self, plan: Plan, progress: impl FnMut(&str)) -> Result<Vec<Real>, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::at("the program's own file", error))?;
        let out = self.out.canonicalize();
        let out = out.map_err(|error| Failure::at(self.out.display(), error))?;
        let bench = Bench { program, scratch: out.join("scratch") };
        let interrupted = interruption()?;
        bench::run(&bench, plan, &interrupted, progress)
            .map_err(|error| Failure::at("--emulate", error))
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce rdt                                tables, graphs, stop rules and claims, in seconds
  acklab reproduce rdt --replications 400 --seed 7 --out out/rdt
  sudo acklab reproduce rdt --emulate 3               and on real packets, a quarter of an hour";
