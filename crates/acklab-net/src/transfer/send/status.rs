//! How far a transfer is, and how it ended.

use acklab_rudp::Code;

use crate::transfer::report::PathReport;
use crate::transfer::sender::{Due, Progress, SendError};
use crate::transfer::walk::Totals;

#[derive(Debug)]
pub enum End {
    /// Everything was stored or refused.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// The connection is old: the transfer goes on over another one. Not told.
    Renewed,
    /// The receiver said what cannot be.
    Broken(SendError),
    /// The connection ended before.
    Closed {
        code: Code,
        text: String,
        /// The receiver closed it.
        by_peer: bool,
    },
}

#[derive(Debug)]
pub struct Outcome {
    pub end: End,
    pub status: Status,
}

/// How far a transfer is.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether the receiver has answered.
    pub connected: bool,
    pub totals: Totals,
    pub progress: Progress,
    /// Seconds since the first datagram.
    pub seconds: f64,
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
    /// A rehearsal has found something that would have to be sent.
    Due(&'a Due),
}

/// What earlier connections of the same transfer came to.
#[derive(Debug, Default)]
pub(super) struct Before {
    seconds: f64,
    sent: u64,
    /// What the receiver held when the first of them began.
    resumed: Option<u64>,
    paths: Vec<PathReport>,
}

impl Before {
    /// Whether the receiver has answered before.
    pub(super) const fn was_connected(&self) -> bool {
        self.resumed.is_some()
    }

    /// A connection has ended so.
    pub(super) fn add(&mut self, status: &mut Status) {
        if status.connected {
            self.resumed.get_or_insert(status.progress.resumed);
        }
        self.seconds = status.seconds;
        self.sent = status.progress.sent;
        self.paths = std::mem::take(&mut status.paths);
    }

    /// What this connection came to, together with the ones before.
    pub(super) fn with(&self, mut status: Status) -> Status {
        status.seconds += self.seconds;
        status.progress.sent += self.sent;
        if let Some(resumed) = self.resumed {
            status.progress.resumed = resumed;
        }
        status.paths = self.with_paths(status.paths);
        status
    }

    /// The paths of this connection with what went over them before.
    fn with_paths(&self, mut paths: Vec<PathReport>) -> Vec<PathReport> {
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
