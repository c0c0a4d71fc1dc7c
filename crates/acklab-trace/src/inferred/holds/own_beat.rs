//! An application's beat that is not held: its segments only seem to wait for ACKs.
//!
//! Where the period of the writes happens to be that of data, ACK and round trip together, every
//! segment follows an ACK, held or not. An unbroken chain of equal segments at equal intervals with
//! equal waits could be either. Two things tell: a chain of holds carries two messages in some
//! segment sooner or later (it is slower than the writes), and a release cannot come before the ACK
//! has reached the sender, which the beat of an application does by the width of a hair.

use super::limits::SLOPE_POINTS;
use super::window::GapWindow;
use crate::inferred::hold::SMALL_HOLD_MS;
use crate::inferred::sample::robust_slope;
use crate::inferred::writes::{UNIT_MIN, gcd};
use crate::inferred::{RoundTrips, Sample};
use crate::noted::values::{Arrival, Candidate};

/// Whether the chain may be the application's own beat.
pub(super) fn may_be_its_own(
    held: &[&Candidate],
    arrivals: &[Arrival],
    trips: &RoundTrips,
) -> bool {
    let len = common_len(held);
    let chained = held.windows(2).filter(|w| w[1].before == w[0].time).count();
    let same = held.iter().filter(|c| c.len == len).count();
    let waits = Sample::new(held.iter().map(|c| c.wait_ms()).collect());
    let is_chain = (chained + 1) * 10 >= held.len() * 9
        && same * 10 >= held.len() * 8
        && waits.iqr() < EQUAL_MS;
    is_chain && !coalesces(held, len, arrivals) && !is_sharp(held, trips)
}

/// Slope of the gap on the wait, over releases and what lies shortly beyond them.
pub(super) fn pacing_slope(long: &[&Candidate], window: GapWindow) -> Option<f64> {
    let points: Vec<(f64, f64)> = long
        .iter()
        .filter(|c| c.gap_ms() <= window.high + SMALL_HOLD_MS)
        .map(|c| (c.wait_ms(), c.gap_ms()))
        .collect();
    if points.len() < SLOPE_POINTS {
        return None;
    }
    let waits = Sample::new(points.iter().map(|p| p.0).collect());
    // Clocks of captures jitter by some tens of microseconds; less variation says nothing.
    let gaps = Sample::new(points.iter().map(|p| p.1).collect());
    let intervals = Sample::new(points.iter().map(|p| p.0 + p.1).collect());
    let varies = waits.iqr() >= 0.2;
    let slope = varies.then(|| robust_slope(&points)).flatten()?;
    // Jitter of the path feigns any slope, but it makes the intervals vary more, not less.
    (slope >= PACING_SLOPE || intervals.iqr() < gaps.iqr()).then_some(slope)
}

/// The length that most segments have.
fn common_len(held: &[&Candidate]) -> u32 {
    let mut lengths: Vec<u32> = held.iter().map(|c| c.len).collect();
    lengths.sort_unstable();
    lengths
        .chunk_by(|a, b| a == b)
        .max_by_key(|run| run.len())
        .and_then(|run| run.first())
        .copied()
        .unwrap_or(0)
}

/// Whether segments carry several messages: some share a divisor with the others that is smaller
/// than either, or all are multiples of the first segment, which nothing held back.
fn coalesces(held: &[&Candidate], len: u32, arrivals: &[Arrival]) -> bool {
    let first = arrivals.first().map_or(0, |a| a.end);
    let len = u64::from(len);
    let several = |unit: u64| unit >= UNIT_MIN && len >= 2 * unit && len.is_multiple_of(unit);
    let others: Vec<u64> = held.iter().map(|c| u64::from(c.len)).filter(|l| *l != len).collect();
    let related = others.iter().filter(|l| l.is_multiple_of(len) || several(gcd(len, **l))).count();
    several(first) || (related >= DOUBLES_MIN && related * 10 >= others.len() * 8)
}

/// Whether the gaps are those of a kernel that waited: equal, and never before the ACK was there.
/// Without a handshake only a capture at the sender can show that.
fn is_sharp(held: &[&Candidate], trips: &RoundTrips) -> bool {
    let far = trips.far_ms.filter(|_| trips.handshake).unwrap_or(0.0);
    let gaps = Sample::new(held.iter().map(|c| c.gap_ms()).collect());
    gaps.iqr() < SHARP_MS && (far..=far + REACTION_MS).contains(&gaps.median())
}

/// Waits that vary by more than this are judged by their slope.
const EQUAL_MS: f64 = 0.2;
/// A release by the kernel is this sharp; a timer of an application is not.
const SHARP_MS: f64 = 0.05;
/// The latest reaction that counts as sharp.
const REACTION_MS: f64 = 0.3;
/// Segments of several messages that are more than a hiccup of the application.
const DOUBLES_MIN: usize = 2;
/// Gap against ACK delay: an application with its own beat has -1, a hold 0.
pub(super) const PACING_SLOPE: f64 = -0.5;
