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

    /// RFC 5681 equation 4.
    fn half(&self, in_flight: u64) -> u64 {
        (in_flight / 2).max(2 * self.mss)
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        if sample.in_fast_recovery || !sample.cwnd_limited {
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

    /// The flight may exceed the window, where a time-out shrank it: a loss never raises it.
    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.ssthresh = self.half(sample.in_flight);
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.acked = 0;
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        self.on_loss(now, &LossSample { in_flight: sample.in_flight, ece: true });
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        if !sample.again {
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
