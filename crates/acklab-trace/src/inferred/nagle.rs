//! Whether the sender runs Nagle's algorithm.
//!
//! Off is proved by small segments that leave while a small one is unacknowledged; on by holds. A
//! small segment behind full ones only is allowed by Minshall's rule (Linux) and, for one write, by
//! newer BSDs; if it is common, the variant is not the classic one.

use schemars::JsonSchema;
use serde::Serialize;

use super::holds::Decision;
use crate::noted::values::Counts;

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
    /// The finding from the holds that count, released by ACKs (`by_ack`) and by filling (`filled`).
    pub(super) fn of(decision: &Decision, counts: &Counts, by_ack: usize, filled: usize) -> Self {
        let holds = by_ack + filled;
        let mut evidence = evidence(decision, by_ack, filled);
        let off = decision.breaks.count;
        let small = (counts.segments - counts.full).max(1);
        let proved_off = off >= EVENTS_MIN && off * 50 > small;
        let (state, confidence) = if proved_off {
            if holds > 0 {
                evidence.push(format!(
                    "before the first of these, {holds} were held: TCP_NODELAY was set mid-way"
                ));
            }
            (NagleState::Off, 1.0 - 1.0 / (off as f64 + 1.0))
        } else if holds > 0 {
            let chance = decision.by_chance / (by_ack as f64).max(1.0);
            (NagleState::On, (1.0 - 1.0 / (holds as f64 + 1.0)) * (1.0 - chance.min(0.5)))
        } else {
            (NagleState::Unknown, 0.0)
        };
        let minshall = state == NagleState::On && counts.small_after_full >= EVENTS_MIN;
        Self { state, variant: minshall.then_some("minshall"), confidence, evidence }
    }
}

fn evidence(decision: &Decision, by_ack: usize, filled: usize) -> Vec<String> {
    let mut evidence = Vec::new();
    if by_ack > 0 {
        evidence.push(format!(
            "{by_ack} small segments left only when an ACK came for the data before, {:.2} ms after \
             it (interquartile range {:.2} ms); chance would give {:.1}",
            decision.gap_ms, decision.gap_iqr_ms, decision.by_chance
        ));
    }
    if filled > 0 {
        evidence.push(format!(
            "{filled} segments left without an ACK when they had grown to a full one"
        ));
    }
    if let Some(slope) = decision.slope.filter(|_| by_ack > 0) {
        evidence.push(format!("the gap does not follow the ACK's delay (slope {slope:.2})"));
    }
    if decision.paced {
        evidence.push(match decision.slope {
            Some(s) => {
                format!("segments follow the application's beat, not the ACK (slope {s:.2})")
            }
            None => "segments follow a steady beat; the ACK may only seem to release them".into(),
        });
    }
    if decision.breaks.count > 0 {
        evidence.push(format!(
            "{} small segments left while a small one was unacknowledged",
            decision.breaks.count
        ));
    } else if by_ack + filled > 0 {
        evidence.push("no small segment left while a small one was unacknowledged".into());
    }
    if decision.breaks.loss_probes > 0 {
        evidence.push(format!(
            "{} more left as loss probes or while a loss was repaired, which says nothing",
            decision.breaks.loss_probes
        ));
    }
    evidence
}

/// Fewer events prove nothing.
const EVENTS_MIN: u64 = 3;
