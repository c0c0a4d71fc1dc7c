//! IPv4 (RFC 791 section 3.1) and IPv6 (RFC 8200 sections 3 and 4) headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::skip::Skip;

/// What TCP needs of the IP layer.
pub(super) struct Packet<'a> {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) ttl: u8,
    /// 0 for IPv6.
    pub(super) id: u16,
    /// The captured bytes from the TCP header on, padding cut off.
    pub(super) bytes: &'a [u8],
    /// TCP header and payload on the wire, bytes.
    pub(super) len: usize,
    pub(super) length_lies: bool,
}

/// Parses a packet of either version; arguments as in [`parse_v4`].
#[expect(clippy::inline_always, reason = "a packet returned through memory costs 5 % of a run")]
#[inline(always)]
pub(super) fn ip_packet(
    bytes: &[u8],
    wire_len: usize,
    version: Version,
) -> Result<Packet<'_>, Skip> {
    match version {
        Version::V4 => parse_v4(bytes, wire_len),
        Version::V6 => parse_v6(bytes, wire_len),
    }
}

/// Version of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// Parses an IPv4 packet of which `bytes` were captured and which the frame says was `wire_len`
/// long, padding included.
#[expect(clippy::inline_always, reason = "a packet returned through memory costs 5 % of a run")]
#[inline(always)]
pub(super) fn parse_v4(bytes: &[u8], wire_len: usize) -> Result<Packet<'_>, Skip> {
    let Some(header) = bytes.first_chunk::<20>() else { return Err(Skip::Snapped) };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return Err(Skip::Malformed);
    }
    if header[9] != TCP {
        return Err(Skip::NotTcp);
    }
    let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    if fragment_offset != 0 {
        return Err(Skip::Fragment);
    }
    if header_len > bytes.len() {
        return Err(Skip::Snapped);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // 0: the sender captured before TCP segmentation offload wrote the length.
    let length_lies = total != 0 && (total < header_len || total > wire_len);
    let total = if total == 0 || length_lies { wire_len } else { total };
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    Ok(Packet {
        src: address(12),
        dst: address(16),
        ttl: header[8],
        id: u16::from_be_bytes([header[4], header[5]]),
        bytes: &bytes[header_len..bytes.len().min(total.max(header_len))],
        len: total.saturating_sub(header_len),
        length_lies,
    })
}

/// Parses an IPv6 packet; arguments as in [`parse_v4`].
#[inline]
pub(super) fn parse_v6(bytes: &[u8], wire_len: usize) -> Result<Packet<'_>, Skip> {
    let Some(header) = bytes.first_chunk::<40>() else { return Err(Skip::Snapped) };
    if header[0] >> 4 != 6 {
        return Err(Skip::Malformed);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // 0: a jumbogram (RFC 2675), as Linux's big TCP writes them, or TSO.
    let length_lies = length != 0 && 40 + length > wire_len;
    let total = if length == 0 || length_lies { wire_len } else { 40 + length };
    let at = transport_header(bytes, header[6])?;
    if at > total {
        return Err(Skip::Malformed);
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Packet {
        src: address(8),
        dst: address(24),
        ttl: header[7],
        id: 0,
        bytes: &bytes[at..bytes.len().min(total)],
        len: total - at,
        length_lies,
    })
}

/// Follows the extension headers to TCP; the offset lies within `bytes`.
#[inline]
fn transport_header(bytes: &[u8], mut next: u8) -> Result<usize, Skip> {
    let mut at = 40;
    for _ in 0..EXTENSIONS_MAX {
        if next == TCP {
            return Ok(at);
        }
        let extension = bytes.get(at..at + 8);
        let len = match (next, extension) {
            // Hop-by-hop, routing, destination options, mobility, HIP, shim6: 8-byte units.
            (0 | 43 | 60 | 135 | 139 | 140, Some(e)) => 8 + 8 * usize::from(e[1]),
            (44, Some(e)) => {
                if u16::from_be_bytes([e[2], e[3]]) & 0xfff8 != 0 {
                    return Err(if e[0] == TCP { Skip::Fragment } else { Skip::NotTcp });
                }
                8
            }
            // Authentication header (RFC 4302 section 2.2): 4-byte units, minus 2.
            (51, Some(e)) => 8 + 4 * usize::from(e[1]),
            (0 | 43 | 44 | 51 | 60 | 135 | 139 | 140, None) => return Err(Skip::Snapped),
            _ => return Err(Skip::NotTcp),
        };
        next = bytes[at];
        at += len;
        if at > bytes.len() {
            return Err(Skip::Snapped);
        }
    }
    Err(Skip::Malformed)
}

/// Protocol number of TCP.
const TCP: u8 = 6;
/// More extension headers than RFC 8200 allows to occur.
const EXTENSIONS_MAX: usize = 8;
