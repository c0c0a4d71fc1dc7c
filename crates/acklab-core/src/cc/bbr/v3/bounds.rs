//! What losses say about the path (draft-ietf-ccwg-bbr-06 sections 5.3.1.3 and 5.5.10).

use super::state::Delivery;

/// Bounds learnt from loss, and the signals that they are learnt from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    inflight_longterm: f64,
    inflight_shortterm: f64,
    bw_shortterm: f64,
    /// The largest of the last round.
    bw_latest: f64,
    inflight_latest: f64,
    loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_started: bool,
    /// ACKs of this round that revealed losses.
    loss_events: u32,
    /// The round in which fast recovery began.
    recovery_round: u64,
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
    /// What was on the way when a probe lost too much, or no bound.
    pub(super) const fn longterm(&self) -> f64 {
        self.inflight_longterm
    }

    /// What is delivered while losses go on, or no bound.
    pub(super) const fn shortterm(&self) -> f64 {
        self.inflight_shortterm
    }

    /// The same of the bandwidth.
    pub(super) const fn bandwidth(&self) -> f64 {
        self.bw_shortterm
    }

    /// Fast recovery begins in that round, when so many bytes were delivered.
    pub(super) fn on_recovery(&mut self, round: u64, delivered: u64) {
        self.note_loss(delivered);
        self.recovery_round = round;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// NoteLoss, when so many bytes were delivered.
    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
        }
        self.loss_in_round = true;
    }

    /// An ACK revealed losses.
    pub(super) fn count_event(&mut self) {
        self.loss_events += 1;
    }

    /// UpdateLatestDeliverySignals (section 5.5.10.3).
    pub(super) fn update_latest(&mut self, delivery: &Delivery) {
        self.bw_latest = self.bw_latest.max(delivery.rate);
        self.inflight_latest = self.inflight_latest.max(delivery.sample.delivered as f64);
        self.loss_round_started = delivery.sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_started {
            self.loss_round_delivered = delivery.sample.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, delivery: &Delivery) {
        if self.loss_round_started {
            self.bw_latest = delivery.rate;
            self.inflight_latest = delivery.sample.delivered as f64;
            self.loss_events = 0;
        }
    }

    /// UpdateCongestionSignals: once per round with losses, while not `probing`, the short-term bounds
    /// come down to what is delivered, at most by three tenths.
    pub(super) fn adapt_short_term(&mut self, probing: bool, max_bw: f64, cwnd: f64) {
        if !self.loss_round_started {
            return;
        }
        if self.loss_in_round && !probing {
            let bw = if self.bw_shortterm.is_finite() { self.bw_shortterm } else { max_bw };
            let inflight =
                if self.inflight_shortterm.is_finite() { self.inflight_shortterm } else { cwnd };
            self.bw_shortterm = self.bw_latest.max(BETA * bw);
            self.inflight_shortterm = self.inflight_latest.max(BETA * inflight);
        }
        self.loss_in_round = false;
    }

    /// The long-term bound where Startup ends with losses at a bandwidth-delay product of `bdp`.
    pub(super) fn bound_startup(&mut self, bdp: f64) {
        self.inflight_longterm = bdp.max(self.inflight_latest);
    }

    /// So much on the way lost little; whether there is a long-term bound, which it may raise.
    pub(super) fn raise_to(&mut self, safe: f64) -> bool {
        let bounded = self.inflight_longterm.is_finite();
        if bounded {
            self.inflight_longterm = self.inflight_longterm.max(safe);
        }
        bounded
    }

    /// A probe goes so much further.
    pub(super) fn raise_by(&mut self, bytes: f64) {
        self.inflight_longterm += bytes;
    }

    /// The long-term bound after a probe lost too much with `in_flight` on the way.
    pub(super) fn lower_longterm(&mut self, in_flight: f64, target: f64) {
        self.inflight_longterm = in_flight.max(target * BETA);
    }

    /// CheckStartupHighLoss (section 5.3.1.3) in fast recovery: a round of it, the present one being
    /// `round`, with enough losses, and above the threshold.
    pub(super) fn is_startup_loss_high(&self, round: u64, delivery: &Delivery) -> bool {
        round > self.recovery_round
            && self.loss_round_started
            && self.loss_events >= STARTUP_FULL_LOSS_COUNT
            && delivery.is_inflight_too_high()
    }

    /// InflightWithHeadroom (section 5.3.3.9).
    pub(super) fn inflight_with_headroom(&self, mss: f64, min_pipe: f64) -> f64 {
        let bound = self.inflight_longterm;
        if bound.is_infinite() {
            return f64::INFINITY;
        }
        (bound - mss.max(HEADROOM * bound)).max(min_pipe)
    }
}

/// Sections 5.5.10.2 and 5.5.10.3.
const BETA: f64 = 0.7;
/// Section 5.3.3.1: cruising leaves 15 % of the long-term bound free.
const HEADROOM: f64 = 0.15;
/// Section 5.3.1.3.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
