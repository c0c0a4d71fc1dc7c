//! What losses say about the path (draft-ietf-ccwg-bbr-06 sections 5.3.1.3 and 5.5.10).

use super::{BbrV3, Delivery, State};
use crate::time::Time;

/// Bounds learnt from loss, and the signals that they are learnt from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) inflight_longterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) bw_shortterm: f64,
    /// The largest of the last round.
    bw_latest: f64,
    pub(super) inflight_latest: f64,
    loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_started: bool,
    /// ACKs of this round that revealed losses.
    loss_events: u32,
    /// The round in which fast recovery began.
    pub(super) recovery_round: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bw_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_started: false,
            loss_events: 0,
            recovery_round: 0,
        }
    }
}

impl Bounds {
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }
}

/// IsInflightTooHigh (section 5.5.10.2).
pub(super) fn is_inflight_too_high(delivery: &Delivery) -> bool {
    delivery.sample.lost as f64 > delivery.sample.tx_in_flight as f64 * LOSS_THRESH
}

impl BbrV3 {
    /// NoteLoss.
    pub(super) fn note_loss(&mut self) {
        if !self.bounds.loss_in_round {
            self.bounds.loss_round_delivered = self.delivered;
        }
        self.bounds.loss_in_round = true;
    }

    /// HandleLostPacket, for all that an ACK revealed.
    pub(super) fn handle_loss(&mut self, now: Time, delivery: &Delivery) {
        self.note_loss();
        self.bounds.loss_events += 1;
        if self.probing.is_sample && is_inflight_too_high(delivery) {
            let in_flight = delivery.sample.tx_in_flight as f64;
            self.handle_inflight_too_high(now, in_flight, delivery.app_limited);
        }
    }

    /// A mark: as a loss above the threshold.
    pub(super) fn handle_mark(&mut self, now: Time) {
        self.note_loss();
        if self.probing.is_sample {
            self.handle_inflight_too_high(now, self.pipe.bytes() as f64, false);
        }
    }

    fn handle_inflight_too_high(&mut self, now: Time, in_flight: f64, app_limited: bool) {
        self.probing.prev_too_high = true;
        self.probing.is_sample = false;
        if !app_limited {
            self.bounds.inflight_longterm = in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    /// UpdateLatestDeliverySignals (section 5.5.10.3).
    pub(super) fn update_latest_delivery(&mut self, delivery: &Delivery) {
        let bounds = &mut self.bounds;
        bounds.bw_latest = bounds.bw_latest.max(delivery.rate);
        bounds.inflight_latest = bounds.inflight_latest.max(delivery.sample.delivered as f64);
        bounds.loss_round_started = delivery.sample.prior_delivered >= bounds.loss_round_delivered;
        if bounds.loss_round_started {
            bounds.loss_round_delivered = delivery.sample.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery(&mut self, delivery: &Delivery) {
        if self.bounds.loss_round_started {
            self.bounds.bw_latest = delivery.rate;
            self.bounds.inflight_latest = delivery.sample.delivered as f64;
            self.bounds.loss_events = 0;
        }
    }

    /// UpdateCongestionSignals: once per round with losses, while not probing, the short-term bounds
    /// come down to what is delivered, at most by three tenths.
    pub(super) fn adapt_short_term(&mut self) {
        if !self.bounds.loss_round_started {
            return;
        }
        if self.bounds.loss_in_round && !self.state.is_probing() {
            let (max_bw, cwnd) = (self.max_bandwidth(), self.cwnd);
            let bounds = &mut self.bounds;
            let bw = if bounds.bw_shortterm.is_finite() { bounds.bw_shortterm } else { max_bw };
            let inflight = if bounds.inflight_shortterm.is_finite() {
                bounds.inflight_shortterm
            } else {
                cwnd
            };
            bounds.bw_shortterm = bounds.bw_latest.max(BETA * bw);
            bounds.inflight_shortterm = bounds.inflight_latest.max(BETA * inflight);
        }
        self.bounds.loss_in_round = false;
    }

    /// CheckStartupHighLoss (section 5.3.1.3): a round of recovery with enough losses, and above the
    /// threshold.
    pub(super) fn is_startup_loss_high(&self, delivery: &Delivery) -> bool {
        self.in_fast_recovery
            && self.rounds.count > self.bounds.recovery_round
            && self.bounds.loss_round_started
            && self.bounds.loss_events >= STARTUP_FULL_LOSS_COUNT
            && is_inflight_too_high(delivery)
    }

    /// InflightWithHeadroom (section 5.3.3.9).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.bounds.inflight_longterm;
        if bound.is_infinite() {
            return f64::INFINITY;
        }
        (bound - self.mss.max(HEADROOM * bound)).max(self.min_pipe())
    }
}

/// Section 5.5.10.2.
const LOSS_THRESH: f64 = 0.02;
/// Sections 5.5.10.2 and 5.5.10.3.
const BETA: f64 = 0.7;
/// Section 5.3.3.1: cruising leaves 15 % of the long-term bound free.
const HEADROOM: f64 = 0.15;
/// Section 5.3.1.3.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
