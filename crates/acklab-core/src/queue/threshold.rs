//! A threshold on the queue as it is now: the switch of DCTCP (RFC 8257 section 3.1; Alizadeh et al.,
//! SIGCOMM 2010). A packet that finds more than `threshold` waiting is chosen; nothing is averaged and
//! no coin is flipped. What does not fit is dropped.

use super::ecn::{Moment, Treatment};
use super::{Fifo, Limit, Queue, Setup, Unit, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// K: a packet is chosen while more than this waits, itself not counted. DCTCP's analysis asks for
        /// more than a seventh of the bandwidth-delay product; 3 packets are that of the ANCE scenarios (16
        /// packets), rounded up.
        threshold: f64 as number(0.0, 1e9, "packets") = "3",
        /// When the queue is compared with it. At departure a chosen packet that cannot be marked leaves
        /// all the same, because dropping it would no longer make room.
        moment: Moment = "arrival",
        /// What the threshold is counted in.
        unit: Unit = "packets",
        /// What happens to chosen packets.
        ecn: Treatment = "mark",
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

/// First in, first out, with a mark above a threshold.
#[derive(Clone, Debug)]
pub struct Threshold {
    options: Options,
    waiting: Fifo,
}

impl Threshold {
    /// An empty queue.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self { options, waiting: Fifo::default() }
    }

    /// Whether there is room for `packet`.
    pub fn admits(&self, packet: &Packet) -> bool {
        self.waiting.admits(&self.options.limit, packet)
    }

    /// Whether `packet` is chosen at this moment.
    fn chooses(&self, moment: Moment, packet: &Packet) -> bool {
        let Options { unit, threshold, ecn, .. } = &self.options;
        self.options.moment == moment
            && unit.length(&self.waiting) > *threshold
            && !packet.returned
            && !ecn.exempts(packet)
    }
}

impl Queue for Threshold {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        if !self.admits(&packet) {
            verdicts.drop(packet, DropReason::Overflow);
            return;
        }
        let kept = if self.chooses(Moment::Arrival, &packet) {
            self.options.ecn.choose(packet, verdicts)
        } else {
            Some(packet)
        };
        if let Some(packet) = kept {
            self.waiting.push(now, packet);
        }
    }

    fn dequeue(&mut self, _now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        let (_, packet) = self.waiting.pop()?;
        let marked = self.chooses(Moment::Departure, &packet) && self.options.ecn.marks(&packet);
        Some(if marked { verdicts.mark(packet) } else { packet })
    }

    crate::forward! { waiting: packets bytes }
}
