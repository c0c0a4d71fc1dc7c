//! ICMP messages about a TCP packet (RFC 792, RFC 4443): who could not carry it on, and why.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use acklab_core::time::Time;

use super::ip::Version;
use super::link::network_layer;
use crate::capture::Frame;
use crate::segment::Endpoint;

/// What a router or host said of a TCP packet that it threw away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) frame: u64,
    pub(crate) time: Time,
    /// Who said it.
    pub(crate) by: IpAddr,
    /// Sender of the packet.
    pub(crate) src: Endpoint,
    /// Where it was to go.
    pub(crate) dst: Endpoint,
    pub(crate) reason: Reason,
}

/// Why a packet was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Longer than what may pass, bytes of IP; 0 where the router does not say.
    TooBig {
        /// What may pass.
        mtu: u32,
    },
    /// No route leads there.
    NoRoute,
    /// The host does not answer its neighbours.
    HostUnreachable,
    /// The host has nothing behind this port or protocol.
    PortUnreachable,
    /// A rule forbids it.
    Prohibited,
    /// It went through more routers than it may: mostly in a circle.
    HopsExceeded,
}

/// Reads the ICMP message in a frame that holds no TCP; `None` for all that says nothing of a TCP packet.
#[cold]
pub(crate) fn notice(frame: &Frame<'_>) -> Option<Notice> {
    let (at, version) = network_layer(frame.link, frame.bytes).ok()?;
    let ip = frame.bytes.get(at..)?;
    let outer = addresses(ip, version)?;
    let icmp = ip.get(outer.header..)?;
    let &[kind, code, ..] = icmp else { return None };
    let word = |at: usize| Some(u32::from_be_bytes(*icmp.get(at..)?.first_chunk()?));
    let reason = match (version, outer.protocol) {
        (Version::V4, 1) => match (kind, code) {
            // RFC 1191 section 4: the lower half.
            (3, 4) => Reason::TooBig { mtu: word(4)? & 0xffff },
            (3, 0 | 5 | 6 | 8 | 11) => Reason::NoRoute,
            (3, 1 | 7 | 12) => Reason::HostUnreachable,
            (3, 2 | 3) => Reason::PortUnreachable,
            (3, 9 | 10 | 13) => Reason::Prohibited,
            (11, 0) => Reason::HopsExceeded,
            _ => return None,
        },
        (Version::V6, 58) => match (kind, code) {
            (2, _) => Reason::TooBig { mtu: word(4)? },
            (1, 0 | 2 | 6) => Reason::NoRoute,
            (1, 3) => Reason::HostUnreachable,
            (1, 4) => Reason::PortUnreachable,
            (1, 1 | 5) => Reason::Prohibited,
            (3, 0) => Reason::HopsExceeded,
            _ => return None,
        },
        _ => return None,
    };
    let quoted = icmp.get(8..)?;
    let packet = addresses(quoted, version)?;
    let &[a, b, c, d, ..] = quoted.get(packet.header..)? else { return None };
    let port = |pair| u16::from_be_bytes(pair);
    (packet.protocol == TCP).then_some(Notice {
        frame: frame.number,
        time: frame.time,
        by: outer.src,
        src: Endpoint { addr: packet.src, port: port([a, b]) },
        dst: Endpoint { addr: packet.dst, port: port([c, d]) },
        reason,
    })
}

/// What an IP header says without its extensions.
struct Outer {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    header: usize,
}

fn addresses(ip: &[u8], version: Version) -> Option<Outer> {
    match version {
        Version::V4 => {
            let h = ip.first_chunk::<20>()?;
            let addr =
                |at: usize| IpAddr::V4(Ipv4Addr::from([h[at], h[at + 1], h[at + 2], h[at + 3]]));
            let header = usize::from(h[0] & 0x0f) * 4;
            let first = (h[6] & 0x1f, h[7]) == (0, 0);
            (h[0] >> 4 == 4 && header >= 20 && first).then(|| Outer {
                src: addr(12),
                dst: addr(16),
                protocol: h[9],
                header,
            })
        }
        Version::V6 => {
            let h = ip.first_chunk::<40>()?;
            let addr = |at: usize| {
                let octets: [u8; 16] = h[at..at + 16].try_into().ok()?;
                Some(IpAddr::V6(Ipv6Addr::from(octets)))
            };
            (h[0] >> 4 == 6).then_some(())?;
            Some(Outer { src: addr(8)?, dst: addr(24)?, protocol: h[6], header: 40 })
        }
    }
}

/// Protocol number of TCP.
const TCP: u8 = 6;
