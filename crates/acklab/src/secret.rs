//! Passphrases, where they are given: as an option, in a file, or in the environment.

use std::fs;
use std::path::PathBuf;

use acklab_net::rudp::passphrase::Passphrase;
use clap::Args;

use crate::outcome::Failure;

/// The environment variable.
const VARIABLE: &str = "ACKLAB_PASSPHRASE";

#[derive(Args)]
pub(crate) struct PassphraseOptions {
    /// What both ends know; other users of this machine can see it in the list of processes, so rather
    /// use --passphrase-file or the variable ACKLAB_PASSPHRASE
    #[arg(long, value_name = "PASSPHRASE", conflicts_with_all = ["passphrase_file", "identity", "insecure"])]
    passphrase: Option<String>,
    /// The same, read from a file's first line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["identity", "insecure"])]
    passphrase_file: Option<PathBuf>,
}

impl PassphraseOptions {
    /// Whether one was given as an option: the variable may stand there for other commands.
    pub(crate) const fn is_given(&self) -> bool {
        self.passphrase.is_some() || self.passphrase_file.is_some()
    }

    /// The passphrase that was given, if one was.
    pub(crate) fn read(&self) -> Result<Option<Passphrase>, Failure> {
        let (text, from) = if let Some(text) = &self.passphrase {
            (text.clone(), "--passphrase".to_owned())
        } else if let Some(path) = &self.passphrase_file {
            let from = path.display().to_string();
            let text = fs::read_to_string(path).map_err(|error| Failure::at(&from, error))?;
            (text.lines().next().unwrap_or_default().to_owned(), from)
        } else {
            match std::env::var(VARIABLE) {
                Ok(text) => (text, VARIABLE.to_owned()),
                Err(std::env::VarError::NotPresent) => return Ok(None),
                Err(error) => return Err(Failure::at(VARIABLE, error)),
            }
        };
        text.parse().map(Some).map_err(|error| Failure::at(from, error))
    }
}
