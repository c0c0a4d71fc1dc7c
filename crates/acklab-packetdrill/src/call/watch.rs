//! Waiting for events: poll and epoll.

use acklab_host::settings::{MS, Us};

use super::{Caller, Pending, Progress, Step, Trouble, unsupported, wrong};
use crate::script::{Call, Value};

impl Caller<'_> {
    pub(super) fn poll(&mut self, now: Us, pending: &Pending) -> Step {
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
            let fd = self.descriptor(named);
            let mask = self.world().poll(now, fd, asked);
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

    pub(super) fn epoll_ctl(&mut self, now: Us, call: &Call) -> Step {
        let epoll = self.fd(call, 0)?;
        let operation = self.int(call, 1)? as i32;
        let fd = self.fd(call, 2)?;
        let (events, data) = match Self::arg(call, 3)? {
            Value::Int(_) | Value::Name(_) | Value::Any => (0, 0),
            value => self.events(value)?,
        };
        let done = self.world().epoll_ctl(now, epoll, operation, fd, events, data);
        self.finish(call, done)
    }

    pub(super) fn epoll_wait(&mut self, now: Us, pending: &Pending) -> Step {
        let call = pending.call.clone();
        let epoll = self.fd(&call, 0)?;
        let max = self.int(&call, 2)?;
        let timeout = self.int(&call, 3)?;
        let found = match self.world().epoll_wait(now, epoll, max.clamp(1, 1024) as usize) {
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
