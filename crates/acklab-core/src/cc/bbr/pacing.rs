//! The rate at which segments leave (draft-ietf-ccwg-bbr-06 section 5.6.2, and its predecessor's 4.2.1).
//!
//! Ours: a floor of one segment a second, so that a bandwidth estimate that collapsed does not keep the
//! next segment for hours.

use crate::time::Span;
use crate::units::BitRate;

/// C.pacing_rate.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    rate: f64,
    floor: f64,
    knows_rtt: bool,
}

impl Pacing {
    /// InitPacingRate before any round trip is known: the initial window in a millisecond, times the
    /// gain.
    pub fn new(initial_cwnd: f64, gain: f64, mss: f64) -> Self {
        let rate = gain * initial_cwnd / NOMINAL_RTT.as_secs_f64();
        Self { rate, floor: mss, knows_rtt: false }
    }

    /// InitPacingRate with the first smoothed round trip.
    pub fn on_rtt(&mut self, srtt: Span, initial_cwnd: f64, gain: f64) {
        if !self.knows_rtt && !srtt.is_zero() {
            self.knows_rtt = true;
            self.rate = gain * initial_cwnd / srtt.as_secs_f64();
        }
    }

    /// SetPacingRateWithGain: before the pipe is full the rate only rises.
    pub fn set(&mut self, rate: f64, is_pipe_full: bool) {
        if is_pipe_full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.rate.max(self.floor)
    }

    /// For the connection.
    pub fn bit_rate(&self) -> Option<BitRate> {
        BitRate::from_bps((self.bytes_per_second() * 8.0) as u64)
    }
}

const NOMINAL_RTT: Span = Span::from_millis(1);
