//! RED, random early detection: Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993.
//!
//! On arrival the average queue is updated (section 4: an EWMA with weight w_q, decayed over an idle
//! time as if small packets had passed through it). Below `min_threshold` nothing happens; above
//! `max_threshold` every packet is chosen; between them one is chosen with p_b, which grows linearly
//! to `max_probability`, made uniform between two choices by the count of packets since the last:
//! p_a = p_b / (1 - count p_b) ([`Spacing::Uniform`], the paper's method 2), or left geometric
//! (method 1).
//!
//! Options: *gentle* (Floyd 2000: p_b goes on to 1 at twice `max_threshold`), *adaptive*
//! (Floyd, Gummadi, Shenker 2001: `max_probability` follows the average by AIMD), probability scaled
//! by packet size. Left out: ns-2's `wait`, `cautious` and the marking probability of its ECN mode.
//!
//! The idle time starts when the last packet has left the transmitter, as in the paper, where a queue
//! is empty when nothing is in service either.

use super::ecn::Treatment;
use super::{Fifo, Limit, Queue, Setup, Unit, Verdicts};
use crate::event::DropReason;
use crate::math;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How much may wait.
    pub limit: Limit,
    /// What the thresholds and the average are counted in.
    pub unit: Unit,
    /// Average below which no packet is chosen.
    pub min_threshold: f64,
    /// Average from which every packet is chosen, unless `gentle`.
    pub max_threshold: f64,
    /// p_b at `max_threshold`.
    pub max_probability: f64,
    /// w_q, the weight of the present length in the average.
    pub weight: f64,
    /// Size of a typical packet in bytes: how many could have passed in an idle time, and the size
    /// that `by_size` scales to.
    pub mean_packet: u32,
    /// How choices are spaced.
    pub spacing: Spacing,
    /// What happens above `max_threshold`.
    pub above_max: AboveMax,
    /// p_b goes on from `max_probability` to 1 between one and two times `max_threshold`.
    pub gentle: bool,
    /// p_b is multiplied by packet size over `mean_packet`.
    pub by_size: bool,
    /// `max_probability` follows the average.
    pub adaptive: Option<Adaptive>,
    /// What happens to chosen packets.
    pub ecn: Treatment,
}

/// How choices are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Uniform: the paper's method 2, by its figure 2, which counts a packet before it asks. The gap
    /// is then uniform on 1..=1/p_b - 1, one less than the text derives.
    Uniform,
    /// Independent coins (method 1).
    Geometric,
}

/// What happens to packets chosen above `max_threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AboveMax {
    /// They are dropped, ECN-capable or not (RFC 3168 section 7).
    Drop,
    /// They are treated like any chosen packet (the paper, section 4).
    Mark,
}

/// How `max_probability` follows the average: the 2001 report, section 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// Time between two steps.
    pub interval: Span,
    /// Largest additive increase (never more than a quarter of the probability).
    pub increase: f64,
    /// Factor of a decrease.
    pub decrease: f64,
    /// It is not decreased from below this.
    pub lowest: f64,
    /// It is not increased from above this.
    pub highest: f64,
}

/// The 2001 report, figure 1.
impl Default for Adaptive {
    fn default() -> Self {
        let interval = Span::from_millis(500);
        Self { interval, increase: 0.01, decrease: 0.9, lowest: 0.01, highest: 0.5 }
    }
}

impl Config {
    /// Thresholds at a quarter and three quarters of `packets` (INDIN 2017's setting), weight 0.002 and
    /// probability 0.1 (the 1993 paper's weight; RFC 2309's usual probability). Without a limit
    /// (`u32::MAX`): 5 and 15 packets, as in the 1993 paper's simulations.
    pub fn packets(packets: u32) -> Self {
        let buffer = if packets == u32::MAX { 20.0 } else { f64::from(packets) };
        Self {
            limit: Limit::packets(packets),
            unit: Unit::Packets,
            min_threshold: buffer / 4.0,
            max_threshold: buffer * 3.0 / 4.0,
            max_probability: 0.1,
            weight: 0.002,
            mean_packet: 1000,
            spacing: Spacing::Uniform,
            above_max: AboveMax::Drop,
            gentle: false,
            by_size: false,
            adaptive: None,
            ecn: Treatment::MARK,
        }
    }

    /// Adaptive RED that sets itself up for a mean delay of `target` behind `rate` (the 2001 report,
    /// sections 4 and 5): gentle, min = max(5, C target / 2), max = 3 min, w_q = 1 - exp(-1/C), with C
    /// in packets of 1000 bytes per second.
    pub fn adaptive(limit: Limit, rate: BitRate, target: Span) -> Self {
        let plain = Self::packets(u32::MAX);
        let capacity = rate.as_bps() as f64 / 8.0 / f64::from(plain.mean_packet);
        let min_threshold = (capacity * target.as_secs_f64() / 2.0).max(5.0);
        Self {
            limit,
            min_threshold,
            max_threshold: 3.0 * min_threshold,
            weight: 1.0 - math::exp(-1.0 / capacity),
            gentle: true,
            adaptive: Some(Adaptive::default()),
            ..plain
        }
    }
}

