//! BBR version 3 (draft-ietf-ccwg-bbr-06, 2026).
//!
//! As version 1, the rate follows the largest delivery rate (of two probing cycles) and the window the
//! bandwidth times the least round trip; and loss bounds both: over the long term by what was on the way
//! when a probe lost more than 2 % (`inflight_longterm`), over the short term by what is delivered while
//! losses go on (`bw_shortterm`, `inflight_shortterm`). The files: this one holds the model, the order of
//! steps (section 5.2) and the control parameters (5.6); `cycle` the state machine (5.3), `probing` where
//! its cycle is; `probe_rtt` the least round trip (5.3.4), `bounds` what losses say (5.5.10).
//!
//! - The draft judges each lost packet by its own `tx_in_flight` (5.5.10.2) / we judge each ACK that
//!   reveals losses by that of the newest segment it delivered / because samples come per ACK.
//! - The draft wants six discontiguous lost ranges to leave Startup (5.3.1.3) / we count ACKs that
//!   reveal losses, as Linux does.
//! - The draft leaves the response to marks open but wants one (3.7) / a mark counts as a loss that
//!   exceeds the threshold.
//! - The draft marks the connection application-limited in ProbeRTT / we leave out the samples of what
//!   leaves meanwhile.
//!
//! Left out: the undo of a spurious recovery (5.5.11), for which loss recovery has no signal.

mod bounds;
mod cycle;
mod probe_rtt;
mod probing;
mod state;

use super::super::{
    AckSample, CongestionControl, EcnSample, LossSample, RtoSample, SentSample, Snapshot, Start,
};
use super::deliveries::Deliveries;
use super::delivery_rate;
use super::filter::WindowedMax;
use super::full_pipe::FullPipe;
use super::pacing::Pacing;
use super::window::Window;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;
use bounds::Bounds;
use probe_rtt::RoundTrip;
use probing::Probing;
use state::Delivery;

pub use state::State;

/// BBR version 3's sender.
#[derive(Clone, Debug)]
pub struct BbrV3 {
    state: State,
    window: Window,
    pacing: Pacing,
    deliveries: Deliveries,
    full_pipe: FullPipe,
    bandwidth: Bandwidth,
    bounds: Bounds,
    probing: Probing,
    round_trip: RoundTrip,
    aggregation: Aggregation,
    drain_start_round: u64,
    recovery: Recovery,
    rng: Rng,
}

/// The largest delivery rate of two cycles (section 5.5.5).
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidth {
    max: WindowedMax<MAX_BW_FILTER_CYCLES>,
    cycles: u64,
    /// The one in use: the largest, or the short-term bound.
    now: f64,
}

impl Bandwidth {
    fn record(&mut self, rate: f64) {
        self.max.record(self.cycles, rate);
    }

    fn end_cycle(&mut self) {
        self.cycles += 1;
        self.max.advance(self.cycles);
    }
}

/// Loss recovery.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    fast: bool,
    /// After a time-out: still to be acknowledged, bytes.
    timed_out: u64,
}

impl Recovery {
    const fn is_fast(self) -> bool {
        self.fast
    }

    const fn is_any(self) -> bool {
        self.fast || self.timed_out > 0
    }

    /// So much was acknowledged: whether everything that was on the way at the time-out is now.
    const fn leave_timeout(&mut self, acked: u64) -> bool {
        let before = self.timed_out;
        self.timed_out = before.saturating_sub(acked);
        before > 0 && self.timed_out == 0
    }
}

/// How much arrives at once beyond the bandwidth (section 5.5.9).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    since: Time,
    delivered: f64,
    extra: WindowedMax<EXTRA_ACKED_FILTER_ROUNDS>,
}

impl BbrV3 {
    /// A fresh connection (section 5.2.1).
    pub fn new(start: &Start) -> Self {
        let window = Window::new(start);
        Self {
            state: State::Startup,
            pacing: Pacing::new(window.initial(), State::Startup.gains().0, window.mss()),
            window,
            deliveries: Deliveries::default(),
            full_pipe: FullPipe::default(),
            bandwidth: Bandwidth::default(),
            bounds: Bounds::default(),
            probing: Probing::default(),
            round_trip: RoundTrip::default(),
            aggregation: Aggregation::default(),
            drain_start_round: 0,
            recovery: Recovery::default(),
            rng: Rng::named(start.seed, "bbr/v3"),
        }
    }

