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
    /// Without the packet (SOF_TIMESTAMPING_OPT_TSONLY).
    pub const ALONE: u8 = 8;
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

/// Memory of an entry without a packet.
const ALONE: u32 = 832;

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct ErrorQueue {
    /// With the memory that each takes of the receive buffer.
    entries: VecDeque<(Entry, u32)>,
    memory: u32,
    copyless: VecDeque<Copyless>,
    next_id: u32,
}

impl ErrorQueue {
    /// The oldest entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let (entry, memory) = self.entries.pop_front()?;
        self.memory -= memory;
        Some(entry)
    }

    /// Memory that entries take of the receive buffer.
    pub const fn memory(&self) -> u32 {
        self.memory
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: Entry) {
        self.push_with(entry, ALONE);
    }

    fn push_with(&mut self, entry: Entry, memory: u32) {
        self.memory += memory;
        self.entries.push_back((entry, memory));
    }

    /// A time stamp of the byte with `key`, which comes with `bytes` of its packet; `kind` counts as `SCM_TSTAMP_*`.
    pub fn stamp(&mut self, kind: u32, key: u32, bytes: u32, at: Us) {
        let entry =
            Entry { errno: 42, origin: 4, kind: 0, code: 0, info: kind, data: key, at: Some(at) };
        self.push_with(entry, ALONE + bytes);
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
        if let Some((last, _)) = self.entries.back_mut()
            && last.origin == 5
            && last.data.wrapping_add(1) == id
        {
            last.data = id;
            return;
        }
        let entry = Entry { errno: 0, origin: 5, kind: 0, code: 1, info: id, data: id, at: None };
        self.push(entry);
    }
}
