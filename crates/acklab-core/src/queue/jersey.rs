//! The congestion warning of TCP-Jersey (Xu, Tian, Ansari, IEEE JSAC 22(4), 2004): a router marks *all*
//! packets while its average queue is above a threshold, so that a sender can tell a loss by
//! congestion from one by noise.
//!
//! The average is an EWMA over arrivals and is not decayed over idle times. The mark is a warning, not
//! a stand-in for a drop: packets that are not ECN-capable pass. Threshold and weight of the ANCE
//! paper's runs are unknown; the defaults are ours.

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
    /// What the threshold is counted in.
    pub unit: Unit,
    /// Packets are marked while the average is above this.
    pub threshold: f64,
    /// Weight of the present length in the average; 1: no averaging.
    pub weight: f64,
    /// When the average is compared with the threshold.
    pub moment: Moment,
}

impl Config {
    /// A third of `packets` (5 without a limit), weight 0.2: RED's 0.002 would take 2.7 s at 187
    /// packets/s, too long for a warning.
    pub fn packets(packets: u32) -> Self {
        let threshold = if packets == u32::MAX { 5.0 } else { f64::from(packets) / 3.0 };
        Self {
            limit: Limit::packets(packets),
            unit: Unit::Packets,
            threshold,
            weight: 0.2,
            moment: Moment::Arrival,
        }
    }
}

/// First in, first out, with a warning above an average.
#[derive(Clone, Debug)]
pub struct Jersey {
    config: Config,
    waiting: Fifo,
    average: f64,
}

impl Jersey {
    /// An empty queue.
    pub fn new(config: Config) -> Self {
        Self { config, waiting: Fifo::default(), average: 0.0 }
    }

    /// The average queue, in the unit of the threshold.
    pub const fn average(&self) -> f64 {
        self.average
    }

    fn mark(&self, moment: Moment, packet: Packet, verdicts: &mut Verdicts) -> Packet {
        let warns = self.average > self.config.threshold && self.config.moment == moment;
        if warns && packet.ecn != Ecn::NotEct { verdicts.mark(packet) } else { packet }
    }
}

impl Queue for Jersey {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let length = self.config.unit.length(&self.waiting);
        self.average += self.config.weight * (length - self.average);
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
