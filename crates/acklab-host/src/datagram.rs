//! UDP sockets (RFC 768): what is written leaves at once as one datagram, what arrives waits to be read, and errors of
//! the path are told by the next call (RFC 1122 section 4.1.3.3).
//!
//! Left out: fragments (a datagram larger than the path's MTU leaves whole), MSG_MORE, multicast, the memory of buffers.

use std::collections::{BTreeMap, VecDeque};

use crate::errno;
use crate::errqueue::{Entry, ErrorQueue};
use crate::segment::Place;
use crate::settings::{Env, Route, Sysctls};
use crate::socket::{IP, IPV6, ReadFlags, SOCKET};
use crate::tcp::poll;

/// The header's bytes.
pub const HEADER: u32 = 8;

/// A datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Where it comes from.
    pub src: Place,
    /// Where it goes.
    pub dst: Place,
    /// Bytes of payload.
    pub len: u32,
    /// Traffic class.
    pub tos: u8,
    /// Time to live; 0: the host's own.
    pub ttl: u8,
}

/// What ICMP says of a packet that cannot arrive.
#[derive(Clone, Copy, Debug)]
pub struct PathError {
    /// The error.
    pub errno: i32,
    /// It is told without IP_RECVERR, too.
    pub hard: bool,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code.
    pub code: u8,
    /// The MTU of the next hop, of packets that were too big; else 0.
    pub mtu: u32,
}

impl PathError {
    /// As the error queue tells it.
    pub(crate) fn entry(&self, route: &Route) -> Entry {
        let Self { errno, kind, code, mtu, .. } = *self;
        let origin = if route.ip_header == 40 { 3 } else { 2 };
        Entry { errno, origin, kind, code, info: mtu, data: 0, at: None }
    }
}

/// A UDP socket.
#[derive(Clone, Debug, Default)]
pub struct Udp {
    /// Bound to.
    local: Option<Place>,
    /// Connected to.
    remote: Option<Place>,
    /// What arrived and was not read.
    queue: VecDeque<Datagram>,
    /// What the next call is told.
    error: i32,
    /// IP_RECVERR's.
    errors: ErrorQueue,
    /// Reading was shut down.
    shut_read: bool,
    /// Writing was.
    shut_write: bool,
    /// Descriptors that lead to it.
    descriptors: u32,
    /// By level and name.
    options: BTreeMap<(i32, i32), i64>,
}

/// Largest IP packet.
const LARGEST: u32 = 65_535;

/// Calls; their errors are `errno`.
impl Udp {
    /// One that a descriptor leads to.
    pub(crate) fn open() -> Self {
        Self { descriptors: 1, ..Self::default() }
    }

    /// Another descriptor leads to it.
    pub(crate) const fn share(&mut self) {
        self.descriptors += 1;
    }

    /// One descriptor less; without any nothing is left of it.
    pub(crate) fn release(&mut self) {
        self.descriptors -= 1;
        if self.descriptors == 0 {
            *self = Self::default();
        }
    }

    /// Whether it has a port to itself.
    pub(crate) fn occupies(&self, port: u16) -> bool {
        self.local.is_some_and(|local| local.port == port)
            && self.of(SOCKET, 2).is_none_or(|reuse| reuse == 0)
    }

    /// Whether it takes what comes to `local`, being connected to `remote` or to nobody.
    pub(crate) fn takes(&self, local: Place, remote: Option<Place>) -> bool {
        self.local.is_some_and(|own| own.port == local.port) && self.remote == remote
    }

    /// Whether it has a port.
    pub(crate) const fn is_bound(&self) -> bool {
        self.local.is_some()
    }

    /// bind(2).
    pub(crate) const fn bind(&mut self, place: Place) -> Result<i64, i32> {
        if self.local.is_some() {
            return Err(errno::EINVAL);
        }
        self.local = Some(place);
        Ok(0)
    }

    /// connect(2): where datagrams go, and where alone they are taken from; `None`: anywhere again.
    pub(crate) fn connect(&mut self, local: Place, remote: Option<Place>) {
        self.remote = remote;
        if remote.is_some() {
            self.local.get_or_insert(local);
        }
    }

    /// The datagram that a write sends from `local`, unless the socket is bound, to `to` or to where it is connected.
    pub(crate) fn send(
        &mut self,
        route: &Route,
        local: Place,
        to: Option<Place>,
        len: u32,
    ) -> Result<Datagram, i32> {
        let src = *self.local.get_or_insert(local);
        let dst = to.or(self.remote).ok_or(errno::EDESTADDRREQ)?;
        let headers = route.ip_header + HEADER;
        let discovery = self.discovery(route);
        let most = match discovery {
            _ if len > LARGEST - headers => Some(LARGEST),
            // DO and PROBE: nothing is cut.
            2 => Some(route.mtu()),
            3 => Some(route.device_mtu),
            _ => None,
        };
        if let Some(mtu) = most.filter(|&most| len > most.saturating_sub(headers)) {
            if self.hears_errors() {
                let (errno, origin, kind, code) = (errno::EMSGSIZE, 1, 0, 0);
                let (info, data, at) = (mtu, 0, None);
                self.errors.push(Entry { errno, origin, kind, code, info, data, at });
            }
            return Err(errno::EMSGSIZE);
        }
        self.take_error()?;
        if self.shut_write {
            return Err(errno::EPIPE);
        }
        let byte = |value: Option<i64>| value.unwrap_or(0) as u8;
        let tos = byte(self.of(IP, 1).or_else(|| self.of(IPV6, 67)));
        let ttl = byte(self.of(IP, 2).or_else(|| self.of(IPV6, 16)).filter(|&ttl| ttl > 0));
        Ok(Datagram { src, dst, len, tos, ttl })
    }

