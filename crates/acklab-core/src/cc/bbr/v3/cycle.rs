//! The state machine: Startup, Drain, the cycle of ProbeBW, ProbeRTT (draft-ietf-ccwg-bbr-06 section 5.3).

use super::BbrV3;
use super::probe_rtt::Step;
use super::probing::AckPhase;
use super::state::{Delivery, PROBE_RTT_CWND_GAIN, State};
use crate::time::{Span, Time};

impl BbrV3 {
    /// CheckStartupDone (section 5.3.1).
    pub(super) fn check_startup_done(&mut self, delivery: &Delivery) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_pipe.reached
            && self.in_fast_recovery
            && self.bounds.is_startup_loss_high(self.rounds.count, delivery)
        {
            self.full_pipe.reached = true;
            self.bounds.inflight_longterm = self.bdp(self.bw).max(self.bounds.inflight_latest);
        }
        if self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// CheckDrainDone (section 5.3.2).
    pub(super) fn check_drain_done(&mut self, now: Time) {
        let drained = self.pipe.bytes() as f64 <= self.inflight(self.bw)
            || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS;
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
        self.start_round();
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.probing.up_rounds = 0;
        self.probing.up_acked = 0.0;
        self.probing.prev_precautionary = false;
        self.probing.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, delivery: &Delivery) {
        self.probing.ack_phase = AckPhase::Starting;
        self.start_round();
        self.full_pipe.search(delivery.rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase (section 5.3.3.9).
    pub(super) fn update_cycle(&mut self, now: Time, delivery: &Delivery) {
        if !self.full_pipe.reached || self.adapt_long_term(delivery) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            // One round of refilling.
            State::Refill if self.rounds.started => {
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
        let reno_rounds = (self.target_inflight() / self.mss).min(RENO_ROUNDS_MAX);
        now > self.probing.cycle_stamp + self.probing.wait
            || self.probing.rounds_since_probe_up as f64 >= reno_rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        let inflight = self.pipe.bytes() as f64;
        inflight <= self.inflight_with_headroom() && inflight <= self.inflight(self.max_bandwidth())
    }

    fn is_time_to_go_down(&mut self, delivery: &Delivery) -> bool {
        let bound = self.bounds.inflight_longterm;
        if self.probing.prev_too_high && self.pipe.bytes() as f64 >= bound {
            self.probing.prev_precautionary = true;
            return true;
        }
        if delivery.cwnd_limited && self.cwnd >= bound {
            // The bound, not the path, limits the bandwidth.
            self.full_pipe.search(delivery.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// AdaptLongTermModel (section 5.3.3.9): true where it decided about the state.
    fn adapt_long_term(&mut self, delivery: &Delivery) -> bool {
        let round = self.rounds.started;
        if self.probing.ack_phase == AckPhase::Starting && round {
            self.probing.ack_phase = AckPhase::Feedback;
        }
        if self.probing.ack_phase == AckPhase::Stopping && round {
            self.probing.is_sample = false;
            self.probing.ack_phase = AckPhase::Init;
            let in_cycle = self.state.is_probe_bw();
            if in_cycle && !delivery.app_limited {
                self.cycle_count += 1;
                self.max_bw.advance(self.cycle_count);
            }
            if in_cycle && self.probing.prev_precautionary && !self.probing.prev_too_high {
                self.start_refill();
                return true;
            }
        }
        if !delivery.is_inflight_too_high() && self.bounds.inflight_longterm.is_finite() {
            let safe = delivery.sample.tx_in_flight as f64;
            self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(safe);
            if self.state == State::Up {
                self.probe_upward(delivery);
            }
        }
        false
    }

    /// RaiseInflightLongtermSlope: 1, 2, 4, … segments in successive rounds.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.probing.up_rounds);
        self.probing.up_rounds = (self.probing.up_rounds + 1).min(30);
        self.probing.up_acked_per_increment = (self.cwnd / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, delivery: &Delivery) {
        if !delivery.cwnd_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let per_increment = self.probing.up_acked_per_increment;
        self.probing.up_acked += delivery.acked;
        if self.probing.up_acked >= per_increment {
            let steps = (self.probing.up_acked / per_increment).floor();
            self.probing.up_acked -= steps * per_increment;
            self.bounds.inflight_longterm += steps * self.mss;
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.state != State::ProbeRtt && self.round_trip.is_expired() && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.round_trip.begin();
            self.probing.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.self_limited.mark(self.delivered, self.pipe.bytes());
        let is_little = self.pipe.bytes() as f64 <= self.probe_rtt_cwnd();
        match self.round_trip.step(now, is_little, self.rounds.started) {
            Step::Waits => {}
            Step::Begun => self.start_round(),
            Step::Done => {
                self.restore_cwnd();
                self.leave_probe_rtt(now);
            }
        }
    }

    /// ExitProbeRTT: little is on the way, so that DOWN is over at once.
    fn leave_probe_rtt(&mut self, now: Time) {
        self.bounds.reset_short_term();
        if self.full_pipe.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// ProbeRTTCwnd (section 5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bw)).max(self.min_pipe())
    }
}

/// Section 5.3.2.
const DRAIN_ROUNDS: u64 = 3;
/// Section 5.3.3.8.3.
const RENO_ROUNDS_MAX: f64 = 63.0;
