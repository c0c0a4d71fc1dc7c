//! The parcels of the receiving side (docs/rudp.md section 7): put together from fragments in any
//! order, delivered whole and once, or dropped when their time is over.
//!
//! Which ids are done is remembered as ranges above a floor; an honest sender never goes more than
//! [`IDS_MAX`] beyond that floor. Memory: the totals of the parcels begun, which the connection's
//! credit bounds, and [`GAPS_MAX`] ranges for each of [`BEGUN_MAX`].

use std::collections::{BTreeMap, VecDeque};

use super::Code;
use super::piece::Refused;
use super::receive_stream::GAPS_MAX;
use super::send_parcels::{BEGUN_MAX, IDS_MAX};
use crate::wire::Kind;
use acklab_core::ranges::RangeSet;
use acklab_core::time::{Span, Time};

/// How long a ONE_SHOT parcel is waited for after its last new fragment, at least (section 7).
const ONE_SHOT_WAIT: Span = Span::from_millis(500);

/// A fragment as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    /// Parcel id.
    pub(super) parcel: u64,
    /// What becomes of lost fragments.
    pub(super) kind: Kind,
    /// Bytes of the whole parcel.
    pub(super) total: u32,
    /// Where in the parcel the data belong.
    pub(super) offset: u32,
    /// At least one byte, inside of `total`.
    pub(super) data: &'a [u8],
}

/// A parcel of which fragments are missing.
#[derive(Debug)]
struct Incoming {
    bytes: Vec<u8>,
    total: u32,
    reliable: bool,
    received: RangeSet,
    deadline: Time,
    /// Its place in the order of arrival.
    begun: u64,
}

/// What the arrival of a fragment did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Its parcel is complete and waits to be taken.
    pub(super) complete: bool,
    /// To make room for its parcel, this one of so many bytes was dropped.
    pub(super) dropped: Option<(u64, u32)>,
}

/// All parcels of the receiving side.
#[derive(Debug, Default)]
pub(super) struct ReceiveParcels {
    incoming: BTreeMap<u64, Incoming>,
    done: RangeSet,
    complete: VecDeque<(u64, Vec<u8>)>,
    /// Parcels begun so far.
    begun: u64,
    /// No deadline is earlier.
    earliest: Option<Time>,
}

