//! Socket calls of scripts, made on the host, and their results compared.

use std::collections::BTreeMap;

use acklab_host::calls::{ReadFlags, Stop};
use acklab_host::errno;
use acklab_host::errqueue::{Entry, stamp};
use acklab_host::host::Host;
use acklab_host::segment::Place;
use acklab_host::settings::{MS, SECOND, Us};
use acklab_host::socket::{Family, O_NONBLOCK};
use acklab_host::write::WriteFlags;

use crate::script::{Call, Value};
use crate::symbols;

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
#[derive(Debug)]
pub(crate) struct Caller {
    /// The host.
    pub(crate) host: Host,
    /// The script's descriptors and the host's.
    pub(crate) files: BTreeMap<i64, i32>,
    /// `-D` definitions.
    pub(crate) defined: BTreeMap<String, i64>,
    /// Where sockets are bound.
    pub(crate) local: Place,
    /// Where they connect to.
    pub(crate) remote: Place,
    /// The socket that packets of the script belong to, by its index in the host.
    pub(crate) subject: Option<usize>,
    /// A call changed which socket that is.
    pub(crate) changed: bool,
    /// Time at which the script began.
    pub(crate) start: Us,
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
}

impl Caller {
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
        Ok(self.files.get(&named).copied().unwrap_or(-1))
    }

    /// Makes the call, or tries again what waits.
    pub(crate) fn attempt(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        match call.name.as_str() {
            "socket" => self.socket(now, &call),
            "bind" => {
                let fd = self.fd(&call, 0)?;
                let place = self.place(Self::arg(&call, 1)?, self.local)?;
                let done = self.host.bind(fd, place);
                self.follow(fd);
                self.finish(&call, done)
            }
            "listen" => {
                let fd = self.fd(&call, 0)?;
                let backlog = self.int(&call, 1)? as i32;
                let done = self.host.listen(fd, backlog);
                self.follow(fd);
                self.finish(&call, done)
            }
            "accept" | "accept4" => {
                let fd = self.fd(&call, 0)?;
                let flags = if call.args.len() > 3 { self.int(&call, 3)? as i32 } else { 0 };
                let done = self.host.accept(fd, flags);
                self.finish_with_fd(&call, done)
            }
            "connect" => self.connect(now, &call),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.receive(now, pending),
            "write" | "send" | "sendto" | "writev" | "sendmsg" | "sendfile" | "splice" => {
                self.send(now, pending)
            }
            "close" => self.close(now, pending),
            "shutdown" => {
                let fd = self.fd(&call, 0)?;
                let how = self.int(&call, 1)? as i32;
                let done = self.host.shutdown(now, fd, how);
                self.finish(&call, done)
            }
            "setsockopt" => self.set_option(now, &call),
            "getsockopt" => self.get_option(now, &call),
            "fcntl" => self.fcntl(&call),
            "ioctl" => self.ioctl(&call),
            "poll" => self.poll(now, pending),
            "epoll_create" | "epoll_create1" => {
                let fd = self.host.epoll_create();
                self.finish_with_fd(&call, Ok(i64::from(fd)))
            }
            "epoll_ctl" => self.epoll_ctl(now, &call),
            "epoll_wait" => self.epoll_wait(now, pending),
            "pipe" => self.pipe(&call),
            "open" => {
                let fd = self.host.open(1 << 40);
                self.finish_with_fd(&call, Ok(i64::from(fd)))
            }
            "dup" => {
                let fd = self.fd(&call, 0)?;
                let done = self.host.dup(fd);
                self.finish_with_fd(&call, done)
            }
            name => unsupported(format!("the call {name}")),
        }
    }

    /// The socket that the script is about.
    fn follow(&mut self, fd: i32) {
        if let Ok(index) = self.host.index(fd) {
            self.subject = Some(index);
            self.changed = true;
        }
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
                if self.host.route.ip_header == 40 {
                    Family::V6
                } else {
                    Family::V4
                }
            }
            value => match self.number(value)? {
                2 => Family::V4,
                10 => Family::V6,
                other => return unsupported(format!("the address family {other}")),
            },
        };
        let kind = self.int(call, 1)?;
        let protocol = self.int(call, 2)?;
        if kind & 0xf != 1 || !(protocol == 6 || protocol == 0) {
            return unsupported("sockets that are not TCP's");
        }
        let made = self.host.socket(now, family, kind & i64::from(O_NONBLOCK) != 0);
        if let Ok(fd) = made
            && self.subject.is_none()
        {
            self.follow(fd as i32);
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

    fn connect(&mut self, now: Us, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let address = Self::arg(call, 1)?;
        if let Some(family) = address.field("sa_family").or_else(|| address.field("sin_family"))
            && self.number(family)? == 0
        {
            return unsupported("connect to AF_UNSPEC");
        }
        let remote = self.place(address, self.remote)?;
        let local = Place { port: 0, ..self.local };
        let done = self.host.connect(now, fd, local, remote);
        self.follow(fd);
        self.finish(call, done)
    }

    fn close(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        let fd = self.fd(&call, 0)?;
        if pending.taken == 0 {
            let index = self.host.index(fd);
            let lingers = index.ok().filter(|&i| {
                let socket = &self.host.sockets[i];
                socket.tcp.opt.linger.is_some_and(|l| l > 0) && self.host.is_blocking(fd)
            });
            let done = self.host.close(now, fd);
            if done.is_ok() {
                let named = self.int(&call, 0)?;
                self.files.remove(&named);
            }
            let Some(index) = lingers else { return self.finish(&call, done) };
            pending.taken = index as i64 + 1;
        }
        let index = (pending.taken - 1) as usize;
        let linger = self.host.sockets[index].tcp.opt.linger.unwrap_or(0);
        if self.host.is_closed(index) || now >= pending.began + linger {
            return self.finish(&call, Ok(0));
        }
        Ok(Progress::Waits(Some(pending.began + linger)))
    }

    fn pipe(&mut self, call: &Call) -> Step {
        let Value::List(ends) = Self::arg(call, 0)?.clone() else {
            return unsupported("pipe without its descriptors");
        };
        let (reader, writer) = self.host.pipe();
        for (end, fd) in ends.iter().zip([reader, writer]) {
            let named = self.number(end)?;
            self.files.insert(named, fd);
        }
        self.finish(call, Ok(0))
    }
}

