//! Nagle's algorithm in its variants, and TCP_CORK: when is a small segment held back?
//!
//! - [`Nagle::Classic`], RFC 896 and RFC 1122 section 4.2.3.4: while *any* byte is unacknowledged, a
//!   segment below one MSS waits. Windows.
//! - [`Nagle::Bsd`], `tcp_output` of 4.4BSD and its descendants, QNX among them: the same, but
//!   whether anything is unacknowledged is asked once, before the first segment of an output pass. So
//!   the tail of a write longer than one MSS leaves with it if the connection was idle before, and
//!   waits if it was not.
//! - [`Nagle::Minshall`], draft-minshall-nagle-01, Linux: only while a *small* segment is
//!   unacknowledged, so that the tail of a write longer than one MSS leaves at once.
//! - CORK (Linux, tcp(7)): small segments wait for company whatever is outstanding, for at most
//!   200 ms.
//!
//! Left out: `TF_LASTIDLE`, which carries BSD's idleness over the parts of a write that did not fit the
//! send buffer at once, and Linux's autocorking, which needs a queue in the host.

use acklab_core::time::{Span, Time};

acklab_core::words! {
    /// When a segment below one MSS waits for the ACK of earlier data.
    pub enum Nagle {
        /// Never: TCP_NODELAY.
        Off = "off",
        /// While anything is unacknowledged.
        Classic = "classic",
        /// While anything was unacknowledged when the output pass began.
        Bsd = "bsd",
        /// While a small segment is unacknowledged.
        Minshall = "minshall",
    }
}

/// What is unacknowledged when a small segment could leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unacked {
    /// Any byte.
    pub any: bool,
    /// A byte of a segment below one MSS.
    pub small: bool,
    /// Something was when this output pass began.
    pub before_this_pass: bool,
}

impl Nagle {
    /// Whether a small segment waits.
    pub const fn holds(self, unacked: Unacked) -> bool {
        match self {
            Self::Off => false,
            Self::Classic => unacked.any,
            Self::Bsd => unacked.any && unacked.before_this_pass,
            Self::Minshall => unacked.small,
        }
    }
}

/// What one connection holds back now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) nagle: Nagle,
    pub(super) cork: bool,
    /// End of the last small segment sent (Linux `snd_sml`).
    pub(super) small_end: u64,
    /// Within an output pass: whether anything was unacknowledged when it began.
    pub(super) pass_unacked: Option<bool>,
    /// When the present hold began.
    pub(super) since: Option<Time>,
    /// Data up to here leaves whatever the rules say: NODELAY was set, CORK cleared or its ceiling
    /// reached.
    pub(super) flush_below: u64,
    /// The flush was CORK's ceiling.
    pub(super) flushed_by_timer: bool,
}

impl Holding {
    pub(super) const fn new(nagle: Nagle) -> Self {
        Self {
            nagle,
            cork: false,
            small_end: 0,
            pass_unacked: None,
            since: None,
            flush_below: 0,
            flushed_by_timer: false,
        }
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
}

/// CORK's ceiling (Linux tcp(7)).
pub(super) const CORK_CEILING: Span = Span::from_millis(200);
