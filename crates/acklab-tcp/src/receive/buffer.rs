//! What arrived: bytes in order that the application has not read, ranges beyond a gap, and the
//! window we announce.
//!
//! The right edge of the window never moves left (RFC 9293 section 3.8.6), and moves right only by
//! at least one MSS or half the buffer (receiver SWS avoidance, section 3.8.6.2.2). SACK blocks name
//! the most recently changed range first (RFC 2018 section 4). The window opens at 64 kB and grows with
//! what arrives up to the buffer, as automatic tuning does.

use super::tuning::Tuning;
use crate::config::WindowUpdate;
use acklab_core::ack::Disorder;
use acklab_core::segment::{SackBlock, SackBlocks};
use acklab_core::seq::Seq;
use std::ops::Range;

/// What a segment's arrival did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Bytes that became readable.
    pub(super) advanced: u64,
    /// Bytes of it that we had already, or had no room for.
    pub(super) refused: u64,
    /// There is, or was before, a gap.
    pub(super) gap: bool,
}

impl Arrival {
    /// New bytes alone, and all in order; others are acknowledged at once (RFC 5681 section 4.2).
    pub(super) const fn is_in_order(&self) -> bool {
        self.advanced > 0 && self.refused == 0 && !self.gap
    }

    /// What it is where it is not in order.
    pub(super) const fn disorder(&self) -> Disorder {
        match (self.refused, self.advanced) {
            (0, 0) => Disorder::Ahead,
            (0, _) => Disorder::Filling,
            _ => Disorder::Repeated,
        }
    }
}

/// One direction's receive state; offsets count from the peer's SYN.
#[derive(Clone, Debug)]
pub(super) struct ReceiveBuffer {
    /// The peer's initial sequence number.
    irs: Seq,
    /// Next byte expected.
    nxt: u64,
    /// Right edge announced.
    edge: u64,
    capacity: u64,
    /// The window is not opened further than this; grows with what arrives.
    clamp: u64,
    /// How far it may grow, where that is tuned.
    tuning: Option<Tuning>,
    /// Offset up to which the application has read.
    read: u64,
    /// The same, when the window was last announced.
    read_announced: u64,
    /// Ranges beyond the gap, ascending, neither touching nor overlapping.
    ranges: Vec<(u64, u64)>,
    /// A byte of each of the last ranges that changed, the latest first.
    recent: [u64; 4],
    /// Offset of the peer's FIN, once seen.
    fin: Option<u64>,
}

impl ReceiveBuffer {
    pub(super) fn new(capacity: u32, tuned: bool) -> Self {
        let clamp = u64::from(capacity).min(INITIAL_CLAMP);
        Self {
            irs: Seq(0),
            nxt: 0,
            edge: 0,
            capacity: u64::from(capacity),
            clamp,
            tuning: tuned.then(|| Tuning::new(clamp)),
            read: 1,
            read_announced: 1,
            ranges: Vec::new(),
            recent: [0; 4],
            fin: None,
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, irs: Seq) {
        self.irs = irs;
        self.nxt = 1;
        self.edge = 1;
    }

    /// The sequence number of `offset`.
    pub(super) const fn seq(&self, offset: u64) -> Seq {
        Seq(self.irs.0.wrapping_add(offset as u32))
    }

    /// The offset of `seq`, which lies near the next byte expected; negative before the SYN.
    pub(super) const fn offset(&self, seq: Seq) -> i64 {
        self.nxt as i64 + seq.distance(self.seq(self.nxt)) as i64
    }

    /// The offset of the next byte expected.
    pub(super) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The right edge that was announced.
    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }

