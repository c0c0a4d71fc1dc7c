//! What a rule for the peer's ACKs is told, and what it answers.

/// What an ACK with news tells a rule; in full segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// The congestion window.
    pub(super) window: u64,
    /// What the ACK covers for the first time.
    pub(super) acked: u64,
    /// It is the first of a new window: all that was out when the last one began is acknowledged.
    pub(super) new_window: bool,
    /// The greatest number of segments per ACK that the peer may have in mind.
    pub(super) asked: u8,
}

/// A rule for how often the peer is to acknowledge.
pub(super) trait Rule {
    /// Segments per ACK wanted from now on.
    fn wants(&mut self, heard: &Heard) -> u8;

    /// Whether a change from `asked` to `wanted` is worth a request.
    fn is_worthwhile(&self, asked: u8, wanted: u8) -> bool {
        asked != wanted
    }
}

impl std::fmt::Debug for dyn Rule + Send {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rule")
    }
}
