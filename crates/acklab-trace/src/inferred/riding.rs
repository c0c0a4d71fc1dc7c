//! Holds released by an ACK that rode on data, or that data of the peer followed.
//!
//! A program that answers whatever comes looks just like a held segment that a piggybacked ACK lets
//! go. What tells them apart is independent proof that the write did not wait for that data:
//!
//! - the same kind of segment (by its length) is let go by pure ACKs elsewhere, to which nothing is an answer;
//! - what leaves with the ACK gathered while it waited: it carries two messages or more, and what leaves
//!   at other times, or left first, carries one; but not where its bytes keep a ratio to those that came, as echoes do;
//! - the writes keep a beat of their own ([`super::writes::Beat`]), and the first of them was due well before
//!   the release;
//! - data that comes while nothing is unacknowledged, which lets nothing go, is not answered as promptly;
//! - where each request has one answer, what leaves with the ACK leaves another answer owing;
//! - captured at the sender, what leaves with the ACK leaves as soon as the kernel answered the handshake, by itself: a program
//!   has to be woken first.

use super::hold::MAYBE;
use super::holds::{Decision, Release, may_answer};
use super::replay::{Departure, Replay};
use super::writes::gcd;
use super::{Hold, Messages, RoundTrips};

/// The holds of this kind, and those that may be.
pub(super) fn find(
    replay: &Replay,
    decision: &Decision,
    trips: &RoundTrips,
    messages: &Messages,
) -> Vec<Hold> {
    let all = &replay.departures;
    let rides = |d: &Departure| {
        let kept = d.marks.recovery || d.marks.window || d.marks.broke || d.marks.gap;
        (!d.marks.pure || may_answer(d, trips)) && !kept && d.ack.is_some()
    };
    let riding: Vec<usize> = (0..all.len()).filter(|i| rides(&all[*i])).collect();
    if riding.is_empty() {
        return Vec::new();
    }
    let points = || riding.iter().filter_map(|i| Some((all[*i].gap_ms()?, all[*i].interval_ms())));
    let known = decision.release.filter(|_| decision.any >= 0.5);
    let found = || Release::find(&points().collect::<Vec<_>>(), trips);
    let Some(release) = known.or_else(found) else {
        return Vec::new();
    };
    let alike = Alike::of(replay, decision);
    let singles = messages.alone();
    let mut sight = Sight {
        replay,
        decision,
        messages,
        release,
        alike,
        owes: false,
        mirrors: false,
        open: false,
        singles,
        soon_ms: 0.0,
    };
    sight.owes = sight.owes(&riding);
    sight.soon_ms = sight.soon_ms(&riding, trips);
    sight.open = sight.is_open(&riding);
    sight.mirrors = sight.mirrors(&riding);
    let gathered = sight.gather(&riding);
    // A wide cluster, or one in another place than the sender's, is how long a program takes.
    let sharp =
        known.is_some() || release.evidence >= CLUSTERED && release.misplaced(trips) < MISPLACED;
    let beyond = if sharp { sight.beyond_answers(&riding) } else { 0.0 };
    let hold = |i: usize| {
        let hold = Hold::released(&all[i], trips, sight.probability(i, gathered, beyond))?;
        let placed = messages.written(all[i].end).map_or(hold, |written| hold.written_at(written));
        let owing = sight.owes && is_owing(&all[i]);
        (hold.probability >= MAYBE).then_some(Hold { owing, ..placed })
    };
    riding.into_iter().filter_map(hold).collect()
}

/// What is known when one of them is judged.
struct Sight<'a> {
    replay: &'a Replay,
    decision: &'a Decision,
    messages: &'a Messages,
    release: Release,
    alike: Alike,
    owes: bool,
    /// What carries several messages answers what came, one for one.
    mirrors: bool,
    /// What leaves with the ACK need be no answer.
    open: bool,
    /// The length of one message at each segment, where those around gathered various numbers of such.
    singles: Vec<Option<u32>>,
    /// What leaves this soon after the ACK was let go by the kernel; 0 where that cannot be told.
    soon_ms: f64,
}

