//! Whether the sender runs Nagle's algorithm.
//!
//! Off is proved by small segments that leave while a small one is unacknowledged; on by holds. A
//! small segment behind full ones only is allowed by Minshall's rule (Linux) and, for one write, by
//! newer BSDs; if it is common, the variant is not the classic one.

use schemars::JsonSchema;
use serde::Serialize;

use super::holds::Decision;
use super::replay::Replay;

/// Whether the sender holds small segments back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Nagle {
    /// The finding.
    pub state: NagleState,
    /// `minshall` (only a small unacknowledged segment blocks, as in Linux), `None` where it cannot be
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
    pub(super) fn of(decision: &Decision, replay: &Replay, by_ack: usize, filled: usize) -> Self {
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
        let minshall = state == NagleState::On && replay.small_after_full >= EVENTS_MIN;
        Self { state, variant: minshall.then_some("minshall"), confidence, evidence }
    }
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
    if decision.repairs > 0 {
        evidence.push(format!(
            "{} more left as loss probes or while a loss was repaired, which says nothing",
            decision.repairs
        ));
    }
    evidence
}

/// Fewer events prove nothing.
const EVENTS_MIN: u64 = 3;
/// Probability of "on" below which it was off.
const SURE_OFF: f64 = 0.1;
