//! The least round trip and ProbeRTT (draft-ietf-ccwg-bbr-06 section 5.3.4).

use super::super::probe_rtt::{Stay, Step};
use crate::time::{Span, Time};

/// Two windows over round trips: one schedules ProbeRTT, the other is the model's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// The model's: the least of ten seconds.
    min: Option<Span>,
    min_stamp: Time,
    /// The least of five seconds.
    probe_min: Option<Span>,
    probe_min_stamp: Time,
    expired: bool,
    stay: Stay,
}

impl RoundTrip {
    /// The model's.
    pub(super) const fn min(&self) -> Option<Span> {
        self.min
    }

    /// UpdateMinRTT.
    pub(super) fn update(&mut self, now: Time, rtt: Option<Span>) {
        self.expired = now > self.probe_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.expired || self.probe_min.is_none_or(|min| rtt < min))
        {
            (self.probe_min, self.probe_min_stamp) = (Some(rtt), now);
        }
        let min_expired = now > self.min_stamp + MIN_RTT_FILTER;
        let Some(probe_min) = self.probe_min else { return };
        if min_expired || self.min.is_none_or(|min| probe_min < min) {
            (self.min, self.min_stamp) = (Some(probe_min), self.probe_min_stamp);
        }
    }

    /// Whether it is time to look for the least round trip.
    pub(super) const fn is_expired(&self) -> bool {
        self.expired
    }

    /// ProbeRTT begins.
    pub(super) fn begin(&mut self) {
        self.stay = Stay::default();
    }

    /// HandleProbeRTT, with little enough on the way or not yet, at a round's start or not.
    pub(super) fn step(&mut self, now: Time, is_little: bool, round_started: bool) -> Step {
        let step = self.stay.step(now, is_little, round_started);
        if step == Step::Done {
            self.probe_min_stamp = now;
        }
        step
    }
}

/// Section 5.3.4.1.
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// Section 5.5.7.2.
const MIN_RTT_FILTER: Span = Span::from_secs(10);
