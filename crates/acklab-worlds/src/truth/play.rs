//! One end of a conversation as a process: it connects or is connected to, plays its script, logs each call, and
//! captures its own wire.

#![expect(
    clippy::disallowed_methods,
    reason = "a program in the real world waits for its time and stamps its calls"
)]

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::TcpStreamExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use acklab_core::segment::Flags;
use acklab_core::time::Time;
use acklab_core::wire::parse_tcp;
use acklab_net::tap::{Frames, Tap};
use acklab_net::tcp::{Driver, Handle, Payload, Taker};
use acklab_tcp::{Nagle, System};
use acklab_trace::capture::{CaptureWriter, LinkType, WriterOptions};
use nix::libc::MSG_MORE;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, send, setsockopt, socketpair, sockopt,
};

use super::script::{Call, Case, End, Logged, Step};
use crate::foreign;

/// Plays end `which` of `case` in the namespace that it is in, and writes to standard output a line of JSON with its log or
/// the reason why there is none, and then its capture; returns the exit status.
pub fn run(case: &Case, which: usize, connects: bool) -> i32 {
    // The emulator asks a server to end when its client has; it ends by itself, with its result.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    let _ = signals.thread_block();
    let _ = prctl::set_timerslack(1);
    let end = &case.ends[which];
    let first = case.closes == which;
    let played = match end.foreign.as_deref() {
        Some(system) => acklab(end, system, first),
        None => kernel(end, connects, case.ends[1 - which].foreign.is_some(), first),
    };
    let mut out = io::stdout().lock();
    let told = match played {
        Ok(Played { mut log, frames }) => {
            log.sort_by_key(|call| call.at);
            tell(&mut out, &Ok(log), frames)
        }
        Err(error) => tell(&mut out, &Err(error.to_string()), Vec::new()).and(Err(error)),
    };
    i32::from(told.is_err())
}

/// What an end knows afterwards.
struct Played {
    log: Vec<Logged>,
    frames: Vec<(Time, Vec<u8>)>,
}

fn tell(
    out: &mut impl Write,
    log: &Result<Vec<Logged>, String>,
    mut frames: Vec<(Time, Vec<u8>)>,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, log)?;
    out.write_all(b"\n")?;
    // Each processor stamps by itself, and reads come in the order of the queue.
    frames.sort_by_key(|(at, _)| *at);
    let options = WriterOptions { link: LinkType::RAW, ..WriterOptions::default() };
    let mut writer = CaptureWriter::new(out, options)?;
    for (at, frame) in frames {
        writer.write_frame(at, &frame, frame.len() as u32)?;
    }
    writer.finish().map(drop)
}

/// The kernel's TCP.
fn kernel(end: &End, connects: bool, peer_is_acklab: bool, first: bool) -> io::Result<Played> {
    for (name, value) in &end.controls {
        fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?;
    }
    let tap = Tap::open(Frames::Both)?;
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let capture = thread::spawn(move || capture(tap, &until));
    let stream = if connects {
        let remote = if peer_is_acklab { IpAddr::V4(OURS) } else { address_in("ACKLAB_REMOTE")? };
        let stream = TcpStream::connect_timeout(&SocketAddr::new(remote, PORT), PATIENCE)?;
        choose(&stream, end)?;
        stream
    } else {
        let listener = TcpListener::bind(SocketAddr::new(address_in("ACKLAB_LOCAL")?, PORT))?;
        choose(&listener, end)?;
        if let Some(bytes) = end.receive_buffer {
            setsockopt(&listener, sockopt::RcvBuf, &(bytes as usize))?;
        }
        listener.accept()?.0
    };
    stream.set_nodelay(end.nodelay)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let log = play(end, &stream)?;
    let close = |log: &Log| {
        let at = now();
        stream.shutdown(Shutdown::Write)?;
        log.note(at, Call::Close);
        Ok::<(), io::Error>(())
    };
    if first {
        close(&log)?;
    }
    while log.read(&mut (&stream), end.quickack.then_some(&stream), usize::MAX)? > 0 {}
    if !first {
        close(&log)?;
    }
    drop(stream);
    over.store(true, Ordering::Relaxed);
    let frames =
        capture.join().map_err(|_| io::Error::other("the capture's thread panicked"))??;
    Ok(Played { log: log.take(), frames })
}

