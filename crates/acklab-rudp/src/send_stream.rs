//! The sending side of a stream (docs/rudp.md section 7).
//!
//! Blocks are moved in by the application and stay where they are until all of one was acknowledged;
//! their bytes are copied once, into the datagram. What leaves next are lost bytes, then new ones as
//! far as the peer granted, then the end of the stream if it did not fit before.

use std::collections::VecDeque;
use std::ops::Range;

use super::delivery::Delivery;

/// The sending side of one stream.
#[derive(Debug)]
pub(super) struct SendStream {
    blocks: VecDeque<Block>,
    /// Bytes that the application wrote.
    written: u64,
    fin: Fin,
    delivery: Delivery,
    /// Bytes that the peer granted.
    limit: u64,
    reset: Option<Reset>,
}

#[derive(Debug)]
struct Block {
    start: u64,
    bytes: Vec<u8>,
}

/// The end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    Open,
    /// To be told.
    Waiting,
    /// Told and not acknowledged.
    Sent,
    /// To be told again.
    Lost,
    /// Acknowledged.
    Acked,
}

/// The stream was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    /// The application's code.
    pub(super) code: u64,
    /// Bytes that had left.
    pub(super) final_size: u64,
}

/// Some bytes of a stream, and whether they end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPiece {
    /// Offset of the first byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u64,
    /// It says where the stream ends.
    pub(super) fin: bool,
    /// Bytes that leave for the first time: they count against the connection's credit.
    pub(super) fresh: u64,
}

