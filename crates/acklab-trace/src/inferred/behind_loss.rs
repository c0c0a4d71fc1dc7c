//! Holds behind a small segment that was lost before the capture point.
//!
//! Away from the sender a capture shows neither the first try of that segment nor that anything was unacknowledged: a
//! silence, as long as a timer of the sender. Without Nagle's algorithm what the program wrote meanwhile would have left
//! write by write, and passed. Held, it leaves as one: either as the loss probe, which is new data if there is any (RFC 8985
//! section 7.3) and jumps over the missing bytes, sent again behind it; or at the ACK of the missing bytes themselves. How
//! sure that is, the program's other segments show: how seldom they are as large.

use std::ops::RangeInclusive;

use acklab_core::time::{Span, Time};

use super::hold::MAYBE;
use super::holds::{Decision, probe_ms};
use super::{Hold, RoundTrips, Sample};
use crate::flow::DirectionFacts;
use crate::noted::Notes;
use crate::noted::event::{DataNote, Event, Kind};

/// The holds of this kind; those among `known` only where they lasted longer than is known.
pub(super) fn find(
    notes: &Notes<'_>,
    decision: &Decision,
    trips: &RoundTrips,
    known: &[Hold],
) -> Vec<Hold> {
    let all = passed(notes);
    let refuted = decision.breaks as usize * STRAYS_PART > all.len();
    let (probe_ms, Some(far_ms)) = (probe_ms(trips), trips.far_ms) else { return Vec::new() };
    let silent = |one: &Passed<'_>| one.interval_ms >= probe_ms && !one.asked;
    if notes.bulk || refuted || all.len() < SEGMENTS_MIN || !all.iter().any(silent) {
        return Vec::new();
    }
    let again = |facts: &DirectionFacts| facts.packets.retransmissions > 0;
    let losses = again(notes.facts) || again(notes.opposite);
    let habit = Habit::of(&all, [probe_ms, far_ms], losses);
    let hold = |at: usize| {
        let (before, probability) = habit.kept(&all[..=at])?;
        let d = all[at].data;
        let hold = Hold::gathered(d.frame, before, d.time, d.end(), probability);
        // The first write after it was lost, the next is the oldest that was kept.
        Some(hold.written_at(before + Span::from_nanos((2.0 * habit.interval_ms * 1e6) as u64)))
    };
    let news = |hold: &Hold| match known.iter().find(|one| one.end == hold.end) {
        Some(one) => hold.probability >= 0.5 && hold.before < one.before,
        None => hold.probability >= MAYBE,
    };
    (1..all.len()).filter_map(hold).filter(news).collect()
}

/// A new segment.
struct Passed<'n> {
    data: &'n DataNote,
    /// Since the new segment before, milliseconds.
    interval_ms: f64,
    /// The bytes before it that were missing were sent again behind it.
    jumped: bool,
    /// Since the new segment before: the last ACK, and whether data of the peer came, which it may answer.
    ack: Option<Time>,
    asked: bool,
}

fn passed<'n>(notes: &'n Notes<'_>) -> Vec<Passed<'n>> {
    let mut all: Vec<Passed<'n>> = Vec::new();
    let (mut ack, mut asked) = (None, true);
    for event in &notes.events {
        match event {
            Event::Ack(one) => {
                ack = Some(one.time);
                asked |= one.len > 0;
            }
            Event::Data(data) if matches!(data.kind, Kind::New | Kind::Gap) => {
                let before = all.last().map_or(data.time, |last| last.data.time);
                let interval_ms = data.time.since(before).as_millis_f64();
                all.push(Passed { data, interval_ms, jumped: false, ack, asked });
                (ack, asked) = (None, false);
            }
            Event::Data(again) if again.kind == Kind::Again => {
                for at in (1..all.len()).rev().take(REPAIR_WITHIN) {
                    let hole = all[at - 1].data.end()..all[at].data.offset;
                    all[at].jumped |= hole.contains(&again.offset);
                }
            }
            Event::Data(_) => {}
        }
    }
    all
}