    /// Bytes that a read of `max` brings, or `None`: nothing has come.
    pub(crate) fn read(&mut self, max: u32, flags: ReadFlags) -> Result<Option<u32>, i32> {
        self.take_error()?;
        let first = self.queue.front().copied();
        if !flags.peek {
            self.queue.pop_front();
        }
        Ok(first.map(|first| if flags.truncate { first.len } else { first.len.min(max) }))
    }

    /// Whether reading was shut down.
    pub(crate) const fn is_shut(&self) -> bool {
        self.shut_read
    }

    /// The oldest entry of the error queue.
    pub(crate) fn pop_error(&mut self) -> Option<Entry> {
        self.errors.pop()
    }

    /// shutdown(2).
    pub(crate) const fn shutdown(&mut self, how: i32) -> Result<i64, i32> {
        if self.remote.is_none() {
            return Err(errno::ENOTCONN);
        }
        self.shut_read |= how != 1;
        self.shut_write |= how != 0;
        Ok(0)
    }

    /// Bytes of the next datagram.
    pub(crate) fn next_len(&self) -> u32 {
        self.queue.front().map_or(0, |first| first.len)
    }

    /// A datagram came.
    pub(crate) fn push(&mut self, datagram: Datagram) {
        self.queue.push_back(datagram);
    }

    /// A datagram did not arrive; returns whether the program is told.
    pub(crate) fn fail(&mut self, route: &Route, error: PathError) -> bool {
        if error.mtu > 0 && self.discovery(route) == 0 {
            return false;
        }
        if self.hears_errors() {
            self.errors.push(error.entry(route));
        } else if !error.hard || self.remote.is_none() {
            return false;
        }
        self.error = error.errno;
        true
    }

    const fn take_error(&mut self) -> Result<(), i32> {
        match std::mem::replace(&mut self.error, 0) {
            0 => Ok(()),
            error => Err(error),
        }
    }

    fn of(&self, level: i32, name: i32) -> Option<i64> {
        self.options.get(&(level, name)).copied()
    }

    /// IP_MTU_DISCOVER; UDP asks for the path's MTU unless told otherwise.
    fn discovery(&self, route: &Route) -> i64 {
        let (level, name) = if route.ip_header == 40 { (IPV6, 23) } else { (IP, 10) };
        self.of(level, name).unwrap_or(1)
    }

    fn hears_errors(&self) -> bool {
        self.of(IP, 11).or_else(|| self.of(IPV6, 25)).is_some_and(|on| on != 0)
    }

    /// setsockopt(2) of a number; errors are `errno`.
    pub(crate) fn set_option(
        &mut self,
        sysctls: &Sysctls,
        (level, name): (i32, i32),
        value: i64,
    ) -> Result<i64, i32> {
        let value = match (level, name) {
            (SOCKET, 3 | 4 | 30 | 38 | 39) => return Err(errno::ENOPROTOOPT),
            (IP, 2) | (IPV6, 16) if value != -1 && !(1..=255).contains(&value) => {
                return Err(errno::EINVAL);
            }
            (SOCKET, 7) => (value.min(sysctls.of("wmem_max")) * 2).max(4608),
            (SOCKET, 8) => (value.min(sysctls.of("rmem_max")) * 2).max(2304),
            (SOCKET | IP | IPV6, _) => value,
            _ => return Err(errno::ENOPROTOOPT),
        };
        self.options.insert((level, name), value);
        Ok(0)
    }

    /// getsockopt(2) of a number; errors are `errno`.
    pub(crate) fn option(&mut self, env: &Env<'_>, (level, name): (i32, i32)) -> Result<i64, i32> {
        let kept = self.of(level, name);
        match (level, name) {
            (SOCKET, 4) => Ok(i64::from(std::mem::take(&mut self.error))),
            (SOCKET, 3) => Ok(2),
            (SOCKET, 7) => Ok(kept.unwrap_or_else(|| env.sysctls.of("wmem_default"))),
            (SOCKET, 8) => Ok(kept.unwrap_or_else(|| env.sysctls.of("rmem_default"))),
            (SOCKET, 38) => Ok(17),
            (IP, 10) | (IPV6, 23) => Ok(self.discovery(env.route)),
            (IP, 14) | (IPV6, 24) if self.remote.is_none() => Err(errno::ENOTCONN),
            (IP, 14) | (IPV6, 24) => Ok(i64::from(env.route.mtu())),
            (SOCKET | IP | IPV6, _) => Ok(kept.unwrap_or(0)),
            _ => Err(errno::ENOPROTOOPT),
        }
    }

    /// What poll says.
    pub(crate) fn mask(&self) -> u32 {
        let mut mask = poll::OUT | poll::WRNORM;
        if !self.queue.is_empty() || self.shut_read {
            mask |= poll::IN | poll::RDNORM;
        }
        if self.shut_read {
            mask |= poll::RDHUP;
        }
        if self.shut_read && self.shut_write {
            mask |= poll::HUP;
        }
        if self.error != 0 || !self.errors.is_empty() {
            mask |= poll::ERR;
        }
        mask
    }
}
