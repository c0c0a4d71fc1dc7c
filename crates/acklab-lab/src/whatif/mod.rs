//! What if: a conversation out of a capture, played in virtual time as it was and with a change.
//!
//! The diagnosis says when each message was written, how the sender holds small segments and how the receiver
//! acknowledges; the simulator plays that. How far the first play is from the capture says how much the second
//! is worth; how far the inference is uncertain about the writes becomes the prediction's interval.

mod change;
mod conversation;
mod cure;
mod messages;
mod open;
mod player;
mod replay;
mod result;
mod text;

pub use change::Change;
pub use cure::cure;
pub use messages::message_ends;
pub use result::{Interval, Predicted, Range, Remedy, Replay, SCHEMA, Segments, Sum, WhatIf};

use acklab_core::time::Span;
use acklab_stats::{Ecdf, two_sample_ks};
use acklab_trace::diagnosis::{Diagnosis, Direction, Flow, NagleState, Written};
use thiserror::Error;

use self::conversation::Place;
use self::open::Open;
use self::replay::{Play, Played, Receiver};

/// Why nothing is predicted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("there is no connection with data{}", .0.map(|n| format!(" numbered {n}")).unwrap_or_default())]
    NoFlow(Option<u64>),
    #[error("connection {flow}, {from} to {to}: {why}")]
    CannotTell { flow: u64, from: String, to: String, why: String },
    #[error("--set {set}: {why}")]
    Change { set: String, why: String },
}

/// What `changes`, or without any the usual remedies, would do to the direction of the flow (or of the whole
/// capture) that was held longest. The diagnosis is one that was made by [`acklab_trace::explain`].
pub fn ask(
    diagnosis: &Diagnosis,
    flow: Option<u64>,
    changes: &[Change],
) -> Result<WhatIf, Refusal> {
    let mut subject = Subject::of(diagnosis, flow)?;
    subject.check(changes)?;
    let measured = subject.build(subject.writes, Place::Likely)?.messages(subject.writes[0]);
    subject.find_receiver(&measured)?;
    let was = subject.play(&[], Place::Likely)?;
    let mut remedies = Vec::new();
    let chosen = if changes.is_empty() {
        remedies = subject.remedies(&was)?;
        remedies.first().map(|(changes, _)| changes.clone()).unwrap_or_default()
    } else {
        changes.to_vec()
    };
    let predicted = subject.predicted(&chosen, &was)?;
    let own = subject.own;
    Ok(WhatIf {
        schema: SCHEMA,
        flow: subject.flow.id,
        from: own.from.clone(),
        to: own.to.clone(),
        set: chosen.iter().map(Change::to_string).collect(),
        rtt_ms: subject.build(subject.writes, Place::Likely)?.rtt().as_millis_f64(),
        first_s: subject.first_s(),
        assumed: subject.assumed()?,
        replay: Replay {
            delay: Sum::of(&was.delays_ms),
            ks: two_sample_ks(measured.clone(), was.delays_ms.clone()).unwrap_or(0.0),
            segments: Segments {
                captured: if subject.is_cut() {
                    segments(subject.writes[0], false)
                } else {
                    own.segments
                },
                captured_held: segments(subject.writes[0], true),
                replayed: was.segments,
                replayed_held: was.held,
            },
        },
        measured: Sum::of(&measured),
        predicted,
        remedies: remedies.into_iter().map(|(_, remedy)| remedy).collect(),
    })
}

/// How many segments took the writes away; of the held ones alone, if asked for.
fn segments(writes: &[Written], held: bool) -> u64 {
    let mut left: Vec<_> = writes.iter().filter(|w| w.held || !held).map(|w| w.left).collect();
    left.dedup();
    left.len() as u64
}

/// How far two distributions are apart on average, milliseconds (Wasserstein's first distance). One that is late by a
/// millisecond throughout is near, though no value is the same (its Kolmogorov-Smirnov distance is 1).
fn apart_ms(some: &[f64], others: &[f64]) -> f64 {
    let of = |values: &[f64]| Ecdf::from_samples(values.to_vec());
    let Some((some, others)) = of(some).zip(of(others)) else { return f64::INFINITY };
    let shares = (0..QUANTILES).map(|i| (f64::from(i) + 0.5) / f64::from(QUANTILES));
    let apart = shares.map(|share| (some.quantile(share) - others.quantile(share)).abs());
    apart.sum::<f64>() / f64::from(QUANTILES)
}