/// Data.
impl Caller {
    /// Sizes of the buffers of an iovec.
    fn total(&self, iov: &Value) -> Result<i64, Trouble> {
        let Value::List(items) = iov else { return unsupported(format!("the buffers {iov:?}")) };
        let mut total = 0;
        for item in items {
            let len = item.field("iov_len").or_else(|| item.nth(1));
            match len {
                Some(len) => total += self.number(len)?,
                None => return unsupported(format!("the buffer {item:?}")),
            }
        }
        Ok(total)
    }

    fn send(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        let (mut fd, mut flags, mut stamps) = (self.fd(&call, 0)?, 0, 0);
        let bytes = match call.name.as_str() {
            "write" => self.int(&call, 2)?,
            "send" | "sendto" => {
                flags = self.int(&call, 3)?;
                self.int(&call, 2)?
            }
            "writev" => self.total(Self::arg(&call, 1)?)?,
            "sendfile" => self.int(&call, 3)?,
            "splice" => {
                let from = fd;
                fd = self.fd(&call, 2)?;
                let most = self.int(&call, 4)?;
                if self.host.index(fd).is_err() {
                    return self.splice_out(now, pending, from, most);
                }
                most
            }
            _ => {
                let message = Self::arg(&call, 1)?;
                flags = self.int(&call, 2)?;
                stamps = self.stamps_of(message)?;
                match message.field("msg_iov") {
                    Some(iov) => self.total(iov)?,
                    None => return unsupported("sendmsg without msg_iov"),
                }
            }
        };
        if flags & 0x2000_0000 != 0 {
            return unsupported("MSG_FASTOPEN");
        }
        let known = 0x1 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x400_0000;
        if flags & !known != 0 {
            return unsupported(format!("the flags {flags:#x} of {}", call.name));
        }
        let zero_copy = flags & 0x400_0000 != 0
            && self.host.index(fd).is_ok_and(|i| self.host.sockets[i].zero_copy);
        let wants = WriteFlags {
            more: flags & 0x8000 != 0,
            eor: flags & 0x80 != 0,
            urgent: flags & 1 != 0,
            zero_copy,
            stamps,
            key: 0,
        };
        let dont_wait = flags & 0x40 != 0;
        loop {
            let left = (bytes - pending.taken) as u32;
            match self.host.write(now, fd, left, wants, dont_wait) {
                Ok(taken) => {
                    pending.taken += taken;
                    let may_wait = self.host.is_blocking(fd) && !dont_wait;
                    if pending.taken >= bytes || !may_wait {
                        return self.finish(&call, Ok(pending.taken));
                    }
                }
                Err(_) if pending.taken > 0 && !self.host.is_blocking(fd) => {
                    return self.finish(&call, Ok(pending.taken));
                }
                Err(Stop::Errno(_)) if pending.taken > 0 => {
                    return self.finish(&call, Ok(pending.taken));
                }
                other => return self.finish(&call, other),
            }
        }
    }

