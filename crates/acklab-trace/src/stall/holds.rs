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

use super::records::{Candidate, Violation};
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
/// Bands of the window's width that jitter may add to it.
const JITTER_BANDS: usize = 4;
/// An ACK this soon after a segment was brought by it.
const BROUGHT_MS: f64 = 2.0;
/// A host under load reacts within a few ticks of a 250 Hz clock.
const LOADED_MS: f64 = 5.0;
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
/// A flight that ended so often without growing is no congestion window.
const SAME_FLIGHTS: usize = 4;
/// Releases follow the ACK this much more sharply than data that came after it.
const SHARPER: f64 = 3.0;
/// Initial window of RFC 5681 section 3.1 for an MSS of 1460: with no more in flight, no congestion
/// window has closed.
const INITIAL_WINDOW_SEGMENTS: u32 = 3;

/// No probe of a lone segment comes sooner: the largest ACK delay that RFC 8985 section 7.2 allows
/// for, 200 ms as in Linux (TCP_RTO_MIN), less a jiffy.
const PROBE_LEAST_MS: f64 = 190.0;

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
    /// Small segments sent with a small one unacknowledged, and not as loss probes.
    pub violations: u64,
    /// Those that may have left as loss probes, or while a loss was repaired.
    pub loss_probes: u64,
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
    let proofs: Vec<Time> =
        log.violations.iter().filter(|v| !is_loss_probe(v, path)).map(|v| v.time).collect();
    // Beyond the limit of the list, as many of them are loss probes as on it.
    let listed = log.violations.len().max(1) as u64;
    let probes = (log.violations.len() - proofs.len()) as u64 * recorder.counts.violations / listed;
    decision.loss_probes = probes;
    let breaks = recorder.counts.violations.saturating_sub(probes) + early.len() as u64;
    let horizon = if breaks as f64 <= STRAY_SHARE * recorder.counts.candidates as f64 {
        Time::MAX
    } else {
        decision.until_violation = true;
        let first = proofs.first().copied();
        let first_early = early.first().copied();
        first.into_iter().chain(first_early).min().unwrap_or(Time::MAX)
    };
    decision.violations = breaks;
    let common = common_flights(&log.candidates);
    let fit = |c: &&Candidate| {
        c.time < horizon
            && is_testable(c)
            && (has_room(c, mss) || common.contains(&c.flight_before))
    };
    let fit: Vec<&Candidate> = log.candidates.iter().filter(fit).collect();
    let (maybe, mut tested): (Vec<&Candidate>, Vec<&Candidate>) =
        fit.into_iter().partition(|c| may_answer(c, path));
    if sharper_than_answers(&maybe, path) {
        tested.extend(maybe);
        tested.sort_by_key(|c| (c.time, c.frame));
    }
    let waited = |c: &&Candidate| waited_ms(c, path) >= SMALL_HOLD_MS;
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
    let late = late_reactions(&waited_long, &held, window);
    let let_go = |c: &&&Candidate| {
        let high = if waited_ms(c, path) >= SMALL_HOLD_MS { window.1 + late } else { window.1 };
        (window.0..=high).contains(&gap_ms(c))
    };
    decision.holds = tested.iter().filter(let_go).map(|c| hold_of(c, path)).collect();
    decision
}

/// The hold that a candidate is.
pub(super) fn hold_of(c: &Candidate, path: &Path) -> Hold {
    Hold {
        frame: c.frame,
        before: c.before,
        release: c.time,
        ack: c.ack,
        ack_delay_ms: ack_delay_ms(c, path),
        pure: c.marks.pure,
        filled: false,
        end: c.end,
        written: c.before,
    }
}

/// The receiver's own delay of the ACK: since the oldest segment it acknowledges, whose arrival starts
/// the timer, unless the newest one brought the ACK at once.
fn ack_delay_ms(c: &Candidate, path: &Path) -> Option<f64> {
    let own = |ns: u64| (ns as f64 / 1e6 - path.near_ms.unwrap_or(0.0)).max(0.0);
    let newest = own(c.ack_age?);
    Some(if newest < BROUGHT_MS { newest } else { own(c.oldest_age?) })
}

/// From the ACK to the segment.
pub(super) fn gap_ms(c: &Candidate) -> f64 {
    c.time.since(c.ack).as_millis_f64()
}

/// From the segment before to the ACK.
pub(super) fn wait_ms(c: &Candidate) -> f64 {
    c.ack.since(c.before).as_millis_f64()
}

