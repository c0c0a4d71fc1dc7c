//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, 2017; Cardwell et al., ACM Queue 2016).
//!
//! Bandwidth: the largest delivery rate of ten rounds (section 4.1.1.3). Round trip: the least of ten
//! seconds (4.1.2.3). Startup at 2 / ln 2, Drain at its inverse, ProbeBW in a cycle of eight gains,
//! ProbeRTT with four segments for 200 ms (4.3). Loss matters only within recovery: one round of packet
//! conservation, then the window of before (4.2.3.4). Marks are not heeded: the draft knows none.
//!
//! - The draft marks the connection application-limited in ProbeRTT / we leave out the samples of what
//!   leaves meanwhile / because only the connection knows that mark.
//! - Leaving a time-out is when everything then on the way is acknowledged: the connection tells only of
//!   fast recovery.
//!
//! Left out: the long-term estimate of token-bucket policers and the estimate of ACK aggregation, which
//! Linux has and the draft has not.

use super::super::{
    AckSample, CongestionControl, EcnSample, LossSample, RateSample, RtoSample, SentSample,
    Snapshot, Start,
};
use super::deliveries::Deliveries;
use super::delivery_rate;
use super::filter::WindowedMax;
use super::full_pipe::FullPipe;
use super::pacing::Pacing;
use super::probe_rtt::{Stay, Step};
use super::window::Window;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// What BBR is about (section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubling the rate each round.
    Startup,
    /// Emptying the queue that Startup left.
    Drain,
    /// Cycling around the bandwidth.
    ProbeBw,
    /// Four segments on the way, to see the round trip without a queue.
    ProbeRtt,
}

/// Loss recovery (section 4.2.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// The first round of fast recovery: a segment leaves for each that arrives.
    Conserving,
    Fast,
    /// After a time-out: still to be acknowledged, bytes.
    TimedOut(u64),
}

impl Recovery {
    /// So much was acknowledged: whether that ends the recovery from a time-out.
    fn leave_timeout(&mut self, acked: u64) -> bool {
        let Self::TimedOut(left) = self else { return false };
        *left = left.saturating_sub(acked);
        let over = *left == 0;
        if over {
            *self = Self::None;
        }
        over
    }
}

/// The least round trip of ten seconds (section 4.1.2.3).
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    min: Option<Span>,
    stamp: Time,
}

impl RoundTrip {
    /// Takes a sample; whether the last one had stood for too long.
    fn update(&mut self, now: Time, rtt: Option<Span>) -> bool {
        let expired = now > self.stamp + MIN_RTT_FILTER;
        if let Some(rtt) = rtt
            && (expired || self.min.is_none_or(|min| rtt <= min))
        {
            (self.min, self.stamp) = (Some(rtt), now);
        }
        expired
    }
}

/// Where ProbeBW is in its cycle of gains (section 4.3.4).
#[derive(Clone, Debug)]
struct Cycle {
    index: usize,
    since: Time,
    rng: Rng,
}

impl Cycle {
    /// Section 4.3.4.1: any phase but the one below 1.
    fn begin(&mut self, now: Time) {
        let phases = PACING_GAIN_CYCLE.len();
        self.index = phases - 1 - self.rng.below(phases as u64 - 1) as usize;
        self.advance(now);
    }

    const fn advance(&mut self, now: Time) {
        self.since = now;
        self.index = (self.index + 1) % PACING_GAIN_CYCLE.len();
    }

    const fn gain(&self) -> f64 {
        PACING_GAIN_CYCLE[self.index]
    }
}

/// BBR version 1's sender.
#[derive(Clone, Debug)]
pub struct BbrV1 {
    state: State,
    window: Window,
    pacing: Pacing,
    deliveries: Deliveries,
    full_pipe: FullPipe,
    bandwidth: WindowedMax<BTL_BW_FILTER_ROUNDS>,
    round_trip: RoundTrip,
    cycle: Cycle,
    probe_rtt: Stay,
    recovery: Recovery,
}

