//! An emulated host: a network namespace with one TUN device per path, and the command that runs there.
//!
//! One thread makes the namespace and stays in it; other threads of the process never enter. The host's
//! addresses on path P are 10.77.P.1 and fd77:0:0:P::1 (client) or 10.77.P.2 and fd77:0:0:P::2 (server) on
//! the device `path`P, with routes to these networks and to no other. The command finds the IPv4 addresses
//! in ACKLAB_LOCAL and ACKLAB_REMOTE, separated by spaces, path 0 first, and the IPv6 addresses in
//! ACKLAB_LOCAL6 and ACKLAB_REMOTE6. A kernel without IPv6 does without it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use acklab_core::time::Span;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};

use super::emulation::EmulateError;
use super::environment::{self, Sysctls};
use crate::kernel::{TUN, open_tun};
use crate::namespace;

/// Packets that may wait for the relay: a tenth of a second of full frames at 1 Gbit/s.
const DEVICE_QUEUE: u32 = 10_000;
/// Bits that the IPv4 addresses of one path share.
const PREFIX: u8 = 24;
/// The same of its IPv6 addresses.
const PREFIX6: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    /// The last number of its addresses.
    fn host(self) -> u8 {
        if self == Self::Client { 1 } else { 2 }
    }

    fn address(self, path: u8) -> IpAddr {
        Ipv4Addr::new(10, 77, path, self.host()).into()
    }

    fn address6(self, path: u8) -> IpAddr {
        Ipv6Addr::new(0xfd77, 0, 0, path.into(), 0, 0, 0, self.host().into()).into()
    }

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The addresses of all paths, path 0 first.
fn listed(paths: u8, address: impl Fn(u8) -> IpAddr) -> String {
    let words: Vec<String> = (0..paths).map(|path| address(path).to_string()).collect();
    words.join(" ")
}

/// What a host's thread tells.
#[derive(Debug)]
pub(super) enum Report {
    /// Its devices are up, path by path.
    Ready(Side, Vec<File>),
    /// Its command runs under this process, as the emulator's namespace numbers it.
    Started(Side, u32),
    /// Its command is about to be over: the settings of its network.
    Settings(Side, Sysctls),
    /// Its command is over.
    Ended(Side, Ended),
    /// It could not do its part.
    Failed(EmulateError),
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) status: i32,
    pub(super) seconds: f64,
    /// Packets that found no room in a device because the relay did not read in time.
    pub(super) overrun: u64,
}

/// What a host is to run.
#[derive(Debug)]
pub(super) struct Launch {
    /// Program and arguments that become process 1; the command follows them.
    pub(super) init: Vec<OsString>,
    pub(super) command: Vec<OsString>,
    /// Where its standard output goes, unless it is where this program's own goes.
    pub(super) output: Option<OwnedFd>,
}

/// Lives in the namespace: makes it, waits for what is to be run, and for its end.
pub(super) fn inhabit(side: Side, paths: u8, launch: &Receiver<Launch>, reports: &Sender<Report>) {
    let told = |report| reports.send(report).is_ok();
    let devices = match prepare(side, paths) {
        Ok(devices) => devices,
        Err(error) => {
            told(Report::Failed(error));
            return;
        }
    };
    if !told(Report::Ready(side, devices)) {
        return;
    }
    // A closed channel: there is nothing to run.
    let Ok(launch) = launch.recv() else { return };
    let report = match carry_out(side, paths, launch, reports) {
        Ok(ended) => Report::Ended(side, ended),
        Err(source) => Report::Failed(EmulateError::Start { source }),
    };
    told(report);
}

/// Namespaces and devices.
fn prepare(side: Side, paths: u8) -> Result<Vec<File>, EmulateError> {
    let system = EmulateError::system;
    namespace::enter_new().map_err(system("make a network namespace"))?;
    namespace::loopback_up().map_err(system("bring up the loopback interface"))?;
    let mut devices = Vec::new();
    for path in 0..paths {
        let name = format!("path{path}");
        let doing = "make a TUN device (/dev/net/tun)";
        let (device, _) = open_tun(&name, TUN).map_err(|error| match error.raw_os_error() {
            Some(code) => system(doing)(Errno::from_raw(code)),
            None => system(doing)(Errno::EIO),
        })?;
        let index = if_nametoindex(name.as_str()).map_err(system("find the TUN device"))?;
        namespace::add_address(index, side.address(path), PREFIX)
            .map_err(system("give the TUN device an address"))?;
        // Refused by a kernel that has no IPv6 or is told to do without.
        let _ = namespace::add_address(index, side.address6(path), PREFIX6);
        namespace::interface_up(index, DEVICE_QUEUE, None)
            .map_err(system("bring up the TUN device"))?;
        devices.push(device);
    }
    // Children of this thread, and not the thread itself, live in the new one.
    unshare(CloneFlags::CLONE_NEWPID).map_err(system("make a PID namespace"))?;
    Ok(devices)
}

#[expect(clippy::disallowed_methods, reason = "a command of the real world takes real time")]
fn carry_out(side: Side, paths: u8, launch: Launch, reports: &Sender<Report>) -> io::Result<Ended> {
    let [program, arguments @ ..] = &launch.init[..] else {
        return Err(io::Error::other("no program to be process 1"));
    };
    let mut command = Command::new(program);
    command.args(arguments).args(&launch.command);
    for (name, end) in [("LOCAL", side), ("REMOTE", side.other())] {
        command.env(format!("ACKLAB_{name}"), listed(paths, |path| end.address(path)));
        command.env(format!("ACKLAB_{name}6"), listed(paths, |path| end.address6(path)));
    }
    if side == Side::Server {
        command.stdin(Stdio::null());
    }
    if let Some(output) = launch.output {
        command.stdout(output);
    }
    let began = Instant::now();
    let mut child = command.spawn()?;
    // The one who listens waits for the end; should it be gone, the command still ends by itself.
    let _ = reports.send(Report::Started(side, child.id()));
    let status = child.wait()?;
    let _ = reports.send(Report::Settings(side, environment::sysctls()));
    Ok(Ended {
        status: status.code().unwrap_or(-1),
        seconds: Span::from_nanos(began.elapsed().as_nanos() as u64).as_secs_f64(),
        overrun: overrun(&fs::read_to_string("/proc/thread-self/net/dev")?),
    })
}

/// Packets dropped on their way into the paths' devices: the fourth transmit column of /proc/net/dev
/// (proc_pid_net(5)).
fn overrun(table: &str) -> u64 {
    let columns =
        table.lines().filter_map(|line| line.trim().strip_prefix("path")?.split_once(':'));
    columns.filter_map(|(_, row)| row.split_whitespace().nth(11)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_are_read_from_the_transmit_column() {
        let table = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    9    0     0          0         0      100       2    0    9    0     0       0          0
 path0:     500       5    0    1    0     0          0         0      700       7    0    3    0     0       0          0
 path1:     500       5    0    1    0     0          0         0      700       7    0    4    0     0       0          0
";
        assert_eq!(overrun(table), 7);
    }

    #[test]
    fn both_ends_agree_on_the_addresses() {
        let (client, server) = (Side::Client, Side::Client.other());
        assert_eq!(listed(2, |path| client.address(path)), "10.77.0.1 10.77.1.1");
        assert_eq!(listed(2, |path| server.address(path)), "10.77.0.2 10.77.1.2");
        assert_eq!(listed(2, |path| server.address6(path)), "fd77::2 fd77:0:0:1::2");
    }
}
