//! Whether the congestion window held the sender back: it may grow only then (RFC 7661 section 4.1).
//!
//! What is remembered is that of the present window of data, as in Linux (`tcp_cwnd_validate`): the ACKs
//! of a flight that filled the window find it full, though ever less is on its way as they come. In slow
//! start half a window in use is enough, since it doubles.

use acklab_core::cc::Snapshot;

/// How far the window was used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// It kept something back, or was full.
    limited: bool,
    /// The largest flight, as the window counts it.
    most: u64,
    /// Where the window of data ends that this is about.
    until: u64,
}

impl Usage {
    /// Nothing more leaves now, with `flight` on its way in [una, nxt).
    pub(super) const fn note(&mut self, limited: bool, flight: u64, (una, nxt): (u64, u64)) {
        if limited || una >= self.until || (!self.limited && flight > self.most) {
            *self = Self { limited, most: flight, until: nxt };
        }
    }

    /// Whether an ACK may open the window.
    pub(super) const fn is_limited(&self, state: Snapshot) -> bool {
        self.limited || (state.cwnd < state.ssthresh && state.cwnd < self.most.saturating_mul(2))
    }
}
