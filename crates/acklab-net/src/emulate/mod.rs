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
mod emulation;
mod environment;
mod frame;
mod host;
pub mod init;

mod relay;
mod session;
pub mod vocabulary;

pub use acklab_core::quantiles::Quantiles;
pub use direction::{Direction, Tally};
pub use emulation::{EmulateError, Emulated, Emulation, MAX_PATHS, Output, Path};
pub use environment::{Environment, Sysctls};

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use acklab_core::link::LinkConfig;

use self::host::{Report, Side};
use self::relay::{Relay, Relayed};
use self::session::{Outcome, Session};

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
        let outcome = session.attend(&hosts[0], || relaying.is_finished());
        drop(session);
        drop(running);
        let relayed = relaying.join().map_err(|_| EmulateError::Gone)?;
        let relayed = relayed.map_err(|source| EmulateError::Relay { source })?;
        Ok(summary(outcome?, relayed))
    })
}

/// The devices of client and server, once both are up.
fn devices(inbox: &Receiver<Report>) -> Result<[Vec<File>; 2], EmulateError> {
    let mut devices = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        match inbox.recv().map_err(|_| EmulateError::Gone)? {
            Report::Ready(side, files) => devices[usize::from(side == Side::Server)] = files,
            Report::Failed(error) => return Err(error),
            Report::Started(..) | Report::Settings(..) | Report::Ended(..) => {}
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

fn summary(outcome: Outcome, relayed: Relayed) -> Emulated {
    let Outcome { client, server, server_asked, interrupted, sysctls } = outcome;
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
        environment: Environment::read(sysctls),
    }
}
