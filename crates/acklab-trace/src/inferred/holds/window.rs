//! The window of gaps, from ACK to segment, in which a release lies.
//!
//! A held segment leaves the sender at once when the ACK arrives, so at the capture point the gap is
//! the round trip to the sender (far) plus a reaction of a millisecond at most.

use super::limits::{EARLY_SHARE, JITTER_SHARE, REACTION_MS, SLOPE_POINTS};
use crate::inferred::{RoundTrips, Sample};
use crate::noted::values::Candidate;

/// Gaps from `low` to `high`, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapWindow {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl GapWindow {
    pub(super) fn holds(self, gap_ms: f64) -> bool {
        (self.low..=self.high).contains(&gap_ms)
    }
}

/// The window of gaps in which a release lies.
pub(super) fn find(long: &[&Candidate], trips: &RoundTrips) -> Option<GapWindow> {
    let gaps = Sample::new(long.iter().map(|c| c.gap_ms()).collect());
    let at_far = trips.far_ms.and_then(|far| window_at(far, &gaps, long));
    if at_far.is_some() || trips.handshake || gaps.is_empty() {
        return at_far;
    }
    // Without a handshake a cluster can show where far lies.
    let (first, count) = gaps.densest(REACTION_MS);
    (count >= 3 && count * 2 >= gaps.len())
        .then(|| GapWindow { low: (first - REACTION_MS).max(0.0), high: first + REACTION_MS })
}

/// The window at a known round trip to the sender.
fn window_at(far: f64, gaps: &Sample, long: &[&Candidate]) -> Option<GapWindow> {
    let width = REACTION_MS + JITTER_SHARE * far;
    let near: Vec<f64> = gaps.values().iter().copied().filter(|g| *g <= far + width).collect();
    if near.is_empty() {
        return None;
    }
    let (first, _) = Sample::new(near).densest(width);
    // Far is the least round trip ever seen, so a release comes no earlier; the handshake of a slow
    // host may have taken a millisecond longer.
    let low = (far * EARLY_SHARE - REACTION_MS).max(0.0);
    if long.len() < SLOPE_POINTS {
        return Some(GapWindow { low, high: far + width });
    }
    // A path that jitters by more than its share spreads the releases further, without a gap.
    let mut high = first.max(far) + width;
    let expected = expected(long, width);
    for _ in 0..JITTER_BANDS {
        if (gaps.count_between(high, high + width) as f64) < OVER_CHANCE * expected {
            break;
        }
        high += width;
    }
    Some(GapWindow { low, high })
}

/// How much later than the window a loaded host may have reacted: once most segments have been
/// shown to wait for their ACK and few others follow within three times as long, so did these.
pub(super) fn late_reactions(long: &[&Candidate], held: &[&Candidate], window: GapWindow) -> f64 {
    let soon = |within: f64| long.iter().filter(|c| c.gap_ms() <= window.high + within).count();
    let sure = held.len() >= SLOPE_POINTS && held.len() * 2 >= long.len();
    let apart = soon(LOADED_MS * 3.0) == soon(LOADED_MS);
    if sure && apart { LOADED_MS } else { 0.0 }
}

/// How many writes at random moments since the segment before fall into a window of this width.
fn expected(long: &[&Candidate], width: f64) -> f64 {
    long.iter()
        .map(|c| width / c.time.since(c.before).as_millis_f64().max(width))
        .fold(0.0, |sum, p| sum + p)
}

/// How many of `long` a write at a random moment since the segment before would put among `held`,
/// if that is few enough to believe in holds. The narrower the cluster of gaps, the less is left to
/// chance: with many candidates it may lie anywhere in the window, with few it must begin at far.
pub(super) fn by_chance(
    long: &[&Candidate],
    held: &[&Candidate],
    window: GapWindow,
    trips: &RoundTrips,
) -> Option<f64> {
    let gaps = Sample::new(held.iter().map(|c| c.gap_ms()).collect());
    let full = (window.high - window.low).min(2.0 * REACTION_MS + 2.0 * JITTER_SHARE * window.high);
    [SHARP_MS, REACTION_MS, full].into_iter().find_map(|width| {
        let inside = match trips.far_ms {
            _ if width >= full => held.len(),
            Some(far) if held.len() < SLOPE_POINTS => gaps.count_between(far - width, far + width),
            _ => gaps.densest(width).1,
        };
        let most = inside * 2 > held.len();
        let expected = expected(long, width);
        (most && inside as f64 >= OVER_CHANCE * expected).then_some(expected)
    })
}

/// Bands of the window's width that jitter may add to it.
const JITTER_BANDS: usize = 4;
/// A host under load reacts within a few ticks of a 250 Hz clock.
const LOADED_MS: f64 = 5.0;
/// A kernel reacts within so much where nothing else runs.
const SHARP_MS: f64 = 0.25;
/// Holds must outnumber what chance would put into the window by this factor.
const OVER_CHANCE: f64 = 4.0;
