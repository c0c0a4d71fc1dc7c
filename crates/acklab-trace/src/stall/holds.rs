//! Which candidates were holds.
//!
//! A held segment leaves the sender at once when the ACK arrives, so at the capture point the gap
//! from ACK to data is the round trip to the sender (far) plus a reaction of a millisecond at most,
//! and nearly constant, while the ACK's own delay varies. A write that came later by itself falls
//! anywhere. Hence, per direction:
//!
//! 1. Small segments sent while a small one was unacknowledged prove Nagle off; holds are then
//!    looked for only before the first of them (TCP_NODELAY set mid-way).
//! 2. Of the pure ACKs that came 10 ms or later and that the peer followed with no data of its own
//!    (to which the segment could be the answer), those count whose gap lies in the window at far.
//! 3. They must be many more than chance puts there, and the gap must not shrink as the ACK gets
//!    later (slope -1 is an application that keeps its own beat).
//!
//! ACKs that rode on data need independent proof that the write came earlier: see
//! [`super::added::Beat`]. Not looked for: holds by TCP_CORK, which end by its own 200 ms timer.

use acklab_core::time::Time;

use super::records::Candidate;
use super::{Recorder, beat};
use crate::infer::path::Path;
use crate::infer::spread::{Sample, robust_slope};

/// A hold shorter than this is counted apart.
pub const SMALL_HOLD_MS: f64 = 10.0;
/// A host reacts to an ACK within its own scheduling grain: 1 ms is the tick of the slowest stacks
/// that answer from a timer loop.
const REACTION_MS: f64 = 1.0;
/// Share of the far round trip that jitter may add.
const JITTER_SHARE: f64 = 0.1;
/// No segment crosses the path in less than this share of the least round trip seen.
const EARLY_SHARE: f64 = 0.96;
/// A kernel reacts within so much where nothing else runs.
const SHARP_MS: f64 = 0.25;
/// Holds must outnumber what chance would put into the window by this factor.
const OVER_CHANCE: f64 = 4.0;
/// Share of small segments that may break Nagle's rule (FIN, urgent data, a lost frame of the
/// capture) without proving it off.
const STRAY_SHARE: f64 = 0.02;
/// Gap against ACK delay: an application with its own beat has -1, a hold 0.
const PACING_SLOPE: f64 = -0.5;
/// So many points make a slope.
const SLOPE_POINTS: usize = 8;
/// Initial window of RFC 5681 section 3.1 for an MSS of 1460: with no more in flight, no congestion
/// window has closed.
const INITIAL_WINDOW_SEGMENTS: u32 = 3;

/// One held segment.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Frame of the segment.
    pub frame: u64,
    /// When the segment before it passed: the write came later than this.
    pub before: Time,
    /// When it passed itself.
    pub release: Time,
    /// When the ACK passed that let it go; for a segment that filled up, the same as `release`.
    pub ack: Time,
    /// The receiver's own delay of that ACK, milliseconds; `None` for a filled segment, or where
    /// retransmission hides it.
    pub ack_delay_ms: Option<f64>,
    /// The ACK carried no data.
    pub pure: bool,
    /// No ACK let it go: the queue reached one MSS.
    pub filled: bool,
    /// Last stream offset of the segment.
    pub end: u64,
    /// Estimated time of the oldest held write, in terms of the capture point; equals `before` where
    /// it cannot be told.
    pub written: Time,
}

impl Hold {
    /// The most the hold can have lasted: since the segment before, milliseconds.
    pub fn upper_ms(&self) -> f64 {
        self.release.since(self.before).as_millis_f64()
    }

    /// From the oldest held write to the release, milliseconds.
    pub fn length_ms(&self) -> f64 {
        self.release.since(self.written).as_millis_f64()
    }
}

