//! The judgement of one direction: inference and stalls put together in the right order.
//!
//! First what needs no other answer (path, messages, the receiver's timer), then the holds, then
//! what each hold waited for. In-band time stamps, where a protocol carries them, replace the
//! estimate of added delay, never the decision.

use super::plots;
use crate::diagnosis::{
    AckFacts, AddedDelay, Direction, Mechanism, NagleState, Quantiles, Stall, Wait, WaitCause,
    Writes,
};
use crate::flow::facts::DirectionFacts;
use crate::infer::path::Path;
use crate::infer::receiver::{Delays, Timer};
use crate::infer::spread::Sample;
use crate::infer::writes::{Unit, gathered_unit, messages_per_segment};
use crate::infer::{nagle, receiver};
use crate::stall::added::{self, Beat};
use crate::stall::holds::{self, Hold, SMALL_HOLD_MS};
use crate::stall::records::{Arrival, Log};
use crate::stall::{Recorder, fill, piggyback};

/// So many holds show that segments gathered what was written meanwhile.
const HOLDS_SHOWN: usize = 8;
/// Frames listed as worst.
const WORST: usize = 10;

/// Everything that was worked out about a direction's messages.
pub(super) struct Messages<'a> {
    pub(super) arrivals: &'a [Arrival],
    pub(super) unit: Unit,
    pub(super) counts: Vec<u32>,
    pub(super) beat: Option<Beat>,
}

impl<'a> Messages<'a> {
    fn of(log: Option<&'a Log>, holds: usize) -> Self {
        let arrivals = log.map_or(&[][..], |l| &l.arrivals);
        let unit = Unit::of(arrivals, log.and_then(|l| l.frames.framing()));
        if holds >= HOLDS_SHOWN
            && !matches!(unit, Unit::Framing(_))
            && let Some(gathered) = Self::gathered(arrivals)
        {
            return gathered;
        }
        let counts = messages_per_segment(arrivals, unit);
        if counts.iter().map(|c| *c as usize).sum::<usize>() > added::MESSAGES_MAX {
            return Self {
                arrivals,
                unit: Unit::Segment,
                counts: vec![1; arrivals.len()],
                beat: None,
            };
        }
        let beat = (unit != Unit::Segment).then(|| Beat::find(arrivals, &counts)).flatten();
        Self { arrivals, unit, counts, beat }
    }

    /// Equal writes that gathered in every segment, if they keep a beat.
    fn gathered(arrivals: &'a [Arrival]) -> Option<Self> {
        let unit = Unit::Size(gathered_unit(arrivals)?);
        let mut counts = messages_per_segment(arrivals, unit);
        // What else was sent (a greeting, say) was not on the beat.
        let mut before = 0;
        for (count, arrival) in counts.iter_mut().zip(arrivals) {
            let whole = unit.bytes().is_some_and(|b| (arrival.end - before) % u64::from(b) == 0);
            before = arrival.end;
            if !whole {
                *count = 0;
            }
        }
        let beat = Beat::find(arrivals, &counts)?;
        let fits = beat.fills_its_segments(&counts);
        fits.then_some(Self { arrivals, unit, counts, beat: Some(beat) })
    }

    fn in_segment(&self, end: u64) -> u32 {
        let at = self.arrivals.binary_search_by_key(&end, |a| a.end);
        at.ok().and_then(|i| self.counts.get(i)).map_or(1, |c| (*c).max(1))
    }

    fn total(&self, segments: u64) -> u64 {
        let counted: u64 = self.counts.iter().map(|c| u64::from(*c)).sum();
        counted + segments.saturating_sub(self.counts.len() as u64)
    }

    /// Whether segments carry several messages often enough that writes came while others waited.
    fn coalesced(&self) -> bool {
        let several = self.counts.iter().filter(|c| **c >= 2).count();
        several >= 3 && several * 20 >= self.counts.len()
    }
}

