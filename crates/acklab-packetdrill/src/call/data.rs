//! Reading and writing, with control messages.

use acklab_host::calls::{ReadFlags, Stop};
use acklab_host::errno;
use acklab_host::errqueue::{Entry, stamp};
use acklab_host::segment::Place;
use acklab_host::settings::{SECOND, Us};
use acklab_host::write::{WriteFlags, rest_of};

use super::{Caller, Pending, Progress, Step, Trouble, unsupported, wrong};
use crate::script::{Call, Value};

/// What recvmsg says of an entry of the error queue.
const MSG_ERRQUEUE: i64 = 0x2000;
/// The buffer was too small.
const MSG_TRUNC: i64 = 0x20;
/// A control message found no room.
const MSG_CTRUNC: i64 = 0x8;
/// Levels and types of control messages.
const SOL_SOCKET: i64 = 1;
const SCM_TIMESTAMPING: i64 = 37;
const SOL_TCP: i64 = 6;
const TCP_CM_INQ: i64 = 36;

/// What a control message holds.
enum Content<'e> {
    Number(i64),
    Entry(&'e Entry),
}

/// `SO_EE_ORIGIN_TIMESTAMPING`.
const STAMPING: u8 = 4;

/// Whether the buffer of a call is NULL.
fn is_absent(call: &Call) -> bool {
    let has_buffer = ["read", "recv", "recvfrom", "write", "send", "sendto"];
    has_buffer.contains(&call.name.as_str()) && call.args.get(1) == Some(&Value::Int(0))
}

/// What a call asks to be sent; of splice `fd` is where it comes from.
#[derive(Default)]
struct Sending {
    fd: i32,
    bytes: i64,
    flags: i64,
    stamps: u8,
    /// Lengths of the buffers of a message.
    buffers: Vec<u32>,
}

