//! The beat of the writes: when each message was written, and so how long it waited.
//!
//! Messages written on a beat (every 20 ms, say) reach the capture point on that beat unless they
//! were held, and never early; so the lower convex hull of (message number, arrival) follows the
//! beat, drift of clocks included, and a message's height above it is its added delay. The hull is
//! taken piecewise over runs without long pauses. It holds only if it agrees with what it does not
//! know: by Nagle's rule no message can have been written before the segment ahead of it left, else
//! it would have travelled in that one.

use std::ops::Range;

use acklab_core::time::Time;

use super::hull::Hull;
use crate::inferred::hold::DELAYED_MS;
use crate::inferred::replay::Arrival;
use crate::inferred::{Hold, Sample};

/// The beat of a direction's writes.
#[derive(Clone, Debug)]
pub(crate) struct Beat {
    /// Time between writes, milliseconds.
    pub(crate) period_ms: f64,
    /// Added delay of every message, milliseconds, in order.
    pub(crate) delays_ms: Vec<f64>,
    /// For each segment the estimated write of its first message.
    first_write: Vec<Time>,
}

impl Beat {
    /// Finds the beat of segments with these numbers of messages, if there is one.
    pub(super) fn find(arrivals: &[Arrival], messages: &[u32]) -> Option<Self> {
        let total: usize = messages.iter().map(|m| *m as usize).sum();
        if !(MESSAGES_MIN..=MESSAGES_MAX).contains(&total) || arrivals.len() < MESSAGES_MIN / 2 {
            return None;
        }
        let mut search = Search::new(arrivals, messages, total);
        let rough = search.rough_period_ms();
        if rough <= 0.0 {
            return None;
        }
        for run in search.runs(rough) {
            search.take(run);
        }
        search.finish()
    }

    /// Whether each segment took all that the beat had written by then, and no more: the last of its
    /// messages waited less than a beat.
    pub(super) fn fills_its_segments(&self, messages: &[u32]) -> bool {
        let most = self.period_ms * FILLS_GRACE + DELAYED_MS;
        let mut next = 0usize;
        let mut fit = 0;
        for count in messages {
            next += *count as usize;
            let last = next.checked_sub(1).and_then(|i| self.delays_ms.get(i));
            fit += usize::from(*count == 0 || last.is_some_and(|d| *d < most));
        }
        fit as f64 >= AGREE_SHARE * messages.len() as f64
    }

    /// Moves each hold's write to where the beat puts it, and drops those written no earlier than
    /// a reaction time before the release.
    pub(super) fn place(&self, arrivals: &[Arrival], holds: &mut Vec<Hold>) {
        holds.retain_mut(|hold| {
            let Some(written) = self.written(arrivals, hold.end) else { return true };
            *hold = hold.written_at(written);
            hold.length_ms() >= DELAYED_MS
        });
    }

    /// The estimated write of the first message of the segment that ends at `end`.
    pub(super) fn written(&self, arrivals: &[Arrival], end: u64) -> Option<Time> {
        let i = arrivals.binary_search_by_key(&end, |a| a.end).ok()?;
        self.first_write.get(i).copied()
    }
}

/// The search for a beat: what is known, and what has been found in the runs taken so far.
struct Search<'a> {
    origin: Time,
    /// Arrivals since then, milliseconds.
    at: Vec<f64>,
    messages: &'a [u32],
    beat: Beat,
    /// Slopes of the runs.
    periods: Vec<f64>,
    /// Segments that can tell, and those of them that agree.
    tested: usize,
    agreeing: usize,
}

impl<'a> Search<'a> {
    fn new(arrivals: &[Arrival], messages: &'a [u32], total: usize) -> Self {
        let origin = arrivals[0].time;
        Self {
            origin,
            at: arrivals.iter().map(|a| a.time.since(origin).as_millis_f64()).collect(),
            messages,
            beat: Beat {
                period_ms: 0.0,
                delays_ms: Vec::with_capacity(total),
                first_write: Vec::with_capacity(arrivals.len()),
            },
            periods: Vec::new(),
            tested: 0,
            agreeing: 0,
        }
    }

    fn rough_period_ms(&self) -> f64 {
        let with_messages = (1..self.at.len()).filter(|i| self.messages[*i] > 0);
        let per_message =
            with_messages.map(|i| (self.at[i] - self.at[i - 1]) / f64::from(self.messages[i]));
        Sample::new(per_message.collect()).median()
    }

    /// Runs of segments without a pause of more than a few beats, at most [`PIECE`] messages long.
    fn runs(&self, rough: f64) -> Vec<Range<usize>> {
        let Self { at, messages, .. } = self;
        let mut runs = Vec::new();
        let (mut start, mut held) = (0, 0usize);
        for i in 0..at.len() {
            let pause = if i == 0 { 0.0 } else { at[i] - at[i - 1] };
            let expected = rough * f64::from(messages[i].max(1));
            let full = held >= PIECE && at.len() - i > PIECE / 4;
            if i > start && (pause > 3.0 * expected + 3.0 * rough || full) {
                runs.push(start..i);
                (start, held) = (i, 0);
            }
            held += messages[i] as usize;
        }
        runs.push(start..at.len());
        runs
    }

