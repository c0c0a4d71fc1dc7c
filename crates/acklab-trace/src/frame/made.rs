//! Frames of every link type around the packets that the core's `wire` writes: input for this
//! folder's tests and for the example `fuzz_seeds`, which takes in this file. The dissector shares no
//! code with what it is tested on.

use std::net::{Ipv4Addr, Ipv6Addr};

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::TcpRepr;
use acklab_core::wire::emit_ipv4;

/// The link types that are understood.
pub(crate) const LINKS: [u16; 11] = [0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276];

/// A frame of `segment` from port 40000 of host 1 to port 502 of host 2, or back; IPv6 on a link of
/// IPv6 alone, or if asked for.
pub(crate) fn frame(link: u16, v6: bool, back: bool, segment: TcpRepr) -> Vec<u8> {
    let ends = [Addr { node: NodeId(1), port: 40_000 }, Addr { node: NodeId(2), port: 502 }];
    let (src, dst) = if back { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
    let body = Body::Tcp(segment);
    let packet = Packet { src, dst, ecn: Ecn::NotEct, returned: false, body };
    let v4 = emit_ipv4(&packet, IP_ID, |node| Ipv4Addr::new(192, 0, 2, node.0 as u8));
    if v6 || link == 229 {
        return [link_header(link, true), over_v6(&v4, &packet)].concat();
    }
    [link_header(link, false), v4].concat()
}

/// The address of a host over IPv6.
pub(crate) fn v6_address(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host)
}

/// The same segment behind an IPv6 header (RFC 8200 section 3), its TCP checksum still that of IPv4.
fn over_v6(v4: &[u8], packet: &Packet) -> Vec<u8> {
    let [high, low] = u16::try_from(v4.len() - 20).unwrap_or(0).to_be_bytes();
    let mut bytes = vec![0x60, 0, 0, 0, high, low, 6, 64];
    bytes.extend(v6_address(packet.src.node.0).octets());
    bytes.extend(v6_address(packet.dst.node.0).octets());
    bytes.extend(&v4[20..]);
    bytes
}

fn link_header(link: u16, v6: bool) -> Vec<u8> {
    let ether_type: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    match link {
        0 => vec![if v6 { 30 } else { 2 }, 0, 0, 0],
        1 => [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &ether_type[..]].concat(),
        9 => vec![0xff, 0x03, 0, if v6 { 0x57 } else { 0x21 }],
        108 => vec![0, 0, 0, if v6 { 24 } else { 2 }],
        113 => [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &ether_type[..]].concat(),
        276 => [&ether_type[..], &[0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]].concat(),
        _ => Vec::new(),
    }
}

/// The IPv4 identification of every packet.
pub(crate) const IP_ID: u16 = 99;
