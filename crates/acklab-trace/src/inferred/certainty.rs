//! How sure it is that writes were held in one direction, and what keeps it from being sure.

use acklab_core::math;
use schemars::JsonSchema;
use serde::Serialize;

use super::holds::Decision;
use super::{Hold, RoundTrips};
use crate::noted::Notes;

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
}

impl Lack {
    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::BothDirections => "capture both directions of the connection",
            Self::SenderSide => "capture on the sender's side, from before the connection begins",
            Self::LongerCapture => "capture for longer, while it is slow",
        }
    }
}

impl Certainty {
    pub(super) fn of(
        notes: &Notes<'_>,
        trips: &RoundTrips,
        decision: &Decision,
        holds: &[Hold],
    ) -> Self {
        let counted: Vec<f64> = holds.iter().map(Hold::counts).filter(|p| *p >= 0.5).collect();
        let best = counted.iter().copied().fold(0.0, f64::max);
        // One hold alone may be anything.
        let stalled = best * (1.0 - math::pow(counted.len() as f64 + 1.0, -FEW));
        if stalled >= 0.5 {
            return Self { stalled, lacks: None };
        }
        let facts = notes.facts;
        let heard = facts.packets.pure_acks + facts.packets.acks_on_data;
        let unseen_sender = facts.packets.segments == 0 && facts.stream.unseen_bytes > 0;
        let deaf = heard == 0 && facts.packets.segments >= SEGMENTS_MIN;
        let (least, lacks) = if unseen_sender || deaf {
            (UNSEEN, Some(Lack::BothDirections))
        } else if !counted.is_empty() {
            (stalled.max(OPEN), Some(Lack::LongerCapture))
        } else if (decision.any >= OPEN || decision.or_beat) && !trips.handshake {
            (decision.any.clamp(OPEN, 0.49), Some(Lack::SenderSide))
        } else {
            let whole = trips.handshake && trips.grain_ms <= 0.0 && decision.damage < DAMAGED;
            let least = match (decision.at_the_end() < SURELY_OFF, whole) {
                _ if trips.grain_ms > 0.0 => HALF_SEEN,
                (true, true) => PROVEN,
                (false, true) => UNTESTED,
                (_, false) => DAMAGED_UNTESTED,
            };
            (least.max(decision.any.min(0.5 * OPEN)), None)
        };
        Self { stalled: least, lacks }
    }
}

/// Of directions where nothing was found, so many were held after all: where breaks of the rule show that
/// Nagle's algorithm is off, and where nothing put it to the test. Measured on captures of known truth.
const PROVEN: f64 = 0.005;
const UNTESTED: f64 = 0.02;
/// The same where the capture lacks frames, swaps them, or began late.
const DAMAGED_UNTESTED: f64 = 0.08;
/// The same where one host's packets were put back by their echoes.
const HALF_SEEN: f64 = 0.14;
/// Such a share of frames missing or out of order, and it counts as damaged.
const DAMAGED: f64 = 0.003;
/// Probability of "on" below which it was off.
const SURELY_OFF: f64 = 0.05;
/// Of those whose acknowledgments or data the capture lacks.
const UNSEEN: f64 = 0.4;
/// How fast doubt goes with the number of holds: two of five remain of one, one in twenty of ten.
const FEW: f64 = 1.3;
/// From here on it is open.
pub(crate) const OPEN: f64 = 0.2;
/// Shorter ones are greetings.
const SEGMENTS_MIN: u64 = 4;
