//! A conversation as it can be played: each write of both ends with what it waited for.
//!
//! Times are those at the end that writes: a capture elsewhere sees data later by the way from there, and the
//! peer's data earlier by the same way. The two ways of a half of the path count as alike.
//!
//! A program either keeps its own times, or answers: then what it writes after data of the peer follows
//! that data, and moves with it. One that polls does both: it waits for its time and for the answer. Which of
//! these is judged by end ([`Turns`]).

use acklab_core::time::{Span, Time};
use acklab_stats::Ecdf;
use acklab_trace::diagnosis::Written;

use super::messages::{is_new, message_ends, takes_turns};

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// This time since the conversation began, and so many bytes of the peer.
    At { at: Span, bytes: u64 },
    /// So many bytes of the peer, and the program's own time after them.
    Heard { bytes: u64, think: Span },
    /// The write before, and the program's own time after it.
    Behind(Span),
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) trigger: Trigger,
    pub(super) bytes: u32,
    /// It is the last of its message.
    pub(super) ends: bool,
}

/// Where within their bounds the held writes are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Earliest,
    Likely,
    Latest,
}

impl Place {
    const fn of(self, write: &Written) -> Time {
        match self {
            Self::Earliest => write.earliest,
            Self::Likely => write.at,
            Self::Latest => write.latest,
        }
    }
}

/// The writes of one end, and whether they answer the peer's.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    pub(super) answers: bool,
}

impl Script {
    /// The writes of `own`, with what came from `peer`; `origin` is the conversation's beginning at the capture
    /// point and `way` half the round trip from there to the end that writes.
    pub(super) fn of(
        own: &[Written],
        peer: &[Written],
        way: Span,
        origin: Time,
        place: Place,
    ) -> Self {
        let heard = Heard::of(own, peer, way);
        let Turns { taken, answers } = Turns::of(own, &heard);
        let ends = heard.message_ends(own);
        let mut steps = Vec::with_capacity(own.len());
        for (i, write) in own.iter().enumerate() {
            let at = place.of(write);
            let since_origin = (at + MARGIN).since(origin + way);
            let before = i.checked_sub(1).filter(|_| taken);
            let bytes = heard.bytes[i];
            let trigger = match (is_new(&heard.bytes, i), before) {
                (true, _) if answers => {
                    Trigger::Heard { bytes, think: at.since(heard.last[i] + way + way) }
                }
                (true, _) if taken => Trigger::At { at: since_origin, bytes },
                (_, Some(before)) => Trigger::Behind(at.since(place.of(&own[before]))),
                _ => Trigger::At { at: since_origin, bytes: 0 },
            };
            steps.push(Step { trigger, bytes: write.bytes, ends: ends[i] });
        }
        Self { steps, answers }
    }

    /// The same with each message as one write, written when the last of it was; `None` where each is one already.
    pub(super) fn in_one_piece(&self) -> Option<Self> {
        let mut steps: Vec<Step> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let Some(part) = steps.last_mut().filter(|part| !part.ends) else {
                steps.push(*step);
                continue;
            };
            part.bytes += step.bytes;
            part.ends = step.ends;
            part.trigger = match (part.trigger, step.trigger) {
                (Trigger::At { at, bytes }, Trigger::Behind(gap)) => {
                    Trigger::At { at: at + gap, bytes }
                }
                (Trigger::Heard { bytes, think }, Trigger::Behind(gap)) => {
                    Trigger::Heard { bytes, think: think + gap }
                }
                (Trigger::Behind(sum), Trigger::Behind(gap)) => Trigger::Behind(sum + gap),
                (_, last) => last,
            };
        }
        (steps.len() < self.steps.len()).then_some(Self { steps, answers: self.answers })
    }
}

/// What an end had of its peer at each of its writes.
pub(super) struct Heard {
    bytes: Vec<u64>,
    /// When the last of it passed the capture point.
    last: Vec<Time>,
}

impl Heard {
    /// `way` is half the round trip from the capture point to the end that writes.
    pub(super) fn of(own: &[Written], peer: &[Written], way: Span) -> Self {
        let (mut next, mut bytes, mut last) = (0, 0, Time::ZERO);
        let mut all = Self { bytes: Vec::new(), last: Vec::new() };
        for write in own {
            // Seen from the capture point the write is late by the way, and what the end had heard early.
            let had =
                |its: &&Written| its.left <= write.at && its.left + way + way <= write.at + GRACE;
            while let Some(its) = peer.get(next).filter(had) {
                bytes += u64::from(its.bytes);
                last = its.left;
                next += 1;
            }
            all.bytes.push(bytes);
            all.last.push(last);
        }
        all
    }

    /// Which of the writes end a message.
    pub(super) fn message_ends(&self, own: &[Written]) -> Vec<bool> {
        message_ends(&times(own), &self.bytes)
    }
}

fn times(own: &[Written]) -> Vec<Time> {
    own.iter().map(|write| write.at).collect()
}

/// How an end's writes relate to its peer's data.
struct Turns {
    /// It is silent most of the time until data of its peer comes.
    taken: bool,
    /// The same, and its times follow that data more closely than a beat.
    answers: bool,
}

impl Turns {
    fn of(own: &[Written], heard: &Heard) -> Self {
        let (mut thinks, mut gaps) = (Vec::new(), Vec::new());
        let mut began: Option<Time> = None;
        for (i, write) in own.iter().enumerate().filter(|(i, _)| is_new(&heard.bytes, *i)) {
            thinks.push(write.at.since(heard.last[i]).as_millis_f64());
            gaps.extend(began.map(|began| write.at.since(began).as_millis_f64()));
            began = Some(write.at);
        }
        let taken = takes_turns(&times(own), &heard.bytes);
        let beat = spread(gaps).is_some_and(|gaps| spread(thinks).is_some_and(|t| gaps < BEAT * t));
        Self { taken, answers: taken && !beat }
    }
}

/// Between the quartiles.
fn spread(values: Vec<f64>) -> Option<f64> {
    let values = Ecdf::from_samples(values).filter(|values| values.sorted().len() >= FEW)?;
    Some(values.quantile(0.75) - values.quantile(0.25))
}

/// Times of the first write are counted from this long before it, so that none is negative.
const MARGIN: Span = Span::from_secs(1);
/// An answer may seem to come sooner than what it answers by so much, as the ways are known no better.
const GRACE: Span = Span::from_millis(1);
/// A beat's intervals vary so much less than the times after the peer's data.
const BEAT: f64 = 0.5;
/// Fewer have no spread.
const FEW: usize = 4;
