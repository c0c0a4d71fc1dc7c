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
use super::filter::WindowedMax;
use super::full_pipe::FullPipe;
use super::pacing::Pacing;
use super::pipe::Pipe;
use super::rounds::PacketRounds;
use super::{SelfLimited, delivery_rate};
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

/// BBR version 1's sender.
#[derive(Clone, Debug)]
pub struct BbrV1 {
    mss: f64,
    initial_cwnd: f64,
    cwnd: f64,
    state: State,
    pacing: Pacing,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: PacketRounds,
    full_pipe: FullPipe,
    pipe: Pipe,
    bandwidth: WindowedMax<BTL_BW_FILTER_ROUNDS>,
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    cycle_index: usize,
    cycle_stamp: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    self_limited: SelfLimited,
    prior_cwnd: f64,
    recovery: Recovery,
    idle_restart: bool,
    delivered: u64,
    rng: Rng,
}

impl BbrV1 {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        let mss = f64::from(start.mss.max(1));
        let initial_cwnd = (start.initial_window as f64).max(mss);
        Self {
            mss,
            initial_cwnd,
            cwnd: initial_cwnd,
            state: State::Startup,
            pacing: Pacing::new(initial_cwnd, HIGH_GAIN, mss),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            rounds: PacketRounds::default(),
            full_pipe: FullPipe::default(),
            pipe: Pipe::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            cycle_index: 0,
            cycle_stamp: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            self_limited: SelfLimited::default(),
            prior_cwnd: 0.0,
            recovery: Recovery::None,
            idle_restart: false,
            delivered: 0,
            rng: Rng::named(start.seed, "bbr/v1"),
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
        self.min_rtt
    }

    /// Section 4.2.3.2, with the quanta of hosts that send in bursts.
    fn inflight(&self, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt else { return self.initial_cwnd };
        gain * self.bandwidth() * min_rtt.as_secs_f64() + 3.0 * self.send_quantum()
    }

    /// Section 4.2.2.
    fn send_quantum(&self) -> f64 {
        match self.pacing.bytes_per_second() {
            rate if rate < 1.2e6 / 8.0 => self.mss,
            rate if rate < 24e6 / 8.0 => 2.0 * self.mss,
            rate => (rate * 1e-3).min(64.0 * 1024.0),
        }
    }

    /// Section 4.1.1: rounds and the bandwidth filter.
    fn update_bandwidth(&mut self, rate: &RateSample, app_limited: bool) {
        self.rounds.on_ack(rate);
        let sample = delivery_rate(rate);
        // Samples that do not count let nothing age: ten rounds of ProbeRTT would empty the filter.
        if sample >= self.bandwidth() || !app_limited {
            self.bandwidth.record(self.rounds.count, sample);
        }
    }