    /// Bytes that the peer may still send.
    pub(super) const fn window(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// Bytes that the application may read. A FIN is none.
    pub(super) fn unread(&self) -> u64 {
        let data_end = self.fin.map_or(self.nxt, |fin| fin.min(self.nxt));
        data_end.saturating_sub(self.read)
    }

    /// Bytes read so far.
    pub(super) const fn total_read(&self) -> u64 {
        self.read - 1
    }

    /// The application reads up to `max` bytes; returns how many.
    pub(super) fn take(&mut self, max: u32) -> u32 {
        let bytes = self.unread().min(u64::from(max));
        self.read += bytes;
        bytes as u32
    }

    /// Whether bytes wait beyond a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Which bytes of the stream, from 0, a segment's `len` bytes from `start` on are, as far as they lie
    /// within the window and beyond what had arrived in order before, up to `nxt`.
    pub(super) fn fitting(&self, nxt: u64, start: i64, len: u32) -> Range<u64> {
        let limit = self.edge.min(self.fin.unwrap_or(u64::MAX)) as i64;
        let (from, to) = (start.max(nxt as i64), (start + i64::from(len)).min(limit));
        (from - 1) as u64..(to.max(from) - 1) as u64
    }

    /// A segment's `len` bytes from `start` on arrived.
    pub(super) fn take_in(&mut self, start: i64, len: u32) -> Arrival {
        let end = self.nxt + u64::from(len);
        if start == self.nxt as i64
            && end <= self.edge
            && self.ranges.is_empty()
            && self.fin.is_none()
        {
            self.nxt = end;
            return Arrival { advanced: len.into(), ..Arrival::default() };
        }
        let limit = self.fin.map_or(i64::MAX, |fin| fin as i64);
        let (from, to) = (start.max(self.nxt as i64), (start + i64::from(len)).min(limit));
        let arrival = self.insert(from as u64, to.max(from) as u64);
        Arrival { refused: arrival.refused + (from - start) as u64, ..arrival }
    }

    /// The peer's stream ends at `fin`, unless its end is known or bytes beyond it arrived.
    pub(super) fn note_fin(&mut self, fin: i64) {
        let highest = self.ranges.last().map_or(self.nxt, |&(_, right)| right);
        if self.fin.is_none() && fin >= highest as i64 {
            self.fin = Some(fin as u64);
        }
    }

    /// Passes over the FIN, once everything before it has arrived; returns whether it did.
    pub(super) fn take_fin(&mut self) -> bool {
        let is_next = self.fin == Some(self.nxt);
        self.nxt += u64::from(is_next);
        is_next
    }

    /// Whether the FIN was taken: nothing follows.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.nxt)
    }

