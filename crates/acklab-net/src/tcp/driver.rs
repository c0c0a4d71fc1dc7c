//! The event loop: one thread between a device, a [`Host`] and what its streams carry.
//!
//! A turn: take the packets that came, answering each before the next is looked at, as a kernel does; let
//! the applications read and write; let timers run; send what may leave; wait. The clock is the machine's,
//! counted from 1970 so that timestamps rise from run to run, and never set back within one.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use acklab_core::time::{Span, Time};
use acklab_tcp::{Snapshot, Terms};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;

use super::device::Device;
use super::host::{Host, Strays, is_of_one_host};
use super::payload::{Payload, PayloadError, Side};
use super::stream::{End, Stream, Tally};

/// Packets taken before applications are looked at.
const BATCH: usize = 64;
/// Longer than any IP packet.
const LARGEST_FRAME: usize = 1 << 16;
/// An interruption is seen after this at the latest.
const TICK: Span = Span::from_millis(100);
const SECOND: u64 = 1_000_000_000;

/// Why the loop ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The device was taken away, or fails.
    #[error("the device {name}: {source}")]
    Device {
        /// Its name.
        name: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A file of a stream.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Waiting failed.
    #[error("wait for packets: {0}")]
    Wait(io::Error),
    /// There is no port left to connect from.
    #[error("every port of {0} is in use")]
    Ports(SocketAddr),
    /// Multicast, broadcast, or no address.
    #[error(
        "{0} is not the address of one host: TCP connects to no group and to no unspecified address"
    )]
    NoHost(SocketAddr),
}

/// A stream that is over.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// How; `None`: it was interrupted.
    pub end: Option<End>,
    /// Since it was there.
    pub lasted: Span,
    /// What went.
    pub sent: Side,
    /// What came.
    pub received: Side,
    /// Segments.
    pub tally: Tally,
    /// What the SYNs agreed on.
    pub terms: Terms,
    /// Payload of a full segment at the end, bytes: less than was agreed on where the path carries less.
    pub mss: u32,
    /// Its state at the end.
    pub snapshot: Snapshot,
}

/// What the loop did.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    /// Streams that are over, in the order of their ends.
    pub streams: Vec<Ended>,
    /// What no stream took.
    pub strays: Strays,
    /// Packets of ours that the device did not take.
    pub refused: u64,
    /// It was interrupted.
    pub interrupted: bool,
}

/// Hears every packet, either way, with the time that acklab's TCP saw it.
pub type OnFrame<'a> = dyn FnMut(Time, &[u8]) + 'a;

/// Who carries what.
pub struct Driver<'a> {
    device: Device,
    host: Host,
    users: Vec<User>,
    /// What a stream that the host accepted carries.
    content: Box<dyn FnMut() -> Result<Payload, PayloadError> + 'a>,
    on_frame: &'a mut OnFrame<'a>,
    clock: Clock,
    buffer: Vec<u8>,
    driven: Driven,
}

/// A stream's application.
struct User {
    local: SocketAddr,
    remote: SocketAddr,
    since: Time,
    content: Payload,
    /// Which of its descriptors can be used.
    ready: [bool; 2],
    /// Its end is in the result.
    told: bool,
}

struct Clock {
    base: u64,
    began: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the edge of the real network reads the clock")]
    fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { base: since_1970.map_or(0, |since| since.as_nanos() as u64), began: Instant::now() }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.base + self.began.elapsed().as_nanos() as u64)
    }
}

impl<'a> Driver<'a> {
    /// A loop whose time begins now. Each stream that the host accepts carries what `content` says.
    pub fn new(
        device: Device,
        host: Host,
        content: impl FnMut() -> Result<Payload, PayloadError> + 'a,
        on_frame: &'a mut OnFrame<'a>,
    ) -> Self {
        Self {
            device,
            host,
            users: Vec::new(),
            content: Box::new(content),
            on_frame,
            clock: Clock::start(),
            buffer: vec![0; LARGEST_FRAME],
            driven: Driven::default(),
        }
    }

    /// Opens a stream that carries what `content` says.
    pub fn connect(&mut self, remote: SocketAddr) -> Result<(), DriveError> {
        if !is_of_one_host(remote.ip()) {
            return Err(DriveError::NoHost(remote));
        }
        let content = (self.content)()?;
        let now = self.clock.now();
        let stream = self.host.connect(now, remote).ok_or(DriveError::Ports(remote))?;
        self.users.push(User::new(now, stream, content));
        Ok(())
    }

    /// Runs until `streams` of them are over, for ever where `None`, or until it is interrupted.
    pub fn run(
        mut self,
        streams: Option<usize>,
        interrupted: &AtomicBool,
    ) -> Result<Driven, DriveError> {
        // Without it timers may come 50 us late on purpose; 1 ns is the least.
        let _ = prctl::set_timerslack(1);
        let mut quiet_since = None;
        loop {
            let came = self.take_packets()?;
            let now = self.clock.now();
            self.host.handle_timeout(now);
            self.let_applications_work(now)?;
            self.send(now)?;
            if interrupted.load(Ordering::Relaxed) {
                return self.leave();
            }
            if streams.is_some_and(|wanted| self.driven.streams.len() >= wanted) {
                // The peer's FIN may come again, for our last ACK may be lost.
                let since = *quiet_since.get_or_insert(now);
                let since = if came { *quiet_since.insert(now) } else { since };
                if now.since(since) >= self.host.lingering() {
                    break;
                }
            }
            self.wait()?;
        }
        self.driven.strays = self.host.strays();
        Ok(self.driven)
    }

