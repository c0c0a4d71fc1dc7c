//! BBR: the window and the pacing rate follow a model of the path, its largest recent delivery rate and
//! its least recent round trip, rather than losses.
//!
//! - [`v1`]: draft-cardwell-iccrg-bbr-congestion-control-00 (2017).
//! - [`v3`]: draft-ietf-ccwg-bbr-06 (2026), which also bounds the data on the way by loss.
//!
//! Both need rate samples ([`super::AckSample::rate`]) and a connection that heeds
//! [`super::CongestionControl::pacing_rate`]. What they share has owners here: `window` (and what it was
//! before a recovery), `deliveries` (with [`rounds`] and [`pipe`]), [`full_pipe`], [`pacing`], [`filter`]
//! and `probe_rtt`. Volumes and rates are bytes and bytes per second, in `f64`; an absent bound is infinite.

mod deliveries;
pub mod filter;
pub mod full_pipe;
pub mod pacing;
pub mod pipe;
mod probe_rtt;
pub mod rounds;
pub mod v1;
pub mod v3;
mod window;

use super::RateSample;

/// RS.delivery_rate, bytes per second; zero where no time passed.
fn delivery_rate(sample: &RateSample) -> f64 {
    let interval = sample.interval.as_secs_f64();
    if interval > 0.0 { sample.delivered as f64 / interval } else { 0.0 }
}
