//! The TCP header and the options that bear on timing.
//!
//! RFC 9293 sections 3.1 and 3.2; window scale and timestamps RFC 7323; SACK RFC 2018.

use super::Skip;
use super::ip::Packet;
use crate::capture::Frame;
use crate::segment::{Endpoint, Flags, SeenOptions, Segment, Timestamp};

/// Parses the segment in an IP packet.
#[expect(clippy::inline_always, reason = "a segment returned through memory costs 10 % of a run")]
#[inline(always)]
pub(super) fn parse<'a>(frame: &Frame<'a>, packet: &Packet<'a>) -> Result<Segment<'a>, Skip> {
    let Some(header) = packet.bytes.first_chunk::<20>() else {
        return Err(if packet.len < 20 { Skip::Malformed } else { Skip::Snapped });
    };
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < 20 || header_len > packet.len {
        return Err(Skip::Malformed);
    }
    let captured_header = header_len.min(packet.bytes.len());
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let mut options = parse_options(&packet.bytes[20..captured_header]);
    options.cut = captured_header < header_len;
    Ok(Segment {
        frame: frame.number,
        time: frame.time,
        src: Endpoint { addr: packet.src, port: port(0) },
        dst: Endpoint { addr: packet.dst, port: port(2) },
        seq: word(4),
        ack: word(8),
        flags: Flags(header[13]),
        window: port(14),
        options,
        payload_len: (packet.len - header_len) as u32,
        payload: &packet.bytes[captured_header..],
        ttl: packet.ttl,
        ip_id: packet.id,
    })
}

/// Parses options; malformed or cut ones end the list, as a receiver would have it.
#[inline]
fn parse_options(mut bytes: &[u8]) -> SeenOptions {
    let mut options = SeenOptions::default();
    // What Linux, BSD and Windows send on every segment: NOP, NOP, timestamps.
    if let [1, 1, 8, 10, value @ ..] = bytes
        && let Ok(value) = value.try_into()
    {
        options.timestamp = Some(timestamp(value));
        return options;
    }
    while let [kind, rest @ ..] = bytes {
        match (*kind, rest) {
            (0, _) => break,
            (1, _) => bytes = rest,
            (_, [len, ..]) if *len >= 2 && usize::from(*len) <= bytes.len() => {
                let (option, after) = bytes.split_at(usize::from(*len));
                read_option(&mut options, *kind, &option[2..]);
                bytes = after;
            }
            _ => break,
        }
    }
    options
}

fn read_option(options: &mut SeenOptions, kind: u8, value: &[u8]) {
    match *value {
        [high, low] if kind == 2 => options.mss = Some(u16::from_be_bytes([high, low])),
        [shift] if kind == 3 => options.window_scale = Some(shift),
        [] if kind == 4 => options.sack_permitted = true,
        [_, ..] if kind == 5 && value.len().is_multiple_of(8) => {
            options.sack_blocks = (value.len() / 8) as u8;
        }
        _ if kind == 8 => options.timestamp = value.try_into().ok().map(timestamp),
        _ => {}
    }
}

/// The timestamps in the option's 8 bytes.
#[inline]
fn timestamp(value: [u8; 8]) -> Timestamp {
    let both = u64::from_be_bytes(value);
    Timestamp { value: (both >> 32) as u32, echo: both as u32 }
}
