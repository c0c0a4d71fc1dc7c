//! The sender's process: listens, writes the messages, and captures its own wire.

#![expect(clippy::disallowed_methods, reason = "a sender in the real world waits for its time")]

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use acklab_core::quantiles::Quantiles;
use acklab_core::time::Span;
use acklab_net::tap::{Frames, Tap};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use serde::{Deserialize, Serialize};

use super::process::{PORT, address_in, run_in_time, tell};
use crate::exchange::{Exchange, Segment};
use crate::nagle::Experiment;

/// What the sender knows at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    /// All but what the receiver read.
    pub(super) exchange: Exchange,
    pub(super) lost_frames: u32,
    /// How late the writes were against their period, ns: p50, p99, max.
    pub(super) late: [u64; 3],
    /// The longest step of the time of day against the monotonic clock from one message to the next, ns.
    pub(super) clock_moved: u64,
    pub(super) fifo: bool,
    pub(super) congestion: String,
}

/// Does the sender's part of `experiment` in the namespace that it is in; returns the exit status.
pub fn run(experiment: &Experiment) -> i32 {
    // The emulator asks it to end when the receiver has; it ends by itself, with its result.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    let _ = signals.thread_block();
    tell(work(experiment))
}

fn work(experiment: &Experiment) -> io::Result<Sent> {
    let tap = Tap::open(Frames::Both)?;
    let done = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&done);
    let local = SocketAddr::new(address_in("ACKLAB_LOCAL")?, PORT);
    let capture = thread::spawn(move || capture(tap, local, &over));
    let listener = TcpListener::bind(local)?;
    let mut stream = accept(&listener)?;
    stream.set_nodelay(!experiment.nagle)?;
    stream.set_read_timeout(Some(Duration::from_nanos(experiment.rtt * 8) + PATIENCE))?;
    // That of the guest in virtual time, and not what this machine happens to have set.
    let _ = setsockopt(&stream, sockopt::TcpCongestion, &OsString::from("cubic"));
    let congestion = getsockopt(&stream, sockopt::TcpCongestion)?.to_string_lossy().into_owned();
    let fifo = run_in_time();
    let Written { stamps, late, clock_moved } = write(experiment, &mut stream)?;
    let ends = [local, stream.peer_addr()?];
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes when it has read everything.
    let mut rest = [0; 16];
    while stream.read(&mut rest)? > 0 {}
    done.store(true, Ordering::Relaxed);
    let (segments, lost_frames) =
        capture.join().map_err(|_| io::Error::other("the capture's thread panicked"))??;
    let exchange = Exchange {
        ends,
        writes: stamps.iter().map(|(of_day, _)| (*of_day, experiment.message)).collect(),
        monotonic: stamps.iter().map(|(_, monotonic)| *monotonic).collect(),
        reads: Vec::new(),
        segments,
    };
    Ok(Sent {
        exchange,
        lost_frames,
        late,
        clock_moved,
        fifo,
        congestion: congestion.trim_end_matches('\0').to_owned(),
    })
}

/// The receiver's connection, if it comes in time.
fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let mut waits = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let limit = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
    match poll(&mut waits, limit)? {
        0 => Err(io::Error::other("no receiver connected")),
        _ => Ok(listener.accept()?.0),
    }
}

/// What the writes were.
struct Written {
    /// Just before each: time of day, and time of the monotonic clock since the connection, ns.
    stamps: Vec<(u64, u64)>,
    late: [u64; 3],
    clock_moved: u64,
}

fn write(experiment: &Experiment, stream: &mut TcpStream) -> io::Result<Written> {
    let content = vec![0x61; experiment.message as usize];
    let connected = Instant::now();
    let mut stamps: Vec<(u64, u64)> = Vec::with_capacity(experiment.messages as usize);
    let mut late = Quantiles::default();
    for index in 0..experiment.messages {
        let due = connected + Duration::from_nanos(experiment.phase + experiment.period * index);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let monotonic = Instant::now();
        let of_day = SystemTime::now();
        stream.write_all(&content)?;
        let since = of_day.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        stamps
            .push((since.as_nanos() as u64, monotonic.duration_since(connected).as_nanos() as u64));
        late.record(Span::from_nanos(monotonic.duration_since(due).as_nanos() as u64));
    }
    // From one message to the next: a clock that is steered moves by less.
    let offsets: Vec<u64> =
        stamps.iter().map(|(of_day, monotonic)| of_day.wrapping_sub(*monotonic)).collect();
    let steps = offsets.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    let clock_moved = steps.max().unwrap_or(0);
    let late = [late.quantile(0.5), late.quantile(0.99), late.max()].map(Span::as_nanos);
    Ok(Written { stamps, late, clock_moved })
}

/// Every segment until it is over and nothing more comes.
fn capture(mut tap: Tap, sender: SocketAddr, over: &AtomicBool) -> io::Result<(Vec<Segment>, u32)> {
    let mut segments = Vec::new();
    loop {
        match tap.poll_frame()? {
            Some((time, bytes)) => {
                segments.extend(Segment::of_packet(time.as_nanos(), sender, bytes));
            }
            None if over.load(Ordering::Relaxed) => return Ok((segments, tap.lost_frames())),
            None => {}
        }
    }
}

/// A receiver that does not connect, or does not close, in this time never will.
const PATIENCE: Duration = Duration::from_secs(30);
