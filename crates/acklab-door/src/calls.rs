//! Socket calls with their arguments as values. Payload has no content: what is read is `x` for every byte.

use acklab_host::calls::{ReadFlags, Stop};
use acklab_host::errno;
use acklab_host::segment::Place;
use acklab_host::settings::{MS, Us};
use acklab_host::socket::{Family, O_NONBLOCK};
use acklab_host::write::{WriteFlags, rest_of};
use acklab_packetdrill::world::{Lingering, World as _};

use crate::address;
use crate::controls;
use crate::door::{Door, Open, Outcome, State};

/// `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `EAFNOSUPPORT`.
const NO_SUCH_SOCKET: [i32; 3] = [94, 93, 97];
const MSG_OOB: i32 = 0x1;
const MSG_PEEK: i32 = 0x2;
const MSG_TRUNC: i32 = 0x20;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_EOR: i32 = 0x80;
const MSG_WAITALL: i32 = 0x100;
const MSG_ERRQUEUE: i32 = 0x2000;
const MSG_MORE: i32 = 0x8000;
const MSG_ZEROCOPY: i32 = 0x400_0000;
const MSG_FASTOPEN: i32 = 0x2000_0000;
/// Which of a descriptor's two time-outs.
const RECEIVES: usize = 0;
const SENDS: usize = 1;
/// POLLOUT.
const OUT: u32 = 0x4;

/// What recvmsg(2) brought.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) bytes: i64,
    pub(crate) controls: Vec<u8>,
    pub(crate) flags: i32,
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) bytes: usize,
    /// Lengths of the buffers, where there are several.
    pub(crate) buffers: &'a [u32],
    /// `MSG_…`
    pub(crate) flags: i32,
    /// Control messages.
    pub(crate) controls: &'a [u8],
    /// The address of MSG_FASTOPEN.
    pub(crate) address: &'a [u8],
}

fn told(done: Result<i64, Stop>) -> Outcome {
    done.map_err(|stop| match stop {
        Stop::Errno(errno) => errno,
        Stop::Block => errno::EAGAIN,
    })
}

impl State {
    /// What is at an address, as a place of the host.
    fn place(&mut self, address: &[u8]) -> Result<Option<Place>, i32> {
        let Some((address, port)) = address::read(address)? else { return Ok(None) };
        self.speak(address);
        Ok(Some(Place { host: self.number(address), port }))
    }

    fn receive(&mut self, open: Open, room: usize, flags: i32) -> Result<Message, Stop> {
        if flags & MSG_ERRQUEUE != 0 {
            let entry = self.world.read_error(open.fd)?;
            let alone = self.world.option(self.now, open.fd, 1, 37).unwrap_or(0) & 0x800 != 0;
            let cut = entry.origin == controls::STAMPING && !alone && room == 0;
            return Ok(Message {
                bytes: 0,
                controls: controls::of_error(&entry, open.family),
                flags: MSG_ERRQUEUE | if cut { MSG_TRUNC } else { 0 },
            });
        }
        let wants = ReadFlags {
            urgent: flags & MSG_OOB != 0,
            peek: flags & MSG_PEEK != 0,
            truncate: flags & MSG_TRUNC != 0,
            dont_wait: flags & MSG_DONTWAIT != 0,
            wait_all: flags & MSG_WAITALL != 0,
        };
        let max = room.min(i32::MAX as usize) as u32;
        let read = self.world.read(self.now, open.fd, max, wants)?;
        let controls = read.inq.map_or_else(Vec::new, |inq| controls::of_inq(inq as i32));
        Ok(Message { bytes: read.bytes, controls, flags: 0 })
    }

