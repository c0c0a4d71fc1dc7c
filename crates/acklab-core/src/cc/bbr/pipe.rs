//! What is on the way: sent, less delivered, less lost (C.inflight; RFC 6675's pipe). The samples carry
//! FlightSize, which counts SACKed and lost bytes too.

use super::super::{AckSample, RtoSample, SentSample};

/// An estimate of the bytes between sender and receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    bytes: u64,
    /// Of what a time-out took for lost, not acknowledged yet: bytes.
    repairing: u64,
}

impl Pipe {
    /// A segment left.
    pub fn on_sent(&mut self, sample: &SentSample) {
        self.bytes = self.bytes.saturating_add(u64::from(sample.bytes)).min(sample.in_flight);
    }

    /// An ACK.
    pub fn on_ack(&mut self, sample: &AckSample) {
        self.repairing = self.repairing.saturating_sub(sample.acked);
        let gone = sample.delivered.saturating_add(sample.lost);
        let unacknowledged = sample.in_flight.saturating_sub(sample.acked);
        self.bytes = self.bytes.saturating_sub(gone).min(unacknowledged);
        let is_whole = !sample.in_fast_recovery && self.repairing == 0 && sample.lost == 0;
        if is_whole && sample.delivered == sample.acked {
            // Nothing is missing: every byte without an ACK is on the way.
            self.bytes = unacknowledged;
        }
    }

    /// A time-out: everything is taken for lost, and no ACK will report it as such.
    pub fn on_rto(&mut self, sample: &RtoSample) {
        self.repairing = sample.in_flight;
        self.bytes = 0;
    }

    /// Bytes on the way.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    fn send(pipe: &mut Pipe, in_flight: u64, retransmission: bool) {
        pipe.on_sent(&SentSample { bytes: 1000, in_flight, retransmission });
    }

    #[test]
    fn sacked_and_lost_bytes_are_not_on_the_way_and_sent_again_they_are() {
        let mut pipe = Pipe::default();
        (1..=10).for_each(|count| send(&mut pipe, count * 1000, false));
        // Three of ten are SACKed behind a lost one.
        let sack = AckSample { acked: 0, in_flight: 10_000, ..ack_of(1000) };
        pipe.on_ack(&sack);
        pipe.on_ack(&sack);
        pipe.on_ack(&AckSample { lost: 1000, ..sack });
        assert_eq!(pipe.bytes(), 6000);
        send(&mut pipe, 10_000, true);
        assert_eq!(pipe.bytes(), 7000);
        // The hole is filled: four at once, one of them new.
        let fills = AckSample { acked: 4000, delivered: 1000, in_fast_recovery: true, ..sack };
        pipe.on_ack(&fills);
        assert_eq!(pipe.bytes(), 6000);
    }

    #[test]
    fn after_a_timeout_only_what_was_sent_again_is_on_the_way() {
        let mut pipe = Pipe::default();
        (1..=10).for_each(|count| send(&mut pipe, count * 1000, false));
        pipe.on_rto(&RtoSample { in_flight: 10_000, ..RtoSample::default() });
        assert_eq!(pipe.bytes(), 0);
        send(&mut pipe, 10_000, true);
        send(&mut pipe, 10_000, true);
        pipe.on_ack(&AckSample { in_flight: 10_000, ..ack_of(1000) });
        assert_eq!(pipe.bytes(), 1000);
        // All of it is acknowledged: what is out now is on the way.
        pipe.on_ack(&AckSample { acked: 9000, in_flight: 12_000, ..ack_of(9000) });
        assert_eq!(pipe.bytes(), 3000);
    }
}
