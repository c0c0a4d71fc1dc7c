//! The event loop of reliable UDP: one thread between sockets and a state machine (docs/rudp.md section 9).
//!
//! A turn: wait for a datagram, for the machine's next deadline or for a [`Waker`]; hand over what
//! arrived; let the machine's timers run; let the application read and write; send what the machine wants to
//! send. The clock is read once per turn and once per train of datagrams, and nothing is allocated. The
//! wait is `ppoll(2)` with a timer slack of 1 ns, so that paced trains leave within tens of microseconds of
//! their time; with a few sockets it costs no more than epoll.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::time::Time;
use acklab_rudp::{Batch, Datagram, PathAddrs};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;

use super::socket::{self, BUFFERS, Sent, Socket, SocketError};

/// Receives per socket, and trains sent, before the loop looks at everything else again: 4 MB and 1 MB.
const RECEIVES: usize = 8;
const TRAINS: usize = 16;
/// Freed memory that the process keeps for the next blocks, bytes.
const KEPT_FREED: usize = 8 << 20;
/// As many sockets as there may be: paths at once (docs/rudp.md section 6), and `--listen`s.
const SOCKETS: usize = 16;

/// What is driven: a connection, a listener with its connections, or whatever else keeps the core's contract
/// with datagrams.
pub trait Machine:
    for<'a> Endpoint<Arrival<'a> = Datagram<'a>, Departure<'a> = Batch<'a>> + 'static
{
}

impl<M> Machine for M where
    M: for<'a> Endpoint<Arrival<'a> = Datagram<'a>, Departure<'a> = Batch<'a>> + 'static
{
}

/// Who uses the machine.
pub trait Application<M> {
    /// Called after every batch, after timeouts and calls from outside: takes the machine's events and
    /// data, writes more; may add sockets for new paths. `Break` ends the loop once what the machine
    /// wants to send has left, so what is said last, such as CLOSE, is said before.
    fn on_progress(&mut self, now: Time, machine: &mut M, sockets: &mut Sockets)
    -> ControlFlow<()>;

    /// When it wants to be called though nothing has come.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Calls the loop from another thread or a signal's.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// [`Application::on_progress`] is called soon. What it is to find out has been written before.
    pub fn wake(&self) {
        // It fails where the counter is full: then the call stands already.
        let _ = self.0.write(1);
    }
}

/// The sockets of a loop.
#[derive(Debug, Default)]
pub struct Sockets(Vec<Socket>, Vec<(SocketAddr, Errno)>);

/// Where a server listens whose user names no port.
pub const PORT: u16 = 9000;

/// Hints that are kept until they are taken.
const HINTS: usize = 16;

impl Sockets {
    /// Those of a server; without addresses they are on every interface, with [`PORT`] where that is free.
    pub fn listen(addresses: &[SocketAddr]) -> Result<Self, SocketError> {
        let mut sockets = Self::default();
        if addresses.is_empty() {
            return sockets.listen_anywhere().map(|()| sockets);
        }
        for &address in addresses {
            sockets.push(Socket::bind(address)?)?;
        }
        Ok(sockets)
    }

    /// One of the two families is enough.
    fn listen_anywhere(&mut self) -> Result<(), SocketError> {
        let mut outcome = Ok(());
        for ip in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let socket = Socket::bind((ip, PORT).into()).or_else(|_| Socket::bind((ip, 0).into()));
            match socket {
                Ok(socket) => self.push(socket)?,
                Err(error) => outcome = Err(error),
            }
        }
        if self.0.is_empty() { outcome } else { Ok(()) }
    }

    /// Adds one for a path to `remote`, from `local` or from where the kernel's routes say.
    pub fn add(
        &mut self,
        local: Option<IpAddr>,
        remote: SocketAddr,
    ) -> Result<PathAddrs, SocketError> {
        let (socket, addrs) = Socket::towards(local, remote)?;
        self.push(socket)?;
        Ok(addrs)
    }

    /// Closes the socket of a path that is gone.
    pub fn remove(&mut self, local: SocketAddr) {
        self.0.retain(|socket| socket.local() != local);
    }

    /// The addresses that they are bound to.
    pub fn local(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(Socket::local)
    }

    /// What the kernel or ICMP has said of datagrams to an address, since the last call: perhaps a forgery, and no
    /// more than a word for the user.
    pub fn take_hints(&mut self) -> Vec<(SocketAddr, Errno)> {
        std::mem::take(&mut self.1)
    }

    fn hint(&mut self, remote: SocketAddr, errno: Errno) {
        if self.1.len() < HINTS && !self.1.contains(&(remote, errno)) {
            self.1.push((remote, errno));
        }
    }

    fn push(&mut self, socket: Socket) -> Result<(), SocketError> {
        if self.0.len() == SOCKETS {
            return Err(SocketError::TooMany(SOCKETS));
        }
        self.0.push(socket);
        Ok(())
    }

    fn serving(&self, local: SocketAddr) -> Option<&Socket> {
        self.0.iter().find(|socket| socket.serves(local))
    }
}

pub struct Driver {
    sockets: Sockets,
    calls: Arc<EventFd>,
    began: Instant,
    arrived: socket::Batch,
    /// What a full socket has not taken yet.
    held: Held,
    /// The machine's events have no listener here.
    sink: Sink,
}

/// The rest of a batch.
#[derive(Debug, Default)]
struct Held {
    /// From where to where, their ECN field and their length; `None` where nothing is held.
    train: Option<(PathAddrs, Ecn, usize)>,
    bytes: Vec<u8>,
}

