//! The first process of an emulated host: it starts the command, reaps, and takes everything with it.
//!
//! The emulator starts itself again in a new PID namespace (pid_namespaces(7)), where this is
//! process 1. When process 1 ends, the kernel kills all others of the namespace, whatever they did to
//! hide; and process 1 is killed when the emulator's thread dies (`PR_SET_PDEATHSIG`). So nothing
//! survives, not even `kill -9` of the emulator. It passes SIGTERM on, and exits with the command's
//! status, or 128 plus the signal that ended it, as shells say it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What a shell says of a command that cannot be started (POSIX, Shell and Utilities 2.8.2).
pub const NOT_STARTED: i32 = 127;

/// Runs `command` as process 1 does, for the emulator that is process `parent`; returns the exit
/// status. For the program that [`super::Emulation::init`] names, and nothing else.
pub fn run(parent: u32, command: &[OsString]) -> i32 {
    match supervise(parent, command) {
        Ok(status) => status,
        Err(error) => {
            let program = command.first().map(|word| word.to_string_lossy().into_owned());
            eprintln!("acklab: emulate: {}: {error}", program.unwrap_or_default());
            NOT_STARTED
        }
    }
}

fn supervise(parent: u32, command: &[OsString]) -> io::Result<i32> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // It may have died before that; /proc is still the one of its namespace.
    if !PathBuf::from(format!("/proc/{parent}")).exists() {
        return Err(io::Error::other("the emulator is gone"));
    }
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGCHLD);
    // Blocked, a signal reaches process 1 although it has no handler (pid_namespaces(7)). The command
    // starts with none blocked: std sees to that.
    signals.thread_block()?;
    let arrivals = SignalFd::new(&signals)?;
    // Without its namespace's /proc the command sees process numbers of another; bearable.
    let _ = own_proc();
    let [program, arguments @ ..] = command else {
        return Err(io::Error::other("no command"));
    };
    let child = Command::new(program).args(arguments).spawn()?;
    loop {
        let Some(signal) = arrivals.read_signal()? else { continue };
        if signal.ssi_signo == Signal::SIGTERM as u32 {
            let _ = kill(pid_of(&child), Signal::SIGTERM);
        } else if let Some(status) = reap(&child)? {
            return Ok(status);
        }
    }
}

/// A /proc of this PID namespace, seen in it alone.
fn own_proc() -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)
}

/// Reaps whoever has ended; the command's status if it is among them.
fn reap(child: &Child) -> io::Result<Option<i32>> {
    let mut ended = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == pid_of(child) => ended = Some(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == pid_of(child) => {
                ended = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(ended),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}
