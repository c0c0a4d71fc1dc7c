//! The receiving side of a stream (docs/rudp.md section 7).
//!
//! Bytes are copied out of the datagram into blocks of 64 KiB; a block that is complete is handed to
//! the application as it is, without another copy. So is an incomplete one if nothing behind its
//! gap has arrived; otherwise what is in order is copied out of it, because a reader may wait for
//! it. Memory is what was granted, and [`GAPS_MAX`] ranges.

use std::collections::VecDeque;
use std::ops::Deref;

use super::Code;
use super::piece::Refused;
use acklab_core::ranges::RangeSet;
use acklab_core::time::{Span, Time};

/// Bytes of a block.
pub(super) const BLOCK: usize = 64 << 10;

/// Ranges of one stream or parcel at most; a packet that would make another counts as lost
/// (docs/rudp.md section 7, "Memory").
pub(super) const GAPS_MAX: usize = 1024;

/// The largest window of a stream, bytes (section 7).
const WINDOW_MAX: u64 = 24 << 20;

/// Bytes of a stream in order, as the application gets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    bytes: Vec<u8>,
    start: usize,
    /// Where in the stream they begin.
    pub offset: u64,
    /// The stream ends behind them.
    pub fin: bool,
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl From<Block> for Vec<u8> {
    /// Copies only where the first bytes of the block were given before.
    fn from(mut block: Block) -> Self {
        block.bytes.drain(..block.start);
        block.bytes
    }
}

/// The receiving side of one stream.
#[derive(Debug)]
pub(super) struct ReceiveStream {
    /// Neighbouring blocks of [`BLOCK`] bytes from `base` on; empty where nothing has arrived.
    blocks: VecDeque<Vec<u8>>,
    base: u64,
    /// What has arrived and was not read.
    received: RangeSet,
    /// The application has what is below.
    read: u64,
    /// End of the highest byte that arrived.
    highest: u64,
    final_size: Option<u64>,
    end_read: bool,
    /// Whatever arrives is dropped: the application stopped it or the peer reset it.
    discards: bool,
    window: u64,
    granted: u64,
    granted_at: Time,
}

impl ReceiveStream {
    /// A stream of which `window` bytes are granted at first.
    pub(super) fn new(now: Time, window: u64) -> Self {
        Self {
            blocks: VecDeque::new(),
            base: 0,
            received: RangeSet::new(),
            read: 0,
            highest: 0,
            final_size: None,
            end_read: false,
            discards: false,
            window,
            granted: window,
            granted_at: now,
        }
    }

