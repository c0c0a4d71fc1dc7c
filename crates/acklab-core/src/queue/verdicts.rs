//! [`Verdicts`]: what a discipline did to packets, until the link that owns it reports it.

use crate::event::DropReason;
use crate::packet::{Ecn, Packet};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Thrown away, or handed back to its sender ([`DropReason::Returned`]).
    Dropped(DropReason),
    /// Marked congestion-experienced; it stays in the queue or leaves it as usual.
    Marked,
}

/// What a discipline dropped and marked, oldest first. The list keeps its memory, so that nothing is
/// allocated per packet.
#[derive(Debug, Default)]
pub struct Verdicts(Vec<(Packet, Verdict)>);

impl Verdicts {
    /// Throws a packet away.
    pub fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet, Verdict::Dropped(reason)));
    }

    /// Marks a packet and tells of it.
    #[must_use]
    pub fn mark(&mut self, packet: Packet) -> Packet {
        let marked = Packet { ecn: Ecn::Ce, ..packet };
        self.0.push((marked, Verdict::Marked));
        marked
    }

    /// Takes everything out, oldest first.
    pub fn drain(&mut self) -> std::vec::Drain<'_, (Packet, Verdict)> {
        self.0.drain(..)
    }

    /// What is there, oldest first.
    pub fn as_slice(&self) -> &[(Packet, Verdict)] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
