//! Too few delayed ACKs to tell a timer: the systems that all of them fit, or one that never delays.

use super::late_acks::{DELAYED_MS, LateAcks};
use super::policy::{PolicyKind, Receiver, ReceiverPolicy};
use super::profiles::{PROFILES, Profile};
use super::timer::Timer;
use crate::inferred::RoundTrips;

/// Fewer delayed ACKs say nothing of a timer.
pub(super) const EVENTS_MIN: usize = 3;

/// What so few say.
pub(super) fn of(acks: &LateAcks, trips: &RoundTrips) -> Receiver {
    let timer = Timer::Unknown { least: if trips.handshake { 1.5 * DELAYED_MS } else { 35.0 } };
    let policy = if acks.delays.is_empty() && acks.prompt >= 10 {
        immediate(acks.prompt)
    } else {
        candidates(acks)
    };
    Receiver { policy, timer }
}

fn immediate(prompt: u64) -> ReceiverPolicy {
    ReceiverPolicy {
        profile: Some("every-segment"),
        candidates: vec!["every-segment", "linux", "macos"],
        timer_ms: None,
        kind: PolicyKind::Immediate,
        confidence: 1.0 - 1.0 / prompt as f64,
        evidence: vec![format!("{prompt} small segments were acknowledged within 2 ms")],
    }
}

fn candidates(acks: &LateAcks) -> ReceiverPolicy {
    let mut policy = ReceiverPolicy::default();
    if acks.delays.is_empty() {
        return policy;
    }
    let fits_all = |p: &&Profile| acks.delays.values().iter().all(|d| p.fits(*d));
    policy.candidates = PROFILES.iter().filter(fits_all).map(|p| p.name).collect();
    if !policy.candidates.is_empty() {
        policy.evidence.push(format!(
            "only {} delayed ACK{} seen, after {:.1} ms at most",
            acks.delays.len(),
            if acks.delays.len() == 1 { "" } else { "s" },
            acks.delays.max()
        ));
    }
    policy
}
