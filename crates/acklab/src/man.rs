//! `acklab man`: manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::outcome::{Failure, tell};

/// Write the manual pages, acklab.1 and one for each command, into a folder
#[derive(Args)]
#[command(
    after_help = "Example:\n  acklab man ~/.local/share/man/man1               then: man acklab-diagnose"
)]
pub(crate) struct Man {
    /// The folder; made where it is not there
    folder: PathBuf,
}

impl Man {
    /// Writes the pages of `command`.
    pub(crate) fn run(self, command: Command) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(command, &self.folder))
            .map_err(|error| Failure::at(self.folder.display(), error))?;
        tell(&format!("written: {}", self.folder.join("acklab.1").display()));
        Ok(())
    }
}