    /// Takes the bytes [start, end), already trimmed on the left to what is not yet received in
    /// order.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> Arrival {
        let (offered, end) = (end.saturating_sub(start), end.min(self.edge));
        let start = start.max(self.nxt);
        let mut arrival = Arrival { gap: self.has_gap(), ..Arrival::default() };
        if start >= end {
            return Arrival { refused: offered, ..arrival };
        }
        if start == self.nxt && self.ranges.is_empty() {
            arrival.advanced = end - start;
            arrival.refused = offered - arrival.advanced;
            self.nxt = end;
            return arrival;
        }
        arrival.gap = true;
        let before = self.nxt;
        let new = self.merge(start, end);
        arrival.refused = offered - new;
        if let Some(&(left, right)) = self.ranges.first()
            && left <= self.nxt
        {
            self.nxt = right;
            self.ranges.remove(0);
        }
        arrival.advanced = self.nxt - before;
        arrival
    }

    /// Puts a range among those beyond the gap; returns how many of its bytes were new.
    fn merge(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|&(_, right)| right < start);
        let last = self.ranges.partition_point(|&(left, _)| left <= end);
        let covered: u64 = self.ranges[first..last]
            .iter()
            .map(|&(left, right)| right.min(end).saturating_sub(left.max(start)))
            .sum();
        if first == last {
            if self.ranges.len() >= MAX_RANGES && start != self.nxt {
                return 0;
            }
            self.ranges.insert(first, (start, end));
        } else {
            let merged = (start.min(self.ranges[first].0), end.max(self.ranges[last - 1].1));
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        self.recent.rotate_right(1);
        self.recent[0] = start;
        end - start - covered
    }

    /// The range beyond the gap that holds `offset`.
    fn range_of(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|&(_, right)| right <= offset);
        self.ranges.get(index).copied().filter(|&(left, _)| left <= offset)
    }

    /// How many SACK blocks there are to tell, up to `max`.
    pub(super) fn sack_count(&self, max: usize) -> usize {
        self.ranges.len().min(max).min(4)
    }

    /// Up to `max` SACK blocks, the most recently changed first.
    pub(super) fn sack_blocks(&self, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.ranges.is_empty() {
            return blocks;
        }
        let mut told = [(0, 0); 4];
        let mut count = 0;
        let recent = self.recent.iter().filter_map(|&offset| self.range_of(offset));
        // Where fewer changed lately than fit, the highest others fill up.
        for range in recent.chain(self.ranges.iter().rev().copied().take(4)) {
            if count >= self.sack_count(max) {
                break;
            }
            if !told[..count].contains(&range) {
                told[count] = range;
                count += 1;
                blocks.push(SackBlock { left: self.seq(range.0), right: self.seq(range.1) });
            }
        }
        blocks
    }

    /// The right edge that we could announce now, before scaling.
    pub(super) fn best_edge(&self, mss: u32) -> u64 {
        let candidate = self.nxt + self.allowed();
        let step = u64::from(mss).min(self.capacity / 2).max(1);
        if candidate >= self.edge + step { candidate } else { self.edge.max(self.nxt) }
    }

    /// The window that we could announce now, in bytes.
    pub(super) fn best_window(&self, mss: u32) -> u64 {
        self.best_edge(mss) - self.nxt
    }

    /// Whether reading made the window so much larger that the peer should know at once.
    pub(super) fn is_update_worthwhile(&self, rule: WindowUpdate, mss: u32) -> bool {
        let (now, best) = (self.window(), self.best_window(mss));
        match rule {
            // `tcp_cleanup_rbuf`: at most half open, and it would double.
            WindowUpdate::Doubled => 2 * now <= self.capacity && best > 0 && best >= 2 * now,
            // `tcp_output` of 4.4BSD: two segments, or half the buffer. Only what reading freed
            // counts: a window that opens because the clamp grew is told with the next ACK.
            WindowUpdate::TwoSegments => {
                let growth = (best - now).min(self.read - self.read_announced);
                growth >= 2 * u64::from(mss) || 2 * growth >= self.capacity.max(1)
            }
        }
    }

    /// The window that the free space and the clamp allow, whatever was announced.
    fn allowed(&self) -> u64 {
        self.capacity.saturating_sub(self.unread()).min(self.clamp)
    }

    /// Whether the window need be no smaller than when `acked` was acknowledged.
    pub(super) fn is_not_shrunk(&self, acked: u64) -> bool {
        self.nxt + self.allowed() >= self.edge + self.nxt.saturating_sub(acked)
    }

    /// A segment of `len` bytes arrived in order: the window may open by two segments, until it is
    /// as large as what is free of the buffer (Linux `tcp_grow_window`; other systems tune their
    /// buffers alike). Returns whether it did.
    pub(super) fn grow(&mut self, len: u32, mss: u32) -> bool {
        let most = self.tuning.map_or(self.capacity, |tuning| tuning.limit().min(self.capacity));
        let free = most.saturating_sub(self.unread());
        let grows = len >= GROWS_FROM.min(mss) && free > self.clamp;
        if grows {
            self.clamp = (self.clamp + 2 * u64::from(mss)).min(free);
        }
        grows
    }

    /// What the window may grow to is tuned by this.
    pub(super) const fn tuning(&mut self) -> Option<&mut Tuning> {
        self.tuning.as_mut()
    }

    /// Moves the announced edge to the best and returns the window field for it, shifted by `scale`.
    /// Rounds up where rounding down would move the edge left (RFC 7323 section 2.4).
    pub(super) fn announce(&mut self, mss: u32, scale: u8) -> u16 {
        let best = self.best_window(mss);
        let mut field = (best >> scale).min(u64::from(u16::MAX));
        if self.nxt + (field << scale) < self.edge && field < u64::from(u16::MAX) {
            field += 1;
        }
        self.edge = self.edge.max(self.nxt + (field << scale));
        self.read_announced = self.read;
        field as u16
    }
}

