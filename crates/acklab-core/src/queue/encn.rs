//! The router of ENCN, explicit non-congestion notification: it marks packets while its queue is
//! *short*, so CE means "not congested" and a sender may grow.
//!
//! The INDIN 2016 paper was not at hand; this is what the ANCE paper (INDIN 2017) says of it: the
//! router compares its queue with Qmin and sets a bit where it is below. Nothing is dropped but by
//! overflow, and packets that are not ECN-capable pass unmarked, which their sender reads as congestion.

use super::ecn::Moment;
use super::{Fifo, Limit, Queue, Unit, Verdicts};
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};
use crate::time::Time;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How much may wait.
    pub limit: Limit,
    /// What Qmin is counted in.
    pub unit: Unit,
    /// Qmin: a packet is marked while less than this waits.
    pub q_min: f64,
    /// When the queue is compared with it.
    pub moment: Moment,
}

impl Config {
    /// Qmin = 3 packets (INDIN 2017: 3 kB of 1 kB packets).
    pub fn packets(packets: u32) -> Self {
        Self {
            limit: Limit::packets(packets),
            unit: Unit::Packets,
            q_min: 3.0,
            moment: Moment::Arrival,
        }
    }
}

/// First in, first out, with a mark below Qmin.
#[derive(Clone, Debug)]
pub struct Encn {
    config: Config,
    waiting: Fifo,
}

impl Encn {
    /// An empty queue.
    pub fn new(config: Config) -> Self {
        Self { config, waiting: Fifo::default() }
    }

    fn mark(&self, moment: Moment, packet: Packet, verdicts: &mut Verdicts) -> Packet {
        let short = self.config.unit.length(&self.waiting) < self.config.q_min;
        if short && self.config.moment == moment && packet.ecn != Ecn::NotEct {
            verdicts.mark(packet)
        } else {
            packet
        }
    }
}

impl Queue for Encn {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        if self.waiting.admits(&self.config.limit, &packet) {
            let packet = self.mark(Moment::Arrival, packet, verdicts);
            self.waiting.push(now, packet);
        } else {
            verdicts.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        let (_, packet) = self.waiting.pop()?;
        Some(self.mark(Moment::Departure, packet, verdicts))
    }

    fn packets(&self) -> u32 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }
}
