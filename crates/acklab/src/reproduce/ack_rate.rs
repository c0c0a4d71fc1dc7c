//! `acklab reproduce ack-rate`: limiting the rate of ACKs on slow hosts.

use std::path::PathBuf;

use acklab_papers::reproduce::ack_rate::{Plan, Reproduction};
use clap::Args;

use super::delivery::Asked;
use crate::outcome::{Failure, Format, early_end};

/// Statkus, Paulikas, Krukonis: TCP acknowledgment optimization in low power and embedded devices
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AckRate {
    /// Seed of the first replication; the others' are derived from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replications of each policy on each testbed
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(2..=1000))]
    replications: u64,
    /// Length of each transfer; what the paper says is about the default
    #[arg(long, value_name = "SECONDS", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seconds: u64,
    /// Write report.html and result.json into this folder
    #[arg(long, value_name = "DIR", default_value = "ack-rate-report")]
    out: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl AckRate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let plan = Plan { seed: self.seed, replications: self.replications, seconds: self.seconds };
        let asked =
            Asked { name: "ack-rate", out: &self.out, format: self.format, option: "ack-rate" };
        asked.perform(&*early_end()?, |course| Reproduction::run(plan, course))
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab reproduce ack-rate                           tables, courses and claims, in some minutes
  acklab reproduce ack-rate --replications 10 --seed 7 --out out/ack-rate";
