//! The sender's knowledge: Nagle's state as Minshall has it (draft-minshall-nagle-01: the end of the last
//! small segment, and whether it is acknowledged), the window's edge, and whether a loss was being
//! repaired.
//!
//! Segments sent again say nothing of Nagle; they put the direction into recovery until everything
//! sent before them is acknowledged.

use acklab_core::time::Time;

use crate::noted::event::AckNote;

/// The sender's knowledge. Offsets are those of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// One past the highest byte sent.
    next: u64,
    /// One past the highest byte acknowledged.
    pub(super) acked: u64,
    /// End of the last small segment.
    pub(super) small_end: u64,
    /// The last segment was a full one.
    pub(super) full: bool,
    /// Bytes below this were sent when loss recovery began.
    recovery_end: u64,
    /// Where the receiver's window ends; 0 where that is not known.
    edge: u64,
    flight_max: u64,
    /// Bytes acknowledged since the last segment that never passed: they left between it and what leaves next.
    pub(super) unseen: u64,
    pub(super) last_ack: Option<Time>,
    /// The ACK that lets go what leaves next.
    pub(super) clear: Option<Clear>,
    /// First data of the peer since `clear`.
    pub(super) peer_after: Option<Time>,
}

/// The ACK that left nothing small, or nothing at all, unacknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clear {
    pub(super) time: Time,
    /// Time from the newest segment that it acknowledged and from the oldest, ns; `None` by Karn.
    pub(super) ages: Option<[u64; 2]>,
    /// It carried no data.
    pub(super) pure: bool,
    /// Bytes in flight before it.
    pub(super) flight_before: u32,
    /// The window's edge before it.
    pub(super) edge: u64,
}

impl Sender {
    /// Whether a small segment was unacknowledged.
    #[inline]
    pub(super) fn has_small_out(&self) -> bool {
        self.is_small_out_at(self.acked)
    }

    /// The same, had everything below `acked` been acknowledged.
    #[inline]
    pub(super) fn is_small_out_at(&self, acked: u64) -> bool {
        self.small_end > acked
    }

    /// Whether anything below `offset` was unacknowledged.
    #[inline]
    pub(super) fn has_out_below(&self, offset: u64) -> bool {
        offset > self.acked
    }

    /// Whether anything was unacknowledged.
    pub(super) fn has_any_out(&self) -> bool {
        self.next > self.acked
    }

    /// Whether lost data was being repaired.
    #[inline]
    pub(super) fn is_in_recovery(&self) -> bool {
        self.recovery_end > self.acked
    }

    /// Whether it was before the ACK.
    pub(super) fn was_in_recovery(&self, clear: &Clear) -> bool {
        self.recovery_end > self.acked.saturating_sub(u64::from(clear.flight_before))
    }

    /// The largest flight so far, bytes.
    pub(super) fn flight_max(&self) -> u32 {
        capped(self.flight_max)
    }

    /// Where the window ended before the ACK that lets go what leaves next.
    pub(super) fn edge_before(&self) -> u64 {
        self.clear.map_or(self.edge, |clear| clear.edge)
    }

    /// New data up to `end` has left.
    #[inline]
    pub(super) fn on_sent(&mut self, end: u64, small: bool) {
        if small {
            self.small_end = end;
        }
        self.full = !small;
        // An ACK lets go what leaves next, and only that: packets may share a time stamp.
        self.clear = None;
        self.unseen = 0;
        self.next = end;
        self.flight_max = self.flight_max.max(end.saturating_sub(self.acked));
    }

    /// Old data up to `end` has passed, late or again.
    pub(super) fn on_old(&mut self, end: u64, again: bool) {
        self.next = self.next.max(end);
        if again {
            self.recovery_end = self.recovery_end.max(self.next);
        }
    }

    /// The capture lacks what left before `offset`: forget the ACK, and that anything small is out.
    pub(super) fn on_gap(&mut self, offset: u64) {
        self.clear = None;
        self.small_end = self.acked;
        self.recovery_end = self.recovery_end.max(offset);
    }

    /// A packet of the peer has come.
    pub(super) fn on_ack(&mut self, ack: &AckNote) {
        if !ack.pure {
            self.peer_after = self.peer_after.or(Some(ack.time));
        }
        if ack.acked_to > self.acked {
            self.on_progress(ack);
        }
        self.edge = self.edge.max(ack.edge);
    }

    fn on_progress(&mut self, ack: &AckNote) {
        let unseen = ack.acked_to.saturating_sub(self.next);
        self.unseen += unseen;
        let flight_before = self.next.max(ack.acked_to).saturating_sub(self.acked);
        let small_before = self.has_small_out();
        self.acked = ack.acked_to;
        self.next = self.next.max(self.acked);
        self.last_ack = Some(ack.time);
        let small_cleared = small_before && !self.has_small_out();
        if small_cleared || (flight_before > 0 && self.next == self.acked) {
            self.clear = Some(Clear {
                time: ack.time,
                ages: ack.ages.filter(|_| unseen == 0),
                pure: ack.pure,
                flight_before: capped(flight_before),
                edge: self.edge,
            });
            self.peer_after = (!ack.pure).then_some(ack.time);
        }
    }
}

fn capped(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}
