//! `acklab completions`: shell completion scripts.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::outcome::{Failure, print};

/// Write a shell completion script to standard output
#[derive(Args)]
#[command(
    after_help = "Example:\n  mkdir -p ~/.local/share/bash-completion/completions; acklab completions bash > ~/.local/share/bash-completion/completions/acklab"
)]
pub(crate) struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    /// Writes the script for `command`.
    pub(crate) fn run(self, command: &mut Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "acklab", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