/// The window of a SYN cannot be scaled, and every system begins there.
const INITIAL_CLAMP: u64 = 65_535;

/// Smaller segments do not open the window: with their overhead (`truesize`, above 2 kB for a full
/// frame) they would cost more than twice the memory that they announce. A full segment always does,
/// lest a small MSS be bound to 64 kB.
const GROWS_FROM: u32 = 1024;

/// Ranges beyond gaps that are kept; a segment that would open another is dropped (and sent again).
const MAX_RANGES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> ReceiveBuffer {
        let mut buffer = ReceiveBuffer::new(10_000, false);
        buffer.on_syn(Seq(1000));
        assert_eq!(buffer.announce(100, 0), 10_000);
        buffer
    }

    #[test]
    fn a_gap_is_filled_and_everything_behind_it_becomes_readable() {
        let mut b = buffer();
        assert_eq!(b.insert(101, 201), Arrival { advanced: 0, refused: 0, gap: true });
        assert_eq!(b.insert(301, 401), Arrival { advanced: 0, refused: 0, gap: true });
        assert_eq!(b.insert(1, 101), Arrival { advanced: 200, refused: 0, gap: true });
        assert_eq!(b.insert(150, 351), Arrival { advanced: 200, refused: 101, gap: true });
        assert_eq!(b.insert(401, 402), Arrival { advanced: 1, refused: 0, gap: false });
        assert_eq!((b.nxt, b.unread(), b.has_gap()), (402, 401, false));
    }

    #[test]
    fn the_first_sack_block_is_the_range_that_changed_last() {
        let mut b = buffer();
        b.insert(101, 201);
        b.insert(501, 601);
        b.insert(301, 401);
        let lefts = |b: &ReceiveBuffer, max| -> Vec<u32> {
            b.sack_blocks(max).as_slice().iter().map(|block| block.left.0 - 1000).collect()
        };
        assert_eq!(lefts(&b, 4), [301, 501, 101]);
        b.insert(201, 221);
        assert_eq!(lefts(&b, 3), [101, 301, 501]);
        assert_eq!(lefts(&b, 2), [101, 301]);
    }

    #[test]
    fn bytes_beyond_the_window_are_refused() {
        let mut b = buffer();
        assert_eq!(b.insert(9_901, 10_101), Arrival { advanced: 0, refused: 100, gap: true });
    }

    #[test]
    fn the_edge_moves_right_by_whole_segments_and_never_left() {
        let mut b = buffer();
        b.insert(1, 10_001);
        assert_eq!(b.announce(100, 0), 0);
        b.take(99);
        assert_eq!(b.announce(100, 0), 0);
        b.take(1);
        assert_eq!(b.announce(100, 0), 100);
        assert_eq!(b.window(), 100);
    }

    #[test]
    fn a_window_that_opens_by_itself_is_no_reason_for_an_update() {
        let mut b = ReceiveBuffer::new(1 << 20, false);
        b.on_syn(Seq(0));
        b.announce(1460, 6);
        b.insert(1, 201);
        b.grow(200, 1460);
        b.take(200);
        assert!(!b.is_update_worthwhile(WindowUpdate::TwoSegments, 1460));
        b.insert(201, 3121);
        b.take(2920);
        assert!(b.is_update_worthwhile(WindowUpdate::TwoSegments, 1460));
    }

    #[test]
    fn scaling_rounds_up_rather_than_move_the_edge_left() {
        let mut b = ReceiveBuffer::new(1 << 15, false);
        b.on_syn(Seq(0));
        assert_eq!(b.announce(100, 7), 256);
        b.insert(1, 2);
        assert_eq!(b.announce(100, 7), 256);
        b.insert(2, 130);
        assert_eq!(b.announce(100, 7), 255);
    }
}
