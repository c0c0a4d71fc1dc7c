//! The law of the intervals between segments: how likely one is where nothing holds a segment back.
//!
//! A kernel density over the direction's own intervals, held or not, mixed with a broad law for an
//! interval that was not there before. An application that keeps a beat so explains its intervals by
//! itself, whatever acknowledgments fall into them.

use crate::inferred::Sample;

/// Densities per millisecond.
pub(super) struct Gaps(Sample);

impl Gaps {
    pub(super) fn of(intervals_ms: Vec<f64>) -> Self {
        Self(Sample::new(intervals_ms))
    }

    /// Density at an interval that is one of the sample.
    pub(super) fn density(&self, interval_ms: f64) -> f64 {
        let reach = REACH_MS.max(interval_ms * REACH_SHARE);
        let near = self.0.count_between(interval_ms - reach, interval_ms + reach);
        let others = near.saturating_sub(1) as f64 / self.0.len().max(1) as f64;
        0.5 * others / (2.0 * reach) + 0.5 / (interval_ms + 1.0)
    }
}

/// Intervals so close are alike: the grain of timers that applications sleep by.
const REACH_MS: f64 = 0.25;
/// The same as a share of the interval.
const REACH_SHARE: f64 = 0.02;