impl Driver {
    /// A loop over these sockets, whose time begins now.
    #[expect(clippy::disallowed_methods, reason = "the edge of the real network reads the clock")]
    pub fn new(sockets: Sockets) -> io::Result<Self> {
        Ok(Self {
            sockets,
            calls: Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?),
            began: Instant::now(),
            arrived: socket::Batch::default(),
            held: Held::default(),
            sink: Sink::default(),
        })
    }

    /// Calls this loop from elsewhere.
    pub fn waker(&self) -> Waker {
        Waker(self.calls.clone())
    }

    /// The present time of the machine that is driven here.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Drives `machine` until the application ends it.
    pub fn run<M: Machine>(
        &mut self,
        machine: &mut M,
        application: &mut impl Application<M>,
    ) -> io::Result<()> {
        // Timers may come 50 us late on purpose otherwise; 1 ns is the least.
        prctl::set_timerslack(1)?;
        keep_freed_blocks();
        let mut ready = 0;
        loop {
            let mut busy = self.receive(machine, ready);
            let now = self.now();
            if machine.poll_timeout().is_some_and(|due| due <= now) {
                machine.handle_timeout(now, &mut self.sink);
            }
            if application.on_progress(now, machine, &mut self.sockets).is_break() {
                while self.transmit(machine) {}
                return Ok(());
            }
            busy |= self.transmit(machine);
            let due = [machine.poll_timeout(), application.poll_timeout()];
            ready =
                self.wait(if busy { Some(Time::ZERO) } else { due.into_iter().flatten().min() })?;
        }
    }

    /// Hands over what the sockets in the bit set `ready` have; whether more waits.
    fn receive(&mut self, machine: &mut impl Machine, ready: u32) -> bool {
        let mut busy = false;
        for (_, socket) in self.sockets.0.iter().enumerate().filter(|(i, _)| ready >> i & 1 == 1) {
            let mut left = RECEIVES;
            loop {
                let now = Time::from_nanos(self.began.elapsed().as_nanos() as u64);
                let filled = socket.receive(&mut self.arrived, |from, ecn, datagram| {
                    let arrival = Datagram { addrs: from, ecn, bytes: datagram };
                    machine.handle_packet(now, arrival, &mut self.sink);
                });
                left -= 1;
                if filled < BUFFERS {
                    break;
                }
                if left == 0 {
                    busy = true;
                    break;
                }
            }
        }
        busy
    }

    /// Sends what the machine wants to send; whether more waits.
    fn transmit(&mut self, machine: &mut impl Machine) -> bool {
        for _ in 0..TRAINS {
            let now = self.now();
            let Held { train, bytes } = &mut self.held;
            let held = train.take();
            let batch = match held {
                Some((addrs, ecn, segment)) => Batch { addrs, ecn, bytes, segment },
                None => match machine.poll_transmit(now, &mut self.sink) {
                    Some(batch) => batch,
                    None => return false,
                },
            };
            let Batch { addrs, ecn, segment, .. } = batch;
            // A path whose socket is gone loses what is sent on it.
            let Some(socket) = self.sockets.serving(addrs.local) else { continue };
            match socket.send(addrs, ecn, batch.bytes, segment) {
                Sent::Taken => {}
                Sent::Full(taken) => {
                    let rest = batch.bytes[taken..].to_vec();
                    self.held = Held { train: Some((addrs, ecn, segment)), bytes: rest };
                    return false;
                }
                Sent::Lost(errno) => self.sockets.hint(addrs.remote, errno),
            }
        }
        true
    }

    /// Waits until a socket has something, until `due`, or until called; the sockets that have.
    fn wait(&mut self, due: Option<Time>) -> io::Result<u32> {
        let full = self.held.train.and_then(|(addrs, ..)| self.sockets.serving(addrs.local));
        let mut fds: [PollFd; SOCKETS + 1] =
            std::array::from_fn(|_| PollFd::new(self.calls.as_fd(), PollFlags::POLLIN));
        let count = self.sockets.0.len().min(SOCKETS);
        for (fd, socket) in fds[1..].iter_mut().zip(&self.sockets.0) {
            let mut wanted = PollFlags::POLLIN;
            wanted.set(PollFlags::POLLOUT, full.is_some_and(|full| std::ptr::eq(full, socket)));
            *fd = PollFd::new(socket.as_fd(), wanted);
        }
        let timeout = due.map(|due| {
            let left = due.since(self.now());
            TimeSpec::from_duration(std::time::Duration::from_nanos(left.as_nanos()))
        });
        match ppoll(&mut fds[..=count], timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds[0].any().unwrap_or(false) {
            // Resets the counter; that there was no call after all does no harm.
            let _ = self.calls.read();
        }
        let (mut ready, mut failed) = (0, 0);
        for (index, fd) in fds[1..=count].iter().enumerate() {
            let got = fd.revents().unwrap_or(PollFlags::empty());
            // POLLERR too: reading clears what ICMP has said.
            ready |= u32::from(!got.difference(PollFlags::POLLOUT).is_empty()) << index;
            failed |= u32::from(got.contains(PollFlags::POLLERR)) << index;
        }
        for index in (0..count).filter(|index| failed >> index & 1 == 1) {
            let mut hints = Vec::new();
            self.sockets.0[index].take_errors(|to, errno| hints.push((to, errno)));
            for (to, errno) in hints {
                self.sockets.hint(to, errno);
            }
        }
        Ok(ready)
    }
}

/// Blocks of data come and go by the thousand. glibc gives freed memory back to the kernel above a threshold
/// of 128 KiB, and every block that is allocated next costs its page faults again. The threshold is twice
/// the largest block that was ever mapped and freed (mallopt(3), M_MMAP_THRESHOLD and
/// M_TRIM_THRESHOLD), so one that is never touched raises it.
fn keep_freed_blocks() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT_FREED / 2)));
}

#[cfg(test)]
mod tests;