impl ReceiveParcels {
    /// Ids below are all done.
    fn floor(&self) -> u64 {
        self.done.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// Whether `id` would begin a parcel, which takes credit.
    pub(super) fn is_new(&self, id: u64) -> Result<bool, Code> {
        if id >= self.floor() + IDS_MAX {
            return Err(Code::FlowControl);
        }
        Ok(!self.done.contains(id) && !self.incoming.contains_key(&id))
    }

    /// Takes a fragment; its id was looked at with [`Self::is_new`].
    pub(super) fn insert(
        &mut self,
        now: Time,
        fragment: &Fragment<'_>,
        pto: Span,
    ) -> Result<Outcome, Refused> {
        let id = fragment.parcel;
        if self.done.contains(id) {
            return Ok(Outcome::default());
        }
        let mut outcome = Outcome::default();
        if !self.incoming.contains_key(&id) {
            outcome.dropped = self.make_room()?;
            self.begin(fragment);
        }
        let Some(parcel) = self.incoming.get_mut(&id) else { return Ok(outcome) };
        if parcel.total != fragment.total || parcel.reliable != (fragment.kind == Kind::Reliable) {
            return Err(Refused::Close(Code::Protocol));
        }
        let start = u64::from(fragment.offset);
        let range = start..start + fragment.data.len() as u64;
        if parcel.received.len() >= GAPS_MAX && parcel.received.would_add(&range) {
            return Err(Refused::Lost);
        }
        if parcel.received.insert(range) == 0 {
            return Ok(outcome);
        }
        parcel.copy_in(fragment.offset as usize, fragment.data);
        if parcel.received.total() == u64::from(parcel.total) {
            self.finish(id);
            outcome.complete = true;
            return Ok(outcome);
        }
        match fragment.kind {
            Kind::Reliable => {}
            Kind::OneShot => parcel.deadline = now + ONE_SHOT_WAIT.max(pto * 3),
            Kind::Expiring { life_ms } => {
                parcel.deadline = parcel.deadline.min(now + Span::from_millis(life_ms));
            }
        }
        let deadline = parcel.deadline;
        self.note(deadline);
        Ok(outcome)
    }

    fn begin(&mut self, fragment: &Fragment<'_>) {
        self.begun += 1;
        let parcel = Incoming {
            bytes: Vec::with_capacity(fragment.total as usize),
            total: fragment.total,
            reliable: fragment.kind == Kind::Reliable,
            received: RangeSet::new(),
            deadline: Time::MAX,
            begun: self.begun,
        };
        self.incoming.insert(fragment.parcel, parcel);
    }

    /// Drops the oldest that is not RELIABLE where there are too many.
    fn make_room(&mut self) -> Result<Option<(u64, u32)>, Refused> {
        if self.incoming.len() < BEGUN_MAX {
            return Ok(None);
        }
        let perishable = self.incoming.iter().filter(|(_, parcel)| !parcel.reliable);
        let oldest = perishable.min_by_key(|(_, parcel)| parcel.begun).map(|(&id, _)| id);
        let parcel = oldest.ok_or(Code::FlowControl)?;
        Ok(Some((parcel, self.drop_parcel(parcel))))
    }

    fn drop_parcel(&mut self, id: u64) -> u32 {
        self.done.insert(id..id + 1);
        self.incoming.remove(&id).map_or(0, |parcel| parcel.total)
    }

    fn finish(&mut self, id: u64) {
        self.done.insert(id..id + 1);
        if let Some(parcel) = self.incoming.remove(&id) {
            self.complete.push_back((id, parcel.bytes));
        }
    }

    /// The peer has given `id` up. The bytes of credit that are free again, where it was not done:
    /// those of what had arrived, else none, and the caller counts what the frame says.
    pub(super) fn on_gone(&mut self, id: u64) -> Option<u32> {
        if self.done.contains(id) { None } else { Some(self.drop_parcel(id)) }
    }

    /// Bytes that are held for the application or until a parcel is complete.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let incoming = self.incoming.values().map(|parcel| parcel.bytes.len());
        incoming.chain(self.complete.iter().map(|(_, bytes)| bytes.len())).sum()
    }

    /// A complete parcel: its id and bytes.
    pub(super) fn take(&mut self) -> Option<(u64, Vec<u8>)> {
        self.complete.pop_front()
    }

    fn note(&mut self, deadline: Time) {
        if deadline != Time::MAX {
            self.earliest = Some(self.earliest.map_or(deadline, |known| known.min(deadline)));
        }
    }

    /// When [`Self::expire`] may have something to do.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.earliest
    }

    /// Drops what is beyond its deadline; `gone` is told each id and its bytes, whose credit is free.
    pub(super) fn expire(&mut self, now: Time, mut gone: impl FnMut(u64, u32)) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        self.earliest = None;
        let over: Vec<u64> = self
            .incoming
            .iter()
            .filter(|(_, parcel)| parcel.deadline <= now)
            .map(|(&id, _)| id)
            .collect();
        for id in over {
            gone(id, self.drop_parcel(id));
        }
        let earliest = self.incoming.values().map(|parcel| parcel.deadline).min();
        self.note(earliest.unwrap_or(Time::MAX));
    }
}

impl Incoming {
    fn copy_in(&mut self, offset: usize, data: &[u8]) {
        if offset > self.bytes.len() {
            self.bytes.resize(offset, 0);
        }
        let (over, behind) = data.split_at(data.len().min(self.bytes.len() - offset));
        self.bytes[offset..offset + over.len()].copy_from_slice(over);
        self.bytes.extend_from_slice(behind);
    }
}
