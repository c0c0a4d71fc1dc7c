//! DualPI2: RFC 9332, the coupled dual queue of L4S, with the algorithms of its appendix A.
//!
//! Packets that are ECT(1) or CE wait in the L queue, the others in the C queue. One PI controller on
//! the C queue's delay moves a base probability p'. A C packet is chosen with p_C = p'^2, an L packet
//! marked with the larger of p_CL = k p' (the coupling) and what its own shallow AQM says ([`Laqm`]).
//! The scheduler prefers L without starving C ([`Scheduler`]).
//!
//! Choices are made by accumulation (`recur`, A.1): no coin is flipped. When p_CL reaches 1 the queues
//! are overloaded (A.2): both drop with p_C, whatever the ECN field says, and L marks the rest.
//! The delay that drives p' is that of the packet at the head of C; the update is lazy, see [`super`].
//! Left out: Curvy RED (appendix B), drop on saturated buffers beyond tail drop.

use super::ecn::Treatment;
use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};
use crate::time::{Span, Time};

crate::options! {
    /// Parameters; defaults are those of RFC 9332 appendix A.1 with RTT_max = 100 ms, RTT_typ = 15 ms.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Delay of the C queue that is aimed at.
        target: Span as positive_span() = "15ms",
        /// Tupdate: min(target, RTT_max / 3).
        update: Span as positive_span() = "15ms",
        /// Integral gain, per second and update: 0.1 Tupdate / RTT_max^2.
        alpha: f64 as number(0.0, 1e6, "Hz") = "0.15",
        /// Proportional gain: 0.3 / RTT_max.
        beta: f64 as number(0.0, 1e6, "Hz") = "3",
        /// k: how much the L queue's marks go beyond the C queue's.
        coupling: f64 as number(0.0, 1000.0, "") = "2",
        /// The L queue's own AQM is silent unless more packets than this wait there, the one that leaves
        /// counted: Th_len.
        l_packets: u32 = "1",
        /// What happens to chosen packets of the C queue.
        ecn: Treatment = "mark",
    }
    beside {
        /// How much may wait in both queues together.
        limit: Limit = Limit::NONE,
        /// The L queue's own AQM.
        laqm: Laqm = Laqm::Ramp { min: Span::from_micros(800), range: Span::from_micros(400) },
        /// Which queue goes next.
        scheduler: Scheduler = Scheduler::Weighted { classic: 1.0 / 16.0 },
    }
}

/// The L queue's own AQM: its marking probability as a function of a packet's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laqm {
    /// 1 above `threshold`, else 0 (1 ms: RFC 9332 section 2.5.1.1's step variant).
    Step {
        /// Delay from which all are marked.
        threshold: Span,
    },
    /// From 0 at `min` to 1 at `min + range` (appendix A.1: 800 us and 400 us).
    Ramp {
        /// Delay from which some are marked.
        min: Span,
        /// How much more delay until all are.
        range: Span,
    },
}

/// Which queue goes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// Weighted round robin by bytes: while both wait, C gets this share of the link.
    Weighted {
        /// Share of the C queue: 1/16.
        classic: f64,
    },
    /// Time-shifted FIFO: the older head goes first, after `shift` was added to the age of L's.
    TimeShifted {
        /// Head start of the L queue; RFC 9332 section 4.1.1 has 2 targets.
        shift: Span,
    },
}

impl Options {
    /// RFC 9332 appendix A.1 with room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// Two queues, one controller.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    options: Options,
    low: Lane,
    classic: Lane,
    /// p'.
    base: f64,
    /// C queue's delay at the last update, s.
    delay: f64,
    next_update: Time,
    /// Bytes that C has earned and not sent while both queues waited.
    credit: f64,
}

/// One of the two queues and what its choices have accumulated.
#[derive(Clone, Debug, Default)]
struct Lane {
    waiting: Fifo,
    accumulated: f64,
}

impl Lane {
    /// Chooses one packet in 1/probability.
    fn recurs(&mut self, probability: f64) -> bool {
        self.accumulated += probability;
        let chosen = self.accumulated > 1.0;
        if chosen {
            self.accumulated -= 1.0;
        }
        chosen
    }

    fn age(&self, now: Time) -> Span {
        self.waiting.oldest().map_or(Span::ZERO, |came| now.since(came))
    }
}

