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

/// How long a receiver that is silent again and again and confirms nothing is greeted anew, seconds.
const PATIENCE: f64 = 60.0;

/// How long it has been tried in vain. That the receiver answers a greeting is no progress: some networks
/// pass greetings and no data.
#[derive(Debug, Default)]
struct Patience {
    /// Bytes and files confirmed, the most so far.
    confirmed: u64,
    /// The first silence since they rose, seconds from the start.
    since: Option<f64>,
}

impl Patience {
    /// The receiver has fallen silent, and this was its progress: whether to greet it anew.
    fn is_left(&mut self, seconds: f64, progress: &Progress) -> bool {
        let confirmed = progress.confirmed + progress.stored;
        if confirmed > self.confirmed {
            *self = Self { confirmed, since: None };
        }
        seconds - *self.since.get_or_insert(seconds) < PATIENCE
    }
}

/// Sends until all is stored, the connection cannot be had any more or `interrupted` becomes true.
pub fn send(
    errand: &Errand,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let mut before = Before::default();
    let mut patience = Patience::default();
    loop {
        let mut outcome = attempt(errand, &before, interrupted, tell)?;
        let status = &outcome.status;
        if status.connected {
            before.resumed.get_or_insert(status.progress.resumed);
        }
        let is_silent = matches!(outcome.end, End::Closed { code: Code::Idle, by_peer: false, .. });
        let may_go_on = before.resumed.is_some() && !errand.is_stream();
        if !is_silent || !may_go_on || !patience.is_left(status.seconds, &status.progress) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_renewed_by_what_was_confirmed_and_by_nothing_else() {
        let confirmed = |confirmed| Progress { confirmed, ..Progress::default() };
        let mut patience = Patience::default();
        // Greeted every 5 s, answered each time: it ends after a minute.
        let rounds = (1..100).take_while(|n| patience.is_left(5.0 * f64::from(*n), &confirmed(0)));
        assert_eq!(rounds.count(), 12);
        let mut patience = Patience::default();
        assert!((1..100_u32).all(|n| patience.is_left(50.0 * f64::from(n), &confirmed(n.into()))));
        // A new connection begins to count what is held.
        assert!(
            patience.is_left(5000.0, &confirmed(7)) && !patience.is_left(5010.0, &confirmed(99))
        );
        let stored = Progress { stored: 100, ..Progress::default() };
        assert!(patience.is_left(5030.0, &stored), "empty files too");
    }
}
