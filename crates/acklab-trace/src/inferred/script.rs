//! What the application wrote and when, write by write: the conversation as it can be played again.
//!
//! A segment that was not held was written when it left. A held one carries one write or several ([`gathered`]),
//! each of which came between the segment before and the release; how exactly it is known when is part of
//! the answer.

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use super::replay::Arrival;
use super::{Hold, Inference, Sample};
use crate::noted::Notes;

/// One write of the application, in terms of the capture point: of data that left at once, when it passed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Nagle's algorithm held it.
    pub held: bool,
    /// When it was written, most likely.
    pub at: Time,
    /// No sooner than this.
    pub earliest: Time,
    /// Hardly later than this.
    pub latest: Time,
    /// When its last byte passed.
    pub left: Time,
    /// Bytes, with those that the capture lacks before it.
    pub bytes: u32,
}

impl Written {
    /// How long it was held, milliseconds.
    pub fn delay_ms(&self) -> f64 {
        self.left.since(self.at).as_millis_f64()
    }
}

/// The writes of a direction in their order, about `most` of them, and whether more followed; none where the notes do not
/// hold all of its segments as far.
pub(crate) fn of(notes: &Notes<'_>, inference: &Inference, most: usize) -> (Vec<Written>, bool) {
    let arrivals = &inference.messages.arrivals;
    let cut = arrivals.len() > most;
    if notes.bulk || (notes.sampled && !cut) {
        return (Vec::new(), false);
    }
    let arrivals = &arrivals[..arrivals.len().min(most)];
    let held = Held::of(inference, arrivals);
    let sizes = Sizes::of(arrivals, &held, notes.mss());
    let beat = OnBeat::of(inference, arrivals, &held);
    let mut draws = Draws::new();
    let mut writes = Vec::with_capacity(arrivals.len());
    let mut next = arrivals.first().map_or(0, |first| first.end - u64::from(first.len));
    let mut before: Option<&Arrival> = None;
    for (i, arrival) in arrivals.iter().enumerate() {
        let bytes = arrival.end.saturating_sub(next) as u32;
        next = next.max(arrival.end);
        let since = before.replace(arrival);
        if let Some(hold) = held.at(arrival.end) {
            let known = inference.messages.in_segment(arrival.end);
            let count = if known > 1 { known } else { sizes.gathered(bytes) };
            match &beat {
                Some(beat) => beat.gathered(&mut writes, hold, [count, bytes], &mut draws),
                None => gathered(&mut writes, hold, [count, bytes], sizes.per_ms, &mut draws),
            }
            continue;
        }
        // A full segment before a held one filled up behind the small one that both waited for.
        let waits = arrivals.get(i + 1).is_some_and(|next| held.at(next.end).is_some());
        match since.filter(|since| waits && sizes.fills(since, arrival)) {
            Some(since) => {
                filled(&mut writes, [since.time, arrival.time], sizes.gathered(bytes), bytes);
            }
            None => writes.push(free(arrival.time, bytes)),
        }
    }
    (writes, cut)
}

/// The holds of some segments in order.
struct Held<'i>(Vec<&'i Hold>);

impl<'i> Held<'i> {
    fn of(inference: &'i Inference, arrivals: &[Arrival]) -> Self {
        let last = arrivals.last().map_or(0, |last| last.end);
        let holds = inference.holds.iter().filter(|h| h.probability >= 0.5 && h.end <= last);
        let mut holds: Vec<&Hold> = holds.collect();
        holds.sort_by_key(|hold| hold.end);
        Self(holds)
    }

    /// That of the segment that ends at `end`.
    fn at(&self, end: u64) -> Option<&'i Hold> {
        self.0.binary_search_by_key(&end, |hold| hold.end).ok().map(|i| self.0[i])
    }
}

/// Where within what is open something was: evenly spread over it from one question to the next, so that all
/// answers together are as spread as the truth, while their mean alone would put all in the middle.
struct Draws {
    last: f64,
    rng: Rng,
}