impl Sight<'_> {
    fn probability(&self, i: usize, gathered: bool, beyond: f64) -> f64 {
        let d = &self.replay.departures[i];
        let density = d.gap_ms().map_or(0.0, |gap| self.release.density(gap));
        let on = self.decision.on[i];
        let alike = self.alike.share(d.len) * on;
        let many = self.is_several(d);
        let due = self
            .messages
            .written(d.end)
            .is_some_and(|written| d.time.since(written).as_millis_f64() >= EARLIER_MS);
        let own = if gathered || (many && due && !self.mirrors) {
            (if many { SEVERAL } else { ONE }) * (2.0 * on).min(1.0)
        } else {
            0.0
        };
        let prior = alike.max(own);
        let held = prior * density / (prior * density + (1.0 - prior) * ANSWERS);
        let at_ack = d.gap_ms().is_some_and(|gap| self.is_at_ack(gap));
        // What leaves an answer owing answered something earlier.
        let own = if self.owes && is_owing(d) { beyond.max(OWING) } else { beyond };
        let own = if self.open { own.max(UNASKED) } else { own };
        // Whoever spoke unasked once may have been held: that is for the bounds alone.
        let own = if self.replay.unasked > 0 { own.max(MAYBE) } else { own };
        let soon = d.gap_ms().is_some_and(|gap| (0.0..self.soon_ms).contains(&gap));
        let own = if soon { own.max(SOON) } else { own };
        if at_ack { held.max(own * (2.0 * on).min(1.0)) } else { held }
    }

    /// Whether the program speaks unasked, too, so that what leaves with the ACK need be no answer.
    fn is_open(&self, riding: &[usize]) -> bool {
        self.replay.unasked >= UNASKED_MIN
            && self.replay.unasked as usize * UNASKED_PART >= riding.len()
    }

    /// How soon after an ACK a kernel sends what it kept, where programs are seen to be slower: the capture was made beside it by
    /// a fine and steady clock, a good part of what leaves with the ACK leaves as soon as the kernel answers by
    /// itself, and not all of it, as what a program in the kernel answers would.
    fn soon_ms(&self, riding: &[usize], trips: &RoundTrips) -> f64 {
        let damage = self.replay.damage;
        let exact =
            step_ns(self.replay) <= TICK_NS && damage.noise_ms < 1.0 && trips.grain_ms <= 0.0;
        let alone = trips.far_ms.filter(|far| trips.handshake && *far <= BESIDE_MS);
        let Some(alone) = alone.filter(|_| exact) else { return 0.0 };
        let most = SLOWER * alone + SLOWER_MS;
        let gaps = || riding.iter().filter_map(|i| self.replay.departures[*i].gap_ms());
        let with = gaps().filter(|gap| self.is_at_ack(*gap)).count();
        let soon = gaps().filter(|gap| (0.0..most).contains(gap)).count();
        let shown = soon >= SOON_MIN && soon * 5 >= with * 2 && soon * 10 <= riding.len() * 9;
        if shown { SPREAD * most } else { 0.0 }
    }

    /// Whether a kernel that waited reacts so long after the ACK.
    fn is_at_ack(&self, gap_ms: f64) -> bool {
        (gap_ms - self.release.at_ms).abs() <= 3.0 * self.release.spread_ms + REACTION_MS
    }

    /// The length of one message where `d` is.
    fn single(&self, d: &Departure) -> Option<u32> {
        self.singles.get(self.messages.place_of(d.end)?).copied().flatten()
    }

    /// Whether it carries more than one message.
    fn is_several(&self, d: &Departure) -> bool {
        let several = |one: u32| d.len >= 2 * one && d.len.is_multiple_of(one);
        self.messages.in_segment(d.end) >= 2 || self.single(d).is_some_and(several)
    }

    /// Whether that is the rule for segments that leave with the ACK; after a loss it happens to any.
    fn owes(&self, riding: &[usize]) -> bool {
        let at_ack = |d: &&Departure| d.gap_ms().is_some_and(|gap| self.is_at_ack(gap));
        let counted = riding.iter().map(|i| &self.replay.departures[*i]);
        let counted = counted.filter(|d| d.owing.is_some());
        let owing = counted.clone().filter(at_ack).filter(|d| is_owing(d)).count();
        let swapped = self.replay.damage.late > 0.0;
        !swapped && owing >= OWING_MIN && owing * OWING_PART >= counted.count()
    }

    /// Of the segments that leave with the ACK, the share that no program explains which answers what comes: it
    /// would answer as promptly what comes while nothing is unacknowledged.
    fn beyond_answers(&self, riding: &[usize]) -> f64 {
        let at_ack = |gap: &f64| self.is_at_ack(*gap);
        let gaps = riding.iter().filter_map(|i| self.replay.departures[*i].gap_ms());
        let with = gaps.filter(at_ack).count() as f64;
        let heard = self.replay.answers.iter().map(|ns| *ns as f64 / 1e6);
        let answers = heard.filter(at_ack).count() as f64;
        let all = self.replay.answers.len() as f64;
        let least = (with - DEVIATIONS * with.sqrt()) / riding.len().max(1) as f64;
        let most = (answers + 2.0 + DEVIATIONS * answers.sqrt()) / (all + 2.0);
        if least > most { 1.0 - most / least } else { 0.0 }
    }

    /// Whether segments that leave with the ACK carry several messages, and others do not.
    fn gather(&self, riding: &[usize]) -> bool {
        let (mut with, mut without) = ([0.0, 1.0], [0.5, 1.0]);
        for i in riding {
            let d = &self.replay.departures[*i];
            let at_ack = d.gap_ms().is_some_and(|gap| self.is_at_ack(gap));
            let side = if at_ack { &mut with } else { &mut without };
            side[0] += if self.is_several(d) { 1.0 } else { 0.0 };
            side[1] += 1.0;
        }
        if self.singles.iter().any(Option::is_some) {
            // The first segment, which nothing held.
            without[1] += 1.0;
        }
        let more = with[0] / with[1] >= GATHERED_MORE * without[0] / without[1];
        with[0] >= GATHERED_MIN && more && !self.mirrors
    }

    /// Whether segments of several messages answer what came, message by message: their bytes keep the ratio to it that
    /// those of one message have.
    fn mirrors(&self, riding: &[usize]) -> bool {
        let ratios = |several: bool| -> Vec<f64> {
            let all = riding.iter().map(|i| &self.replay.departures[*i]);
            let all = all.filter(|d| d.asked.bytes > 0 && self.is_several(d) == several);
            all.map(|d| f64::from(d.len) / f64::from(d.asked.bytes)).collect()
        };
        let [one, several] = [false, true].map(ratios);
        let mut usual = if one.len() < ONES_MIN { several.clone() } else { one };
        usual.sort_unstable_by(f64::total_cmp);
        let Some(&usual) = usual.get(usual.len() / 2) else { return false };
        let alike = several.iter().filter(|ratio| (**ratio / usual - 1.0).abs() <= SAME_RATIO);
        alike.count() as f64 >= MIRRORED * several.len() as f64
    }
}

