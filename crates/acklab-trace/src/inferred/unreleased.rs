//! Holds that no ACK in the capture ended.
//!
//! A small segment that breaks Nagle's rule, by a sender that keeps it, had waited for one of two things. For the
//! sender's *loss probe*: where a small segment or its ACK is lost, or the ACK is delayed for longer than the probe's
//! timer, writes wait until that fires; the probe is then new data, if there is any, whatever Nagle's rule says
//! (RFC 8985 section 7.3). It comes after a silence as long as the timer. Or for *an ACK that the capture lacks*:
//! then segments of its length are let go by ACKs elsewhere.

use super::hold::MAYBE;
use super::holds::{Decision, is_probe};
use super::replay::{Departure, Replay};
use super::riding::Alike;
use super::{Hold, RoundTrips};

/// The holds of this kind, and those that may be.
pub(super) fn find(replay: &Replay, decision: &Decision, trips: &RoundTrips) -> Vec<Hold> {
    if !replay.departures.iter().any(|d| d.marks.broke) {
        return Vec::new();
    }
    let missing = replay.damage.missing;
    let alike = Alike::of(replay, decision);
    let all = replay.departures.iter().zip(&decision.on);
    let hold = |(d, on): (&Departure, &f64)| {
        if !d.marks.broke || d.marks.tail || d.marks.gap {
            return None;
        }
        let unseen = alike.share(d.len) * missing / (missing + STRAY);
        let kept = match (is_probe(d, trips), d.marks.recovery) {
            // No probe is sent while a loss is repaired (RFC 8985 section 7.2).
            (true, true) if d.marks.repairing => 0.0,
            (true, true) => 1.0,
            (true, false) => (PROBES + missing * unseen) / (PROBES + missing),
            (false, _) => unseen,
        };
        let probability = on * kept;
        (probability >= MAYBE).then(|| Hold::unreleased(d, probability))
    };
    all.filter_map(hold).collect()
}

/// Segments whose ACK does not come in time, as a share.
const PROBES: f64 = 0.02;
/// Segments that break the rule for other reasons, as a share.
const STRAY: f64 = 0.003;
