//! Held writes in sum: how many, by what mechanism, for how long.

use schemars::JsonSchema;
use serde::Serialize;

use crate::inferred::{AddedDelay, Delays, Hold, Inference, Mechanism, SMALL_HOLD_MS, WaitCause};
use crate::noted::Notes;
use crate::noted::event::{Event, Kind};

/// The holds of one mechanism in one direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Stall {
    /// What ended them.
    pub mechanism: Mechanism,
    /// Segments held, at most since the one before them, 10 ms or longer.
    pub count: u64,
    /// Time in which the oldest held byte waited, summed, as expected, seconds.
    pub seconds: f64,
    /// Between these it was with 95 %: all of less than 95 % left out and the writes as late as they may have been;
    /// and with all of 5 % or more, from the segment before on.
    pub seconds_lower: f64,
    /// See `seconds_lower`.
    pub seconds_upper: f64,
    /// `seconds` over the direction's duration.
    pub share_of_time: f64,
    /// Delay added to each held message.
    pub added_delay_ms: AddedDelay,
    /// First held segment.
    pub first_frame: u64,
    /// The longest held, worst first, at most 10.
    pub worst_frames: Vec<u64>,
}

/// One hold that counts as a stall.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Held {
    /// Frame of the segment that waited.
    pub frame: u64,
    /// How likely it was held for 10 ms or longer, 0 to 1.
    pub probability: f64,
    /// How long its oldest byte waited: least, expected, most, milliseconds.
    pub wait_ms: [f64; 3],
    /// What ended it.
    pub mechanism: Mechanism,
}

/// The holds of a direction as stalls.
pub(super) struct Stalls {
    /// Each that counts, in the order of release; of a direction that was too long, those of its first part.
    pub(super) each: Vec<Held>,
    /// By mechanism; empty where none was held.
    pub(super) by_mechanism: Vec<Stall>,
    /// They are counted on a sample and scaled up.
    pub(super) sampled: bool,
    /// Holds shorter than those that count.
    pub(super) small_holds: u64,
}

impl Stalls {
    pub(super) fn of(notes: &Notes<'_>, inference: &Inference) -> Self {
        let Inference { holds, maybe, messages, receiver, .. } = inference;
        let sure = inference.certainty.stalled >= 0.5;
        let (counted, apart): (Vec<&Hold>, Vec<&Hold>) =
            holds.iter().partition(|h| sure && h.counts() >= 0.5);
        let factor = scale(notes);
        let kind = |hold: &Hold| Mechanism::of(hold, receiver.timer);
        let kinds: Vec<Mechanism> = counted.iter().map(|hold| kind(hold)).collect();
        let open: Vec<&Hold> = holds.iter().filter(|h| h.counts() < 0.5).chain(maybe).collect();
        let open: Vec<&Hold> = open.into_iter().filter(|h| h.upper_ms() >= SMALL_HOLD_MS).collect();
        // What may have been held in a way in which nothing surely was, counts with the others.
        let alone = open.iter().filter(|hold| !kinds.contains(&kind(hold)));
        let alone_ms = alone.map(|hold| hold.upper_ms()).sum::<f64>();
        let hidden = hidden_ms(inference, &counted) + alone_ms;
        let stall = |mechanism: Mechanism| {
            let is_its = |h: &&Hold| kind(h) == mechanism;
            let of_kind: Vec<&Hold> = counted.iter().copied().filter(is_its).collect();
            let all = holds.iter().filter(is_its);
            let expected_ms = all.map(|h| h.expected_ms).sum::<f64>();
            let added = Delays::held(of_kind.iter().copied(), messages).added;
            let its = open.iter().copied().filter(is_its);
            let open_ms = its.map(Hold::upper_ms).sum::<f64>()
                + hidden * of_kind.len() as f64 / counted.len().max(1) as f64;
            let stall = Stall::of(mechanism, &of_kind, added, [expected_ms, open_ms])?;
            Some(stall.scaled(factor).over(notes.seconds()))
        };
        let held = |h: &&Hold| Held {
            frame: h.frame,
            probability: h.counts(),
            wait_ms: [h.least_ms, h.length_ms(), h.upper_ms()],
            mechanism: Mechanism::of(h, receiver.timer),
        };
        Self {
            each: counted.iter().map(held).collect(),
            by_mechanism: KINDS.into_iter().filter_map(stall).collect(),
            sampled: notes.sampled,
            small_holds: apart.len() as u64,
        }
    }
}

