//! A packet in virtual time: a small value with a payload *length*.
//!
//! Bytes are made only by [`crate::wire`] at a socket, a TUN device or a capture.

use crate::segment::TcpRepr;

/// A host, by its index in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// A transport address: host and port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr {
    /// Host.
    pub node: NodeId,
    /// TCP or UDP port.
    pub port: u16,
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable transport.
    Ect0,
    /// ECN-capable transport, L4S (RFC 9331).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(TcpRepr),
    /// A UDP datagram: cross traffic, samples and commands of a control loop.
    Datagram {
        /// Payload bytes.
        len: u32,
        /// What its sender says in it, as far as virtual time needs to know: a value and a stamp, by
        /// the application's own convention. It exists in virtual time only: on a wire these bytes are
        /// zero.
        words: [u64; 2],
    },
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Sender.
    pub src: Addr,
    /// Receiver.
    pub dst: Addr,
    /// ECN field.
    pub ecn: Ecn,
    /// A switch that had no room for it sends it back to where it came from (E-DCTCP); source and
    /// destination stay as they were.
    pub returned: bool,
    /// Content.
    pub body: Body,
}

impl Packet {
    /// Size of an IPv4 header without options, bytes (RFC 791 section 3.1).
    pub const IPV4_HEADER: u32 = 20;
    /// Size of a UDP header, bytes (RFC 768).
    pub const UDP_HEADER: u32 = 8;

    /// Bytes at the IP layer, headers included.
    pub const fn size(&self) -> u32 {
        Self::IPV4_HEADER
            + match &self.body {
                Body::Tcp(tcp) => tcp.header_len() + tcp.payload_len,
                Body::Datagram { len, .. } => Self::UDP_HEADER + *len,
            }
    }
}
