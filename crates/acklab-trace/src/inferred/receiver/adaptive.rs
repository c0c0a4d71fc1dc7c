//! A timer that follows the traffic: Linux's ato, which starts at 40 ms (TCP_ATO_MIN).

use super::late_acks::{DELAYED_MS, LateAcks};
use super::policy::{PolicyKind, Receiver, ReceiverPolicy, confidence};
use super::timer::Timer;
use crate::inferred::RoundTrips;

/// Spread-out delays: Linux's ato if they begin at its minimum, else unknown.
pub(super) fn of(acks: &LateAcks, trips: &RoundTrips) -> Receiver {
    let sample = &acks.delays;
    let (low, high) = (sample.quantile(0.1), sample.quantile(0.95));
    let evidence = format!("{} delayed ACKs spread from {low:.1} to {high:.1} ms", sample.len());
    let linux = (35.0..=50.0).contains(&low) && high <= 210.0;
    let mut policy = ReceiverPolicy::default();
    policy.evidence.push(evidence);
    if linux {
        policy.profile = Some("linux");
        policy.candidates = vec!["linux"];
        policy.timer_ms = Some(40.0);
        policy.kind = PolicyKind::Adaptive;
        policy.confidence = confidence(sample.len(), sample.len()) * 0.7;
    }
    // Round trips vary under load by as much as they are long; what is shorter is the network's.
    let least = if linux { low - 5.0 } else { trips.near_ms.unwrap_or(0.0).max(1.5 * DELAYED_MS) };
    Receiver { policy, timer: Timer::Unknown { least } }
}
