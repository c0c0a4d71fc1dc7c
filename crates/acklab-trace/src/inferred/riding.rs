//! Holds released by an ACK that rode on data, or that data of the peer followed.
//!
//! A client that answers whatever comes looks just like a held segment that a piggybacked ACK lets
//! go. What tells them apart is proof that the write came earlier: the writes keep a beat of their
//! own ([`super::writes::Beat`]), the segment carries two messages or more, and the first of them was
//! due well before the release.

use super::holds::{Decision, may_answer};
use super::replay::{Departure, Replay};
use super::{Hold, Messages, RoundTrips};

/// The holds of this kind, none where `messages` have no beat.
pub(super) fn find(
    replay: &Replay,
    decision: &Decision,
    trips: &RoundTrips,
    messages: &Messages,
) -> Vec<Hold> {
    let far = trips.far_ms.unwrap_or(0.0);
    let window = far * 0.8 - REACTION_MS..=far * 1.1 + 2.0 * REACTION_MS;
    let may_be = |d: &Departure| {
        (!d.marks.pure || may_answer(d, trips))
            && !(d.marks.recovery || d.marks.window || d.marks.broke)
            && d.gap_ms().is_some_and(|gap| window.contains(&gap))
    };
    let held = |(d, on): (&Departure, &f64)| {
        let hold = Hold::released(d, trips, *on)?.written_at(messages.written(d.end)?);
        let early = messages.in_segment(d.end) >= 2 && hold.length_ms() >= EARLIER_MS;
        (may_be(d) && early && *on >= 0.5).then_some(hold)
    };
    let holds: Vec<Hold> =
        replay.departures.iter().zip(&decision.on).filter_map(held).collect();
    if holds.len() < HOLDS_MIN { Vec::new() } else { holds }
}

/// The first message was due at least this long before the release.
const EARLIER_MS: f64 = 2.0;
/// Fewer such holds are not claimed.
const HOLDS_MIN: usize = 3;
/// A release follows its ACK within so much, as in [`super::holds`].
const REACTION_MS: f64 = 1.0;