    /// What it is about.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The largest bandwidth of two cycles, bytes per second.
    pub fn max_bandwidth(&self) -> f64 {
        self.bandwidth.max.max()
    }

    /// Estimated round trip without queues.
    pub const fn min_rtt(&self) -> Option<Span> {
        self.round_trip.min()
    }

    /// Bytes on the way beyond which probes lost too much.
    pub fn inflight_longterm(&self) -> Option<u64> {
        let bound = self.bounds.longterm();
        bound.is_finite().then_some(bound as u64)
    }

    /// BDPMultiple with that bandwidth (section 5.6.4.2).
    fn bdp(&self, bw: f64) -> f64 {
        match self.round_trip.min() {
            Some(min_rtt) => bw * min_rtt.as_secs_f64(),
            None => self.window.initial(),
        }
    }

    /// QuantizationBudget (section 5.6.4.2), with the offload budget of TCP (5.5.8.1).
    fn quantized(&self, inflight: f64) -> f64 {
        let quantum =
            (self.pacing.bytes_per_second() * 1e-3).min(64e3).max(2.0 * self.window.mss());
        let floor = (3.0 * quantum).max(self.min_pipe());
        let extra = if self.state == State::Up { 2.0 * self.window.mss() } else { 0.0 };
        inflight.max(floor) + extra
    }

    /// Inflight(1.0) at that bandwidth.
    fn inflight(&self, bw: f64) -> f64 {
        self.quantized(self.bdp(bw))
    }

