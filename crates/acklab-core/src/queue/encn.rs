//! The router of ENCN, explicit non-congestion notification: it marks packets while its queue is
//! *short*, so CE means "not congested" and a sender may grow.
//!
//! The INDIN 2016 paper was not at hand; this is what the ANCE paper (INDIN 2017) says of it: the
//! router compares its queue with Qmin and sets a bit where it is below. Nothing is dropped but by
//! overflow, and packets that are not ECN-capable pass unmarked, which their sender reads as congestion.

use super::ecn::Moment;
use super::{Fifo, Limit, Queue, Setup, Unit, Verdicts};
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};
use crate::time::Time;

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Qmin: a packet is marked while less than this waits (INDIN 2017: 3 kB of 1 kB packets).
        q_min "threshold": f64 as number(0.0, 1e9, "packets") = "3",
        /// When the queue is compared with it.
        moment: Moment = "arrival",
        /// What Qmin is counted in.
        unit: Unit = "packets",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// Room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// First in, first out, with a mark below Qmin.
#[derive(Clone, Debug)]
pub struct Encn {
    options: Options,
    waiting: Fifo,
}

impl Encn {
    /// An empty queue.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self { options, waiting: Fifo::default() }
    }

    fn mark(&self, moment: Moment, packet: Packet, verdicts: &mut Verdicts) -> Packet {
        let short = self.options.unit.length(&self.waiting) < self.options.q_min;
        if short && self.options.moment == moment && packet.ecn != Ecn::NotEct {
            verdicts.mark(packet)
        } else {
            packet
        }
    }
}

impl Queue for Encn {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
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
