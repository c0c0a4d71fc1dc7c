//! Why bytes are no packet.

use std::fmt;

/// Why bytes are not a packet that [`super::parse_ipv4`] understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Shorter than its headers say.
    Truncated,
    /// Not IPv4, or a header length below five words.
    Version,
    /// Neither TCP nor UDP, or a fragment.
    Protocol,
    /// The IP header's or the transport's checksum is wrong.
    Checksum,
    /// A TCP data offset or option length that lies.
    Options,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "shorter than its headers say",
            Self::Version => "not an IPv4 header",
            Self::Protocol => "neither TCP nor UDP, or a fragment",
            Self::Checksum => "wrong checksum",
            Self::Options => "TCP options that do not fit their header",
        })
    }
}

impl std::error::Error for ParseError {}
