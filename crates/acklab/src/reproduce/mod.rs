//! `acklab reproduce`: a paper's experiments, all of them, in one report. One paper, one file.

mod ack_rate;
mod ance;
mod delivery;
mod rdt;
#[cfg(target_os = "linux")]
mod rdt_host;
mod xudp;

use clap::{Args, Subcommand};

use crate::outcome::Failure;
#[cfg(target_os = "linux")]
pub(crate) use rdt_host::RdtHost;

/// Run a paper's experiments again and judge its claims
#[derive(Args)]
pub(crate) struct Reproduce {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Subcommand)]
enum Paper {
    Ance(ance::Ance),
    Xudp(xudp::Xudp),
    Rdt(rdt::Rdt),
    AckRate(ack_rate::AckRate),
}

impl Reproduce {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.paper {
            Paper::Ance(paper) => paper.run(),
            Paper::Xudp(paper) => paper.run(),
            Paper::Rdt(paper) => paper.run(),
            Paper::AckRate(paper) => paper.run(),
        }
    }
}
