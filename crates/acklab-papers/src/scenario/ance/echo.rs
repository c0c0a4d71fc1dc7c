//! [`EachAck`]: Reno that hears of marks as DCTCP does, one ACK at a time.
//!
//! RFC 3168's receiver goes on echoing a mark until the sender says that it has reduced its window, and a
//! sender lets its window stand on every such ACK. A model of TCP that only copies the mark of a packet to
//! its ACK, as a timed automaton would, has neither: the window is halved once per window of data at the
//! first marked ACK, and grows again from the next.

use acklab_core::cc::reno::Reno;
use acklab_core::cc::{AckSample, CongestionControl, EcnFeedback, EcnSample, SentSample, Start};
use acklab_core::time::Time;

/// Reno with an echo per ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct EachAck {
    reno: Reno,
    /// Payload sent for the first time, and acknowledged, bytes.
    sent: u64,
    acked: u64,
    /// No further halving until this much is acknowledged.
    halved_below: u64,
}

impl EachAck {
    pub(super) fn new(start: &Start) -> Self {
        Self { reno: Reno::new(start), sent: 0, acked: 0, halved_below: 0 }
    }
}

impl CongestionControl for EachAck {
    fn on_sent(&mut self, _now: Time, sample: &SentSample) {
        if !sample.retransmission {
            self.sent += u64::from(sample.bytes);
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.acked += sample.acked;
        if sample.ece && self.acked >= self.halved_below {
            self.halved_below = self.sent;
            self.reno.on_ecn(now, &EcnSample { in_flight: sample.in_flight });
            return;
        }
        self.reno.on_ack(now, &AckSample { ece: false, ..*sample });
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    acklab_core::forward! { reno: on_loss on_ecn on_rto on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use acklab_core::contract::attack_congestion_control;

    use super::*;

    fn start() -> Start {
        Start { mss: 1000, initial_window: 10_000, initial_ssthresh: u64::MAX, seed: 1 }
    }

    #[test]
    fn marks_halve_the_window_once_per_window_of_data_and_it_grows_in_between() {
        let mut cc = EachAck::new(&start());
        let ack = |ece| AckSample {
            acked: 1000,
            delivered: 1000,
            lost: 0,
            ece,
            marked: 0,
            rate: None,
            in_flight: 10_000,
            rtt: None,
            srtt: None,
            cwnd_limited: true,
            in_fast_recovery: false,
        };
        for _ in 0..10 {
            cc.on_sent(
                Time::ZERO,
                &SentSample { bytes: 1000, in_flight: 10_000, retransmission: false },
            );
        }
        cc.on_ack(Time::ZERO, &ack(true));
        assert_eq!(cc.cwnd(), 5000);
        for _ in 0..8 {
            cc.on_ack(Time::ZERO, &ack(true));
        }
        assert_eq!(cc.cwnd(), 6000, "further marks of the same window let it grow");
        cc.on_ack(Time::ZERO, &ack(true));
        assert_eq!(cc.cwnd(), 3000);
    }

    #[test]
    fn it_keeps_the_contract_of_congestion_controls() {
        for seed in 0..50_u8 {
            let bytes: Vec<u8> = (0..400_u16).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
            assert!(attack_congestion_control(&mut EachAck::new(&start()), 1000, &bytes) >= 1000);
        }
    }
}
