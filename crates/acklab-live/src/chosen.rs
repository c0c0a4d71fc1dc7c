//! Which connections are meant: those of a process, of a cgroup, of a port; all of them where nothing is chosen, and
//! those that all choices hold for where several are.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use acklab_trace::segment::Endpoint;

use crate::processes;
use crate::sockets::tcp_sockets;

/// The connections that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Of this process.
    pub pid: Option<u32>,
    /// With this port at one of the ends.
    pub port: Option<u16>,
    /// Of the processes in this cgroup and below it.
    pub cgroup: Option<PathBuf>,
}

impl Chosen {
    /// The processes that are meant; `None` where all are.
    pub(crate) fn processes(&self) -> io::Result<Option<BTreeSet<u32>>> {
        let of_cgroup = self.cgroup.as_deref().map(processes::of_cgroup).transpose()?;
        Ok(match (self.pid, of_cgroup) {
            (None, of_cgroup) => of_cgroup,
            (Some(pid), None) => Some(BTreeSet::from([pid])),
            (Some(pid), Some(found)) => Some(found.into_iter().filter(|&p| p == pid).collect()),
        })
    }

    /// Whether the connection has the port that is meant.
    pub(crate) fn has_port(&self, ends: [Endpoint; 2]) -> bool {
        self.port.is_none_or(|port| ends.iter().any(|end| end.port == port))
    }
}

/// The connections of the chosen processes that have been seen so far.
#[derive(Debug)]
pub(crate) struct ChosenEnds {
    chosen: Chosen,
    /// Local and remote end.
    seen: BTreeSet<[Endpoint; 2]>,
}

impl ChosenEnds {
    pub(crate) fn new(chosen: Chosen) -> Self {
        Self { chosen, seen: BTreeSet::new() }
    }

    /// Looks at the sockets of the chosen processes as they are now.
    pub(crate) fn look(&mut self) {
        // A process or cgroup that has gone leaves what was seen of it.
        let Ok(Some(chosen)) = self.chosen.processes() else { return };
        let inodes: BTreeSet<u32> = chosen
            .into_iter()
            .filter_map(|pid| processes::sockets_of(pid).ok())
            .flat_map(std::collections::BTreeMap::into_keys)
            .collect();
        let sockets = tcp_sockets().unwrap_or_default();
        let theirs = sockets.iter().filter(|socket| inodes.contains(&socket.inode));
        self.seen.extend(theirs.map(|socket| [socket.local, socket.remote]));
        if self.seen.len() > SEEN_MAX {
            self.seen.clear();
        }
    }

    /// Whether the connection between these ends is meant.
    pub(crate) fn has(&self, ends: [Endpoint; 2]) -> bool {
        let of_all = self.chosen.pid.is_none() && self.chosen.cgroup.is_none();
        let [a, b] = ends;
        let seen = of_all || self.seen.contains(&[a, b]) || self.seen.contains(&[b, a]);
        seen && self.chosen.has_port(ends)
    }
}

/// Connections that are remembered.
const SEEN_MAX: usize = 65_536;
