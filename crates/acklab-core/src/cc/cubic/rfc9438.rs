//! CUBIC as RFC 9438 has it.
//!
//! Sections 4.2 to 4.8 and 4.10: the curve with its concave and convex parts, the Reno-friendly
//! region, multiplicative decrease by 0.7, fast convergence, time-outs, and HyStart++ (RFC 9406) for
//! the first slow start. Windows are counted in segments here, with fractions.
//!
//! Time in which the application, not the window, was the limit does not move the curve on (section
//! 5.8): neither what passes with nothing on the way nor what passes up to an ACK that found the
//! window not full.
//!
//! - RFC says ssthresh comes from FlightSize / we take the lesser of FlightSize and cwnd / because
//!   limited transmit (RFC 3042) puts more on the way than the window is.
//! - RFC says the window grows by (target - cwnd) / cwnd for each ACK / we do so for each
//!   acknowledged segment / because delayed ACKs would halve the pace of the curve.
//!
//! Left out: the undo of a spurious reduction (section 4.9), for which loss recovery has no signal.

use super::super::hystart::{HystartPlusPlus, Phase};
use super::super::{
    AckSample, CongestionControl, CoupledSample, EcnSample, LossSample, RtoSample, SentSample,
    Snapshot, Start,
};
use super::Options;
use crate::math;
use crate::time::{Span, Time};

/// RFC 9438.
#[derive(Clone, Copy, Debug)]
pub struct Rfc9438 {
    options: Options,
    mss: u64,
    /// Segments.
    initial_window: f64,
    /// Segments.
    cwnd: f64,
    /// Segments; infinite while "arbitrarily high".
    ssthresh: f64,
    /// The window before the last reduction, segments, less what fast convergence gives away;
    /// `None`: no loss yet, or a time-out since (section 4.8).
    w_max: Option<f64>,
    /// The window just before the last reduction, segments.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    hystart: Option<HystartPlusPlus>,
    /// Of the growth of a flow alone ([`CoupledSample::growth`]).
    growth: f64,
    /// When the curve's time was last moved on.
    moved_on: Time,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time on the curve: since the stage began, less what the application left idle.
    elapsed: Span,
    /// Segments per cubic second.
    c: f64,
    /// The curve's origin, segments.
    w_max: f64,
    /// When the curve reaches its origin, seconds.
    k: f64,
    /// What Reno would have, segments.
    w_est: f64,
}

impl Epoch {
    /// Figure 1 of section 4.2, segments.
    fn w_cubic(&self, ahead: Span) -> f64 {
        let t = (self.elapsed + ahead).as_secs_f64() - self.k;
        self.c * t * t * t + self.w_max
    }
}

impl Rfc9438 {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        let mss = u64::from(start.mss.max(1));
        let initial_window = (start.initial_window as f64 / mss as f64).max(1.0);
        let has_threshold = start.initial_ssthresh < u64::MAX;
        let threshold = start.initial_ssthresh as f64 / mss as f64;
        Self {
            options,
            mss,
            initial_window,
            cwnd: initial_window,
            ssthresh: if has_threshold { threshold } else { f64::INFINITY },
            w_max: None,
            cwnd_prior: initial_window,
            epoch: None,
            hystart: (options.hystart && !has_threshold).then(|| HystartPlusPlus::new(false)),
            growth: 1.0,
            moved_on: Time::ZERO,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss as f64
    }

    fn slow_start(&mut self, sample: &AckSample) {
        let growth = match &mut self.hystart {
            None => sample.acked.min(self.mss),
            Some(hystart) => {
                let phase = hystart.on_ack(sample);
                let growth = hystart.growth(sample.acked, self.mss);
                if phase == Phase::Done {
                    self.ssthresh = self.cwnd;
                    self.cwnd_prior = self.cwnd;
                    self.hystart = None;
                }
                growth
            }
        };
        if sample.cwnd_limited {
            self.cwnd = (self.cwnd + self.segments(growth)).min(self.ssthresh).min(CWND_MAX);
        }
    }

