//! Watches the TCP of the running kernel: frames from the ring to the live diagnosis, and what is new with the processes
//! at both ends.
//!
//! A watch is turned by its caller: [`Watch::turn`] waits a moment for frames, takes what is there, and has the
//! diagnosis looked at four times a second. Nothing of it stands in the way of the traffic.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use acklab_core::time::Time;
use acklab_trace::Diagnosis;
use acklab_trace::capture::LinkType;
use acklab_trace::diagnosis::Mechanism;
use acklab_trace::live::LiveDiagnosis;
use acklab_trace::segment::Endpoint;
use nix::sched::{CloneFlags, setns};

use crate::chosen::{Chosen, ChosenEnds};
use crate::processes::{Process, Processes};
use crate::ring::Ring;
use crate::sockets::{TcpSocket, tcp_sockets};
use crate::told::{Held, SCHEMA, Summary, Told};

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The packet socket was refused.
    #[error(
        "not permitted to hear this host's packets; that needs CAP_NET_RAW, so run it as root (for example with sudo)"
    )]
    Privilege,
    /// The process that was asked for is not there, or cannot be seen.
    #[error("the network of process {pid}: {source}; to see it takes the same user, or root")]
    Process {
        /// Its number.
        pid: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The cgroup that was asked for is not there.
    #[error("cgroup {path}: {source}")]
    Cgroup {
        /// Its folder.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A watch that is under way.
pub struct Watch {
    ring: Ring,
    live: LiveDiagnosis,
    ends: ChosenEnds,
    processes: Processes,
    began: Instant,
    looked: Instant,
    /// Frames when it was last looked.
    frames: u64,
    latest: Time,
    /// Held writes told so far, and their seconds, by direction.
    told: BTreeMap<[Endpoint; 2], (u64, f64)>,
}

/// A socket as it is at the moment, with what was told of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Watched {
    /// The socket.
    pub socket: TcpSocket,
    /// Whose it is, where that can be seen.
    pub process: Option<Process>,
    /// Writes held so far.
    pub count: u64,
    /// How long, summed, seconds.
    pub seconds: f64,
}

impl Watch {
    /// Begins to watch the connections that are `chosen`, in the network namespace of the chosen process, else in that
    /// of the calling thread; the thread stays there.
    #[expect(clippy::disallowed_methods, reason = "the real world's clock")]
    pub fn begin(chosen: &Chosen) -> Result<Self, WatchError> {
        if let Some(pid) = chosen.pid {
            enter_network_of(pid).map_err(|source| WatchError::Process { pid, source })?;
        }
        if let Some(path) = &chosen.cgroup {
            chosen.processes().map_err(|source| WatchError::Cgroup {
                path: path.display().to_string(),
                source,
            })?;
        }
        let ring = Ring::open(chosen.port).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => WatchError::Privilege,
            _ => WatchError::System { doing: "open a packet socket with a ring", source },
        })?;
        let mut ends = ChosenEnds::new(chosen.clone());
        ends.look();
        let now = Instant::now();
        Ok(Self {
            ring,
            live: LiveDiagnosis::default(),
            ends,
            processes: Processes::default(),
            began: now,
            looked: now,
            frames: 0,
            latest: Time::ZERO,
            told: BTreeMap::new(),
        })
    }

    /// Waits for frames, at most a quarter of a second, and tells what is new.
    #[expect(clippy::disallowed_methods, reason = "the real world's clock")]
    pub fn turn(&mut self) -> Result<Vec<Told>, WatchError> {
        let doing = "wait for packets";
        self.ring
            .wait(LOOK_MILLIS as u16)
            .map_err(|source| WatchError::System { doing, source })?;
        self.take_frames();
        let now = Instant::now();
        let due = now.duration_since(self.looked) >= Duration::from_millis(LOOK_MILLIS);
        if !due || self.live.frames().0 == self.frames {
            return Ok(Vec::new());
        }
        self.looked = now;
        self.frames = self.live.frames().0;
        self.ends.look();
        let news = self.live.look(|ends| self.ends.has(*ends));
        let time = self.latest.as_secs_f64();
        if self.told.len() > TOLD_MAX {
            self.told.clear();
        }
        let told = news.into_iter().map(|news| {
            let sum = self.told.entry([news.from, news.to]).or_default();
            *sum = (sum.0 + news.count, sum.1 + news.seconds);
            let held = held(
                &mut self.processes,
                [news.from, news.to],
                news.mechanism,
                (news.count, news.seconds),
            );
            Told::Stall { schema: SCHEMA, time, held }
        });
        Ok(told.collect())
    }

    /// How long it has been watched.
    #[expect(clippy::disallowed_methods, reason = "the real world's clock")]
    pub fn watched(&self) -> Duration {
        Instant::now().duration_since(self.began)
    }

    /// Frames of TCP heard so far, and frames that the kernel had no room for.
    pub fn frames(&mut self) -> (u64, u64) {
        (self.live.frames().1, self.ring.dropped())
    }

    /// The chosen connections' sockets as they are, the most stalled first.
    pub fn sockets(&mut self) -> Result<Vec<Watched>, WatchError> {
        let doing = "ask the kernel for its sockets";
        let sockets = tcp_sockets().map_err(|source| WatchError::System { doing, source })?;
        self.processes.note(&sockets);
        let mut watched = Vec::new();
        for socket in sockets {
            let ends = [socket.local, socket.remote];
            if !socket.listens && socket.inode > 0 && self.ends.has(ends) {
                let process = self.processes.of(socket.local, socket.remote).cloned();
                let (count, seconds) = self.told.get(&ends).copied().unwrap_or_default();
                watched.push(Watched { socket, process, count, seconds });
            }
        }
        watched.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Ok(watched)
    }

    /// Ends the watch: the whole of it, and the diagnosis behind it.
    pub fn finish(mut self) -> (Summary, Diagnosis) {
        let watched_s = self.watched().as_secs_f64();
        self.take_frames();
        self.ends.look();
        let (frames, dropped) = self.frames();
        let limit = (dropped > 0).then(|| {
            format!(
                "{dropped} frames were dropped because the watch did not keep up ({frames} were judged): stalls may \
                 be missing, and some may be misjudged. Narrow it with --port."
            )
        });
        let Self { live, ends, mut processes, .. } = self;
        let diagnosis = live.finish(|pair| ends.has(*pair), limit);
        let mut stalls: Vec<Held> = Vec::new();
        for direction in diagnosis.flows.iter().flat_map(|flow| &flow.directions) {
            let (Some(from), Some(to)) = (endpoint(&direction.from), endpoint(&direction.to))
            else {
                continue;
            };
            for stall in &direction.stalls {
                let amount = (stall.count, stall.seconds);
                stalls.push(held(&mut processes, [from, to], stall.mechanism, amount));
            }
        }
        stalls.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let summary = Summary {
            schema: SCHEMA,
            complete: true,
            watched_s,
            frames,
            dropped,
            connections: diagnosis.capture.connections,
            count: stalls.iter().map(|held| held.count).sum(),
            seconds: stalls.iter().fold(0.0, |sum, held| sum + held.seconds),
            stalls,
            verdict: diagnosis.verdict.clone(),
            checks: Vec::new(),
        };
        (summary, diagnosis)
    }

    fn take_frames(&mut self) {
        let Self { ring, live, latest, .. } = self;
        // Not more than the ring holds: a flood does not keep the watch from looking.
        for _ in 0..BLOCKS_AT_ONCE {
            let taken = ring.take_block(|frame| {
                *latest = (*latest).max(frame.time);
                live.on_frame(frame.time, LinkType::RAW, frame.original_len, frame.bytes);
            });
            if !taken {
                break;
            }
        }
    }
}

