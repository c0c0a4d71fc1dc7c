//! Congestion control: how much may be on its way? One algorithm, one file.
//!
//! An algorithm sees named samples of what happened and answers with [`CongestionControl::cwnd`] in
//! bytes. It decides nothing about *which* bytes leave or what was lost: that is loss recovery's
//! business (RFC 6675, RFC 6582), so the same algorithm serves TCP and reliable UDP.

mod ack_train;
mod algorithm;
pub mod ance;
pub mod balance;
pub mod bbr;
pub mod cdg;
pub mod cubic;
pub mod dctcp;
pub mod edctcp;
pub mod encn;
pub mod hystart;
pub mod jersey;
pub mod lossy;
pub mod prague;
pub mod reno;
pub mod round;
#[cfg(test)]
mod testbed;
pub mod vegas;
pub mod westwood;

pub use algorithm::{Algorithm, Controller, Factory};

use crate::packet::Ecn;
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
    /// What an algorithm that flips coins seeds its own stream with; differs between connections.
    pub seed: u64,
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

/// An ACK brought news: a cumulative advance, a SACKed stretch or, without SACK, a duplicate.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Bytes newly acknowledged, cumulatively; 0 for an ACK that did not advance.
    pub acked: u64,
    /// Bytes newly known to have arrived, each counted once: cumulative and SACKed; a duplicate
    /// without SACK counts as one segment.
    pub delivered: u64,
    /// Bytes newly inferred lost by this ACK.
    pub lost: u64,
    /// The peer's echo of congestion-experienced was set on it (ECE).
    pub ece: bool,
    /// Bytes of `delivered` whose packets met congestion, as far as the peer says.
    pub marked: u64,
    /// The rate at which its bytes were delivered, for algorithms that ask for it.
    pub rate: Option<RateSample>,
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

/// Delivery rate of the newest segment that an ACK covers (draft-ietf-ccwg-bbr section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK phase.
    pub interval: Span,
    /// Bytes delivered in all when that segment was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in all now.
    pub total_delivered: u64,
    /// The application left the path idle when the segment was sent: the rate may be too low.
    pub app_limited: bool,
    /// On the way just after that segment was sent, bytes.
    pub tx_in_flight: u64,
    /// Bytes inferred lost between that segment's departure and now.
    pub lost: u64,
}

/// Loss was inferred from duplicate ACKs or SACK: once per recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossSample {
    /// FlightSize (RFC 5681 section 2), bytes.
    pub in_flight: u64,
    /// The ACK that revealed it echoed congestion-experienced.
    pub ece: bool,
}

/// The peer echoed congestion-experienced: once per window (RFC 3168 section 6.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct EcnSample {
    /// FlightSize, bytes.
    pub in_flight: u64,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtoSample {
    /// FlightSize, bytes.
    pub in_flight: u64,
    /// Not the first time for this segment.
    pub again: bool,
    /// Fast recovery was under way: it has answered for a loss of this window of data.
    pub recovering: bool,
}

impl RtoSample {
    /// Whether ssthresh stays: RFC 5681 section 3.1 lowers it at the first time-out of a segment, and
    /// one window of data is answered for once (`tcp_enter_loss` of Linux).
    pub const fn keeps_threshold(&self) -> bool {
        self.again || self.recovering
    }
}

/// A switch sent one of our segments back for want of room (E-DCTCP).
#[derive(Clone, Copy, Debug)]
pub struct ReturnedSample {
    /// FlightSize, bytes.
    pub in_flight: u64,
    /// How often this segment came back, this time included.
    pub times: u32,
    /// Smoothed round trip.
    pub srtt: Option<Span>,
}

/// Several paths of one connection may meet in one bottleneck, where they are to take what one flow takes (RFC 6356).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoupledSample {
    /// Its part of the rate of all, above 0 and at most 1.
    pub part: f64,
    /// How much slower than alone its window is to grow: RFC 6356 section 3, alpha cwnd / cwnd_total; above 0 and
    /// at most 1.
    pub growth: f64,
}

/// How an algorithm wants congestion marks to reach it; both ends of a connection must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// RFC 3168: the receiver echoes until CWR; [`CongestionControl::on_ecn`] once per window.
    #[default]
    PerWindow,
    /// RFC 8257 section 3.2: each ACK echoes the marks of the segments it covers, and only
    /// [`AckSample::ece`] tells.
    PerAck,
}

/// State that reports and plots show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
}

/// Stands for a round trip before one was measured.
pub(crate) const UNKNOWN_RTT: Span = Span::from_millis(100);

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

    /// A segment came back: how long it waits before it is sent again. One round trip, unless the
    /// algorithm knows better: at once, it would find the same full queue.
    fn on_returned(&mut self, _now: Time, sample: &ReturnedSample) -> Span {
        sample.srtt.unwrap_or(UNKNOWN_RTT)
    }

    /// What it is of a connection of several paths has changed. Algorithms that are not coupled take no notice.
    fn on_coupled(&mut self, _sample: &CoupledSample) {}

    /// With which mark its packets say that they understand ECN.
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// How congestion marks reach it.
    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerWindow
    }

    /// Whether [`AckSample::rate`] must be filled in.
    fn wants_rate(&self) -> bool {
        false
    }

    /// Whether it should hear of each packet while its window is short: of what a few ACKs bring at once it learns late, and
    /// more of what leaves upon them at once is lost.
    fn wants_each_ack(&self) -> bool {
        false
    }

    /// Congestion window, bytes; never below one MSS.
    fn cwnd(&self) -> u64;

    /// The rate at which segments should leave; `None`: as fast as the window lets them.
    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    /// State for reports.
    fn snapshot(&self) -> Snapshot;

    /// From now on its coins are those under `seed`, which differs between connections. Those that flip
    /// none ignore it.
    fn reseed(&mut self, _seed: u64) {}
}

/// An ACK of one segment on a path that the window holds back, for the algorithms' own tests.
#[cfg(test)]
fn ack_of(mss: u32) -> AckSample {
    let bytes = u64::from(mss);
    AckSample {
        acked: bytes,
        delivered: bytes,
        lost: 0,
        ece: false,
        marked: 0,
        rate: None,
        in_flight: bytes,
        rtt: None,
        srtt: None,
        cwnd_limited: true,
        in_fast_recovery: false,
    }
}