/// Judges one direction.
pub(super) fn judge(
    recorder: &Recorder,
    facts: &DirectionFacts,
    opposite: &DirectionFacts,
) -> Direction {
    let path = Path::of(facts, opposite);
    let log = recorder.log.as_deref();
    let delays = Delays::of(log.map_or(&[][..], |l| &l.acks), &recorder.counts, &path);
    let (receiver_policy, timer) = receiver::infer(&delays, &path);
    let decision = holds::decide(recorder, facts.stream.mss, &path);
    let mut messages = Messages::of(log, decision.holds.len());
    if !messages.coalesced() {
        messages.beat = None;
    }
    let mut held = decision.holds.clone();
    if let (Some(beat), Some(log)) = (&messages.beat, log) {
        beat.place(messages.arrivals, &mut held);
        let riding = piggyback::riding(log, &decision, &path, |end| {
            Some((beat.written(messages.arrivals, end)?, messages.in_segment(end)))
        });
        held.extend(riding);
        held.sort_by_key(|h| (h.release, h.frame));
    }
    let by_ack = held.len();
    let message_bytes = messages.unit.bytes();
    let broken = decision.violations;
    let (filled, _) =
        fill::filled(recorder, message_bytes, facts.stream.mss, &path, broken, &held).unzip();
    let filled = filled.unwrap_or_default();
    let nagle = nagle::infer(&decision, &recorder.counts, by_ack, filled.len());
    held.extend(filled);
    held.sort_by_key(|h| (h.release, h.frame));
    let ladder = plots::ladder(log, &held, facts);
    let span_s = recorder.span().map_or(0.0, |(a, b)| b.since(a).as_secs_f64());
    let (mut stalls, small_holds) = stalls_of(&held, &messages, timer, span_s);
    let share = Share::of(recorder, log);
    for stall in &mut stalls {
        share.scale(stall, span_s);
    }
    let estimate = estimated(&held, &messages, facts.packets.segments);
    let stamped = in_band(&held, &messages, log, facts.packets.segments);
    let estimated_too = stamped.is_some().then_some(estimate.0);
    let (added_delay_ms, cdf) = stamped.unwrap_or(estimate);
    let confident = if nagle.state == NagleState::Off && by_ack == 0 { Vec::new() } else { stalls };
    Direction {
        from: facts.from.to_string(),
        to: facts.to.to_string(),
        bytes: facts.stream.bytes,
        segments: facts.packets.segments,
        mss: facts.stream.mss,
        rtt_ms: facts.rtt.map(|r| Quantiles {
            min: r.min.as_millis_f64(),
            p50: r.p50.as_millis_f64(),
            p95: r.p95.as_millis_f64(),
        }),
        rtt_to_receiver_ms: path.near_ms,
        rtt_to_sender_ms: path.far_ms,
        acks: ack_facts(facts),
        retransmissions: facts.packets.retransmissions,
        reordered: facts.packets.reordered,
        duplicates: facts.packets.duplicates,
        zero_windows: facts.packets.zero_windows,
        nagle,
        receiver_policy,
        writes: writes_of(&messages, &held, recorder.counts.segments),
        stalls: confident,
        sampled: share.is_sample(),
        small_holds,
        waits: waits_of(recorder, &path, &held),
        added_delay_ms,
        added_delay_estimate_ms: estimated_too,
        plots: plots::of(log, facts, ladder, &cdf),
    }
}

/// How many possible holds there were for each one that is on record.
struct Share {
    candidates: f64,
    fills: f64,
}

impl Share {
    fn of(recorder: &Recorder, log: Option<&Log>) -> Self {
        let per = |all: u64, kept: usize| if kept == 0 { 1.0 } else { all as f64 / kept as f64 };
        Self {
            candidates: per(recorder.counts.candidates, log.map_or(0, |l| l.candidates.len())),
            fills: per(recorder.counts.fills, log.map_or(0, |l| l.fills.len())),
        }
    }

    fn is_sample(&self) -> bool {
        self.candidates.max(self.fills) > 1.0
    }

    fn scale(&self, stall: &mut Stall, span_s: f64) {
        let factor =
            if stall.mechanism == Mechanism::MssFilled { self.fills } else { self.candidates };
        if factor <= 1.0 {
            return;
        }
        stall.count = (stall.count as f64 * factor).round() as u64;
        stall.seconds *= factor;
        stall.seconds_upper *= factor;
        stall.share_of_time = if span_s > 0.0 { (stall.seconds / span_s).min(1.0) } else { 0.0 };
    }
}

fn ack_facts(facts: &DirectionFacts) -> AckFacts {
    let progress = facts.packets.pure_acks + facts.packets.acks_on_data;
    let per = |n: f64, d: u64| (d > 0).then(|| n / d as f64);
    AckFacts {
        pure: facts.packets.pure_acks,
        segments_per_ack: per(facts.packets.segments as f64, facts.packets.pure_acks),
        segments_per_ack_or_data: per(facts.packets.segments as f64, progress),
        mss_per_ack: facts.mss_per_ack(),
        delay_ms: facts.ack_delay.as_ref().map(|d| Quantiles {
            min: 0.0,
            p50: d.p50.as_millis_f64(),
            p95: d.p95.as_millis_f64(),
        }),
    }
}

fn mechanism_of(hold: &Hold, timer: Timer) -> Mechanism {
    if hold.filled {
        return Mechanism::MssFilled;
    }
    match hold.ack_delay_ms {
        Some(delay) if hold.pure && timer.explains(delay) => Mechanism::DelayedAckTimer,
        _ => Mechanism::AckClocked,
    }
}

fn stalls_of(
    held: &[Hold],
    messages: &Messages<'_>,
    timer: Timer,
    span_s: f64,
) -> (Vec<Stall>, u64) {
    // Holds are counted by the most that they can have lasted; but where the beat of the writes shows
    // that most were short, by that.
    let lengths = Sample::new(held.iter().map(Hold::length_ms).collect());
    let short = messages.beat.is_some() && lengths.median() < SMALL_HOLD_MS;
    let lasted = |h: &Hold| if short { h.length_ms() } else { h.upper_ms() };
    let small = held.iter().filter(|h| lasted(h) < SMALL_HOLD_MS).count();
    let kinds = [Mechanism::DelayedAckTimer, Mechanism::MssFilled, Mechanism::AckClocked];
    let stalls = kinds
        .into_iter()
        .filter_map(|mechanism| {
            let of_kind: Vec<&Hold> = held
                .iter()
                .filter(|h| lasted(h) >= SMALL_HOLD_MS && mechanism_of(h, timer) == mechanism)
                .collect();
            stall_of(mechanism, &of_kind, messages, span_s)
        })
        .collect();
    (stalls, small as u64)
}

