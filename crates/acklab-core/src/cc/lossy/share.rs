//! What the bottleneck gives us, S, and the rate that keeps a few packets in its queue:
//!
//! ```text
//! r = S + (X - S q) / T        X = k sqrt(S)
//! ```
//!
//! Where X bytes of ours wait (q seconds), the rate is what is served. All flows of this kind see one q, and
//! X / S falls with S: the one with less grows, the one with more gives way, until all have the same,
//! whatever their round trips. With X proportional to S they would keep any division; with a constant X
//! the queue would be 50 times longer in time at 2 Mbit/s than at 100.
//!
//! What is served tells S only while the bottleneck is busy. While it is not, S is at least what arrives,
//! and grows. Where losses come without a queue, [`Overflow`] asks whose they are.

use super::delay::{Delay, FULL};
use super::overflow::{Answer, Overflow};
use super::tally::Packets;

/// A round that the delay-based law sees; rates in bytes per second, counts in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) number: u64,
    pub(super) rate: f64,
    pub(super) sent: f64,
    pub(super) lost: f64,
}

/// Our share of the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    mss: f64,
    /// S, bytes per second.
    rate: f64,
    /// Served in the last round, and the most ever; bytes per second.
    served: f64,
    best: f64,
    /// Served in the last few rounds, as a ring.
    lately: [f64; LATELY],
    /// Rounds in a row with a queue that is not of our making, with next to none, and with losses.
    long: u32,
    short: u32,
    losing: u32,
    overflow: Overflow,
    /// Rounds in a row with losses and a queue that is as long as it gets, shorter than wanted.
    stuck: u32,
    /// The longest queue when they began.
    stuck_at: f64,
    /// Of what would be wanted: less than 1 where the buffer holds no more.
    scale: f64,
    /// Of the rate of all paths of the connection.
    part: f64,
    /// What the start-up found has not shown itself in a queue yet.
    unproven: Option<Unproven>,
}

/// A start-up during which a host was busy elsewhere finds too little, and no queue says so. Until one
/// does, or more brings no more, S doubles.
#[derive(Clone, Copy, Debug, Default)]
struct Unproven {
    /// What arrived before S was doubled, bytes per second; 0 at first.
    before: f64,
    /// A round passes until what leaves now is what ACKs tell of.
    waits: bool,
}

impl Share {
    pub(super) fn new(mss: f64) -> Self {
        Self {
            mss,
            rate: 0.0,
            served: 0.0,
            best: 0.0,
            lately: [0.0; LATELY],
            long: 0,
            short: 0,
            losing: 0,
            overflow: Overflow::default(),
            stuck: 0,
            stuck_at: 0.0,
            scale: 1.0,
            part: 1.0,
            unproven: None,
        }
    }

    /// What the last round of the delay-based law was served, bytes per second.
    pub(super) const fn served(&self) -> f64 {
        self.served
    }

    /// It is found to be that.
    pub(super) fn begin(&mut self, rate: f64) {
        (self.rate, self.served) = (rate, rate);
        (self.long, self.short) = (0, 0);
    }

    /// The start-up found it to be that.
    pub(super) fn begin_unproven(&mut self, rate: f64) {
        self.begin(rate);
        self.unproven = Some(Unproven::default());
    }

    /// A round of packets that left in the start-up: it is that at least.
    pub(super) fn raise(&mut self, rate: f64, delay: &Delay) {
        self.rate = self.rate.max(rate);
        if self.is_proven(delay) {
            self.unproven = None;
        }
    }

    /// It is that at most, as far as is known now.
    pub(super) fn limit(&mut self, rate: f64) {
        (self.rate, self.unproven) = (self.rate.min(rate), None);
    }

    /// Nothing arrives, or nothing was sent for long.
    pub(super) fn halve(&mut self) {
        self.rate /= 2.0;
    }

    /// Any round, whatever governs: what can be served.
    pub(super) fn note(&mut self, rate: f64) {
        self.best = self.best.max(rate);
    }

    /// It is that part of the connection's rate.
    pub(super) const fn couple(&mut self, part: f64) {
        self.part = part;
    }

