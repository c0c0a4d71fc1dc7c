//! Where the IP packet begins in a frame: Ethernet with up to four VLAN tags (802.1Q, 802.1ad), PPPoE, MPLS, HSR and LLC;
//! Linux cooked v1 and v2; BSD loopback; PPP and Cisco HDLC; IEEE 802.11 with and without radiotap or PPI; the logs of
//! packet filters; raw IP.

use super::ip::Version;
use super::skip::Skip;
use crate::capture::LinkType;

/// Where the IP header begins, and its version; the offset lies within `bytes`.
#[inline]
pub(super) fn network_layer(link: LinkType, bytes: &[u8]) -> Result<(usize, Version), Skip> {
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
        LinkType::PPP | LinkType::PPP_HDLC => ppp(bytes),
        _ => rare(link, bytes),
    }
}

/// Follows EtherTypes from `at` through VLAN tags and PPPoE.
#[inline]
pub(super) fn ether_type(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    let (at, ether) = behind_tags(bytes, at)?;
    match ether {
        0x0800 => Ok((at, Version::V4)),
        0x86dd => Ok((at, Version::V6)),
        // PPPoE session (RFC 2516 section 4): 6 bytes of header, then PPP's protocol.
        0x8864 => behind(bytes, at + 6, ppp),
        _ => rare_type(ether, bytes, at),
    }
}

/// The first EtherType from `at` on that is no tag, and where it ends.
#[inline]
fn behind_tags(bytes: &[u8], mut at: usize) -> Result<(usize, u16), Skip> {
    for _ in 0..=TAGS_MAX {
        let Some(&[a, b]) = bytes.get(at..at + 2) else { return Err(Skip::Snapped) };
        at += 2;
        match u16::from_be_bytes([a, b]) {
            0x8100 | 0x88a8 | 0x9100 => at += 2,
            // HSR (IEC 62439-3) and 802.1CB.
            0x892f | 0xf1c1 => at += 4,
            ether => return Ok((at, ether)),
        }
    }
    Err(Skip::NotIp)
}

/// IP behind tags alone.
fn plain_type(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    match behind_tags(bytes, at)? {
        (at, 0x0800) => Ok((at, Version::V4)),
        (at, 0x86dd) => Ok((at, Version::V6)),
        _ => Err(Skip::NotIp),
    }
}

/// The EtherTypes that are met less often; `at` is behind them.
#[cold]
fn rare_type(ether: u16, bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
    let rest = bytes.get(at..).ok_or(Skip::Snapped)?;
    match ether {
        0x8847 | 0x8848 => mpls(bytes, at),
        // 802.3 with a length: LLC and SNAP (RFC 1042).
        0..=1500 if rest.starts_with(&SNAP) => plain_type(bytes, at + SNAP.len()),
        _ => Err(Skip::NotIp),
    }
}

/// MPLS (RFC 3032): labels of 4 bytes to the bottom of the stack, then IP, or Ethernet behind a control word (RFC 4448).
fn mpls(bytes: &[u8], mut at: usize) -> Result<(usize, Version), Skip> {
    for _ in 0..LABELS_MAX {
        let label = bytes.get(at..at + 4).ok_or(Skip::Snapped)?;
        at += 4;
        if label[2] & 1 == 1 {
            return match bytes.get(at).ok_or(Skip::Snapped)? >> 4 {
                0 => plain_type(bytes, at + 4 + 12),
                _ => by_nibble(bytes, at),
            };
        }
    }
    Err(Skip::NotIp)
}

/// The link types that are met less often.
#[cold]
fn rare(link: LinkType, bytes: &[u8]) -> Result<(usize, Version), Skip> {
    let word = |at: usize| match bytes.get(at..at + 2) {
        Some(&[a, b]) => Ok(usize::from(u16::from_le_bytes([a, b]))),
        _ => Err(Skip::Snapped),
    };
    match link {
        LinkType::C_HDLC => ether_type(bytes, 2),
        // One byte for the direction, then PPP's control field and protocol.
        LinkType::PPP_PPPD => behind(bytes, 2, ppp),
        LinkType::IEEE_802_11 => wireless(bytes),
        LinkType::RADIOTAP => behind(bytes, word(2)?, wireless),
        LinkType::PPI => {
            let link = LinkType(word(4)? as u16);
            let nested = link == LinkType::PPI;
            if nested {
                Err(Skip::LinkType)
            } else {
                behind(bytes, word(2)?, |b| network_layer(link, b))
            }
        }
        LinkType::PFLOG => {
            let len = usize::from(*bytes.first().ok_or(Skip::Snapped)?);
            by_nibble(bytes, len.next_multiple_of(4))
        }
        LinkType::NFLOG => nflog(bytes, word),
        _ => Err(Skip::LinkType),
    }
}

/// What `find` finds behind a header of `len` bytes.
fn behind(
    bytes: &[u8],
    len: usize,
    find: impl FnOnce(&[u8]) -> Result<(usize, Version), Skip>,
) -> Result<(usize, Version), Skip> {
    let rest = bytes.get(len..).ok_or(Skip::Snapped)?;
    find(rest).map(|(at, version)| (len + at, version))
}

/// A data frame of IEEE 802.11 (section 9.2.4) that is not encrypted.
fn wireless(bytes: &[u8]) -> Result<(usize, Version), Skip> {
    let Some(&[control, flags]) = bytes.get(..2) else { return Err(Skip::Snapped) };
    let (data, null, protected) = (control & 0x0c == 0x08, control & 0x40 != 0, flags & 0x40 != 0);
    if !data || null || protected {
        return Err(Skip::NotIp);
    }
    let fourth = if flags & 3 == 3 { 6 } else { 0 };
    let quality = if control & 0x80 != 0 { 2 + if flags & 0x80 != 0 { 4 } else { 0 } } else { 0 };
    let at = 24 + fourth + quality;
    match bytes.get(at..) {
        Some(rest) if rest.starts_with(&SNAP) => plain_type(bytes, at + SNAP.len()),
        Some(_) => Err(Skip::NotIp),
        None => Err(Skip::Snapped),
    }
}

/// Linux's nflog: 4 bytes, then attributes of which one is the packet; `word` reads two bytes of host order.
fn nflog(
    bytes: &[u8],
    word: impl Fn(usize) -> Result<usize, Skip>,
) -> Result<(usize, Version), Skip> {
    let mut at = 4;
    loop {
        let (len, kind) = (word(at)?, word(at + 2)?);
        match (len, kind) {
            (4.., PAYLOAD) => return by_nibble(bytes, at + 4),
            (4.., _) => at += len.next_multiple_of(4),
            _ => return Err(Skip::NotIp),
        }
    }
}

/// The IP version by its first nibble.
pub(super) fn by_nibble(bytes: &[u8], at: usize) -> Result<(usize, Version), Skip> {
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

/// LLC and SNAP before an EtherType (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// NFULA_PAYLOAD.
const PAYLOAD: usize = 9;
/// More labels than any network stacks.
const LABELS_MAX: usize = 8;
/// More tags than any network stacks.
const TAGS_MAX: usize = 4;
