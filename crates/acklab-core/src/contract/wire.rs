//! Bytes as a TCP segment.

use std::net::{Ipv4Addr, SocketAddr};

use crate::packet::Ecn;
use crate::segment::Flags;
use crate::seq::Seq;
use crate::wire::{emit_ip, emit_tcp, parse_tcp, transport_checksum};

/// Reads any bytes as a TCP segment, its checksum made right, and asserts that what is read of it is, written and read
/// again, the same; whether it was a segment.
///
/// # Panics
/// Where it is not.
pub fn attack_tcp_wire(bytes: &[u8]) -> bool {
    let ip = Ipv4Addr::new(10, 0, 0, 1);
    let mut segment = bytes.to_vec();
    if let Some(field) = segment.get_mut(CHECKSUM) {
        field.fill(0);
        let sum = transport_checksum((ip.into(), ip.into()), TCP, &segment);
        segment[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
    let mut packet = Vec::new();
    emit_ip((ip.into(), ip.into()), Ecn::NotEct, TCP, 0, segment.len(), &mut packet);
    packet.extend(&segment);
    let Ok(read) = parse_tcp(&packet) else { return false };
    let mut expected = read;
    if !expected.segment.flags.has(Flags::ACK) {
        // The field means nothing then and is written as 0.
        expected.segment.ack = Seq(0);
    }
    if expected.segment.options.wire_len() > MOST_OPTIONS {
        // They stood closer than they are written.
        return true;
    }
    let ends: (SocketAddr, SocketAddr) = (read.source, read.destination);
    let mut again = Vec::new();
    emit_tcp(ends, read.ecn, 0, &expected.segment, [read.payload, &[]], &mut again);
    assert_eq!(parse_tcp(&again), Ok(expected));
    true
}

const TCP: u8 = 6;
const CHECKSUM: std::ops::Range<usize> = 16..18;
/// Sixty bytes of header (RFC 9293 section 3.1) less twenty.
const MOST_OPTIONS: u32 = 40;
