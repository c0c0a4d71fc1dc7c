//! The receiver's process: the kernel's TCP, or acklab's with a system's profile behind a TUN device. Either connects
//! to the sender, reads at once what comes, and closes after the sender.

#![expect(clippy::disallowed_methods, reason = "a receiver in the real world stamps what it reads")]

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use acklab_tcp::System;
use serde::{Deserialize, Serialize};

use super::process::{PORT, address_in, run_in_time, tell};
use crate::foreign;
use crate::nagle::Experiment;

/// What the receiver knows at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Received {
    pub(super) bytes: u64,
    /// Time of day, ns; bytes.
    pub(super) reads: Vec<(u64, u32)>,
}

/// Does the receiver's part of `experiment` in the namespace that it is in; returns the exit status.
pub fn run(experiment: &Experiment) -> i32 {
    tell(address_in("ACKLAB_REMOTE").and_then(|address| {
        let sender = SocketAddr::new(address, PORT);
        match experiment.system() {
            System::Linux => kernel(experiment, sender),
            system => acklab(experiment, system, sender),
        }
    }))
}

fn kernel(experiment: &Experiment, sender: SocketAddr) -> io::Result<Received> {
    let mut stream = TcpStream::connect_timeout(&sender, PATIENCE)?;
    run_in_time();
    let pause = experiment.phase + experiment.period + 8 * experiment.rtt;
    stream.set_read_timeout(Some(Duration::from_nanos(pause) + PATIENCE))?;
    let mut received = Received::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let bytes = stream.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(received);
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        received.reads.push((since.as_nanos() as u64, bytes as u32));
        received.bytes += bytes as u64;
    }
}

/// The namespace's kernel passes packets on between the emulated link and acklab's device. All is made before the process
/// asks for real time: a write to `ip_forward` that finds the kernel's lock of network devices taken is begun again
/// at once (`restart_syscall` in `devinet_sysctl_forward`), and would not let the lock's holder run.
fn acklab(experiment: &Experiment, system: System, sender: SocketAddr) -> io::Result<Received> {
    fs::write(FORWARDING, "1")
        .map_err(|e| io::Error::new(e.kind(), format!("{FORWARDING}: {e}")))?;
    let device = foreign::device(OURS.into(), ITS_END.into()).map_err(io::Error::other)?;
    let host = foreign::host(OURS.into(), system, experiment.tick);
    let mut reads = Vec::new();
    let mut hear = foreign::reading(sender, |at, bytes| reads.push((at.as_nanos(), bytes)));
    run_in_time();
    let bytes = foreign::drive(device, host, Some(sender), &mut hear)?;
    drop(hear);
    Ok(Received { bytes, reads })
}

/// acklab's address, on the network of the emulated link, and that of the kernel's end of its device.
const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const ITS_END: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);
/// In the namespace of the process that writes it.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// A sender that does not answer in this time never will.
const PATIENCE: Duration = Duration::from_secs(30);
