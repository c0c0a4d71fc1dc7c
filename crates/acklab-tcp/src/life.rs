//! A connection's life: its state, what ends it, and whether the peer still answers.
//!
//! Window probes (RFC 9293 section 3.8.6.1), which serve sender SWS override too (RFC 1122 section
//! 4.2.3.4), and keep-alive probes (RFC 9293 section 3.8.4) count together: a peer that is heard of answers
//! to both.

use crate::config::{Config, Patience};
use crate::receive::Contact;
use crate::send::Limit;
use crate::state::{Cause, State};
use acklab_core::notices::{AppEvent, Notices};
use acklab_core::time::{Span, Time};
use acklab_core::timer::{TimerKind, TimerTable};

/// Its deadlines.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// Window probe, or sender SWS override.
    Persist,
    /// Keep-alive probe.
    KeepAlive,
    /// 2 MSL.
    TimeWait,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

impl TimerKind for Timer {
    const COUNT: usize = 3;
}

/// What leaves although nothing new may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// One byte, window or not.
    Window,
    /// Nothing, at a sequence number that was acknowledged.
    KeepAlive,
}

/// A connection's life.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) state: State,
    /// It began in LISTEN.
    passive: bool,
    /// The peer, when it was last asked after.
    contact: Contact,
    /// Probes of both kinds since it was last heard.
    probes: u32,
    /// Doublings of the persist timer.
    persist_backoffs: u32,
    window_probe_due: bool,
    keep_alive_due: bool,
    timers: TimerTable<Timer, 3>,
    notices: Notices,
    patience: Patience,
    max_rto: Span,
}

impl Life {
    /// It begins with an active open, or with a passive one.
    pub(super) fn new(config: &Config, contact: Contact, passive: bool) -> Self {
        let mut life = Self {
            state: State::Closed,
            passive,
            contact,
            probes: 0,
            persist_backoffs: 0,
            window_probe_due: false,
            keep_alive_due: false,
            timers: TimerTable::default(),
            notices: Notices::default(),
            patience: config.patience,
            max_rto: config.rto.max,
        };
        life.go(if passive { Cause::PassiveOpen } else { Cause::ActiveOpen });
        life
    }

    /// How often what is out now is sent again.
    pub(super) const fn limit(&self) -> Limit {
        let Patience { retries, syn_retries, syn_ack_retries, .. } = self.patience;
        match self.state {
            State::SynReceived if self.passive => Limit { retries: syn_ack_retries, opening: true },
            State::SynSent | State::SynReceived => Limit { retries: syn_retries, opening: true },
            _ => Limit { retries, opening: false },
        }
    }

    /// A reset arrived; it returns a listener to LISTEN before it is established.
    pub(super) fn on_reset(&mut self) {
        if self.state == State::SynReceived && self.passive {
            return self.go(Cause::ResetOfPassiveOpen);
        }
        // In TIME-WAIT all was said and acknowledged: no "connection reset" (RFC 9293 section 3.10.7.4).
        let over = self.state == State::TimeWait;
        self.go(Cause::Reset);
        self.end(if over { AppEvent::Closed } else { AppEvent::Reset });
    }

    /// Moves along the transition table; a pair that is not in it leaves the state as it is, which
    /// the checks of RFC 9293 section 3.10.7 exclude.
    pub(super) fn go(&mut self, cause: Cause) {
        debug_assert!(self.state.next(cause).is_some(), "{} on {cause}", self.state);
        if let Some(next) = self.state.next(cause) {
            self.state = next;
        }
    }

    /// What the application should know.
    pub(super) fn notify(&mut self, event: AppEvent) {
        self.notices.add(event);
    }

    /// The next thing that the application should know.
    pub(super) fn poll_event(&mut self) -> Option<AppEvent> {
        self.notices.pop()
    }

    /// Our SYN is acknowledged; `closed`: the application closed before. Keep-alive may watch from now on.
    pub(super) fn establish(&mut self, now: Time, cause: Cause, closed: bool) {
        self.go(cause);
        if let Some(keep_alive) = self.patience.keep_alive {
            self.timers.set(Timer::KeepAlive, now + keep_alive.idle);
        }
        self.notify(AppEvent::Connected);
        if closed {
            self.go(Cause::Close);
        }
    }

