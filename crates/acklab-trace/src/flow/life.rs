//! How a connection began, and whether it was reset.

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