    /// Sections 4.3.2.2 and 4.3.3.
    fn check_pipe(&mut self, now: Time, app_limited: bool) {
        if !self.full_pipe.reached && self.rounds.started && !app_limited {
            self.full_pipe.on_round(self.bandwidth.max());
        }
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            (self.pacing_gain, self.cwnd_gain) = (1.0 / HIGH_GAIN, HIGH_GAIN);
        }
        if self.state == State::Drain && self.pipe.bytes() as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Section 4.3.4.1: any phase but the one below 1.
    fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        (self.pacing_gain, self.cwnd_gain) = (1.0, PROBE_BW_CWND_GAIN);
        let phases = PACING_GAIN_CYCLE.len();
        self.cycle_index = phases - 1 - self.rng.below(phases as u64 - 1) as usize;
        self.advance_cycle(now);
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % PACING_GAIN_CYCLE.len();
        self.pacing_gain = PACING_GAIN_CYCLE[self.cycle_index];
    }

    fn check_cycle(&mut self, now: Time, lost: u64, prior_in_flight: u64) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = now.since(self.cycle_stamp) > self.min_rtt.unwrap_or(Span::ZERO);
        let prior = prior_in_flight as f64;
        let next = if self.pacing_gain > 1.0 {
            full_length && (lost > 0 || prior >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full_length || prior <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.advance_cycle(now);
        }
    }

    /// Sections 4.1.2.3 and 4.3.5.
    fn update_rtt(&mut self, now: Time, sample: &AckSample) {
        let expired = now > self.min_rtt_stamp + MIN_RTT_FILTER;
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt <= min))
        {
            (self.min_rtt, self.min_rtt_stamp) = (Some(rtt), now);
        }
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.probe_rtt_done = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.self_limited.mark(self.delivered, self.pipe.bytes());
        match self.probe_rtt_done {
            None if self.pipe.bytes() as f64 <= MIN_PIPE_CWND * self.mss => {
                self.probe_rtt_done = Some(now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.rounds.restart(self.delivered);
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round_done |= self.rounds.started;
                if self.probe_rtt_round_done && now > done {
                    self.min_rtt_stamp = now;
                    self.restore_cwnd();
                    self.leave_probe_rtt(now);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        if self.full_pipe.reached {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
            (self.pacing_gain, self.cwnd_gain) = (HIGH_GAIN, HIGH_GAIN);
        }
    }

    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.recovery != Recovery::None || self.state == State::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Section 4.2.3.
    fn set_cwnd(&mut self, sample: &AckSample) {
        let target = self.inflight(self.cwnd_gain);
        let delivered = sample.delivered as f64;
        if self.recovery != Recovery::None && sample.lost > 0 {
            self.cwnd = (self.cwnd - sample.lost as f64).max(self.mss);
        }
        if self.recovery == Recovery::Conserving {
            self.cwnd = self.cwnd.max(self.pipe.bytes() as f64 + delivered);
        } else {
            if self.full_pipe.reached {
                self.cwnd = (self.cwnd + delivered).min(target);
            } else if self.cwnd < target || (self.delivered as f64) < self.initial_cwnd {
                self.cwnd += delivered;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE_CWND * self.mss);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PIPE_CWND * self.mss);
        }
    }

    fn leave_timeout(&mut self, acked: u64) {
        if let Recovery::TimedOut(left) = &mut self.recovery {
            *left = left.saturating_sub(acked);
            if *left == 0 {
                self.recovery = Recovery::None;
                self.restore_cwnd();
            }
        }
    }
}

impl CongestionControl for BbrV1 {
    fn on_sent(&mut self, _now: Time, sample: &SentSample) {
        // Nothing was on the way: the application had nothing to send (section 4.3.4.4).
        let is_restart = sample.in_flight <= u64::from(sample.bytes) && !sample.retransmission;
        if is_restart && self.delivered > 0 {
            self.idle_restart = true;
            if self.state == State::ProbeBw {
                self.pacing.set(self.bandwidth(), self.full_pipe.reached);
            }
        }
        self.pipe.on_sent(sample);
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let prior_in_flight = self.pipe.bytes();
        self.pipe.on_ack(sample);
        self.delivered = self.delivered.saturating_add(sample.delivered);
        if let Some(srtt) = sample.srtt {
            self.pacing.on_rtt(srtt, self.initial_cwnd, HIGH_GAIN);
        }
        self.leave_timeout(sample.acked);
        if let Some(rate) = &sample.rate {
            self.delivered = rate.total_delivered;
            let limited = rate.app_limited || self.self_limited.covers(rate.prior_delivered);
            self.update_bandwidth(rate, limited);
            if self.recovery == Recovery::Conserving && self.rounds.started {
                self.recovery = Recovery::Fast;
            }
            self.check_cycle(now, sample.lost, prior_in_flight);
            self.check_pipe(now, limited);
        }
        self.update_rtt(now, sample);
        self.pacing.set(self.pacing_gain * self.bandwidth(), self.full_pipe.reached);
        self.set_cwnd(sample);
    }

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {
        self.save_cwnd();
        self.recovery = Recovery::Conserving;
        self.rounds.restart(self.delivered);
        self.cwnd = self.cwnd.min(self.pipe.bytes() as f64 + self.mss).max(self.mss);
    }

    fn on_recovered(&mut self, _now: Time) {
        self.recovery = Recovery::None;
        self.restore_cwnd();
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        self.save_cwnd();
        self.pipe.on_rto(sample);
        self.recovery = Recovery::TimedOut(sample.in_flight);
        self.cwnd = self.mss;
    }

    fn wants_rate(&self) -> bool {
        true
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.pacing.bit_rate()
    }

    /// BBR has no ssthresh: arbitrarily high in Startup, then the window.
    fn snapshot(&self) -> Snapshot {
        let ssthresh =
            if self.full_pipe.reached { self.cwnd.max(2.0 * self.mss) } else { f64::MAX };
        Snapshot { cwnd: self.cwnd(), ssthresh: ssthresh as u64 }
    }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
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
/// Section 4.3.5.
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Segments (section 4.2.3.3).
const MIN_PIPE_CWND: f64 = 4.0;

#[cfg(test)]
mod tests;