    /// The peer's FIN arrived in order.
    pub(super) fn on_fin(&mut self, now: Time) {
        self.notify(AppEvent::PeerClosed);
        self.go(Cause::Fin);
        self.wait_if_over(now);
    }

    /// Our FIN is acknowledged; returns whether the connection goes on.
    pub(super) fn on_fin_acked(&mut self, now: Time) -> bool {
        match self.state {
            State::FinWait1 | State::Closing => {
                self.go(Cause::AckOfFin);
                self.wait_if_over(now);
            }
            State::LastAck => {
                self.go(Cause::AckOfFin);
                self.end(AppEvent::Closed);
            }
            _ => {}
        }
        self.state != State::Closed
    }

    /// TIME-WAIT begins, or begins anew.
    pub(super) fn wait_if_over(&mut self, now: Time) {
        if self.state == State::TimeWait {
            self.timers.set(Timer::TimeWait, now + self.patience.time_wait);
        }
    }

    /// The peer does not answer.
    pub(super) fn give_up(&mut self) {
        self.go(Cause::Reset);
        self.end(AppEvent::TimedOut);
    }

    /// The connection is over.
    pub(super) fn end(&mut self, event: AppEvent) {
        self.notify(event);
        self.timers = TimerTable::default();
        self.window_probe_due = false;
        self.keep_alive_due = false;
    }
}

/// Probes and what time brings.
impl Life {
    /// Acts on every deadline that has come; `waiting`: data is out, which the retransmission timer
    /// watches. Returns whether something may leave for it.
    pub(super) fn on_timeout(&mut self, now: Time, contact: Contact, waiting: bool) -> bool {
        if contact.count != self.contact.count {
            self.probes = 0;
        }
        self.contact = contact;
        let mut output = false;
        if self.timers.take_expired(Timer::Persist, now) {
            output |= self.on_persist();
        }
        if self.timers.take_expired(Timer::KeepAlive, now) {
            output |= self.on_keep_alive(now, waiting);
        }
        if self.timers.take_expired(Timer::TimeWait, now) {
            self.go(Cause::TimeWaitOver);
            self.end(AppEvent::Closed);
        }
        output
    }

    fn on_persist(&mut self) -> bool {
        if self.probes >= self.patience.retries {
            self.give_up();
            return false;
        }
        self.probes += 1;
        self.persist_backoffs = self.persist_backoffs.saturating_add(1);
        self.window_probe_due = true;
        true
    }

    fn on_keep_alive(&mut self, now: Time, waiting: bool) -> bool {
        let Some(keep_alive) = self.patience.keep_alive else { return false };
        let silent_since = self.contact.at + keep_alive.idle;
        let mut next = now + keep_alive.interval;
        if self.probes == 0 && now < silent_since {
            next = silent_since;
        } else if !waiting && self.probes >= keep_alive.probes {
            self.give_up();
            return false;
        } else if !waiting {
            self.probes += 1;
            self.keep_alive_due = true;
        }
        self.timers.set(Timer::KeepAlive, next);
        self.keep_alive_due
    }

    /// The probe that must leave now.
    pub(super) fn take_probe(&mut self) -> Option<Probe> {
        if self.state.may_send() && std::mem::take(&mut self.window_probe_due) {
            return Some(Probe::Window);
        }
        std::mem::take(&mut self.keep_alive_due).then_some(Probe::KeepAlive)
    }

    /// Output found nothing more to send; `blocked`: only the peer's window keeps data from leaving. Probes
    /// begin after that time-out, then wait twice as long each time up to the ceiling.
    pub(super) fn settle(&mut self, now: Time, blocked: Option<Span>) {
        let Some(rto) = blocked.filter(|_| self.state.may_send()) else {
            self.timers.stop(Timer::Persist);
            self.persist_backoffs = 0;
            return;
        };
        if self.timers.deadline(Timer::Persist).is_none() {
            let factor = 1_u64 << self.persist_backoffs.min(40);
            self.timers.set(Timer::Persist, now + (rto * factor).min(self.max_rto));
        }
    }

    /// The next deadline.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }
}
