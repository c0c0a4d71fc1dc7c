//! BBR: the window and the pacing rate follow a model of the path, its largest recent delivery rate and
//! its least recent round trip, rather than losses.
//!
//! - [`v1`]: draft-cardwell-iccrg-bbr-congestion-control-00 (2017).
//! - [`v3`]: draft-ietf-ccwg-bbr-06 (2026), which also bounds the data on the way by loss.
//!
//! Both need rate samples ([`super::AckSample::rate`]) and a connection that heeds
//! [`super::CongestionControl::pacing_rate`]. What they share is in [`filter`], [`rounds`],
//! [`full_pipe`], [`pacing`] and [`pipe`]. Volumes and rates are bytes and bytes per second, in `f64`;
//! an absent bound is infinite.

pub mod filter;
pub mod full_pipe;
pub mod pacing;
pub mod pipe;
pub mod rounds;
pub mod v1;
pub mod v3;

use super::RateSample;

/// RS.delivery_rate, bytes per second; zero where no time passed.
fn delivery_rate(sample: &RateSample) -> f64 {
    let interval = sample.interval.as_secs_f64();
    if interval > 0.0 { sample.delivered as f64 / interval } else { 0.0 }
}

/// A stretch of deliveries whose rates the algorithm itself kept low (MarkConnectionAppLimited): what
/// leaves until everything now on the way has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct SelfLimited {
    from: u64,
    until: u64,
}

impl SelfLimited {
    fn mark(&mut self, delivered: u64, in_flight: u64) {
        if delivered > self.until {
            self.from = delivered;
        }
        self.until = delivered.saturating_add(in_flight.max(1));
    }

    /// Whether a segment that left after so much was delivered belongs to it.
    const fn covers(&self, prior_delivered: u64) -> bool {
        self.from > 0 && prior_delivered >= self.from && prior_delivered <= self.until
    }
}

#[cfg(test)]
mod testbed;
