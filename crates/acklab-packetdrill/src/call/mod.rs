//! Socket calls of scripts, made in a world, and their results compared.
//!
//! `data`: reading and writing; `options`: socket options and flags; `watch`: poll and epoll.

mod data;
mod options;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use acklab_host::calls::Stop;
use acklab_host::errno;
use acklab_host::segment::Place;
use acklab_host::settings::Us;
use acklab_host::socket::{Family, O_NONBLOCK};

use crate::script::{Call, Value};
use crate::symbols;
use crate::world::{Lingering, World};

/// What a call has come to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    /// It returned what was expected.
    Done,
    /// It waits; at this time something may have changed even if nothing arrives.
    Waits(Option<Us>),
}

/// Why a call does not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// It returned something else.
    Wrong(String),
    /// It, or an argument, is not understood.
    Unsupported(String),
}

type Step = Result<Progress, Trouble>;

fn wrong<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(what.into()))
}

fn unsupported<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Unsupported(what.into()))
}

/// The script's world of descriptors and addresses.
pub(crate) struct Caller<'w> {
    /// Where calls are made.
    world: &'w mut dyn World,
    /// The script's descriptors and the world's.
    files: BTreeMap<i64, i32>,
    /// `-D` definitions.
    defined: BTreeMap<String, i64>,
    /// Where sockets are bound.
    local: Place,
    /// Where they connect to.
    remote: Place,
    /// Where each of the world's descriptors is bound.
    bound: BTreeMap<i32, Place>,
    /// The world's descriptors that are sockets of UDP.
    datagrams: BTreeSet<i32>,
    /// Where a socket listens, since no connection came.
    listening: Option<Place>,
    /// A socket began to listen: what comes next is another connection.
    anew: bool,
    /// Time at which the script began.
    start: Us,
    /// Stamps come without their packets (SOF_TIMESTAMPING_OPT_TSONLY).
    stamps_alone: bool,
    /// Stamps may differ by it.
    tolerance: Us,
    /// Sockets are of IPv6, be it for mapped addresses.
    sockets_of_v6: bool,
    /// Capabilities that the script gave up, by their numbers.
    gave_up: u64,
}

/// A call under way.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The call.
    pub(crate) call: Call,
    /// When it began.
    pub(crate) began: Us,
    /// Bytes that it has taken so far.
    pub(crate) taken: i64,
    /// It opens a connection with data, which is under way (MSG_FASTOPEN).
    pub(crate) opens: bool,
    /// It sleeps until there is room to write: a third of the buffer, not a byte.
    pub(crate) sleeps: bool,
    /// It closed and lingers.
    pub(crate) lingering: Option<Lingering>,
    /// When it has to be tried again even if nothing happened.
    pub(crate) wake: Option<Us>,
}

impl Pending {
    /// A call that begins.
    pub(crate) const fn new(call: Call, began: Us) -> Self {
        Self { call, began, taken: 0, opens: false, sleeps: false, lingering: None, wake: None }
    }
}

impl<'w> Caller<'w> {
    /// Nothing is open; the script begins at `start`.
    pub(crate) fn new(world: &'w mut dyn World, start: Us) -> Self {
        Self {
            world,
            files: BTreeMap::new(),
            defined: BTreeMap::new(),
            local: Place { host: 1, port: 8080 },
            remote: Place { host: 2, port: 8080 },
            bound: BTreeMap::new(),
            datagrams: BTreeSet::new(),
            listening: None,
            anew: false,
            start,
            stamps_alone: false,
            tolerance: 0,
            sockets_of_v6: false,
            gave_up: 0,
        }
    }

    /// Where calls are made.
    pub(crate) const fn world(&mut self) -> &mut (dyn World + 'w) {
        self.world
    }

    /// The same, only to look at.
    pub(crate) const fn world_ref(&self) -> &(dyn World + 'w) {
        self.world
    }

    /// Stamps come without their packets.
    const fn want_stamps_alone(&mut self, alone: bool) {
        self.stamps_alone = alone;
    }

    /// Gives a name a value.
    pub(crate) fn define(&mut self, name: &str, value: i64) {
        self.defined.insert(name.to_owned(), value);
    }

    /// Names that have values.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&String, i64)> {
        self.defined.iter().map(|(name, value)| (name, *value))
    }

    /// Sockets are bound to this port unless the script says otherwise.
    pub(crate) const fn bind_to(&mut self, port: u16) {
        self.local.port = port;
    }

    /// Sockets connect to this port unless the script says otherwise.
    pub(crate) const fn connect_to(&mut self, port: u16) {
        self.remote.port = port;
    }

    /// Sockets are of IPv6.
    pub(crate) const fn use_v6_sockets(&mut self, v6: bool) {
        self.sockets_of_v6 = v6;
    }

    /// Level and type of the control messages that bring errors: IP_RECVERR or IPV6_RECVERR.
    pub(crate) const fn errors_of_ip(&self) -> (i64, i64) {
        if self.sockets_of_v6 { (41, 25) } else { (0, 11) }
    }

    /// How much stamps may differ.
    pub(crate) const fn tolerate(&mut self, tolerance: Us) {
        self.tolerance = tolerance;
    }

    /// The ends of a connection from the script's `port` to where a socket listens.
    pub(crate) fn incoming(&self, port: u16) -> Option<(Place, Place)> {
        Some((self.listening?, Place { port, ..self.remote }))
    }

    /// The ends of a datagram from the script's `port` to a socket that is bound.
    pub(crate) fn incoming_datagram(&self, port: u16) -> Option<(Place, Place)> {
        let bound = self.bound.iter().rfind(|(fd, _)| self.datagrams.contains(fd));
        Some((*bound?.1, Place { port, ..self.remote }))
    }

    /// Whether a socket began to listen since this was asked last.
    pub(crate) const fn begins_anew(&mut self) -> bool {
        std::mem::replace(&mut self.anew, false)
    }
}

