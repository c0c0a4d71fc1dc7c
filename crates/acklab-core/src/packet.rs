//! A packet in virtual time: a small value with a payload *length*.
//!
//! Bytes are made only by [`crate::wire`] at a socket, a TUN device or a capture. The exception is
//! reliable UDP, whose datagrams are bytes in both worlds: the simulator keeps them beside the links,
//! and the packet is their number.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::segment::TcpRepr;

/// A host, by its index in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    /// Its IPv4 address where one is needed, in captures and in reliable UDP: node n is 10.0.0.(n+1),
    /// carried over into the third byte.
    pub const fn address(self) -> Ipv4Addr {
        let [high, low] = self.0.wrapping_add(1).to_be_bytes();
        Ipv4Addr::new(10, 0, high, low)
    }

    /// The node of that address. Other addresses have one, too, as a label: that of their last two bytes.
    pub fn of(address: IpAddr) -> Self {
        let (high, low) = match address {
            IpAddr::V4(v4) => (v4.octets()[2], v4.octets()[3]),
            IpAddr::V6(v6) => (v6.octets()[14], v6.octets()[15]),
        };
        Self(u16::from_be_bytes([high, low]).wrapping_sub(1))
    }
}

/// A transport address: host and port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr {
    /// Host.
    pub node: NodeId,
    /// TCP or UDP port.
    pub port: u16,
}

impl From<SocketAddr> for Addr {
    fn from(socket: SocketAddr) -> Self {
        Self { node: NodeId::of(socket.ip()), port: socket.port() }
    }
}

impl From<Addr> for SocketAddr {
    fn from(addr: Addr) -> Self {
        Self::from((addr.node.address(), addr.port))
    }
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
    /// A UDP datagram whose bytes exist: the world keeps them under `number`.
    Stored {
        /// Payload bytes.
        len: u32,
        /// Where they are.
        number: u64,
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
                Body::Datagram { len, .. } | Body::Stored { len, .. } => Self::UDP_HEADER + *len,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_an_address_of_its_own() {
        for node in 0..=u16::MAX {
            let addr = Addr { node: NodeId(node), port: 7 };
            assert_eq!(Addr::from(SocketAddr::from(addr)), addr);
        }
        assert_eq!(NodeId(0).address(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(NodeId(255).address(), Ipv4Addr::new(10, 0, 1, 0));
    }
}
