//! A frame's headers as they stand, for those who write them anew.

use super::{Skip, ip_packet, network_layer, tcp, tunnel};
use crate::capture::Frame;
use crate::segment::Segment;

/// The headers of a segment, byte by byte, with what they say.
pub(crate) struct Headers<'a> {
    /// The IP header with its options or extension headers.
    pub(crate) ip: &'a [u8],
    /// The TCP header with its options, as far as it was captured: 20 bytes at least.
    pub(crate) tcp: &'a [u8],
    /// Length of the IP packet on the wire, without what pads the frame.
    pub(crate) wire_len: u32,
    pub(crate) segment: Segment<'a>,
}

/// Reads the headers in a frame: those of the innermost packet, where it is in tunnels.
pub(crate) fn headers<'a>(frame: &Frame<'a>) -> Result<Headers<'a>, Skip> {
    let bytes = frame.bytes;
    let (mut at, version) = network_layer(frame.link, bytes)?;
    let padded_len = (frame.original_len as usize).max(bytes.len()) - at;
    let packet = match ip_packet(&bytes[at..], padded_len, version) {
        Err(Skip::NotTcp) => {
            let (begins, packet) = tunnel::inner(&bytes[at..], padded_len, version)?;
            at += begins;
            packet
        }
        packet => packet?,
    };
    let segment = tcp::parse(frame, &packet)?;
    let tcp_at = packet.bytes.as_ptr().addr() - bytes.as_ptr().addr();
    let header_len = usize::from(packet.bytes[12] >> 4) * 4;
    Ok(Headers {
        ip: &bytes[at..tcp_at],
        tcp: &packet.bytes[..header_len.min(packet.bytes.len())],
        wire_len: (tcp_at - at + packet.len) as u32,
        segment,
    })
}
