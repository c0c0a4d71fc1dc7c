//! Reading and writing, with control messages.

use acklab_host::calls::{ReadFlags, Stop};
use acklab_host::errno;
use acklab_host::errqueue::{Entry, stamp};
use acklab_host::segment::Place;
use acklab_host::settings::{SECOND, Us};
use acklab_host::write::WriteFlags;

use super::{Caller, Pending, Progress, Step, Trouble, unsupported, wrong};
use crate::script::{Call, Value};

/// What recvmsg says of an entry of the error queue.
const MSG_ERRQUEUE: i64 = 0x2000;
/// The buffer was too small.
const MSG_TRUNC: i64 = 0x20;
/// `SO_EE_ORIGIN_TIMESTAMPING`.
const STAMPING: u8 = 4;

impl Caller<'_> {
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

    pub(super) fn send(&mut self, now: Us, pending: &mut Pending) -> Step {
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
                if !self.world().is_socket(fd) {
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
        let known = 0x1 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x400_0000 | 0x2000_0000;
        if flags & !known != 0 {
            return unsupported(format!("the flags {flags:#x} of {}", call.name));
        }
        let wants = WriteFlags {
            more: flags & 0x8000 != 0,
            eor: flags & 0x80 != 0,
            urgent: flags & 1 != 0,
            zero_copy: flags & 0x400_0000 != 0,
            stamps,
            key: 0,
        };
        let dont_wait = flags & 0x40 != 0;
        let may_wait = self.world().is_blocking(fd) && !dont_wait;
        if flags & 0x2000_0000 != 0 && !pending.opens {
            let ends = self.fast_ends(&call)?;
            let done = self.world().write_opening(now, fd, ends, bytes as u32, wants);
            match done {
                Ok(taken) => pending.taken = taken,
                Err(Stop::Errno(errno::EINPROGRESS)) => {}
                other => return self.finish(&call, other),
            }
            if !may_wait {
                return self.finish(&call, done);
            }
            pending.opens = true;
        }
        // POLLOUT, POLLERR and POLLHUP: the connection is there, or will not be.
        if pending.opens && self.world().poll(now, fd, 0x4) == 0 {
            return Ok(Progress::Waits(None));
        }
        if pending.opens && pending.taken >= bytes {
            return self.finish(&call, Ok(pending.taken));
        }
        loop {
            let left = (bytes - pending.taken) as u32;
            match self.world().write(now, fd, left, wants, dont_wait) {
                Ok(taken) => {
                    pending.taken += taken;
                    let may_wait = self.world().is_blocking(fd) && !dont_wait;
                    if pending.taken >= bytes || !may_wait {
                        return self.finish(&call, Ok(pending.taken));
                    }
                }
                Err(_) if pending.taken > 0 && !self.world().is_blocking(fd) => {
                    return self.finish(&call, Ok(pending.taken));
                }
                Err(Stop::Errno(_)) if pending.taken > 0 => {
                    return self.finish(&call, Ok(pending.taken));
                }
                other => return self.finish(&call, other),
            }
        }
    }

    /// Where MSG_FASTOPEN connects from and to.
    fn fast_ends(&self, call: &Call) -> Result<(Place, Place), Trouble> {
        let address = match call.name.as_str() {
            "sendto" => Self::arg(call, 4)?.clone(),
            _ => Value::Any,
        };
        let remote = self.place(&address, self.remote)?;
        Ok((Place { port: 0, ..self.local }, remote))
    }

    fn splice_out(&mut self, now: Us, pending: &mut Pending, from: i32, most: i64) -> Step {
        let call = pending.call.clone();
        let to = self.fd(&call, 2)?;
        match self.world().read(now, from, most as u32, ReadFlags::default()) {
            Ok(read) => {
                let flags = WriteFlags::default();
                let done = self.world().write(now, to, read.bytes as u32, flags, false);
                self.finish(&call, done)
            }
            Err(stop) => self.finish(&call, Err(stop)),
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

    pub(super) fn receive(&mut self, now: Us, pending: &mut Pending) -> Step {
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
        let done = self.world().read(now, fd, max as u32, wants);
        if let (Some(message), Ok(read)) = (&message, &done) {
            self.check_message_flags(Some(message), 0)?;
            self.check_inq(read.inq, message)?;
        }
        self.finish(&call, done.map(|read| read.bytes))
    }

    /// Control messages of data: how much more waits.
    fn check_inq(&self, got: Option<i64>, message: &Value) -> Result<(), Trouble> {
        let Some(Value::List(controls)) = message.field("msg_control") else { return Ok(()) };
        if controls.is_empty() && got.is_some() {
            return wrong("recvmsg has a control message, expected none");
        }
        for control in controls {
            let kind = control.field("cmsg_type").map_or(Ok(0), |k| self.number(k))?;
            if kind != 36 {
                return unsupported(format!("the control message {control:?}"));
            }
            let Some(got) = got else {
                return wrong("recvmsg has no control message, expected TCP_CM_INQ");
            };
            let expected = control.field("cmsg_data").map_or(Ok(got), |d| self.number(d))?;
            if got != expected {
                return wrong(format!("TCP_CM_INQ is {got}, expected {expected}"));
            }
        }
        Ok(())
    }

    /// `msg_flags` that a call left behind.
    fn check_message_flags(&self, message: Option<&Value>, got: i64) -> Result<(), Trouble> {
        let Some(value) = message.and_then(|m| m.field("msg_flags")) else { return Ok(()) };
        if *value == Value::Any || self.number(value)? == got {
            return Ok(());
        }
        wrong(format!("msg_flags are {got:#x}, expected {:#x}", self.number(value)?))
    }

    fn receive_error(&mut self, call: &Call, fd: i32, message: Option<&Value>) -> Step {
        let entry = match self.world().read_error(fd) {
            Ok(entry) => entry,
            Err(stop) => return self.finish(call, Err(stop)),
        };
        // A stamp comes with the packet's bytes, unless the program asked for none.
        let iov = message.and_then(|m| m.field("msg_iov"));
        let room = iov.map_or(Ok(0), |iov| self.total(iov))?;
        let cut = entry.origin == STAMPING && !self.stamps_alone && room == 0;
        let flags = if cut { MSG_ERRQUEUE | MSG_TRUNC } else { MSG_ERRQUEUE };
        self.check_message_flags(message, flags)?;
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
                    if (nanos - expected).abs() <= self.tolerance as i64 * 1000 {
                        expected
                    } else {
                        nanos
                    }
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
