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
    if holds.is_empty() {
        return;
    }
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
            hold.expected_ms = hold.long * hold.length_ms();
            hold.least_ms = (hold.length_ms() - 2.0 * BEAT_MS).max(0.0);
            continue;
        }
        // What gathered on a beat shows when: off by a beat.
        if hold.written > hold.before {
            let (length, beat) = (hold.length_ms(), 0.5 * (upper - hold.length_ms()));
            hold.long = if length >= SMALL_HOLD_MS { 1.0 } else { 0.0 };
            hold.expected_ms = hold.long * length;
            hold.least_ms = (length - beat).max(0.0);
            continue;
        }
        // What a full segment leaves behind was written before it.
        let cut =
            messages.before(hold.end).is_some_and(|len| len >= mss && len.is_multiple_of(mss));
        // A program that only answers wrote no sooner than it was asked.
        let asked = habit.asked.get(&hold.end).filter(|_| !cut);
        let since = asked.map_or(hold.before, |asked| hold.before.max(*asked).min(hold.release));
        let law = if cut {
            Law::AtOnce
        } else if asked.is_some() {
            Law::Anywhere(1.0)
        } else if hold.owing {
            Law::After(habit.thinks_ms(upper))
        } else if habit.bursts && !chained {
            Law::Soon
        } else {
            let messages = habit.gathered(hold);
            // The last of those that filled a segment came when it left.
            Law::Anywhere(if hold.filled { (messages - 1.0).max(1.0) } else { messages })
        };
        let upper = hold.release.since(since).as_millis_f64();
        let Placed { passed, most, long, expected_ms } = law.placed(upper);
        let written = since + Span::from_nanos((passed * 1e6) as u64);
        let least_ms = (upper - most).max(0.0);
        *hold = Hold { long, expected_ms, least_ms, ..hold.written_at(written) };
    }
}

/// When the first write of a held segment came after the segment before.
enum Law {
    /// When a program had thought for so long on average, milliseconds: exponentially distributed.
    After(f64),
    /// At once: it was cut off a longer one.
    AtOnce,
    /// At once or soon: the second of two in a row.
    Soon,
    /// The first of so many, each at any time.
    Anywhere(f64),
}

/// What a law says of a hold of at most so long.
struct Placed {
    /// Time that passed before the first write, as expected, and but for one in twenty, milliseconds.
    passed: f64,
    most: f64,
    /// How likely it lasted 10 ms or longer, and how long that is expected to be, milliseconds.
    long: f64,
    expected_ms: f64,
}

impl Law {
    fn placed(&self, upper: f64) -> Placed {
        let slack = upper - SMALL_HOLD_MS;
        match self {
            Self::After(mean) => {
                let mean = mean.max(0.01);
                let before = |ms: f64| 1.0 - math::exp(-ms / mean);
                let (all, soon) = (before(upper).max(1e-9), slack.max(0.0));
                let passed = |ms: f64| mean * before(ms) - ms * (1.0 - before(ms));
                Placed {
                    passed: passed(upper) / all,
                    most: -mean * math::ln(1.0 - 0.95 * all),
                    long: before(soon) / all,
                    expected_ms: (upper * before(soon) - passed(soon)) / all,
                }
            }
            Self::AtOnce => {
                let long = if slack >= 0.0 { 1.0 } else { 0.0 };
                Placed { passed: 0.0, most: 0.0, long, expected_ms: long * upper }
            }
            Self::Soon => {
                let mean = (SOON_SHARE * upper).max(0.01);
                let long = 1.0 - math::exp(-(slack + GRACE_MS).max(0.0) / mean);
                Placed { passed: 0.0, most: 3.0 * mean, long, expected_ms: long * upper }
            }
            Self::Anywhere(writes) => {
                let short = (1.0 - slack.max(0.0) / upper.max(0.01)).clamp(0.0, 1.0);
                let mean = upper * writes / (writes + 1.0);
                Placed {
                    passed: upper - mean,
                    most: upper * (1.0 - math::pow(0.05, 1.0 / writes)),
                    long: 1.0 - math::pow(short, *writes),
                    expected_ms: mean * (1.0 - math::pow(short, writes + 1.0)),
                }
            }
        }
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
    /// When a program that only answers was asked for what a segment carries, by its end.
    asked: HashMap<u64, Time>,
    /// How long it takes to answer what comes while nothing is unacknowledged, milliseconds.
    thinks: Vec<f64>,
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
        let answers = replay.unasked as usize * UNASKED_PART <= replay.departures.len();
        let asked = |d: &Departure| Some((d.end, d.asked.at?)).filter(|_| answers);
        let asked = replay.departures.iter().filter_map(asked).collect();
        let [first, next] = after.map(|[held, all]| held / all);
        let mean = (upper / holds.len().max(1) as f64).max(1.0);
        let thinks = replay.answers.iter().filter(|ns| **ns < u64::MAX);
        Self {
            thinks: thinks.map(|ns| *ns as f64 / 1e6).collect(),
            bursts: first > next + BURSTS_MORE || after[1][1] < FEW,
            message: match message {
                Some(bytes) => f64::from(bytes),
                None if free.len() >= FREE_MIN => Sample::new(free).median(),
                None => 0.0,
            },
            known: message.is_some(),
            rate: -math::ln(1.0 - next.min(0.95)) / mean,
            lengths,
            asked,
        }
    }

