//! Packets of virtual time as IPv4 packets.
//!
//! [`emit_ipv4`] makes the bytes of a [`Packet`] for a capture or a socket, with a payload filler that
//! depends only on the position in the stream, so that captures are the same to the bit and a
//! retransmission carries the same bytes. [`parse_ipv4`] reads such bytes back. Segments whose bytes
//! exist are [`super::emit_tcp`]'s and [`super::parse_tcp`]'s.

use std::net::{IpAddr, Ipv4Addr};

use super::error::ParseError;
use super::ip::{IpPacket, emit_ip, parse_ip, transport_checksum};
use super::tcp::{self, CHECKSUM_IN_TCP, PROTOCOL_TCP};
use crate::packet::{Addr, Body, NodeId, Packet};
use crate::segment::Flags;

/// The bytes of `packet`. `address` gives each host its IPv4 address.
pub fn emit_ipv4(
    packet: &Packet,
    identification: u16,
    address: impl Fn(NodeId) -> Ipv4Addr,
) -> Vec<u8> {
    let ends = (address(packet.src.node).into(), address(packet.dst.node).into());
    let mut bytes = Vec::with_capacity(packet.size() as usize);
    let (protocol, checksum_at) = match packet.body {
        Body::Tcp(_) => (PROTOCOL_TCP, CHECKSUM_IN_TCP),
        Body::Datagram { .. } | Body::Stored { .. } => (PROTOCOL_UDP, CHECKSUM_IN_UDP),
    };
    let length = (packet.size() - Packet::IPV4_HEADER) as usize;
    emit_ip(ends, packet.ecn, protocol, identification, length, &mut bytes);
    let start = bytes.len();
    match &packet.body {
        Body::Tcp(segment) => {
            tcp::emit(segment, packet.src.port, packet.dst.port, &mut bytes);
            let first = segment.seq.0.wrapping_add(u32::from(segment.flags.has(Flags::SYN)));
            fill(first, segment.payload_len, &mut bytes);
        }
        Body::Datagram { len, .. } | Body::Stored { len, .. } => {
            bytes.extend(packet.src.port.to_be_bytes());
            bytes.extend(packet.dst.port.to_be_bytes());
            bytes.extend(((len + Packet::UDP_HEADER).min(0xffff) as u16).to_be_bytes());
            bytes.extend([0, 0]);
            fill(0, *len, &mut bytes);
        }
    }
    let sum = transport_checksum(ends, protocol, &bytes[start..]);
    // RFC 768: a sum of zero is sent as all ones; in TCP that never matters.
    let sum = if sum == 0 && protocol == PROTOCOL_UDP { 0xffff } else { sum };
    bytes[start + checksum_at..start + checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Reads an IPv4 packet, its checksums included. `node` names the host of each address.
pub fn parse_ipv4(bytes: &[u8], node: impl Fn(Ipv4Addr) -> NodeId) -> Result<Packet, ParseError> {
    let IpPacket { source, destination, ecn, protocol, payload } = parse_ip(bytes)?;
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (source, destination) else {
        return Err(ParseError::Version);
    };
    let (ports, body) = match protocol {
        PROTOCOL_TCP => {
            let tcp::TcpPacket { source, destination, segment, .. } = tcp::parse_tcp(bytes)?;
            ([source.port(), destination.port()], Body::Tcp(segment))
        }
        PROTOCOL_UDP => {
            let udp = payload.first_chunk::<8>().ok_or(ParseError::Truncated)?;
            let summed = [udp[6], udp[7]] != [0, 0];
            if summed && transport_checksum((source, destination), protocol, payload) != 0 {
                return Err(ParseError::Checksum);
            }
            let ports =
                [u16::from_be_bytes([udp[0], udp[1]]), u16::from_be_bytes([udp[2], udp[3]])];
            let len = payload.len() as u32 - Packet::UDP_HEADER;
            (ports, Body::Datagram { len, words: [0; 2] })
        }
        _ => return Err(ParseError::Protocol),
    };
    let end = |address, port| Addr { node: node(address), port };
    let (src, dst) = (end(src, ports[0]), end(dst, ports[1]));
    Ok(Packet { src, dst, ecn, returned: false, body })
}

/// Appends `len` bytes of a stream whose byte at sequence number n is always the same: a readable
/// pattern of 64 characters.
fn fill(first: u32, len: u32, bytes: &mut Vec<u8>) {
    bytes.extend((0..len).map(|i| b'0' + (first.wrapping_add(i) % 64) as u8));
}

const PROTOCOL_UDP: u8 = 17;
const CHECKSUM_IN_UDP: usize = 6;