    fn splice_out(&mut self, now: Us, pending: &mut Pending, from: i32, most: i64) -> Step {
        let call = pending.call.clone();
        let to = self.fd(&call, 2)?;
        match self.host.read(now, from, most as u32, ReadFlags::default()) {
            Ok(got) => {
                let _ = self.host.write(now, to, got as u32, WriteFlags::default(), false);
                self.finish(&call, Ok(got))
            }
            other => self.finish(&call, other),
        }
    }

    /// Stamps that a control message of sendmsg asks for.
    fn stamps_of(&self, message: &Value) -> Result<u8, Trouble> {
        let Some(Value::List(controls)) = message.field("msg_control") else { return Ok(0) };
        let mut stamps = 0;
        for control in controls {
            let (level, kind) = (control.field("cmsg_level"), control.field("cmsg_type"));
            let (Some(level), Some(kind)) = (level, kind) else {
                return unsupported(format!("the control message {control:?}"));
            };
            if (self.number(level)?, self.number(kind)?) != (1, 37) {
                return unsupported(format!("the control message {control:?}"));
            }
            let wanted = match control.field("cmsg_data") {
                Some(data) => self.number(data)?,
                None => 0,
            };
            for (bit, wish) in [(2, stamp::SENT), (256, stamp::SCHEDULED), (512, stamp::ACKED)] {
                if wanted & bit != 0 {
                    stamps |= wish;
                }
            }
        }
        Ok(stamps)
    }

    fn receive(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        let fd = self.fd(&call, 0)?;
        let (max, flags, message) = match call.name.as_str() {
            "read" => (self.int(&call, 2)?, 0, None),
            "recv" | "recvfrom" => (self.int(&call, 2)?, self.int(&call, 3)?, None),
            "readv" => (self.total(Self::arg(&call, 1)?)?, 0, None),
            _ => {
                let message = Self::arg(&call, 1)?.clone();
                let flags = self.int(&call, 2)?;
                let max = message.field("msg_iov").map_or(Ok(0), |iov| self.total(iov))?;
                (max, flags, Some(message))
            }
        };
        if flags & 0x2000 != 0 {
            return self.receive_error(&call, fd, message.as_ref());
        }
        let known = 0x1 | 0x2 | 0x20 | 0x40 | 0x100 | 0x4000;
        if flags & !known != 0 {
            return unsupported(format!("the flags {flags:#x} of {}", call.name));
        }
        let wants = ReadFlags {
            urgent: flags & 1 != 0,
            peek: flags & 2 != 0,
            truncate: flags & 0x20 != 0,
            dont_wait: flags & 0x40 != 0,
            wait_all: flags & 0x100 != 0,
        };
        let done = self.host.read(now, fd, max as u32, wants);
        if let (Some(message), Ok(_)) = (&message, &done) {
            self.check_inq(fd, message)?;
        }
        self.finish(&call, done)
    }

