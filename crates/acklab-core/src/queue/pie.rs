//! PIE, proportional integral controller enhanced: RFC 8033.
//!
//! On arrival a packet is chosen with a probability that a PI controller moves every `update` towards a
//! queueing delay of `target` (sections 4.1 and 4.2), unless a burst allowance is left (4.4). The step
//! is scaled by the probability's own size ([`Tuning`]) and capped (5.5), and an idle queue decays it
//! (4.2: at a delay of zero; appendix B does so below half the target). Choices are made regular by accumulated probability
//! (5.4). Above `mark_ceiling` ECN-capable packets are dropped, too (5.1).
//!
//! The delay comes from the link's rate, from time stamps, or from measured departures (5.2):
//! [`Delay`]. Updates happen at the multiples of `update`, exactly as if by a timer; see
//! [`super`]. [`Options::hpsr_2013`] is the first paper (Pan et al., HPSR 2013): other constants, three
//! tuning bands, none of the RFC's later safeguards.
//!
//! Left out: switching itself off below a share of the buffer (5.3), probability by packet size, and what
//! Linux adds to the RFC, 0.02 more with each update above 250 ms.

use super::ecn::Treatment;
use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// QDELAY_REF.
        target: Span as positive_span() = "15ms",
        /// T_UPDATE.
        update: Span as positive_span() = "15ms",
        /// Gain of the delay's distance from the target.
        alpha: f64 as number(0.0, 1e6, "1/s") = "0.125",
        /// Gain of the delay's growth since the last update.
        beta: f64 as number(0.0, 1e6, "1/s") = "1.25",
        /// MAX_BURST: how long nothing is chosen after a calm.
        max_burst: Span = "150ms",
        /// How small probabilities shrink the step.
        tuning: Tuning = "rfc8033",
        /// The RFC's safeguards: no choice while the last delay was below half the target and the
        /// probability below 0.2, or with at most two packets of mean_packet waiting (4.1); a step is at
        /// most 0.02 from a probability of 0.1 on (5.5); decay when idle (4.2).
        safeguards: bool = "true",
        /// Choices are spread by accumulated probability: none below 0.85, one for certain from 8.5 (5.4).
        derandomised: bool = "true",
        /// MEAN_PKTSIZE, bytes.
        mean_packet: u32 as count(1, 65_535) = "1000",
        /// mark_ecnth: above this probability ECN-capable packets are dropped instead of marked.
        mark_ceiling: f64 as share() = "0.1",
        /// Where the queueing delay comes from.
        delay "delay_from": Delay = "known-rate",
        /// DQ_THRESHOLD, bytes, of delay_from = departures (section 5.2). A queue that never holds as much
        /// is never measured, and PIE then never acts.
        dq_threshold: u32 as count(1, 1_000_000_000) = "16384",
        /// What happens to chosen packets.
        ecn: Treatment = "mark",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

crate::words! {
    /// How the step shrinks with the probability itself.
    pub enum Tuning {
        /// RFC 8033 section 4.2: halved below 0.1, and by 4 more with each decade down to 1e-6.
        Rfc8033 = "rfc8033",
        /// HPSR 2013, section IV: over 8 below 0.01, over 2 below 0.1.
        Hpsr2013 = "hpsr2013",
    }
}

crate::words! {
    /// Where the queueing delay comes from.
    pub enum Delay {
        /// Bytes waiting over the link's rate.
        KnownRate = "known-rate",
        /// How long the last packet that left had waited; zero once the queue is empty.
        TimeStamps = "time-stamps",
        /// Bytes waiting over the measured departure rate (section 5.2): each time so many bytes have left
        /// a queue that was at least as long. Until the first measurement the delay counts as zero.
        Departures = "departures",
    }
}

impl Options {
    /// RFC 8033 with room for `packets`, behind a known rate.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }

