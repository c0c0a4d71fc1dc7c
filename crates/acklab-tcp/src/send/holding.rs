//! What Nagle's algorithm and TCP_CORK hold back on one connection, and why it leaves at last.

use crate::nagle::{Nagle, Unacked};
use acklab_core::event::Release;
use acklab_core::time::{Span, Time};

/// What one connection holds back now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    nagle: Nagle,
    /// The variant that clearing TCP_NODELAY returns to.
    configured: Nagle,
    cork: bool,
    /// End of the last small segment sent (Linux `snd_sml`).
    small_end: u64,
    /// Within an output pass: whether anything was unacknowledged when it began.
    pass_unacked: Option<bool>,
    /// When the present hold began.
    since: Option<Time>,
    /// Data up to here leaves whatever the rules say: NODELAY was set, CORK cleared or its ceiling
    /// reached.
    flush_below: u64,
    /// The flush was CORK's ceiling.
    flushed_by_timer: bool,
}

impl Holding {
    pub(super) const fn new(nagle: Nagle) -> Self {
        Self {
            nagle,
            configured: nagle,
            cork: false,
            small_end: 0,
            pass_unacked: None,
            since: None,
            flush_below: 0,
            flushed_by_timer: false,
        }
    }

    /// TCP_NODELAY turns the algorithm off, or back to the configured variant (classic where that is off).
    pub(super) const fn set_nodelay(&mut self, on: bool) {
        self.nagle = match (on, self.configured) {
            (true, _) => Nagle::Off,
            (false, Nagle::Off) => Nagle::Classic,
            (false, variant) => variant,
        };
    }

    pub(super) const fn set_cork(&mut self, on: bool) {
        self.cork = on;
    }

    /// What was written up to `end` leaves, because the application or CORK's ceiling (`by_timer`) says so.
    pub(super) const fn flush(&mut self, end: u64, by_timer: bool) {
        self.flush_below = end;
        self.flushed_by_timer |= by_timer;
    }

    /// An output pass goes on, or begins with something unacknowledged or not.
    pub(super) fn on_pass(&mut self, unacked: bool) {
        self.pass_unacked.get_or_insert(unacked);
    }

    /// The output pass is over.
    pub(super) const fn end_pass(&mut self) {
        self.pass_unacked = None;
    }

    /// Whether a segment of `len` bytes is as good as a full one. BSD, against RFC 9293's bracket: half
    /// the largest window ever seen is.
    pub(super) fn is_as_good_as_full(&self, len: u64, max_wnd: u64) -> bool {
        self.nagle == Nagle::Bsd && 2 * len >= max_wnd
    }

    /// Whether a small segment that would end at `end` waits, with `una` and `nxt` as RFC 9293 has
    /// them.
    pub(super) const fn holds(&self, end: u64, una: u64, nxt: u64) -> bool {
        if end <= self.flush_below {
            return false;
        }
        let unacked = Unacked {
            any: nxt > una,
            small: self.small_end > una,
            before_this_pass: matches!(self.pass_unacked, Some(true)),
        };
        self.cork || self.nagle.holds(unacked)
    }

    /// Data is held back; returns whether that begins now.
    pub(super) const fn begin(&mut self, now: Time) -> bool {
        let begins = self.since.is_none();
        if begins {
            self.since = Some(now);
            self.flushed_by_timer = false;
        }
        begins
    }

    pub(super) const fn is_corked(&self) -> bool {
        self.cork
    }

    /// Whether data is held back.
    pub(super) const fn is_holding(&self) -> bool {
        self.since.is_some()
    }

    /// Nothing waits any more; when what waited began to.
    pub(super) const fn release(&mut self) -> Option<Time> {
        self.since.take()
    }

    /// Why a segment up to `end` leaves that was held back.
    pub(super) const fn released_by(&self, end: u64, full: bool, data_end: u64) -> Release {
        if full {
            Release::Full
        } else if end <= self.flush_below && self.flushed_by_timer {
            Release::Timer
        } else if end <= self.flush_below || end > data_end {
            Release::Flush
        } else {
            Release::Ack
        }
    }

    /// A segment below one MSS, up to `end`, leaves.
    pub(super) const fn on_small(&mut self, end: u64) {
        self.small_end = end;
    }
}

/// CORK's ceiling (Linux tcp(7)).
pub(super) const CORK_CEILING: Span = Span::from_millis(200);
