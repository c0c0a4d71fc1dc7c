//! The ACKs that waited for a while: only they say something of a timer.

use acklab_core::time::Time;

use crate::inferred::replay::{AckRecord, Replay};
use crate::inferred::{RoundTrips, Sample};

/// What the ACKs of one direction say of their sender.
pub(super) struct LateAcks {
    /// Delays of pure ACKs after the oldest segment they acknowledge reached the receiver,
    /// milliseconds.
    pub(super) delays: Sample,
    /// ACK instants of the same, in order, milliseconds.
    pub(super) instants: Vec<f64>,
    /// The delays in that order.
    pub(super) waits: Vec<f64>,
    /// ACKs of exactly two segments, of which the second was acknowledged at once.
    pub(super) second_segment: usize,
    /// ACKs that came late although two small segments or more waited for one.
    pub(super) late_second: usize,
    /// ACKs of one small segment that came at once.
    pub(super) prompt: u64,
}

impl LateAcks {
    /// Collects the delayed ACKs.
    pub(super) fn of(replay: &Replay, trips: &RoundTrips) -> Self {
        let acks = &replay.acks;
        let near = trips.near_ms.unwrap_or(0.0);
        let own = |ns: u64| (ns as f64 / 1e6 - near).max(0.0);
        let origin = acks.first().map_or(Time::ZERO, |a| a.time);
        let delayed: Vec<&AckRecord> = acks
            .iter()
            .filter(|a| a.is_timed() && own(a.oldest_age) >= DELAYED_MS)
            // The second segment, not the timer, brought these.
            .filter(|a| a.segments < 2 || own(a.newest_age) >= 2.0)
            .collect();
        let prompt_far = acks
            .iter()
            .filter(|a| {
                a.pure && a.small && a.segments == 1 && own(a.oldest_age) < DELAYED_MS / 4.0
            })
            .count();
        let waits: Vec<f64> = delayed.iter().map(|a| own(a.oldest_age)).collect();
        Self {
            delays: Sample::new(waits.clone()),
            waits,
            instants: delayed.iter().map(|a| a.time.since(origin).as_millis_f64()).collect(),
            second_segment: acks
                .iter()
                .filter(|a| {
                    a.pure && a.segments == 2 && own(a.oldest_age) >= 5.0 && own(a.newest_age) < 2.0
                })
                .count(),
            late_second: acks
                .iter()
                .filter(|a| a.pure && a.small && a.segments >= 2 && own(a.newest_age) >= 5.0)
                .count(),
            prompt: replay.prompt_acks + prompt_far as u64,
        }
    }
}

/// An ACK this soon was not delayed by a timer.
pub(super) const DELAYED_MS: f64 = 8.0;
