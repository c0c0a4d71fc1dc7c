//! `acklab dataset`: the published data set of buffering delays, written, read, checked and compared.

mod compare;
mod files;
mod make;
mod read;
mod verify;

use clap::{Args, Subcommand};

use self::compare::Compare;
use self::make::Make;
use self::read::Read;
use self::verify::Verify;
use crate::outcome::Failure;

/// Write, read or check the data set of Nagle's algorithm and delayed ACKs in its published layout
///
/// The layout is that of Al-Hammouri and Olsen, Data in Brief 39 (2021) 107530:
/// `Data/<ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms/` with 42 files for ten runs. docs/kernel-lab.md explains it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dataset {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Write(Make),
    Read(Read),
    Verify(Verify),
    Compare(Compare),
}

impl Dataset {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Write(verb) => verb.run(),
            Verb::Read(verb) => verb.run(),
            Verb::Verify(verb) => verb.run(),
            Verb::Compare(verb) => verb.run(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab dataset write out/sim                              40 cases of 10 runs in virtual time
  acklab dataset write out/vt --world linux-vt --set receiver=linux,freebsd-12.1 nagle=on,off rtt=30ms,100ms
  sudo acklab dataset write out/kernel --world kernel       the running kernel: about half an hour
  acklab dataset read out/kernel --out out/kernel/report
  acklab dataset verify out/kernel                          or the published one, unpacked
  acklab dataset write out/again --from out/kernel          the same bytes again
  acklab dataset compare sim=out/sim linux-vt=out/vt kernel=out/kernel";
