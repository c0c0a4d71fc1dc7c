//! Holds that a loss probe ended.
//!
//! Where a small segment or its ACK is lost, or the ACK is delayed for longer than the sender's probe timer, writes
//! wait until that timer fires: the probe is then new data, if there is any, whatever Nagle's rule says (RFC 8985
//! section 7.3). On the wire it is a small segment that breaks the rule after a silence as long as that timer, by a
//! sender that keeps the rule.

use super::holds::{Decision, is_probe};
use super::replay::{Departure, Replay};
use super::{Hold, RoundTrips};

/// The holds of this kind.
pub(super) fn find(replay: &Replay, decision: &Decision, trips: &RoundTrips) -> Vec<Hold> {
    let all = replay.departures.iter().zip(&decision.on);
    let hold = |(d, on): (&Departure, &f64)| {
        if !d.marks.broke || d.marks.gap || !is_probe(d, trips) {
            return None;
        }
        // Where nothing was sent again an ACK that the capture lacks may have let it go.
        let unseen = if d.marks.recovery { 0.0 } else { replay.damage.missing };
        let probability = on * PROBES / (PROBES + unseen);
        (probability >= 0.5).then(|| Hold::probed(d, probability))
    };
    all.filter_map(hold).collect()
}

/// Segments whose ACK does not come in time, as a share.
const PROBES: f64 = 0.02;
