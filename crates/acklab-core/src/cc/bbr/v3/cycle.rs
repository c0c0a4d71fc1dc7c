//! The state machine: Startup, Drain, the cycle of ProbeBW, ProbeRTT (draft-ietf-ccwg-bbr-06 section 5.3).

use super::super::probe_rtt::Step;
use super::BbrV3;
use super::probing::AckPhase;
use super::state::{Delivery, PROBE_RTT_CWND_GAIN, State};
use crate::time::{Span, Time};

impl BbrV3 {
    /// CheckStartupDone (section 5.3.1).
    pub(super) fn check_startup_done(&mut self, delivery: &Delivery) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_pipe.is_reached()
            && self.recovery.is_fast()
            && self.bounds.is_startup_loss_high(self.deliveries.round(), delivery)
        {
            self.full_pipe.reach();
            self.bounds.bound_startup(self.bdp(self.bandwidth.now));
        }
        if self.full_pipe.is_reached() {
            self.state = State::Drain;
            self.drain_start_round = self.deliveries.round();
        }
    }

    /// CheckDrainDone (section 5.3.2).
    pub(super) fn check_drain_done(&mut self, now: Time) {
        let drained = self.deliveries.in_flight() as f64 <= self.inflight(self.bandwidth.now)
            || self.deliveries.round() > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && drained {
            self.start_down(now);
        }
    }

    /// StartProbeBW_DOWN, with PickProbeWait (sections 5.3.3.9 and 5.3.3.8.3).
    pub(super) fn start_down(&mut self, now: Time) {
        self.bounds.reset_congestion_signals();
        self.probing.up_acked_per_increment = f64::INFINITY;
        self.probing.rounds_since_probe_up = self.rng.below(2);
        self.probing.wait = Span::from_secs_f64(2.0 + self.rng.uniform());
        self.probing.cycle_stamp = now;
        self.probing.ack_phase = AckPhase::Stopping;
        self.deliveries.start_round();
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.probing.up_rounds = 0;
        self.probing.up_acked = 0.0;
        self.probing.prev_precautionary = false;
        self.probing.ack_phase = AckPhase::Refilling;
        self.deliveries.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, delivery: &Delivery) {
        self.probing.ack_phase = AckPhase::Starting;
        self.deliveries.start_round();
        self.full_pipe.search(delivery.rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase (section 5.3.3.9).
    pub(super) fn update_cycle(&mut self, now: Time, delivery: &Delivery) {
        if !self.full_pipe.is_reached() || self.adapt_long_term(delivery) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            // One round of refilling.
            State::Refill if self.deliveries.is_round_start() => {
                self.probing.is_sample = true;
                self.start_up(delivery);
            }
            State::Up if self.is_time_to_go_down(delivery) => {
                self.probing.prev_too_high = false;
                self.start_down(now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW (section 5.3.3.8.3): two to three seconds, or as many rounds as Reno would need.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight() / self.window.mss()).min(RENO_ROUNDS_MAX);
        now > self.probing.cycle_stamp + self.probing.wait
            || self.probing.rounds_since_probe_up as f64 >= reno_rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        let inflight = self.deliveries.in_flight() as f64;
        inflight <= self.inflight_with_headroom() && inflight <= self.inflight(self.max_bandwidth())
    }

    fn is_time_to_go_down(&mut self, delivery: &Delivery) -> bool {
        let bound = self.bounds.longterm();
        if self.probing.prev_too_high && self.deliveries.in_flight() as f64 >= bound {
            self.probing.prev_precautionary = true;
            return true;
        }
        if delivery.cwnd_limited && self.window.bytes() >= bound {
            // The bound, not the path, limits the bandwidth.
            self.full_pipe.search(delivery.rate);
            return false;
        }
        self.full_pipe.is_full()
    }

    /// AdaptLongTermModel (section 5.3.3.9): true where it decided about the state.
    fn adapt_long_term(&mut self, delivery: &Delivery) -> bool {
        let round = self.deliveries.is_round_start();
        if self.probing.ack_phase == AckPhase::Starting && round {
            self.probing.ack_phase = AckPhase::Feedback;
        }
        if self.probing.ack_phase == AckPhase::Stopping && round {
            self.probing.is_sample = false;
            self.probing.ack_phase = AckPhase::Init;
            let in_cycle = self.state.is_probe_bw();
            if in_cycle && !delivery.app_limited {
                self.bandwidth.end_cycle();
            }
            if in_cycle && self.probing.prev_precautionary && !self.probing.prev_too_high {
                self.start_refill();
                return true;
            }
        }
        let safe = delivery.sample.tx_in_flight as f64;
        let probes = !delivery.is_inflight_too_high() && self.bounds.raise_to(safe);
        if probes && self.state == State::Up {
            self.probe_upward(delivery);
        }
        false
    }

    /// RaiseInflightLongtermSlope: 1, 2, 4, … segments in successive rounds.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probing.up_rounds);
        self.probing.up_rounds = (self.probing.up_rounds + 1).min(30);
        self.probing.up_acked_per_increment = (self.window.bytes() / growth).max(self.window.mss());
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, delivery: &Delivery) {
        if !delivery.cwnd_limited || self.window.bytes() < self.bounds.longterm() {
            return;
        }
        let per_increment = self.probing.up_acked_per_increment;
        self.probing.up_acked += delivery.acked;
        if self.probing.up_acked >= per_increment {
            let steps = (self.probing.up_acked / per_increment).floor();
            self.probing.up_acked -= steps * per_increment;
            self.bounds.raise_by(steps * self.window.mss());
        }
        if self.deliveries.is_round_start() {
            self.raise_slope();
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.state != State::ProbeRtt
            && self.round_trip.is_expired()
            && !self.deliveries.is_restarting()
        {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.round_trip.begin();
            self.probing.ack_phase = AckPhase::Stopping;
            self.deliveries.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if delivered > 0 {
            self.deliveries.end_restart();
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.deliveries.limit();
        let is_little = self.deliveries.in_flight() as f64 <= self.probe_rtt_cwnd();
        match self.round_trip.step(now, is_little, self.deliveries.is_round_start()) {
            Step::Waits => {}
            Step::Begun => self.deliveries.start_round(),
            Step::Done => {
                self.window.restore();
                self.leave_probe_rtt(now);
            }
        }
    }

    /// ExitProbeRTT: little is on the way, so that DOWN is over at once.
    fn leave_probe_rtt(&mut self, now: Time) {
        self.bounds.reset_short_term();
        if self.full_pipe.is_reached() {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// ProbeRTTCwnd (section 5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bandwidth.now)).max(self.min_pipe())
    }
}

/// Section 5.3.2.
const DRAIN_ROUNDS: u64 = 3;
/// Section 5.3.3.8.3.
const RENO_ROUNDS_MAX: f64 = 63.0;
