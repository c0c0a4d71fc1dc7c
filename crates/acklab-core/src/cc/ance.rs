//! ANCE: the sender estimates the queue of its path and keeps it near a threshold without any mark
//! (Sup, Moraes and Bauchspiess, "Acknowledge-Based Non-Congestion Estimation", algorithm 1).
//!
//! Equation 1: Q = B (RTT - RTTmin). The path is congested while Q is not below Qmin. RTTmin is the
//! smallest round trip seen, and starts anew while W is one segment, since the route may have changed.
//! Equation 2 estimates B from the spacing of ACKs; as printed it multiplies where it must divide.
//! The window itself is [`super::balance`].
//!
//! We count B and Q in bytes on the wire, headers included, as the paper's 1 kB packets do. An ACK
//! without a round trip (Karn's algorithm) leaves the last one standing. ACKs that arrive in the same
//! instant have no spacing and are left out of it. A mark of RFC 3168, which ANCE never asks for, is
//! taken for a loss.

use super::balance::{self, Balance};
use super::{AckSample, CongestionControl, EcnSample, LossSample, RtoSample, Snapshot, Start};
use crate::time::{Span, Time};
use crate::units::BitRate;

crate::options! {
    /// What the paper leaves open, and its constants: its Qmin of 3 kB and literal `ta_min`, with equation 2
    /// corrected.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Qmin, bytes on the wire.
        queue_min: u64 as count(0, 1_000_000_000) = "3000",
        /// Which spacing of ACKs counts.
        spacing: Spacing = "smallest",
        /// How equation 2 is read.
        equation2: Equation2 = "corrected",
        /// Headers of one segment, bytes on the wire.
        header: u32 as count(0, 1000) = "40",
    }
    beside {
        /// Where B comes from.
        bandwidth: Bandwidth = Bandwidth::Estimated,
    }
    within {
        /// The window.
        window: balance::Options,
    }
}

/// The bottleneck's bandwidth B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bandwidth {
    /// By equation 2.
    Estimated,
    /// Known.
    Oracle(BitRate),
}

crate::words! {
    /// The shortest time between two ACKs, `ta_min`.
    pub enum Spacing {
        /// The smallest since the beginning, as written: one pair of compressed ACKs spoils it for ever.
        Smallest = "smallest",
        /// The second smallest since the beginning: one such pair does no harm.
        SecondSmallest = "second-smallest",
        /// The smallest of the last full round trip: harm passes, but among several flows B becomes this
        /// flow's share of the bottleneck.
        PerRoundTrip = "per-round-trip",
    }
}

crate::words! {
    /// Readings of equation 2.
    pub enum Equation2 {
        /// Bytes that the last ACK acknowledged, over `ta_min`.
        Corrected = "corrected",
        /// Length of an ACK packet, over `ta_min`: the unit is right, the bandwidth far too small.
        AckLength = "ack-length",
        /// Length of an ACK packet, times `ta_min`: as printed; the queue is never found congested.
        Literal = "literal",
    }
}

/// Length of an ACK without options, bytes: 20 of IPv4 and 20 of TCP.
const ACK_LENGTH: f64 = 40.0;

impl Options {
    /// The paper's results from an estimated bandwidth: BF of three ACKs at least, without which the
    /// queue runs dry.
    pub fn plain() -> Self {
        let window = balance::Options { bf_floor: 3.0, ..balance::Options::default() };
        Self { window, ..Self::default() }
    }

    /// The bottleneck's bandwidth is known.
    pub fn oracle(rate: BitRate) -> Self {
        Self { bandwidth: Bandwidth::Oracle(rate), ..Self::default() }
    }
}

/// ANCE's sender.
#[derive(Clone, Copy, Debug)]
pub struct Ance {
    options: Options,
    mss: u64,
    window: Balance,
    rtt: Option<Span>,
    rtt_min: Span,
    spacing: AckSpacing,
    /// Bytes on the wire that the last ACK acknowledged.
    acked: u64,
}