    /// Control messages of data: how much more waits.
    fn check_inq(&self, fd: i32, message: &Value) -> Result<(), Trouble> {
        let Some(Value::List(controls)) = message.field("msg_control") else { return Ok(()) };
        let Ok(index) = self.host.index(fd) else { return Ok(()) };
        let socket = &self.host.sockets[index];
        if controls.is_empty() {
            return if socket.inq {
                wrong("recvmsg has a control message, expected none")
            } else {
                Ok(())
            };
        }
        for control in controls {
            let kind = control.field("cmsg_type").map_or(Ok(0), |k| self.number(k))?;
            if kind != 36 {
                return unsupported(format!("the control message {control:?}"));
            }
            if !socket.inq {
                return wrong("recvmsg has no control message, expected TCP_CM_INQ");
            }
            let mut unread = i64::from(socket.tcp.unread());
            if unread == 0 && socket.tcp.rcv.fin {
                unread = 1;
            }
            let expected = control.field("cmsg_data").map_or(Ok(unread), |d| self.number(d))?;
            if unread != expected {
                return wrong(format!("TCP_CM_INQ is {unread}, expected {expected}"));
            }
        }
        Ok(())
    }

    fn receive_error(&mut self, call: &Call, fd: i32, message: Option<&Value>) -> Step {
        let entry = match self.host.read_error(fd) {
            Ok(entry) => entry,
            Err(stop) => return self.finish(call, Err(stop)),
        };
        if let Some(Value::List(controls)) = message.and_then(|m| m.field("msg_control")) {
            for control in controls {
                self.check_control(control, &entry)?;
            }
        }
        self.finish(call, Ok(0))
    }

    fn check_control(&self, control: &Value, entry: &Entry) -> Result<(), Trouble> {
        let Some(data) = control.field("cmsg_data") else {
            return unsupported(format!("the control message {control:?}"));
        };
        let Value::Fields(fields) = data else {
            return unsupported(format!("the control data {data:?}"));
        };
        for (name, value) in fields {
            if *value == Value::Any {
                continue;
            }
            let since = entry.at.map(|at| at - self.start);
            let expected = self.number(value)?;
            let got = match name.as_str() {
                "ee_errno" => i64::from(entry.errno),
                "ee_origin" => i64::from(entry.origin),
                "ee_type" => i64::from(entry.kind),
                "ee_code" => i64::from(entry.code),
                "ee_info" => i64::from(entry.info),
                "ee_data" => i64::from(entry.data),
                "scm_sec" => since.map_or(0, |us| (us / SECOND) as i64),
                "scm_nsec" => {
                    // Stamps have the tolerance of packets.
                    let nanos = since.map_or(0, |us| (us % SECOND * 1000) as i64);
                    if (nanos - expected).abs() <= 4_000_000 { expected } else { nanos }
                }
                other => return unsupported(format!("the field {other} of a control message")),
            };
            if got != expected {
                return wrong(format!("{name} is {got}, expected {expected}"));
            }
        }
        Ok(())
    }
}