/// Whether the segment leaves an answer owing: what it says answered something earlier.
fn is_owing(d: &Departure) -> bool {
    d.owing.is_some_and(|more| more > 0)
}

/// The step of the clock that stamped the packets, ns, as far as the first departures show it; 0 where they are too few.
pub(super) fn step_ns(replay: &Replay) -> u64 {
    let apart = |d: &Departure| d.time.since(d.before).as_nanos();
    let shown = replay.departures.iter().take(STEPS);
    if shown.len() < STEPS_MIN { 0 } else { shown.map(apart).fold(0, gcd) }
}

/// Which share of the segments of a length pure ACKs let go, where they could.
pub(super) struct Alike {
    /// Their lengths in order, and how many of those up to each were held.
    lengths: Vec<u32>,
    held: Vec<f64>,
}

impl Alike {
    pub(super) fn of(replay: &Replay, decision: &Decision) -> Self {
        let told = (0..decision.told.len()).filter(|i| decision.told[*i]);
        let mut all: Vec<(u32, f64)> =
            told.map(|i| (replay.departures[i].len, decision.held[i])).collect();
        all.sort_unstable_by_key(|one| one.0);
        let mut sum = 0.0;
        let held = all.iter().map(|one| {
            sum += one.1;
            sum
        });
        Self { held: held.collect(), lengths: all.iter().map(|one| one.0).collect() }
    }

