//! From a captured frame to a TCP segment: link layer, IP, TCP.
//!
//! Link layers: Ethernet with up to four VLAN tags (802.1Q, 802.1ad) and PPPoE, Linux cooked v1
//! and v2, BSD loopback, PPP, raw IP. IPv4 (RFC 791) with options; IPv6 (RFC 8200) with extension
//! headers; TCP (RFC 9293 section 3.1) with the options that bear on timing.
//!
//! The payload length comes from the IP header, never from the captured bytes, so snapped frames
//! count whole and Ethernet padding does not count; where the header cannot be right (0 as TSO
//! leaves it, or beyond the frame) the frame's own length stands in. Fragments after the first are
//! passed over. Checksums are not looked at: captures at the sender precede the offload that fills
//! them in. Left out: 802.11, MPLS, tunnels (the outer packet is no TCP then).

mod headers;
mod ip;
mod skip;
mod tcp;

pub(crate) use headers::{Headers, headers};
pub(crate) use skip::Skip;

use crate::capture::{Frame, LinkType};
use crate::segment::Segment;

/// A segment, and whether its IP header told the truth.
#[derive(Clone, Debug)]
pub(crate) struct Dissected<'a> {
    pub(crate) segment: Segment<'a>,
    /// The IP length exceeds the frame or falls short of the headers; the frame's length was used.
    pub(crate) length_lies: bool,
}

/// Reads the TCP segment in a frame.
#[expect(clippy::inline_always, reason = "a segment returned through memory costs 10 % of a run")]
#[inline(always)]
pub(crate) fn dissect<'a>(frame: &Frame<'a>) -> Result<Dissected<'a>, Skip> {
    let (header_len, version) = network_layer(frame.link, frame.bytes)?;
    let packet = &frame.bytes[header_len..];
    // A frame may be longer in the capture than it says it was; then believe the capture.
    let wire_len = (frame.original_len as usize).max(frame.bytes.len()) - header_len;
    let packet = match version {
        Version::V4 => ip::parse_v4(packet, wire_len)?,
        Version::V6 => ip::parse_v6(packet, wire_len)?,
    };
    let segment = tcp::parse(frame, &packet)?;
    Ok(Dissected { segment, length_lies: packet.length_lies })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// Where the IP header begins, and its version; the offset lies within `bytes`.
#[inline]
fn network_layer(link: LinkType, bytes: &[u8]) -> Result<(usize, Version), Skip> {
    match link {
        LinkType::ETHERNET => ether_type(bytes, 12),
        LinkType::LINUX_SLL => ether_type(bytes, 14),
        LinkType::LINUX_SLL2 => {
            let (_, version) = ether_type(bytes, 0)?;
            if bytes.len() < 20 { Err(Skip::Snapped) } else { Ok((20, version)) }
        }
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => by_nibble(bytes, 0),
        LinkType::IPV4 => Ok((0, Version::V4)),
        LinkType::IPV6 => Ok((0, Version::V6)),
        LinkType::NULL | LinkType::LOOP => address_family(bytes),
        LinkType::PPP => ppp(bytes),
        _ => Err(Skip::LinkType),
    }
}

/// Follows EtherTypes from `at` through VLAN tags and PPPoE.
#[inline]
fn ether_type(bytes: &[u8], mut at: usize) -> Result<(usize, Version), Skip> {
    for _ in 0..=VLAN_TAGS_MAX {
        let Some(&[a, b]) = bytes.get(at..at + 2) else { return Err(Skip::Snapped) };
        at += 2;
        match u16::from_be_bytes([a, b]) {
            0x0800 => return Ok((at, Version::V4)),
            0x86dd => return Ok((at, Version::V6)),
            0x8100 | 0x88a8 | 0x9100 => at += 2,
            0x8864 => {
                // PPPoE session (RFC 2516 section 4): 6 bytes of header, then PPP's protocol.
                let rest = bytes.get(at + 6..).ok_or(Skip::Snapped)?;
                return ppp(rest).map(|(ip, version)| (at + 6 + ip, version));
            }
            _ => return Err(Skip::NotIp),
        }
    }
    Err(Skip::NotIp)
}

/// The IP version by its first nibble.
fn by_nibble(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    match bytes.get(at).ok_or(Skip::Snapped)? >> 4 {
        4 => Ok((at, Version::V4)),
        6 => Ok((at, Version::V6)),
        _ => Err(Skip::NotIp),
    }
}

/// BSD loopback: the address family in either byte order, AF_INET6 by the number of each system
/// (24 NetBSD and OpenBSD, 28 FreeBSD, 30 macOS, 10 Linux).
fn address_family(bytes: &[u8]) -> Result<(usize, Version), Skip> {
    let Some(&[a, b, c, d]) = bytes.get(..4) else { return Err(Skip::Snapped) };
    let family = u32::from_be_bytes([a, b, c, d]).min(u32::from_le_bytes([a, b, c, d]));
    match family {
        2 => Ok((4, Version::V4)),
        10 | 24 | 28 | 30 => Ok((4, Version::V6)),
        _ => Err(Skip::NotIp),
    }
}

/// PPP (RFC 1661 section 2), with HDLC framing (RFC 1662: ff 03) or without, the protocol field
/// compressed or not.
fn ppp(bytes: &[u8]) -> Result<(usize, Version), Skip> {
    let at = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    match bytes.get(at..) {
        Some([0x00, 0x21, ..]) => Ok((at + 2, Version::V4)),
        Some([0x00, 0x57, ..]) => Ok((at + 2, Version::V6)),
        Some([0x21, ..]) => Ok((at + 1, Version::V4)),
        Some([0x57, ..]) => Ok((at + 1, Version::V6)),
        Some([_, _, ..]) => Err(Skip::NotIp),
        _ => Err(Skip::Snapped),
    }
}

/// More tags than any network stacks.
const VLAN_TAGS_MAX: usize = 4;

#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;
