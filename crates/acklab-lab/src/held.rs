//! [`HeldExchange`]: an exchange in which a message waited for an ACK, for a report to draw.

use acklab_core::event::AckReason;
use acklab_core::time::{Span, Time};

/// One exchange of segment, acknowledgment and held segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldExchange {
    /// When the segment left that had to be acknowledged first.
    pub sent: Time,
    /// Its payload, bytes.
    pub bytes: u32,
    /// When it reached the receiver's TCP.
    pub arrived: Time,
    /// When the receiver acknowledged it.
    pub acked: Time,
    /// Why it did so then.
    pub reason: AckReason,
    /// When the ACK arrived and the held segment left.
    pub released: Time,
    /// Payload of the held segment, bytes.
    pub held_bytes: u32,
    /// When the messages were written that the held segment completed.
    pub written: Vec<Time>,
}

impl HeldExchange {
    /// How long the oldest message waited.
    pub fn wait(&self) -> Span {
        self.written.first().map_or(Span::ZERO, |first| self.released.since(*first))
    }
}
