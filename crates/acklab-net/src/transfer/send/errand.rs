//! What is to be sent, and how.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use acklab_core::units::BitRate;
use acklab_rudp::Config;

use crate::rudp::keys::{Identity, PublicKey};
use crate::rudp::passphrase::Passphrase;
use crate::rudp::socket::SocketError;

/// How a sender shows who it is.
#[derive(Clone, Debug)]
pub enum Secret {
    /// What both ends know.
    Passphrase(Passphrase),
    /// The sender's key pair, and the receiver's public key.
    Keys(Identity, PublicKey),
    /// Not at all: for experiments.
    Insecure,
}

/// What is to be sent, and how.
#[derive(Clone, Debug)]
pub struct Errand {
    /// File or folder, or `-` for standard input.
    pub what: PathBuf,
    pub to: SocketAddr,
    /// Further paths: from where to where. One that leads to the receiver's address takes its place.
    pub paths: Vec<(IpAddr, SocketAddr)>,
    pub secret: Secret,
    /// At most so much per second.
    pub rate: Option<BitRate>,
    pub config: Config,
}

impl Errand {
    pub(super) fn is_stream(&self) -> bool {
        self.what.as_os_str() == "-"
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    #[error("{}: {source}", path.display())]
    Source { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
    #[error("{0} paths are wanted and at most 8 can be used at once: leave some out")]
    TooManyPaths(usize),
}
