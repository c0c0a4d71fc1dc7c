//! What a deadline does: retransmission, window probes, CORK's ceiling, keep-alive, TIME-WAIT.
//!
//! The delayed-ACK deadline belongs to the ACK policy. Deadlines are set when output has nothing
//! more to send ([`Connection::settle`]) or as their RFC says.

use super::connection::{AppEvent, Connection};
use super::nagle::CORK_CEILING;
use super::recovery::Phase;
use super::state::{Cause, State};
use acklab_core::cc::{CongestionControl, RtoSample};
use acklab_core::event::{EventKind, Sink};
use acklab_core::time::{Span, Time};
use acklab_core::timer::{TimerKind, TimerTable};

/// A connection's deadlines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// RFC 6298.
    Retransmit,
    /// Zero-window probe (RFC 9293 section 3.8.6.1) or sender SWS override (RFC 1122 4.2.3.4).
    Persist,
    /// 2 MSL.
    TimeWait,
    /// TCP_CORK's 200 ms.
    Cork,
    /// RFC 9293 section 3.8.4.
    KeepAlive,
    /// Pacing lets the next segment go.
    Pace,
    /// A segment that came back goes again.
    Returned,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

impl TimerKind for Timer {
    const COUNT: usize = 7;
}

pub(super) type Timers = TimerTable<Timer, 7>;

impl Connection {
    /// Acts on every deadline that has come.
    pub(super) fn on_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.acking.handle_timeout(now, self.rtt.rto());
        self.output_due |= self.acking.due.is_some();
        if self.timers.take_expired(Timer::Retransmit, now) {
            self.on_retransmission_timeout(now, sink);
        }
        if self.timers.take_expired(Timer::Persist, now) {
            self.on_persist();
        }
        if self.timers.take_expired(Timer::Cork, now) {
            self.holding.flush_below = self.send_buffer.end();
            self.holding.flushed_by_timer = true;
            self.output_due = true;
        }
        self.output_due |= self.timers.take_expired(Timer::Pace, now);
        self.output_due |= self.timers.take_expired(Timer::Returned, now);
        if self.timers.take_expired(Timer::KeepAlive, now) {
            self.on_keep_alive(now);
        }
        if self.timers.take_expired(Timer::TimeWait, now) {
            self.go(Cause::TimeWaitOver);
            self.end(AppEvent::Closed);
        }
    }

    /// RFC 6298 sections 5.4 to 5.7 and RFC 5681 section 3.1.
    fn on_retransmission_timeout(&mut self, now: Time, sink: &mut Sink) {
        let in_handshake = matches!(self.state, State::SynSent | State::SynReceived);
        let limit = match self.state {
            State::SynReceived if self.passive => self.config.syn_ack_retries,
            State::SynSent | State::SynReceived => self.config.syn_retries,
            _ => self.config.retries,
        };
        if self.attempts >= limit {
            self.give_up();
            return;
        }
        let again = self.attempts > 0;
        self.attempts += 1;
        self.rtt.on_timeout();
        self.output_due = true;
        if in_handshake {
            self.syn_due = true;
            return;
        }
        let in_flight = self.flight_size();
        let recovering = self.recovery.phase == Phase::Fast;
        let lost = self.recovery.on_timeout(self.snd.una, self.snd.nxt, again, &self.flight);
        if let Some(rate) = &mut self.rate {
            rate.on_lost(lost);
        }
        self.returned.clear();
        self.timers.stop(Timer::Returned);
        self.ecn.on_reduction(self.snd.nxt);
        self.cc.on_rto(now, &RtoSample { in_flight, again, recovering });
        sink.record(now, EventKind::Loss { flow: self.flow, timeout: true });
        self.tell_congestion(now, sink);
    }

    fn on_persist(&mut self) {
        if self.probes >= self.config.retries {
            self.give_up();
            return;
        }
        self.probes += 1;
        self.persist_backoffs = self.persist_backoffs.saturating_add(1);
        self.probe_due = true;
        self.output_due = true;
    }

    fn on_keep_alive(&mut self, now: Time) {
        let Some(keep_alive) = self.config.keep_alive else { return };
        let silent_since = self.last_heard + keep_alive.idle;
        if self.probes == 0 && now < silent_since {
            self.timers.set(Timer::KeepAlive, silent_since);
        } else if self.in_flight() > 0 {
            // The retransmission timer watches the peer already.
            self.timers.set(Timer::KeepAlive, now + keep_alive.interval);
        } else if self.probes >= keep_alive.probes {
            self.give_up();
        } else {
            self.probes += 1;
            self.keep_alive_due = true;
            self.output_due = true;
            self.timers.set(Timer::KeepAlive, now + keep_alive.interval);
        }
    }

    /// The peer does not answer.
    pub(super) fn give_up(&mut self) {
        self.go(Cause::Reset);
        self.end(AppEvent::TimedOut);
    }

    /// Output found nothing more to send: sets the deadlines that follow from that.
    pub(super) fn settle(&mut self, now: Time) {
        if self.state == State::Closed {
            return;
        }
        if self.in_flight() > 0 && self.timers.deadline(Timer::Retransmit).is_none() {
            self.arm_retransmission(now);
        }
        if self.window_blocked && self.in_flight() == 0 && self.state.may_send() {
            if self.timers.deadline(Timer::Persist).is_none() {
                let interval = self.persist_interval();
                self.timers.set(Timer::Persist, now + interval);
            }
        } else {
            self.timers.stop(Timer::Persist);
            self.persist_backoffs = 0;
        }
    }

    /// RFC 6298 sections 5.1 and 5.3.
    pub(super) fn arm_retransmission(&mut self, now: Time) {
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
    }

    /// A hold began under CORK.
    pub(super) fn arm_cork(&mut self, now: Time) {
        if self.timers.deadline(Timer::Cork).is_none() {
            self.timers.set(Timer::Cork, now + CORK_CEILING);
        }
    }

    /// The connection is established: keep-alive may watch it.
    pub(super) fn arm_keep_alive(&mut self, now: Time) {
        if let Some(keep_alive) = self.config.keep_alive {
            self.timers.set(Timer::KeepAlive, now + keep_alive.idle);
        }
    }

    /// The first probe after one RTO, then twice as long each time up to the ceiling.
    fn persist_interval(&self) -> Span {
        let factor = 1_u64 << self.persist_backoffs.min(40);
        (self.rtt.rto() * factor).min(self.config.max_rto)
    }
}
