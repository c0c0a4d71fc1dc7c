//! How a connection began, whether it was reset, and what the path said of it.

use super::told::Told;

/// What the segments without data told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Life {
    /// SYNs of the client, those sent again included.
    pub syns: u32,
    /// A SYN-ACK was seen.
    pub answered: bool,
    /// Either end closed its direction.
    pub fin: bool,
    /// The first RST.
    pub reset: Option<Reset>,
    /// Packets that were said to be too big for the path.
    pub too_big: Option<Told>,
    /// Packets that were said not to come where they should.
    pub unreachable: Option<Told>,
}

/// A segment that ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reset {
    /// Which endpoint sent it: 0, the client, or 1.
    pub by: usize,
    /// Its frame.
    pub frame: u64,
}
