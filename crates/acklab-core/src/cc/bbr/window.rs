//! The congestion window, and what it was before a recovery or ProbeRTT took it away
//! (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.3; draft-ietf-ccwg-bbr-06 section 5.6.4).

use super::super::{Snapshot, Start};

/// C.cwnd, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    mss: f64,
    initial: f64,
    cwnd: f64,
    prior: f64,
}

impl Window {
    pub(super) fn new(start: &Start) -> Self {
        let mss = f64::from(start.mss.max(1));
        let initial = (start.initial_window as f64).max(mss);
        Self { mss, initial, cwnd: initial, prior: 0.0 }
    }

    /// A full segment.
    pub(super) const fn mss(&self) -> f64 {
        self.mss
    }

    /// The first window.
    pub(super) const fn initial(&self) -> f64 {
        self.initial
    }

    pub(super) const fn bytes(&self) -> f64 {
        self.cwnd
    }

    /// SaveCwnd; `saved`: something took the window away already, and the larger of both counts.
    pub(super) fn save(&mut self, saved: bool) {
        self.prior = if saved { self.prior.max(self.cwnd) } else { self.cwnd };
    }

    /// RestoreCwnd.
    pub(super) fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }

    /// SetCwnd's growth by what was `acked`: up to `target` once the pipe is `full`, and at first in any case.
    pub(super) fn grow(&mut self, acked: f64, target: f64, full: bool, delivered: u64) {
        if full {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || (delivered as f64) < self.initial {
            self.cwnd += acked;
        }
    }

    /// So many bytes were lost.
    pub(super) fn shrink(&mut self, lost: u64) {
        self.cwnd = (self.cwnd - lost as f64).max(self.mss);
    }

    pub(super) fn at_least(&mut self, bytes: f64) {
        self.cwnd = self.cwnd.max(bytes);
    }

    pub(super) fn at_most(&mut self, bytes: f64) {
        self.cwnd = self.cwnd.min(bytes);
    }

    /// What is on the way may stay there, and one segment more.
    pub(super) fn conserve(&mut self, in_flight: u64) {
        self.cwnd = self.cwnd.min(in_flight as f64 + self.mss).max(self.mss);
    }

    /// One segment.
    pub(super) const fn collapse(&mut self) {
        self.cwnd = self.mss;
    }

    /// BBR has no ssthresh: arbitrarily high until the pipe is `full`, then the window.
    pub(super) fn snapshot(&self, full: bool) -> Snapshot {
        let ssthresh = if full { self.cwnd.max(2.0 * self.mss) } else { f64::MAX };
        Snapshot { cwnd: self.cwnd as u64, ssthresh: ssthresh as u64 }
    }
}
