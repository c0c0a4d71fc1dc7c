//! What routers and hosts report about segments of ours: ICMP (RFC 792) and ICMPv6 (RFC 4443), as far as
//! TCP acts on it: a packet too big for a link (RFC 1191, RFC 8201), and a destination out of reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::checksum::Checksum;
use super::ip::{parse_ip, transport_checksum};
use super::tcp::PROTOCOL_TCP;
use crate::seq::Seq;

/// Why a segment did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The next link carries no packet larger than `mtu` bytes, IP header included; 0: it does not say.
    TooBig {
        /// As the router says it, unchecked.
        mtu: u32,
    },
    /// The destination cannot be reached, or is forbidden: type and code of the message.
    Unreachable {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// A report about a segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    /// The segment's sender: us.
    pub source: SocketAddr,
    /// Where it was going.
    pub destination: SocketAddr,
    /// Its sequence number, which whoever forges a report does not know (RFC 5927 section 4.1).
    pub seq: Seq,
    /// What happened to it.
    pub trouble: Trouble,
}

/// Reads an IP packet with such a report about a TCP segment; `None` for everything else.
pub fn parse_icmp(bytes: &[u8]) -> Option<IcmpReport> {
    let ip = parse_ip(bytes).ok()?;
    let head = ip.payload.first_chunk::<8>()?;
    let quoted = &ip.payload[8..];
    let (kind, code) = (head[0], head[1]);
    let sum = match ip.protocol {
        PROTOCOL_ICMP => Checksum::default().sum(ip.payload).finish(),
        PROTOCOL_ICMPV6 => transport_checksum((ip.source, ip.destination), ip.protocol, ip.payload),
        _ => return None,
    };
    if sum != 0 {
        return None;
    }
    let trouble = match (ip.protocol, kind, code) {
        (PROTOCOL_ICMP, UNREACHABLE, FRAGMENTATION_NEEDED) => {
            Trouble::TooBig { mtu: u16::from_be_bytes([head[6], head[7]]).into() }
        }
        (PROTOCOL_ICMPV6, PACKET_TOO_BIG, _) => {
            Trouble::TooBig { mtu: u32::from_be_bytes([head[4], head[5], head[6], head[7]]) }
        }
        (PROTOCOL_ICMP, UNREACHABLE, _) | (PROTOCOL_ICMPV6, UNREACHABLE_V6, _) => {
            Trouble::Unreachable { kind, code }
        }
        _ => return None,
    };
    let (source, destination, transport) = quoted_header(quoted)?;
    let ports = transport.first_chunk::<8>()?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    Some(IcmpReport {
        source: SocketAddr::new(source, port(0)),
        destination: SocketAddr::new(destination, port(2)),
        seq: Seq(u32::from_be_bytes([ports[4], ports[5], ports[6], ports[7]])),
        trouble,
    })
}

/// Addresses of a packet of ours that a report quotes the beginning of, and what is there of the segment.
fn quoted_header(quoted: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    match quoted.first()? >> 4 {
        4 => {
            let fixed = quoted.first_chunk::<20>().filter(|fixed| fixed[9] == PROTOCOL_TCP)?;
            let octets = |at: usize| [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
            let transport = quoted.get(usize::from(fixed[0] & 0x0f) * 4..)?;
            let (source, destination) = (Ipv4Addr::from(octets(12)), Ipv4Addr::from(octets(16)));
            Some((source.into(), destination.into(), transport))
        }
        6 => {
            let fixed = quoted.first_chunk::<40>().filter(|fixed| fixed[6] == PROTOCOL_TCP)?;
            let octets = |at: usize| fixed[at..].first_chunk::<16>().copied();
            let (source, destination) = (Ipv6Addr::from(octets(8)?), Ipv6Addr::from(octets(24)?));
            Some((source.into(), destination.into(), &quoted[40..]))
        }
        _ => None,
    }
}

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
/// RFC 792, destination unreachable; code 4: fragmentation needed and DF set.
const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
/// RFC 4443.
const UNREACHABLE_V6: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
