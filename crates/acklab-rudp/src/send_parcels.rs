//! The parcels of the sending side (docs/rudp.md section 7): messages of 1 B to 16 MB whose fragments
//! are sent again for ever (RELIABLE), never (ONE_SHOT) or while the parcel lives (EXPIRING).
//!
//! A parcel ends when all of it was acknowledged, or when the peer has acknowledged PARCEL_GONE; until
//! then its id holds a place in the peer's memory of ids, so at most [`IDS_MAX`] lie between the
//! oldest that has not ended and the newest.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::delivery::Delivery;
use super::priority::CLASSES;
use crate::wire::{Kind, LIFE_MAX_MS, ParcelHeader};
use acklab_core::time::{Span, Time};

/// Parcels begun and not ended at most (section 7).
pub(super) const BEGUN_MAX: usize = 64;

/// Ids above the oldest unended parcel, which is the receiver's memory of ids (section 7).
pub(super) const IDS_MAX: u64 = 4096;

/// One parcel that is being sent.
#[derive(Debug)]
pub(super) struct SendParcel {
    bytes: Vec<u8>,
    kind: Kind,
    /// Bytes of it, also after they were dropped.
    total: u32,
    priority: u8,
    /// Its fragments leave on two paths at once.
    redundant: bool,
    delivery: Delivery,
    /// It took its place and its credit.
    begun: bool,
    /// When it is given up: its life's end, or 3 PTO after the last fragment of a ONE_SHOT.
    deadline: Time,
    gone: bool,
}

impl SendParcel {
    /// Whether it is to leave on two paths at once.
    pub(super) fn is_redundant(&self) -> bool {
        self.redundant
    }

    /// Whether lost fragments wait.
    pub(super) fn has_lost(&self) -> bool {
        self.delivery.lost_bytes() > 0
    }

    /// Whether it has begun and bytes wait that never left.
    pub(super) fn has_new(&self) -> bool {
        self.begun && !self.gone && self.delivery.sent() < u64::from(self.total)
    }

    /// Whether a fragment may leave now: one of a parcel whose life is shorter than srtt/2 may not.
    pub(super) fn may_leave(&self, now: Time, srtt: Span) -> bool {
        !matches!(self.kind, Kind::Expiring { .. }) || now + srtt / 2 < self.deadline
    }

    /// Whether it goes ahead of its class: less than 4 srtt of its life are left.
    pub(super) fn is_urgent(&self, now: Time, srtt: Span) -> bool {
        matches!(self.kind, Kind::Expiring { .. }) && now + srtt * 4 > self.deadline
    }

    /// Bytes that wait to leave, for the first time or again.
    pub(super) fn waiting(&self) -> u64 {
        if self.gone {
            return 0;
        }
        u64::from(self.total) - self.delivery.sent() + self.delivery.lost_bytes()
    }

    /// What PARCEL_GONE says: the total, or 0 for a parcel that took no credit.
    pub(super) fn gone_total(&self) -> u32 {
        if self.begun { self.total } else { 0 }
    }

    /// The offset of what [`Self::next`] would give.
    pub(super) fn next_offset(&self) -> u64 {
        self.delivery.first_lost().unwrap_or(self.delivery.sent())
    }

    /// The header of a fragment at `offset`.
    pub(super) fn header(&self, parcel: u64, offset: u32, now: Time) -> ParcelHeader {
        let kind = match self.kind {
            Kind::Expiring { .. } => {
                let left = self.deadline.since(now).as_micros() / 1000;
                Kind::Expiring { life_ms: left.min(LIFE_MAX_MS) }
            }
            kind => kind,
        };
        ParcelHeader { parcel, kind, total: self.total, offset }
    }

    /// The fragment that leaves next, at most `most` bytes.
    fn next(&mut self, most: u64, allow_new: bool) -> Option<Range<u64>> {
        if most == 0 || self.gone {
            return None;
        }
        if let Some(range) = self.delivery.take_lost(most) {
            return Some(range);
        }
        let len = (u64::from(self.total) - self.delivery.sent()).min(most);
        (allow_new && len > 0).then(|| self.delivery.take_new(len))
    }

    /// The bytes from `offset` on; empty once the parcel is gone.
    pub(super) fn bytes(&self, offset: u32, len: u32) -> &[u8] {
        self.bytes.get(offset as usize..(offset + len) as usize).unwrap_or_default()
    }

    /// The first bytes in `within` that have left and were not acknowledged, if they may leave again.
    pub(super) fn unacked(&self, within: Range<u64>) -> Option<Range<u64>> {
        if self.gone || self.kind == Kind::OneShot {
            return None;
        }
        self.delivery.unacked(within)
    }

    fn is_delivered(&self) -> bool {
        self.delivery.acked_below() == u64::from(self.total)
    }
}

/// Why a parcel was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParcelError {
    /// It has no byte.
    Empty,
    /// It has more bytes than the peer ever takes.
    TooLarge {
        /// The most it takes.
        most: u64,
    },
    /// Too many have not ended; a later event will make room.
    Full,
    /// The life of an EXPIRING parcel is above 70 minutes.
    TooLongLived,
}

impl std::fmt::Display for ParcelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("a parcel has at least one byte"),
            Self::TooLarge { most } => write!(f, "the peer takes parcels of at most {most} bytes"),
            Self::Full => f.write_str("too many parcels wait; send again after one has ended"),
            Self::TooLongLived => write!(f, "a parcel lives at most {LIFE_MAX_MS} ms"),
        }
    }
}

impl std::error::Error for ParcelError {}