/// The decision about one direction.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Held segments in order.
    pub holds: Vec<Hold>,
    /// How many holds writes at random moments would feign.
    pub by_chance: f64,
    /// Gap from ACK to data: median and interquartile range of the holds, milliseconds.
    pub gap_ms: (f64, f64),
    /// Slope of the gap on the ACK delay, where it varies enough.
    pub slope: Option<f64>,
    /// Small segments sent with a small one unacknowledged.
    pub violations: u64,
    /// The first of them ended the time in which holds were looked for.
    pub until_violation: bool,
    /// The window for the gap, milliseconds.
    pub window: (f64, f64),
    /// Candidates refused because the application kept its own beat.
    pub paced: bool,
}

/// Decides which candidates of `recorder` were holds released by pure ACKs.
pub fn decide(recorder: &Recorder, mss: u32, path: &Path) -> Decision {
    let Some(log) = recorder.log.as_deref() else { return Decision::default() };
    let mut decision = Decision { violations: recorder.counts.violations, ..Decision::default() };
    let early = early_departures(&log.candidates, path);
    let breaks = recorder.counts.violations + early.len() as u64;
    let horizon = if breaks as f64 <= STRAY_SHARE * recorder.counts.candidates as f64 {
        Time::MAX
    } else {
        decision.until_violation = true;
        let first = log.violations.first().map(|v| v.time);
        let first_early = early.first().copied();
        first.into_iter().chain(first_early).min().unwrap_or(Time::MAX)
    };
    decision.violations = breaks;
    let tested: Vec<&Candidate> =
        log.candidates.iter().filter(|c| c.time < horizon && is_testable(c, mss, path)).collect();
    let far = path.far_ms.unwrap_or(0.0);
    let waited = |c: &&Candidate| wait_ms(c) + far >= SMALL_HOLD_MS;
    let waited_long: Vec<&Candidate> = tested.iter().copied().filter(waited).collect();
    let Some(window) = gap_window(&waited_long, path) else { return decision };
    decision.window = window;
    let inside = |c: &&&Candidate| (window.0..=window.1).contains(&gap_ms(c));
    let held: Vec<&Candidate> = waited_long.iter().filter(inside).copied().collect();
    decision.slope = pacing_slope(&waited_long, window);
    let few = if decision.until_violation { 2 } else { SLOPE_POINTS };
    decision.paced = decision.slope.is_some_and(|s| s < PACING_SLOPE)
        || (held.len() >= few && beat::may_be_its_own(&held, log, path));
    let chance = by_chance(&waited_long, &held, window, path);
    decision.by_chance = chance.unwrap_or(held.len() as f64);
    let alone = decision.until_violation && held.len() < 2;
    if chance.is_none() || alone || decision.paced {
        return decision;
    }
    let gaps = Sample::new(held.iter().map(|c| gap_ms(c)).collect());
    decision.gap_ms = (gaps.median(), gaps.iqr());
    decision.holds = tested.iter().filter(inside).map(|c| hold_of(c, path)).collect();
    decision
}

/// The hold that a candidate is.
pub(super) fn hold_of(c: &Candidate, path: &Path) -> Hold {
    Hold {
        frame: c.frame,
        before: c.before,
        release: c.time,
        ack: c.ack,
        ack_delay_ms: c.ack_age.map(|ns| (ns as f64 / 1e6 - path.near_ms.unwrap_or(0.0)).max(0.0)),
        pure: c.marks.pure,
        filled: false,
        end: c.end,
        written: c.before,
    }
}

/// From the ACK to the segment.
pub(super) fn gap_ms(c: &Candidate) -> f64 {
    c.time.since(c.ack).as_millis_f64()
}

/// From the segment before to the ACK.
pub(super) fn wait_ms(c: &Candidate) -> f64 {
    c.ack.since(c.before).as_millis_f64()
}

/// Segments that left before the ACK can have reached the sender, although they passed the capture
/// point after it: Nagle off, seen from the receiver's side.
fn early_departures(candidates: &[Candidate], path: &Path) -> Vec<Time> {
    let Some(far) = path.far_ms.filter(|_| path.handshake) else { return Vec::new() };
    let limit = far * EARLY_SHARE - REACTION_MS;
    candidates
        .iter()
        .filter(|c| c.marks.small_before && gap_ms(c) < limit)
        .map(|c| c.time)
        .collect()
}

