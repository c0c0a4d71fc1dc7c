//! When each message was written, and so how long it waited.
//!
//! Messages written on a beat (every 20 ms, say) reach the capture point on that beat unless they
//! were held, and never early; so the lower convex hull of (message number, arrival) follows the
//! beat, drift of clocks included, and a message's height above it is its added delay. The hull is
//! taken piecewise over runs without long pauses. It holds only if it agrees with what it does not
//! know: by Nagle's rule no message can have been written before the segment ahead of it left, else
//! it would have travelled in that one. Writes without a beat leave an upper bound only: the time
//! since the segment before.

use acklab_core::time::Time;

use super::holds::Hold;
use super::records::Arrival;
use crate::diagnosis::AddedDelay;
use crate::infer::spread::Sample;

/// Fewer messages show no beat.
const MESSAGES_MIN: usize = 20;
/// More messages than this in the segments that are kept (65,536 at most) are no messages: a lying
/// length or a unit far too small.
pub const MESSAGES_MAX: usize = 1 << 20;
/// Messages per piece of hull: long enough to hold many that did not wait, short enough for clocks
/// whose rate wanders with temperature.
const PIECE: usize = 1_024;
/// Share of segments that must agree with the beat.
const AGREE_SHARE: f64 = 0.9;
/// An application's beat may be late by this share of it.
const FILLS_GRACE: f64 = 1.15;
/// A message delayed by less than this counts as not delayed.
const DELAYED_MS: f64 = 1.0;

/// The beat of a direction's writes.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Time between writes, milliseconds.
    pub period_ms: f64,
    /// Share of segments that agree with it.
    pub agreement: f64,
    /// Added delay of every message, milliseconds, in order.
    pub delays_ms: Vec<f64>,
    /// For each segment the estimated write of its first message.
    first_write: Vec<Time>,
}

impl Beat {
    /// Finds the beat of segments with these numbers of messages, if there is one.
    pub fn find(arrivals: &[Arrival], messages: &[u32]) -> Option<Self> {
        let total: usize = messages.iter().map(|m| *m as usize).sum();
        if !(MESSAGES_MIN..=MESSAGES_MAX).contains(&total) || arrivals.len() < MESSAGES_MIN / 2 {
            return None;
        }
        let origin = arrivals[0].time;
        let at: Vec<f64> = arrivals.iter().map(|a| a.time.since(origin).as_millis_f64()).collect();
        let per_message: Vec<f64> = (1..at.len())
            .filter(|i| messages[*i] > 0)
            .map(|i| (at[i] - at[i - 1]) / f64::from(messages[i]))
            .collect();
        let rough = Sample::new(per_message).median();
        if rough <= 0.0 {
            return None;
        }
        let mut beat = Self {
            period_ms: 0.0,
            agreement: 0.0,
            delays_ms: Vec::with_capacity(total),
            first_write: Vec::with_capacity(arrivals.len()),
        };
        let mut periods = Vec::new();
        let mut agree = (0usize, 0usize);
        for run in runs(&at, messages, rough) {
            beat.take_run(&at, messages, run, origin, &mut periods, &mut agree);
        }
        beat.period_ms = Sample::new(periods).median();
        beat.agreement = agree.0 as f64 / agree.1.max(1) as f64;
        (beat.agreement >= AGREE_SHARE && agree.1 >= MESSAGES_MIN / 2 && beat.period_ms > 0.0)
            .then_some(beat)
    }

    fn take_run(
        &mut self,
        at: &[f64],
        messages: &[u32],
        run: std::ops::Range<usize>,
        origin: Time,
        periods: &mut Vec<f64>,
        agree: &mut (usize, usize),
    ) {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut number = 0.0;
        for i in run.clone() {
            for _ in 0..messages[i] {
                points.push((number, at[i]));
                number += 1.0;
            }
        }
        let hull = lower_hull(&points);
        let slope = main_slope(&hull);
        let mut next = 0u32;
        for i in run.clone() {
            let first = hull_at(&hull, f64::from(next));
            let written = if messages[i] == 0 { at[i] } else { first.min(at[i]) };
            self.first_write
                .push(Time::from_nanos(origin.as_nanos() + (written.max(0.0) * 1e6) as u64));
            for _ in 0..messages[i] {
                self.delays_ms.push((at[i] - hull_at(&hull, f64::from(next))).max(0.0));
                next += 1;
            }
            if i > run.start && messages[i] > 0 {
                agree.1 += 1;
                // Half a period of grace: the beat of an application is not that of a quartz.
                agree.0 += usize::from(written >= at[i - 1] - slope * 0.5 - DELAYED_MS);
            }
        }
        if run.len() >= MESSAGES_MIN / 2 {
            periods.push(slope);
        }
    }