    /// One try of a write that began with `taken` bytes and may have opened the connection.
    fn send(&mut self, open: Open, wish: &Wish<'_>, sent: &mut Sent) -> Result<i64, Stop> {
        let wants = WriteFlags {
            more: wish.flags & MSG_MORE != 0,
            eor: wish.flags & MSG_EOR != 0,
            urgent: wish.flags & MSG_OOB != 0,
            zero_copy: wish.flags & MSG_ZEROCOPY != 0,
            buffers: &[],
            stamps: controls::stamps(wish.controls),
            key: 0,
        };
        let dont_wait = wish.flags & MSG_DONTWAIT != 0;
        let may_wait = self.world.is_blocking(open.fd) && !dont_wait;
        let bytes = wish.bytes.min(i32::MAX as usize) as i64;
        if wish.flags & MSG_FASTOPEN != 0 && !sent.opens {
            let remote = self.place(wish.address).map_err(Stop::Errno)?;
            let remote = remote.ok_or(Stop::Errno(errno::EINVAL))?;
            let ends = (self.local_for(remote), remote);
            match self.world.write_opening(self.now, open.fd, ends, bytes as u32, wants) {
                Ok(taken) => sent.taken = taken,
                Err(Stop::Errno(errno::EINPROGRESS)) if may_wait => {}
                other => return other,
            }
            if !may_wait {
                return Ok(sent.taken);
            }
            sent.opens = true;
        }
        if sent.opens && self.world.poll(self.now, open.fd, OUT) == 0 {
            return Err(Stop::Block);
        }
        if sent.opens && sent.taken >= bytes {
            return Ok(sent.taken);
        }
        loop {
            let left = (bytes - sent.taken) as u32;
            let rest = rest_of(wish.buffers, sent.taken as u32);
            let wants = WriteFlags { buffers: &rest, ..wants };
            match self.world.write(self.now, open.fd, left, wants, dont_wait) {
                Ok(taken) => {
                    sent.taken += taken;
                    if sent.taken >= bytes || !may_wait {
                        return Ok(sent.taken);
                    }
                }
                Err(Stop::Errno(_)) if sent.taken > 0 => return Ok(sent.taken),
                other => return other,
            }
        }
    }
}

/// How far a write is.
#[derive(Debug, Default)]
struct Sent {
    taken: i64,
    opens: bool,
}

/// Opening and ending.
impl Door {
    pub(crate) fn socket(&self, domain: i32, kind: i32, protocol: i32) -> Outcome {
        let family = match domain {
            2 => Family::V4,
            10 => Family::V6,
            _ => return Err(NO_SUCH_SOCKET[2]),
        };
        if kind & 0xf != 1 {
            return Err(NO_SUCH_SOCKET[0]);
        }
        if protocol != 0 && protocol != 6 {
            return Err(NO_SUCH_SOCKET[1]);
        }
        self.at_once(|state| {
            if state.setup.follows_proc
                && let Err(text) = state.setup.clone().apply(&mut state.world)
            {
                eprintln!("acklab-door: {text}");
            }
            let made = state.world.socket(state.now, family, kind & O_NONBLOCK != 0);
            told(made).and_then(|fd| state.publish(fd as i32, family))
        })
    }

    pub(crate) fn bind(&self, fd: i32, address: &[u8]) -> Outcome {
        self.at_once(|state| {
            let place = state.place(address)?.ok_or(errno::EINVAL)?;
            told(state.open(fd).and_then(|open| state.world.bind(open.fd, place)))
        })
    }

    pub(crate) fn listen(&self, fd: i32, backlog: i32) -> Outcome {
        self.at_once(|s| told(s.open(fd).and_then(|open| s.world.listen(open.fd, backlog))))
    }

    /// A descriptor and the peer's address.
    pub(crate) fn accept(&self, fd: i32) -> Result<(i64, Vec<u8>), i32> {
        self.call(
            |state| state.open(fd).ok().and_then(|open| open.patience[RECEIVES]),
            Err(errno::EAGAIN),
            |state| {
                let open = state.open(fd)?;
                let made = state.world.accept(open.fd, 0)? as i32;
                let real = state.publish(made, open.family).map_err(Stop::Errno)?;
                let peer =
                    state.world.peer(made).and_then(|p| Some((state.address(p.host)?, p.port)));
                let peer = peer.map_or_else(Vec::new, |peer| address::write(peer, open.family));
                Ok((real, peer))
            },
        )
    }

    pub(crate) fn connect(&self, fd: i32, address: &[u8]) -> Outcome {
        let place = self.at_once(|state| state.place(address))?;
        let Some(remote) = place else {
            return self
                .at_once(|s| told(s.open(fd).and_then(|open| s.world.disconnect(s.now, open.fd))));
        };
        self.call(
            |state| state.open(fd).ok().and_then(|open| open.patience[SENDS]),
            Err(errno::EINPROGRESS),
            |state| {
                let open = state.open(fd)?;
                let local = state.local_for(remote);
                state.world.connect(state.now, open.fd, local, remote)
            },
        )
    }

    pub(crate) fn shutdown(&self, fd: i32, how: i32) -> Outcome {
        self.at_once(|s| told(s.open(fd).and_then(|open| s.world.shutdown(s.now, open.fd, how))))
    }

    pub(crate) fn close(&self, fd: i32) -> Outcome {
        let mut lingering: Option<Lingering> = None;
        let mut is_shut = false;
        self.call(
            |_| None,
            Ok(0),
            |state| {
                if !is_shut {
                    let open = state.open(fd)?;
                    lingering = state.world.close(state.now, open.fd)?;
                    is_shut = true;
                    state.files.remove(&fd);
                    // The process may have closed it itself.
                    let _ = nix::unistd::close(fd);
                }
                match lingering {
                    Some(one) if state.now < one.until && !state.world.is_closed(one.ticket) => {
                        Err(Stop::Block)
                    }
                    _ => Ok(0),
                }
            },
        )
    }