impl Caller<'_> {
    /// Sizes of the buffers of an iovec.
    fn buffers(&self, iov: &Value) -> Result<Vec<u32>, Trouble> {
        let Value::List(items) = iov else { return unsupported(format!("the buffers {iov:?}")) };
        let len = |item: &Value| match item.field("iov_len").or_else(|| item.nth(1)) {
            Some(len) => self.number(len).map(|len| len as u32),
            None => unsupported(format!("the buffer {item:?}")),
        };
        items.iter().map(len).collect()
    }

    /// Bytes of the buffers of an iovec.
    fn total(&self, iov: &Value) -> Result<i64, Trouble> {
        Ok(self.buffers(iov)?.iter().map(|len| i64::from(*len)).sum())
    }

    /// What a call asks to be sent.
    fn sending(&self, call: &Call) -> Result<Sending, Trouble> {
        let mut sending = Sending { fd: self.fd(call, 0)?, ..Sending::default() };
        sending.bytes = match call.name.as_str() {
            "write" => self.int(call, 2)?,
            "send" | "sendto" => {
                sending.flags = self.int(call, 3)?;
                self.int(call, 2)?
            }
            "writev" => self.total(Self::arg(call, 1)?)?,
            "sendfile" => self.int(call, 3)?,
            "splice" => self.int(call, 4)?,
            _ => {
                let message = Self::arg(call, 1)?;
                sending.flags = self.int(call, 2)?;
                sending.stamps = self.stamps_of(message)?;
                match message.field("msg_iov") {
                    Some(iov) => sending.buffers = self.buffers(iov)?,
                    None => return unsupported("sendmsg without msg_iov"),
                }
                sending.buffers.iter().map(|len| i64::from(*len)).sum()
            }
        };
        Ok(sending)
    }

    pub(super) fn send(&mut self, now: Us, pending: &mut Pending) -> Step {
        let call = pending.call.clone();
        let Sending { mut fd, mut bytes, flags, stamps, buffers } = self.sending(&call)?;
        if call.name == "splice" {
            let (from, most) = (fd, bytes);
            fd = self.fd(&call, 2)?;
            if !self.world().is_socket(fd) {
                return self.splice_out(now, pending, from, most);
            }
            // No more than the pipe holds.
            match self.world().read(now, from, most as u32, ReadFlags::default()) {
                Ok(read) => bytes = read.bytes,
                Err(stop) => return self.finish(&call, Err(stop)),
            }
        }
        if self.datagrams.contains(&fd) {
            return self.send_datagram(now, &call, fd, bytes, flags);
        }
        let known = 0x1 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x400_0000 | 0x2000_0000;
        if flags & !known != 0 {
            return unsupported(format!("the flags {flags:#x} of {}", call.name));
        }
        let wants = WriteFlags {
            more: flags & 0x8000 != 0,
            eor: flags & 0x80 != 0,
            urgent: flags & 1 != 0,
            zero_copy: flags & 0x400_0000 != 0,
            buffers: &[],
            stamps,
            key: 0,
        };
        let dont_wait = flags & 0x40 != 0;
        let absent = bytes > 0 && is_absent(&call);
        // Of a buffer that is not there nothing can be copied, once the call comes to that.
        let bytes = if absent { 0 } else { bytes };
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
        // POLLOUT, POLLERR and POLLHUP: the connection is there, or will not be; there is room.
        if (pending.opens || pending.sleeps) && self.world().poll(now, fd, 0x4) == 0 {
            return Ok(Progress::Waits(None));
        }
        if pending.opens && pending.taken >= bytes {
            return self.finish(&call, Ok(pending.taken));
        }
        loop {
            let left = (bytes - pending.taken) as u32;
            if absent {
                let done = self.world().write(now, fd, 0, wants, dont_wait);
                return self.finish(&call, done.and(Err(Stop::Errno(errno::EFAULT))));
            }
            let rest = rest_of(&buffers, pending.taken as u32);
            let wants = WriteFlags { buffers: &rest, ..wants };
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
                other => {
                    pending.sleeps = matches!(other, Err(Stop::Block));
                    return self.finish(&call, other);
                }
            }
        }
    }

    fn send_datagram(&mut self, now: Us, call: &Call, fd: i32, bytes: i64, flags: i64) -> Step {
        // MSG_DONTWAIT and MSG_NOSIGNAL: nothing here waits or signals.
        if flags & !(0x40 | 0x4000) != 0 {
            return unsupported(format!("the flags {flags:#x} of a datagram"));
        }
        let address = match call.name.as_str() {
            "sendto" => Some(Self::arg(call, 4)?),
            "sendmsg" => Self::arg(call, 1)?.field("msg_name"),
            _ => None,
        };
        let to = match address {
            None | Some(Value::Int(0)) => None,
            Some(address) => Some(self.place(address, self.remote)?),
        };
        let own = Place { port: 0, ..self.local };
        let done = self.world().send_to(now, fd, (own, to), bytes.max(0) as u32);
        self.finish(call, done)
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
            if (self.number(level)?, self.number(kind)?) != (SOL_SOCKET, SCM_TIMESTAMPING) {
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
        let absent = max > 0 && !wants.truncate && is_absent(&call);
        let done = if absent {
            let looks = ReadFlags { peek: true, ..wants };
            match self.world().read(now, fd, max as u32, looks) {
                Ok(read) if read.bytes > 0 => Err(Stop::Errno(errno::EFAULT)),
                other => other,
            }
        } else {
            self.world().read(now, fd, max as u32, wants)
        };
        if let (Some(message), Ok(read)) = (&message, &done) {
            let inq = read.inq.map(|inq| (SOL_TCP, TCP_CM_INQ, Content::Number(inq)));
            self.check_message(message, 0, inq.as_slice())?;
        }
        self.finish(&call, done.map(|read| read.bytes))
    }

    /// `msg_flags` and control messages that a call left behind; `controls`: level, type and content of each.
    fn check_message(
        &self,
        message: &Value,
        flags: i64,
        controls: &[(i64, i64, Content<'_>)],
    ) -> Result<(), Trouble> {
        let expected: &[Value] = match message.field("msg_control") {
            Some(Value::List(expected)) => expected,
            _ => &[],
        };
        // There is room for as many as the script expects.
        let flags = if expected.len() < controls.len() { flags | MSG_CTRUNC } else { flags };
        if let Some(value) = message.field("msg_flags").filter(|v| **v != Value::Any) {
            let wanted = self.number(value)?;
            if wanted != flags {
                return wrong(format!("msg_flags are {flags:#x}, expected {wanted:#x}"));
            }
        }
        if expected.len() > controls.len() {
            let (got, wanted) = (controls.len(), expected.len());
            return wrong(format!("recvmsg has {got} control messages, expected {wanted}"));
        }
        for (control, (level, kind, content)) in expected.iter().zip(controls) {
            for (name, got) in [("cmsg_level", *level), ("cmsg_type", *kind)] {
                let Some(value) = control.field(name) else {
                    return unsupported(format!("the control message {control:?}"));
                };
                let wanted = self.number(value)?;
                if wanted != got {
                    return wrong(format!("{name} is {got}, expected {wanted}"));
                }
            }
            match content {
                Content::Number(got) => {
                    let wanted = control.field("cmsg_data").map_or(Ok(*got), |d| self.number(d))?;
                    if *got != wanted {
                        return wrong(format!("cmsg_data is {got}, expected {wanted}"));
                    }
                }
                Content::Entry(entry) => self.check_control(control, entry)?,
            }
        }
        Ok(())
    }

    fn receive_error(&mut self, call: &Call, fd: i32, message: Option<&Value>) -> Step {
        let entry = match self.world().read_error(fd) {
            Ok(entry) => entry,
            Err(stop) => return self.finish(call, Err(stop)),
        };
        let Some(message) = message else { return self.finish(call, Ok(0)) };
        // A stamp comes with the packet's bytes, unless the program asked for none.
        let room = message.field("msg_iov").map_or(Ok(0), |iov| self.total(iov))?;
        let cut = entry.origin == STAMPING && !self.stamps_alone && room == 0;
        let flags = if cut { MSG_ERRQUEUE | MSG_TRUNC } else { MSG_ERRQUEUE };
        let (level, kind) = self.errors_of_ip();
        let mut controls = vec![(level, kind, Content::Entry(&entry))];
        if entry.at.is_some() {
            controls.insert(0, (SOL_SOCKET, SCM_TIMESTAMPING, Content::Entry(&entry)));
        }
        self.check_message(message, flags, &controls)?;
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
