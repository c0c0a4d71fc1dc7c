//! A threshold on the queue as it is now: the switch of DCTCP (RFC 8257 section 3.1; Alizadeh et al.,
//! SIGCOMM 2010). A packet that finds more than `threshold` waiting is chosen; nothing is averaged and
//! no coin is flipped. What does not fit is dropped.

use super::ecn::{Moment, Treatment};
use super::{Fifo, Limit, Queue, Unit, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How much may wait.
    pub limit: Limit,
    /// What the threshold is counted in.
    pub unit: Unit,
    /// K: a packet is chosen while more than this waits, itself not counted. DCTCP's analysis asks for
    /// more than a seventh of the bandwidth-delay product.
    pub threshold: f64,
    /// When the queue is compared with it. At departure a chosen packet that cannot be marked leaves
    /// all the same, because dropping it would no longer make room.
    pub moment: Moment,
    /// What happens to chosen packets.
    pub ecn: Treatment,
}

impl Config {
    /// K = 3 packets, the bandwidth-delay product of the ANCE scenarios (16 packets) over seven,
    /// rounded up.
    pub fn packets(packets: u32) -> Self {
        Self {
            limit: Limit::packets(packets),
            unit: Unit::Packets,
            threshold: 3.0,
            moment: Moment::Arrival,
            ecn: Treatment::MARK,
        }
    }
}

/// First in, first out, with a mark above a threshold.
#[derive(Clone, Debug)]
pub struct Threshold {
    config: Config,
    waiting: Fifo,
}

impl Threshold {
    /// An empty queue.
    pub fn new(config: Config) -> Self {
        Self { config, waiting: Fifo::default() }
    }

    /// Whether there is room for `packet`.
    pub fn admits(&self, packet: &Packet) -> bool {
        self.waiting.admits(&self.config.limit, packet)
    }

    /// Whether `packet` is chosen at this moment.
    fn chooses(&self, moment: Moment, packet: &Packet) -> bool {
        let Config { unit, threshold, ecn, .. } = &self.config;
        self.config.moment == moment
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
            self.config.ecn.choose(packet, verdicts)
        } else {
            Some(packet)
        };
        if let Some(packet) = kept {
            self.waiting.push(now, packet);
        }
    }

    fn dequeue(&mut self, _now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        let (_, packet) = self.waiting.pop()?;
        let marked = self.chooses(Moment::Departure, &packet) && self.config.ecn.marks(&packet);
        Some(if marked { verdicts.mark(packet) } else { packet })
    }

    fn packets(&self) -> u32 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }
}
