//! Reno's window: slow start, congestion avoidance and halving (RFC 5681 section 3), counted in
//! bytes (RFC 3465 with L = 1 in slow start, as RFC 5681 equation 2 has it).
//!
//! Which bytes are sent again, and the inflation of the window by duplicate ACKs, belong to loss
//! recovery; so does the difference between Reno and NewReno.

use super::{AckSample, CongestionControl, EcnSample, LossSample, RtoSample, Snapshot, Start};
use crate::time::Time;

/// RFC 5681.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    mss: u64,
    initial_window: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Acknowledged since the window last grew, bytes (congestion avoidance).
    acked: u64,
}

impl Reno {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        let mss = u64::from(start.mss.max(1));
        Self {
            mss,
            initial_window: start.initial_window.max(mss),
            cwnd: start.initial_window.max(mss),
            ssthresh: start.initial_ssthresh,
            acked: 0,
        }
    }

    /// A relative of Reno sets another threshold; the window never rises by it.
    pub(super) fn reduce_to(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh.max(2 * self.mss);
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.acked = 0;
    }

    /// A relative of Reno decides about the window itself, bytes; at least two segments.
    pub(super) fn set_window(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(2 * self.mss);
    }

    /// RFC 5681 equation 4, for "no more than" what the window let out: the flight also counts what
    /// arrived above a hole (SACK), and what limited transmit added (RFC 3042).
    fn half(&self, in_flight: u64) -> u64 {
        (in_flight.min(self.cwnd) / 2).max(2 * self.mss)
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        // RFC 3168 section 6.1.2: an echo of congestion lets nothing grow.
        if sample.acked == 0 || sample.ece || sample.in_fast_recovery || !sample.cwnd_limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(sample.acked.min(self.mss));
            return;
        }
        // One MSS for each window's worth of acknowledged bytes.
        self.acked = self.acked.saturating_add(sample.acked);
        if self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd = self.cwnd.saturating_add(self.mss);
        }
    }

    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.reduce_to(self.half(sample.in_flight));
    }

    /// RFC 3168 section 6.1.2 halves the window itself; equation 4 with the flight is for losses.
    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {
        self.reduce_to(self.half(self.cwnd));
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        if !sample.keeps_threshold() {
            self.ssthresh = self.half(sample.in_flight);
        }
        self.cwnd = self.mss;
        self.acked = 0;
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }
}

/// Reno whose window grows by ACKs: one that acknowledges two segments counts as one that acknowledges
/// one (RFC 5681 equation 3).
#[derive(Clone, Copy, Debug)]
pub struct PerAck(Reno);

impl PerAck {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        Self(Reno::new(start))
    }
}

impl CongestionControl for PerAck {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let acked = sample.acked.min(self.0.mss);
        self.0.on_ack(now, &AckSample { acked, ..*sample });
    }

    crate::forward! { 0: on_loss on_ecn on_rto on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn reno(initial_ssthresh: u64) -> Reno {
        Reno::new(&Start { mss: 1000, initial_window: MSS, initial_ssthresh, seed: 1 })
    }

    fn acks(reno: &mut Reno, count: u32) -> u64 {
        for _ in 0..count {
            reno.on_ack(Time::ZERO, &crate::cc::ack_of(1000));
        }
        reno.cwnd()
    }

    #[test]
    fn slow_start_adds_a_segment_per_ack_and_avoidance_one_per_window() {
        // RFC 5681 section 3.1, equations 2 and 3.
        let mut reno = reno(4 * MSS);
        assert_eq!(acks(&mut reno, 3), 4 * MSS);
        assert_eq!(acks(&mut reno, 3), 4 * MSS);
        assert_eq!(acks(&mut reno, 1), 5 * MSS);
        assert_eq!(acks(&mut reno, 4), 5 * MSS);
        assert_eq!(acks(&mut reno, 1), 6 * MSS);
    }

    #[test]
    fn loss_halves_the_flight_and_a_time_out_leaves_one_segment() {
        let mut reno = reno(u64::MAX);
        acks(&mut reno, 19);
        reno.on_loss(Time::ZERO, &LossSample { in_flight: 18 * MSS, ece: false });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: 9 * MSS, ssthresh: 9 * MSS });
        reno.on_rto(Time::ZERO, &RtoSample { in_flight: 8 * MSS, ..RtoSample::default() });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: MSS, ssthresh: 4 * MSS });
        // A second time-out leaves the threshold, and a late mark does not raise the window.
        reno.on_rto(Time::ZERO, &RtoSample { in_flight: MSS, again: true, ..RtoSample::default() });
        reno.on_ecn(Time::ZERO, &EcnSample { in_flight: 20 * MSS });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: MSS, ssthresh: 2 * MSS });
    }

    #[test]
    fn a_flight_above_the_window_raises_no_threshold_and_one_window_is_answered_for_once() {
        // With SACK what arrived above a hole is in the flight and not on the way.
        let mut reno = reno(u64::MAX);
        acks(&mut reno, 19);
        let flight = RtoSample { in_flight: 90 * MSS, ..RtoSample::default() };
        let mut alone = reno;
        alone.on_rto(Time::ZERO, &flight);
        assert_eq!(alone.snapshot(), Snapshot { cwnd: MSS, ssthresh: 10 * MSS });
        reno.on_loss(Time::ZERO, &LossSample { in_flight: 22 * MSS, ece: false });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: 10 * MSS, ssthresh: 10 * MSS });
        reno.on_rto(Time::ZERO, &RtoSample { recovering: true, ..flight });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: MSS, ssthresh: 10 * MSS });
    }

    #[test]
    fn a_mark_halves_the_window_whatever_is_in_flight() {
        let mut reno = reno(u64::MAX);
        acks(&mut reno, 19);
        reno.on_ecn(Time::ZERO, &EcnSample { in_flight: 5 * MSS });
        assert_eq!(reno.snapshot(), Snapshot { cwnd: 10 * MSS, ssthresh: 10 * MSS });
    }
}