    /// Whether `len` bytes at `offset` are allowed, and by how much they move the highest offset:
    /// so much of the connection's credit they take.
    pub(super) fn advance_of(&self, offset: u64, len: u64, fin: bool) -> Result<u64, Code> {
        let end = offset + len;
        let beyond = self.final_size.is_some_and(|size| end > size || fin && end != size);
        if beyond || fin && end < self.highest || end > self.granted {
            return Err(Code::FlowControl);
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Takes `data`, which [`Self::advance_of`] allowed; whether there is more to read than before.
    pub(super) fn insert(&mut self, offset: u64, data: &[u8], fin: bool) -> Result<bool, Refused> {
        let end = offset + data.len() as u64;
        let known = self.read.saturating_sub(offset).min(data.len() as u64);
        let (offset, data) = (offset + known, &data[known as usize..]);
        let gained = if self.discards || data.is_empty() {
            false
        } else {
            if self.received.len() >= GAPS_MAX && self.received.would_add(&(offset..end)) {
                return Err(Refused::Lost);
            }
            let readable = self.in_order();
            self.received.insert(offset..end);
            self.copy_in(offset, data);
            self.in_order() > readable
        };
        self.highest = self.highest.max(end);
        let ends = fin && self.final_size.replace(end).is_none();
        Ok(gained || ends && !self.discards && self.in_order() == end)
    }

    /// End of what can be read.
    fn in_order(&self) -> u64 {
        self.received.first().filter(|first| first.start == self.read).map_or(self.read, |r| r.end)
    }

    fn copy_in(&mut self, offset: u64, mut data: &[u8]) {
        let mut at = (offset - self.base) as usize / BLOCK;
        let mut from = (offset - self.base) as usize % BLOCK;
        while !data.is_empty() {
            let len = data.len().min(BLOCK - from);
            let (now, rest) = data.split_at(len);
            if self.blocks.len() <= at {
                self.blocks.resize_with(at + 1, Vec::new);
            }
            overlay(&mut self.blocks[at], from, now);
            data = rest;
            (at, from) = (at + 1, 0);
        }
    }

    /// The next bytes in order, or the bare end of the stream; `None` while there are none.
    pub(super) fn read(&mut self) -> Option<Block> {
        let end = self.in_order();
        if self.discards || end == self.read && self.final_size != Some(end) || self.end_read {
            return None;
        }
        let offset = self.read;
        let mut block = Block { offset, ..Block::default() };
        if end > offset {
            let from = (offset - self.base) as usize;
            let to = ((end - self.base) as usize).min(BLOCK);
            let alone = self.blocks.len() == 1;
            let first = self.blocks.front_mut()?;
            if to == BLOCK || alone && to == first.len() {
                (block.bytes, block.start) = (std::mem::take(first), from);
                self.blocks.pop_front();
                self.base += to as u64;
                self.read = self.base;
            } else {
                block.bytes = first[from..to].to_vec();
                self.read = self.base + to as u64;
            }
            self.received.remove(offset..self.read);
        }
        block.fin = self.final_size == Some(self.read);
        self.end_read = block.fin;
        Some(block)
    }

    /// Bytes that the application can read now.
    pub(super) fn readable(&self) -> u64 {
        if self.discards { 0 } else { self.in_order() - self.read }
    }

    /// Bytes that the application has, or that it will never have.
    pub(super) fn consumed(&self) -> u64 {
        if self.discards { self.highest } else { self.read }
    }

    /// Bytes that are held for the application.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Drops what has arrived and whatever follows; the caller looks at [`Self::consumed`] again.
    pub(super) fn discard(&mut self) {
        self.discards = true;
        self.blocks.clear();
        self.received = RangeSet::new();
    }

    /// The peer gave the stream up at `final_size`; what of the connection's credit that takes.
    pub(super) fn on_reset(&mut self, final_size: u64) -> Result<u64, Code> {
        let advance = self.advance_of(final_size, 0, true)?;
        self.final_size = Some(final_size);
        self.highest = final_size;
        self.discard();
        Ok(advance)
    }

    /// Whether whatever arrives is dropped.
    pub(super) fn is_discarding(&self) -> bool {
        self.discards
    }

    /// Whether nothing is left to come: the application has everything, or it was told that there is
    /// nothing more.
    pub(super) fn is_over(&self) -> bool {
        self.end_read || self.discards && self.final_size.is_some_and(|size| self.highest == size)
    }

    /// Whether it is time to grant more: half of the window is consumed.
    pub(super) fn wants_grant(&self) -> bool {
        let open = self.final_size.is_none() && !self.discards;
        open && self.read + self.window >= self.granted + self.window / 2
    }

    /// Grants anew; the window doubles if its half was consumed within two round trips (section 7).
    pub(super) fn grant(&mut self, now: Time, srtt: Span) {
        if now.since(self.granted_at) < srtt * 2 {
            self.window = (self.window * 2).min(WINDOW_MAX.max(self.window));
        }
        self.granted = self.read + self.window;
        self.granted_at = now;
    }

    /// Bytes granted: the value of MAX_STREAM_DATA.
    pub(super) fn granted(&self) -> u64 {
        self.granted
    }
}

/// Puts `data` at `from` into a block that grows to at most [`BLOCK`] bytes, zeros in between.
pub(super) fn overlay(block: &mut Vec<u8>, from: usize, data: &[u8]) {
    if block.capacity() == 0 {
        block.reserve_exact(BLOCK);
    }
    if from > block.len() {
        block.resize(from, 0);
    }
    let (over, behind) = data.split_at(data.len().min(block.len() - from));
    block[from..from + over.len()].copy_from_slice(over);
    block.extend_from_slice(behind);
}
