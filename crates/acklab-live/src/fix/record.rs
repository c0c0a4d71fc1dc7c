//! What was changed, written down before it is, so that it can be taken back by another run of this program.
//!
//! One file per fix in `/run/acklab` (gone with a reboot, as what it tells of is), or in `$XDG_RUNTIME_DIR/acklab` of a
//! user who may not write there; `ACKLAB_RUN_DIR` names another folder.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::open::OpenSocket;
use super::remedy::FixError;
use super::{cgroup, open, route};
use crate::chosen::Chosen;
use crate::watch::enter_network_of;

/// A fix: what was asked, and every step with what was there before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) words: String,
    pub(super) pid: Option<u32>,
    pub(super) port: Option<u16>,
    pub(super) cgroup: Option<PathBuf>,
    /// The socket option and the value that it was given.
    pub(super) option: i32,
    pub(super) after: i32,
    pub(super) sockets: Vec<OpenSocket>,
    /// Folder of the cgroup and name of the program.
    pub(super) program: Option<(PathBuf, String)>,
    pub(super) routes: Vec<Vec<String>>,
    /// The network namespace of the routes, by its inode.
    pub(super) network: u64,
}

/// The network namespace of the calling thread.
pub(super) fn network() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").map_or(0, |network| network.ino())
}

/// What was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undone {
    /// Each step in words.
    pub steps: Vec<String>,
    /// What could not be, and why; its record is kept.
    pub failed: Vec<String>,
}

impl Record {
    /// Writes it to a file of its own.
    pub(super) fn write(&self) -> Result<PathBuf, FixError> {
        let folder = folder();
        let doing = || format!("write down in {} what is to be changed", folder.display());
        let system = |source| FixError::System { doing: doing(), source };
        fs::create_dir_all(&folder).map_err(system)?;
        let json = serde_json::to_vec_pretty(self).map_err(|error| system(error.into()))?;
        for number in 1.. {
            let path = folder.join(format!("fix-{number}.json"));
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let done = file.write_all(&json).and_then(|()| file.sync_all());
                    return done.map(|()| path).map_err(system);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(system(error)),
            }
        }
        Err(system(io::ErrorKind::QuotaExceeded.into()))
    }

    /// Writes it in place of what stands there: the old one or the new one is there at any time.
    pub(super) fn write_again(&self, path: &Path) -> Result<(), FixError> {
        let doing = || format!("write down in {} what is to be changed", path.display());
        let system = |source| FixError::System { doing: doing(), source };
        let json = serde_json::to_vec_pretty(self).map_err(|error| system(error.into()))?;
        let new = path.with_extension("new");
        fs::write(&new, json).and_then(|()| fs::rename(&new, path)).map_err(system)
    }

    /// Whether it is what `chosen` names; where nothing is named, all are.
    fn is_of(&self, chosen: &Chosen) -> bool {
        chosen.pid.is_none_or(|pid| self.pid == Some(pid))
            && chosen.port.is_none_or(|port| self.port == Some(port))
            && chosen.cgroup.as_ref().is_none_or(|cgroup| self.cgroup.as_ref() == Some(cgroup))
    }

    fn undo(&self, undone: &mut Undone) -> bool {
        let failed = undone.failed.len();
        for socket in &self.sockets {
            match open::set(socket, self.option, socket.before) {
                Ok(true) => {
                    undone.steps.push(format!("{}: as it was ({})", socket.ends, socket.before));
                }
                // The connection is over.
                Ok(false) => {}
                Err(error) => undone.failed.push(format!("{}: {error}", socket.ends)),
            }
        }
        if let Some((folder, name)) = &self.program {
            match cgroup::detach(folder, name) {
                Ok(0) => {}
                Ok(_) => undone.steps.push(format!("{name} detached from {}", folder.display())),
                Err(error) => undone.failed.push(error.to_string()),
            }
        }
        // A process that is gone leaves no network to mend, or one that is not to be found.
        let there = self.pid.is_none_or(|pid| enter_network_of(pid).is_ok());
        if there && !self.routes.is_empty() && network() != self.network {
            undone
                .failed
                .push("its routes are in another network namespace: undo it there".to_owned());
            return false;
        }
        for route in self.routes.iter().filter(|_| there) {
            let words = route::without(route);
            match route::ip(&words) {
                Ok(_) => undone.steps.push(format!("ip {}", words.join(" "))),
                Err(error) if error.to_string().contains("No such process") => {}
                Err(error) => undone.failed.push(format!("ip {}: {error}", words.join(" "))),
            }
        }
        undone.failed.len() == failed
    }
}

/// Takes back every fix of what is `chosen`; where nothing is, all of them, and programs of acklab that no record tells
/// of.
pub fn undo(chosen: &Chosen) -> Undone {
    let mut undone = Undone::default();
    for (path, record) in written() {
        let record = match record {
            Ok(record) if record.is_of(chosen) => record,
            Ok(_) => continue,
            // Written before the first step: one that was not finished tells of nothing that was done.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let _ = fs::remove_file(&path);
                continue;
            }
            Err(error) => {
                undone.failed.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        // On a thread of its own, which may go into another network.
        let _ = fs::remove_file(path.with_extension("new"));
        let all = std::thread::scope(|scope| scope.spawn(|| record.undo(&mut undone)).join());
        if all.unwrap_or(false)
            && let Err(error) = fs::remove_file(&path)
        {
            undone.failed.push(format!("{}: {error}", path.display()));
        }
    }
    if *chosen == Chosen::default() {
        for (folder, name) in cgroup::attached() {
            if cgroup::detach(&folder, &name).is_ok_and(|count| count > 0) {
                undone.steps.push(format!("{name} detached from {}", folder.display()));
            }
        }
    }
    undone
}

/// The fixes that are in force, one line each.
pub fn records() -> Vec<String> {
    let line = |(path, record): (PathBuf, io::Result<Record>)| match record {
        Ok(Record { words, pid, port, cgroup, sockets, program, routes, .. }) => {
            let mut line = words;
            line.extend(pid.iter().map(|pid| format!(" --pid {pid}")));
            line.extend(port.iter().map(|port| format!(" --port {port}")));
            line.extend(cgroup.iter().map(|path| format!(" --cgroup {}", path.display())));
            line.extend([format!(": {} sockets", sockets.len())]);
            line.extend(
                program.iter().map(|(folder, name)| format!(", {name} on {}", folder.display())),
            );
            line.extend(routes.iter().map(|route| format!(", ip {}", route.join(" "))));
            line
        }
        Err(error) => format!("{}: {error}", path.display()),
    };
    let recorded: Vec<(PathBuf, String)> =
        written().into_iter().filter_map(|(_, record)| record.ok()?.program).collect();
    let unrecorded = cgroup::attached().into_iter().filter(|found| !recorded.contains(found));
    let unrecorded = unrecorded.map(|(folder, name)| format!("{name} on {}", folder.display()));
    written().into_iter().map(line).chain(unrecorded).collect()
}

/// All records, in order of their names.
fn written() -> Vec<(PathBuf, io::Result<Record>)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).into_iter().flatten().flatten().map(|e| e.path()).collect();
    // One that was being written anew when its program was killed is no record.
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let record = fs::read(&path).and_then(|json| Ok(serde_json::from_slice(&json)?));
        (path, record)
    };
    paths.into_iter().map(read).collect()
}

fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("ACKLAB_RUN_DIR") {
        return folder.into();
    }
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !root => PathBuf::from(folder).join("acklab"),
        _ => PathBuf::from("/run/acklab"),
    }
}
