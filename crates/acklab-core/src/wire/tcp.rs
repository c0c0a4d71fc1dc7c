//! TCP segments as bytes (RFC 9293 section 3.1) in IP packets, and back.

use std::net::SocketAddr;

use super::error::ParseError;
use super::ip::{emit_ip, parse_ip, transport_checksum};
use crate::packet::Ecn;
use crate::segment::{
    AckRequest, EXPERIMENT_1, EXPERIMENT_2, Flags, SackBlock, TcpOptions, TcpRepr, Timestamp,
};
use crate::seq::Seq;

/// A TCP segment with the packet that it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPacket<'a> {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// ECN field.
    pub ecn: Ecn,
    /// Its header.
    pub segment: TcpRepr,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Appends an IP packet with `segment` and its payload, `segment.payload_len` bytes that stand in
/// `payload` as the two halves of a ring. Both ends are of one family.
pub fn emit_tcp(
    (source, destination): (SocketAddr, SocketAddr),
    ecn: Ecn,
    identification: u16,
    segment: &TcpRepr,
    payload: [&[u8]; 2],
    bytes: &mut Vec<u8>,
) {
    let ends = (source.ip(), destination.ip());
    let length = (segment.header_len() + segment.payload_len) as usize;
    emit_ip(ends, ecn, PROTOCOL_TCP, identification, length, bytes);
    let start = bytes.len();
    emit(segment, source.port(), destination.port(), bytes);
    bytes.extend_from_slice(payload[0]);
    bytes.extend_from_slice(payload[1]);
    debug_assert_eq!(bytes.len(), start + length);
    let sum = transport_checksum(ends, PROTOCOL_TCP, &bytes[start..]);
    let at = start + CHECKSUM_IN_TCP;
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Reads an IP packet that carries TCP, its checksums included.
pub fn parse_tcp(bytes: &[u8]) -> Result<TcpPacket<'_>, ParseError> {
    let ip = parse_ip(bytes)?;
    if ip.protocol != PROTOCOL_TCP {
        return Err(ParseError::Protocol);
    }
    if transport_checksum((ip.source, ip.destination), PROTOCOL_TCP, ip.payload) != 0 {
        return Err(ParseError::Checksum);
    }
    let ([source, destination], segment) = parse(ip.payload)?;
    Ok(TcpPacket {
        source: SocketAddr::new(ip.source, source),
        destination: SocketAddr::new(ip.destination, destination),
        ecn: ip.ecn,
        payload: &ip.payload[ip.payload.len() - segment.payload_len as usize..],
        segment,
    })
}

/// Appends the segment's header with a checksum of zero.
pub(super) fn emit(segment: &TcpRepr, src: u16, dst: u16, bytes: &mut Vec<u8>) {
    bytes.extend(src.to_be_bytes());
    bytes.extend(dst.to_be_bytes());
    bytes.extend(segment.seq.0.to_be_bytes());
    let ack = if segment.flags.has(Flags::ACK) { segment.ack.0 } else { 0 };
    bytes.extend(ack.to_be_bytes());
    bytes.extend([((segment.header_len() / 4) << 4) as u8, segment.flags.0]);
    bytes.extend(segment.window.to_be_bytes());
    // Checksum, to be filled in, and urgent pointer.
    bytes.extend([0; 4]);
    emit_options(&segment.options, bytes);
}

/// In the order of Linux (`tcp_options_write`): fingerprints read it.
fn emit_options(options: &TcpOptions, bytes: &mut Vec<u8>) {
    if let Some(mss) = options.mss {
        bytes.extend([KIND_MSS, 4]);
        bytes.extend(mss.to_be_bytes());
    }
    match (options.sack_permitted, options.timestamp.is_some()) {
        (true, true) => bytes.extend([KIND_SACK_PERMITTED, 2]),
        (true, false) => bytes.extend([NOP, NOP, KIND_SACK_PERMITTED, 2]),
        (false, true) => bytes.extend([NOP, NOP]),
        (false, false) => {}
    }
    if let Some(stamp) = options.timestamp {
        bytes.extend([KIND_TIMESTAMP, 10]);
        bytes.extend(stamp.value.to_be_bytes());
        bytes.extend(stamp.echo.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        bytes.extend([NOP, KIND_WINDOW_SCALE, 3, shift]);
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        bytes.extend([NOP, NOP, KIND_SACK, (2 + 8 * blocks.len()) as u8]);
        for block in blocks {
            bytes.extend(block.left.0.to_be_bytes());
            bytes.extend(block.right.0.to_be_bytes());
        }
    }
    if let Some(request) = options.ack_request {
        match request.option() {
            (kind, [high, low], None) => bytes.extend([kind, 4, high, low]),
            (kind, [high, low], Some(value)) => {
                bytes.extend([NOP, NOP, NOP, kind, 5, high, low, value]);
            }
        }
    }
}

/// Reads a segment; returns its ports too. The checksum is the caller's business.
fn parse(bytes: &[u8]) -> Result<([u16; 2], TcpRepr), ParseError> {
    let fixed = bytes.first_chunk::<20>().ok_or(ParseError::Truncated)?;
    let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let header = usize::from(fixed[12] >> 4) * 4;
    let options = bytes.get(20..header).ok_or(ParseError::Options)?;
    let segment = TcpRepr {
        seq: Seq(long(fixed, 4)),
        ack: Seq(long(fixed, 8)),
        flags: Flags(fixed[13]),
        window: word(14),
        options: parse_options(options)?,
        payload_len: (bytes.len() - header) as u32,
    };
    Ok(([word(0), word(2)], segment))
}

/// The 32-bit word at `at`, which the caller knows is there.
fn long(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Unknown options are skipped, as RFC 9293 section 3.2 demands.
fn parse_options(mut bytes: &[u8]) -> Result<TcpOptions, ParseError> {
    let mut options = TcpOptions::default();
    while let Some((&kind, rest)) = bytes.split_first() {
        match kind {
            END => break,
            NOP => {
                bytes = rest;
                continue;
            }
            _ => {}
        }
        let len = usize::from(*rest.first().ok_or(ParseError::Options)?);
        let value = bytes.get(2..len).ok_or(ParseError::Options)?;
        match (kind, value) {
            (KIND_MSS, &[a, b]) => options.mss = Some(u16::from_be_bytes([a, b])),
            (KIND_WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift),
            (KIND_SACK_PERMITTED, &[]) => options.sack_permitted = true,
            (KIND_TIMESTAMP, value) if value.len() == 8 => {
                let (value, echo) = (long(value, 0), long(value, 4));
                options.timestamp = Some(Timestamp { value, echo });
            }
            (KIND_SACK, blocks) => {
                for block in blocks.chunks_exact(8) {
                    let (left, right) = (Seq(long(block, 0)), Seq(long(block, 4)));
                    options.sack.push(SackBlock { left, right });
                }
            }
            (EXPERIMENT_1 | EXPERIMENT_2, value) => {
                options.ack_request = AckRequest::of_option(kind, value).or(options.ack_request);
            }
            _ => {}
        }
        bytes = &bytes[len..];
    }
    Ok(options)
}

/// TCP's protocol number.
pub(super) const PROTOCOL_TCP: u8 = 6;
/// Where the checksum stands in a segment.
pub(super) const CHECKSUM_IN_TCP: usize = 16;
const END: u8 = 0;
const NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMP: u8 = 8;
