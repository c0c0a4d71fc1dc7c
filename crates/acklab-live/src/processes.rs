//! Which process has a socket: `/proc/PID/fd` names each socket by its inode, as `sock_diag` does.
//!
//! A look at all processes costs some microseconds per descriptor, so it is taken only when a socket's process is not
//! known yet, and not more often than once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acklab_trace::segment::Endpoint;

use crate::sockets::{TcpSocket, tcp_sockets};

/// A process with a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`).
    pub name: String,
}

/// The name of a process.
pub(crate) fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // Any byte may be in a name; it is shown on a terminal.
    name.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The sockets of a process, by inode, and the descriptor of each.
pub(crate) fn sockets_of(pid: u32) -> io::Result<BTreeMap<u32, i32>> {
    let mut sockets = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let Ok(entry) = entry else { continue };
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let inode = target.to_str().and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']'));
        let (inode, fd) = (inode.and_then(|i| i.parse().ok()), entry.file_name());
        if let (Some(inode), Some(fd)) = (inode, fd.to_str().and_then(|fd| fd.parse().ok())) {
            sockets.insert(inode, fd);
        }
    }
    Ok(sockets)
}

/// All processes that can be seen.
pub(crate) fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes of a cgroup and of those below it.
pub(crate) fn of_cgroup(folder: &Path) -> io::Result<BTreeSet<u32>> {
    let mut processes: BTreeSet<u32> = fs::read_to_string(folder.join("cgroup.procs"))?
        .lines()
        .filter_map(|l| l.parse().ok())
        .collect();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let below = fs::read_to_string(entry.path().join("cgroup.procs"));
                processes.extend(
                    below.unwrap_or_default().lines().filter_map(|l| l.parse::<u32>().ok()),
                );
                folders.push(entry.path());
            }
        }
    }
    Ok(processes)
}

/// Finds the process of a connection's end, and remembers it after the process is gone.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    by_inode: BTreeMap<u32, Process>,
    by_ends: BTreeMap<(Endpoint, Endpoint), Option<Process>>,
    looked: Option<Instant>,
}

impl Processes {
    /// The process whose socket goes from `local` to `remote`, if it is on this host.
    pub(crate) fn of(&mut self, local: Endpoint, remote: Endpoint) -> Option<&Process> {
        if !self.by_ends.contains_key(&(local, remote)) && self.may_look() {
            self.note(&tcp_sockets().unwrap_or_default());
            // Not here, then: not looked for again.
            self.by_ends.entry((local, remote)).or_default();
        }
        self.by_ends.get(&(local, remote)).and_then(Option::as_ref)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the real world's clock limits how often it is asked"
    )]
    fn may_look(&mut self) -> bool {
        let now = Instant::now();
        let may = self.looked.is_none_or(|at| now.duration_since(at) >= AT_LEAST_APART);
        if may {
            self.looked = Some(now);
        }
        may
    }

    /// The processes of these sockets.
    pub(crate) fn note(&mut self, sockets: &[TcpSocket]) {
        let new =
            |socket: &&TcpSocket| socket.inode > 0 && !self.by_inode.contains_key(&socket.inode);
        if sockets.iter().any(|socket| new(&socket)) {
            self.by_inode.clear();
            for pid in all() {
                let Ok(found) = sockets_of(pid) else { continue };
                if !found.is_empty() {
                    let process = Process { pid, name: name_of(pid) };
                    self.by_inode.extend(found.into_keys().map(|inode| (inode, process.clone())));
                }
            }
        }
        if self.by_ends.len() > REMEMBERED_MAX {
            self.by_ends.clear();
        }
        for socket in sockets.iter().filter(|socket| !socket.listens) {
            if let Some(process) = self.by_inode.get(&socket.inode) {
                self.by_ends.insert((socket.local, socket.remote), Some(process.clone()));
            }
        }
    }
}

const AT_LEAST_APART: Duration = Duration::from_millis(250);
/// Connections whose processes are remembered.
const REMEMBERED_MAX: usize = 65_536;
