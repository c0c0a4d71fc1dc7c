//! A link emulator for real traffic that needs no kernel module: the core's links between TUN devices.
//!
//! Two network namespaces, client and server, each with one TUN device per path (host.rs). What one
//! sends is read, put through a [`acklab_core::link::Link`], and written to the other when the link says
//! so (relay.rs); every impairment and queue of the simulator therefore works on real packets, with the
//! same seeds and the same draws. The emulator measures its own lateness; a result says how far it can
//! be trusted.
//!
//! Frames are at most an MTU of 1500 bytes: without the devices' offload the kernel cuts large segments
//! before they come here, so ACK counts are those of a wire. IPv4 and IPv6.

mod direction;
mod frame;
mod host;
pub mod init;
mod kernel;
mod relay;
mod session;
pub mod vocabulary;

pub use acklab_core::quantiles::Quantiles;
pub use direction::{Direction, Tally};

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use acklab_core::link::LinkConfig;
use acklab_core::time::Span;
use nix::errno::Errno;

use self::host::{Report, Side};
use self::relay::{Relay, Relayed};
use self::session::{Outcome, Session};

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

/// What is to be emulated.
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
    /// The commands' standard output goes to standard error.
    pub quiet: bool,
    /// A program, with arguments, that calls [`init::run`] with this process's number and the words
    /// that follow.
    pub init: Vec<OsString>,
}

/// What happened.
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
    /// How the client's command ended: exit status, 128 + signal, or [`init::NOT_STARTED`].
    pub status: i32,
    /// How long it took.
    pub seconds: f64,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The server's status, if it had a command and ended by itself.
    pub server_status: Option<i32>,
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

/// Why nothing was emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The process may not make namespaces or devices.
    #[error(
        "{doing}: not permitted; emulating needs CAP_SYS_ADMIN and CAP_NET_ADMIN, so run it as root \
         (for example with sudo)"
    )]
    Privilege {
        /// What was being attempted.
        doing: &'static str,
    },
    /// A system call failed for another reason.
    #[error("{doing}: {errno}")]
    System {
        /// What was being attempted.
        doing: &'static str,
        /// The kernel's reason.
        errno: Errno,
    },
    /// A command's first process could not be started.
    #[error("start the command: {source}")]
    Start {
        /// The kernel's reason.
        source: io::Error,
    },
    /// The relay failed.
    #[error("relay packets: {source}")]
    Relay {
        /// The kernel's reason.
        source: io::Error,
    },
    /// The number of paths.
    #[error("{0} paths; from 1 to {MAX_PATHS} can be emulated")]
    Paths(usize),
    /// A thread of the emulator ended without a word.
    #[error("a thread of the emulator is gone")]
    Gone,
}

impl EmulateError {
    fn system(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| match errno {
            Errno::EPERM | Errno::EACCES => Self::Privilege { doing },
            errno => Self::System { doing, errno },
        }
    }
}

/// Emulates until the client's command has ended; `interrupted` asks it to end early.
pub fn run(emulation: &Emulation, interrupted: &AtomicBool) -> Result<Emulated, EmulateError> {
    let paths = u8::try_from(emulation.paths.len())
        .ok()
        .filter(|paths| (1..=MAX_PATHS).contains(paths))
        .ok_or(EmulateError::Paths(emulation.paths.len()))?;
    let (reports, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let mut hosts = Vec::new();
        for side in [Side::Client, Side::Server] {
            let (launch, orders) = mpsc::channel();
            let reports = reports.clone();
            scope.spawn(move || host::inhabit(side, paths, &orders, &reports));
            hosts.push(launch);
        }
        drop(reports);
        let [client, server] = devices(&inbox)?;
        let mut session = Session::new(emulation, inbox, interrupted);
        session.start_server(&hosts[1])?;
        let devices = client.into_iter().zip(server).flat_map(<[_; 2]>::from).collect();
        let relay = Relay::new(devices, directions(emulation));
        let (running, stop) =
            UnixStream::pair().map_err(|source| EmulateError::Relay { source })?;
        let relaying = scope.spawn(move || relay.run(&stop));
        let outcome = session.attend(&hosts[0]);
        drop(running);
        let relayed = relaying.join().map_err(|_| EmulateError::Gone)?;
        let relayed = relayed.map_err(|source| EmulateError::Relay { source })?;
        Ok(summary(&outcome?, relayed))
    })
}

/// The devices of client and server, once both are up.
fn devices(inbox: &Receiver<Report>) -> Result<[Vec<File>; 2], EmulateError> {
    let mut devices = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        match inbox.recv().map_err(|_| EmulateError::Gone)? {
            Report::Ready(side, files) => devices[usize::from(side == Side::Server)] = files,
            Report::Failed(error) => return Err(error),
            Report::Started(..) | Report::Ended(..) => {}
        }
    }
    Ok(devices)
}

fn directions(emulation: &Emulation) -> Vec<Direction> {
    let configs = emulation.paths.iter().flat_map(|path| [&path.forward, &path.reverse]);
    let direction = |(index, config): (usize, &LinkConfig)| {
        Direction::new(index as u32, emulation.seed, config.clone())
    };
    configs.enumerate().map(direction).collect()
}

fn summary(outcome: &Outcome, relayed: Relayed) -> Emulated {
    let &Outcome { client, server, server_asked, interrupted } = outcome;
    let overrun = client.overrun + server.map_or(0, |server| server.overrun);
    let pairs = relayed.tallies.chunks_exact(2);
    Emulated {
        paths: pairs.map(|pair| [pair[0].clone(), pair[1].clone()]).collect(),
        lateness: relayed.lateness,
        mishaps: relayed.refused + overrun,
        fifo: relayed.fifo,
        status: client.status,
        seconds: client.seconds,
        interrupted,
        server_status: server.filter(|_| !server_asked).map(|server| server.status),
    }
}