    /// TargetInflight (section 5.3.3.8.3).
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bandwidth.now).min(self.window.bytes())
    }

    fn min_pipe(&self) -> f64 {
        MIN_PIPE_CWND * self.window.mss()
    }

    /// UpdateModelAndState (section 5.2.3).
    fn update_model(&mut self, now: Time, ack: &AckSample, delivery: &Delivery) {
        self.bounds.update_latest(delivery);
        self.update_max_bw(delivery);
        let (probing, max_bw) = (self.state.is_probing(), self.max_bandwidth());
        self.bounds.adapt_short_term(probing, max_bw, self.window.bytes());
        self.update_aggregation(now, delivery);
        if self.deliveries.is_round_start() && !delivery.app_limited {
            self.full_pipe.on_round(delivery.rate);
        }
        self.check_startup_done(delivery);
        self.check_drain_done(now);
        self.update_cycle(now, delivery);
        self.round_trip.update(now, ack.rtt);
        self.check_probe_rtt(now, ack.delivered);
        self.bounds.advance_latest(delivery);
        self.bandwidth.now = self.max_bandwidth().min(self.bounds.bandwidth());
    }

    /// UpdateMaxBw (section 5.5.5).
    fn update_max_bw(&mut self, delivery: &Delivery) {
        if self.deliveries.update_round(&delivery.sample) {
            self.probing.rounds_since_probe_up += 1;
        }
        if delivery.rate >= self.max_bandwidth() || !delivery.app_limited {
            self.bandwidth.record(delivery.rate);
        }
    }

    /// UpdateACKAggregation (section 5.5.9).
    fn update_aggregation(&mut self, now: Time, delivery: &Delivery) {
        let aggregation = &mut self.aggregation;
        let mut expected = self.bandwidth.now * now.since(aggregation.since).as_secs_f64();
        if aggregation.delivered <= expected {
            aggregation.delivered = 0.0;
            aggregation.since = now;
            expected = 0.0;
        }
        aggregation.delivered += delivery.acked;
        let extra = (aggregation.delivered - expected).min(self.window.bytes());
        aggregation.extra.record(self.deliveries.round(), extra);
    }

    /// In Startup one round is remembered, then ten.
    fn extra_acked(&self) -> f64 {
        let extra = &self.aggregation.extra;
        if self.full_pipe.is_reached() { extra.max() } else { extra.newest() }
    }

    /// SetPacingRateWithGain (section 5.6.2).
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.now * (100.0 - PACING_MARGIN_PERCENT) / 100.0;
        self.pacing.set(rate, self.full_pipe.is_reached());
    }

    /// SetCwnd (section 5.6.4.6).
    fn set_cwnd(&mut self, acked: f64) {
        let cap = self.state.gains().1 * self.bdp(self.bandwidth.now) + self.extra_acked();
        let max_inflight = self.quantized(cap);
        let (full, total) = (self.full_pipe.is_reached(), self.deliveries.total());
        self.window.grow(acked, max_inflight, full, total);
        self.window.at_least(self.min_pipe());
        if self.state == State::ProbeRtt {
            self.window.at_most(self.probe_rtt_cwnd());
        }
        self.window.at_most(self.volume_cap());
    }

    /// BoundCwndForModel (section 5.6.4.7).
    fn volume_cap(&self) -> f64 {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.longterm(),
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        cap.min(self.bounds.shortterm()).max(self.min_pipe())
    }

    /// InflightWithHeadroom (section 5.3.3.9).
    fn inflight_with_headroom(&self) -> f64 {
        self.bounds.inflight_with_headroom(self.window.mss(), self.min_pipe())
    }

    /// HandleLostPacket, for all that an ACK revealed.
    fn handle_loss(&mut self, now: Time, delivery: &Delivery) {
        self.bounds.note_loss(self.deliveries.total());
        self.bounds.count_event();
        if self.probing.is_sample && delivery.is_inflight_too_high() {
            let in_flight = delivery.sample.tx_in_flight as f64;
            self.handle_inflight_too_high(now, in_flight, delivery.app_limited);
        }
    }

    /// A mark: as a loss above the threshold.
    fn handle_mark(&mut self, now: Time) {
        self.bounds.note_loss(self.deliveries.total());
        if self.probing.is_sample {
            self.handle_inflight_too_high(now, self.deliveries.in_flight() as f64, false);
        }
    }

    fn handle_inflight_too_high(&mut self, now: Time, in_flight: f64, app_limited: bool) {
        self.probing.prev_too_high = true;
        self.probing.is_sample = false;
        if !app_limited {
            self.bounds.lower_longterm(in_flight, self.target_inflight());
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    fn save_cwnd(&mut self) {
        self.window.save(self.recovery.is_any() || self.state == State::ProbeRtt);
    }
}

impl CongestionControl for BbrV3 {
    /// HandleRestartFromIdle (section 5.4.1).
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        if self.deliveries.on_sent(sample) {
            self.aggregation.since = now;
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            }
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.deliveries.on_ack(sample);
        if let Some(srtt) = sample.srtt {
            self.pacing.on_rtt(srtt, self.window.initial(), State::Startup.gains().0);
        }
        if self.recovery.leave_timeout(sample.acked) {
            self.window.restore();
        }
        if let Some(rate) = sample.rate {
            let delivery = Delivery {
                rate: delivery_rate(&rate),
                sample: rate,
                app_limited: self.deliveries.on_rate(&rate),
                acked: sample.delivered as f64,
                cwnd_limited: sample.cwnd_limited,
            };
            if sample.lost > 0 {
                self.handle_loss(now, &delivery);
            }
            self.update_model(now, sample, &delivery);
        } else {
            if sample.lost > 0 {
                self.bounds.note_loss(self.deliveries.total());
            }
            self.round_trip.update(now, sample.rtt);
        }
        self.set_pacing_rate(self.state.gains().0);
        self.set_cwnd(sample.delivered as f64);
    }

    /// OnEnterFastRecovery (section 5.6.4.4); the window itself follows the bounds.
    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {
        self.save_cwnd();
        self.bounds.on_recovery(self.deliveries.round(), self.deliveries.total());
        self.recovery.fast = true;
    }

    fn on_recovered(&mut self, _now: Time) {
        self.recovery.fast = false;
        self.window.restore();
    }

    fn on_ecn(&mut self, now: Time, _sample: &EcnSample) {
        self.handle_mark(now);
        self.window.at_most(self.volume_cap());
    }

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        self.save_cwnd();
        self.deliveries.on_rto(sample);
        self.recovery = Recovery { fast: false, timed_out: sample.in_flight };
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
        self.rng.reseed(seed);
    }
}

/// Sections 5.5.3 and 5.5.6.
const MAX_BW_FILTER_CYCLES: usize = 2;
/// Section 5.5.9.
const EXTRA_ACKED_FILTER_ROUNDS: usize = 10;
/// Section 5.6.2.
const PACING_MARGIN_PERCENT: f64 = 1.0;
/// Segments (section 5.6.4.3).
const MIN_PIPE_CWND: f64 = 4.0;
#[cfg(test)]
mod tests;
