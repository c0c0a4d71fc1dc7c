//! Holds that show by what gathered in them, wherever the capture was made and whatever ended them.
//!
//! Where a program writes messages of one size on a beat, and after a silence there comes at once what it wrote meanwhile, the
//! sender kept it: without Nagle's algorithm each message would have left by itself. So it is where a small segment was
//! lost before the capture point, which then shows neither the loss nor anything unacknowledged: all that follows waits
//! for the sender's timer, and leaves as one.

use acklab_core::time::{Span, Time};

use super::holds::Decision;
use super::{Hold, Sample};
use crate::noted::Notes;
use crate::noted::event::{DataNote, Event, Kind};

/// The holds of this kind that are not among `holds`.
pub(super) fn find(notes: &Notes<'_>, decision: &Decision, holds: &[Hold]) -> Vec<Hold> {
    let data: Vec<&DataNote> = notes.events.iter().filter_map(new_data).collect();
    let refuted = decision.breaks as usize * STRAYS_PART > data.len();
    let Some(beat) = Beat::of(&data, notes.mss()).filter(|_| !refuted) else { return Vec::new() };
    let known = |d: &DataNote| holds.iter().any(|hold| hold.end == d.end());
    let silent = (1..data.len()).filter(|i| beat.broke(data[*i - 1], &data[*i..]));
    let hold = |i: usize| {
        let (before, d) = (data[i - 1].time, data[i]);
        let hold = Hold::gathered(d.frame, before, d.time, d.end(), LIKELY);
        hold.written_at(before + Span::from_nanos((2.0 * beat.period_ms * 1e6) as u64))
    };
    silent.filter(|i| !known(data[*i])).map(hold).collect()
}

fn new_data(event: &Event) -> Option<&DataNote> {
    match event {
        Event::Data(data) if matches!(data.kind, Kind::New | Kind::Gap) => Some(data),
        _ => None,
    }
}

/// Messages of one size at even times.
struct Beat {
    message: u64,
    period_ms: f64,
}

impl Beat {
    fn of(data: &[&DataNote], mss: u32) -> Option<Self> {
        let mut lengths: Vec<u32> = data.iter().map(|d| d.len).collect();
        lengths.sort_unstable();
        let message = *lengths.get(lengths.len() / 2)?;
        let singles = data.windows(2).filter(|two| two[1].len == message);
        let intervals = Sample::new(
            singles.map(|two| two[1].time.since(two[0].time).as_millis_f64()).collect(),
        );
        let period_ms = intervals.median();
        let even = intervals.iqr() <= EVEN_SHARE * period_ms && period_ms >= PERIOD_LEAST_MS;
        let alike = intervals.len() >= SINGLES_MIN && intervals.len() * 10 >= data.len() * 6;
        let small = message > 0 && message * 2 <= mss;
        (small && even && alike).then_some(Self { message: u64::from(message), period_ms })
    }

    /// Whether `after` begins with what the beat wrote since `before`, and all of it.
    fn broke(&self, before: &DataNote, after: &[&DataNote]) -> bool {
        let Some(first) = after.first() else { return false };
        let beats = first.time.since(before.time).as_millis_f64() / self.period_ms;
        if beats < BEATS_MIN || u64::from(first.len) <= self.message {
            return false;
        }
        let at_once = |d: &&&DataNote| self.within(first.time, d.time);
        let bytes: u64 = after.iter().take_while(at_once).map(|d| u64::from(d.len)).sum();
        let messages = bytes as f64 / self.message as f64;
        bytes.is_multiple_of(self.message) && (messages - beats).abs() <= 1.0 + OFF_SHARE * beats
    }

    fn within(&self, from: Time, to: Time) -> bool {
        to.since(from).as_millis_f64() < 0.5 * self.period_ms
    }
}

/// Probability that such a segment was held: now and then a program itself is late, and writes all in one.
const LIKELY: f64 = 0.7;
/// One segment in so many that breaks Nagle's rule refutes it.
const STRAYS_PART: usize = 50;
/// Fewer single messages show no beat; their intervals vary by no more than such a share of it.
const SINGLES_MIN: usize = 20;
const EVEN_SHARE: f64 = 0.8;
const PERIOD_LEAST_MS: f64 = 2.0;
/// A silence of fewer beats may be any.
const BEATS_MIN: f64 = 3.5;
/// A beat strays by such a share of the silence.
const OFF_SHARE: f64 = 0.1;
