//! Which segments were held, let go by an ACK: by what explains them best.
//!
//! Two explanations of a small segment stand against each other. *Held*: it was written while something
//! small was unacknowledged, and left when the ACK came; then its gap from the ACK follows the narrow
//! law of [`release`]. *Free*: the application wrote it then; its interval from the segment before
//! follows the law of all intervals (`gaps`). A segment that left while something small was
//! unacknowledged cannot have been held, unless the capture lacks the ACK, its clock swapped the two, or
//! a stack let several go at once: so it speaks against Nagle's algorithm as strongly as the damage of the
//! capture lets it. [`states`] weighs all of them in their order. Nothing is a veto.
//!
//! ACKs that rode on data need independent proof that the write came earlier: see [`super::riding`].
//! Not looked for: holds by TCP_CORK, which end by its own 200 ms timer.

mod own_beat;
mod release;
mod states;
mod testable;

pub(super) use self::release::Release;
pub(super) use self::testable::may_answer;

use acklab_core::math;
use acklab_core::time::{Span, Time};

use super::hold::{Hold, MAYBE};
use super::replay::{Departure, Replay};
use super::{RoundTrips, Sample};
use crate::noted::Notes;

/// What explains the departures of one direction best.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// Held segments in order.
    pub(super) holds: Vec<Hold>,
    /// Those that may have been, though likelier not.
    pub(super) maybe: Vec<Hold>,
    /// Probability that each departure left with Nagle's algorithm on.
    pub(super) on: Vec<f64>,
    /// Whether a pure ACK may have let it go, and the probability that one did.
    pub(super) told: Vec<bool>,
    pub(super) held: Vec<f64>,
    /// Probability that any segment was held.
    pub(super) any: f64,
    /// Its logarithmic odds.
    gain: f64,
    /// Segments follow their ACKs, and a beat explains that as well.
    pub(super) or_beat: bool,
    /// Share of the segments that the capture lacks or has out of order.
    pub(super) damage: f64,
    /// The law of the gap from ACK to held segment.
    pub(super) release: Option<Release>,
    /// How many holds writes at random moments would feign.
    pub(super) by_chance: f64,
    /// Small segments that left while one was unacknowledged; those that a repair explains, and tails of large writes.
    pub(super) breaks: u64,
    pub(super) repairs: u64,
    pub(super) tails: u64,
}

/// The replay and the decision that explain the direction best, by where the sender may be.
pub(super) fn decide(notes: &Notes<'_>, trips: &RoundTrips) -> (Replay, Decision) {
    let here = explained(notes, trips, Span::ZERO);
    let far_ms = trips.far_ms.filter(|far| *far >= FAR_LEAST_MS);
    let Some(far_ms) = far_ms else { return here };
    let way = |ms: f64| Span::from_nanos(((ms * WAY_SHARE - ANSWER_MS).max(0.0) * 1e6) as u64);
    let there = explained(notes, trips, way(far_ms));
    let closer = here.1.release.filter(|_| here.1.gain > there.1.gain.max(0.0) + CLOSER);
    match closer {
        Some(release) => explained(notes, trips, way(release.at_ms)),
        None => there,
    }
}

fn explained(notes: &Notes<'_>, trips: &RoundTrips, way: Span) -> (Replay, Decision) {
    let replay = Replay::of(notes, way);
    let decision = Decision::of(&replay, notes.mss(), trips);
    (replay, decision)
}

impl Decision {
    /// Probability that Nagle's algorithm was on when the last segment left.
    pub(super) fn at_the_end(&self) -> f64 {
        self.on.last().copied().unwrap_or(0.5)
    }

    /// Probability that it was on, over all segments.
    pub(super) fn mostly_on(&self) -> f64 {
        let all = self.on.len().max(1) as f64;
        self.on.iter().sum::<f64>() / all
    }

    /// The round trips where releases show that the sender is far nearer than the handshake, which a busy host may answer late.
    pub(super) fn shorter(&self, trips: RoundTrips) -> RoundTrips {
        let by_releases = self.release.filter(|_| self.gain >= CLUSTERED).map(|one| one.at_ms);
        let nearer =
            |ms: &f64| trips.far_ms.is_some_and(|far| far >= FAR_LEAST_MS && 2.0 * ms < far);
        let far_ms = by_releases.filter(nearer).or(trips.far_ms);
        RoundTrips { far_ms, ..trips }
    }