/// Random early detection.
#[derive(Clone, Debug)]
pub struct Red {
    config: Config,
    waiting: Fifo,
    rng: Rng,
    /// Time to transmit a typical packet.
    typical: Span,
    rate: BitRate,
    average: f64,
    /// Packets since the last choice; -1 below `min_threshold`.
    count: i64,
    /// The transmitter has been idle since, or will be, unless another packet comes.
    idle_from: Time,
    max_probability: f64,
    /// When `max_probability` takes its next step.
    next_step: Time,
}

impl Red {
    /// An empty queue.
    pub fn new(config: Config, setup: &Setup<'_>) -> Self {
        let interval = config.adaptive.map_or(Span::MAX, |adaptive| adaptive.interval);
        Self {
            config,
            waiting: Fifo::default(),
            rng: setup.stream(),
            typical: setup.rate.serialisation(u64::from(config.mean_packet)),
            rate: setup.rate,
            average: 0.0,
            count: -1,
            idle_from: Time::ZERO,
            max_probability: config.max_probability,
            next_step: Time::ZERO + interval,
        }
    }

    /// The average queue, in the unit of the thresholds.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// p_b at `max_threshold` as it stands.
    pub const fn max_probability(&self) -> f64 {
        self.max_probability
    }

    /// p_b for the present average.
    pub fn probability(&self) -> f64 {
        let Config { min_threshold: min, max_threshold: max, .. } = self.config;
        if self.average < min {
            0.0
        } else if self.average < max {
            self.max_probability * (self.average - min) / (max - min)
        } else if self.config.gentle && self.average < 2.0 * max {
            self.max_probability + (1.0 - self.max_probability) * (self.average - max) / max
        } else {
            1.0
        }
    }

    fn update_average(&mut self, now: Time) {
        let weight = self.config.weight;
        if self.waiting.is_empty() && now > self.idle_from {
            let idle = now.since(self.idle_from);
            let missed = if self.typical.is_zero() {
                f64::INFINITY
            } else {
                idle.as_secs_f64() / self.typical.as_secs_f64()
            };
            self.average *= math::pow(1.0 - weight, missed);
        } else {
            self.average += weight * (self.config.unit.length(&self.waiting) - self.average);
        }
    }

    /// Whether the management chooses this arrival.
    fn chooses(&mut self, packet: &Packet) -> bool {
        let mut probability = self.probability();
        if probability <= 0.0 {
            self.count = -1;
            return false;
        }
        self.count += 1;
        if self.config.by_size && probability < 1.0 {
            probability *= f64::from(packet.size()) / f64::from(self.config.mean_packet);
        }
        if probability < 1.0 && self.config.spacing == Spacing::Uniform {
            let left = 1.0 - self.count as f64 * probability;
            probability = if left > probability { probability / left } else { 1.0 };
        }
        let chosen = probability >= 1.0 || self.rng.chance(probability);
        if chosen {
            self.count = 0;
        }
        chosen
    }

    /// Every step of `max_probability` that was due. The average changes on arrivals only, so that the
    /// steps since the last one all see the same.
    fn adapt(&mut self, now: Time) {
        let Some(adaptive) = self.config.adaptive else { return };
        let Config { min_threshold: min, max_threshold: max, .. } = self.config;
        let (low, high) = (min + 0.4 * (max - min), min + 0.6 * (max - min));
        while self.next_step <= now {
            let before = self.max_probability;
            if self.average > high && before <= adaptive.highest {
                self.max_probability += adaptive.increase.min(before / 4.0);
            } else if self.average < low && before >= adaptive.lowest {
                self.max_probability *= adaptive.decrease;
            }
            let missed = now.since(self.next_step).as_nanos() / adaptive.interval.as_nanos().max(1);
            let settled = before.to_bits() == self.max_probability.to_bits();
            self.next_step += adaptive.interval * if settled { missed + 1 } else { 1 };
        }
    }
}

impl Queue for Red {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        self.adapt(now);
        self.update_average(now);
        let config = &self.config;
        if !self.waiting.admits(&config.limit, &packet) {
            // The paper's gateway has room; ns-2's restarts the count where it has not.
            self.count = 0;
            verdicts.drop(packet, DropReason::Overflow);
            return;
        }
        let treatment = config.ecn;
        let above = config.above_max == AboveMax::Drop && self.average >= config.max_threshold;
        if treatment.exempts(&packet) || !self.chooses(&packet) {
            self.waiting.push(now, packet);
        } else if above {
            verdicts.drop(packet, DropReason::Early);
        } else if let Some(packet) = treatment.choose(packet, verdicts) {
            self.waiting.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        let (_, packet) = self.waiting.pop()?;
        self.idle_from = now + self.rate.serialisation(u64::from(packet.size()));
        Some(packet)
    }

    fn packets(&self) -> u32 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}
