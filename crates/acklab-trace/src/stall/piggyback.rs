//! Holds released by an ACK that rode on data, or that data of the peer followed.
//!
//! A client that answers whatever comes looks just like a held segment that a piggybacked ACK lets
//! go. What tells them apart is proof that the write came earlier: the writes keep a beat of their
//! own ([`super::added::Beat`]), the segment carries two messages or more, and the first of them was
//! due well before the release.

use acklab_core::time::Time;

use super::holds::{Decision, Hold, gap_ms, hold_of, may_answer};
use super::records::Log;
use crate::infer::path::Path;

/// The first message was due at least this long before the release.
const EARLIER_MS: f64 = 2.0;
/// Fewer such holds are not claimed.
const HOLDS_MIN: usize = 3;
/// A release follows its ACK within so much, as in [`super::holds`].
const REACTION_MS: f64 = 1.0;

/// The holds of this kind; `written` gives the estimated write and the number of messages of the
/// segment that ends at an offset.
pub fn riding(
    log: &Log,
    decision: &Decision,
    path: &Path,
    written: impl Fn(u64) -> Option<(Time, u32)>,
) -> Vec<Hold> {
    if decision.violations > 0 && decision.holds.is_empty() {
        return Vec::new();
    }
    let far = path.far_ms.unwrap_or(0.0);
    let window = (far * 0.8 - REACTION_MS, far * 1.1 + 2.0 * REACTION_MS);
    let holds: Vec<Hold> = log
        .candidates
        .iter()
        .filter(|c| !c.marks.pure || may_answer(c, path))
        .filter(|c| !c.marks.recovery && !c.marks.window)
        .filter(|c| (window.0..=window.1).contains(&gap_ms(c)))
        .filter_map(|c| {
            let (at, messages) = written(c.end)?;
            let mut hold = hold_of(c, path);
            hold.written = at.max(hold.before).min(hold.release);
            (messages >= 2 && hold.length_ms() >= EARLIER_MS).then_some(hold)
        })
        .collect();
    if holds.len() < HOLDS_MIN { Vec::new() } else { holds }
}
