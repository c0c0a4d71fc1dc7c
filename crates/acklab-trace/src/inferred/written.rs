//! When the oldest byte of a held segment was written: later than the segment before left, sooner than the
//! ACK came.
//!
//! A held write is a censored observation. Where the writes keep a beat it says when; else two laws stand
//! for what programs do. In *bursts* the second write follows the first at once, so that almost all of the
//! interval is waiting: what shows it is that a segment after a free one is held, and one after a held one
//! is not. In a *stream* writes come at any time: those that gathered in the interval lie evenly in it,
//! and how many they are shows by their bytes, against those of segments that were not held.

use std::collections::HashMap;

use acklab_core::math;
use acklab_core::time::{Span, Time};

use super::hold::SMALL_HOLD_MS;
use super::holds::Decision;
use super::replay::{Departure, Replay};
use super::{Hold, Messages, Sample};

/// Puts the writes of `holds` where they most likely were.
pub(super) fn place(
    holds: &mut [Hold],
    replay: &Replay,
    decision: &Decision,
    messages: &Messages,
    mss: u32,
) {
    let habit = Habit::of(holds, replay, &decision.on, messages.bytes(mss));
    let mut before: Option<Time> = None;
    for hold in holds {
        let chained = before == Some(hold.before);
        before = Some(hold.release);
        let upper = hold.upper_ms();
        if messages.written(hold.end).is_some() {
            // A beat is late by a millisecond or two.
            let over = (hold.length_ms() - SMALL_HOLD_MS) / BEAT_MS + 1.0;
            hold.long = 1.0 / (1.0 + math::exp(-over));
            hold.least_ms = (hold.length_ms() - 2.0 * BEAT_MS).max(0.0);
            continue;
        }
        // What gathered on a beat shows when: off by a beat.
        if hold.written > hold.before {
            let (length, beat) = (hold.length_ms(), 0.5 * (upper - hold.length_ms()));
            hold.long = if length >= SMALL_HOLD_MS { 1.0 } else { 0.0 };
            hold.least_ms = (length - beat).max(0.0);
            continue;
        }
        // What a full segment leaves behind was written before it.
        let cut =
            messages.before(hold.end).is_some_and(|len| len >= mss && len.is_multiple_of(mss));
        let slack = upper - SMALL_HOLD_MS;
        let (passed, most, long) = if cut {
            (0.0, 0.0, if slack >= 0.0 { 1.0 } else { 0.0 })
        } else if habit.bursts && !chained {
            let mean = BURST_SHARE * upper;
            (0.0, 3.0 * mean, 1.0 - math::exp(-(slack + GRACE_MS).max(0.0) / mean.max(0.01)))
        } else {
            let messages = habit.gathered(hold);
            // The last of those that filled a segment came when it left.
            let evenly = upper / if hold.filled { messages.max(2.0) } else { messages + 1.0 };
            let most = upper * (1.0 - math::pow(0.05, 1.0 / messages));
            (evenly, most, 1.0 - math::pow(1.0 - slack.max(0.0) / upper.max(0.01), messages))
        };
        let written = hold.before + Span::from_nanos((passed * 1e6) as u64);
        *hold = Hold { long, least_ms: (upper - most).max(0.0), ..hold.written_at(written) };
    }
}

/// How the application writes.
struct Habit {
    /// Two writes in a row, then a pause.
    bursts: bool,
    /// Bytes of one message, by the segments that were not held.
    message: f64,
    /// That is certain.
    known: bool,
    /// Messages that gathered in a millisecond, by how seldom none did.
    rate: f64,
    /// Bytes of the held segments, by their ends.
    lengths: HashMap<u64, u32>,
}

impl Habit {
    fn of(holds: &[Hold], replay: &Replay, on: &[f64], message: Option<u32>) -> Self {
        let held: HashMap<u64, &Hold> = holds.iter().map(|hold| (hold.end, hold)).collect();
        // Held and all, first after free segments, then after held ones.
        let mut after = [[0.5, 1.0]; 2];
        let (mut chained, mut upper) = (false, 0.0);
        let mut lengths = HashMap::with_capacity(holds.len());
        let mut free = Vec::new();
        for (d, on) in replay.departures.iter().zip(on) {
            // What leaves without Nagle's algorithm shows no habit of being held.
            if *on < 0.5 {
                continue;
            }
            let its = held.get(&d.end);
            let side = &mut after[usize::from(chained)];
            side[1] += 1.0;
            chained = its.is_some();
            if let Some(hold) = its {
                side[0] += 1.0;
                upper += hold.upper_ms();
                lengths.insert(d.end, d.len);
            } else if is_free(d) {
                free.push(f64::from(d.len));
            }
        }
        lengths.extend(replay.fills.iter().map(|fill| (fill.end, fill.len)));
        let [first, next] = after.map(|[held, all]| held / all);
        let mean = (upper / holds.len().max(1) as f64).max(1.0);
        Self {
            bursts: first > next + BURSTS_MORE || after[1][1] < FEW,
            message: match message {
                Some(bytes) => f64::from(bytes),
                None if free.len() >= FREE_MIN => Sample::new(free).median(),
                None => 0.0,
            },
            known: message.is_some(),
            rate: -math::ln(1.0 - next.min(0.95)) / mean,
            lengths,
        }
    }

    /// How many messages gathered in a held segment.
    fn gathered(&self, hold: &Hold) -> f64 {
        let bytes = self.lengths.get(&hold.end).map_or(0.0, |len| f64::from(*len));
        let by_rate = (self.rate * hold.upper_ms()).max(1.0);
        let by_bytes = if self.message > 0.0 { (bytes / self.message).max(1.0) } else { by_rate };
        if self.known { by_bytes } else { by_bytes.min(2.0 * by_rate) }
    }
}

fn is_free(d: &Departure) -> bool {
    !d.marks.recovery && !d.marks.gap
}

/// How late a beat is, milliseconds.
const BEAT_MS: f64 = 1.5;
/// In bursts the second write follows at once; now and then so much of the interval passes.
const BURST_SHARE: f64 = 0.1;
/// Held so much oftener after a free segment than after a held one.
const BURSTS_MORE: f64 = 0.3;
/// What lasted as long but for so much is as good as that long.
const GRACE_MS: f64 = 1.0;
/// Fewer segments after held ones say nothing.
const FEW: f64 = 3.0;
/// Fewer free segments do not show the size of one message.
const FREE_MIN: usize = 3;
