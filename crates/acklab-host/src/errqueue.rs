//! What a program is told through the error queue: when bytes were scheduled, sent and acknowledged
//! (`SO_TIMESTAMPING`), which writes without a copy are over (`MSG_ZEROCOPY`), and errors of ICMP.

use std::collections::VecDeque;

use crate::segment::before;
use crate::settings::Us;

/// Stamps that a write asked for.
pub mod stamp {
    /// When the data was given to the device.
    pub const SENT: u8 = 1;
    /// When it was queued for that.
    pub const SCHEDULED: u8 = 2;
    /// When the peer acknowledged it.
    pub const ACKED: u8 = 4;
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `ee_errno`.
    pub errno: i32,
    /// `ee_origin`: 2 ICMP, 4 time stamping, 5 zero copy.
    pub origin: u8,
    /// `ee_type`.
    pub kind: u8,
    /// `ee_code`.
    pub code: u8,
    /// `ee_info`.
    pub info: u32,
    /// `ee_data`.
    pub data: u32,
    /// When, of time stamps.
    pub at: Option<Us>,
}

/// A write without a copy that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Copyless {
    id: u32,
    end: u32,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct ErrorQueue {
    entries: VecDeque<Entry>,
    copyless: VecDeque<Copyless>,
    next_id: u32,
}

impl ErrorQueue {
    /// The oldest entry.
    pub fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// A time stamp of the byte with `key`; `kind` counts as `SCM_TSTAMP_*`.
    pub fn stamp(&mut self, kind: u32, key: u32, at: Us) {
        let entry =
            Entry { errno: 42, origin: 4, kind: 0, code: 0, info: kind, data: key, at: Some(at) };
        self.entries.push_back(entry);
    }

    /// A write without a copy ends at `end`.
    pub fn begin_copyless(&mut self, end: u32) {
        self.copyless.push_back(Copyless { id: self.next_id, end });
        self.next_id += 1;
    }

    /// Everything below `una` is acknowledged.
    pub fn acknowledge(&mut self, una: u32) -> bool {
        let mut told = false;
        while let Some(write) = self.copyless.front().copied().filter(|w| !before(una, w.end)) {
            self.copyless.pop_front();
            self.complete(write.id);
            told = true;
        }
        told
    }

    /// The connection is over.
    pub fn acknowledge_all(&mut self) {
        while let Some(write) = self.copyless.pop_front() {
            self.complete(write.id);
        }
    }

    /// Notices of writes in a row are one. Packets reach a program on the same host by copying: code 1.
    fn complete(&mut self, id: u32) {
        if let Some(last) = self.entries.back_mut()
            && last.origin == 5
            && last.data.wrapping_add(1) == id
        {
            last.data = id;
            return;
        }
        let entry = Entry { errno: 0, origin: 5, kind: 0, code: 1, info: id, data: id, at: None };
        self.entries.push_back(entry);
    }
}
