//! What is to be sent, and how.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_rudp::Config;

use crate::rudp::keys::{Identity, PublicKey};
use crate::rudp::passphrase::Passphrase;
use crate::rudp::socket::SocketError;
use crate::transfer::exclude::Exclude;
use crate::transfer::walk::SourceError;

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

/// What is to be sent.
#[derive(Clone, Debug)]
pub enum What {
    /// Files and folders, without what is excluded.
    Tree { paths: Vec<PathBuf>, exclude: Exclude },
    /// Standard input, and what it is called at the receiver.
    Stream { name: String },
}

/// What is to be sent, and how.
#[derive(Clone, Debug)]
pub struct Errand {
    pub what: What,
    /// Where the receiver is: at least one address. Of several it is sought at all, and has the one that
    /// answers first.
    pub to: Vec<SocketAddr>,
    /// Further paths: from where to where. One that leads to the receiver's address takes its place.
    pub paths: Vec<(IpAddr, SocketAddr)>,
    pub secret: Secret,
    /// Nothing is sent: what would have to be is told.
    pub rehearsal: bool,
    /// At most so much per second.
    pub rate: Option<BitRate>,
    /// A connection that is older is followed by another one, with new keys: see [`RENEWAL`].
    pub renewal: Span,
    pub config: Config,
}

/// A transfer of days makes new keys so often, by a handshake of its own: whoever once learns a connection's keys
/// (they follow from each other, docs/rudp.md section 3) reads no more than a day \[ours\]. Rarer than `WireGuard`, which
/// does so every 120 s, because what was sent of a large file is then read from the disk once more at its end.
pub const RENEWAL: Span = Span::from_secs(24 * 3600);

impl Errand {
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.what, What::Stream { .. })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
    #[error("{0} paths are wanted and at most 8 can be used at once: leave some out")]
    TooManyPaths(usize),
}
