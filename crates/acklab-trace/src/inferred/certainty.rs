//! How sure it is that writes were held in one direction, and what keeps it from being sure.

use acklab_core::math;
use schemars::JsonSchema;
use serde::Serialize;

use super::holds::{Decision, outruns_acks};
use super::replay::Replay;
use super::{Hold, RoundTrips, untested};
use crate::noted::Notes;
use crate::noted::event::Event;

/// Whether any write was held for 10 ms or longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certainty {
    /// The probability that one was.
    pub(crate) stalled: f64,
    /// What would decide it, where it is open.
    pub(crate) lacks: Option<Lack>,
}

/// What a capture lacks, so that it cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The other direction's packets were not captured.
    BothDirections,
    /// Where the sender is: the capture was made away from it, and began after the connection.
    SenderSide,
    /// Too few packets say anything.
    LongerCapture,
    /// The clock that stamped the packets is too coarse to show a wait of 10 ms.
    FinerClock,
    /// Too many packets are missing or not in their order.
    AllInOrder,
    /// The acknowledgments that carry no data were filtered out.
    BareAcks,
}

impl Lack {
    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::BothDirections => "capture both directions of the connection",
            Self::SenderSide => "capture on the sender's side, from before the connection begins",
            Self::LongerCapture => "capture for longer, while it is slow",
            Self::FinerClock => "capture with time stamps of a millisecond or finer",
            Self::AllInOrder => {
                "capture without losing packets, and sort them by time (`reordercap IN OUT`)"
            }
            Self::BareAcks => "capture without a filter that drops packets without data",
        }
    }
}

impl Certainty {
    pub(super) fn of(
        notes: &Notes<'_>,
        replay: &Replay,
        trips: &RoundTrips,
        decision: &Decision,
        holds: &[Hold],
    ) -> Self {
        let counted: Vec<f64> = holds.iter().map(Hold::counts).filter(|p| *p >= 0.5).collect();
        let longest = holds.iter().map(Hold::counts).fold(0.0, f64::max);
        let best = counted.iter().copied().fold(0.0, f64::max);
        // One hold alone may be anything.
        let stalled = best * (1.0 - math::pow(counted.len() as f64 + 1.0, -FEW));
        if stalled >= 0.5 {
            return Self { stalled, lacks: None };
        }
        let facts = notes.facts;
        let unseen_sender = facts.packets.segments == 0 && facts.stream.unseen_bytes > 0;
        let deaf = notes.is_deaf() && facts.packets.segments >= SEGMENTS_MIN;
        let (least, lacks) = if unseen_sender || deaf {
            (UNSEEN, Some(Lack::BothDirections))
        } else if trips.grain_ms <= 0.0 && is_coarse(&notes.events) {
            (UNSEEN, Some(Lack::FinerClock))
        } else if decision.damage >= SHATTERED
            && facts.packets.segments >= SHATTERED_MIN
            && !are_outrun(replay, trips, decision)
        {
            (UNSEEN, Some(Lack::AllInOrder))
        } else if !counted.is_empty() {
            (stalled.max(OPEN), Some(Lack::LongerCapture))
        } else if (decision.any >= OPEN || decision.or_beat) && !trips.handshake {
            (decision.any.clamp(OPEN, 0.49), Some(Lack::SenderSide))
        } else if (decision.any >= OPEN && decision.by_chance <= HARDLY) || longest >= LONG_OPEN {
            (decision.any.max(longest).clamp(OPEN, 0.49), Some(Lack::LongerCapture))
        } else {
            denied(notes, replay, trips, decision)
        };
        Self { stalled: least, lacks }
    }
}

/// Whether enough small segments waited for no ACK, whatever the capture lacks.
fn are_outrun(replay: &Replay, trips: &RoundTrips, decision: &Decision) -> bool {
    let soon = replay.departures.iter().filter(|d| outruns_acks(d, trips)).count() as u64;
    decision.at_the_end() < SURELY_OFF && soon >= SOON_MIN && soon * 2 >= decision.breaks
}

/// What remains where nothing was found.
fn denied(
    notes: &Notes<'_>,
    replay: &Replay,
    trips: &RoundTrips,
    decision: &Decision,
) -> (f64, Option<Lack>) {
    let whole = trips.handshake && trips.grain_ms <= 0.0 && decision.damage < DAMAGED;
    let least = match (decision.at_the_end() < SURELY_OFF, whole) {
        _ if trips.grain_ms > 0.0 => HALF_SEEN,
        (true, true) => PROVEN,
        (false, true) => UNTESTED,
        (_, false) => DAMAGED_UNTESTED,
    };
    match untested::doubt(notes, replay, trips) {
        Some(doubt) => (least.max(decision.any.min(0.5 * OPEN)).max(doubt), None),
        None => (OPEN, Some(Lack::SenderSide)),
    }
}

/// Whether the clock goes on in steps that hide a wait: most packets share a time, and the others are far apart.
fn is_coarse(events: &[Event]) -> bool {
    let steps =
        events.windows(2).map(|two| two[1].time().signed_since(two[0].time()).unsigned_abs());
    let (shared, apart): (Vec<u64>, Vec<u64>) = steps.partition(|step| *step == 0);
    let least = apart.iter().min().is_none_or(|least| *least >= COARSE_NS);
    shared.len() >= SHARED_MIN && shared.len() * 2 >= events.len() && least
}

/// Of directions where nothing was found, so many were held after all: where breaks of the rule show that
/// Nagle's algorithm is off, and where nothing put it to the test. Measured on captures of known truth.
const PROVEN: f64 = 0.005;
const UNTESTED: f64 = 0.02;
/// The same where the capture lacks frames, swaps them, or began late.
const DAMAGED_UNTESTED: f64 = 0.08;
/// The same where one host's packets were put back by their echoes.
const HALF_SEEN: f64 = 0.14;
/// Such a share of frames missing or out of order, and nothing can be said.
const SHATTERED: f64 = 0.4;
const SHATTERED_MIN: u64 = 20;
/// Fewer segments may be out of order.
const SOON_MIN: u64 = 20;
/// Steps of a clock that hides waits, ns; so many packets must share a time before it is called one.
const COARSE_NS: u64 = 5_000_000;
const SHARED_MIN: usize = 8;
/// Such a share of frames missing or out of order, and it counts as damaged.
const DAMAGED: f64 = 0.003;
/// Probability of "on" below which it was off.
const SURELY_OFF: f64 = 0.05;
/// Of those whose acknowledgments or data the capture lacks.
pub(crate) const UNSEEN: f64 = 0.4;
/// How fast doubt goes with the number of holds: two of five remain of one, one in twenty of ten.
const FEW: f64 = 1.3;
/// Writes at random moments would feign so few holds that even one which is left to doubt leaves it open.
const HARDLY: f64 = 0.1;
/// So likely one of the holds that are likelier shorter was one of 10 ms, and it is open.
const LONG_OPEN: f64 = 0.4;
/// From here on it is open.
pub(crate) const OPEN: f64 = 0.2;
/// Shorter ones are greetings.
const SEGMENTS_MIN: u64 = 4;
