//! The packet inside a tunnel: IP in IP (RFC 2003, 4213), GRE (RFC 2784, 2890) with ERSPAN, VXLAN (RFC 7348), Geneve (RFC
//! 8926) and GTP-U (3GPP TS 29.281).
//!
//! A TCP connection in a tunnel is judged as itself: the outer headers say nothing of its timing.

use super::ip::{Packet, Version, ip_packet};
use super::link::{by_nibble, ether_type};
use super::skip::Skip;

/// The TCP packet that the IP packet carries, however deep, and where its IP header begins.
#[cold]
pub(super) fn inner(
    bytes: &[u8],
    wire_len: usize,
    version: Version,
) -> Result<(usize, Packet<'_>), Skip> {
    let (mut begins, mut version) = (0, version);
    for _ in 0..DEPTH_MAX {
        let (at, inside) = step(&bytes[begins..], version)?;
        begins += at;
        version = inside;
        let rest = bytes.get(begins..).ok_or(Skip::Snapped)?;
        match ip_packet(rest, wire_len.saturating_sub(begins), version) {
            Err(Skip::NotTcp) => {}
            packet => return Ok((begins, packet?)),
        }
    }
    Err(Skip::NotTcp)
}

/// Where the next IP header begins.
fn step(bytes: &[u8], version: Version) -> Result<(usize, Version), Skip> {
    let (protocol, at) = match version {
        Version::V4 => {
            let header = bytes.get(..20).ok_or(Skip::Snapped)?;
            (header[9], usize::from(header[0] & 0x0f) * 4)
        }
        Version::V6 => (bytes.get(..40).ok_or(Skip::Snapped)?[6], 40),
    };
    match protocol {
        4 | 41 => by_nibble(bytes, at),
        47 => gre(bytes, at),
        17 => over_udp(bytes, at),
        _ => Err(Skip::NotTcp),
    }
}

fn gre(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    let Some(&[flags, version, a, b]) = bytes.get(at..at + 4) else { return Err(Skip::Snapped) };
    if version & 7 != 0 {
        return Err(Skip::NotTcp);
    }
    let optional = [0x80, 0x20, 0x10].into_iter().filter(|bit| flags & bit != 0).count();
    let at = at + 4 + 4 * optional;
    let sequence = flags & 0x10 != 0;
    match u16::from_be_bytes([a, b]) {
        0x0800 | 0x86dd => by_nibble(bytes, at),
        0x6558 => ether_type(bytes, at + 12),
        // ERSPAN: type I has no header; type II has 8 bytes, type III 12 and, by its last bit, 8 more.
        0x88be => ether_type(bytes, at + 12 + if sequence { 8 } else { 0 }),
        0x22eb => {
            let more = bytes.get(at + 11).ok_or(Skip::Snapped)? & 1;
            ether_type(bytes, at + 12 + 12 + 8 * usize::from(more))
        }
        _ => Err(Skip::NotTcp),
    }
}

fn over_udp(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    let Some(port) = bytes.get(at + 2..at + 4) else { return Err(Skip::Snapped) };
    let port = u16::from_be_bytes([port[0], port[1]]);
    let at = at + 8;
    let Some(&[first, second, a, b]) = bytes.get(at..at + 4) else { return Err(Skip::NotTcp) };
    match (port, u16::from_be_bytes([a, b])) {
        // 8472: Linux's port from before the RFC.
        (4789 | 8472, _) if first & 0x08 != 0 => ether_type(bytes, at + 8 + 12),
        (6081, 0x6558) => ether_type(bytes, at + 8 + 4 * usize::from(first & 0x3f) + 12),
        (6081, 0x0800 | 0x86dd) => by_nibble(bytes, at + 8 + 4 * usize::from(first & 0x3f)),
        (2152, _) if first >> 5 == 1 && second == 0xff => gtp(bytes, at, first & 7 != 0),
        _ => Err(Skip::NotTcp),
    }
}

/// GTP-U's header, its optional part and extension headers (section 5.2.1: 4-byte units, the last byte says what follows).
fn gtp(bytes: &[u8], at: usize, optional: bool) -> Result<(usize, Version), Skip> {
    if !optional {
        return by_nibble(bytes, at + 8);
    }
    let mut at = at + 12;
    for _ in 0..DEPTH_MAX {
        if *bytes.get(at - 1).ok_or(Skip::Snapped)? == 0 {
            return by_nibble(bytes, at);
        }
        at += 4 * usize::from((*bytes.get(at).ok_or(Skip::Snapped)?).max(1));
    }
    Err(Skip::NotTcp)
}

/// Deeper tunnels are not followed.
const DEPTH_MAX: usize = 4;
