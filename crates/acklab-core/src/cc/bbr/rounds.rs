//! Packet-timed round trips (draft-ietf-ccwg-bbr-06 section 5.5.1): a round ends with the ACK of a
//! segment that left after the round began.

use super::super::RateSample;

/// Counts rounds by deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketRounds {
    next_delivered: u64,
    count: u64,
    started: bool,
}

impl PacketRounds {
    /// UpdateRound: takes an ACK; true where it began a round.
    pub fn on_ack(&mut self, sample: &RateSample) -> bool {
        self.started = sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.next_delivered = sample.total_delivered;
            self.count += 1;
        }
        self.started
    }

    /// Rounds so far.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether the latest ACK began a round.
    pub const fn is_start(&self) -> bool {
        self.started
    }

    /// StartRound: the round in progress ends with the ACK of what leaves from now on.
    pub fn restart(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }
}