    fn failure(&self) -> impl FnOnce(io::Error) -> DriveError {
        let name = self.device.name().to_owned();
        move |source| DriveError::Device { name, source }
    }

    /// Takes what came; whether anything did.
    fn take_packets(&mut self) -> Result<bool, DriveError> {
        for count in 0..BATCH {
            let length = match self.device.file.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count > 0),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failure()(error)),
            };
            let now = self.clock.now();
            let frame = &self.buffer[..length];
            (self.on_frame)(now, frame);
            self.host.handle_frame(now, frame);
            self.send(now)?;
        }
        Ok(true)
    }

    fn send(&mut self, now: Time) -> Result<(), DriveError> {
        while let Some(frame) = self.host.poll_transmit(now) {
            (self.on_frame)(now, frame);
            match self.device.file.write(frame) {
                Ok(_) => {}
                Err(error) if is_refusal(&error) => self.driven.refused += 1,
                Err(error) => return Err(self.failure()(error)),
            }
        }
        Ok(())
    }

    /// New streams get an application, and each application does what it can.
    fn let_applications_work(&mut self, now: Time) -> Result<(), DriveError> {
        let Self { host, users, content, driven, .. } = self;
        for stream in host.streams() {
            let known = users.iter_mut().find(|user| user.serves(stream));
            let user = if let Some(user) = known {
                user
            } else {
                users.push(User::new(now, stream, content()?));
                let last = users.len() - 1;
                &mut users[last]
            };
            user.content.progress(now, stream, user.ready)?;
            user.ready = [false; 2];
            let read_out = stream.unread().iter().all(|half| half.is_empty());
            if let Some(end) = stream.end().filter(|_| read_out && !user.told) {
                user.told = true;
                driven.streams.push(user.ended(now, stream, Some(end)));
            }
        }
        let over = |stream: &Stream| stream.state() == acklab_tcp::State::Closed;
        host.forget(|stream| {
            let told = over(stream) && users.iter().any(|user| user.serves(stream) && user.told);
            if told {
                users.retain(|user| !user.serves(stream));
            }
            told
        });
        Ok(())
    }

    /// Interrupted: every peer is told.
    fn leave(mut self) -> Result<Driven, DriveError> {
        let now = self.clock.now();
        for stream in self.host.streams() {
            let user = self.users.iter().find(|user| user.serves(stream) && !user.told);
            if let Some(user) = user {
                self.driven.streams.push(user.ended(now, stream, None));
            }
            stream.abort(now);
        }
        self.send(now)?;
        self.driven.strays = self.host.strays();
        self.driven.interrupted = true;
        Ok(self.driven)
    }

    /// Waits for a packet, a deadline, or a descriptor of an application.
    fn wait(&mut self) -> Result<(), DriveError> {
        let now = self.clock.now();
        let limit =
            self.host.poll_timeout().map_or(TICK, |due| due.since(now).min(TICK)).as_nanos();
        let Self { host, users, device, .. } = self;
        let mut polled = vec![PollFd::new(device.file.as_fd(), PollFlags::POLLIN)];
        let mut whose = Vec::new();
        for stream in host.streams() {
            let user = users.iter().position(|user| user.serves(stream));
            let Some((index, user)) = user.map(|index| (index, &users[index])) else { continue };
            let fds = user.content.waits_for(stream);
            for (side, flags) in [(0, PollFlags::POLLIN), (1, PollFlags::POLLOUT)] {
                if let Some(fd) = fds[side] {
                    polled.push(PollFd::new(fd, flags));
                    whose.push((index, side));
                }
            }
        }
        let limit = TimeSpec::new((limit / SECOND) as i64, (limit % SECOND) as i64);
        match ppoll(&mut polled, Some(limit), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(DriveError::Wait(errno.into())),
        }
        let ready: Vec<bool> = polled[1..].iter().map(|fd| fd.any().unwrap_or(false)).collect();
        drop(polled);
        for ((index, side), ready) in whose.into_iter().zip(ready) {
            users[index].ready[side] |= ready;
        }
        Ok(())
    }
}

impl User {
    fn new(since: Time, stream: &Stream, content: Payload) -> Self {
        let (local, remote) = (stream.local(), stream.remote());
        Self { local, remote, since, content, ready: [false; 2], told: false }
    }

    fn serves(&self, stream: &Stream) -> bool {
        (self.local, self.remote) == (stream.local(), stream.remote())
    }

    fn ended(&self, now: Time, stream: &Stream, end: Option<End>) -> Ended {
        Ended {
            local: self.local,
            remote: self.remote,
            end,
            lasted: now.since(self.since),
            sent: self.content.sent().clone(),
            received: self.content.received().clone(),
            tally: stream.tally(),
            terms: stream.terms(),
            mss: stream.mss(),
            snapshot: stream.snapshot(),
        }
    }
}

/// The device has no memory for a packet.
fn is_refusal(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINVAL))
}
