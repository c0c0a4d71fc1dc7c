//! How long after its ACK a held segment passes the capture point.
//!
//! It leaves at once when the ACK arrives, so the gap is the round trip to the sender plus a reaction,
//! and nearly constant, while a write that came later by itself falls anywhere. A handshake bounds that
//! round trip from above only (a host may be slow to answer it); where it really lies, and how exactly
//! the path and the capture's clock keep it, the gaps themselves show.

use acklab_core::math;

use crate::inferred::{RoundTrips, Sample};

/// The law of the gap, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::inferred) struct Release {
    /// Its centre.
    pub(in crate::inferred) at_ms: f64,
    /// Its standard deviation.
    pub(in crate::inferred) spread_ms: f64,
    /// Logarithm of how much better it explains the gaps than chance, one choice of place paid for.
    pub(in crate::inferred) evidence: f64,
}

impl Release {
    /// Where gaps (each with the interval that the segment had to leave in) cluster best, if they do.
    pub(in crate::inferred) fn find(points: &[(f64, f64)], trips: &RoundTrips) -> Option<Self> {
        Self::candidates(points, trips).into_iter().next()
    }

    /// The places where gaps cluster, best first.
    pub(super) fn candidates(points: &[(f64, f64)], trips: &RoundTrips) -> Vec<Self> {
        let far = trips.far_ms;
        let mut widths = WIDTHS_MS.to_vec();
        widths
            .extend(far.iter().flat_map(|far| [0.1 * far, 0.3 * far].map(|w| w.max(WIDTHS_MS[0]))));
        let gaps = Sample::new(points.iter().map(|p| p.0).collect());
        let found = widths.iter().filter_map(|width| Self::within(&gaps, points, *width, trips));
        let mut found: Vec<Self> = found.collect();
        found.sort_by(|a, b| b.evidence.total_cmp(&a.evidence));
        let mut apart: Vec<Self> = Vec::new();
        for one in found {
            if !apart.iter().any(|other| one.is_near(other.at_ms) || other.is_near(one.at_ms)) {
                apart.push(one);
            }
        }
        apart.truncate(PLACES);
        apart
    }

    /// The best window of this width.
    fn within(
        gaps: &Sample,
        points: &[(f64, f64)],
        width: f64,
        trips: &RoundTrips,
    ) -> Option<Self> {
        let expected: f64 = points.iter().map(|(_, x)| width / x.max(width)).sum();
        let most = trips.far_ms.map_or(f64::INFINITY, |far| 1.2 * far + 1.0 + width);
        let values = gaps.values();
        let mut best: Option<(f64, usize, usize)> = None;
        let mut to = 0;
        // Windows of no more gaps explain no more than the best.
        let mut enough = expected;
        for (from, low) in values.iter().enumerate().take_while(|v| *v.1 <= most) {
            while values.get(to).is_some_and(|v| *v <= low + width) {
                to += 1;
            }
            let count = (to - from) as f64;
            if count <= enough {
                continue;
            }
            let centre = values[usize::midpoint(from, to - 1)];
            let gain = count * math::ln(count / expected) - (count - expected);
            let score = gain - misplaced(centre, width / 4.0, trips);
            if best.is_none_or(|b| score > b.0) {
                best = Some((score, from, to));
            }
            if best.is_some_and(|b| gain <= b.0) {
                enough = count;
            }
        }
        let (evidence, from, to) = best?;
        let inside = Sample::new(values[from..to].to_vec());
        let (count, grain) = (
            inside.len() as f64,
            GRAIN_MS + 0.3 * trips.grain_ms + GRAIN_SHARE * trips.far_ms.unwrap_or(0.0),
        );
        let spread = inside.iqr() / 1.35;
        let spread_ms = ((count * spread * spread + 2.0 * grain * grain) / (count + 2.0)).sqrt();
        Some(Self { at_ms: inside.median(), spread_ms: spread_ms.max(SHARPEST_MS), evidence })
    }

    /// How unlikely it is in that place.
    pub(in crate::inferred) fn misplaced(&self, trips: &RoundTrips) -> f64 {
        misplaced(self.at_ms, self.spread_ms, trips)
    }

    /// Whether a gap may be that of a release.
    pub(super) fn is_near(&self, gap_ms: f64) -> bool {
        (gap_ms - self.at_ms).abs() <= 3.0 * self.spread_ms + NEAR_MS
    }

    /// Density at a gap, per millisecond.
    pub(in crate::inferred) fn density(&self, gap_ms: f64) -> f64 {
        let normal = |spread: f64| {
            let z = (gap_ms - self.at_ms) / spread;
            math::exp(-0.5 * z * z) / (spread * ROOT_2_PI)
        };
        let late = (0.0..LOADED_MS).contains(&(gap_ms - self.at_ms));
        0.85 * normal(self.spread_ms)
            + 0.1 * normal(4.0 * self.spread_ms)
            + if late { 0.05 / LOADED_MS } else { 0.0 }
    }
}

/// How unlikely a cluster is so far from the round trip to the sender: later than it by more than a path
/// jitters, hardly at all; sooner, by as much as a host may be slow to answer a handshake, and without
/// one the fastest answer only bounds it.
fn misplaced(centre: f64, spread: f64, trips: &RoundTrips) -> f64 {
    let Some(far) = trips.far_ms else { return 0.0 };
    let off = centre - far;
    if off > 0.0 {
        let late = off / (0.3 + 0.05 * far + spread);
        return late * late;
    }
    let slow = if trips.handshake { 1.0 + 0.05 * far } else { 10.0 + 0.5 * far };
    -off / (slow + spread)
}

/// Widths that clusters are looked for in: a kernel alone, a busy one, a noisy clock.
const WIDTHS_MS: [f64; 6] = [0.1, 0.3, 1.0, 2.0, 4.0, 8.0];
/// So many places are tried.
const PLACES: usize = 3;
/// Few gaps say little of their spread: so much is a host's, and such a share of the way a path's.
const GRAIN_MS: f64 = 0.2;
const GRAIN_SHARE: f64 = 0.02;
/// Clocks of captures are no sharper.
const SHARPEST_MS: f64 = 0.02;
/// What is so close to a release may be one.
const NEAR_MS: f64 = 0.3;
/// A host under load reacts within a few ticks of a 250 Hz clock.
const LOADED_MS: f64 = 5.0;
const ROOT_2_PI: f64 = 2.506_628_274_631;