/// What became of the wish to begin another parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// None waits, or as many as may have begun.
    Nothing,
    /// The next one needs more credit than there is.
    Blocked,
    /// This one has begun.
    Begun {
        /// Parcel id.
        parcel: u64,
        /// Class, 0 first.
        priority: u8,
        /// Credit that it takes.
        total: u64,
    },
}

/// All parcels of the sending side that have not ended.
#[derive(Debug, Default)]
pub(super) struct SendParcels {
    parcels: BTreeMap<u64, SendParcel>,
    /// Those that have not begun, by class.
    waiting: [VecDeque<u64>; CLASSES],
    next_id: u64,
    begun: usize,
    /// No deadline is earlier.
    earliest: Option<Time>,
}

impl SendParcels {
    /// Takes a parcel to send; its id.
    pub(super) fn push(
        &mut self,
        now: Time,
        bytes: Vec<u8>,
        kind: Kind,
        priority: u8,
        redundant: bool,
    ) -> Result<u64, ParcelError> {
        let oldest = self.parcels.first_key_value().map_or(self.next_id, |(&id, _)| id);
        let total = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let deadline = match kind {
            Kind::Expiring { life_ms } if life_ms > LIFE_MAX_MS => {
                return Err(ParcelError::TooLongLived);
            }
            Kind::Expiring { life_ms } => now + Span::from_millis(life_ms),
            Kind::Reliable | Kind::OneShot => Time::MAX,
        };
        if total == 0 {
            return Err(ParcelError::Empty);
        }
        if self.next_id - oldest >= IDS_MAX {
            return Err(ParcelError::Full);
        }
        let id = self.next_id;
        self.next_id += 1;
        let parcel = SendParcel {
            bytes,
            kind,
            total,
            priority: priority.min(7),
            redundant,
            delivery: Delivery::default(),
            begun: false,
            deadline,
            gone: false,
        };
        self.waiting[usize::from(parcel.priority)].push_back(id);
        self.parcels.insert(id, parcel);
        self.note(deadline);
        Ok(id)
    }

    fn note(&mut self, deadline: Time) {
        if deadline != Time::MAX {
            self.earliest = Some(self.earliest.map_or(deadline, |known| known.min(deadline)));
        }
    }

    /// The parcel, while it has not ended.
    pub(super) fn parcel(&self, id: u64) -> Option<&SendParcel> {
        self.parcels.get(&id)
    }

    /// Begins the parcel whose turn it is, if `credit` and the number of those begun allow it.
    pub(super) fn begin(&mut self, credit: u64) -> Begin {
        if self.begun >= BEGUN_MAX {
            return Begin::Nothing;
        }
        for waiting in &mut self.waiting {
            while let Some(&id) = waiting.front() {
                let Some(known) = self.parcels.get_mut(&id).filter(|parcel| !parcel.gone) else {
                    waiting.pop_front();
                    continue;
                };
                let total = u64::from(known.total);
                if total > credit {
                    return Begin::Blocked;
                }
                waiting.pop_front();
                known.begun = true;
                self.begun += 1;
                return Begin::Begun { parcel: id, priority: known.priority, total };
            }
        }
        Begin::Nothing
    }

    /// The fragment of `id`, which has begun, that leaves next, at most `most` bytes. A ONE_SHOT
    /// parcel is given up `grace` after its last fragment.
    pub(super) fn next(
        &mut self,
        id: u64,
        now: Time,
        most: u64,
        allow_new: bool,
        grace: Span,
    ) -> Option<Range<u64>> {
        let parcel = self.parcels.get_mut(&id)?;
        let range = parcel.next(most, allow_new)?;
        if parcel.kind == Kind::OneShot && !parcel.has_new() {
            parcel.deadline = now + grace;
            let deadline = parcel.deadline;
            self.note(deadline);
        }
        Some(range)
    }

    /// `range` of `id` was acknowledged: bytes that were not before, and whether that was the last of it.
    pub(super) fn on_acked(&mut self, id: u64, range: Range<u64>) -> (u64, bool) {
        let Some(parcel) = self.parcels.get_mut(&id).filter(|parcel| !parcel.gone) else {
            return (0, false);
        };
        let before = parcel.delivery.acknowledged();
        parcel.delivery.on_acked(range);
        let news = parcel.delivery.acknowledged() - before;
        let delivered = parcel.is_delivered();
        if delivered {
            self.end(id);
        }
        (news, delivered)
    }

    /// `range` of `id` was lost.
    pub(super) fn on_lost(&mut self, id: u64, range: Range<u64>) {
        if let Some(parcel) = self.parcels.get_mut(&id)
            && !parcel.gone
            && parcel.kind != Kind::OneShot
        {
            parcel.delivery.on_lost(range);
        }
    }

    /// The peer has acknowledged that `id` is gone.
    pub(super) fn on_gone_acked(&mut self, id: u64) {
        if self.parcels.get(&id).is_some_and(|parcel| parcel.gone) {
            self.end(id);
        }
    }

    fn end(&mut self, id: u64) {
        if let Some(parcel) = self.parcels.remove(&id) {
            self.begun -= usize::from(parcel.begun);
        }
    }

    /// When [`Self::expire`] may have something to do.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.earliest
    }

    /// Gives up what is beyond its deadline; `gone` is told each id and how many bytes of it waited.
    pub(super) fn expire(&mut self, now: Time, mut gone: impl FnMut(u64, u64)) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        self.earliest = None;
        let mut earliest = Time::MAX;
        for (&id, parcel) in self.parcels.iter_mut().filter(|(_, parcel)| !parcel.gone) {
            if parcel.deadline > now {
                earliest = earliest.min(parcel.deadline);
                continue;
            }
            gone(id, parcel.waiting());
            parcel.gone = true;
            parcel.bytes = Vec::new();
            parcel.delivery.forget_lost();
        }
        self.note(earliest);
    }
}