impl Draws {
    fn new() -> Self {
        Self { last: 0.0, rng: Rng::named(0, "writes in a held segment") }
    }

    /// So many independent ones in order: writes at any time, some of which come close behind each other.
    fn sorted(&mut self, count: u32) -> Vec<f64> {
        let mut all: Vec<f64> = (0..count).map(|_| self.rng.uniform()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// 0 to 1.
    fn next(&mut self) -> f64 {
        self.last += GOLDEN;
        self.last -= if self.last < 1.0 { 0.0 } else { 1.0 };
        self.last
    }
}

/// A beat, and how late its writes are.
struct OnBeat {
    period_ms: f64,
    late_ms: Sample,
}

impl OnBeat {
    fn of(inference: &Inference, arrivals: &[Arrival], held: &Held<'_>) -> Option<Self> {
        let messages = &inference.messages;
        let period_ms = messages.beat.as_ref()?.period_ms;
        let late = |a: &Arrival| Some(a.time.since(messages.written(a.end)?).as_millis_f64());
        let free = arrivals.iter().filter(|a| held.at(a.end).is_none());
        let late_ms =
            Sample::new(free.filter_map(late).filter(|ms| *ms < period_ms / 2.0).collect());
        Some(Self { period_ms, late_ms })
    }

    /// The writes of a held segment: as late as the free ones.
    fn gathered(
        &self,
        writes: &mut Vec<Written>,
        hold: &Hold,
        [count, bytes]: [u32; 2],
        draws: &mut Draws,
    ) {
        for i in 0..count {
            let late = if self.late_ms.len() < FREE_MIN {
                0.0
            } else {
                self.late_ms.quantile(draws.next())
            };
            let at = later(hold.written, f64::from(i) * self.period_ms + late).min(hold.release);
            let (least, most) = (sooner(at, BEAT_MS), later(at, BEAT_MS));
            writes.push(one(hold, [least, at, most], share(bytes, count, i)));
        }
    }
}

/// The writes of a held segment where no beat says when they came: in a stream anywhere in the time since the segment
/// before; in a burst as fast as segments filled up.
fn gathered(
    writes: &mut Vec<Written>,
    hold: &Hold,
    [count, bytes]: [u32; 2],
    per_ms: f64,
    draws: &mut Draws,
) {
    let upper = hold.upper_ms();
    let burst = hold.written <= hold.before;
    let size = f64::from(bytes) / f64::from(count);
    let part = |i: f64| later(hold.before, upper * i / f64::from(count));
    let anywhere = draws.sorted(if count > 1 { count } else { 0 });
    for i in 0..count {
        let n = f64::from(i);
        let times = match (count, burst) {
            (1, true) => [hold.before, hold.written, sooner(hold.release, hold.least_ms)],
            (1, false) => [hold.before, part(draws.next()), sooner(hold.release, hold.least_ms)],
            (_, true) if per_ms > 0.0 => {
                [hold.before, later(hold.before, (n + 1.0) * size / per_ms), part(n + 0.5)]
            }
            _ => {
                let at = later(hold.before, upper * anywhere[i as usize]);
                [part(n).min(at), at, part(n + 1.0).max(at)]
            }
        };
        writes.push(one(hold, times, share(bytes, count, i)));
    }
}

/// The writes that filled a segment, evenly over the time in which it did: the last when it left.
fn filled(writes: &mut Vec<Written>, [from, to]: [Time; 2], count: u32, bytes: u32) {
    let all = to.since(from).as_millis_f64();
    for i in 0..count {
        let place = |i: u32| later(from, all * f64::from(i) / f64::from(count)).min(to);
        let (earliest, at) = (place(i), place(i + 1));
        let bytes = share(bytes, count, i);
        writes.push(Written { held: true, at, earliest, latest: at, left: to, bytes });
    }
}

fn free(time: Time, bytes: u32) -> Written {
    Written { held: false, at: time, earliest: time, latest: time, left: time, bytes }
}

fn one(hold: &Hold, times: [Time; 3], bytes: u32) -> Written {
    let [earliest, at, latest] = times.map(|time| time.max(hold.before).min(hold.release));
    Written { held: true, at, earliest, latest, left: hold.release, bytes }
}

/// The `i`-th of `count` parts of `bytes`; the last has what remains.
fn share(bytes: u32, count: u32, i: u32) -> u32 {
    let part = bytes / count;
    if i + 1 == count { bytes - part * (count - 1) } else { part }
}

fn later(time: Time, ms: f64) -> Time {
    time + Span::from_nanos((ms.max(0.0) * 1e6) as u64)
}

fn sooner(time: Time, ms: f64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub((ms.max(0.0) * 1e6) as u64))
}

/// How large writes are, by the segments that were not held, and how fast they come.
struct Sizes {
    mss: u32,
    mean: f64,
    /// Bytes written in a millisecond of a burst; 0 where no segment filled up while it waited.
    per_ms: f64,
    /// Writes come at any time, so that held segments gather several.
    stream: bool,
}

impl Sizes {
    fn of(arrivals: &[Arrival], held: &Held<'_>, mss: u32) -> Self {
        let free = arrivals.iter().filter(|a| a.len < mss && held.at(a.end).is_none());
        let free: Vec<f64> = free.map(|a| f64::from(a.len)).collect();
        let mean = free.iter().sum::<f64>() / free.len().max(1) as f64;
        let filled = arrivals.windows(3).filter(|three| {
            let [before, full, next] = three else { return false };
            held.at(next.end).is_some() && fills(before, full, mss)
        });
        let took = filled.map(|three| three[1].time.since(three[0].time).as_millis_f64());
        let took = Sample::new(took.collect());
        let shown = took.len() >= FILLS_MIN && took.median() >= SLOWLY_MS && free.len() >= FREE_MIN;
        let per_ms = if shown { f64::from(mss) / took.median() } else { 0.0 };
        let anywhere = held.0.iter().filter(|hold| hold.written > hold.before).count();
        let stream = 2 * anywhere > held.0.len() && !free.is_empty();
        Self { mss, mean, per_ms, stream }
    }

