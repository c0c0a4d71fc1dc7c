//! How far a sequence of bytes has been delivered: what has left, what was acknowledged, what was lost
//! and waits to leave again. Streams and parcels each keep one (docs/rudp.md sections 4 and 7).
//!
//! Lost bytes that another transmission has delivered since are not sent again; bytes can be lost
//! and on their way at once, which is what a suspect path and tail duplicates ask for.

use std::ops::Range;

use acklab_core::ranges::RangeSet;

/// The state of a sequence of bytes at its sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    acked: RangeSet,
    lost: RangeSet,
    /// Bytes that left at least once.
    sent: u64,
}

impl Delivery {
    /// Bytes that left at least once.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes from the beginning on that were acknowledged without a gap.
    pub(super) fn acked_below(&self) -> u64 {
        self.acked.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// Bytes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acked.total()
    }

    /// Bytes that wait to leave again.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.lost.total()
    }

    /// The offset of the first byte that waits to leave again.
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().map(|range| range.start)
    }

    /// Takes at most `most` of the first bytes that wait to leave again.
    pub(super) fn take_lost(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.lost.first()?;
        let range = first.start..first.end.min(first.start + most);
        self.lost.remove(range.clone());
        Some(range)
    }

    /// The next `len` bytes leave for the first time.
    pub(super) fn take_new(&mut self, len: u64) -> Range<u64> {
        let range = self.sent..self.sent + len;
        self.sent = range.end;
        range
    }

    /// `range` was acknowledged.
    pub(super) fn on_acked(&mut self, range: Range<u64>) {
        self.acked.insert(range.clone());
        if !self.lost.is_empty() {
            self.lost.remove(range);
        }
    }

    /// `range` is to leave again, but for what was acknowledged.
    pub(super) fn on_lost(&mut self, mut range: Range<u64>) {
        while let Some(gap) = self.acked.first_gap(&range) {
            range.start = gap.end;
            self.lost.insert(gap);
        }
    }

    /// Nothing of it is sent again.
    pub(super) fn forget_lost(&mut self) {
        self.lost = RangeSet::new();
    }

    /// The first bytes in `within` that have left and were not acknowledged.
    pub(super) fn unacked(&self, within: Range<u64>) -> Option<Range<u64>> {
        self.acked.first_gap(&(within.start..within.end.min(self.sent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_copy_delivered_is_not_sent_again() {
        let mut delivery = Delivery::default();
        assert_eq!(delivery.take_new(100), 0..100);
        delivery.on_acked(20..40);
        delivery.on_lost(0..60);
        assert_eq!(delivery.lost_bytes(), 40);
        delivery.on_acked(50..60);
        assert_eq!(delivery.take_lost(15), Some(0..15));
        assert_eq!(delivery.take_lost(15), Some(15..20));
        assert_eq!(delivery.take_lost(15), Some(40..50));
        assert_eq!(delivery.take_lost(15), None);
        assert_eq!(delivery.acked_below(), 0);
        assert_eq!(delivery.unacked(30..200), Some(40..50));
        assert_eq!(delivery.unacked(60..200), Some(60..100));
    }
}