    /// Whether other paths have a part of the connection's rate.
    pub(super) const fn is_coupled(&self) -> bool {
        self.part < 1.0
    }

    /// What we want to wait, seconds: what one flow would that had the rate of all paths.
    pub(super) fn wanted_queue(&self) -> f64 {
        self.scale * wanted_queue(self.rate / self.part)
    }

    /// A longer wait than this is due to cross traffic or to an overflow; seconds.
    pub(super) fn long_queue(&self) -> f64 {
        let own = 2.0 * wanted_queue(self.served) + LONG_QUEUE_MARGIN;
        self.scale * own + self.mss / self.best.max(1.0)
    }

    /// A longer wait than this may have overflowed, whoever caused it; seconds.
    pub(super) fn own_queue(&self) -> f64 {
        OWN * wanted_queue(self.best) + LONG_QUEUE_MARGIN / 2.0 + self.mss / self.best.max(1.0)
    }

    /// Whether the buffer holds less than the queue that would be wanted.
    pub(super) const fn is_short(&self) -> bool {
        self.scale < 1.0
    }

    /// A round ends with losses or without: is the queue as long as it gets, and shorter than wanted? Then half of it is
    /// wanted from now on. True where that is found.
    pub(super) fn look_for_short_buffer(&mut self, losing: bool, delay: &Delay) -> bool {
        let (peak, most) = (delay.peak(), wanted_queue(self.best));
        if peak > 2.0 * most {
            self.scale = 1.0;
        }
        let full = delay.queue() > FULL * peak && peak > CLEAR * delay.noise().size();
        let stays = full && peak < self.scale * most && peak < RISING * self.stuck_at;
        self.stuck = if losing && stays { self.stuck + 1 } else { 0 };
        if self.stuck == 0 {
            self.stuck_at = peak;
        }
        if self.stuck < STUCK_ROUNDS {
            return false;
        }
        self.stuck = 0;
        self.scale = (peak / 2.0 / most).min(1.0);
        (self.rate, self.unproven) = (self.rate.min(self.best), None);
        self.overflow.forget();
        true
    }

    /// Whether the queue stays though we give way.
    pub(super) const fn is_crowded(&self) -> bool {
        self.long >= LONG_ROUNDS
    }

    /// Takes a round; true where its losses were our own overflow.
    pub(super) fn learn(&mut self, round: &Served, delay: &Delay) -> bool {
        let served = round.rate.min(2.0 * GROWTH * self.rate);
        let queue = delay.queue();
        self.long = if queue > self.long_queue() { self.long + 1 } else { 0 };
        self.losing = if round.lost > LOSING * round.sent { self.losing + 1 } else { 0 };
        self.served = served;
        self.lately[(round.number % LATELY as u64) as usize] = served;
        let delivered = served * (1.0 - round.lost / round.sent);
        if self.is_still_unproven(delay, delivered) {
            return false;
        }
        let packets = Packets { sent: round.sent, lost: round.lost };
        let bare = delay.queue_now() < BARE * self.wanted_queue();
        let is_ours = bare && self.overflow.is_busy(round.number);
        let answer = if is_ours || self.is_blind(packets, delay) {
            self.overflow.on_round(round.number, delivered, packets, self.rate, bare)
        } else {
            self.overflow.forget();
            Answer::Free
        };
        match answer {
            Answer::Send(rate) | Answer::Overflow(rate) => self.rate = rate,
            Answer::Free if queue > self.wanted_queue() / 2.0 => {
                // The bottleneck was busy all the time: this is what it gives us.
                self.short = 0;
                self.rate += BUSY_GAIN * (served - self.rate);
            }
            Answer::Free => {
                self.short += 1;
                let growth = if self.short > SHORT_ROUNDS { GROWTH } else { 1.0 };
                // A round of few packets, or one in which a host was busy, says little by itself: the
                // best of the last few bounds the rate from above.
                let most = self.lately.iter().copied().fold(served, f64::max);
                self.rate = self.rate.min(GROWTH * most).max(growth * served);
            }
        }
        matches!(answer, Answer::Overflow(_))
    }

