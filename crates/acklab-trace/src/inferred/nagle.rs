//! Whether the sender runs Nagle's algorithm.
//!
//! Off is proved by small segments that leave while a small one is unacknowledged; on by holds. A
//! small segment behind full ones only is allowed by Minshall's rule (Linux) and, for one write, by
//! newer BSDs; if it is common, the variant is not the classic one.

use schemars::JsonSchema;
use serde::Serialize;

use super::holds::Decision;
use super::replay::{Departure, Replay};
use crate::noted::Notes;

/// Whether the sender holds small segments back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Nagle {
    /// The finding.
    pub state: NagleState,
    /// `minshall` (only a small unacknowledged segment blocks, as in Linux), `lockstep` (large segments wait, too: one
    /// segment at a time, which TCP_NODELAY does not change), `None` where it cannot be
    /// told from the classic one (any unacknowledged byte blocks).
    pub variant: Option<&'static str>,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Sentences with numbers.
    pub evidence: Vec<String>,
}

/// Nagle's algorithm at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NagleState {
    /// Small segments wait for the acknowledgment.
    On,
    /// Small segments leave at once (TCP_NODELAY).
    Off,
    /// The traffic never put it to the test often enough.
    Unknown,
}

impl Nagle {
    /// Nothing tells.
    pub(crate) fn unknown() -> Self {
        Self { state: NagleState::Unknown, variant: None, confidence: 0.0, evidence: Vec::new() }
    }

    /// The finding from the holds that count, released by ACKs (`by_ack`) and by filling (`filled`).
    pub(super) fn of(
        notes: &Notes<'_>,
        decision: &Decision,
        replay: &Replay,
        by_ack: usize,
        filled: usize,
    ) -> Self {
        if notes.is_deaf() {
            return Self::unknown();
        }
        let holds = by_ack + filled;
        let mut evidence = evidence(decision, by_ack, filled);
        let on =
            if filled > by_ack { 1.0 - 1.0 / (filled as f64 + 1.0) } else { decision.at_the_end() };
        let (state, confidence) = if on <= SURE_OFF && decision.breaks > 0 {
            if holds > 0 {
                evidence.push(format!(
                    "before the first of these, {holds} were held: TCP_NODELAY was set mid-way"
                ));
            }
            (NagleState::Off, (1.0 - on) * (1.0 - 1.0 / (decision.breaks as f64 + 1.0)))
        } else if holds > 0 {
            (NagleState::On, on.min(decision.any.max(1.0 - 1.0 / (filled as f64 + 1.0))))
        } else {
            (NagleState::Unknown, 0.0)
        };
        let large = held_large(decision, replay, notes.mss());
        let variant = match state {
            NagleState::On if large >= LARGE_MIN && large * LARGE_SHARE >= by_ack => {
                evidence.push(format!(
                    "{large} segments of two MSS or more waited as well, each behind one segment: it has one under way at a \
                     time, which is not Nagle's algorithm"
                ));
                Some(LOCKSTEP)
            }
            NagleState::On if replay.small_after_full >= EVENTS_MIN => Some("minshall"),
            _ => None,
        };
        Self { state, variant, confidence, evidence }
    }

    /// Whether the sender has one segment under way at a time, however large.
    pub fn is_lockstep(&self) -> bool {
        self.variant == Some(LOCKSTEP)
    }
}

/// Held segments so long that full ones are among what waited, behind one segment, which no congestion window asks for
/// (RFC 5681 section 3.1: two at least).
fn held_large(decision: &Decision, replay: &Replay, mss: u32) -> usize {
    let large = |d: &Departure| d.len >= 2 * mss && d.flight_before <= mss && !d.marks.recovery;
    let held = replay.departures.iter().zip(&decision.held).filter(|(_, held)| **held >= 0.5);
    held.filter(|(d, _)| large(d)).count()
}

fn evidence(decision: &Decision, by_ack: usize, filled: usize) -> Vec<String> {
    let mut evidence = Vec::new();
    if let Some(release) = decision.release.filter(|_| by_ack > 0) {
        evidence.push(format!(
            "{by_ack} small segments left only when an ACK came for the data before, {:.2} ms after \
             it (standard deviation {:.2} ms); chance would give {:.1}",
            release.at_ms, release.spread_ms, decision.by_chance
        ));
    }
    if filled > 0 {
        evidence.push(format!(
            "{filled} segments left without an ACK when they had grown to a full one"
        ));
    }
    if decision.breaks > 0 {
        evidence.push(format!(
            "{} small segments left while a small one was unacknowledged",
            decision.breaks
        ));
    } else if by_ack + filled > 0 {
        evidence.push("no small segment left while a small one was unacknowledged".into());
    }
    if decision.tails > 0 {
        evidence.push(format!(
            "{} more left right behind a full one: tails of large writes, which some systems send at once",
            decision.tails
        ));
    }
    if decision.repairs > 0 {
        evidence.push(format!(
            "{} more left as loss probes or while a loss was repaired, which says nothing",
            decision.repairs
        ));
    }
    evidence
}

/// [`Nagle::variant`] of a sender with one segment under way at a time.
const LOCKSTEP: &str = "lockstep";
/// So many large segments that were held, and such a part of all, and it is one.
const LARGE_MIN: usize = 2;
const LARGE_SHARE: usize = 8;
/// Fewer events prove nothing.
const EVENTS_MIN: u64 = 3;
/// Probability of "on" below which it was off.
const SURE_OFF: f64 = 0.1;