impl Ance {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            options,
            mss: u64::from(start.mss.max(1)),
            window: Balance::new(start, options.window),
            rtt: None,
            rtt_min: Span::MAX,
            spacing: AckSpacing::default(),
            acked: 0,
        }
    }

    /// The estimated bandwidth B, bytes per second; `None` before two ACKs came.
    pub fn bandwidth(&self) -> Option<f64> {
        if let Bandwidth::Oracle(rate) = self.options.bandwidth {
            return Some(rate.as_bps() as f64 / 8.0);
        }
        let spacing = self.spacing.shortest(self.options.spacing)?.as_secs_f64();
        Some(match self.options.equation2 {
            Equation2::Corrected => self.acked as f64 / spacing,
            Equation2::AckLength => ACK_LENGTH / spacing,
            Equation2::Literal => ACK_LENGTH * spacing,
        })
    }

    /// The estimated queue of equation 1, bytes on the wire; 0 before there is anything to go by.
    pub fn queue(&self) -> f64 {
        match (self.bandwidth(), self.rtt) {
            (Some(bandwidth), Some(rtt)) => {
                bandwidth * rtt.saturating_sub(self.rtt_min).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// The balance BF, ACKs.
    pub const fn bf(&self) -> f64 {
        self.window.bf()
    }

    /// The smallest round trip, `Span::MAX` before the first.
    pub const fn rtt_min(&self) -> Span {
        self.rtt_min
    }
}

impl CongestionControl for Ance {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.rtt = Some(rtt);
            self.rtt_min = if self.window.segments() <= 1 { rtt } else { self.rtt_min.min(rtt) };
        }
        self.spacing.on_ack(now, self.rtt);
        if sample.acked > 0 {
            let segments = sample.acked.div_ceil(self.mss);
            self.acked = sample.acked + segments.saturating_mul(u64::from(self.options.header));
        }
        let congested = self.queue() >= self.options.queue_min as f64;
        self.window.on_ack(sample, congested);
    }

    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.window.on_loss(sample.in_flight);
    }

    fn on_ecn(&mut self, _now: Time, sample: &EcnSample) {
        self.window.on_loss(sample.in_flight);
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        self.window.on_rto(sample);
    }

    fn on_idle(&mut self, _now: Time) {
        self.window.on_idle();
    }

    fn cwnd(&self) -> u64 {
        self.window.snapshot().cwnd
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot()
    }
}

/// Times between ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct AckSpacing {
    last: Option<Time>,
    smallest: Option<Span>,
    second: Option<Span>,
    /// The smallest of this round trip and of the one before.
    round: Option<Span>,
    previous_round: Option<Span>,
    round_end: Time,
}

impl AckSpacing {
    fn on_ack(&mut self, now: Time, rtt: Option<Span>) {
        let gap = self.last.replace(now).map(|last| now.since(last)).filter(|gap| !gap.is_zero());
        let shorter = |than: Option<Span>, gap| than.is_none_or(|than| gap < than);
        if now >= self.round_end {
            self.previous_round = self.round.take().or(self.previous_round);
            self.round_end = now + rtt.unwrap_or(Span::ZERO);
        }
        let Some(gap) = gap else { return };
        if shorter(self.round, gap) {
            self.round = Some(gap);
        }
        if shorter(self.smallest, gap) {
            self.second = self.smallest.replace(gap);
        } else if shorter(self.second, gap) {
            self.second = Some(gap);
        }
    }

