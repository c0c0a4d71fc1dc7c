//! Rounds: one round trip of data, from the ACK that opens it to the ACK of the last byte that was
//! on the way then (RFC 9406 section 4.2 `windowEnd`; Vegas' and Westwood's "once per RTT").
//!
//! Counted from ACKs alone, in bytes, so that an algorithm needs no sequence numbers.

use super::AckSample;

/// Tells where one round ends and the next begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Acknowledged in all, bytes.
    acked: u64,
    /// The round ends once this much is acknowledged.
    end: u64,
}

impl Rounds {
    /// Takes an ACK; true where it ends a round. The first ACK opens the first round and ends none.
    pub fn on_ack(&mut self, sample: &AckSample) -> bool {
        let is_first = self.end == 0;
        self.acked = self.acked.saturating_add(sample.acked);
        if sample.acked == 0 || self.acked < self.end {
            return false;
        }
        let in_flight = sample.in_flight.saturating_sub(sample.acked);
        self.end = self.acked.saturating_add(in_flight).max(self.acked.saturating_add(1));
        !is_first
    }

    /// Begins a new round with the next ACK.
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    #[test]
    fn a_round_ends_with_the_ack_of_what_was_on_the_way_when_it_began() {
        let mut rounds = Rounds::default();
        let ack = AckSample { in_flight: 4000, ..ack_of(1000) };
        // The first ACK leaves three segments on the way: the third ACK after it ends the round.
        let ends = [(); 7].map(|()| rounds.on_ack(&ack));
        assert_eq!(ends, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn a_duplicate_ack_ends_nothing() {
        let mut rounds = Rounds::default();
        rounds.on_ack(&AckSample { in_flight: 1000, ..ack_of(1000) });
        assert!(!rounds.on_ack(&AckSample { acked: 0, ..ack_of(1000) }));
        assert!(rounds.on_ack(&ack_of(1000)));
    }
}
