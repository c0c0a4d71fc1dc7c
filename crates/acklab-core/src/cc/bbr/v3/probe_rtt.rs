//! The least round trip and ProbeRTT (draft-ietf-ccwg-bbr-06 section 5.3.4).

use super::cycle::AckPhase;
use super::{BbrV3, PROBE_RTT_CWND_GAIN, State};
use crate::time::{Span, Time};

/// Two windows over round trips: one schedules ProbeRTT, the other is the model's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// The model's: the least of ten seconds.
    pub(super) min: Option<Span>,
    min_stamp: Time,
    /// The least of five seconds.
    probe_min: Option<Span>,
    probe_min_stamp: Time,
    expired: bool,
    /// When ProbeRTT may end; `None` until little enough is on the way.
    done: Option<Time>,
    round_done: bool,
}

impl BbrV3 {
    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Option<Span>) {
        let round_trip = &mut self.round_trip;
        round_trip.expired = now > round_trip.probe_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (round_trip.expired || round_trip.probe_min.is_none_or(|min| rtt < min))
        {
            (round_trip.probe_min, round_trip.probe_min_stamp) = (Some(rtt), now);
        }
        let min_expired = now > round_trip.min_stamp + MIN_RTT_FILTER;
        let Some(probe_min) = round_trip.probe_min else { return };
        if min_expired || round_trip.min.is_none_or(|min| probe_min < min) {
            (round_trip.min, round_trip.min_stamp) = (Some(probe_min), round_trip.probe_min_stamp);
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Time, delivered: u64) {
        if self.state != State::ProbeRtt && self.round_trip.expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.round_trip.done = None;
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
        if self.round_trip.done.is_none() && self.pipe.bytes() as f64 <= self.probe_rtt_cwnd() {
            self.round_trip.done = Some(now + PROBE_RTT_DURATION);
            self.round_trip.round_done = false;
            self.start_round();
        } else if let Some(done) = self.round_trip.done {
            self.round_trip.round_done |= self.rounds.started;
            if self.round_trip.round_done && now > done {
                self.round_trip.probe_min_stamp = now;
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

/// Section 5.3.4.1.
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// Section 5.3.4.1.
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Section 5.5.7.2.
const MIN_RTT_FILTER: Span = Span::from_secs(10);
