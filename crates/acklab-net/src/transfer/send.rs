//! `acklab send`: a transfer's sender on a connection of its own.
//!
//! One thread: the event loop of [`crate::rudp::driver`] calls the sender after every batch; it reads
//! what the receiver says, hands the next blocks over while the connection has room, and closes when all
//! is stored. The time that is told runs from the first datagram to the receiver's word that everything
//! is stored. A receiver that falls silent is greeted anew for a minute, and the transfer goes on where
//! it was.

mod sending;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use acklab_core::units::BitRate;
use acklab_rudp::{Code, Config};

use self::sending::attempt;
use super::report::PathReport;
use super::sender::{Progress, SendError};
use super::walk::Totals;
use crate::rudp::keys::{Identity, PublicKey};
use crate::rudp::passphrase::Passphrase;
use crate::rudp::socket::SocketError;

/// How a sender shows who it is.
#[derive(Clone, Debug)]
pub enum Secret {
    /// What both ends know.
    Passphrase(Passphrase),
    /// A key of its own, and the receiver's.
    Keys(Identity, PublicKey),
    /// Not at all: for experiments.
    Insecure,
}

/// What is to be sent, and how.
#[derive(Clone, Debug)]
pub struct Errand {
    /// File or folder, or `-` for standard input.
    pub what: PathBuf,
    /// The receiver.
    pub to: SocketAddr,
    /// Further paths: from where to where. One that leads to the receiver's address takes its place.
    pub paths: Vec<(IpAddr, SocketAddr)>,
    /// Who it is.
    pub secret: Secret,
    /// At most so much per second.
    pub rate: Option<BitRate>,
    /// Options of the connection.
    pub config: Config,
}

impl Errand {
    fn is_stream(&self) -> bool {
        self.what.as_os_str() == "-"
    }
}

/// How a transfer ended.
#[derive(Debug)]
pub enum End {
    /// Everything was stored or refused.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// The receiver said what cannot be.
    Broken(SendError),
    /// The connection ended before.
    Closed {
        /// Why.
        code: Code,
        /// In words.
        text: String,
        /// The receiver closed it.
        by_peer: bool,
    },
}

/// What was sent.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// How far it came.
    pub status: Status,
}

/// How far a transfer is.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether the receiver has answered.
    pub connected: bool,
    /// What it is about.
    pub totals: Totals,
    /// How far it is.
    pub progress: Progress,
    /// Seconds since the first datagram.
    pub seconds: f64,
    /// Files and folders that could not be read or were refused.
    pub failures: u64,
    /// Links, devices and the like that were left out.
    pub skipped: u64,
    /// Every path there was.
    pub paths: Vec<PathReport>,
}

impl Status {
    /// Bytes of IP packets sent.
    pub fn wire_bytes(&self) -> u64 {
        self.paths.iter().map(PathReport::wire_bytes).sum()
    }
}

/// What is told on the way.
#[derive(Debug)]
pub enum News<'a> {
    /// Five times a second.
    Status(&'a Status),
    /// Something was left out, could not be read or was refused.
    Problem(String),
}

/// Why nothing could be sent.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    /// The file or folder cannot be read.
    #[error("{}: {source}", path.display())]
    Source {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The event loop failed.
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
}

/// How long a silent receiver is greeted anew, seconds.
const PATIENCE: f64 = 60.0;

/// Sends until all is stored, the connection cannot be had any more or `interrupted` becomes true.
pub fn send(
    errand: &Errand,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let mut before = Before::default();
    // When the receiver fell silent.
    let mut silent = None;
    loop {
        let mut outcome = attempt(errand, &before, interrupted, tell)?;
        let status = &outcome.status;
        if status.connected {
            silent = None;
            before.resumed.get_or_insert(status.progress.resumed);
        }
        let is_silent = matches!(outcome.end, End::Closed { code: Code::Idle, by_peer: false, .. });
        let since = *silent.get_or_insert(status.seconds);
        let again = before.resumed.is_some() && status.seconds - since < PATIENCE;
        if !is_silent || !again || errand.is_stream() {
            return Ok(outcome);
        }
        tell(News::Problem("the receiver is silent; greeting it anew".to_owned()));
        before.seconds = status.seconds;
        before.sent = status.progress.sent;
        before.paths = std::mem::take(&mut outcome.status.paths);
    }
}

/// What earlier connections of the same transfer came to.
#[derive(Debug, Default)]
struct Before {
    seconds: f64,
    sent: u64,
    /// What the receiver held when the first of them began.
    resumed: Option<u64>,
    paths: Vec<PathReport>,
}

impl Before {
    /// The paths of this connection with what went over them before.
    fn with(&self, mut paths: Vec<PathReport>) -> Vec<PathReport> {
        for old in &self.paths {
            let same = |path: &&mut PathReport| {
                (path.local.ip(), path.remote) == (old.local.ip(), old.remote)
            };
            match paths.iter_mut().find(same) {
                Some(path) => {
                    path.bytes += old.bytes;
                    path.datagrams += old.datagrams;
                    path.lost += old.lost;
                }
                None => paths.push(*old),
            }
        }
        paths
    }
}
