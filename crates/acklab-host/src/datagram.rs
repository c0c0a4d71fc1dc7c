//! UDP sockets (RFC 768): what is written leaves at once as one datagram, what arrives waits to be read, and errors of
//! the path are told by the next call (RFC 1122 section 4.1.3.3).
//!
//! Left out: fragments (a datagram larger than the path's MTU leaves whole), MSG_MORE, multicast, the memory of buffers.

use std::collections::{BTreeMap, VecDeque};

use crate::errno;
use crate::errqueue::{Entry, ErrorQueue};
use crate::segment::Place;
use crate::settings::{Env, Route, Sysctls};
use crate::socket::{IP, IPV6, SOCKET};
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
    pub(crate) local: Option<Place>,
    /// Connected to.
    pub(crate) remote: Option<Place>,
    /// What arrived and was not read.
    pub(crate) queue: VecDeque<Datagram>,
    /// What the next call is told.
    pub(crate) error: i32,
    /// IP_RECVERR's.
    pub(crate) errors: ErrorQueue,
    /// Reading was shut down.
    pub(crate) shut_read: bool,
    /// Writing was.
    pub(crate) shut_write: bool,
    /// Descriptors that lead to it.
    pub(crate) descriptors: u32,
    /// By level and name.
    options: BTreeMap<(i32, i32), i64>,
}

impl Udp {
    /// One that a descriptor leads to.
    pub(crate) fn open() -> Self {
        Self { descriptors: 1, ..Self::default() }
    }

    pub(crate) fn of(&self, level: i32, name: i32) -> Option<i64> {
        self.options.get(&(level, name)).copied()
    }

    /// IP_MTU_DISCOVER; UDP asks for the path's MTU unless told otherwise.
    pub(crate) fn discovery(&self, route: &Route) -> i64 {
        let (level, name) = if route.ip_header == 40 { (IPV6, 23) } else { (IP, 10) };
        self.of(level, name).unwrap_or(1)
    }

    pub(crate) fn hears_errors(&self) -> bool {
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
