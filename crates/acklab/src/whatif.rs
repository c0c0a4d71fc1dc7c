//! `acklab whatif`: what a change would have done to a captured conversation.

use std::path::PathBuf;

use acklab_lab::whatif::{self, Change};
use acklab_trace::Options;
use clap::Args;

use crate::diagnose::unreadable;
use crate::outcome::{Failure, Format, print};

/// Predict what TCP_NODELAY, one write or another receiver would have done to a captured conversation
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIf {
    /// The capture: pcap or pcapng, also gzipped; `-` reads standard input
    file: PathBuf,
    /// This connection, numbered from 0 as Wireshark's tcp.stream; else the one that was held longest
    #[arg(long, value_name = "N")]
    flow: Option<u64>,
    /// A change; may be repeated, and all are made together. Without any, the usual remedies are tried one by one:
    /// sender.nodelay=true, sender.single_write=true, receiver.quickack=true, receiver.profile=NAME, path.rtt=TIME
    #[arg(long = "set", value_name = "NAME=VALUE")]
    changes: Vec<String>,
    /// How to write the answer to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl WhatIf {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let parse = |text: &String| text.parse::<Change>().map_err(|why| Failure::at("--set", why));
        let changes = self.changes.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let options = Options { flow: self.flow, ..Options::default() };
        let diagnosis = acklab_trace::explain(&self.file, &options, |_| {})
            .map_err(|error| unreadable(&self.file, error))?;
        let answer = whatif::ask(&diagnosis, self.flow, &changes)
            .map_err(|refusal| Failure::at(self.file.display(), refusal))?;
        match self.format {
            Format::Text => print(&answer.to_text()),
            Format::Json => {
                let json =
                    answer.to_json().map_err(|error| Failure::at("the answer as JSON", error))?;
                print(&(json + "\n"))
            }
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab whatif slow.pcapng                              the usual remedies, the one that saves most first
  acklab whatif slow.pcapng --set sender.nodelay=true    TCP_NODELAY alone
  acklab whatif slow.pcapng --flow 3 --set receiver.profile=windows-10 --set path.rtt=30ms";