    /// Whether each segment took all that the beat had written by then, and no more: the last of its
    /// messages waited less than a beat.
    pub fn fills_its_segments(&self, messages: &[u32]) -> bool {
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
    pub fn place(&self, arrivals: &[Arrival], holds: &mut Vec<Hold>) {
        holds.retain_mut(|hold| {
            let Ok(i) = arrivals.binary_search_by_key(&hold.end, |a| a.end) else { return true };
            let Some(written) = self.first_write.get(i) else { return true };
            hold.written = (*written).max(hold.before).min(hold.release);
            hold.length_ms() >= DELAYED_MS
        });
    }

    /// The estimated write of the first message of the segment that ends at `end`.
    pub fn written(&self, arrivals: &[Arrival], end: u64) -> Option<Time> {
        let i = arrivals.binary_search_by_key(&end, |a| a.end).ok()?;
        self.first_write.get(i).copied()
    }
}

/// Runs of segments without a pause of more than a few beats, at most [`PIECE`] messages long.
fn runs(at: &[f64], messages: &[u32], rough: f64) -> Vec<std::ops::Range<usize>> {
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

/// Lower convex hull of points in ascending order of x (Andrew's monotone chain).
fn lower_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for p in points {
        while let [.., a, b] = hull[..] {
            if (b.0 - a.0) * (p.1 - a.1) > (b.1 - a.1) * (p.0 - a.0) {
                break;
            }
            hull.pop();
        }
        hull.push(*p);
    }
    hull
}

/// The slope of the hull at its middle.
fn main_slope(hull: &[(f64, f64)]) -> f64 {
    let (Some(first), Some(last)) = (hull.first(), hull.last()) else { return 0.0 };
    let middle = f64::midpoint(first.0, last.0);
    hull.windows(2)
        .find(|w| w[1].0 >= middle)
        .map_or(0.0, |w| (w[1].1 - w[0].1) / (w[1].0 - w[0].0))
}

fn hull_at(hull: &[(f64, f64)], x: f64) -> f64 {
    let i = hull.partition_point(|p| p.0 < x);
    match (i.checked_sub(1).and_then(|j| hull.get(j)), hull.get(i)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (None, Some(b)) => b.1,
        (Some(a), None) => a.1,
        (None, None) => 0.0,
    }
}

/// Delays of the messages in held segments that have no beat: none waited longer than since the
/// segment before.
pub fn bounded_delays(hold: &Hold, messages: u32) -> impl Iterator<Item = f64> + use<> {
    let length = hold.length_ms();
    (0..messages.max(1)).map(move |_| length)
}

/// The distribution of delays.
pub fn distribution(sample: &Sample, source: &'static str) -> AddedDelay {
    let delayed = sample.values().iter().filter(|d| **d >= DELAYED_MS).count();
    AddedDelay {
        messages: sample.len() as u64,
        delayed: delayed as u64,
        p50: sample.median(),
        p95: sample.quantile(0.95),
        p99: sample.quantile(0.99),
        max: sample.max(),
        source,
    }
}

/// The distribution of `delays_ms` among `total` messages, of which the rest waited not at all, and
/// its sample. A capture may hold billions of messages: beyond [`MESSAGES_MAX`] the sample is thinned
/// evenly, its largest value kept.
pub fn distribution_among(
    mut delays_ms: Vec<f64>,
    total: u64,
    source: &'static str,
) -> (AddedDelay, Sample) {
    let total = total.max(delays_ms.len() as u64);
    let delayed = delays_ms.iter().filter(|d| **d >= DELAYED_MS).count() as u64;
    let stride = total.div_ceil(MESSAGES_MAX as u64).max(1);
    if stride > 1 {
        delays_ms.sort_unstable_by(|a, b| b.total_cmp(a));
        delays_ms = delays_ms.into_iter().step_by(stride as usize).collect();
    }
    delays_ms.resize(delays_ms.len().max((total / stride) as usize), 0.0);
    let sample = Sample::new(delays_ms);
    (AddedDelay { messages: total, delayed, ..distribution(&sample, source) }, sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(ms: f64, end: u64) -> Arrival {
        Arrival { time: Time::from_nanos(1_000_000_000 + (ms * 1e6) as u64), end, frames: 0 }
    }

    #[test]
    fn billions_of_messages_that_did_not_wait_are_counted_without_being_kept() {
        let held: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let (delay, sample) = distribution_among(held, 4_000_000_000, "upper_bound");
        assert_eq!((delay.messages, delay.delayed), (4_000_000_000, 1_000));
        assert_eq!((delay.p99, delay.max), (0.0, 1_000.0));
        assert!(sample.len() <= MESSAGES_MAX);
        let (delay, _) = distribution_among(vec![5.0; 30], 40, "upper_bound");
        assert_eq!((delay.messages, delay.delayed, delay.p50), (40, 30, 5.0));
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
        let found = distribution(&Sample::new(beat.delays_ms), "period");
        let expect = distribution(&Sample::new(truth), "truth");
        assert!((found.p50 - expect.p50).abs() < 1.0 && (found.p95 - expect.p95).abs() < 1.0);
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
