//! The inverse of [`super::dissect`]: a frame's bytes from a segment.
//!
//! For the simulator's captures and for tests. Checksums are filled in (IPv4 header RFC 791, TCP
//! RFC 9293 with the pseudo-header), so that other tools find nothing to complain about; a payload
//! shorter than `payload_len` is a snapped frame, and its TCP checksum is left 0.

use std::net::IpAddr;

use crate::capture::LinkType;
use crate::segment::{Flags, Options, Segment};

/// Appends the frame to `out` and returns its length on the wire, bytes. Link types other than
/// Ethernet, Linux cooked v1 and v2, BSD loopback and PPP are written as raw IP.
pub fn encode(link: LinkType, segment: &Segment<'_>, out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    link_header(link, segment.src.addr.is_ipv4(), out);
    let ip = out.len();
    let mut options = [0; 40];
    let options_len = encode_options(&segment.options, &mut options);
    let tcp_len = 20 + options_len + segment.payload_len as usize;
    ip_header(segment, tcp_len, out);
    let tcp = out.len();
    out.extend_from_slice(&segment.src.port.to_be_bytes());
    out.extend_from_slice(&segment.dst.port.to_be_bytes());
    out.extend_from_slice(&segment.seq.to_be_bytes());
    out.extend_from_slice(&segment.ack.to_be_bytes());
    out.extend_from_slice(&[((20 + options_len) as u8 / 4) << 4, segment.flags.0]);
    out.extend_from_slice(&segment.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&options[..options_len]);
    out.extend_from_slice(segment.payload);
    if segment.payload.len() == segment.payload_len as usize {
        let sum = pseudo_header_sum(segment, tcp_len as u32);
        let checksum = checksum(&out[tcp..], sum).to_be_bytes();
        out[tcp + 16..tcp + 18].copy_from_slice(&checksum);
    }
    (ip - start + (tcp - ip) + tcp_len) as u32
}

fn link_header(link: LinkType, v4: bool, out: &mut Vec<u8>) {
    let ether_type: [u8; 2] = if v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    match link {
        LinkType::ETHERNET => {
            out.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            out.extend_from_slice(&ether_type);
        }
        LinkType::LINUX_SLL => {
            out.extend_from_slice(&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
            out.extend_from_slice(&ether_type);
        }
        LinkType::LINUX_SLL2 => {
            out.extend_from_slice(&ether_type);
            out.extend_from_slice(&[0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
        }
        LinkType::NULL => out.extend_from_slice(&[if v4 { 2 } else { 30 }, 0, 0, 0]),
        LinkType::LOOP => out.extend_from_slice(&[0, 0, 0, if v4 { 2 } else { 24 }]),
        LinkType::PPP => out.extend_from_slice(&[0xff, 0x03, 0, if v4 { 0x21 } else { 0x57 }]),
        _ => {}
    }
}

fn ip_header(segment: &Segment<'_>, tcp_len: usize, out: &mut Vec<u8>) {
    match (segment.src.addr, segment.dst.addr) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            // Longer than 65535: 0, as a capture before segmentation offload has it.
            let total = u16::try_from(20 + tcp_len).unwrap_or(0).to_be_bytes();
            let id = segment.ip_id.to_be_bytes();
            let mut header = [
                0x45,
                0,
                total[0],
                total[1],
                id[0],
                id[1],
                0x40,
                0,
                segment.ttl,
                6,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            header[12..16].copy_from_slice(&src.octets());
            header[16..20].copy_from_slice(&dst.octets());
            let checksum = checksum(&header, 0).to_be_bytes();
            header[10..12].copy_from_slice(&checksum);
            out.extend_from_slice(&header);
        }
        (src, dst) => {
            let length = u16::try_from(tcp_len).unwrap_or(0).to_be_bytes();
            out.extend_from_slice(&[0x60, 0, 0, 0, length[0], length[1], 6, segment.ttl]);
            out.extend_from_slice(&v6_octets(src));
            out.extend_from_slice(&v6_octets(dst));
        }
    }
}

fn v6_octets(addr: IpAddr) -> [u8; 16] {
    match addr {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Writes the options, each on a 4-byte boundary; returns their length, at most 40 bytes.
fn encode_options(options: &Options, out: &mut [u8; 40]) -> usize {
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(space) = out.get_mut(len..len + bytes.len()) {
            space.copy_from_slice(bytes);
            len += bytes.len();
        }
    };
    if let Some(mss) = options.mss {
        let [a, b] = mss.to_be_bytes();
        put(&[2, 4, a, b]);
    }
    if options.sack_permitted {
        put(&[1, 1, 4, 2]);
    }
    if let Some((value, echo)) = options.timestamp {
        put(&[1, 1, 8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    }
    if let Some(scale) = options.window_scale {
        put(&[1, 3, 3, scale]);
    }
    if let Some((left, right)) = options.sack_first {
        // Only the first block is kept of those read; the count is written by repeating it.
        let blocks = usize::from(options.sack_blocks.clamp(1, 2));
        put(&[1, 1, 5, 2 + 8 * blocks as u8]);
        for _ in 0..blocks {
            put(&left.to_be_bytes());
            put(&right.to_be_bytes());
        }
    }
    len
}

fn pseudo_header_sum(segment: &Segment<'_>, tcp_len: u32) -> u64 {
    let addresses = match (segment.src.addr, segment.dst.addr) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => sum(&src.octets()) + sum(&dst.octets()),
        (src, dst) => sum(&v6_octets(src)) + sum(&v6_octets(dst)),
    };
    addresses + 6 + u64::from(tcp_len >> 16) + u64::from(tcp_len & 0xffff)
}

fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words.map(|w| (u64::from(w[0]) << 8) | u64::from(w.get(1).copied().unwrap_or(0))).sum()
}

/// The internet checksum (RFC 1071) of `bytes`, beginning at `start`.
fn checksum(bytes: &[u8], start: u64) -> u16 {
    let mut sum = sum(bytes) + start;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// So that a SYN or FIN takes its place in sequence space where frames are made from segments.
impl Segment<'_> {
    /// Length in sequence space: payload, and one each for SYN and FIN (RFC 9293 section 3.4).
    pub fn sequence_len(&self) -> u32 {
        self.payload_len
            + u32::from(self.flags.has(Flags::SYN))
            + u32::from(self.flags.has(Flags::FIN))
    }
}