/// Options and descriptors.
impl Caller {
    fn set_option(&mut self, now: Us, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let (level, name) = (self.int(call, 1)? as i32, self.int(call, 2)? as i32);
        let value = Self::arg(call, 3)?;
        let done = match (level, name, value) {
            (1, 13, Value::Fields(_)) => {
                let on = value.field("onoff").or_else(|| value.field("l_onoff"));
                let linger = value.field("linger").or_else(|| value.field("l_linger"));
                let (Some(on), Some(linger)) = (on, linger) else {
                    return unsupported(format!("SO_LINGER of {value:?}"));
                };
                let (on, linger) = (self.number(on)? != 0, self.number(linger)?);
                self.host.set_linger(fd, on, linger)
            }
            (6, 13, Value::Text(text)) => {
                if acklab_host::cc::Congestion::named(text).is_none() && text != "nosuchcc" {
                    return unsupported(format!("the congestion control {text:?}"));
                }
                self.host.set_congestion(now, fd, text)
            }
            (6, 30 | 33 | 34, _) => return unsupported("fast open beyond TCP_FASTOPEN"),
            (6, 14 | 19 | 31 | 35 | 37, _) => {
                return unsupported(format!("the option {name} of TCP"));
            }
            (1, 26 | 27 | 50, _) => return unsupported("filters"),
            (_, _, Value::Text(_)) => return unsupported(format!("a text as option {name}")),
            _ => {
                let value = self.number(value)?;
                self.host.set_option(now, fd, level, name, value)
            }
        };
        self.finish(call, done)
    }

    fn get_option(&mut self, now: Us, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let (level, name) = (self.int(call, 1)? as i32, self.int(call, 2)? as i32);
        let expected = Self::arg(call, 3)?.clone();
        match (level, name) {
            (6, 13) => {
                let Ok(index) = self.host.index(fd) else {
                    return self.finish(call, Err(Stop::Errno(errno::EBADF)));
                };
                let got = self.host.sockets[index].tcp.cc.name();
                if let Value::Text(text) = &expected
                    && text != got
                {
                    return wrong(format!("TCP_CONGESTION is {got:?}, expected {text:?}"));
                }
                return self.finish(call, Ok(0));
            }
            (1, 13) => {
                let Ok(index) = self.host.index(fd) else {
                    return self.finish(call, Err(Stop::Errno(errno::EBADF)));
                };
                let linger = self.host.sockets[index].tcp.opt.linger;
                let got = (i64::from(linger.is_some()), linger.map_or(0, |l| (l / SECOND) as i64));
                let on = expected.field("onoff").map_or(Ok(got.0), |v| self.number(v))?;
                let time = expected.field("linger").map_or(Ok(got.1), |v| self.number(v))?;
                if got != (on, time) {
                    return wrong(format!("SO_LINGER is {got:?}, expected {:?}", (on, time)));
                }
                return self.finish(call, Ok(0));
            }
            (6, 11 | 26 | 28 | 33 | 35) | (1, 55 | 57) => {
                return unsupported(format!("the option {name} of level {level}"));
            }
            _ => {}
        }
        let done = self.host.option(now, fd, level, name);
        if let Ok(got) = done
            && expected != Value::Any
            && expected != Value::List(vec![Value::Any])
        {
            let expected = self.number(&expected)?;
            if got != expected {
                return wrong(format!(
                    "option {name} of level {level} is {got}, expected {expected}"
                ));
            }
        }
        self.finish(call, done.map(|_| 0))
    }

    fn fcntl(&mut self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let command = self.int(call, 1)?;
        let Some(flags) = self.host.files.get(&fd).map(|d| d.flags) else {
            return self.finish(call, Err(Stop::Errno(errno::EBADF)));
        };
        match command {
            3 => self.finish(call, Ok(i64::from(flags))),
            4 => {
                let wanted = self.int(call, 2)? as i32;
                if let Some(descriptor) = self.host.files.get_mut(&fd) {
                    descriptor.flags = flags & 3 | wanted & !3;
                }
                self.finish(call, Ok(0))
            }
            1 | 2 => self.finish(call, Ok(0)),
            other => unsupported(format!("fcntl({other})")),
        }
    }

    fn ioctl(&self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let command = self.int(call, 1)?;
        let queued = match self.host.queued(fd) {
            Ok(queued) => queued,
            Err(stop) => return self.finish(call, Err(stop)),
        };
        let got = match command {
            0x541b => queued[0],
            0x5411 => queued[1],
            0x894b => queued[2],
            other => return unsupported(format!("ioctl({other:#x})")),
        };
        let expected = Self::arg(call, 2)?;
        if *expected != Value::Any && *expected != Value::List(vec![Value::Any]) {
            let expected = self.number(expected)?;
            if got != expected {
                return wrong(format!("ioctl gave {got}, expected {expected}"));
            }
        }
        self.finish(call, Ok(0))
    }
}

