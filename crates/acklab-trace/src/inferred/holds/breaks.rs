//! Small segments that left while a small one was unacknowledged: proof against Nagle's algorithm, but
//! for loss probes and a few strays.

use acklab_core::time::Time;

use super::limits::{EARLY_SHARE, REACTION_MS};
use crate::inferred::RoundTrips;
use crate::noted::Notes;
use crate::noted::values::{Candidate, Violation};

/// What broke Nagle's rule.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::inferred) struct Breaks {
    /// Small segments sent with a small one unacknowledged, and not as loss probes.
    pub(in crate::inferred) count: u64,
    /// Those that may have left as loss probes, or while a loss was repaired.
    pub(in crate::inferred) loss_probes: u64,
    /// When the first of them ended the time in which holds are looked for; `None` where they are too
    /// few to prove anything.
    pub(super) end: Option<Time>,
}

impl Breaks {
    pub(super) fn of(notes: &Notes<'_>, trips: &RoundTrips) -> Self {
        let early = early_departures(&notes.candidates, trips);
        let proofs: Vec<Time> =
            notes.violations.iter().filter(|v| !is_loss_probe(v, trips)).map(|v| v.time).collect();
        // Beyond the limit of the list, as many of them are loss probes as on it.
        let listed = notes.violations.len().max(1) as u64;
        let on_list = (notes.violations.len() - proofs.len()) as u64;
        let loss_probes = on_list * notes.counts.violations / listed;
        let count = notes.counts.violations.saturating_sub(loss_probes) + early.len() as u64;
        let strays = count as f64 <= STRAY_SHARE * notes.counts.candidates as f64;
        let first = proofs.first().into_iter().chain(early.first()).min().copied();
        Self { count, loss_probes, end: (!strays).then_some(first.unwrap_or(Time::MAX)) }
    }
}

/// Segments that left before the ACK can have reached the sender, although they passed the capture
/// point after it: Nagle off, seen from the receiver's side.
fn early_departures(candidates: &[Candidate], trips: &RoundTrips) -> Vec<Time> {
    let Some(far) = trips.far_ms.filter(|_| trips.handshake) else { return Vec::new() };
    let limit = far * EARLY_SHARE - REACTION_MS;
    candidates
        .iter()
        .filter(|c| c.marks.small_before && c.gap_ms() < limit)
        .map(|c| c.time)
        .collect()
}

/// Whether a segment that broke Nagle's rule may have left as a tail loss probe (RFC 8985 section 7.3
/// sends new data, whatever Nagle's rule says), or while a loss was repaired. With one segment in
/// flight the probe waits two round trips and the receiver's longest delay.
fn is_loss_probe(v: &Violation, trips: &RoundTrips) -> bool {
    let round_trip = trips.near_ms.unwrap_or(0.0) + trips.far_ms.unwrap_or(0.0);
    v.repair || v.silence as f64 / 1e6 >= (2.0 * round_trip).max(PROBE_LEAST_MS)
}

/// Share of small segments that may break Nagle's rule (FIN, urgent data, a lost frame of the
/// capture) without proving it off.
const STRAY_SHARE: f64 = 0.02;
/// No probe of a lone segment comes sooner: the largest ACK delay that RFC 8985 section 7.2 allows
/// for, 200 ms as in Linux (TCP_RTO_MIN), less a jiffy.
const PROBE_LEAST_MS: f64 = 190.0;