impl BbrV1 {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        let window = Window::new(start);
        Self {
            state: State::Startup,
            pacing: Pacing::new(window.initial(), HIGH_GAIN, window.mss()),
            window,
            deliveries: Deliveries::default(),
            full_pipe: FullPipe::default(),
            bandwidth: WindowedMax::default(),
            round_trip: RoundTrip::default(),
            cycle: Cycle { index: 0, since: Time::ZERO, rng: Rng::named(start.seed, "bbr/v1") },
            probe_rtt: Stay::default(),
            recovery: Recovery::None,
        }
    }

    /// What it is about.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Estimated bottleneck bandwidth, bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth.max()
    }

    /// Estimated round trip without queues.
    pub const fn min_rtt(&self) -> Option<Span> {
        self.round_trip.min
    }

    /// Of the pacing rate and of the window.
    const fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            State::ProbeBw => (self.cycle.gain(), PROBE_BW_CWND_GAIN),
            State::ProbeRtt => (1.0, 1.0),
        }
    }

    /// Section 4.2.3.2, with the quanta of hosts that send in bursts.
    fn inflight(&self, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt() else { return self.window.initial() };
        gain * self.bandwidth() * min_rtt.as_secs_f64() + 3.0 * self.send_quantum()
    }

    /// Section 4.2.2.
    fn send_quantum(&self) -> f64 {
        match self.pacing.bytes_per_second() {
            rate if rate < 1.2e6 / 8.0 => self.window.mss(),
            rate if rate < 24e6 / 8.0 => 2.0 * self.window.mss(),
            rate => (rate * 1e-3).min(64.0 * 1024.0),
        }
    }

    fn min_pipe(&self) -> f64 {
        MIN_PIPE_CWND * self.window.mss()
    }

    /// Section 4.1.1: rounds and the bandwidth filter.
    fn update_bandwidth(&mut self, rate: &RateSample, app_limited: bool) {
        self.deliveries.update_round(rate);
        let sample = delivery_rate(rate);
        // Samples that do not count let nothing age: ten rounds of ProbeRTT would empty the filter.
        if sample >= self.bandwidth() || !app_limited {
            self.bandwidth.record(self.deliveries.round(), sample);
        }
    }

    /// Sections 4.3.2.2 and 4.3.3.
    fn check_pipe(&mut self, now: Time, app_limited: bool) {
        if !self.full_pipe.is_reached() && self.deliveries.is_round_start() && !app_limited {
            self.full_pipe.on_round(self.bandwidth.max());
        }
        if self.state == State::Startup && self.full_pipe.is_reached() {
            self.state = State::Drain;
        }
        if self.state == State::Drain && self.deliveries.in_flight() as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        self.cycle.begin(now);
    }

    fn check_cycle(&mut self, now: Time, lost: u64, prior_in_flight: u64) {
        if self.state != State::ProbeBw {
            return;
        }
        let gain = self.cycle.gain();
        let full_length = now.since(self.cycle.since) > self.min_rtt().unwrap_or(Span::ZERO);
        let prior = prior_in_flight as f64;
        let next = if gain > 1.0 {
            full_length && (lost > 0 || prior >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || prior <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.cycle.advance(now);
        }
    }

    /// Sections 4.1.2.3 and 4.3.5.
    fn update_rtt(&mut self, now: Time, sample: &AckSample) {
        let expired = self.round_trip.update(now, sample.rtt);
        if self.state != State::ProbeRtt && expired && !self.deliveries.is_restarting() {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt = Stay::default();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if sample.delivered > 0 {
            self.deliveries.end_restart();
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.deliveries.limit();
        let is_little = self.deliveries.in_flight() as f64 <= self.min_pipe();
        match self.probe_rtt.step(now, is_little, self.deliveries.is_round_start()) {
            Step::Waits => {}
            Step::Begun => self.deliveries.start_round(),
            Step::Done => {
                self.round_trip.stamp = now;
                self.window.restore();
                self.leave_probe_rtt(now);
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        if self.full_pipe.is_reached() {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }

    fn save_cwnd(&mut self) {
        self.window.save(self.recovery != Recovery::None || self.state == State::ProbeRtt);
    }

    /// Section 4.2.3.
    fn set_cwnd(&mut self, sample: &AckSample) {
        let target = self.inflight(self.gains().1);
        let delivered = sample.delivered as f64;
        if self.recovery != Recovery::None && sample.lost > 0 {
            self.window.shrink(sample.lost);
        }
        if self.recovery == Recovery::Conserving {
            self.window.at_least(self.deliveries.in_flight() as f64 + delivered);
        } else {
            let (full, total) = (self.full_pipe.is_reached(), self.deliveries.total());
            self.window.grow(delivered, target, full, total);
            self.window.at_least(self.min_pipe());
        }
        if self.state == State::ProbeRtt {
            self.window.at_most(self.min_pipe());
        }
    }
}

impl CongestionControl for BbrV1 {
    fn on_sent(&mut self, _now: Time, sample: &SentSample) {
        // Section 4.3.4.4.
        if self.deliveries.on_sent(sample) && self.state == State::ProbeBw {
            self.pacing.set(self.bandwidth(), self.full_pipe.is_reached());
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let prior_in_flight = self.deliveries.in_flight();
        self.deliveries.on_ack(sample);
        if let Some(srtt) = sample.srtt {
            self.pacing.on_rtt(srtt, self.window.initial(), HIGH_GAIN);
        }
        if self.recovery.leave_timeout(sample.acked) {
            self.window.restore();
        }
        if let Some(rate) = &sample.rate {
            let limited = self.deliveries.on_rate(rate);
            self.update_bandwidth(rate, limited);
            if self.recovery == Recovery::Conserving && self.deliveries.is_round_start() {
                self.recovery = Recovery::Fast;
            }
            self.check_cycle(now, sample.lost, prior_in_flight);
            self.check_pipe(now, limited);
        }
        self.update_rtt(now, sample);
        self.pacing.set(self.gains().0 * self.bandwidth(), self.full_pipe.is_reached());
        self.set_cwnd(sample);
    }

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {
        self.save_cwnd();
        self.recovery = Recovery::Conserving;
        self.deliveries.start_round();
        self.window.conserve(self.deliveries.in_flight());
    }

    fn on_recovered(&mut self, _now: Time) {
        self.recovery = Recovery::None;
        self.window.restore();
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        self.save_cwnd();
        self.deliveries.on_rto(sample);
        self.recovery = Recovery::TimedOut(sample.in_flight);
        self.window.collapse();
    }

    fn wants_rate(&self) -> bool {
        true
    }

    fn cwnd(&self) -> u64 {
        self.window.bytes() as u64
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.pacing.bit_rate()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot(self.full_pipe.is_reached())
    }

    fn reseed(&mut self, seed: u64) {
        self.cycle.rng.reseed(seed);
    }
}

/// 2 / ln 2: doubles the rate each round (section 4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Section 4.3.4.1.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Section 4.2.3.2.
const PROBE_BW_CWND_GAIN: f64 = 2.0;
/// Section 4.1.1.3.
const BTL_BW_FILTER_ROUNDS: usize = 10;
/// Section 4.1.2.3.
const MIN_RTT_FILTER: Span = Span::from_secs(10);
/// Segments (section 4.2.3.3).
const MIN_PIPE_CWND: f64 = 4.0;

#[cfg(test)]
mod tests;