/// Held writes with the processes at both ends, and what mends them.
fn held(
    processes: &mut Processes,
    [from, to]: [Endpoint; 2],
    mechanism: Mechanism,
    (count, seconds): (u64, f64),
) -> Held {
    let sender = processes.of(from, to).cloned();
    let receiver = processes.of(to, from).cloned();
    let fix = match (&sender, &receiver, mechanism) {
        (Some(process), ..) => Some(format!("acklab fix --pid {} --nodelay", process.pid)),
        (None, Some(process), Mechanism::DelayedAckTimer) => {
            Some(format!("acklab fix --pid {} --delack-max 8ms", process.pid))
        }
        _ => None,
    };
    Held {
        from: from.to_string(),
        to: to.to_string(),
        pid: sender.as_ref().map(|process| process.pid),
        process: sender.map(|process| process.name),
        peer_pid: receiver.as_ref().map(|process| process.pid),
        peer_process: receiver.map(|process| process.name),
        mechanism,
        count,
        seconds,
        fix,
    }
}

/// Reads `ip:port` back.
fn endpoint(text: &str) -> Option<Endpoint> {
    let address: std::net::SocketAddr = text.parse().ok()?;
    Some(Endpoint { addr: address.ip(), port: address.port() })
}

/// Moves the calling thread into the network namespace of a process, if it is not there already.
pub(crate) fn enter_network_of(pid: u32) -> io::Result<()> {
    let theirs = format!("/proc/{pid}/ns/net");
    if std::fs::read_link(&theirs)? == std::fs::read_link("/proc/thread-self/ns/net")? {
        return Ok(());
    }
    Ok(setns(File::open(theirs)?, CloneFlags::CLONE_NEWNET)?)
}

/// How often what is new is looked for.
const LOOK_MILLIS: u64 = 250;
/// Directions whose sums are remembered for the sockets' view.
const TOLD_MAX: usize = 65_536;
/// As many blocks as the ring has.
const BLOCKS_AT_ONCE: usize = 64;
