//! IP headers as bytes: IPv4 (RFC 791) and IPv6 (RFC 8200), and the checksum over their pseudo-header.
//!
//! What is made carries no options or extension headers and is never to be fragmented. IPv4 options are
//! skipped; fragments, and IPv6 extension headers with them, are refused: TCP's segments, cut to the
//! path's MTU, need none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checksum::Checksum;
use super::error::ParseError;
use crate::packet::Ecn;

/// An IP packet taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// Sender.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// ECN field.
    pub ecn: Ecn,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Reads an IP packet; what follows its end, as padding does, is left out.
pub fn parse_ip(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    match bytes.first().ok_or(ParseError::Truncated)? >> 4 {
        4 => parse_v4(bytes),
        6 => parse_v6(bytes),
        _ => Err(ParseError::Version),
    }
}

fn parse_v4(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    let fixed = bytes.first_chunk::<20>().ok_or(ParseError::Truncated)?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if header < 20 {
        return Err(ParseError::Version);
    }
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let packet = bytes.get(..total).filter(|_| total >= header).ok_or(ParseError::Truncated)?;
    if Checksum::default().sum(&packet[..header]).finish() != 0 {
        return Err(ParseError::Checksum);
    }
    // Neither more fragments nor an offset.
    if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
        return Err(ParseError::Protocol);
    }
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    Ok(IpPacket {
        source: address(12).into(),
        destination: address(16).into(),
        ecn: ecn_of(fixed[1]),
        protocol: fixed[9],
        payload: &packet[header..],
    })
}

fn parse_v6(bytes: &[u8]) -> Result<IpPacket<'_>, ParseError> {
    let fixed = bytes.first_chunk::<40>().ok_or(ParseError::Truncated)?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let payload = bytes.get(40..40 + length).ok_or(ParseError::Truncated)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    Ok(IpPacket {
        source: address(8).into(),
        destination: address(24).into(),
        // The traffic class is shifted by four bits.
        ecn: ecn_of(fixed[1] >> 4),
        protocol: fixed[6],
        payload,
    })
}

/// Appends the header of a packet that carries `length` bytes of `protocol` from `source` to
/// `destination`, which are of one family (else it is IPv4 between unspecified addresses).
/// `identification` is IPv4's.
pub fn emit_ip(
    (source, destination): (IpAddr, IpAddr),
    ecn: Ecn,
    protocol: u8,
    identification: u16,
    length: usize,
    bytes: &mut Vec<u8>,
) {
    if let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) {
        // Version 6, DSCP 0 and the ECN field, no flow label.
        bytes.extend([0x60, ecn_bits(ecn) << 4, 0, 0]);
        bytes.extend((length.min(0xffff) as u16).to_be_bytes());
        bytes.extend([protocol, HOPS]);
        bytes.extend(source.octets());
        bytes.extend(destination.octets());
        return;
    }
    let octets = |address| match address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address),
        IpAddr::V6(_) => [0; 4],
    };
    let start = bytes.len();
    // Version 4, five words; DSCP 0 and the ECN field (RFC 3168 section 5).
    bytes.extend([0x45, ecn_bits(ecn)]);
    bytes.extend(((20 + length).min(0xffff) as u16).to_be_bytes());
    bytes.extend(identification.to_be_bytes());
    // Don't fragment.
    bytes.extend([0x40, 0, HOPS, protocol, 0, 0]);
    bytes.extend(octets(source));
    bytes.extend(octets(destination));
    let sum = Checksum::default().sum(&bytes[start..]).finish();
    bytes[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum over the pseudo-header and the payload (RFC 9293 section 3.1, RFC 8200 section 8.1); zero
/// over a payload that contains a right one.
pub fn transport_checksum(
    (source, destination): (IpAddr, IpAddr),
    protocol: u8,
    payload: &[u8],
) -> u16 {
    let add = |sum: Checksum, address| match address {
        IpAddr::V4(address) => sum.sum(&Ipv4Addr::octets(&address)),
        IpAddr::V6(address) => sum.sum(&Ipv6Addr::octets(&address)),
    };
    add(add(Checksum::default(), source), destination)
        .sum(&[0, protocol])
        .sum(&(payload.len() as u32).to_be_bytes())
        .sum(payload)
        .finish()
}

const fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

const fn ecn_of(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Time to live, or hop limit (RFC 1700).
const HOPS: u8 = 64;