    /// Whether a queue shows that the bottleneck is busy: even a third of the one that is wanted.
    fn is_proven(&self, delay: &Delay) -> bool {
        delay.queue() > (self.wanted_queue() / 3.0).max(2.0 * delay.noise().size())
    }

    /// Doubles what the start-up found while nothing shows that it is enough; false once something does.
    fn is_still_unproven(&mut self, delay: &Delay, delivered: f64) -> bool {
        let Some(Unproven { before, waits }) = self.unproven else { return false };
        let enough = !waits && delivered < PROVING_GAIN * before;
        if enough || self.is_proven(delay) {
            self.unproven = None;
            if before > 0.0 {
                // As much as the doubling brought.
                self.rate *= (delivered / before).clamp(1.0, 2.0) / 2.0;
            }
            return false;
        }
        if waits {
            self.unproven = Some(Unproven { before, waits: false });
        } else {
            self.unproven = Some(Unproven { before: delivered, waits: true });
            self.rate *= 2.0;
        }
        true
    }

    /// Whether it sees losses, but has not seen the queue that it wants to follow, or does not see it while most is lost.
    fn is_blind(&self, packets: Packets, delay: &Delay) -> bool {
        let wanted = self.wanted_queue();
        let ruins = packets.lost > RUIN * packets.sent && delay.queue_now() < BARE * wanted;
        self.losing >= LOSING_ROUNDS && (delay.peak() < BLIND * wanted || ruins)
    }

    /// The rate to send at, with so much on the way, bytes. What will wait once that has come to the
    /// queue counts like what waits: else it would swing.
    pub(super) fn pace(&mut self, delay: &Delay, flight: u64) -> Option<f64> {
        let least = delay.least()?;
        self.rate = self.rate.max(FLIGHT_MIN * self.mss / (least + delay.queue()));
        let expected = flight as f64 / self.rate - least;
        let queue = delay.lately().max(expected);
        let step = (self.wanted_queue() - queue) / (least + queue.max(0.0));
        let step = if self.overflow.is_testing() { 0.0 } else { step };
        Some(self.rate * (1.0 + step.clamp(-STEP_MAX, STEP_MAX)))
    }
}

/// X / S at that rate, seconds.
pub(super) fn wanted_queue(rate: f64) -> f64 {
    (WANTED / rate.max(1.0).sqrt()).min(WANTED_MAX)
}

// All ours, measured in docs/lossy.md.
/// k, in root bytes and root seconds: 7 packets of 1448 bytes, 4 ms, at 20 Mbit/s.
const WANTED: f64 = 6.4;
/// Seconds.
const WANTED_MAX: f64 = 0.008;
/// Seconds.
const LONG_QUEUE_MARGIN: f64 = 0.002;
/// Of the queue that one flow alone wants.
const OWN: f64 = 1.5;
const LONG_ROUNDS: u32 = 6;
/// Of what a busy round adds to what was known.
const BUSY_GAIN: f64 = 0.5;
/// Rounds.
const LATELY: usize = 4;
const SHORT_ROUNDS: u32 = 6;
/// In a round, where the queue stays empty.
const GROWTH: f64 = 1.25;
/// Times the noise.
const CLEAR: f64 = 4.0;
/// A queue that grows is no longest one.
const RISING: f64 = 1.1;
/// Rounds.
const STUCK_ROUNDS: u32 = 3;
/// Of a round.
pub(super) const LOSING: f64 = 0.02;
const LOSING_ROUNDS: u32 = 2;
/// Of the queue that is wanted.
const BLIND: f64 = 1.5;
/// Of the queue that is wanted: no more than hosts vary, and less than three packets.
const BARE: f64 = 0.25;
/// Of a round: more than a path loses that is of use.
const RUIN: f64 = 0.35;
/// Packets in a round trip, so that there is something to learn from.
const FLIGHT_MIN: f64 = 2.0;
/// Of what arrived at half the rate.
const PROVING_GAIN: f64 = 1.3;
const STEP_MAX: f64 = 0.25;
