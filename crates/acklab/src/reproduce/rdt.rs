//! `acklab reproduce rdt`: the tables and claims of a course's reliable transfer over UDP.

#[cfg(target_os = "linux")]
use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use acklab_papers::reproduce::rdt::bench::{self, Bench};
use acklab_papers::reproduce::rdt::{Plan, Reproduction, paper};
use clap::Args;

use super::delivery::Asked;
use crate::outcome::{Failure, Format, early_end};

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
        let plan = Plan { seed: self.seed, repetitions: self.replications, size: self.size };
        let asked = Asked { name: "rdt", out: &self.out, format: self.format, option: "rdt" };
        asked.perform(&*early_end()?, |course| {
            #[cfg_attr(
                not(target_os = "linux"),
                expect(unused_mut, reason = "nothing is emulated")
            )]
            let mut reproduction = Reproduction::run(plan, course)?;
            #[cfg(target_os = "linux")]
            if let Some(repetitions) = self.emulate {
                let plan = Plan { repetitions, ..plan };
                reproduction.emulated = bench::run(&self.bench()?, plan, course)?;
            }
            Ok(reproduction)
        })
    }

    #[cfg(target_os = "linux")]
    fn bench(&self) -> io::Result<Bench> {
        Ok(Bench {
            program: std::env::current_exe()?,
            scratch: self.out.canonicalize()?.join("scratch"),
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce rdt                                tables, graphs, stop rules and claims, in seconds
  acklab reproduce rdt --replications 400 --seed 7 --out out/rdt
  sudo acklab reproduce rdt --emulate 3               and on real packets, a quarter of an hour";