impl DualPi2 {
    /// Empty queues.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self {
            options,
            low: Lane::default(),
            classic: Lane::default(),
            base: 0.0,
            delay: 0.0,
            next_update: Time::ZERO + options.update,
            credit: 0.0,
        }
    }

    /// p', the base probability, as of the last update before `now`.
    pub fn base_probability(&mut self, now: Time) -> f64 {
        self.catch_up(now);
        self.base
    }

    /// p_C, with which C packets are chosen.
    pub fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL, with which L packets are marked at least.
    pub fn coupled_probability(&self) -> f64 {
        self.options.coupling * self.base
    }

    /// Every update that was due.
    fn catch_up(&mut self, now: Time) {
        let Options { update, target, alpha, beta, .. } = self.options;
        while self.next_update <= now && !update.is_zero() {
            let delay = self.classic.age(self.next_update).as_secs_f64();
            let step = alpha * (delay - target.as_secs_f64()) + beta * (delay - self.delay);
            let base = (self.base + step).clamp(0.0, 1.0);
            let settled = self.classic.waiting.is_empty()
                && (base.to_bits(), delay.to_bits()) == (self.base.to_bits(), self.delay.to_bits());
            (self.base, self.delay) = (base, delay);
            let missed = now.since(self.next_update).as_nanos() / update.as_nanos();
            self.next_update += update * if settled { missed + 1 } else { 1 };
        }
    }

    fn takes_low(&self, now: Time) -> bool {
        if self.classic.waiting.is_empty() || self.low.waiting.is_empty() {
            return self.classic.waiting.is_empty();
        }
        match self.options.scheduler {
            Scheduler::Weighted { .. } => self.credit <= 0.0,
            Scheduler::TimeShifted { shift } => self.low.age(now) + shift >= self.classic.age(now),
        }
    }

    /// Books `size` bytes sent for the weighted round robin.
    fn book(&mut self, low: bool, size: u32) {
        let Scheduler::Weighted { classic } = self.options.scheduler else { return };
        let both = !self.classic.waiting.is_empty() && !self.low.waiting.is_empty();
        self.credit = match (both, low) {
            (false, _) => 0.0,
            (true, true) => self.credit + classic * f64::from(size),
            (true, false) => self.credit - (1.0 - classic) * f64::from(size),
        };
    }

    /// What becomes of an L packet that leaves: appendix A.1, lines 4 to 7, and A.2.
    fn leave_low(&mut self, packet: Packet, own: f64, verdicts: &mut Verdicts) -> Option<Packet> {
        let coupled = self.coupled_probability();
        let overload = coupled >= 1.0;
        if overload && self.low.recurs(self.classic_probability()) {
            verdicts.drop(packet, DropReason::Early);
            return None;
        }
        let marks = overload || self.low.recurs(own.max(coupled));
        Some(if marks { verdicts.mark(packet) } else { packet })
    }

    fn leave_classic(&mut self, packet: Packet, verdicts: &mut Verdicts) -> Option<Packet> {
        if self.options.ecn.exempts(&packet) {
            return Some(packet);
        }
        if !self.classic.recurs(self.classic_probability()) {
            return Some(packet);
        }
        if self.coupled_probability() >= 1.0 {
            verdicts.drop(packet, DropReason::Early);
            return None;
        }
        self.options.ecn.choose(packet, verdicts)
    }
}

impl Laqm {
    /// The marking probability for a packet that waited for `delay`.
    fn probability(self, delay: Span) -> f64 {
        match self {
            Self::Step { threshold } => f64::from(u8::from(delay > threshold)),
            Self::Ramp { min, range } if delay >= min + range => 1.0,
            Self::Ramp { min, range } => {
                delay.saturating_sub(min).as_secs_f64() / range.as_secs_f64()
            }
        }
    }
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        self.catch_up(now);
        if !self.options.limit.admits(self.packets(), self.bytes(), packet.size()) {
            verdicts.drop(packet, DropReason::Overflow);
        } else if matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce) {
            self.low.waiting.push(now, packet);
        } else {
            self.classic.waiting.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        self.catch_up(now);
        loop {
            let low = self.takes_low(now);
            let length = self.low.waiting.packets();
            let lane = if low { &mut self.low } else { &mut self.classic };
            let (came, packet) = lane.waiting.pop()?;
            let left = if low {
                let speaks = length > self.options.l_packets;
                let delay = now.since(came);
                let own = if speaks { self.options.laqm.probability(delay) } else { 0.0 };
                self.leave_low(packet, own, verdicts)
            } else {
                self.leave_classic(packet, verdicts)
            };
            if left.is_some() {
                self.book(low, packet.size());
                return left;
            }
        }
    }

    fn packets(&self) -> u32 {
        self.low.waiting.packets() + self.classic.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.low.waiting.bytes() + self.classic.waiting.bytes()
    }
}
