//! IPv4 packets as bytes: RFC 791 headers around TCP segments and UDP datagrams.
//!
//! [`emit_ipv4`] makes the bytes of a [`Packet`] for a capture or a socket, with a payload filler that
//! depends only on the position in the stream, so that captures are the same to the bit and a
//! retransmission carries the same bytes. [`parse_ipv4`] reads such bytes back. IP options and
//! fragments are parsed but never made; IPv6 is left out (the analyser has its own reader).

use std::net::Ipv4Addr;

use super::checksum::Checksum;
use super::error::ParseError;
use super::tcp;
use crate::packet::{Addr, Body, Ecn, NodeId, Packet};

/// The bytes of `packet`. `address` gives each host its IPv4 address.
pub fn emit_ipv4(
    packet: &Packet,
    identification: u16,
    address: impl Fn(NodeId) -> Ipv4Addr,
) -> Vec<u8> {
    let (src, dst) = (address(packet.src.node), address(packet.dst.node));
    let mut bytes = Vec::with_capacity(packet.size() as usize);
    let protocol = match packet.body {
        Body::Tcp(_) => PROTOCOL_TCP,
        Body::Datagram { .. } | Body::Stored { .. } => PROTOCOL_UDP,
    };
    // Version 4, five words; DSCP 0 and the ECN field (RFC 3168 section 5).
    bytes.extend([0x45, ecn_bits(packet.ecn)]);
    bytes.extend((packet.size().min(0xffff) as u16).to_be_bytes());
    bytes.extend(identification.to_be_bytes());
    // Don't fragment; TTL 64 (RFC 1700).
    bytes.extend([0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(src.octets());
    bytes.extend(dst.octets());
    let sum = Checksum::default().sum(&bytes).finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let start = bytes.len();
    let at = match &packet.body {
        Body::Tcp(segment) => {
            tcp::emit(segment, packet.src.port, packet.dst.port, &mut bytes);
            CHECKSUM_IN_TCP
        }
        Body::Datagram { len, .. } | Body::Stored { len, .. } => {
            bytes.extend(packet.src.port.to_be_bytes());
            bytes.extend(packet.dst.port.to_be_bytes());
            bytes.extend(((len + Packet::UDP_HEADER).min(0xffff) as u16).to_be_bytes());
            bytes.extend([0, 0]);
            tcp::fill(0, *len, &mut bytes);
            CHECKSUM_IN_UDP
        }
    };
    let sum = transport_checksum(src, dst, protocol, &bytes[start..]);
    // RFC 768: a sum of zero is sent as all ones; in TCP that never matters.
    let sum = if sum == 0 && protocol == PROTOCOL_UDP { 0xffff } else { sum };
    bytes[start + at..start + at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Reads an IPv4 packet, its checksums included. `node` names the host of each address.
pub fn parse_ipv4(bytes: &[u8], node: impl Fn(Ipv4Addr) -> NodeId) -> Result<Packet, ParseError> {
    let fixed = bytes.first_chunk::<20>().ok_or(ParseError::Truncated)?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if fixed[0] >> 4 != 4 || header < 20 {
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
    let (src, dst) = (address(12), address(16));
    let transport = &packet[header..];
    let (ports, body) = match fixed[9] {
        PROTOCOL_TCP => {
            check_sum(src, dst, PROTOCOL_TCP, transport)?;
            let (ports, segment) = tcp::parse(transport)?;
            (ports, Body::Tcp(segment))
        }
        PROTOCOL_UDP => {
            let udp = transport.first_chunk::<8>().ok_or(ParseError::Truncated)?;
            if [udp[6], udp[7]] != [0, 0] {
                check_sum(src, dst, PROTOCOL_UDP, transport)?;
            }
            let ports =
                [u16::from_be_bytes([udp[0], udp[1]]), u16::from_be_bytes([udp[2], udp[3]])];
            (
                ports,
                Body::Datagram { len: transport.len() as u32 - Packet::UDP_HEADER, words: [0; 2] },
            )
        }
        _ => return Err(ParseError::Protocol),
    };
    let end = |address, port| Addr { node: node(address), port };
    Ok(Packet {
        src: end(src, ports[0]),
        dst: end(dst, ports[1]),
        ecn: ecn_of(fixed[1]),
        returned: false,
        body,
    })
}

fn check_sum(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, bytes: &[u8]) -> Result<(), ParseError> {
    if transport_checksum(src, dst, protocol, bytes) == 0 {
        Ok(())
    } else {
        Err(ParseError::Checksum)
    }
}

/// The checksum over the pseudo-header and the segment (RFC 9293 section 3.1).
fn transport_checksum(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, bytes: &[u8]) -> u16 {
    Checksum::default()
        .sum(&src.octets())
        .sum(&dst.octets())
        .sum(&[0, protocol])
        .sum(&(bytes.len() as u16).to_be_bytes())
        .sum(bytes)
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

const fn ecn_of(tos: u8) -> Ecn {
    match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const CHECKSUM_IN_TCP: usize = 16;
const CHECKSUM_IN_UDP: usize = 6;
