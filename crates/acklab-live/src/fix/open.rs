//! Sockets that are open already: copied out of their process, looked at, set.
//!
//! The copy is the same socket (`pidfd_getfd(2)`, Linux 5.6), so an option set here is set there; the program notices
//! nothing. It takes the right to trace the process: the same user without capabilities of its own, as far as
//! kernel.yama.ptrace_scope lets, or CAP_SYS_PTRACE.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use nix::libc;
use serde::{Deserialize, Serialize};

use super::remedy::{FixError, SocketOption};
use crate::chosen::Chosen;
use crate::kernel;
use crate::processes;
use crate::sockets::{TcpSocket, tcp_sockets};

/// A socket whose option is to be changed, and what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenSocket {
    /// A process that has it.
    pub(super) pid: u32,
    pub(super) inode: u32,
    /// `SO_COOKIE`: no other socket ever has it.
    pub(super) cookie: u64,
    pub(super) ends: String,
    pub(super) listens: bool,
    pub(super) before: i32,
}

/// The chosen sockets, each once, with the processes that have them.
pub(super) fn chosen_sockets(chosen: &Chosen) -> Result<Vec<(u32, TcpSocket)>, FixError> {
    let system = |doing: &str| {
        let doing = doing.to_owned();
        move |source| FixError::System { doing, source }
    };
    let sockets = tcp_sockets().map_err(system("ask the kernel for its sockets"))?;
    let processes = chosen.processes().map_err(system("look for the processes"))?;
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for pid in processes.unwrap_or_else(|| processes::all().into_iter().collect()) {
        let theirs = match processes::sockets_of(pid) {
            Ok(theirs) => theirs,
            Err(source) if chosen.pid.is_some() => {
                let doing = format!("look at the descriptors of process {pid}");
                return Err(FixError::refused(doing, NEEDS)(source));
            }
            // Gone meanwhile, or another user's.
            Err(_) => continue,
        };
        let of_it = |socket: &&TcpSocket| {
            theirs.contains_key(&socket.inode) && chosen.has_port([socket.local, socket.remote])
        };
        let new = sockets.iter().filter(of_it).filter(|socket| seen.insert(socket.inode));
        found.extend(new.map(|socket| (pid, *socket)));
    }
    Ok(found)
}

/// What is to be changed on these sockets; those that have the value already are left out.
pub(super) fn look(
    sockets: &[(u32, TcpSocket)],
    option: SocketOption,
) -> Result<Vec<OpenSocket>, FixError> {
    let mut found = Vec::new();
    for (pid, socket) in sockets {
        let doing =
            format!("copy the socket {} > {} of process {pid}", socket.local, socket.remote);
        let copy = copy(*pid, socket.inode).map_err(FixError::refused(doing, NEEDS))?;
        // Closed meanwhile.
        let Some(copy) = copy else { continue };
        let doing = || format!("ask for option {} of TCP", option.name);
        let unknown = |source| FixError::System { doing: doing(), source };
        let before = kernel::number(&copy, libc::IPPROTO_TCP, option.name).map_err(unknown)?;
        if before != option.value {
            let (from, to) = (socket.local, socket.remote);
            found.push(OpenSocket {
                pid: *pid,
                inode: socket.inode,
                cookie: cookie(&copy).map_err(unknown)?,
                ends: if socket.listens { format!("{from}") } else { format!("{from} > {to}") },
                listens: socket.listens,
                before,
            });
        }
    }
    Ok(found)
}

/// Sets the option of the socket to `value`, if it still is there.
pub(super) fn set(socket: &OpenSocket, name: i32, value: i32) -> io::Result<bool> {
    let Some(copy) = copy(socket.pid, socket.inode)? else { return Ok(false) };
    if cookie(&copy)? != socket.cookie {
        return Ok(false);
    }
    kernel::set_number(&copy, libc::IPPROTO_TCP, name, value).map(|()| true)
}

/// Whether this kernel takes the option with that value, tried on a socket of ours.
pub(super) fn is_taken(option: SocketOption) -> io::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let flags = SockFlag::SOCK_CLOEXEC;
    let ours = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    kernel::set_number(&ours, libc::IPPROTO_TCP, option.name, option.value)
}

fn copy(pid: u32, inode: u32) -> io::Result<Option<OwnedFd>> {
    let gone = |error: &io::Error| {
        matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT | libc::EBADF))
    };
    let copied = processes::sockets_of(pid).and_then(|sockets| {
        let Some(fd) = sockets.get(&inode) else { return Ok(None) };
        let process = kernel::open_process(pid)?;
        kernel::copy_descriptor(process, *fd).map(Some)
    });
    copied.or_else(|error| if gone(&error) { Ok(None) } else { Err(error) })
}

fn cookie(socket: &OwnedFd) -> io::Result<u64> {
    kernel::option(socket, libc::SOL_SOCKET, SO_COOKIE).map(u64::from_ne_bytes)
}

const NEEDS: &str = "that takes the right to trace the process: its user (see kernel.yama.ptrace_scope), or CAP_SYS_PTRACE, \
     so run it as root (for example with sudo)";
/// asm-generic/socket.h.
const SO_COOKIE: i32 = 57;
