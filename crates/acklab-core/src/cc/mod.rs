//! Congestion control: how much may be on its way? One algorithm, one file.
//!
//! An algorithm sees named samples of what happened and answers with [`CongestionControl::cwnd`] in
//! bytes. It decides nothing about *which* bytes leave or what was lost: that is loss recovery's
//! business (RFC 6675, RFC 6582), so the same algorithm serves TCP and reliable UDP.

mod algorithm;
pub mod reno;

pub use algorithm::{Algorithm, Controller, Factory};

use crate::time::{Span, Time};
use crate::units::BitRate;

/// What an algorithm starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Sender's maximum segment size, bytes.
    pub mss: u32,
    /// Initial window, bytes (RFC 6928).
    pub initial_window: u64,
    /// Initial slow-start threshold, bytes; `u64::MAX` for "arbitrarily high" (RFC 5681 section 3.1).
    pub initial_ssthresh: u64,
}

/// A segment left.
#[derive(Clone, Copy, Debug)]
pub struct SentSample {
    /// Its payload, bytes.
    pub bytes: u32,
    /// On the way after it, bytes.
    pub in_flight: u64,
    /// It was sent before.
    pub retransmission: bool,
}

/// New data was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Bytes newly acknowledged, cumulatively.
    pub acked: u64,
    /// On the way before this ACK, bytes.
    pub in_flight: u64,
    /// Round trip of the newest segment it covers, if that was sent once.
    pub rtt: Option<Span>,
    /// Smoothed round trip.
    pub srtt: Option<Span>,
    /// The window was what held the sender back; it may grow only then (RFC 7661 section 4.1).
    pub cwnd_limited: bool,
    /// Fast recovery is under way: the window stays as it is (RFC 6675 section 5).
    pub in_fast_recovery: bool,
}

/// Loss was inferred from duplicate ACKs or SACK: once per recovery.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// FlightSize (RFC 5681 section 2), bytes.
    pub in_flight: u64,
}

/// The peer echoed congestion-experienced: once per window (RFC 3168 section 6.1.2).
#[derive(Clone, Copy, Debug)]
pub struct EcnSample {
    /// FlightSize, bytes.
    pub in_flight: u64,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug)]
pub struct RtoSample {
    /// FlightSize, bytes.
    pub in_flight: u64,
    /// Not the first time for this segment: ssthresh stays (RFC 5681 section 3.1).
    pub again: bool,
}

/// State that reports and plots show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
}

/// How much may be on its way.
pub trait CongestionControl {
    /// A segment left.
    fn on_sent(&mut self, _now: Time, _sample: &SentSample) {}

    /// New data was acknowledged.
    fn on_ack(&mut self, now: Time, sample: &AckSample);

    /// Loss was inferred; fast recovery begins.
    fn on_loss(&mut self, now: Time, sample: &LossSample);

    /// Fast recovery ended.
    fn on_recovered(&mut self, _now: Time) {}

    /// Congestion was echoed.
    fn on_ecn(&mut self, now: Time, sample: &EcnSample);

    /// The retransmission timer expired.
    fn on_rto(&mut self, now: Time, sample: &RtoSample);

    /// Nothing was sent for longer than the retransmission time-out (RFC 5681 section 4.1).
    fn on_idle(&mut self, _now: Time) {}

    /// Congestion window, bytes; never below one MSS.
    fn cwnd(&self) -> u64;

    /// The rate at which segments should leave; `None`: as fast as the window lets them.
    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    /// State for reports.
    fn snapshot(&self) -> Snapshot;
}