impl Caller<'_> {
    /// A number of a value.
    pub(crate) fn number(&self, value: &Value) -> Result<i64, Trouble> {
        match value {
            Value::Int(n) => Ok(*n),
            Value::Name(name) => self
                .defined
                .get(name)
                .copied()
                .or_else(|| symbols::value(name))
                .or_else(|| errno::named(name).map(i64::from))
                .map_or_else(|| unsupported(format!("the name {name}")), Ok),
            Value::Or(all) => all.iter().try_fold(0, |sum, v| Ok(sum | self.number(v)?)),
            Value::Apply(name, args) if args.len() == 1 => match name.as_str() {
                "htons" | "htonl" | "ntohs" | "ntohl" => self.number(&args[0]),
                _ => unsupported(format!("the function {name}")),
            },
            Value::List(items) if items.len() == 1 => self.number(&items[0]),
            other => unsupported(format!("{other:?} as a number")),
        }
    }

    /// The world's descriptor of one of the script's; -1: it is not open.
    fn descriptor(&self, named: i64) -> i32 {
        self.files.get(&named).copied().unwrap_or(-1)
    }

    fn arg(call: &Call, index: usize) -> Result<&Value, Trouble> {
        match call.args.get(index) {
            Some(value) => Ok(value),
            None => unsupported(format!("{} with {} arguments", call.name, call.args.len())),
        }
    }

    fn int(&self, call: &Call, index: usize) -> Result<i64, Trouble> {
        self.number(Self::arg(call, index)?)
    }

    /// The host's descriptor of one of the script's.
    fn fd(&self, call: &Call, index: usize) -> Result<i32, Trouble> {
        let named = self.int(call, index)?;
        Ok(self.descriptor(named))
    }

    /// Makes the call, or tries again what waits.
    pub(crate) fn attempt(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        match call.name.as_str() {
            "socket" => self.socket(now, &call),
            "bind" => self.bind(&call),
            "listen" => self.listen(&call),
            "accept" | "accept4" => {
                let fd = self.fd(&call, 0)?;
                let flags = if call.args.len() > 3 { self.int(&call, 3)? as i32 } else { 0 };
                let done = self.world().accept(fd, flags);
                self.finish_with_fd(&call, done)
            }
            "connect" => self.connect(now, pending),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.receive(now, pending),
            "write" | "send" | "sendto" | "writev" | "sendmsg" | "sendfile" | "splice" => {
                self.send(now, pending)
            }
            "close" => self.close(now, pending),
            "shutdown" => {
                let fd = self.fd(&call, 0)?;
                let how = self.int(&call, 1)? as i32;
                let done = self.world().shutdown(now, fd, how);
                self.finish(&call, done)
            }
            "setsockopt" => self.set_option(now, &call),
            "getsockopt" => self.get_option(now, &call),
            "fcntl" => self.fcntl(&call),
            "ioctl" => self.ioctl(&call),
            "poll" => self.poll(now, pending),
            "epoll_create" | "epoll_create1" => {
                let done = self.world().epoll_create();
                self.finish_with_fd(&call, done)
            }
            "epoll_ctl" => self.epoll_ctl(now, &call),
            "epoll_wait" => self.epoll_wait(now, pending),
            "cap_set" => {
                let bit = 1_u64 << (self.int(&call, 1)? as u32).min(63);
                let sets = self.int(&call, 2)? != 0;
                self.gave_up = if sets { self.gave_up & !bit } else { self.gave_up | bit };
                self.finish(&call, Ok(0))
            }
            "pipe" => self.pipe(&call),
            "open" => {
                let done = self.world().open();
                self.finish_with_fd(&call, done)
            }
            "dup" => {
                let fd = self.fd(&call, 0)?;
                let done = self.world().dup(fd);
                self.finish_with_fd(&call, done)
            }
            name => unsupported(format!("the call {name}")),
        }
    }

    fn bind(&mut self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let place = self.place(Self::arg(call, 1)?, self.local)?;
        let done = self.world().bind(fd, place);
        if done.is_ok() {
            self.bound.insert(fd, place);
        }
        self.finish(call, done)
    }

    fn listen(&mut self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let backlog = self.int(call, 1)? as i32;
        let done = self.world().listen(fd, backlog);
        if done.is_ok() {
            self.listening = self.bound.get(&fd).copied();
            self.anew = true;
        }
        self.finish(call, done)
    }

    /// Compares what a call returned with what the script expects.
    fn finish(&self, call: &Call, done: Result<i64, Stop>) -> Step {
        let got = match done {
            Err(Stop::Block) => return Ok(Progress::Waits(None)),
            Ok(value) => (value, None),
            Err(Stop::Errno(error)) => (-1, Some(error)),
        };
        let says = |value: i64, error: Option<i32>| match error {
            Some(error) => format!("-1 {}", errno::name(error).unwrap_or("(another error)")),
            None => value.to_string(),
        };
        if call.result == Value::Any {
            return Ok(Progress::Done);
        }
        let expected = self.number(&call.result)?;
        let expected_error = match &call.error {
            Some(name) => match errno::named(name) {
                Some(error) => Some(error),
                None => return unsupported(format!("the error {name}")),
            },
            None => None,
        };
        let same_error = expected_error.is_none() || expected_error == got.1;
        if got.0 == expected && same_error && (got.1.is_none() || expected == -1) {
            return Ok(Progress::Done);
        }
        wrong(format!(
            "{} returned {}, expected {}",
            call.name,
            says(got.0, got.1),
            says(expected, expected_error)
        ))
    }

    /// The same for calls that return a descriptor: the script may number it as it likes.
    fn finish_with_fd(&mut self, call: &Call, done: Result<i64, Stop>) -> Step {
        match done {
            Ok(fd) if call.error.is_none() => {
                let named = self.number(&call.result)?;
                if named < 0 {
                    return wrong(format!("{} returned {fd}, expected {named}", call.name));
                }
                self.files.insert(named, fd as i32);
                Ok(Progress::Done)
            }
            other => self.finish(call, other),
        }
    }

    fn socket(&mut self, now: Us, call: &Call) -> Step {
        let family = match Self::arg(call, 0)? {
            Value::Any => {
                let v6 = self.world().settings().1.ip_header == 40;
                if v6 { Family::V6 } else { Family::V4 }
            }
            value => match self.number(value)? {
                2 => Family::V4,
                10 => Family::V6,
                other => return unsupported(format!("the address family {other}")),
            },
        };
        let kind = self.int(call, 1)?;
        let protocol = self.int(call, 2)?;
        let nonblocking = kind & i64::from(O_NONBLOCK) != 0;
        let made = match (kind & 0xf, protocol) {
            (1, 6 | 0) => self.world().socket(now, family, nonblocking),
            (2, 17 | 0) => self.world().datagram_socket(family, nonblocking),
            _ => return unsupported("sockets that are neither TCP's nor UDP's"),
        };
        if let (2, Ok(fd)) = (kind & 0xf, &made) {
            self.datagrams.insert(*fd as i32);
        }
        self.finish_with_fd(call, made)
    }

    /// An address: `...` is `any`.
    fn place(&self, value: &Value, any: Place) -> Result<Place, Trouble> {
        if *value == Value::Any {
            return Ok(any);
        }
        let port = value.field("sin_port").or_else(|| value.field("sin6_port"));
        let Some(port) = port else { return unsupported(format!("the address {value:?}")) };
        Ok(Place { port: self.number(port)? as u16, ..any })
    }

    fn connect(&mut self, now: Us, pending: &Pending) -> Step {
        let call = &pending.call;
        let fd = self.fd(call, 0)?;
        let address = Self::arg(call, 1)?;
        if let Some(family) = address.field("sa_family").or_else(|| address.field("sin_family"))
            && self.number(family)? == 0
        {
            let done = self.world().disconnect(now, fd);
            return self.finish(call, done);
        }
        let remote = self.place(address, self.remote)?;
        let local = Place { port: 0, ..self.local };
        let done = self.world().connect(now, fd, local, remote);
        self.finish(call, done)
    }

    fn close(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        if pending.lingering.is_none() {
            let fd = self.fd(&call, 0)?;
            match self.world().close(now, fd) {
                Err(stop) => return self.finish(&call, Err(stop)),
                Ok(lingering) => {
                    let named = self.int(&call, 0)?;
                    self.files.remove(&named);
                    self.bound.remove(&fd);
                    self.datagrams.remove(&fd);
                    pending.lingering = lingering;
                }
            }
        }
        match pending.lingering {
            Some(lingering)
                if now < lingering.until && !self.world().is_closed(lingering.ticket) =>
            {
                Ok(Progress::Waits(Some(lingering.until)))
            }
            _ => self.finish(&call, Ok(0)),
        }
    }

    fn pipe(&mut self, call: &Call) -> Step {
        let Value::List(ends) = Self::arg(call, 0)?.clone() else {
            return unsupported("pipe without its descriptors");
        };
        let (reader, writer) = match self.world().pipe() {
            Ok(both) => both,
            Err(stop) => return self.finish(call, Err(stop)),
        };
        for (end, fd) in ends.iter().zip([reader, writer]) {
            let named = self.number(end)?;
            self.files.insert(named, fd);
        }
        self.finish(call, Ok(0))
    }
}