/// The congestion control that a socket is to have.
fn choose(socket: &impl AsFd, end: &End) -> io::Result<()> {
    match &end.congestion {
        Some(name) => Ok(setsockopt(socket, sockopt::TcpCongestion, &name.into())?),
        None => Ok(()),
    }
}

/// Every frame until it is over and nothing more comes.
fn capture(mut tap: Tap, over: &AtomicBool) -> io::Result<Vec<(Time, Vec<u8>)>> {
    let mut frames = Vec::new();
    loop {
        match tap.poll_frame()? {
            Some((time, bytes)) => frames.push((time, bytes.to_vec())),
            None if over.load(Ordering::Relaxed) => break,
            None => {}
        }
    }
    match tap.lost_frames() {
        0 => Ok(frames),
        lost => Err(io::Error::other(format!("{lost} frames were not captured"))),
    }
}

/// acklab's TCP behind a TUN device: it connects, and the program talks to it over two pairs of local sockets. That for
/// writes keeps their boundaries.
fn acklab(end: &End, system: &str, first: bool) -> io::Result<Played> {
    let system: System = system.parse().map_err(io::Error::other)?;
    fs::write(FORWARDING, "1")?;
    let device = foreign::device(OURS.into(), ITS_END.into()).map_err(io::Error::other)?;
    let mut config = foreign::config(OURS.into(), system, 0.37);
    if end.nodelay {
        config.nagle = Nagle::Off;
    }
    let host = foreign::host_of(OURS.into(), config);
    let remote = SocketAddr::new(address_in("ACKLAB_REMOTE")?, PORT);
    let (ours, its) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    let (reading, taking) = UnixStream::pair()?;
    reading.set_read_timeout(Some(PATIENCE))?;
    let (heard, ears) = mpsc::channel();
    let playing = {
        let end = end.clone();
        thread::spawn(move || program(&end, ours, reading, first, &ears))
    };
    let mut frames = Vec::new();
    let mut on_frame = |at: Time, frame: &[u8]| {
        frames.push((at, frame.to_vec()));
        if let Ok(packet) = parse_tcp(frame)
            && packet.source == remote
        {
            let _ = heard.send(packet.segment.flags);
        }
    };
    let mut handles = Some([File::from(its), File::from(OwnedFd::from(taking))]);
    let content = || {
        let [from, to] = handles
            .take()
            .ok_or_else(once)
            .and_then(both)
            .map_err(acklab_net::tcp::PayloadError::Read)?;
        Ok(Payload::new(Some(from), Taker::File(to)))
    };
    let mut driver = Driver::new(device, host, content, &mut on_frame);
    driver.connect(remote).map_err(io::Error::other)?;
    driver.run(Some(1), &AtomicBool::new(false)).map_err(io::Error::other)?;
    drop(heard);
    let log = playing.join().map_err(|_| io::Error::other("the program's thread panicked"))??;
    Ok(Played { log, frames })
}

fn once() -> io::Error {
    io::Error::other("a second stream")
}

fn both([from, to]: [File; 2]) -> io::Result<[Handle; 2]> {
    Ok([Handle::new(from)?, Handle::new(to)?])
}

/// The program in front of acklab's TCP. It begins with the peer's SYN and hears of its FIN.
fn program(
    end: &End,
    writing: OwnedFd,
    reading: UnixStream,
    first: bool,
    ears: &mpsc::Receiver<Flags>,
) -> io::Result<Vec<Logged>> {
    let gone = |_| io::Error::other("the peer was not heard");
    ears.recv_timeout(PATIENCE).map_err(gone)?;
    let writing = File::from(writing);
    let ends = Local { writing, reading };
    let log = play_local(end, &ends)?;
    if !first {
        while !ears.recv_timeout(PATIENCE).map_err(gone)?.has(Flags::FIN) {}
    }
    let Local { writing, reading } = ends;
    log.note(now(), Call::Close);
    drop(writing);
    while log.read(&mut (&reading), None, usize::MAX)? > 0 {}
    Ok(log.take())
}

/// A program's two local sockets.
struct Local {
    writing: File,
    reading: UnixStream,
}

/// The calls so far; tracks share it.
#[derive(Default)]
struct Log(Mutex<Vec<Logged>>);

impl Log {
    fn note(&self, at: u64, call: Call) {
        let logged = Logged { at, done: now(), call };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(logged);
    }