/// The writes of both directions until one of those ends of which the diagnosis kept the first ones only.
fn together<'d>(own: &'d Direction, peer: &'d Direction) -> [&'d [Written]; 2] {
    let both = [own, peer];
    let last = |d: &&Direction| d.script.last().map(|write| write.left);
    let end = both.iter().filter(|d| d.script_cut).filter_map(last).min();
    both.map(|d| {
        let until = |end| d.script.partition_point(|write| write.left <= end);
        &d.script[..end.map_or(d.script.len(), until)]
    })
}

/// The direction under question.
struct Subject<'d> {
    flow: &'d Flow,
    own: &'d Direction,
    peer: &'d Direction,
    /// What is played of both.
    writes: [&'d [Written]; 2],
    connects: bool,
    /// What explains the delays best, and what does nearly as well.
    receiver: Option<Receiver>,
    others: Vec<Receiver>,
}

impl<'d> Subject<'d> {
    fn of(diagnosis: &'d Diagnosis, flow: Option<u64>) -> Result<Self, Refusal> {
        let flows = diagnosis.flows.iter().filter(|one| flow.is_none_or(|id| one.id == id));
        let pairs = flows.flat_map(|flow| (0..flow.directions.len()).map(move |i| (flow, i)));
        let held = |(flow, i): &(&Flow, usize)| flow.directions[*i].stalled_s();
        let of = |(flow, i): (&'d Flow, usize)| {
            let (own, peer) = (flow.directions.get(i)?, flow.directions.get(1 - i)?);
            let writes = together(own, peer);
            let (receiver, others) = (None, Vec::new());
            Some(Self { flow, own, peer, writes, connects: i == 0, receiver, others })
        };
        // Of equals the one that says more, and the first.
        let said = |(flow, i): &(&Flow, usize)| flow.directions[*i].segments;
        let is_more = |next: &(&Flow, usize), best: &(&Flow, usize)| {
            held(next).total_cmp(&held(best)).then(said(next).cmp(&said(best))).is_gt()
        };
        let best = pairs.reduce(|best, next| if is_more(&next, &best) { next } else { best });
        best.and_then(of).ok_or(Refusal::NoFlow(flow))
    }

    /// Refuses where the explanation does not carry a prediction of these changes; without any, of a remedy.
    fn check(&self, changes: &[Change]) -> Result<(), Refusal> {
        let own = self.own;
        if let Some(lack) = own.lacks.filter(|_| own.stalled_probability < 0.5) {
            return Err(self.cannot(format!(
                "the capture cannot tell whether writes were held, so there is nothing to predict from; what would \
                 decide it: {}",
                lack.remedy()
            )));
        }
        let unknown = |(d, writes): (&Direction, &[Written])| d.segments > 0 && writes.is_empty();
        if unknown((own, self.writes[0])) || !self.is_cut() && unknown((self.peer, self.writes[1]))
        {
            return Err(self.cannot(
                "it is too long, or mostly a bulk transfer: not each of its packets was kept; cut the part in question \
                 out of the capture"
                    .into(),
            ));
        }
        if own.nagle.is_lockstep() {
            return Err(self.cannot(
                "it has one segment under way at a time, which is not Nagle's algorithm and is not played".into(),
            ));
        }
        if changes.is_empty() && !self.is_held() {
            return Err(self.cannot(
                "nothing shows that Nagle's algorithm held its writes, so no remedy has anything to save".into(),
            ));
        }
        Ok(())
    }

    /// Whether Nagle's algorithm is seen to hold writes.
    fn is_held(&self) -> bool {
        matches!(self.own.nagle.state, NagleState::On)
            && self.own.holds() + self.own.small_holds > 0
    }

    /// Whether only the beginning is played.
    fn is_cut(&self) -> bool {
        self.own.script_cut || self.peer.script_cut
    }

    /// How much of the conversation is played, if not all of it.
    fn first_s(&self) -> Option<f64> {
        let begin = self.writes.iter().filter_map(|writes| writes.first()).map(|one| one.at).min();
        let end = self.writes.iter().filter_map(|writes| writes.last()).map(|one| one.left).max();
        begin.zip(end).filter(|_| self.is_cut()).map(|(begin, end)| end.since(begin).as_secs_f64())
    }

