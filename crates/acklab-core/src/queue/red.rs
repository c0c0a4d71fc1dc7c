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
use crate::options::Conflict;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

crate::options! {
    /// Parameters. The defaults are those of a queue without a limit (5 and 15 packets, as in the 1993
    /// paper's simulations); [`Options::packets`] has others.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Average below which no packet is chosen; a quarter of the room where there is a limit.
        min_threshold "min": f64 as number(0.0, 1e9, "packets") = "5",
        /// Average from which every packet is chosen, unless gentle; three quarters of the room.
        max_threshold "max": f64 as number(0.0, 1e9, "packets") = "15",
        /// p_b at max: RFC 2309's usual one.
        max_probability "probability": f64 as positive_share() = "0.1",
        /// w_q, the weight of the present length in the average: the 1993 paper's.
        weight: f64 as positive_share() = "0.002",
        /// p_b goes on from its probability at max to 1 at twice max.
        gentle: bool = "false",
        /// Size of a typical packet in bytes: how many could have passed in an idle time, and the size
        /// that by_size scales to.
        mean_packet: u32 as count(1, 65_535) = "1000",
        /// How choices are spaced.
        spacing: Spacing = "uniform",
        /// What happens where every packet is chosen: above max, if gentle above twice max.
        above_max: AboveMax = "drop",
        /// p_b is multiplied by packet size over mean_packet.
        by_size: bool = "false",
        /// What the thresholds and the average are counted in.
        unit: Unit = "packets",
        /// What happens to chosen packets.
        ecn: Treatment = "mark",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
        /// `max_probability` follows the average.
        adaptive: Option<Adaptive> = None,
    }
    check min_below_max
}

fn min_below_max(options: &Options) -> Result<(), Conflict> {
    let Options { min_threshold: min, max_threshold: max, .. } = options;
    if min < max {
        return Ok(());
    }
    let reason = format!("min is {min} and max is {max}: min must be less than max");
    Err(Conflict { name: "max", reason })
}

crate::words! {
    /// How choices are spaced.
    pub enum Spacing {
        /// Uniform: the paper's method 2, by its figure 2, which counts a packet before it asks. The gap
        /// is then uniform on 1..=1/p_b - 1, one less than the text derives.
        Uniform = "uniform",
        /// Independent coins (method 1).
        Geometric = "geometric",
    }
}

crate::words! {
    /// What happens to packets chosen where every packet is: above `max_threshold`, if gentle twice that.
    pub enum AboveMax {
        /// They are dropped, ECN-capable or not (RFC 3168 section 7).
        Drop = "drop",
        /// They are treated like any chosen packet (the paper, section 4).
        Mark = "mark",
    }
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

impl Options {
    /// Room for `packets` with thresholds at a quarter and three quarters of it (INDIN 2017's setting).
    pub fn packets(packets: u32) -> Self {
        let plain = Self { limit: Limit::packets(packets), ..Self::default() };
        if packets == u32::MAX {
            return plain;
        }
        let room = f64::from(packets);
        Self { min_threshold: room / 4.0, max_threshold: room * 3.0 / 4.0, ..plain }
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
    options: Options,
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
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        let interval = options.adaptive.map_or(Span::MAX, |adaptive| adaptive.interval);
        Self {
            options,
            waiting: Fifo::default(),
            rng: setup.stream(),
            typical: setup.rate.serialisation(u64::from(options.mean_packet)),
            rate: setup.rate,
            average: 0.0,
            count: -1,
            idle_from: Time::ZERO,
            max_probability: options.max_probability,
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
        let Options { min_threshold: min, max_threshold: max, .. } = self.options;
        if self.average < min {
            0.0
        } else if self.average < max {
            self.max_probability * (self.average - min) / (max - min)
        } else if self.options.gentle && self.average < 2.0 * max {
            self.max_probability + (1.0 - self.max_probability) * (self.average - max) / max
        } else {
            1.0
        }
    }

    fn update_average(&mut self, now: Time) {
        let weight = self.options.weight;
        if self.waiting.is_empty() && now > self.idle_from {
            let idle = now.since(self.idle_from);
            let missed = if self.typical.is_zero() {
                f64::INFINITY
            } else {
                idle.as_secs_f64() / self.typical.as_secs_f64()
            };
            self.average *= math::pow(1.0 - weight, missed);
        } else {
            self.average += weight * (self.options.unit.length(&self.waiting) - self.average);
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
        if self.options.by_size && probability < 1.0 {
            probability *= f64::from(packet.size()) / f64::from(self.options.mean_packet);
        }
        if probability < 1.0 && self.options.spacing == Spacing::Uniform {
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
        let Some(adaptive) = self.options.adaptive else { return };
        let Options { min_threshold: min, max_threshold: max, .. } = self.options;
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
        let options = &self.options;
        if !self.waiting.admits(&options.limit, &packet) {
            // The paper's gateway has room; ns-2's restarts the count where it has not.
            self.count = 0;
            verdicts.drop(packet, DropReason::Overflow);
            return;
        }
        let treatment = options.ecn;
        let certain = options.max_threshold * if options.gentle { 2.0 } else { 1.0 };
        let above = options.above_max == AboveMax::Drop && self.average >= certain;
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

    crate::forward! { waiting: packets bytes }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}
