//! From a captured frame to a TCP segment: link layer, IP, TCP.
//!
//! Link layers: see [`link`]. IPv4 (RFC 791) with options; IPv6 (RFC 8200) with extension headers; what tunnels carry
//! ([`tunnel`]); TCP (RFC 9293 section 3.1) with the options that bear on timing.
//!
//! The payload length comes from the IP header, never from the captured bytes, so snapped frames
//! count whole and Ethernet padding does not count; where the header cannot be right (0 as TSO
//! leaves it, or beyond the frame) the frame's own length stands in. Fragments after the first are
//! passed over. Checksums are not looked at: captures at the sender precede the offload that fills
//! them in. Left out: what is encrypted (802.11 with protection, IPsec), and PPTP.

mod headers;
mod ip;
mod link;
pub(crate) mod notice;
mod skip;
mod tcp;
mod tunnel;

pub(crate) use headers::{Headers, headers};
pub(crate) use notice::{Notice, notice};
pub(crate) use skip::Skip;

use self::ip::ip_packet;
use self::link::network_layer;
use crate::capture::Frame;
#[cfg(test)]
use crate::capture::LinkType;
use crate::segment::Segment;

/// A segment, and whether its IP header told the truth.
#[derive(Clone, Debug)]
pub(crate) struct Dissected<'a> {
    pub(crate) segment: Segment<'a>,
    /// The IP length exceeds the frame or falls short of the headers; the frame's length was used.
    pub(crate) length_lies: bool,
}

/// Reads the TCP segment in a frame.
#[expect(clippy::inline_always, reason = "a segment returned through memory costs 10 % of a run")]
#[inline(always)]
pub(crate) fn dissect<'a>(frame: &Frame<'a>) -> Result<Dissected<'a>, Skip> {
    let (header_len, version) = network_layer(frame.link, frame.bytes)?;
    // A frame may be longer in the capture than it says it was; then believe the capture.
    let wire_len = (frame.original_len as usize).max(frame.bytes.len()) - header_len;
    let packet = match ip_packet(&frame.bytes[header_len..], wire_len, version) {
        Err(Skip::NotTcp) => tunnel::inner(&frame.bytes[header_len..], wire_len, version)?.1,
        packet => packet?,
    };
    let segment = tcp::parse(frame, &packet)?;
    Ok(Dissected { segment, length_lies: packet.length_lies })
}

#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wrapped;
