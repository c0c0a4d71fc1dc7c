//! `acklab rdt-host`: one end of the course protocol in an emulated host, for `acklab reproduce rdt`.

use std::fs;
use std::path::PathBuf;

use acklab_papers::reproduce::rdt::protocol::{Settings, chunks};
use acklab_papers::reproduce::rdt::sockets;
use clap::{Args, ValueEnum};

use crate::outcome::Failure;

/// One end of the course protocol, started by `acklab reproduce rdt` alone.
#[derive(Args)]
pub(crate) struct RdtHost {
    role: Role,
    /// Bytes of the file, which both know.
    #[arg(long)]
    size: usize,
    /// Time of a transmission.
    #[arg(long)]
    cpu: String,
    /// Time-out before the first sample.
    #[arg(long)]
    initial_timeout: String,
    /// Where the result goes.
    #[arg(long)]
    result: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Send,
    Receive,
}

impl RdtHost {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let result = match self.role {
            Role::Receive => sockets::take(self.size),
            Role::Send => sockets::send(self.settings()?, self.size, &remotes()?),
        };
        let result = result.map_err(|error| Failure::at("rdt-host", error))?;
        fs::write(&self.result, result.to_string())
            .map_err(|error| Failure::at(self.result.display(), error))
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let chunks =
            chunks(self.size).ok_or_else(|| Failure::at("--size", "a file of too many packets"))?;
        let settings = Settings::new(chunks, remotes()?.len());
        let cpu = self.cpu.parse().map_err(|error| Failure::at("--cpu", error))?;
        let initial_timeout = self
            .initial_timeout
            .parse()
            .map_err(|error| Failure::at("--initial-timeout", error))?;
        Ok(Settings { cpu, initial_timeout, ..settings })
    }
}

/// Where the receiver is, path by path, as the emulator says.
fn remotes() -> Result<Vec<std::net::Ipv4Addr>, Failure> {
    let text = std::env::var("ACKLAB_REMOTE").map_err(|e| Failure::at("ACKLAB_REMOTE", e))?;
    let addresses = text.split_whitespace().map(str::parse);
    addresses.collect::<Result<_, _>>().map_err(|e| Failure::at("ACKLAB_REMOTE", e))
}