/// Whether nothing but Nagle or the application can have kept the segment, and the application
/// cannot have been answering.
fn is_testable(c: &Candidate, mss: u32, path: &Path) -> bool {
    let marks = c.marks;
    let cwnd_open = c.flight_before <= INITIAL_WINDOW_SEGMENTS * mss
        || u64::from(c.flight_before) * 10 < u64::from(c.flight_max) * 9;
    marks.pure && !marks.window && !marks.recovery && cwnd_open && !may_answer(c, path)
}

/// Whether data of the peer, sent after the ACK, reached the sender before the segment left.
pub(super) fn may_answer(c: &Candidate, path: &Path) -> bool {
    let Some(peer) = c.peer_after else { return false };
    let far = path.far_ms.unwrap_or(0.0);
    c.time.since(peer).as_millis_f64() >= far * (1.0 - JITTER_SHARE) - 0.2
}

/// The window of gaps in which a release lies.
fn gap_window(long: &[&Candidate], path: &Path) -> Option<(f64, f64)> {
    let gaps = Sample::new(long.iter().map(|c| gap_ms(c)).collect());
    if gaps.is_empty() {
        return None;
    }
    if let Some(far) = path.far_ms {
        let reach = far * (1.0 + 2.5 * JITTER_SHARE) + 2.0 * REACTION_MS;
        let near = Sample::new(gaps.values().iter().copied().filter(|g| *g <= reach).collect());
        if near.is_empty() {
            return None;
        }
        let width = REACTION_MS + JITTER_SHARE * far;
        let (first, _) = near.densest(width);
        // Far is the least round trip ever seen, so a release comes no earlier; the handshake of
        // a slow host may have taken a millisecond longer.
        let low = (far * EARLY_SHARE - REACTION_MS).max(0.0);
        let high = if long.len() < SLOPE_POINTS { far + width } else { first.max(far) + width };
        return Some((low, high));
    }
    // Without a handshake only a cluster of its own can show where far lies.
    let (first, count) = gaps.densest(REACTION_MS);
    (count >= 3 && count * 2 >= gaps.len())
        .then(|| ((first - REACTION_MS).max(0.0), first + REACTION_MS))
}

/// How many of `long` a write at a random moment since the segment before would put among `held`,
/// if that is few enough to believe in holds. The narrower the cluster of gaps, the less is left to
/// chance: with many candidates it may lie anywhere in the window, with few it must begin at far.
fn by_chance(
    long: &[&Candidate],
    held: &[&Candidate],
    window: (f64, f64),
    path: &Path,
) -> Option<f64> {
    let gaps = Sample::new(held.iter().map(|c| gap_ms(c)).collect());
    let full = (window.1 - window.0).min(2.0 * REACTION_MS + 2.0 * JITTER_SHARE * window.1);
    [SHARP_MS, REACTION_MS, full].into_iter().find_map(|width| {
        let inside = match path.far_ms {
            _ if width >= full => held.len(),
            Some(far) if held.len() < SLOPE_POINTS => gaps.count_between(far - width, far + width),
            _ => gaps.densest(width).1,
        };
        let most = inside * 2 > held.len();
        let expected: f64 = long
            .iter()
            .map(|c| width / c.time.since(c.before).as_millis_f64().max(width))
            .fold(0.0, |sum, p| sum + p);
        (most && inside as f64 >= OVER_CHANCE * expected).then_some(expected)
    })
}

/// Slope of the gap on the wait, over releases and what lies shortly beyond them.
fn pacing_slope(long: &[&Candidate], window: (f64, f64)) -> Option<f64> {
    let points: Vec<(f64, f64)> = long
        .iter()
        .filter(|c| gap_ms(c) <= window.1 + SMALL_HOLD_MS)
        .map(|c| (wait_ms(c), gap_ms(c)))
        .collect();
    if points.len() < SLOPE_POINTS {
        return None;
    }
    let waits = Sample::new(points.iter().map(|p| p.0).collect());
    // Clocks of captures jitter by some tens of microseconds; less variation says nothing.
    (waits.iqr() >= 0.2).then(|| robust_slope(&points)).flatten()
}
