//! TCP-Jersey (Xu, Tian and Ansari, JSAC 22(4), 2004): the window follows an estimate of the bandwidth
//! when routers warn of congestion, and losses without a warning are taken for those of a radio link.
//!
//! Available bandwidth estimation, on each ACK of L bytes after a pause of dt, with Tw = K RTT:
//! R = (Tw R + L) / (dt + Tw). The optimum window is ownd = R RTT, and rate control sets ssthresh and cwnd
//! to max(2 segments, ownd). Routers mark every packet while their queue shows incipient congestion
//! (congestion warning), and the receiver echoes the marks per ACK.
//!
//! - An ACK with the warning: rate control, once per round trip. Other marked ACKs let nothing grow.
//! - Duplicate ACKs with the warning: rate control; without: sent again, and the window stays.
//! - Slow start, avoidance and time-out: Reno.
//!
//! We never let rate control raise the window, which a warning or a loss should not do; ssthresh is set
//! all the same. The estimate begins at zero with the first departure. Without routers that mark, duplicate
//! ACKs never shrink the window: only time-outs do.

use super::reno::Reno;
use super::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, RtoSample, SentSample, Start,
};
use crate::time::{Span, Time};

crate::options! {
    /// What may be chosen about TCP-Jersey.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// K: the estimator's memory.
        memory: f64 as number(0.0, 1000.0, "round trips") = "1",
        /// The round trip that turns the bandwidth into a window.
        rtt: OwndRtt = "smallest",
    }
}

crate::words! {
    /// The round trip in ownd = R RTT.
    pub enum OwndRtt {
        /// The smallest seen, as in the paper: the window leaves no queue.
        Smallest = "smallest",
        /// The latest: the window keeps the queue that there is (the NITK port to ns-3).
        Latest = "latest",
    }
}

/// TCP-Jersey's sender.
#[derive(Clone, Copy, Debug)]
pub struct Jersey {
    options: Options,
    reno: Reno,
    /// R, bytes per second.
    rate: f64,
    /// The last update of R, or the first departure.
    updated: Option<Time>,
    /// Delivered since then, bytes.
    delivered: u64,
    rtt: Option<Span>,
    rtt_min: Span,
    /// No rate control by a marked ACK before.
    next_control: Time,
}

impl Jersey {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            options,
            reno: Reno::new(start),
            rate: 0.0,
            updated: None,
            delivered: 0,
            rtt: None,
            rtt_min: Span::MAX,
            next_control: Time::ZERO,
        }
    }

    /// The estimated bandwidth R, bytes per second.
    pub const fn bandwidth(&self) -> f64 {
        self.rate
    }

    fn estimate(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.rtt = Some(rtt);
            self.rtt_min = self.rtt_min.min(rtt);
        }
        self.delivered = self.delivered.saturating_add(sample.delivered);
        let memory = self.options.memory * self.rtt.map_or(0.0, Span::as_secs_f64);
        let pause = self.updated.map_or(0.0, |updated| now.since(updated).as_secs_f64());
        if memory + pause > 0.0 {
            self.rate = (memory * self.rate + self.delivered as f64) / (pause + memory);
            self.updated = Some(now);
            self.delivered = 0;
        }
    }

    /// ssthresh = cwnd = max(2 segments, ownd); nothing before there is a round trip.
    fn control(&mut self) {
        let rtt = match self.options.rtt {
            OwndRtt::Smallest => self.rtt.map(|_| self.rtt_min),
            OwndRtt::Latest => self.rtt,
        };
        if let Some(rtt) = rtt {
            self.reno.reduce_to((self.rate * rtt.as_secs_f64()) as u64);
        }
    }
}

