//! Socket options, flags of descriptors, ioctl.

use acklab_host::calls::Stop;
use acklab_host::errno;
use acklab_host::settings::Us;

use super::{Caller, Step, unsupported, wrong};
use crate::script::{Call, Value};

/// Its number.
const CAP_NET_ADMIN: u32 = 12;

/// SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_MARK.
const fn needs_admin(level: i32, name: i32) -> bool {
    level == 1 && matches!(name, 32 | 33 | 36)
}

impl Caller<'_> {
    pub(super) fn set_option(&mut self, now: Us, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let (level, name) = (self.int(call, 1)? as i32, self.int(call, 2)? as i32);
        let value = Self::arg(call, 3)?;
        let length = self.int(call, 4)?;
        let is_number = !matches!(value, Value::Text(_) | Value::Fields(_));
        if is_number && length < 4 && matches!(level, 1 | 6) {
            return self.finish(call, Err(Stop::Errno(errno::EINVAL)));
        }
        if needs_admin(level, name) && self.gave_up & 1 << CAP_NET_ADMIN != 0 {
            return self.finish(call, Err(Stop::Errno(errno::EPERM)));
        }
        let done = match (level, name, value) {
            (1, 13, Value::Fields(_)) => {
                let on = value.field("onoff").or_else(|| value.field("l_onoff"));
                let linger = value.field("linger").or_else(|| value.field("l_linger"));
                let (Some(on), Some(linger)) = (on, linger) else {
                    return unsupported(format!("SO_LINGER of {value:?}"));
                };
                let (on, linger) = (self.number(on)? != 0, self.number(linger)?);
                self.world().set_linger(fd, on, linger)
            }
            (6, 13, Value::Text(text)) => {
                let text = text.get(..length.max(0) as usize).unwrap_or(text);
                let kernels = ["bbr", "bic", "cdg", "highspeed", "htcp", "hybla", "illinois", "lp"];
                if kernels.contains(&text) || ["nv", "scalable", "vegas", "veno"].contains(&text) {
                    return unsupported(format!("the congestion control {text:?}"));
                }
                self.world().set_congestion(now, fd, text)
            }
            (6, 33, _) => return unsupported("TCP_FASTOPEN_KEY"),
            (6, 14 | 19 | 31 | 35 | 37, _) => {
                return unsupported(format!("the option {name} of TCP"));
            }
            (1, 26 | 27 | 50, _) => return unsupported("filters"),
            (_, _, Value::Text(_)) => return unsupported(format!("a text as option {name}")),
            _ => {
                let value = self.number(value)?;
                if (level, name) == (1, 37) {
                    self.want_stamps_alone(value & 0x800 != 0);
                }
                self.world().set_option(now, fd, level, name, value)
            }
        };
        self.finish(call, done)
    }

    pub(super) fn get_option(&mut self, now: Us, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let (level, name) = (self.int(call, 1)? as i32, self.int(call, 2)? as i32);
        let expected = Self::arg(call, 3)?.clone();
        match (level, name) {
            (6, 13) => {
                let got = match self.world().congestion(fd) {
                    Ok(got) => got,
                    Err(stop) => return self.finish(call, Err(stop)),
                };
                let room = self.int(call, 4)?;
                return match &expected {
                    Value::Text(text) if text.len() as i64 != room => {
                        wrong(format!("{text:?} has not {room} bytes"))
                    }
                    Value::Text(text) if !got.starts_with(text.as_str()) => {
                        wrong(format!("TCP_CONGESTION is {got:?}, expected {text:?}"))
                    }
                    _ => self.finish(call, Ok(0)),
                };
            }
            (1, 13) => {
                let got = match self.world().linger(fd) {
                    Ok(got) => got,
                    Err(stop) => return self.finish(call, Err(stop)),
                };
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
        let room = match Self::arg(call, 4)? {
            Value::Any => 4,
            value => self.number(value)?,
        };
        let done = self.world().option(now, fd, level, name);
        if done.is_ok() && !(1..=4).contains(&room) {
            return wrong(format!("the option has 4 bytes, expected {room}"));
        }
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

    pub(super) fn fcntl(&mut self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let command = self.int(call, 1)?;
        let Some(flags) = self.world().flags(fd) else {
            return self.finish(call, Err(Stop::Errno(errno::EBADF)));
        };
        match command {
            3 => self.finish(call, Ok(i64::from(flags))),
            4 => {
                let wanted = self.int(call, 2)? as i32;
                self.world().set_flags(fd, flags & 3 | wanted & !3);
                self.finish(call, Ok(0))
            }
            1 | 2 => self.finish(call, Ok(0)),
            other => unsupported(format!("fcntl({other})")),
        }
    }

    pub(super) fn ioctl(&mut self, call: &Call) -> Step {
        let fd = self.fd(call, 0)?;
        let command = self.int(call, 1)?;
        let queued = match self.world().queued(fd) {
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
