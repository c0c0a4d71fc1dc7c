//! Cross traffic that does not give way to loss, as BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00 section
//! 4.2.3.4): a queue of a bandwidth-delay product or less overflows all the time beside it, and whoever heeds loss is left
//! with nothing.
//!
//! How it shows: round after round every packet finds the queue full, more is lost than the path's own share, and we get little
//! of what the link has shown to carry. Flows that heed loss leave such a queue after each overflow. Then BBR v1 governs
//! here, too, which shares with its like, **on trial**: where we soon get nearly all of the link, the others have given way, so
//! they heed loss, and get it back; the time until the next trial doubles.

use super::super::bbr::v1::BbrV1;
use super::super::{AckSample, CongestionControl, LossSample, RtoSample, SentSample, Start};
use super::tally::Packets;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// What is known of rivals that may not give way; rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Unyielding {
    lately: Lately,
    /// What arrived in rounds of many packets: the mean of the last two, and the most.
    smooth: f64,
    best: f64,
    /// No trial before.
    next: Time,
    patience: Span,
    /// The last trial found that they do not give way.
    confirmed: bool,
}

/// How the last rounds were in which delay or loss governed: means.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    rounds: u32,
    since: Option<Time>,
    /// The share of rounds in which every packet found the queue full.
    full: f64,
    packets: Packets,
    got: f64,
}

/// A round that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) packets: Packets,
    /// Every packet found the queue as long as it gets.
    pub(super) full: bool,
    /// The queue may be so long that flows which heed loss fill it for half of the time, too.
    pub(super) roomy: bool,
    /// What arrived, bytes per second.
    pub(super) got: f64,
    /// The share that the path loses by itself.
    pub(super) own: f64,
    /// A window that heeds loss governs, so that it is no overflow of our own.
    pub(super) heeds_loss: bool,
}

impl Default for Unyielding {
    fn default() -> Self {
        Self {
            lately: Lately::default(),
            smooth: 0.0,
            best: 0.0,
            next: Time::ZERO,
            patience: PATIENCE,
            confirmed: false,
        }
    }
}

impl Lately {
    fn add(&mut self, now: Time, round: &Round) {
        self.since.get_or_insert(now);
        self.rounds += 1;
        let gain = 1.0 / f64::from(self.rounds.min(MEMORY));
        let full = f64::from(u8::from(round.full));
        self.full += gain * (full - self.full);
        self.packets.sent += gain * (round.packets.sent - self.packets.sent);
        self.packets.lost += gain * (round.packets.lost - self.packets.lost);
        self.got += gain * (round.got - self.got);
    }
}

impl Unyielding {
    /// Any round, whatever governs: what the link carries.
    pub(super) fn note(&mut self, packets: Packets, got: f64) {
        if packets.sent >= MANY {
            let mean = if self.smooth > 0.0 { f64::midpoint(self.smooth, got) } else { got };
            (self.smooth, self.best) = (mean, self.best.max(mean));
        }
    }

    /// A round ends in which delay or loss governs; whether rivals are to be met as they are.
    pub(super) fn on_round(&mut self, now: Time, round: &Round) -> bool {
        self.lately.add(now, round);
        let Lately { rounds, since, full, packets, got } = self.lately;
        let lost = packets.lost / packets.sent.max(f64::MIN_POSITIVE);
        let (excess, got) = (lost - round.own, got / self.best.max(1.0));
        let again = rounds >= AGAIN_ROUNDS
            && full > if round.roomy { 0.75 } else { 0.3 }
            && got < 0.5
            && excess > 0.02;
        let long = since.is_some_and(|since| now.since(since) > LEAST_TIME);
        let crowded = full > if round.roomy { 0.75 } else { 0.4 } && got < 0.5 && excess > 0.08;
        let squeezed = full > 0.75 && got < 0.3 && excess > 0.03;
        // However much was taken for the path's own loss.
        let starved = full > 0.4 && got < 0.12 && lost > 0.1;
        let shown = rounds >= LEAST_ROUNDS
            && long
            && ((round.heeds_loss && (crowded || squeezed)) || starved);
        now >= self.next && (shown || (self.confirmed && again))
    }