    fn of(replay: &Replay, mss: u32, trips: &RoundTrips) -> Self {
        let departures = &replay.departures;
        let told = testable::testable(departures, mss, trips);
        let points: Vec<(f64, f64)> = departures
            .iter()
            .zip(&told)
            .filter(|(_, told)| **told)
            .filter_map(|(d, _)| Some((d.gap_ms()?, d.interval_ms())))
            .filter(|(gap, _)| *gap >= -replay.damage.noise_ms)
            .collect();
        let explained = |release: Option<Release>| {
            let mut case = Case::new(replay, &told, release, trips);
            for _ in 0..ROUNDS {
                let before = case.share;
                case.weigh();
                // The next round would be the same.
                if case.share.total_cmp(&before).is_eq() {
                    break;
                }
            }
            case.decision(trips)
        };
        // A beat clusters, too, and often more gaps than were let go.
        let mut best: Option<Self> = None;
        for place in Release::candidates(&points, trips) {
            let one = explained(Some(place));
            if best.as_ref().is_none_or(|best| one.gain > best.gain) {
                best = Some(one);
            }
            if best.as_ref().is_some_and(|best| best.gain >= CLUSTERED) {
                break;
            }
        }
        best.unwrap_or_else(|| explained(None))
    }
}

/// The departures of a direction, weighed.
struct Case<'r> {
    replay: &'r Replay,
    told: &'r [bool],
    release: Option<Release>,
    /// Density of each departure as a free write, and as a held one.
    free: Vec<f64>,
    held: Vec<f64>,
    /// Probability that a segment breaks the rule, with Nagle's algorithm on.
    excused: Vec<f64>,
    /// The same, off.
    broke: f64,
    /// Share of held ones among those that may be.
    share: f64,
    on: Vec<f64>,
}

impl<'r> Case<'r> {
    fn new(
        replay: &'r Replay,
        told: &'r [bool],
        release: Option<Release>,
        trips: &RoundTrips,
    ) -> Self {
        let departures = &replay.departures;
        let held = |(d, told): (&Departure, &bool)| match (release, d.gap_ms()) {
            (Some(release), Some(gap)) if *told && gap >= -replay.damage.noise_ms => {
                release.density(gap)
            }
            _ => 0.0,
        };
        let broke = departures.iter().filter(|d| d.marks.broke).count();
        let near = |d: &&Departure| {
            release.is_some_and(|release| d.gap_ms().is_some_and(|gap| release.is_near(gap)))
        };
        let all = departures.iter().zip(told).filter(|(_, told)| **told).map(|(d, _)| d);
        let at_ack = all.clone().filter(near).count() as f64;
        let broke = (broke as f64 + 1.0) / (departures.len() as f64 + 2.0);
        let mut excused = excuses(replay, trips);
        // A tail says nothing.
        let tails = excused.iter_mut().zip(departures).filter(|(_, d)| d.marks.tail);
        tails.for_each(|(excused, _)| *excused = excused.max(broke));
        Self {
            replay,
            told,
            release,
            free: free_densities(departures, told, release),
            held: departures.iter().zip(told).map(held).collect(),
            excused,
            broke,
            share: ((at_ack + 1.0) / (all.count() as f64 + 2.0)).clamp(SHARES[0], SHARES[1]),
            on: vec![0.5; departures.len()],
        }
    }

    /// Density of a departure with Nagle's algorithm on, free or held.
    fn parts(&self, i: usize) -> (f64, f64) {
        let d = &self.replay.departures[i];
        let held = self.share * self.held[i];
        if d.marks.broke {
            return (self.excused[i] * self.free[i], held);
        }
        if self.told[i] { ((1.0 - self.share) * self.free[i], held) } else { (self.free[i], 0.0) }
    }

    fn weigh(&mut self) {
        let ratio = |i: usize| {
            let (free, held) = self.parts(i);
            let off = if self.replay.departures[i].marks.broke {
                self.broke * self.free[i]
            } else {
                (1.0 - self.broke) * self.free[i]
            };
            (free + held) / off
        };
        self.on = states::smoothed((0..self.on.len()).map(ratio).collect());
        let (mut held, mut all) = (1.0, 2.0);
        for i in 0..self.on.len() {
            if self.told[i] && !self.replay.departures[i].marks.broke {
                held += self.held_probability(i);
                all += self.on[i];
            }
        }
        self.share = (held / all).clamp(SHARES[0], SHARES[1]);
    }

    fn held_probability(&self, i: usize) -> f64 {
        let (free, held) = self.parts(i);
        if held > 0.0 { self.on[i] * held / (free + held) } else { 0.0 }
    }

    /// Logarithm of how much better the departures are explained with holds than without.
    fn for_holds(&self) -> f64 {
        let of = |i: usize| {
            let (free, held) = self.parts(i);
            let gain = math::ln((free + held) / self.free[i]);
            let told = self.told[i] && !self.replay.departures[i].marks.broke;
            if told { self.on[i] * gain.min(6.0) } else { 0.0 }
        };
        (0..self.on.len()).map(of).sum()
    }