    pub(super) fn share(&self, len: u32) -> f64 {
        let reach = len * ALIKE_PER_CENT / 100;
        let from = self.lengths.partition_point(|l| *l < len - reach);
        let to = self.lengths.partition_point(|l| *l <= len + reach);
        let held = |count: usize| count.checked_sub(1).map_or(0.0, |last| self.held[last]);
        (held(to) - held(from)) / ((to - from) as f64 + 2.0)
    }
}

/// Shares are taken so many standard deviations to the safe side.
const DEVIATIONS: f64 = 1.5;
/// Logarithm of how much better than chance a place of the sender's must explain the gaps, and of how unlikely it is.
const CLUSTERED: f64 = 5.0;
const MISPLACED: f64 = 2.0;
/// The first message was due at least this long before the release.
const EARLIER_MS: f64 = 2.0;
/// Density of an answer close behind what it answers, per millisecond.
const ANSWERS: f64 = 0.5;
/// Where segments gather: probability that one of several messages waited, and one of a single one.
const SEVERAL: f64 = 0.95;
const ONE: f64 = 0.6;
/// Probability that what leaves with the ACK and leaves an answer owing had waited; so many do, one in so many.
const OWING: f64 = 0.9;
const OWING_MIN: usize = 8;
const OWING_PART: usize = 5;
/// Probability that what leaves with the ACK waited, of a program that speaks unasked: so often, and once for so many
/// segments that data of the peer preceded.
const UNASKED: f64 = 0.1;
const UNASKED_MIN: u64 = 3;
const UNASKED_PART: usize = 12;
/// Probability that what leaves as soon as a kernel reacts had waited; few programs answer in the kernel.
const SOON: f64 = 0.9;
const SOON_MIN: usize = 4;
/// What is beside the sender answers a handshake so soon. A release takes no more than so much longer than the least that a
/// kernel takes, in two of five cases; no program does. Others take so many times that.
const BESIDE_MS: f64 = 0.08;
const SLOWER: f64 = 1.5;
const SLOWER_MS: f64 = 0.005;
const SPREAD: f64 = 2.2;
/// Coarser clocks show no kernel's speed.
const TICK_NS: u64 = 10_000;
/// So many departures at most, and at least, show the clock's step.
const STEPS: usize = 64;
const STEPS_MIN: usize = 8;
/// Segments whose lengths differ by no more are of one kind, per cent.
const ALIKE_PER_CENT: u32 = 15;
/// A kernel reacts this soon.
const REACTION_MS: f64 = 0.3;
/// Fewer segments of several messages show nothing.
const GATHERED_MIN: f64 = 3.0;
/// Of the segments of several messages so many keep one ratio to what came, to so much.
const MIRRORED: f64 = 0.7;
const SAME_RATIO: f64 = 0.02;
/// Fewer segments of one message show no ratio.
const ONES_MIN: usize = 4;
/// So much more often than elsewhere.
const GATHERED_MORE: f64 = 3.0;