impl CongestionControl for Jersey {
    fn on_sent(&mut self, now: Time, _sample: &SentSample) {
        self.updated.get_or_insert(now);
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.estimate(now, sample);
        if !sample.ece {
            self.reno.on_ack(now, sample);
        } else if now >= self.next_control {
            self.control();
            self.next_control = now + self.rtt.unwrap_or(Span::ZERO);
        }
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        if sample.ece {
            self.control();
            self.next_control = now + self.rtt.unwrap_or(Span::ZERO);
        }
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {
        self.control();
    }

    /// Fast recovery without a warning has left the window as it was.
    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.reno.on_rto(now, &RtoSample { recovering: false, ..*sample });
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    crate::forward! { reno: on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Snapshot;

    fn jersey(initial_window: u64, options: Options) -> Jersey {
        let start = Start { mss: 1000, initial_window, initial_ssthresh: 4000, seed: 1 };
        let mut jersey = Jersey::new(&start, options);
        let sent = SentSample { bytes: 1000, in_flight: 1000, retransmission: false };
        jersey.on_sent(Time::ZERO, &sent);
        jersey
    }

    fn ack(jersey: &mut Jersey, at_ms: u64, rtt_ms: u64, ece: bool) {
        let rtt = Some(Span::from_millis(rtt_ms));
        let now = Time::ZERO + Span::from_millis(at_ms);
        jersey.on_ack(now, &AckSample { ece, rtt, ..crate::cc::ack_of(1000) });
    }

    #[test]
    fn the_estimate_follows_its_recursion() {
        // Tw = RTT = 100 ms. R1 = 1000 B / (100 + 100 ms) = 5000 B/s;
        // R2 = (0.1 s x 5000 + 1000) / (10 + 100 ms); R3 the same with R2.
        let mut jersey = jersey(10_000, Options::default());
        ack(&mut jersey, 100, 100, false);
        assert!((jersey.bandwidth() - 5000.0).abs() < 1e-9);
        ack(&mut jersey, 110, 100, false);
        assert!((jersey.bandwidth() - 1500.0 / 0.11).abs() < 1e-9);
        ack(&mut jersey, 120, 100, false);
        assert!((jersey.bandwidth() - (150.0 / 0.11 + 1000.0) / 0.11).abs() < 1e-9);
        // A steady stream of 1000 B per 10 ms: 100 kB/s.
        for i in 3..200 {
            ack(&mut jersey, 100 + 10 * i, 100, false);
        }
        assert!((jersey.bandwidth() - 100_000.0).abs() < 1.0);
    }

    #[test]
    fn a_warning_sets_the_window_to_the_bandwidth_delay_product_once_per_round_trip() {
        let check = |rtt, expected: u64| {
            let mut jersey = jersey(30_000, Options { rtt, ..Options::default() });
            ack(&mut jersey, 100, 80, false);
            for i in 1..300 {
                ack(&mut jersey, 100 + 10 * i, 100, false);
            }
            let before = jersey.cwnd();
            assert!(before > 30_000);
            ack(&mut jersey, 3100, 100, true);
            let cut = jersey.snapshot();
            assert_eq!((cut.cwnd, cut.ssthresh), (expected, expected), "{rtt:?}");
            // The other marks of that round trip change nothing.
            ack(&mut jersey, 3199, 1, true);
            assert_eq!(jersey.snapshot(), cut);
        };
        // 100 kB/s, of which the recursion keeps a hair's breadth, times 80 or 100 ms.
        check(OwndRtt::Smallest, 7_999);
        check(OwndRtt::Latest, 9_999);
    }

    #[test]
    fn loss_without_a_warning_leaves_the_window_and_with_one_brings_rate_control() {
        let mut jersey = jersey(30_000, Options::default());
        for i in 0..300 {
            ack(&mut jersey, 100 + 10 * i, 100, false);
        }
        let before = jersey.snapshot();
        jersey.on_loss(Time::ZERO, &LossSample { in_flight: 30_000, ece: false });
        assert_eq!(jersey.snapshot(), before);
        jersey.on_loss(Time::ZERO, &LossSample { in_flight: 30_000, ece: true });
        assert_eq!(jersey.cwnd(), 9_999);
        jersey.on_rto(Time::ZERO, &RtoSample { in_flight: 9_000, ..RtoSample::default() });
        assert_eq!(jersey.snapshot(), Snapshot { cwnd: 1000, ssthresh: 4500 });
    }

    #[test]
    fn a_time_out_in_a_recovery_that_left_the_window_lowers_the_threshold() {
        let mut jersey = jersey(30_000, Options::default());
        jersey.on_loss(Time::ZERO, &LossSample { in_flight: 30_000, ece: false });
        let timed_out = RtoSample { in_flight: 30_000, recovering: true, again: false };
        jersey.on_rto(Time::ZERO, &timed_out);
        assert_eq!(jersey.snapshot(), Snapshot { cwnd: 1000, ssthresh: 15_000 });
    }

    #[test]
    fn rate_control_leaves_two_segments_and_never_raises_the_window() {
        let mut jersey = jersey(30_000, Options::default());
        ack(&mut jersey, 1000, 10, true);
        assert_eq!(jersey.snapshot(), Snapshot { cwnd: 2000, ssthresh: 2000 });
        for i in 0..300 {
            ack(&mut jersey, 1000 + 10 * i, 1000, false);
        }
        jersey.on_rto(Time::ZERO, &RtoSample { in_flight: 2000, ..RtoSample::default() });
        ack(&mut jersey, 5000, 1000, true);
        assert_eq!(jersey.cwnd(), 1000);
    }
}