impl Stall {
    fn of(
        mechanism: Mechanism,
        holds: &[&Hold],
        added_delay_ms: AddedDelay,
        [expected_ms, open_ms]: [f64; 2],
    ) -> Option<Self> {
        let first = holds.first()?;
        let mut worst: Vec<&Hold> = holds.iter().copied().filter(|h| h.frame > 0).collect();
        let longest = |a: &&Hold, b: &&Hold| {
            b.length_ms().total_cmp(&a.length_ms()).then(a.frame.cmp(&b.frame))
        };
        if worst.len() > WORST {
            worst.select_nth_unstable_by(WORST, longest);
            worst.truncate(WORST);
        }
        worst.sort_by(longest);
        let sure = holds.iter().filter(|h| h.counts() >= SURE);
        Some(Self {
            mechanism,
            count: holds.len() as u64,
            seconds: expected_ms / 1e3,
            seconds_lower: sure.fold(0.0, |sum, h| sum + h.least_ms / 1e3),
            seconds_upper: holds.iter().fold(open_ms / 1e3, |sum, h| sum + h.upper_ms() / 1e3),
            share_of_time: 0.0,
            added_delay_ms,
            first_frame: first.frame,
            worst_frames: worst.iter().map(|h| h.frame).collect(),
        })
    }

    /// Scaled up from a sample.
    fn scaled(self, factor: f64) -> Self {
        if factor <= 1.0 {
            return self;
        }
        Self {
            count: (self.count as f64 * factor).round() as u64,
            seconds: self.seconds * factor,
            seconds_lower: self.seconds_lower * factor,
            seconds_upper: self.seconds_upper * factor,
            ..self
        }
    }

    /// As a share of the direction's duration.
    fn over(self, duration_s: f64) -> Self {
        let share = if duration_s > 0.0 { (self.seconds / duration_s).min(1.0) } else { 0.0 };
        Self { share_of_time: share, ..self }
    }
}

/// What the bounds allow for holds that the capture hides and for times that it shows elsewhere than they were: frames that
/// are missing or late hide some, one may have been under way when the capture began, writes may have been held while a loss
/// was repaired, away from the sender the way makes waits longer or shorter, and a coarse clock each.
fn hidden_ms(inference: &Inference, holds: &[&Hold]) -> f64 {
    let trips = &inference.round_trips;
    let away = trips.far_ms.is_none_or(|far| far >= AWAY_MS);
    let share = inference.damage + if away { AWAY_SHARE } else { 0.0 };
    let longest = holds.iter().map(|h| h.upper_ms()).fold(0.0, f64::max);
    let step_ms = trips.grain_ms.max(inference.clock_ms);
    let exact = share <= 0.0 && step_ms < COARSE_MS;
    // One was under way when the capture began in the middle, and nothing shows how long the next one's ACK took.
    let unseen = f64::from(u8::from(!exact)) + if trips.handshake { 0.0 } else { 2.0 };
    let repairs = inference.waits.iter().filter(|wait| wait.cause == WaitCause::LossRecovery);
    let repaired_ms = repairs.map(|wait| wait.seconds * 1e3).sum::<f64>();
    let all = holds.iter().map(|h| h.upper_ms()).sum::<f64>();
    all * share + unseen * longest + repaired_ms + step_ms * holds.len() as f64
}

/// Small segments in all for each one that is on record.
fn scale(notes: &Notes<'_>) -> f64 {
    let small = |event: &&Event| match event {
        Event::Data(data) => {
            matches!(data.kind, Kind::New | Kind::Gap) && data.len % notes.mss().max(1) != 0
        }
        Event::Ack(_) => false,
    };
    let on_record = notes.events[notes.judged..].iter().filter(small).count();
    if notes.sampled { notes.counts.small() as f64 / on_record.max(1) as f64 } else { 1.0 }
}

/// In the order of the result.
const KINDS: [Mechanism; 3] =
    [Mechanism::DelayedAckTimer, Mechanism::MssFilled, Mechanism::AckClocked];
/// What is less likely may not have been held at all.
const SURE: f64 = 0.95;
/// So far from the capture point times are no longer the sender's; what they may be off, as a share.
const AWAY_MS: f64 = 0.1;
const AWAY_SHARE: f64 = 0.04;
/// A clock with larger steps is a coarse one.
const COARSE_MS: f64 = 0.1;
/// Frames listed as worst.
const WORST: usize = 10;
