//! Why bytes are no packet.

use std::fmt;

/// Why bytes are not a packet that [`super::parse_ip`] or what stands on it understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Shorter than its headers say.
    Truncated,
    /// Neither IPv4 nor IPv6, or a header length below five words.
    Version,
    /// Another protocol than those that are understood, or a fragment.
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
            Self::Version => "not an IP header",
            Self::Protocol => "a protocol that is not understood, or a fragment",
            Self::Checksum => "wrong checksum",
            Self::Options => "TCP options that do not fit their header",
        })
    }
}

impl std::error::Error for ParseError {}
