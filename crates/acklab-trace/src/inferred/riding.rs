//! Holds released by an ACK that rode on data, or that data of the peer followed.
//!
//! A client that answers whatever comes looks just like a held segment that a piggybacked ACK lets
//! go. What tells them apart is proof that the write came earlier: the writes keep a beat of their
//! own ([`super::writes::Beat`]), the segment carries two messages or more, and the first of them was
//! due well before the release.

use super::holds::{Decision, may_answer};
use super::{Hold, Messages, RoundTrips};
use crate::noted::Notes;
use crate::noted::values::Candidate;

/// The holds of this kind, none where `messages` have no beat.
pub(super) fn find(
    notes: &Notes<'_>,
    decision: &Decision,
    trips: &RoundTrips,
    messages: &Messages<'_>,
) -> Vec<Hold> {
    if decision.breaks.count > 0 && decision.holds.is_empty() {
        return Vec::new();
    }
    let far = trips.far_ms.unwrap_or(0.0);
    let window = far * 0.8 - REACTION_MS..=far * 1.1 + 2.0 * REACTION_MS;
    let may_be = |c: &&Candidate| {
        (!c.marks.pure || may_answer(c, trips))
            && !c.marks.recovery
            && !c.marks.window
            && window.contains(&c.gap_ms())
    };
    let held = |c: &Candidate| {
        let hold = Hold::released(c, trips).written_at(messages.written(c.end)?);
        (messages.in_segment(c.end) >= 2 && hold.length_ms() >= EARLIER_MS).then_some(hold)
    };
    let holds: Vec<Hold> = notes.candidates.iter().filter(may_be).filter_map(held).collect();
    if holds.len() < HOLDS_MIN { Vec::new() } else { holds }
}

/// The first message was due at least this long before the release.
const EARLIER_MS: f64 = 2.0;
/// Fewer such holds are not claimed.
const HOLDS_MIN: usize = 3;
/// A release follows its ACK within so much, as in [`super::holds`].
const REACTION_MS: f64 = 1.0;