    /// Sections 4.2 and 4.8: where the curve of this stage lies.
    fn begin_epoch(&self) -> Epoch {
        // A window above the origin, or no origin: the convex half from here on.
        let w_max = self.w_max.unwrap_or(self.cwnd).max(self.cwnd);
        // The mean window goes with C^(1/4) (section 5.1) and Reno's with the root of its slope: what halves
        // one halves the other.
        let c = self.growth * self.growth * C;
        let k = math::cbrt((w_max - self.cwnd) / c);
        Epoch { elapsed: Span::ZERO, c, w_max, k, w_est: self.cwnd }
    }

    fn avoid(&mut self, now: Time, sample: &AckSample) {
        let passed = now.since(self.moved_on);
        let segments = self.segments(sample.acked);
        let Some(epoch) = &mut self.epoch else {
            self.epoch = Some(self.begin_epoch());
            return;
        };
        if !sample.cwnd_limited {
            return;
        }
        epoch.elapsed += passed;
        // Section 4.3: Reno's slope at the same mean window, and Reno's own above the old one.
        let alpha = if epoch.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += self.growth * alpha * segments / self.cwnd;
        // Section 4.2: where the curve is a round trip ahead, at most half a window more.
        let rtt = sample.srtt.or(sample.rtt).unwrap_or(Span::ZERO);
        let target = epoch.w_cubic(rtt).clamp(self.cwnd, 1.5 * self.cwnd);
        let step = (target - self.cwnd) / self.cwnd * segments;
        let (w_cubic, w_est) = (epoch.w_cubic(Span::ZERO), epoch.w_est);
        self.cwnd = (self.cwnd + step).min(target);
        if self.options.reno_friendly && w_cubic < w_est {
            self.cwnd = self.cwnd.max(w_est);
        }
        self.cwnd = self.cwnd.min(CWND_MAX);
    }

    /// Sections 4.6 and 4.7; `floor` in segments.
    fn reduce(&mut self, in_flight: u64, floor: f64) {
        self.w_max = Some(match self.w_max {
            Some(w_max) if self.options.fast_convergence && self.cwnd < w_max => {
                self.cwnd * (1.0 + BETA) / 2.0
            }
            _ => self.cwnd,
        });
        self.cwnd_prior = self.cwnd;
        let reduced = self.segments(in_flight).min(self.cwnd) * BETA;
        self.ssthresh = reduced.max(SSTHRESH_MIN);
        // The floor must not raise a window that a time-out shrank below it.
        self.cwnd = reduced.max(floor).min(self.cwnd);
        self.leave_curve();
    }

    fn leave_curve(&mut self) {
        self.epoch = None;
        self.hystart = None;
    }
}

impl CongestionControl for Rfc9438 {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        // Nothing was on the way until now: that time does not count (section 5.8).
        if sample.in_flight <= u64::from(sample.bytes) {
            self.moved_on = now;
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if !sample.in_fast_recovery && sample.acked > 0 {
            if self.cwnd < self.ssthresh {
                self.slow_start(sample);
            } else {
                self.avoid(now, sample);
            }
        }
        self.moved_on = now;
    }

    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.reduce(sample.in_flight, SSTHRESH_MIN);
    }

    fn on_ecn(&mut self, _now: Time, sample: &EcnSample) {
        self.reduce(sample.in_flight, 1.0);
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        if !sample.keeps_threshold() {
            self.cwnd_prior = self.cwnd;
            let reduced = self.segments(sample.in_flight).min(self.cwnd) * BETA;
            self.ssthresh = reduced.max(SSTHRESH_MIN);
        }
        self.cwnd = 1.0;
        self.w_max = None;
        self.leave_curve();
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
        self.epoch = None;
    }

    fn on_coupled(&mut self, sample: &CoupledSample) {
        self.growth = sample.growth;
    }

    fn cwnd(&self) -> u64 {
        (self.cwnd * self.mss as f64) as u64
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd(), ssthresh: (self.ssthresh * self.mss as f64) as u64 }
    }
}

/// Segments per cubic second (RFC 9438 section 5).
const C: f64 = 0.4;
/// What a reduction leaves of the window (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// Reno's slope for that reduction (RFC 9438 section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Segments (RFC 9438 section 4.6).
const SSTHRESH_MIN: f64 = 2.0;
/// Segments; far beyond any path, so that no arithmetic overflows.
const CWND_MAX: f64 = 1e9;

#[cfg(test)]
#[path = "rfc9438_tests.rs"]
mod tests;