    fn cannot(&self, why: String) -> Refusal {
        let (from, to) = (self.own.from.clone(), self.own.to.clone());
        Refusal::CannotTell { flow: self.flow.id, from, to, why }
    }

    fn build(&self, writes: [&[Written]; 2], place: Place) -> Result<Play, Refusal> {
        Play::of([self.own, self.peer], writes, self.connects, place).ok_or_else(|| {
            self.cannot("its round trip is not known; capture it from its beginning".into())
        })
    }

    fn play(&self, changes: &[Change], place: Place) -> Result<Played, Refusal> {
        self.run(&self.likely(place)?, changes)
    }

    /// As it was, to the receiver that explains it best.
    fn likely(&self, place: Place) -> Result<Play, Refusal> {
        let mut play = self.build(self.writes, place)?;
        if let Some(receiver) = &self.receiver {
            play.receive_by(receiver);
        }
        Ok(play)
    }

    /// Another conversation that the capture may show as well, with `changes`.
    fn play_other(&self, open: &Open<'_>, changes: &[Change]) -> Result<Played, Refusal> {
        let [own, peer] = self.writes;
        let mut play = match open {
            Open::Place(place) => self.build([own, peer], *place)?,
            Open::Twice(own) => self.build([own, peer], Place::Likely)?,
            Open::Receiver(_) | Open::NoNagle => self.build([own, peer], Place::Likely)?,
        };
        let other = if let Open::Receiver(other) = open { Some(*other) } else { None };
        if let Some(receiver) = other.or(self.receiver.as_ref()) {
            play.receive_by(receiver);
        }
        let mut changes = changes.to_vec();
        if matches!(open, Open::NoNagle) {
            changes.push(Change::NoDelay(true));
        }
        self.run(&play, &changes)
    }

    /// Plays it with `changes`.
    fn run(&self, play: &Play, changes: &[Change]) -> Result<Played, Refusal> {
        let plays = self.runs(play, changes)?;
        let count = plays.len();
        let mut all = Played::default();
        for played in plays {
            all.add(played);
        }
        Ok(all.mean_of(count))
    }

    /// Each play with `changes`. No path keeps the round trip that is set to the microsecond: several are played, a little
    /// shorter and longer, as a beat would else keep step with it.
    fn runs(&self, play: &Play, changes: &[Change]) -> Result<Vec<Played>, Refusal> {
        let longer = |change: Change, part: usize| match change {
            Change::Rtt(rtt) => {
                Change::Rtt(rtt.saturating_sub(rtt / APART) + rtt / APART * part as u64)
            }
            other => other,
        };
        let rtts = if changes.iter().any(|one| matches!(one, Change::Rtt(_))) { RTTS } else { 1 };
        let mut plays = Vec::with_capacity(rtts);
        for part in 0..rtts {
            let mut play = play.clone();
            for change in changes {
                play.change(longer(*change, part))
                    .map_err(|why| Refusal::Change { set: change.to_string(), why: why.into() })?;
            }
            plays.push(play.run());
        }
        let unsent: u64 = plays.iter().map(|played| played.unsent).sum();
        if unsent > 0 {
            return Err(self.cannot(format!("played again, {unsent} of its writes never leave")));
        }
        Ok(plays)
    }

    /// Of all that the receiver may be, keeps what brings the replay nearest to the capture; of about equals the
    /// likelier.
    fn find_receiver(&mut self, measured: &[f64]) -> Result<(), Refusal> {
        let mut tried: Vec<(f64, Receiver)> = Vec::new();
        let mut chosen = 0;
        let near = NEAR_MS.max(NEAR_SHARE * Sum::of(measured).mean_ms);
        for receiver in replay::receivers(&self.own.receiver_policy) {
            self.receiver = Some(receiver.clone());
            let apart = apart_ms(measured, &self.play(&[], Place::Likely)?.delays_ms);
            tried.push((apart, receiver));
            if apart + near < tried[chosen].0 {
                chosen = tried.len() - 1;
            }
        }
        self.receiver = None;
        let late = tried.get(chosen).and_then(|(_, one)| self.late(one, measured));
        if let Some((apart, late)) = late
            && apart + near < tried[chosen].0
        {
            tried.push((apart, late));
            chosen = tried.len() - 1;
        }
        if !tried.is_empty() {
            let (best, receiver) = tried.remove(chosen);
            self.receiver = Some(receiver);
            let near = tried.into_iter().filter(|(apart, _)| *apart <= best + near);
            self.others = near.map(|(_, receiver)| receiver).collect();
        }
        Ok(())
    }