    /// The same of holds against an application's own beat.
    fn against_beat(&self, trips: &RoundTrips) -> f64 {
        let Some(release) = &self.release else { return 0.0 };
        let departures = &self.replay.departures;
        let told = |i: &usize| self.told[*i];
        let (held, others): (Vec<usize>, Vec<usize>) =
            (0..departures.len()).filter(told).partition(|i| self.held_probability(*i) >= 0.5);
        // What left shortly after the others is on the beat, too, if there is one.
        let late = |i: &usize| departures[*i].gap_ms().map_or(f64::INFINITY, |g| g - release.at_ms);
        let near = others.into_iter().filter(|i| (0.0..NEAR_MS).contains(&late(i)));
        let these = |all: Vec<usize>| all.into_iter().map(|i| &departures[i]).collect();
        let (held, near): (Vec<&Departure>, Vec<&Departure>) = (these(held), these(near.collect()));
        let clustered = if own_beat::share(&held, &near) {
            let mut both: Vec<&Departure> = held.into_iter().chain(near).collect();
            both.sort_by_key(|d| (d.time, d.frame));
            both
        } else {
            held
        };
        let at_ack = |i: &usize| {
            let d = &departures[*i];
            !d.marks.broke && d.gap_ms().is_some_and(|gap| release.is_near(gap))
        };
        let apart = (0..departures.len()).filter(|i| self.held_probability(*i) < 0.5 && !at_ack(i));
        let apart: Vec<f64> = apart.map(|i| departures[i].interval_ms()).collect();
        own_beat::against(&clustered, &apart, self.replay, release, trips)
    }

    /// Whether it may have been held, though it left too late after the ACK for a host that is not busy, or while a loss was
    /// repaired: it left far sooner than chance has it.
    fn is_open(&self, i: usize, any: f64, trips: &RoundTrips) -> bool {
        let d = &self.replay.departures[i];
        let marks = d.marks;
        let by_ack = marks.pure && !marks.broke && !marks.window && !marks.gap;
        let answer = testable::may_answer(d, trips);
        let late = |release: Release| {
            let soon = 4.0 * release.spread_ms + BUSY_MS + 0.1 * release.at_ms;
            let gap = d.gap_ms().unwrap_or(f64::INFINITY) - release.at_ms;
            gap.abs() <= soon.min(0.25 * d.interval_ms())
        };
        let may = by_ack && !answer && any >= 0.5 && self.on[i] >= 0.5;
        may && self.release.is_some_and(late)
    }

    fn decision(self, trips: &RoundTrips) -> Decision {
        let departures = &self.replay.departures;
        let (for_holds, against_beat) = (self.for_holds() - COST, self.against_beat(trips));
        let gain = for_holds.min(against_beat);
        let any = 1.0 / (1.0 + math::exp(-gain));
        let held: Vec<f64> =
            (0..departures.len()).map(|i| self.held_probability(i) * any).collect();
        let likely =
            |i: usize| if self.is_open(i, any, trips) { held[i].max(MAYBE) } else { held[i] };
        let all = (0..departures.len()).map(|i| (&departures[i], likely(i)));
        let all = all.filter(|(_, p)| *p >= MAYBE);
        let all = all.filter_map(|(d, p)| Hold::released(d, trips, p));
        let (holds, maybe) = all.partition(|hold| hold.probability >= 0.5);
        let width = self.release.map_or(0.0, |r| 4.0 * r.spread_ms);
        let chance = |i: usize| if self.told[i] { width * self.free[i] } else { 0.0 };
        let count = |of: fn(&Departure) -> bool| departures.iter().filter(|d| of(d)).count() as u64;
        let repairs = count(|d| d.marks.broke && d.marks.recovery);
        let tails = count(|d| d.marks.tail && !d.marks.recovery);
        let broke = count(|d| d.marks.broke);
        Decision {
            holds,
            maybe,
            by_chance: (0..departures.len()).map(chance).sum(),
            any,
            gain,
            or_beat: for_holds >= CLUSTERED && gain < 0.0,
            damage: self.replay.damage.missing + self.replay.damage.late,
            release: self.release,
            breaks: broke - repairs - tails,
            repairs,
            tails,
            on: self.on,
            told: self.told.to_vec(),
            held,
        }
    }
}

