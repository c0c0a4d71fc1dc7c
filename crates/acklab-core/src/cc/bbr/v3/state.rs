//! What BBR is about, and what an ACK tells it (draft-ietf-ccwg-bbr-06 sections 5.1.1 and 5.5.10.2).

use crate::cc::RateSample;

/// What BBR is about (section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubling the rate each round.
    Startup,
    /// Emptying the queue that Startup left.
    Drain,
    /// ProbeBW: emptying the queue that the last probe left.
    Down,
    /// ProbeBW: at the delivery rate.
    Cruise,
    /// ProbeBW: filling the pipe before the probe.
    Refill,
    /// ProbeBW: looking for more bandwidth.
    Up,
    /// Half of what the path holds, to see the round trip without a queue.
    ProbeRtt,
}

impl State {
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW (section 5.3.3.9).
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Section 5.6.1: (pacing gain, window gain).
    pub(super) const fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }
}

/// What one ACK says (RS).
pub(super) struct Delivery {
    pub(super) rate: f64,
    pub(super) sample: RateSample,
    pub(super) app_limited: bool,
    pub(super) acked: f64,
    pub(super) cwnd_limited: bool,
}

impl Delivery {
    /// IsInflightTooHigh (section 5.5.10.2).
    pub(super) fn is_inflight_too_high(&self) -> bool {
        self.sample.lost as f64 > self.sample.tx_in_flight as f64 * LOSS_THRESH
    }
}

/// Section 5.3.4.1.
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Section 5.5.10.2.
const LOSS_THRESH: f64 = 0.02;
