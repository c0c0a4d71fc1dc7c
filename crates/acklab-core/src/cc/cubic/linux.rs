//! CUBIC as Linux has it: whole segments.

use super::super::ack_train::Hystart;
use super::super::{
    AckSample, CongestionControl, EcnSample, LossSample, RtoSample, SentSample, Snapshot, Start,
};
use super::{Growth, Options};
use crate::time::Time;

/// The window and what it grows by.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    options: Options,
    mss: u64,
    initial_window: u32,
    /// Segments.
    cwnd: u32,
    /// Segments; `u32::MAX`: none yet.
    ssthresh: u32,
    /// Segments acknowledged towards the next one more.
    count: u32,
    /// Bytes delivered towards the next segment.
    part: u64,
    growth: Growth,
    hystart: Option<Hystart>,
    last_sent: Time,
}

impl Linux {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        let mss = u64::from(start.mss.max(1));
        let segments = |bytes: u64| u32::try_from(bytes / mss).unwrap_or(u32::MAX);
        let initial_window = segments(start.initial_window).max(1);
        let ssthresh = segments(start.initial_ssthresh);
        let watched = options.hystart && ssthresh == u32::MAX;
        Self {
            options,
            mss,
            initial_window,
            cwnd: initial_window,
            ssthresh,
            count: 0,
            part: 0,
            growth: Growth::default(),
            hystart: watched.then(Hystart::default),
            last_sent: Time::ZERO,
        }
    }

    /// Grows with `acked` segments (`tcp_slow_start`, `tcp_cong_avoid_ai`).
    fn grow(&mut self, now: Time, mut acked: u32) {
        if self.cwnd < self.ssthresh {
            let room = self.ssthresh - self.cwnd;
            self.cwnd += acked.min(room);
            acked -= acked.min(room);
        }
        if acked == 0 {
            return;
        }
        let every = self.growth.every(self.cwnd, acked, now, self.options.reno_friendly);
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        self.cwnd += self.count / every;
        self.count %= every;
        self.cwnd = self.cwnd.min(CWND_MAX);
    }

    fn reduce(&mut self) {
        self.ssthresh = self.growth.reduce(self.cwnd, self.options.fast_convergence);
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.hystart = None;
        self.count = 0;
    }
}

impl CongestionControl for Linux {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        if sample.in_flight <= u64::from(sample.bytes) {
            self.growth.on_idle(now, now.since(self.last_sent));
        }
        self.last_sent = now;
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            let young = self.growth.is_young(now);
            self.growth.on_rtt(now, rtt);
            let slow = self.cwnd < self.ssthresh && !young;
            if let Some(hystart) = self.hystart.as_mut().filter(|_| slow)
                && hystart.on_ack(now, sample, self.cwnd.into())
            {
                self.ssthresh = self.cwnd;
                self.hystart = None;
            }
        }
        if sample.acked == 0 || sample.in_fast_recovery || sample.ece || !sample.cwnd_limited {
            return;
        }
        // What a SACK had reported before does not count again.
        self.part += sample.delivered;
        let acked = (self.part / self.mss) as u32;
        self.part %= self.mss;
        self.grow(now, acked);
    }

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {
        self.reduce();
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {
        self.reduce();
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        if !sample.keeps_threshold() {
            self.ssthresh = self.growth.reduce(self.cwnd, self.options.fast_convergence);
        }
        self.growth.forget();
        self.hystart = self.options.hystart.then(Hystart::default);
        (self.cwnd, self.count) = (1, 0);
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    fn cwnd(&self) -> u64 {
        u64::from(self.cwnd) * self.mss
    }

    fn snapshot(&self) -> Snapshot {
        let none = self.ssthresh == u32::MAX;
        let ssthresh = if none { u64::MAX } else { u64::from(self.ssthresh) * self.mss };
        Snapshot { cwnd: self.cwnd(), ssthresh }
    }
}

/// Far beyond any path, so that no arithmetic overflows.
const CWND_MAX: u32 = 1 << 28;
