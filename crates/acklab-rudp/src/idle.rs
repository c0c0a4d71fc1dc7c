//! How long a connection has been silent (docs/rudp.md section 3, "Close, idle, reset").

use acklab_core::time::{Span, Time};

/// When either end was last heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    last_heard: Time,
    last_sent: Time,
    /// The connection ends after so long a silence of the peer's.
    limit: Span,
    /// The application wants it kept open.
    keep_alive: bool,
}

impl Idle {
    pub(super) const fn new(now: Time, limit_ms: u64, keep_alive: bool) -> Self {
        let limit = Span::from_millis(limit_ms);
        Self { last_heard: now, last_sent: now, limit, keep_alive }
    }

    /// The peer's limit counts where it is shorter.
    pub(super) fn on_agreed(&mut self, limit_ms: u64) {
        self.limit = self.limit.min(Span::from_millis(limit_ms));
    }

    pub(super) const fn on_heard(&mut self, now: Time) {
        self.last_heard = now;
    }

    pub(super) const fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// When the connection is over.
    pub(super) fn over_at(&self) -> Time {
        self.last_heard + self.limit
    }

    /// When something must leave so that the peer hears of an application that wants the connection kept
    /// open: after a third of the idle time.
    pub(super) fn keep_alive_at(&self) -> Option<Time> {
        let third = Span::from_nanos(self.limit.as_nanos() / 3);
        self.keep_alive.then(|| self.last_heard.max(self.last_sent) + third)
    }
}