    fn take(self) -> Vec<Logged> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call that reads at most `most` bytes.
    fn read(
        &self,
        from: &mut impl Read,
        quick: Option<&TcpStream>,
        most: usize,
    ) -> io::Result<usize> {
        let mut buffer = vec![0; 1 << 16];
        let most = most.min(buffer.len());
        let at = now();
        let bytes = from.read(&mut buffer[..most])?;
        if bytes > 0 {
            self.note(at, Call::Read(bytes as u32));
        }
        if let Some(stream) = quick {
            stream.set_quickack(true)?;
        }
        Ok(bytes)
    }
}

/// Plays over a socket of the kernel's TCP.
fn play(end: &End, stream: &TcpStream) -> io::Result<Log> {
    let special = |step, content: &[u8]| match step {
        Step::Nodelay(on) => stream.set_nodelay(on).map(|()| 0),
        _ => Ok(send(stream.as_raw_fd(), content, MsgFlags::from_bits_retain(MSG_MORE))?),
    };
    let quick = end.quickack.then_some(stream);
    if let Some(stream) = quick {
        stream.set_quickack(true)?;
    }
    tracks(end, || stream, || stream, quick, special)
}

/// Plays over acklab's TCP, whose options are those of its start.
fn play_local(end: &End, ends: &Local) -> io::Result<Log> {
    tracks(
        end,
        || &ends.writing,
        || &ends.reading,
        None,
        |_, _| Err(io::Error::other("acklab's TCP takes its options at the start")),
    )
}

/// Runs all tracks to their ends.
fn tracks<W: Write, R: Read>(
    end: &End,
    to: impl Fn() -> W + Sync,
    from: impl Fn() -> R + Sync,
    quick: Option<&TcpStream>,
    special: impl Fn(Step, &[u8]) -> io::Result<usize> + Sync,
) -> io::Result<Log> {
    let log = Log::default();
    let began = Instant::now();
    let one = |steps: &[Step]| -> io::Result<()> {
        let (mut to, mut from) = (to(), from());
        let content = content();
        let mut written = 0;
        for &step in steps {
            match step {
                Step::Sleep(nanos) => thread::sleep(Duration::from_nanos(nanos)),
                Step::Until(nanos) => {
                    thread::sleep(Duration::from_nanos(nanos).saturating_sub(began.elapsed()));
                }
                Step::Write(bytes) | Step::WriteMore(bytes) => {
                    let start = written % (content.len() / 2);
                    let mut left = &content[start..][..bytes as usize];
                    written += bytes as usize;
                    let more = matches!(step, Step::WriteMore(_));
                    let at = now();
                    while !left.is_empty() {
                        let taken = if more { special(step, left)? } else { to.write(left)? };
                        left = &left[taken..];
                    }
                    log.note(at, if more { Call::WriteMore(bytes) } else { Call::Write(bytes) });
                }
                Step::Read(bytes) => {
                    let mut left = bytes as usize;
                    while left > 0 {
                        match log.read(&mut from, quick, left)? {
                            0 => return Err(io::Error::other("the peer closed too early")),
                            read => left -= read,
                        }
                    }
                }
                Step::Nodelay(on) => {
                    let at = now();
                    special(step, &[])?;
                    log.note(at, Call::Nodelay(on));
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let running: Vec<_> = end.tracks.iter().map(|steps| scope.spawn(|| one(steps))).collect();
        running.into_iter().try_for_each(|track| {
            track.join().map_err(|_| io::Error::other("a track's thread panicked"))?
        })
    })?;
    Ok(log)
}

/// Bytes that no dissector of message boundaries knows.
fn content() -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..2 * LONGEST_WRITE).map(next).collect()
}

/// The time of day, as captures have it, ns.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

/// The address that the emulator says in the environment.
fn address_in(variable: &str) -> io::Result<IpAddr> {
    let address = env::var(variable).ok().and_then(|address| address.parse().ok());
    address.ok_or_else(|| io::Error::other(format!("{variable} says no address")))
}

/// acklab's address, on the network of the emulated link, and that of the kernel's end of its device.
pub(super) const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const ITS_END: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);
/// In the namespace of the process that writes it.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
/// The listener's port.
const PORT: u16 = 5000;
/// A peer that does nothing in this time never will.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that one call writes at most.
const LONGEST_WRITE: usize = 1 << 18;