    /// The paper of 2013: target 20 ms, update 30 ms, burst 100 ms, plain coins.
    pub fn hpsr_2013(packets: u32) -> Self {
        Self {
            target: Span::from_millis(20),
            update: Span::from_millis(30),
            max_burst: Span::from_millis(100),
            tuning: Tuning::Hpsr2013,
            safeguards: false,
            derandomised: false,
            ..Self::packets(packets)
        }
    }
}

/// First in, first out, under a PI controller.
#[derive(Clone, Debug)]
pub struct Pie {
    limit: Limit,
    waiting: Fifo,
    law: Law,
    rng: Rng,
}

/// PIE's law over one queue: whom it chooses on arrival.
#[derive(Clone, Debug)]
pub(super) struct Law {
    options: Options,
    rate: BitRate,
    control: Control,
    accumulated: f64,
    next_update: Time,
    /// Delay of the last packet that left.
    sojourn: Span,
    meter: Meter,
}

/// What the controller remembers between two updates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Control {
    probability: f64,
    /// Delay at the last update, s.
    delay: f64,
    burst: Span,
}

/// Departure rate measurement, RFC 8033 section 5.2.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// When the present measurement began, and the bytes that left since.
    running: Option<(Time, u64)>,
    /// Average time that `threshold` bytes take, s; 0 before the first measurement.
    average: f64,
}

impl Meter {
    fn on_departure(&mut self, now: Time, backlog: u64, size: u32, threshold: u32) {
        if self.running.is_none() && backlog >= u64::from(threshold) {
            self.running = Some((now, 0));
        }
        let Some((start, bytes)) = &mut self.running else { return };
        *bytes += u64::from(size);
        if *bytes < u64::from(threshold) {
            return;
        }
        let took = now.since(*start).as_secs_f64();
        let weight = f64::from(threshold) / 65_536.0;
        let first = self.average <= 0.0;
        self.average = if first { took } else { weight * took + (1.0 - weight) * self.average };
        self.running = None;
    }
}

impl Pie {
    /// An empty queue; the first update is one period from the beginning of the world.
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        let (limit, law) = (options.limit, Law::new(options, setup.rate));
        Self { limit, waiting: Fifo::default(), law, rng: setup.stream() }
    }

    /// The drop probability as of the last update before `now`.
    pub fn probability(&mut self, now: Time) -> f64 {
        self.law.catch_up(now, &self.waiting);
        self.law.control.probability
    }
}

impl Law {
    /// The law over a queue that is empty.
    pub(super) fn new(options: Options, rate: BitRate) -> Self {
        Self {
            options,
            rate,
            control: Control { probability: 0.0, delay: 0.0, burst: options.max_burst },
            accumulated: 0.0,
            next_update: Time::ZERO + options.update,
            sojourn: Span::ZERO,
            meter: Meter::default(),
        }
    }

    /// A packet arrives at the queue that waits, which has room: the packet, perhaps marked, if it stays.
    pub(super) fn admit(
        &mut self,
        now: Time,
        packet: Packet,
        waiting: &Fifo,
        rng: &mut Rng,
        verdicts: &mut Verdicts,
    ) -> Option<Packet> {
        self.catch_up(now, waiting);
        let treatment = self.options.ecn;
        if treatment.exempts(&packet) || !self.chooses(waiting, rng) {
            return Some(packet);
        }
        if self.control.probability > self.options.mark_ceiling {
            verdicts.drop(packet, DropReason::Early);
            return None;
        }
        treatment.choose(packet, verdicts)
    }

    /// A packet found no room.
    pub(super) fn overflow(&mut self, packet: Packet, verdicts: &mut Verdicts) {
        self.accumulated = 0.0;
        verdicts.drop(packet, DropReason::Overflow);
    }

    /// Takes the oldest packet out.
    pub(super) fn dequeue(&mut self, now: Time, waiting: &mut Fifo) -> Option<Packet> {
        self.catch_up(now, waiting);
        let backlog = waiting.bytes();
        let (came, packet) = waiting.pop()?;
        self.sojourn = now.since(came);
        if self.options.delay == Delay::Departures {
            self.meter.on_departure(now, backlog, packet.size(), self.options.dq_threshold);
        }
        Some(packet)
    }