/// Waiting for events.
impl Caller {
    fn poll(&mut self, now: Us, pending: &Pending) -> Step {
        let call = pending.call.clone();
        let Value::List(items) = Self::arg(&call, 0)?.clone() else {
            return unsupported("poll without its list");
        };
        let timeout = self.int(&call, 2)?;
        let (mut ready, mut found) = (0, Vec::new());
        for item in &items {
            let (Some(fd), Some(events)) = (item.field("fd"), item.field("events")) else {
                return unsupported(format!("{item:?} in poll"));
            };
            let named = self.number(fd)?;
            let asked = self.number(events)? as u32;
            let fd = self.files.get(&named).copied().unwrap_or(-1);
            let mask = self.host.poll_mask(now, fd) & (asked | 0x8 | 0x10 | 0x20);
            ready += i64::from(mask != 0);
            found.push(mask);
        }
        let due = pending.began + timeout.max(0) as Us * MS;
        if ready == 0 && (timeout < 0 || now < due) {
            return Ok(Progress::Waits((timeout >= 0).then_some(due)));
        }
        for (item, mask) in items.iter().zip(found) {
            if let Some(value) = item.field("revents").filter(|v| **v != Value::Any) {
                let expected = self.number(value)? as u32;
                if expected != mask {
                    return wrong(format!("revents are {mask:#x}, expected {expected:#x}"));
                }
            }
        }
        self.finish(&call, Ok(ready))
    }

    fn events(&self, value: &Value) -> Result<(u32, u64), Trouble> {
        let events = match value.field("events") {
            Some(events) => self.number(events)? as u32,
            None => 0,
        };
        let data = ["fd", "u32", "u64", "ptr"].iter().find_map(|name| value.field(name));
        let data = match data {
            Some(Value::Fields(fields)) if fields.len() == 1 => self.number(&fields[0].1)?,
            Some(data) => self.number(data)?,
            None => 0,
        };
        Ok((events, data as u64))
    }

    fn epoll_ctl(&mut self, now: Us, call: &Call) -> Step {
        let epoll = self.fd(call, 0)?;
        let operation = self.int(call, 1)? as i32;
        let fd = self.fd(call, 2)?;
        let (events, data) = match Self::arg(call, 3)? {
            Value::Int(_) | Value::Name(_) | Value::Any => (0, 0),
            value => self.events(value)?,
        };
        let done = self.host.epoll_ctl(now, epoll, operation, fd, events, data);
        self.finish(call, done)
    }

    fn epoll_wait(&mut self, now: Us, pending: &Pending) -> Step {
        let call = pending.call.clone();
        let epoll = self.fd(&call, 0)?;
        let max = self.int(&call, 2)?;
        let timeout = self.int(&call, 3)?;
        let found = match self.host.epoll_wait(now, epoll, max.clamp(1, 1024) as usize) {
            Ok(found) => found,
            Err(stop) => return self.finish(&call, Err(stop)),
        };
        let due = pending.began + timeout.max(0) as Us * MS;
        if found.is_empty() && (timeout < 0 || now < due) {
            return Ok(Progress::Waits((timeout >= 0).then_some(due)));
        }
        let expected = match Self::arg(&call, 1)? {
            Value::List(items) => items.clone(),
            one @ Value::Fields(_) => vec![one.clone()],
            _ => Vec::new(),
        };
        for (value, (mask, data)) in expected.iter().zip(&found) {
            if *value == Value::Any {
                continue;
            }
            let (events, word) = self.events(value)?;
            if events != *mask || word != *data {
                return wrong(format!(
                    "epoll_wait gave events {mask:#x} of {data}, expected {events:#x} of {word}"
                ));
            }
        }
        self.finish(&call, Ok(found.len() as i64))
    }
}