    /// A trial begins; `least_rtt` without a queue.
    pub(super) fn begin(&mut self, now: Time, start: &Start, least_rtt: Span) -> Matching {
        let before = std::mem::take(&mut self.lately).got;
        // What the link carries may have changed: from now on what the trial shows counts.
        let best = std::mem::take(&mut self.best);
        let bbr = BbrV1::new(start);
        Matching { bbr, since: now, rounds: 0, got: 0.0, before, best, least_rtt: Some(least_rtt) }
    }

    /// A trial ends.
    pub(super) fn end(&mut self, now: Time, trial: Trial) {
        self.confirmed = trial != Trial::Yielded;
        if self.confirmed {
            self.patience = PATIENCE;
        } else {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.next = now + self.patience;
        }
    }
}

/// BBR governs; rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Matching {
    bbr: BbrV1,
    since: Time,
    rounds: u32,
    /// What arrived: lately, and before.
    got: f64,
    before: f64,
    /// What the link had shown to carry.
    best: f64,
    /// Until BBR knows it.
    least_rtt: Option<Span>,
}

/// What a round of a trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    GoesOn,
    /// The others have given way.
    Yielded,
    /// It is time to see whether they are gone.
    Over,
}

impl Matching {
    pub(super) fn on_sent(&mut self, now: Time, sample: &SentSample) {
        self.bbr.on_sent(now, sample);
    }

    pub(super) fn on_ack(&mut self, now: Time, sample: &AckSample) {
        // BBR would take the queue that stands for the path.
        let rtt = sample.rtt.map(|rtt| self.least_rtt.take().map_or(rtt, |least| least.min(rtt)));
        self.bbr.on_ack(now, &AckSample { rtt, ..*sample });
    }

    pub(super) fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.bbr.on_loss(now, sample);
    }

    pub(super) fn on_recovered(&mut self, now: Time) {
        self.bbr.on_recovered(now);
    }

    pub(super) fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.bbr.on_rto(now, sample);
    }

    /// A round ends in which so much arrived, bytes per second.
    pub(super) fn end_round(&mut self, now: Time, got: f64, known: &Unyielding) -> Trial {
        self.rounds += 1;
        self.got += (got - self.got) / f64::from(self.rounds.min(TRIAL_MEMORY));
        let best = self.best.max(known.best);
        if TRIAL.contains(&self.rounds) && self.got > NEARLY_ALL * best {
            Trial::Yielded
        } else if now.since(self.since) > STINT {
            Trial::Over
        } else {
            Trial::GoesOn
        }
    }

    /// What we go on with, bytes per second: what we got before, or with BBR where nobody gave way.
    pub(super) fn share(&self, trial: Trial) -> f64 {
        if trial == Trial::Yielded { self.before } else { self.got }
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.bbr.cwnd()
    }

    pub(super) fn pacing_rate(&self) -> Option<BitRate> {
        self.bbr.pacing_rate()
    }
}

// All ours, measured in docs/lossy.md.
/// Packets of a round that tells of the link's rate.
const MANY: f64 = 8.0;
/// Rounds.
const MEMORY: u32 = 128;
const LEAST_ROUNDS: u32 = 64;
/// The overflow of a start is not in it alone.
const LEAST_TIME: Span = Span::from_secs(4);
/// Rounds, where the last trial showed what they are.
const AGAIN_ROUNDS: u32 = 16;
/// Rounds of a trial after which rivals that heed loss have given way.
const TRIAL: std::ops::Range<u32> = 24..60;
const TRIAL_MEMORY: u32 = 12;
/// Of the link.
const NEARLY_ALL: f64 = 0.9;
const STINT: Span = Span::from_secs(60);
const PATIENCE: Span = Span::from_secs(15);
const PATIENCE_MAX: Span = Span::from_secs(240);