/// How long the ACK took as the sender saw it, after the segment before.
fn waited_ms(c: &Candidate, path: &Path) -> f64 {
    // Where the way to the sender is not known, the gap may be all of it. On a long one the ACK may
    // have passed before the segment ahead.
    let passed = c.ack.signed_since(c.before) as f64 / 1e6;
    passed + path.far_ms.unwrap_or_else(|| gap_ms(c))
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

/// Whether a segment that broke Nagle's rule may have left as a tail loss probe (RFC 8985 section 7.3
/// sends new data, whatever Nagle's rule says), or while a loss was repaired. With one segment in
/// flight the probe waits two round trips and the receiver's longest delay.
fn is_loss_probe(v: &Violation, path: &Path) -> bool {
    let round_trip = path.near_ms.unwrap_or(0.0) + path.far_ms.unwrap_or(0.0);
    v.repair || v.silence as f64 / 1e6 >= (2.0 * round_trip).max(PROBE_LEAST_MS)
}

/// Whether nothing but Nagle, the congestion window or the application can have kept the segment.
fn is_testable(c: &Candidate) -> bool {
    c.marks.pure && !c.marks.window && !c.marks.recovery
}

/// Whether the congestion window cannot have been full before the ACK.
fn has_room(c: &Candidate, mss: u32) -> bool {
    c.flight_before <= INITIAL_WINDOW_SEGMENTS * mss
        || u64::from(c.flight_before) * 10 < u64::from(c.flight_max) * 9
}

/// Flights that came to an end again and again without growing: writes of one size, each with a tail
/// that waits. A congestion window grows with every round.
fn common_flights(candidates: &[Candidate]) -> Vec<u32> {
    let mut flights: Vec<u32> = candidates.iter().map(|c| c.flight_before).collect();
    flights.sort_unstable();
    flights
        .chunk_by(|a, b| a == b)
        .filter(|run| run.len() >= SAME_FLIGHTS)
        .map(|run| run[0])
        .collect()
}

/// Whether segments that could be answers to data of the peer follow the ACK far more sharply than
/// that data.
fn sharper_than_answers(maybe: &[&Candidate], path: &Path) -> bool {
    let far = path.far_ms.unwrap_or(0.0);
    let at_ack: Vec<&&Candidate> =
        maybe.iter().filter(|c| gap_ms(c) <= far * (1.0 + JITTER_SHARE) + REACTION_MS).collect();
    if at_ack.len() < SLOPE_POINTS || at_ack.len() * 2 < maybe.len() {
        return false;
    }
    let after_peer = |c: &&&Candidate| c.peer_after.map(|t| c.time.since(t).as_millis_f64());
    let peer = Sample::new(at_ack.iter().filter_map(after_peer).collect());
    let ack = Sample::new(at_ack.iter().map(|c| gap_ms(c)).collect());
    ack.iqr() * SHARPER < peer.iqr()
}

/// Whether data of the peer, sent after the ACK, reached the sender before the segment left.
pub(super) fn may_answer(c: &Candidate, path: &Path) -> bool {
    let Some(peer) = c.peer_after else { return false };
    let far = path.far_ms.unwrap_or(0.0);
    c.time.since(peer).as_millis_f64() >= far * EARLY_SHARE - (far * JITTER_SHARE).min(0.2)
}

/// The window of gaps in which a release lies.
fn gap_window(long: &[&Candidate], path: &Path) -> Option<(f64, f64)> {
    let gaps = Sample::new(long.iter().map(|c| gap_ms(c)).collect());
    let at_far = path.far_ms.and_then(|far| window_at(far, &gaps, long));
    if at_far.is_some() || path.handshake || gaps.is_empty() {
        return at_far;
    }
    // Without a handshake a cluster of its own can show where far lies.
    let (first, count) = gaps.densest(REACTION_MS);
    (count >= 3 && count * 2 >= gaps.len())
        .then(|| ((first - REACTION_MS).max(0.0), first + REACTION_MS))
}

/// The window at a known round trip to the sender.
fn window_at(far: f64, gaps: &Sample, long: &[&Candidate]) -> Option<(f64, f64)> {
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
        return Some((low, far + width));
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
    Some((low, high))
}

/// How much later than the window a loaded host may have reacted: once most segments have been
/// shown to wait for their ACK and few others follow within three times as long, so did these.
fn late_reactions(long: &[&Candidate], held: &[&Candidate], window: (f64, f64)) -> f64 {
    let soon = |within: f64| long.iter().filter(|c| gap_ms(c) <= window.1 + within).count();
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
        let expected = expected(long, width);
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
    let gaps = Sample::new(points.iter().map(|p| p.1).collect());
    let intervals = Sample::new(points.iter().map(|p| p.0 + p.1).collect());
    let varies = waits.iqr() >= 0.2;
    let slope = varies.then(|| robust_slope(&points)).flatten()?;
    // Jitter of the path feigns any slope, but it makes the intervals vary more, not less.
    (slope >= PACING_SLOPE || intervals.iqr() < gaps.iqr()).then_some(slope)
}
