//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi and Wang, MobiCom 2001; Grieco and Mascolo, CCR
//! 34(2), 2004): after a loss the window is what the path was measured to carry.
//!
//! Each round trip gives a bandwidth sample, bytes delivered / time, that a low-pass filter smooths
//! (the "+": samples per round trip rather than per ACK, which ACK compression inflates). On loss
//! and on a time-out ssthresh = bandwidth estimate * least RTT; growth is Reno's. A mark counts as
//! a loss (RFC 3168 section 6.1.2).
//!
//! Silence does not enter a sample: the interval begins anew when something leaves onto an empty
//! path. Without any sample yet, ssthresh is RFC 5681's half.

use super::reno::Reno;
use super::round::Rounds;
use super::{AckSample, CongestionControl, EcnSample, LossSample, RtoSample, SentSample, Start};
use crate::time::{Span, Time};

crate::options! {
    /// Westwood+'s parameter.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// What the filter keeps of the old estimate (Grieco and Mascolo 2004, section 2.1).
        memory: f64 as share() = "0.875",
    }
}

/// Westwood+'s sender.
#[derive(Clone, Copy, Debug)]
pub struct Westwood {
    memory: f64,
    reno: Reno,
    rounds: Rounds,
    rtt_min: Option<Span>,
    /// Bytes per second.
    bandwidth: Option<f64>,
    /// Delivered since `since`, bytes.
    delivered: u64,
    since: Time,
}

impl Westwood {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            memory: options.memory.clamp(0.0, 1.0),
            reno: Reno::new(start),
            rounds: Rounds::default(),
            rtt_min: None,
            bandwidth: None,
            delivered: 0,
            since: Time::ZERO,
        }
    }

    /// The estimated bandwidth, bytes per second.
    pub const fn bandwidth(&self) -> Option<f64> {
        self.bandwidth
    }

    fn measure(&mut self, now: Time) {
        let interval = now.since(self.since).as_secs_f64();
        if interval > 0.0 {
            let sample = self.delivered as f64 / interval;
            let old = self.bandwidth.unwrap_or(sample);
            self.bandwidth = Some(self.memory * old + (1.0 - self.memory) * sample);
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Time) {
        self.delivered = 0;
        self.since = now;
    }

    /// What the path carries without a queue, bytes.
    fn pipe(&self) -> Option<u64> {
        Some((self.bandwidth? * self.rtt_min?.as_secs_f64()) as u64)
    }
}

impl CongestionControl for Westwood {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        if sample.in_flight <= u64::from(sample.bytes) {
            self.rounds.restart();
            self.restart(now);
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.delivered = self.delivered.saturating_add(sample.delivered);
        if self.rounds.on_ack(sample) {
            self.measure(now);
        }
        self.reno.on_ack(now, sample);
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        match self.pipe() {
            Some(pipe) => self.reno.reduce_to(pipe),
            None => self.reno.on_loss(now, sample),
        }
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        match self.pipe() {
            Some(pipe) => self.reno.reduce_to(pipe),
            None => self.reno.on_ecn(now, sample),
        }
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        if let Some(pipe) = self.pipe().filter(|_| !sample.keeps_threshold()) {
            self.reno.reduce_to(pipe);
            self.reno.on_rto(now, &RtoSample { again: true, ..*sample });
        } else {
            self.reno.on_rto(now, sample);
        }
    }

    crate::forward! { reno: on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Snapshot;
    use crate::cc::ack_of;

    const MSS: u32 = 1000;

    fn westwood() -> Westwood {
        let start = Start { mss: MSS, initial_window: 40_000, initial_ssthresh: u64::MAX, seed: 0 };
        Westwood::new(&start, Options::default())
    }

    /// ACKs of one segment each, spaced by `gap`, with `in_flight` on the way before each.
    fn acks(westwood: &mut Westwood, now: &mut Time, count: u32, gap: Span, in_flight: u64) {
        let rtt = Some(Span::from_millis(20));
        for _ in 0..count {
            *now += gap;
            let ack = AckSample { in_flight, rtt, cwnd_limited: false, ..ack_of(MSS) };
            westwood.on_ack(*now, &ack);
        }
    }

    #[test]
    fn after_a_loss_the_window_is_bandwidth_times_least_round_trip() {
        let (mut westwood, mut now) = (westwood(), Time::ZERO);
        // 1000 bytes a millisecond and 20 ms: 20 segments fit on the path.
        acks(&mut westwood, &mut now, 400, Span::from_millis(1), 40_000);
        let bandwidth = westwood.bandwidth().unwrap();
        assert!((bandwidth - 1e6).abs() < 1e4, "{bandwidth} bytes/s");
        westwood.on_loss(now, &LossSample { in_flight: 40_000, ..LossSample::default() });
        let Snapshot { cwnd, ssthresh } = westwood.snapshot();
        assert_eq!(cwnd, ssthresh);
        assert!((19_800..=20_200).contains(&cwnd), "{cwnd} bytes");
    }

    #[test]
    fn the_filter_gives_an_eighth_to_each_round_trip() {
        let (mut westwood, mut now) = (westwood(), Time::ZERO);
        acks(&mut westwood, &mut now, 401, Span::from_millis(1), 40_000);
        let before = westwood.bandwidth().unwrap();
        // 40 further segments end the round: at half the pace.
        acks(&mut westwood, &mut now, 40, Span::from_millis(2), 40_000);
        let after = westwood.bandwidth().unwrap();
        let expected = before * (7.0 + 0.5) / 8.0;
        assert!((after - expected).abs() < 1e-3 * before, "{after} against {expected}");
    }

    #[test]
    fn silence_is_no_slow_path() {
        let (mut westwood, mut now) = (westwood(), Time::ZERO);
        acks(&mut westwood, &mut now, 400, Span::from_millis(1), 40_000);
        let before = westwood.bandwidth().unwrap();
        now += Span::from_secs(10);
        westwood.on_sent(
            now,
            &SentSample { bytes: MSS, in_flight: u64::from(MSS), retransmission: false },
        );
        acks(&mut westwood, &mut now, 400, Span::from_millis(1), 40_000);
        let after = westwood.bandwidth().unwrap();
        assert!((after - before).abs() < 0.02 * before, "{after} against {before}");
    }

    #[test]
    fn a_timeout_keeps_the_measured_threshold() {
        let (mut westwood, mut now) = (westwood(), Time::ZERO);
        acks(&mut westwood, &mut now, 400, Span::from_millis(1), 40_000);
        westwood.on_rto(now, &RtoSample { in_flight: 40_000, ..RtoSample::default() });
        let Snapshot { cwnd, ssthresh } = westwood.snapshot();
        assert_eq!(cwnd, 1000);
        assert!((19_800..=20_200).contains(&ssthresh), "{ssthresh} bytes");
    }

    #[test]
    fn without_a_sample_loss_halves() {
        let mut westwood = westwood();
        westwood.on_loss(Time::ZERO, &LossSample { in_flight: 40_000, ..LossSample::default() });
        assert_eq!(westwood.cwnd(), 20_000);
    }
}