/// How likely each interval is where nothing holds a segment back, per millisecond: it may be anything, and
/// what it is where segments did not leave with an ACK.
fn free_densities(departures: &[Departure], told: &[bool], release: Option<Release>) -> Vec<f64> {
    let with_ack = |d: &Departure| {
        let near = |r: Release| d.gap_ms().is_some_and(|gap| r.is_near(gap));
        !d.marks.broke && release.is_some_and(near)
    };
    let apart = departures.iter().zip(told).filter(|(d, told)| !(**told && with_ack(d)));
    let apart = Sample::new(apart.map(|(d, _)| d.interval_ms()).collect());
    let all = departures.len().max(1) as f64;
    let density = |d: &Departure| {
        let interval = d.interval_ms();
        let alike = apart.count_between(interval - REACH_MS, interval + REACH_MS) as f64;
        1.0 / (interval + 1.0) + alike / (all * 2.0 * REACH_MS)
    };
    departures.iter().map(density).collect()
}

/// How likely a segment breaks Nagle's rule although it is on: by a repair or a loss probe, behind others
/// that an ACK let go together, or only in the eyes of a capture that lacks frames.
fn excuses(replay: &Replay, trips: &RoundTrips) -> Vec<f64> {
    // What was put back stands a tick too early or too late.
    let missing = if trips.unseen_data { 0.5 } else { 2.0 * replay.damage.missing };
    let mut released: Option<Time> = None;
    let mut excuses = Vec::with_capacity(replay.departures.len());
    for d in &replay.departures {
        let behind = released.is_some_and(|at| d.time.since(at) < BEHIND);
        excuses.push(match d.marks.recovery || is_probe(d, trips) {
            true => REPAIR,
            false if behind => TOGETHER,
            false if outruns_acks(d, trips) => STRAY,
            false => STRAY.max(missing).min(0.5),
        });
        if !d.marks.broke {
            released = Some(d.time).filter(|_| d.marks.pure);
        } else if behind {
            released = Some(d.time);
        }
    }
    excuses
}

/// Whether the sender had been silent for as long as its loss probe's timer takes.
pub(super) fn is_probe(d: &Departure, trips: &RoundTrips) -> bool {
    d.silence as f64 / 1e6 >= probe_ms(trips)
}

/// The least time that a loss probe of a lone segment takes, milliseconds.
pub(super) fn probe_ms(trips: &RoundTrips) -> f64 {
    let round_trip = trips.near_ms.unwrap_or(0.0) + trips.far_ms.unwrap_or(0.0);
    (2.0 * round_trip).max(PROBE_LEAST_MS)
}

/// Whether it broke the rule sooner than any ACK can come: it waited for none, whatever the capture lacks.
pub(super) fn outruns_acks(d: &Departure, trips: &RoundTrips) -> bool {
    let round_trip = trips.near_ms.zip(trips.far_ms).map(|(near, far)| near + far);
    d.marks.broke && !d.marks.tail && round_trip.is_some_and(|ms| d.interval_ms() < 0.5 * ms)
}

/// A busy host reacts so late.
const BUSY_MS: f64 = 10.0;
/// Rounds in which the share of held segments settles.
const ROUNDS: usize = 4;
/// Neither none of them nor all.
const SHARES: [f64; 2] = [0.01, 0.97];
/// Choosing a place and a spread for the release costs so much evidence.
const COST: f64 = 3.0;
/// Nearer senders are as good as captured at.
const FAR_LEAST_MS: f64 = 4.0;
/// A beat that is as long as the wait for an ACK strays by no more.
const NEAR_MS: f64 = 10.0;
/// So much evidence shows that segments follow their ACKs, whatever makes them.
const CLUSTERED: f64 = 5.0;
/// Intervals so close are of one kind.
const REACH_MS: f64 = 2.0;
/// Another place of the sender than the handshake's must explain so much more.
const CLOSER: f64 = 3.0;
/// Share of the way that an ACK stays on it: the handshake may have been slower than the path.
const WAY_SHARE: f64 = 0.9;
/// Hosts answer a handshake up to this much slower than an ACK.
const ANSWER_MS: f64 = 1.0;
/// No probe of a lone segment comes sooner: the largest ACK delay that RFC 8985 section 7.2 allows
/// for, 200 ms as in Linux (TCP_RTO_MIN), less a jiffy.
const PROBE_LEAST_MS: f64 = 190.0;
/// A loss probe sends new data whatever Nagle's rule says (RFC 8985 section 7.3).
const REPAIR: f64 = 0.5;
/// Stacks that judge once per write, or push all but the last of a queue, let several go together.
const TOGETHER: f64 = 0.2;
/// Within so long.
const BEHIND: Span = Span::from_micros(500);
/// The odd frame that was not captured.
const STRAY: f64 = 0.003;