fn stall_of(
    mechanism: Mechanism,
    holds: &[&Hold],
    messages: &Messages<'_>,
    span_s: f64,
) -> Option<Stall> {
    let first = holds.first()?;
    let seconds = holds.iter().fold(0.0, |sum, h| sum + h.length_ms() / 1e3);
    let upper = holds.iter().fold(0.0, |sum, h| sum + h.upper_ms() / 1e3);
    let delays: Vec<f64> = holds.iter().flat_map(|h| message_delays(h, messages)).collect();
    let mut worst: Vec<&&Hold> = holds.iter().collect();
    worst.sort_by(|a, b| b.length_ms().total_cmp(&a.length_ms()).then(a.frame.cmp(&b.frame)));
    Some(Stall {
        mechanism,
        count: holds.len() as u64,
        seconds,
        seconds_upper: upper,
        share_of_time: if span_s > 0.0 { (seconds / span_s).min(1.0) } else { 0.0 },
        added_delay_ms: added::distribution(&Sample::new(delays), source_of(messages)),
        first_frame: first.frame,
        worst_frames: worst.iter().take(WORST).map(|h| h.frame).collect(),
    })
}

fn source_of(messages: &Messages<'_>) -> &'static str {
    if messages.beat.is_some() { "period" } else { "upper_bound" }
}

fn message_delays(hold: &Hold, messages: &Messages<'_>) -> Vec<f64> {
    let count = messages.in_segment(hold.end);
    match &messages.beat {
        Some(beat) => (0..count)
            .map(|i| (hold.length_ms() - f64::from(i) * beat.period_ms).max(0.0))
            .collect(),
        None => added::bounded_delays(hold, count).collect(),
    }
}

/// Added delay of every message by the time stamps in the data, and its sample.
fn in_band(
    held: &[Hold],
    messages: &Messages<'_>,
    log: Option<&Log>,
    segments: u64,
) -> Option<(AddedDelay, Sample)> {
    let values = log?.frames.in_band().delays_ms();
    let all = values.len() as u64 * 10 >= messages.total(segments) * 9;
    let sample = (!held.is_empty() && all).then(|| Sample::new(values))?;
    Some((added::distribution(&sample, "in_band"), sample))
}

/// The same by the beat of the writes, or bounded by the segments ahead.
fn estimated(held: &[Hold], messages: &Messages<'_>, segments: u64) -> (AddedDelay, Sample) {
    if held.is_empty() {
        return (AddedDelay { source: "none", ..AddedDelay::default() }, Sample::default());
    }
    let (values, total) = match &messages.beat {
        Some(beat) => (beat.delays_ms.clone(), 0),
        None => (
            held.iter().flat_map(|h| message_delays(h, messages)).collect(),
            messages.total(segments),
        ),
    };
    added::distribution_among(values, total, source_of(messages))
}

fn writes_of(messages: &Messages<'_>, held: &[Hold], segments: u64) -> Writes {
    let split = held.windows(2).filter(|w| !w[1].filled && w[1].before > w[0].release).count()
        + usize::from(held.first().is_some_and(|h| !h.filled));
    let (protocol, confidence) = match messages.unit {
        Unit::Framing(f) => (Some(f.protocol.name()), f.confidence),
        Unit::Size(_) => (None, 0.8),
        Unit::Segment => (None, 0.0),
    };
    Writes {
        message_bytes: messages.unit.bytes(),
        period_ms: messages.beat.as_ref().map(|b| b.period_ms),
        messages: (segments > 0).then(|| messages.total(segments)),
        source: messages.unit.source(),
        protocol,
        split_writes: split as u64,
        confidence,
    }
}

/// Pauses by cause; those that ended in a hold are not the application's.
fn waits_of(recorder: &Recorder, path: &Path, held: &[Hold]) -> Vec<Wait> {
    let causes =
        [WaitCause::Application, WaitCause::Window, WaitCause::Congestion, WaitCause::LossRecovery];
    let pauses = recorder.pauses(path.far_ms.unwrap_or(0.0));
    let long = held.iter().filter(|h| h.upper_ms() >= SMALL_HOLD_MS);
    let (held_count, held_s) = long.fold((0u64, 0.0), |(n, s), h| (n + 1, s + h.upper_ms() / 1e3));
    causes
        .into_iter()
        .filter_map(|cause| {
            let pause = pauses[cause as usize];
            let mut count = pause.count;
            let mut seconds = pause.nanos as f64 / 1e9;
            if cause == WaitCause::Application {
                count = count.saturating_sub(held_count);
                seconds = (seconds - held_s).max(0.0);
            }
            (count > 0).then_some(Wait { cause, count, seconds })
        })
        .collect()
}
