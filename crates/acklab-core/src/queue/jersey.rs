//! The congestion warning of TCP-Jersey (Xu, Tian, Ansari, IEEE JSAC 22(4), 2004): a router marks *all*
//! packets while its average queue is above a threshold, so that a sender can tell a loss by
//! congestion from one by noise.
//!
//! The average is an EWMA over arrivals and is not decayed over idle times. The mark is a warning, not
//! a stand-in for a drop: packets that are not ECN-capable pass. Threshold and weight of the ANCE
//! paper's runs are unknown; the defaults are ours.

use super::ecn::Moment;
use super::{Fifo, Limit, Queue, Setup, Unit, Verdicts};
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};
use crate::time::Time;

crate::options! {
    /// Parameters; the defaults are ours.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Packets are marked while the average is above this; a third of the room where there is a limit.
        threshold: f64 as number(0.0, 1e9, "packets") = "5",
        /// Weight of the present length in the average; 1: no averaging. RED's 0.002 would take 2.7 s at 187
        /// packets/s, too long for a warning.
        weight: f64 as positive_share() = "0.2",
        /// When the average is compared with the threshold.
        moment: Moment = "arrival",
        /// What the threshold is counted in.
        unit: Unit = "packets",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// Room for `packets`, with the threshold at a third of it.
    pub fn packets(packets: u32) -> Self {
        let plain = Self { limit: Limit::packets(packets), ..Self::default() };
        if packets == u32::MAX {
            return plain;
        }
        Self { threshold: f64::from(packets) / 3.0, ..plain }
    }
}

/// First in, first out, with a warning above an average.
#[derive(Clone, Debug)]
pub struct Jersey {
    options: Options,
    waiting: Fifo,
    average: f64,
}

impl Jersey {
    /// An empty queue.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self { options, waiting: Fifo::default(), average: 0.0 }
    }

    fn mark(&self, moment: Moment, packet: Packet, verdicts: &mut Verdicts) -> Packet {
        let warns = self.average > self.options.threshold && self.options.moment == moment;
        if warns && packet.ecn != Ecn::NotEct { verdicts.mark(packet) } else { packet }
    }
}

impl Queue for Jersey {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let length = self.options.unit.length(&self.waiting);
        self.average += self.options.weight * (length - self.average);
        if self.waiting.admits(&self.options.limit, &packet) {
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

    crate::forward! { waiting: packets bytes }
}
