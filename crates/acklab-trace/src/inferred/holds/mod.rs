//! Which candidates were holds, let go by a pure ACK.
//!
//! A held segment leaves the sender at once when the ACK arrives, so at the capture point the gap
//! from ACK to data is the round trip to the sender (far) plus a reaction of a millisecond at most,
//! and nearly constant, while the ACK's own delay varies. A write that came later by itself falls
//! anywhere. Hence, per direction:
//!
//! 1. Small segments sent while a small one was unacknowledged prove Nagle off; holds are then
//!    looked for only before the first of them (TCP_NODELAY set mid-way).
//! 2. Of the pure ACKs that came 10 ms or later and that no data of the peer followed
//!    (to which the segment could be the answer), those count whose gap lies in the window at far.
//! 3. They must be many more than chance puts there, and the gap must not shrink as the ACK gets
//!    later (slope -1 is an application that keeps its own beat).
//!
//! ACKs that rode on data need independent proof that the write came earlier: see
//! [`super::riding`]. Not looked for: holds by TCP_CORK, which end by its own 200 ms timer.

mod breaks;
mod limits;
mod own_beat;
mod testable;
mod window;

pub(super) use testable::may_answer;

use acklab_core::time::Time;

use self::breaks::Breaks;
use self::limits::SLOPE_POINTS;
use self::window::GapWindow;
use super::hold::{Hold, SMALL_HOLD_MS};
use super::{RoundTrips, Sample};
use crate::noted::Notes;
use crate::noted::values::Candidate;

/// The decision about one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Decision {
    /// Held segments in order.
    pub(super) holds: Vec<Hold>,
    /// How many holds writes at random moments would feign.
    pub(super) by_chance: f64,
    /// Gap from ACK to data: median and interquartile range of the holds, milliseconds.
    pub(super) gap_ms: f64,
    pub(super) gap_iqr_ms: f64,
    /// Slope of the gap on the ACK delay, where it varies enough.
    pub(super) slope: Option<f64>,
    /// What broke Nagle's rule.
    pub(super) breaks: Breaks,
    /// Candidates refused because the application kept its own beat.
    pub(super) paced: bool,
}

/// Decides which candidates were holds released by pure ACKs.
pub(super) fn decide(notes: &Notes<'_>, trips: &RoundTrips) -> Decision {
    let breaks = Breaks::of(notes, trips);
    let mut decision = Decision { breaks, ..Decision::default() };
    let tested = testable::testable(notes, trips, breaks.end.unwrap_or(Time::MAX));
    let waited = |c: &&Candidate| waited_ms(c, trips) >= SMALL_HOLD_MS;
    let waited_long: Vec<&Candidate> = tested.iter().copied().filter(waited).collect();
    let Some(window) = window::find(&waited_long, trips) else { return decision };
    let inside = |c: &&&Candidate| window.holds(c.gap_ms());
    let held: Vec<&Candidate> = waited_long.iter().filter(inside).copied().collect();
    decision.slope = own_beat::pacing_slope(&waited_long, window);
    let few = if breaks.end.is_some() { 2 } else { SLOPE_POINTS };
    decision.paced = decision.slope.is_some_and(|s| s < own_beat::PACING_SLOPE)
        || (held.len() >= few && own_beat::may_be_its_own(&held, &notes.arrivals, trips));
    let chance = window::by_chance(&waited_long, &held, window, trips);
    decision.by_chance = chance.unwrap_or(held.len() as f64);
    let alone = breaks.end.is_some() && held.len() < 2;
    if chance.is_none() || alone || decision.paced {
        return decision;
    }
    let gaps = Sample::new(held.iter().map(|c| c.gap_ms()).collect());
    (decision.gap_ms, decision.gap_iqr_ms) = (gaps.median(), gaps.iqr());
    let late = window::late_reactions(&waited_long, &held, window);
    let let_go = |c: &&&Candidate| {
        let late = if waited(c) { late } else { 0.0 };
        GapWindow { high: window.high + late, ..window }.holds(c.gap_ms())
    };
    let released = |c: &&Candidate| Hold::released(c, trips);
    decision.holds = tested.iter().filter(let_go).map(released).collect();
    decision
}

/// How long the ACK took as the sender saw it, after the segment before.
fn waited_ms(c: &Candidate, trips: &RoundTrips) -> f64 {
    // Where the way to the sender is not known, the gap may be all of it. On a long one the ACK may
    // have passed before the segment ahead.
    let passed = c.ack.signed_since(c.before) as f64 / 1e6;
    passed + trips.far_ms.unwrap_or_else(|| c.gap_ms())
}