    /// How long the program thinks on average, milliseconds; where it shows nowhere, about `otherwise`.
    fn thinks_ms(&self, otherwise: f64) -> f64 {
        let sum = self.thinks.iter().sum::<f64>() + UNSEEN_WEIGHT * otherwise;
        sum / (self.thinks.len() as f64 + UNSEEN_WEIGHT)
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

/// A program only answers that speaks unasked once for so many segments.
const UNASKED_PART: usize = 12;
/// Answers that what is not known of a program's thinking weighs as much as.
const UNSEEN_WEIGHT: f64 = 0.25;
/// How late a beat is, milliseconds.
const BEAT_MS: f64 = 1.5;
/// Of two writes in a row the second follows at once; now and then so much of the interval passes.
const SOON_SHARE: f64 = 0.1;
/// Held so much oftener after a free segment than after a held one.
const BURSTS_MORE: f64 = 0.3;
/// What lasted as long but for so much is as good as that long.
const GRACE_MS: f64 = 1.0;
/// Fewer segments after held ones say nothing.
const FEW: f64 = 3.0;
/// Fewer free segments do not show the size of one message.
const FREE_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of many holds of at most `upper` ms, by `passed` of each draw of 0 to 1.
    fn played(upper: f64, passed: impl Fn(&mut dyn FnMut() -> f64) -> f64) -> (f64, f64, f64) {
        let mut rng = acklab_core::rng::Rng::named(7, "waits");
        let mut draw = || rng.uniform();
        let waits: Vec<f64> = (0..200_000).map(|_| upper - passed(&mut draw)).collect();
        let long: Vec<f64> = waits.iter().copied().filter(|w| *w >= SMALL_HOLD_MS).collect();
        let all = waits.len() as f64;
        let mean = waits.iter().sum::<f64>() / all;
        (mean, long.len() as f64 / all, long.iter().sum::<f64>() / all)
    }

    #[test]
    fn closed_forms_are_the_means_of_holds_played_many_times() {
        for upper in [12.0, 18.0, 40.0] {
            for writes in 1..4u32 {
                let first = |draw: &mut dyn FnMut() -> f64| {
                    (0..writes).fold(upper, |least, _| (upper * draw()).min(least))
                };
                let (mean, long, expected) = played(upper, first);
                let found = Law::Anywhere(writes.into()).placed(upper);
                assert!((upper - found.passed - mean).abs() < 0.1, "{upper} {writes}");
                assert!((found.long - long).abs() < 0.01, "{upper} {writes}");
                assert!((found.expected_ms - expected).abs() < 0.1, "{upper} {writes}");
            }
            for thinks in [2.0, 30.0] {
                let thought = |draw: &mut dyn FnMut() -> f64| loop {
                    let passed = -thinks * math::ln(1.0 - draw());
                    if passed <= upper {
                        return passed;
                    }
                };
                let (mean, long, expected) = played(upper, thought);
                let found = Law::After(thinks).placed(upper);
                assert!((upper - found.passed - mean).abs() < 0.1, "{upper} {thinks}");
                assert!((found.long - long).abs() < 0.01, "{upper} {thinks}");
                assert!((found.expected_ms - expected).abs() < 0.1, "{upper} {thinks}");
            }
        }
    }
}