impl SendStream {
    /// A stream of which the peer takes `limit` bytes at first.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            blocks: VecDeque::new(),
            written: 0,
            fin: Fin::Open,
            delivery: Delivery::default(),
            limit,
            reset: None,
        }
    }

    /// Takes a block to send; whether the stream was still open for it.
    pub(super) fn write(&mut self, bytes: Vec<u8>) -> bool {
        if self.fin != Fin::Open || self.reset.is_some() {
            return false;
        }
        if !bytes.is_empty() {
            let start = self.written;
            self.written += bytes.len() as u64;
            self.blocks.push_back(Block { start, bytes });
        }
        true
    }

    /// The application writes no more.
    pub(super) fn finish(&mut self) {
        if self.fin == Fin::Open && self.reset.is_none() {
            self.fin = Fin::Waiting;
        }
    }

    /// Bytes that have left at least once.
    pub(super) fn sent(&self) -> u64 {
        self.delivery.sent()
    }

    /// Bytes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.delivery.acknowledged()
    }

    /// Bytes written and not sent yet.
    pub(super) fn unsent(&self) -> u64 {
        if self.reset.is_some() { 0 } else { self.written - self.delivery.sent() }
    }

    /// Bytes that wait to leave, for the first time or again.
    pub(super) fn waiting(&self) -> u64 {
        self.unsent() + self.delivery.lost_bytes()
    }

    /// Bytes that are kept because they were not acknowledged.
    pub(super) fn kept(&self) -> u64 {
        self.blocks.front().map_or(0, |first| self.written - first.start)
    }

    /// Bytes that the peer granted.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The peer grants `limit` bytes; whether that is more than before.
    pub(super) fn on_max_data(&mut self, limit: u64) -> bool {
        let more = limit > self.limit;
        self.limit = self.limit.max(limit);
        more
    }

    /// Whether lost content waits.
    pub(super) fn has_lost(&self) -> bool {
        self.reset.is_none() && (self.delivery.lost_bytes() > 0 || self.fin == Fin::Lost)
    }

    /// Whether new content could leave if the connection had credit.
    pub(super) fn has_new(&self) -> bool {
        let data = self.unsent() > 0 && self.delivery.sent() < self.limit;
        self.reset.is_none() && (data || self.fin == Fin::Waiting && self.unsent() == 0)
    }

    /// Whether new data waits for the peer to grant more of this stream.
    pub(super) fn is_blocked(&self) -> bool {
        self.unsent() > 0 && self.delivery.sent() >= self.limit
    }

    /// Whether all of what is new is data, which takes credit, and not the bare end of the stream.
    pub(super) fn needs_credit(&self) -> bool {
        self.unsent() > 0
    }

    /// The offset of what [`Self::next`] would give; only of use where something waits.
    pub(super) fn next_offset(&self) -> u64 {
        self.delivery.first_lost().unwrap_or(self.delivery.sent())
    }

    /// What leaves next, at most `most` bytes of it: lost bytes, else, where allowed, at most
    /// `credit` new ones.
    pub(super) fn next(&mut self, most: u64, allow_new: bool, credit: u64) -> Option<StreamPiece> {
        if self.reset.is_some() || most == 0 {
            return None;
        }
        if let Some(range) = self.delivery.take_lost(most) {
            return Some(self.piece(&range, 0));
        }
        if !allow_new && !self.has_lost() {
            return None;
        }
        let granted = self.limit.saturating_sub(self.delivery.sent()).min(credit);
        let fresh = if allow_new { self.unsent().min(granted).min(most) } else { 0 };
        let bare_end = matches!(self.fin, Fin::Waiting | Fin::Lost) && self.unsent() == 0;
        if fresh == 0 && !bare_end {
            return None;
        }
        let range = self.delivery.take_new(fresh);
        Some(self.piece(&range, fresh))
    }

    fn piece(&mut self, range: &Range<u64>, fresh: u64) -> StreamPiece {
        let fin = self.fin != Fin::Open && range.end == self.written;
        if fin && self.fin != Fin::Acked {
            self.fin = Fin::Sent;
        }
        StreamPiece { offset: range.start, len: range.end - range.start, fin, fresh }
    }

    /// Copies the bytes from `offset` on into `out`; they have not been acknowledged.
    pub(super) fn copy_into(&self, offset: u64, mut out: &mut [u8]) {
        let mut at = self.blocks.partition_point(|block| block.start <= offset).saturating_sub(1);
        let mut skip = self.blocks.get(at).map_or(0, |block| offset.saturating_sub(block.start));
        while let Some(block) = self.blocks.get(at).filter(|_| !out.is_empty()) {
            let from = block.bytes.get(skip as usize..).unwrap_or_default();
            let len = from.len().min(out.len());
            out[..len].copy_from_slice(&from[..len]);
            out = &mut out[len..];
            (at, skip) = (at + 1, 0);
        }
        debug_assert!(out.is_empty(), "bytes that are not kept");
    }

    /// `range` was acknowledged, with `fin` the end of the stream.
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool) {
        if fin {
            self.fin = Fin::Acked;
        }
        self.delivery.on_acked(range);
        let below = self.delivery.acked_below();
        while let Some(first) = self.blocks.front() {
            if first.start + first.bytes.len() as u64 > below {
                break;
            }
            self.blocks.pop_front();
        }
    }

    /// `range` was lost, with `fin` the packet that told the end of the stream.
    pub(super) fn on_lost(&mut self, range: Range<u64>, fin: bool) {
        if self.reset.is_some() {
            return;
        }
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Lost;
        }
        self.delivery.on_lost(range);
    }

    /// The first bytes in `within` that have left and were not acknowledged; with the end of the
    /// stream, where they reach it.
    pub(super) fn unacked(&self, within: Range<u64>) -> Option<StreamPiece> {
        if self.reset.is_some() {
            return None;
        }
        if let Some(range) = self.delivery.unacked(within.clone()) {
            let fin = matches!(self.fin, Fin::Sent) && range.end == self.written;
            let (offset, len) = (range.start, range.end - range.start);
            return Some(StreamPiece { offset, len, fin, fresh: 0 });
        }
        let fin = self.fin == Fin::Sent && within.end >= self.written;
        fin.then_some(StreamPiece { offset: self.written, len: 0, fin, fresh: 0 })
    }

    /// Gives the stream up: nothing more of it is sent. Nothing happens if all has been acknowledged
    /// or it was given up before.
    pub(super) fn reset(&mut self, code: u64) -> Option<Reset> {
        if self.is_delivered() || self.reset.is_some() {
            return None;
        }
        let reset = Reset { code, final_size: self.delivery.sent() };
        self.reset = Some(reset);
        self.blocks.clear();
        self.delivery.forget_lost();
        Some(reset)
    }

    /// How it was given up.
    pub(super) fn reset_state(&self) -> Option<Reset> {
        self.reset
    }

    /// Whether the end of the stream and every byte before it were acknowledged.
    pub(super) fn is_delivered(&self) -> bool {
        self.fin == Fin::Acked && self.delivery.acked_below() == self.written
    }
}