    /// Whether the second of two segments is one that filled up.
    fn fills(&self, before: &Arrival, full: &Arrival) -> bool {
        self.per_ms > 0.0 && fills(before, full, self.mss)
    }

    /// How many writes so many held bytes are.
    fn gathered(&self, bytes: u32) -> u32 {
        if self.per_ms <= 0.0 && !self.stream {
            return 1;
        }
        ((f64::from(bytes) / self.mean).round() as u32).clamp(1, bytes.max(1))
    }
}

fn fills(before: &Arrival, full: &Arrival, mss: u32) -> bool {
    full.len == mss && before.len < mss && before.time < full.time
}

/// The golden ratio, of which multiples are spread most evenly modulo 1.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// How late a beat is, milliseconds.
const BEAT_MS: f64 = 1.5;
/// Fewer free segments do not show the size of a write.
const FREE_MIN: usize = 3;
/// Fewer segments that filled up may be anything.
const FILLS_MIN: usize = 3;
/// What filled a segment faster was one write.
const SLOWLY_MS: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_writes_of_a_held_segment_are_in_order_and_within_it() {
        let [before, within, release] = [10, 20, 50].map(|ms| Time::from_nanos(ms * 1_000_000));
        let burst = Hold::gathered(1, before, release, 300, 0.9);
        for (hold, per_ms) in [(burst, 0.0), (burst, 20.0), (burst.written_at(within), 0.0)] {
            for count in 1..9 {
                let mut writes = Vec::new();
                gathered(&mut writes, &hold, [count, 300], per_ms, &mut Draws::new());
                assert_eq!(writes.len(), count as usize);
                assert_eq!(writes.iter().map(|write| write.bytes).sum::<u32>(), 300);
                assert!(writes.is_sorted_by_key(|write| write.at));
                for write in writes {
                    assert!(before <= write.earliest && write.earliest <= write.at);
                    assert!(write.at <= write.latest && write.latest <= release);
                }
            }
        }
    }
}