    /// Gives all descriptors back.
    pub(crate) fn close_all(&self) {
        self.at_once(|state| {
            for fd in std::mem::take(&mut state.files).into_keys() {
                let _ = nix::unistd::close(fd);
            }
        });
    }
}

/// Data.
impl Door {
    pub(crate) fn receive(&self, fd: i32, room: usize, flags: i32) -> Result<Message, i32> {
        self.call(
            |state| state.open(fd).ok().and_then(|open| open.patience[RECEIVES]),
            Err(errno::EAGAIN),
            |state| state.receive(state.open(fd)?, room, flags),
        )
    }

    pub(crate) fn send(&self, fd: i32, wish: &Wish<'_>) -> Outcome {
        let mut sent = Sent::default();
        let done = self.call(
            |state| state.open(fd).ok().and_then(|open| open.patience[SENDS]),
            Err(errno::EAGAIN),
            |state| state.send(state.open(fd)?, wish, &mut sent),
        );
        if done.is_err() && sent.taken > 0 { Ok(sent.taken) } else { done }
    }

    /// splice(2) between a pipe and a socket.
    pub(crate) fn splice(&self, from: i32, to: i32, most: usize) -> Outcome {
        self.call(
            |_| None,
            Err(errno::EAGAIN),
            |state| {
                let (source, sink) = (state.open(from)?.fd, state.open(to)?.fd);
                let most = most.min(1 << 20) as u32;
                // What is read of a socket is taken from it when the other end has it; a pipe always has room.
                let peek = state.world.is_socket(source);
                let first = ReadFlags { peek, ..ReadFlags::default() };
                let ready = state.world.read(state.now, source, most, first)?.bytes as u32;
                let taken =
                    state.world.write(state.now, sink, ready, WriteFlags::default(), false)?;
                if peek {
                    state.world.read(state.now, source, taken as u32, ReadFlags::default())?;
                }
                Ok(taken)
            },
        )
    }

    pub(crate) fn pipe(&self) -> Result<[i32; 2], i32> {
        self.at_once(|state| {
            let (reader, writer) = state.world.pipe().map_err(|_| errno::EMFILE)?;
            let reader = state.publish(reader, Family::V4)? as i32;
            Ok([reader, state.publish(writer, Family::V4)? as i32])
        })
    }
}

/// Readiness.
impl Door {
    /// What is ready of each descriptor; one that is negative is passed over.
    pub(crate) fn poll(&self, asked: &[(i32, u32)], timeout: i32) -> Result<Vec<u32>, i32> {
        self.call(
            |_| millis(timeout),
            Ok(vec![0; asked.len()]),
            |state| {
                let mut found = Vec::new();
                for &(fd, events) in asked {
                    let mask = match state.open(fd) {
                        _ if fd < 0 => 0,
                        Ok(open) => state.world.poll(state.now, open.fd, events),
                        Err(_) => 0x20,
                    };
                    found.push(mask);
                }
                if found.iter().any(|&mask| mask != 0) { Ok(found) } else { Err(Stop::Block) }
            },
        )
    }

    pub(crate) fn epoll_create(&self) -> Outcome {
        self.at_once(|state| {
            let made = told(state.world.epoll_create())?;
            state.publish(made as i32, Family::V4)
        })
    }

    pub(crate) fn epoll_ctl(
        &self,
        epoll: i32,
        operation: i32,
        fd: i32,
        event: (u32, u64),
    ) -> Outcome {
        self.at_once(|state| {
            let both = state.open(epoll).and_then(|epoll| Ok((epoll.fd, state.open(fd)?.fd)));
            let (epoll, fd) = both.map_err(|_| errno::EBADF)?;
            told(state.world.epoll_ctl(state.now, epoll, operation, fd, event.0, event.1))
        })
    }

    pub(crate) fn epoll_wait(
        &self,
        epoll: i32,
        most: usize,
        timeout: i32,
    ) -> Result<Vec<(u32, u64)>, i32> {
        self.call(
            |_| millis(timeout),
            Ok(Vec::new()),
            |state| {
                let found = state.world.epoll_wait(state.now, state.open(epoll)?.fd, most)?;
                if found.is_empty() { Err(Stop::Block) } else { Ok(found) }
            },
        )
    }
}

/// A time-out of poll(2); a negative one never comes.
fn millis(timeout: i32) -> Option<Us> {
    u64::try_from(timeout).ok().map(|ms| ms * MS)
}
