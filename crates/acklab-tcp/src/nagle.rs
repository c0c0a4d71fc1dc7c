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