    /// Every update that was due: the queue has not changed since the last call.
    fn catch_up(&mut self, now: Time, waiting: &Fifo) {
        while self.next_update <= now {
            let before = self.control;
            self.control = self.updated(waiting);
            let missed =
                now.since(self.next_update).as_nanos() / self.options.update.as_nanos().max(1);
            let settled = before == self.control;
            let periods = if settled { missed + 1 } else { 1 };
            self.next_update += self.options.update * periods;
            if self.options.update.is_zero() {
                return;
            }
        }
    }

    /// The controller after one update: RFC 8033 section 4.2.
    fn updated(&self, waiting: &Fifo) -> Control {
        let Control { probability: old, delay: old_delay, burst } = self.control;
        let options = &self.options;
        let delay = self.delay(waiting);
        let target = options.target.as_secs_f64();
        let mut step = options.alpha * (delay - target) + options.beta * (delay - old_delay);
        step /= options.tuning.divisor(old);
        if options.safeguards && old >= 0.1 {
            step = step.min(0.02);
        }
        let mut probability = old + step;
        if options.safeguards && delay <= 0.0 && old_delay <= 0.0 {
            probability *= 1.0 - 1.0 / 64.0;
        }
        let probability = probability.clamp(0.0, 1.0);
        let calm = probability <= 0.0 && delay < target / 2.0 && old_delay < target / 2.0;
        let burst = if calm { options.max_burst } else { burst.saturating_sub(options.update) };
        Control { probability, delay, burst }
    }

    /// The queueing delay, s.
    fn delay(&self, waiting: &Fifo) -> f64 {
        let bytes = waiting.bytes() as f64;
        match self.options.delay {
            Delay::KnownRate if self.rate == BitRate::INFINITE => 0.0,
            Delay::KnownRate => bytes * 8.0 / self.rate.as_bps() as f64,
            Delay::TimeStamps if waiting.is_empty() => 0.0,
            Delay::TimeStamps => self.sojourn.as_secs_f64(),
            Delay::Departures => bytes * self.meter.average / f64::from(self.options.dq_threshold),
        }
    }

    /// Whether this arrival is chosen: sections 4.1, 4.4 and 5.4.
    fn chooses(&mut self, waiting: &Fifo, rng: &mut Rng) -> bool {
        let Control { probability, delay, burst } = self.control;
        let options = &self.options;
        if !burst.is_zero() {
            return false;
        }
        if options.safeguards {
            let short_delay = delay < options.target.as_secs_f64() / 2.0 && probability < 0.2;
            let short = waiting.bytes() <= 2 * u64::from(options.mean_packet);
            if short_delay || short {
                return false;
            }
        }
        if !options.derandomised {
            return probability > 0.0 && rng.chance(probability);
        }
        if probability <= 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let chosen = self.accumulated >= 8.5 || rng.chance(probability);
        if chosen {
            self.accumulated = 0.0;
        }
        chosen
    }
}

impl Tuning {
    /// What a step is divided by at this probability.
    fn divisor(self, probability: f64) -> f64 {
        let bands: &[(f64, f64)] = match self {
            Self::Rfc8033 => &[
                (0.000_001, 2048.0),
                (0.000_01, 512.0),
                (0.000_1, 128.0),
                (0.001, 32.0),
                (0.01, 8.0),
                (0.1, 2.0),
            ],
            Self::Hpsr2013 => &[(0.01, 8.0), (0.1, 2.0)],
        };
        bands.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| *divisor)
    }
}

impl Queue for Pie {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let Self { limit, waiting, law, rng } = self;
        if !waiting.admits(limit, &packet) {
            law.overflow(packet, verdicts);
        } else if let Some(packet) = law.admit(now, packet, waiting, rng, verdicts) {
            waiting.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        self.law.dequeue(now, &mut self.waiting)
    }

    crate::forward! { waiting: packets bytes }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}
