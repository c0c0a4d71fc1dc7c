//! What is to be emulated, and what happened.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::sync::Arc;

use acklab_core::link::LinkConfig;
use acklab_core::quantiles::Quantiles;
use acklab_core::time::Span;
use nix::errno::Errno;

use super::direction::Tally;
use super::environment::Environment;

/// Paths that one emulation may have; the third byte of their addresses counts them.
pub const MAX_PATHS: u8 = 8;

/// Both directions of a path.
#[derive(Clone, Debug)]
pub struct Path {
    /// From client to server.
    pub forward: LinkConfig,
    /// From server to client.
    pub reverse: LinkConfig,
}

#[derive(Clone, Debug)]
pub struct Emulation {
    /// At least one, at most [`MAX_PATHS`].
    pub paths: Vec<Path>,
    /// Seed of all randomness: link 2P is path P forward, link 2P+1 its reverse, drawing as the links
    /// of a simulated world do.
    pub seed: u64,
    /// Program and arguments of the client's command.
    pub client: Vec<OsString>,
    /// The same for the server, which is started first.
    pub server: Option<Vec<OsString>>,
    /// Where the commands' standard output goes.
    pub output: Output,
    /// A program, with arguments, that calls [`super::init::run`] with this process's number and the words
    /// that follow.
    pub init: Vec<OsString>,
}

/// Where the commands' standard output goes.
#[derive(Clone, Debug)]
pub enum Output {
    /// Where this program's own goes.
    Inherited,
    /// To standard error.
    Error,
    /// The client's and the server's into these files.
    Files(Arc<[File; 2]>),
}

#[derive(Clone, Debug)]
pub struct Emulated {
    /// Forward and reverse of each path.
    pub paths: Vec<[Tally; 2]>,
    /// Actual minus scheduled departure of each frame.
    pub lateness: Quantiles,
    /// Frames that the emulator lost: a device's queue overran, or took no frame.
    pub mishaps: u64,
    /// Whether the emulator ran under SCHED_FIFO.
    pub fifo: bool,
    /// How the client's command ended: exit status, 128 + signal, or [`super::init::NOT_STARTED`].
    pub status: i32,
    /// How long it took.
    pub seconds: f64,
    pub interrupted: bool,
    /// The server's status, if it had a command and ended by itself.
    pub server_status: Option<i32>,
    /// Where it ran.
    pub environment: Environment,
}

impl Emulated {
    /// Why the run cannot be trusted, in words; empty: it can. It is valid if the 99th percentile of its
    /// lateness is within `max_lateness` and the emulator lost no frame itself.
    pub fn doubts(&self, max_lateness: Span) -> Vec<String> {
        let mut doubts = Vec::new();
        let p99 = self.lateness.quantile(0.99);
        if p99 > max_lateness {
            doubts.push(format!(
                "1 % of the packets left more than {:.0} us late, and {:.0} us are allowed: run it on a \
                 quieter machine{}, or raise --max-lateness",
                p99.as_micros_f64(),
                max_lateness.as_micros_f64(),
                if self.fifo { "" } else { " or where SCHED_FIFO is permitted" },
            ));
        }
        if self.mishaps > 0 {
            let mishaps = self.mishaps;
            doubts.push(format!("the emulator itself lost {mishaps} packets; lower the rate"));
        }
        doubts
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    #[error(
        "{doing}: not permitted; emulating needs CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun, so run it as \
         root (for example with sudo), or where everybody may open /dev/net/tun as root of a namespace \
         (unshare --user --map-root-user)"
    )]
    Privilege { doing: &'static str },
    #[error("{doing}: {errno}")]
    System { doing: &'static str, errno: Errno },
    #[error("start the command: {source}")]
    Start { source: io::Error },
    #[error("relay packets: {source}")]
    Relay { source: io::Error },
    #[error("{0} paths; from 1 to {MAX_PATHS} can be emulated")]
    Paths(usize),
    #[error("a thread of the emulator is gone")]
    Gone,
}

impl EmulateError {
    pub(super) fn system(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| match errno {
            Errno::EPERM | Errno::EACCES => Self::Privilege { doing },
            errno => Self::System { doing, errno },
        }
    }
}