    fn take(&mut self, run: Range<usize>) {
        let mut points = Vec::new();
        for i in run.clone() {
            for _ in 0..self.messages[i] {
                points.push((points.len() as f64, self.at[i]));
            }
        }
        let hull = Hull::below(&points);
        let slope = hull.main_slope();
        let mut next = 0u32;
        for i in run.clone() {
            let (at, messages) = (self.at[i], self.messages[i]);
            let written = if messages == 0 { at } else { hull.at(f64::from(next)).min(at) };
            let nanos = self.origin.as_nanos() + (written.max(0.0) * 1e6) as u64;
            self.beat.first_write.push(Time::from_nanos(nanos));
            for _ in 0..messages {
                self.beat.delays_ms.push((at - hull.at(f64::from(next))).max(0.0));
                next += 1;
            }
            if i > run.start && messages > 0 {
                self.tested += 1;
                // Half a period of grace: the beat of an application is not that of a quartz.
                let earliest = self.at[i - 1] - slope * 0.5 - DELAYED_MS;
                self.agreeing += usize::from(written >= earliest);
            }
        }
        if run.len() >= MESSAGES_MIN / 2 {
            self.periods.push(slope);
        }
    }

    fn finish(self) -> Option<Beat> {
        let period_ms = Sample::new(self.periods).median();
        let agreement = self.agreeing as f64 / self.tested.max(1) as f64;
        (agreement >= AGREE_SHARE && self.tested >= MESSAGES_MIN / 2 && period_ms > 0.0)
            .then_some(Beat { period_ms, ..self.beat })
    }
}

/// Fewer messages show no beat.
const MESSAGES_MIN: usize = 20;
/// More messages than this in the segments that are kept (65,536 at most) are no messages: a lying
/// length or a unit far too small.
pub(super) const MESSAGES_MAX: usize = 1 << 20;
/// Messages per piece of hull: long enough to hold many that did not wait, short enough for clocks
/// whose rate wanders with temperature.
const PIECE: usize = 1_024;
/// Share of segments that must agree with the beat.
const AGREE_SHARE: f64 = 0.9;
/// An application's beat may be late by this share of it.
const FILLS_GRACE: f64 = 1.15;

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(ms: f64, end: u64) -> Arrival {
        Arrival {
            time: Time::from_nanos(1_000_000_000 + (ms * 1e6) as u64),
            end,
            len: 40,
            frames: 0,
        }
    }

    #[test]
    fn a_unit_far_too_small_has_no_beat_and_costs_no_memory() {
        let arrivals: Vec<Arrival> =
            (1..100).map(|i| arrival(20.0 * i as f64, i * 65_535)).collect();
        assert!(Beat::find(&arrivals, &[65_535; 99]).is_none());
    }

    #[test]
    fn the_hull_finds_the_beat_under_held_messages_despite_drift() {
        // Writes every 20.002 ms; the sender is released every 47.3 ms only.
        let mut arrivals = Vec::new();
        let mut messages = Vec::new();
        let mut truth = Vec::new();
        let (mut written, mut end) = (0u32, 0);
        for cycle in 1..400u32 {
            let release = f64::from(cycle) * 47.3;
            let mut count = 0;
            while f64::from(written) * 20.002 <= release {
                truth.push(release - f64::from(written) * 20.002);
                written += 1;
                count += 1;
            }
            if count > 0 {
                end += u64::from(count) * 48;
                arrivals.push(arrival(release, end));
                messages.push(count);
            }
        }
        let beat = Beat::find(&arrivals, &messages).expect("a beat");
        assert!((beat.period_ms - 20.002).abs() < 0.01, "{}", beat.period_ms);
        let (found, expect) = (Sample::new(beat.delays_ms), Sample::new(truth));
        let off = |p| (found.quantile(p) - expect.quantile(p)).abs();
        assert!(off(0.5) < 1.0 && off(0.95) < 1.0);
    }

    #[test]
    fn answers_to_requests_have_no_beat() {
        let mut ms = 0.0;
        let arrivals: Vec<Arrival> = (0..200u32)
            .map(|i| {
                ms += f64::from(i * 7919 % 97) * f64::from(i * 104_729 % 13) + 0.3;
                arrival(ms, u64::from(i + 1) * 40)
            })
            .collect();
        assert!(
            Beat::find(&arrivals, &vec![1; 200])
                .is_none_or(|b| b.delays_ms.iter().all(|d| *d < 1e5))
        );
    }
}