/// How the program writes where nothing is lost.
struct Habit {
    lengths: Sample,
    /// In the median, milliseconds.
    interval_ms: f64,
    intervals: Sample,
    /// Silences that a timer of the sender may have ended, milliseconds.
    silences_ms: RangeInclusive<f64>,
    /// From the capture point to the sender and back, milliseconds.
    far_ms: f64,
    /// Something was sent again, either way.
    losses: bool,
}

impl Habit {
    fn of(all: &[Passed<'_>], [probe_ms, far_ms]: [f64; 2], losses: bool) -> Self {
        let free: Vec<&Passed<'_>> = all.iter().filter(|one| one.interval_ms < probe_ms).collect();
        let intervals = Sample::new(free.iter().map(|one| one.interval_ms).collect());
        let interval_ms = intervals.median();
        Self {
            lengths: Sample::new(free.iter().map(|one| f64::from(one.data.len)).collect()),
            interval_ms,
            intervals,
            silences_ms: probe_ms.max(SILENT_INTERVALS * interval_ms)..=LONGEST * probe_ms,
            far_ms,
            losses,
        }
    }

    /// Whether a timer of the sender may have let it go: it answers nothing, and no ACK did.
    fn is_silent(&self, one: &Passed<'_>) -> bool {
        !one.asked && self.silences_ms.contains(&one.interval_ms) && !self.is_released(one)
    }

    /// Whether the last ACK let it go.
    fn is_released(&self, one: &Passed<'_>) -> bool {
        let gap_ms = one.ack.map(|ack| one.data.time.since(ack).as_millis_f64());
        gap_ms.is_some_and(|ms| (0.9 * self.far_ms..=1.15 * self.far_ms + LATE_MS).contains(&ms))
    }

    /// When the last segment that passed before the loss did, and how likely the last of `all` was kept since.
    fn kept(&self, all: &[Passed<'_>]) -> Option<(Time, f64)> {
        let [.., before, one] = all else { return None };
        let as_large = || share(&self.lengths, f64::from(one.data.len), f64::INFINITY);
        if self.is_silent(one) && one.jumped {
            return Some((before.data.time, 1.0 - AS_LARGE_WEIGHT * as_large()));
        }
        let [.., first, repaired, _] = all else { return None };
        if one.asked || repaired.jumped || !self.is_released(one) || !self.is_silent(repaired) {
            return None;
        }
        let as_soon = share(&self.intervals, 0.0, 1.25 * one.interval_ms);
        let probability = 1.0 - AS_LARGE_WEIGHT * as_large() * (2.0 * as_soon).min(1.0);
        // A silence of the program has the same form.
        let likely = self.losses || probability >= SURE;
        likely.then_some((first.data.time, probability))
    }
}

/// The share of the program's own values between two, one of them supposed.
fn share(of: &Sample, low: f64, high: f64) -> f64 {
    (of.count_between(low, high) as f64 + 1.0) / (of.len() as f64 + 1.0)
}

/// One segment in so many that breaks Nagle's rule refutes it.
const STRAYS_PART: usize = 50;
/// Fewer show no habit.
const SEGMENTS_MIN: usize = 20;
/// Bytes are sent again so many new segments after those that jumped over them.
const REPAIR_WITHIN: usize = 8;
/// So many intervals without a write are a silence.
const SILENT_INTERVALS: f64 = 3.0;
/// Time-outs and the first of their repetitions take so many times the least that a probe takes.
const LONGEST: f64 = 4.0;
/// How much more such a share weighs than it is: losses are seldom, and large writes may have their reason.
const AS_LARGE_WEIGHT: f64 = 3.0;
/// So sure where nothing was sent again.
const SURE: f64 = 0.95;
/// A host is late by so much.
const LATE_MS: f64 = 1.5;