    fn shortest(&self, which: Spacing) -> Option<Span> {
        match which {
            Spacing::Smallest => self.smallest,
            Spacing::SecondSmallest => self.second.or(self.smallest),
            Spacing::PerRoundTrip => self.previous_round.or(self.round),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 960;

    fn ance(options: Options) -> Ance {
        let mss = u64::from(MSS);
        let start = Start { mss: MSS, initial_window: mss, initial_ssthresh: 16 * mss, seed: 1 };
        Ance::new(&start, options)
    }

    fn ack(ance: &mut Ance, at_us: u64, rtt_us: u64) {
        let rtt = Some(Span::from_micros(rtt_us));
        let now = Time::ZERO + Span::from_micros(at_us);
        ance.on_ack(now, &AckSample { rtt, ..crate::cc::ack_of(MSS) });
    }

    #[test]
    fn the_queue_is_bandwidth_times_the_excess_round_trip() {
        // Equations 1 and 2: 1000 B per 5 ms are 200 kB/s; 15 ms too many are 3000 B.
        let mut ance = ance(Options::default());
        ack(&mut ance, 0, 90_000);
        assert_eq!((ance.bandwidth(), ance.queue()), (None, 0.0));
        ack(&mut ance, 10_000, 87_000);
        ack(&mut ance, 15_000, 88_000);
        assert_eq!(ance.rtt_min(), Span::from_millis(87));
        assert!((ance.bandwidth().unwrap() - 200_000.0).abs() < 1e-6);
        assert!((ance.queue() - 200.0).abs() < 1e-6);
        ack(&mut ance, 25_000, 102_000);
        assert!((ance.queue() - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn slow_start_goes_on_below_qmin_and_ends_at_it() {
        let options = Options::oracle(BitRate::from_bps(1_500_000).unwrap());
        let mut ance = ance(options);
        // 187.5 B/ms: 15.9 ms are 2981 B, 16.1 ms are 3019 B.
        ack(&mut ance, 0, 87_000);
        ack(&mut ance, 1_000, 87_000);
        ack(&mut ance, 2_000, 102_900);
        assert_eq!(ance.cwnd(), 4 * 960);
        ack(&mut ance, 3_000, 103_100);
        assert_eq!((ance.cwnd(), ance.bf()), (16 * 960, 16.0));
    }

    #[test]
    fn a_window_of_one_segment_takes_the_present_round_trip_for_the_smallest() {
        let mut ance = ance(Options::default());
        ack(&mut ance, 0, 50_000);
        ack(&mut ance, 5_000, 60_000);
        assert_eq!(ance.rtt_min(), Span::from_millis(50));
        ance.on_rto(Time::ZERO, &RtoSample { in_flight: 1920, ..RtoSample::default() });
        ack(&mut ance, 1_000_000, 70_000);
        assert_eq!(ance.rtt_min(), Span::from_millis(70));
        // Without a sample (Karn) the last round trip stands.
        ance.on_ack(Time::ZERO + Span::from_secs(2), &crate::cc::ack_of(MSS));
        assert_eq!((ance.rtt_min(), ance.queue()), (Span::from_millis(70), 0.0));
    }

    #[test]
    fn one_pair_of_compressed_acks_spoils_the_smallest_spacing_only() {
        let check = |spacing, bytes_per_second: f64| {
            let mut ance = ance(Options { spacing, ..Options::default() });
            for i in 0..40 {
                ack(&mut ance, i * 5_000, 20_000);
                if i == 3 {
                    ack(&mut ance, i * 5_000 + 800, 20_000);
                }
            }
            assert!((ance.bandwidth().unwrap() - bytes_per_second).abs() < 1e-6, "{spacing:?}");
        };
        check(Spacing::Smallest, 1000.0 / 0.0008);
        // The gap after the pair is short, too: 4.2 ms.
        check(Spacing::SecondSmallest, 1000.0 / 0.0042);
        check(Spacing::PerRoundTrip, 200_000.0);
    }

    #[test]
    fn the_other_readings_of_equation_2_find_hardly_any_bandwidth() {
        let check = |equation2, bytes_per_second: f64| {
            let mut ance = ance(Options { equation2, ..Options::default() });
            for i in 0..3 {
                ack(&mut ance, i * 5_000, 20_000);
            }
            assert!((ance.bandwidth().unwrap() - bytes_per_second).abs() < 1e-6, "{equation2:?}");
        };
        check(Equation2::Corrected, 200_000.0);
        check(Equation2::AckLength, 8_000.0);
        check(Equation2::Literal, 0.2);
    }

    #[test]
    fn acks_of_one_instant_have_no_spacing() {
        let mut ance = ance(Options::default());
        ack(&mut ance, 0, 20_000);
        ack(&mut ance, 0, 20_000);
        assert_eq!(ance.bandwidth(), None);
    }
}
