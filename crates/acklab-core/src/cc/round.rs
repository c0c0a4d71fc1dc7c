//! Rounds: one round trip of data (RFC 9406 section 4.2; Vegas' and Westwood's "once per RTT").
//!
//! A round ends with the ACK of the first segment that left after it began, which then begins the
//! next. Counted from ACKs alone, in bytes, so that an algorithm needs no sequence numbers: that
//! segment ends where what was on the way before the ACK, and as much as it acknowledged, ends.
//! (RFC 9406 ends a round one segment earlier, with the last one that left before it began.)

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
        self.end = self.acked.saturating_add(sample.in_flight.max(1));
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
    fn a_round_ends_with_the_ack_of_what_left_after_it_began() {
        let mut rounds = Rounds::default();
        let ack = AckSample { in_flight: 4000, ..ack_of(1000) };
        // The first ACK leaves three segments on the way and lets a fourth out.
        let ends = [(); 9].map(|()| rounds.on_ack(&ack));
        let [no, yes] = [false, true];
        assert_eq!(ends, [no, no, no, no, yes, no, no, no, yes]);
    }

    #[test]
    fn a_duplicate_ack_ends_nothing() {
        let mut rounds = Rounds::default();
        rounds.on_ack(&AckSample { in_flight: 1000, ..ack_of(1000) });
        assert!(!rounds.on_ack(&AckSample { acked: 0, ..ack_of(1000) }));
        assert!(rounds.on_ack(&ack_of(1000)));
    }
}