    /// The same receiver with its timer as late as the holds show, and how far it is from the capture then.
    fn late(&self, receiver: &Receiver, measured: &[f64]) -> Option<(f64, Receiver)> {
        let mut play = self.build(self.writes, Place::Likely).ok()?;
        play.receive_by(receiver);
        let held = |delays: &[f64]| {
            let held = delays.iter().copied().filter(|ms| *ms > HELD_MS);
            Some(Ecdf::from_samples(held.collect())?.quantile(0.5))
        };
        let late_ms = held(measured)? - held(&self.run(&play, &[]).ok()?.delays_ms)?;
        let late = receiver.later(Span::from_secs_f64(late_ms.max(0.0) / 1e3))?;
        play.receive_by(&late);
        let played = self.run(&play, &[]).ok()?;
        Some((apart_ms(measured, &played.delays_ms), late))
    }

    fn assumed(&self) -> Result<Vec<String>, Refusal> {
        let play = self.build(self.writes, Place::Likely)?;
        let ends = [&self.own.from, &self.own.to]
            .into_iter()
            .zip(play.answers())
            .zip([self.own, self.peer]);
        let mut assumed: Vec<String> = ends
            .filter(|(_, d)| d.segments > 0)
            .map(|((end, answers), _)| {
                if answers {
                    format!("{end} answers: what it writes follows what it gets, and moves with it")
                } else {
                    format!("{end} keeps its own times: its writes stay where they were")
                }
            })
            .collect();
        if let Some(receiver) = &self.receiver {
            assumed.push(format!("{} acknowledges {}", self.own.to, receiver.name));
        }
        if self.own.nagle.state == NagleState::Unknown {
            assumed.push(format!(
                "Nagle's algorithm is on at {}, as systems have it; the capture does not show it",
                self.own.from
            ));
        }
        if self.own.retransmissions + self.peer.retransmissions > 0 {
            assumed.push("nothing is lost; in the capture segments were sent again".into());
        }
        Ok(assumed)
    }

    /// The usual remedies that can be made, the one that saves most first.
    fn remedies(&self, was: &Played) -> Result<Vec<(Vec<Change>, Remedy)>, Refusal> {
        let mut found = Vec::new();
        for change in Change::USUAL {
            let played = match self.play(&[change], Place::Likely) {
                Err(Refusal::Change { .. }) => continue,
                other => other?,
            };
            let delay = Sum::of(&played.delays_ms);
            let saved_s = (Sum::of(&was.delays_ms).seconds - delay.seconds).max(0.0);
            found.push((vec![change], Remedy { set: change.to_string(), delay, saved_s }));
        }
        // Of equals the first, which asks least of the program.
        found.sort_by(|a, b| b.1.saved_s.total_cmp(&a.1.saved_s));
        Ok(found)
    }

    fn predicted(&self, changes: &[Change], was: &Played) -> Result<Predicted, Refusal> {
        let play = self.likely(Place::Likely)?;
        let likely = Sum::of(&self.run(&play, changes)?.delays_ms);
        let mut sums = vec![likely];
        sums.extend(self.runs(&play, changes)?.iter().map(|played| Sum::of(&played.delays_ms)));
        for open in Open::of(self.own, self.writes[0], &self.others) {
            sums.push(Sum::of(&self.play_other(&open, changes)?.delays_ms));
        }
        Ok(Predicted {
            delay: likely,
            interval: Interval::of(&sums),
            saved_s: Sum::of(&was.delays_ms).seconds - likely.seconds,
        })
    }
}

/// So many round trips, around the one that is set, each longer by such a part of it.
const RTTS: usize = 3;
const APART: u64 = 400;
/// Another receiver must bring the replay so much nearer to the capture: milliseconds, and the same as a share of the mean.
const NEAR_MS: f64 = 0.2;
const NEAR_SHARE: f64 = 0.02;
/// Messages that waited less are no holds.
const HELD_MS: f64 = 1.0;
/// Distributions are compared at so many quantiles.
const QUANTILES: u32 = 40;
