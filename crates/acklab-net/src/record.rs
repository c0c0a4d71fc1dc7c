//! Records the Linux kernel's TCP in a write-write-read exchange over a private loopback.
//!
//! One thread enters a fresh network namespace, opens the tap, connects client and server to each
//! other and lets them talk on two more threads while it listens; frames reach the caller
//! through a channel, in the order of their kernel time stamps. The caller's own thread never
//! leaves its namespace. Frames are Ethernet with zero addresses, as loopback has them, and their
//! TCP checksums are not filled in: the kernel leaves them out where no wire is crossed.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

use acklab_core::time::{Span, Time};
use nix::errno::Errno;

use crate::exchange;
use crate::namespace;
use crate::tap::{Frames, Tap};

/// What is to be exchanged while the tap listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// How often the client asks and the server answers.
    pub exchanges: u32,
    /// The client's first write per exchange, bytes.
    pub header_bytes: usize,
    /// The client's second write per exchange, bytes.
    pub body_bytes: usize,
    /// The server's answer, bytes.
    pub reply_bytes: usize,
    /// Sets `TCP_NODELAY` on the client: the exchange with its fault mended.
    pub nodelay: bool,
}

impl RecordOptions {
    /// The sizes of an SMTP BDAT command and its chunk, the textbook case in the wild.
    pub const BDAT: Self =
        Self { exchanges: 40, header_bytes: 10, body_bytes: 129, reply_bytes: 32, nodelay: false };
}

impl Default for RecordOptions {
    /// [`RecordOptions::BDAT`].
    fn default() -> Self {
        Self::BDAT
    }
}

/// Why nothing, or not everything, could be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(
        "{doing}: not permitted; recording needs CAP_SYS_ADMIN and CAP_NET_RAW, so run it as root \
         (for example with sudo)"
    )]
    Privilege { doing: &'static str },
    #[error("{doing}: {errno}")]
    System { doing: &'static str, errno: Errno },
    #[error("the {end} failed: {source}")]
    Exchange {
        /// `client`, `server` or `connection`.
        end: &'static str,
        source: io::Error,
    },
    #[error("{frames} frames were lost because the machine was too busy; record again")]
    Lost { frames: u32 },
}

impl RecordError {
    fn system(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| match errno {
            Errno::EPERM | Errno::EACCES => Self::Privilege { doing },
            errno => Self::System { doing, errno },
        }
    }

    fn exchange(end: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Exchange { end, source }
    }
}

/// Runs the exchange and calls `on_frame` with each frame and its time since the epoch. Once `ended` is set, the exchange
/// that is under way is the last; how many there were.
pub fn run(
    options: &RecordOptions,
    ended: &AtomicBool,
    on_frame: &mut dyn FnMut(Time, &[u8]),
) -> Result<u32, RecordError> {
    let (sender, frames) = mpsc::channel::<(Time, Vec<u8>)>();
    thread::scope(|scope| {
        let recorder = scope.spawn(move || record_in_namespace(options, ended, &sender));
        let mut in_order = InOrder::default();
        for (time, frame) in frames {
            in_order.insert(time, frame);
            in_order.release(time, on_frame);
        }
        in_order.release(Time::MAX, on_frame);
        join(recorder)
    })
}

/// How much later than a frame stamped after it a frame may reach the packet socket. The kernel
/// stamps first and queues then, on each processor by itself; a virtual machine may stop one of
/// them in between.
const LATEST_FRAME: Span = Span::from_millis(500);

/// Frames that wait until none stamped before them can come any more.
#[derive(Default)]
struct InOrder {
    /// Rising in time; equal stamps in order of arrival.
    waiting: VecDeque<(Time, Vec<u8>)>,
}

impl InOrder {
    fn insert(&mut self, time: Time, frame: Vec<u8>) {
        let at = self.waiting.partition_point(|(earlier, _)| *earlier <= time);
        self.waiting.insert(at, (time, frame));
    }

    fn release(&mut self, now: Time, on_frame: &mut dyn FnMut(Time, &[u8])) {
        let ripe = |frame: &mut (Time, Vec<u8>)| now.since(frame.0) > LATEST_FRAME;
        while let Some((time, frame)) = self.waiting.pop_front_if(ripe) {
            on_frame(time, &frame);
        }
    }
}

/// The thread that lives in the namespace: tap first, so that it hears the handshake.
fn record_in_namespace(
    options: &RecordOptions,
    ended: &AtomicBool,
    frames: &mpsc::Sender<(Time, Vec<u8>)>,
) -> Result<u32, RecordError> {
    namespace::enter_new().map_err(RecordError::system("make a network namespace"))?;
    namespace::loopback_up().map_err(RecordError::system("bring up the loopback interface"))?;
    let mut tap =
        Tap::open(Frames::Arriving).map_err(RecordError::system("open a packet socket"))?;
    let ends = exchange::connect(options).map_err(RecordError::exchange("connection"))?;
    let exchanges = listen(&mut tap, ends, options, ended, frames)?;
    match tap.lost_frames() {
        0 => Ok(exchanges),
        frames => Err(RecordError::Lost { frames }),
    }
}

/// Passes frames on until both ends are done and the wire has fallen silent.
fn listen(
    tap: &mut Tap,
    (client, server): (TcpStream, TcpStream),
    options: &RecordOptions,
    ended: &AtomicBool,
    frames: &mpsc::Sender<(Time, Vec<u8>)>,
) -> Result<u32, RecordError> {
    thread::scope(|scope| {
        let client = scope.spawn(move || exchange::run_client(client, options, ended));
        let server = scope.spawn(move || exchange::run_server(server, options, ended));
        loop {
            // Asked before the poll: what the ends sent last is in the buffer by then.
            let done = client.is_finished() && server.is_finished();
            match tap.poll_frame().map_err(RecordError::system("read the packet socket"))? {
                // A caller that stopped listening is no reason to stop the exchange.
                Some((time, frame)) => drop(frames.send((time, frame.to_vec()))),
                None if done => break,
                None => {}
            }
        }
        let exchanges = join(client).map_err(RecordError::exchange("client"))?;
        join(server).map_err(RecordError::exchange("server"))?;
        Ok(exchanges)
    })
}

/// The thread's result; its panic, if it panicked, goes on in the caller.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
