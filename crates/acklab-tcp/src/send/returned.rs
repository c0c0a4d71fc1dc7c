//! Which segments a switch sent back (E-DCTCP), and when they go again; few, and none with most congestion
//! controls, so that they stand apart from the segments that are out.

use acklab_core::time::Time;

/// A segment that came back at least once.
#[derive(Clone, Copy, Debug)]
struct Return {
    /// Offset after its last byte, by which it is known.
    end: u64,
    times: u32,
    /// When it goes again; [`Time::MAX`]: it does not wait.
    due: Time,
}

/// The segments that came back and are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// Ascending.
    list: Vec<Return>,
}

impl Returned {
    pub(super) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Where each of them ends, ascending.
    pub(super) fn ends(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|one| one.end)
    }

    /// Whether the segment up to `end` came back.
    pub(super) fn has(&self, end: u64) -> bool {
        self.list.iter().any(|one| one.end == end)
    }

    /// The segment up to `end` comes back; returns how often it has, `None` where it waits already.
    pub(super) fn come_back(&mut self, now: Time, end: u64) -> Option<u32> {
        let place = self.list.partition_point(|one| one.end < end);
        if self.list.get(place).is_none_or(|one| one.end != end) {
            self.list.insert(place, Return { end, times: 0, due: Time::MAX });
        }
        let one = &mut self.list[place];
        if one.due != Time::MAX {
            return None;
        }
        one.due = now;
        one.times += 1;
        Some(one.times)
    }

    /// The segment up to `end`, if it came back, goes again at `at` and not before.
    pub(super) fn postpone(&mut self, end: u64, at: Time) {
        if let Some(one) = self.list.iter_mut().find(|one| one.end == end) {
            one.due = at;
        }
    }

    /// [start, end) left as one segment that was, or began with, the segment up to `old`.
    pub(super) fn leave(&mut self, start: u64, end: u64, old: Option<u64>) {
        let times = self.list.iter().find(|one| Some(one.end) == old).map(|one| one.times);
        self.list.retain(|one| one.end <= start || end < one.end);
        if let Some(times) = times {
            let place = self.list.partition_point(|one| one.end < end);
            self.list.insert(place, Return { end, times, due: Time::MAX });
        }
    }

    /// Everything below `ack` arrived.
    pub(super) fn acknowledge(&mut self, ack: u64) {
        self.list.retain(|one| one.end > ack);
    }

    /// A time-out sends everything again.
    pub(super) fn forget(&mut self) {
        self.list.clear();
    }

    /// Where the first one ends that is due at `now`.
    pub(super) fn first_due(&self, now: Time) -> Option<u64> {
        self.list.iter().find(|one| one.due <= now).map(|one| one.end)
    }

    /// When the next one goes.
    pub(super) fn earliest(&self) -> Option<Time> {
        self.list.iter().map(|one| one.due).min().filter(|&at| at != Time::MAX)
    }
}
