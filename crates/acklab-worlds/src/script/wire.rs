//! Segments as the bytes of IP packets, and back.

use acklab_host::segment::{AccEcn, Place, Segment, TcpOption};
use acklab_packetdrill::world::{IcmpAbout, IcmpMessage};

/// Addresses of the script's two hosts: the kernel's, which [`Place`] calls host 1, and the script's, host 2.
pub(super) const LOCAL_V4: [u8; 4] = [192, 168, 0, 1];
const REMOTE_V4: [u8; 4] = [192, 0, 2, 1];
pub(super) const LOCAL_V6: [u8; 16] =
    [0xfd, 0x3d, 0x0a, 0x0b, 0x17, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const REMOTE_V6: [u8; 16] = [0xfd, 0x3d, 0xfa, 0x7b, 0xd1, 0x7d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The kernel's host.
pub(super) const LOCAL: u32 = 1;
const REMOTE: u32 = 2;
const TCP: u8 = 6;

/// An address as bytes of `struct sockaddr_in` or `sockaddr_in6`.
pub(super) fn address(place: Place, v6: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if v6 {
        bytes.extend(10_u16.to_ne_bytes());
        bytes.extend(place.port.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(if place.host == LOCAL { LOCAL_V6 } else { REMOTE_V6 });
        bytes.extend([0; 4]);
    } else {
        bytes.extend(2_u16.to_ne_bytes());
        bytes.extend(place.port.to_be_bytes());
        bytes.extend(if place.host == LOCAL { LOCAL_V4 } else { REMOTE_V4 });
        bytes.extend([0; 8]);
    }
    bytes
}

fn sum(bytes: &[u8], from: u32) -> u32 {
    bytes.chunks(2).fold(from, |sum, pair| {
        sum + (u32::from(pair[0]) << 8) + u32::from(pair.get(1).copied().unwrap_or(0))
    })
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn options(list: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in list {
        match option {
            TcpOption::End => bytes.push(0),
            TcpOption::Nop => bytes.push(1),
            TcpOption::Mss(mss) => {
                bytes.extend([2, 4]);
                bytes.extend(mss.to_be_bytes());
            }
            TcpOption::Scale(shift) => bytes.extend([3, 3, *shift]),
            TcpOption::SackOk => bytes.extend([4, 2]),
            TcpOption::Sack(blocks) => {
                bytes.extend([5, 2 + 8 * blocks.len() as u8]);
                for (left, right) in blocks {
                    bytes.extend(left.to_be_bytes());
                    bytes.extend(right.to_be_bytes());
                }
            }
            TcpOption::Stamp(value, echo) => {
                bytes.extend([8, 10]);
                bytes.extend(value.to_be_bytes());
                bytes.extend(echo.to_be_bytes());
            }
            TcpOption::FastOpen(cookie, false) => {
                bytes.extend([34, 2 + cookie.len() as u8]);
                bytes.extend(cookie);
            }
            TcpOption::FastOpen(cookie, true) => {
                bytes.extend([254, 4 + cookie.len() as u8, 0xf9, 0x89]);
                bytes.extend(cookie);
            }
            TcpOption::AccEcn(counters) => {
                let fields = counters.fields();
                let kind = if counters.order == 0 { 172 } else { 174 };
                bytes.extend([kind, 2 + 3 * fields.len() as u8]);
                for field in fields {
                    bytes.extend(&field.to_be_bytes()[1..]);
                }
            }
            TcpOption::Other(kind, content) => {
                bytes.extend([*kind, 2 + content.len() as u8]);
                bytes.extend(content);
            }
        }
    }
    while bytes.len() % 4 != 0 {
        bytes.push(0);
    }
    bytes
}

/// The IP packet of a payload from the script's host to the kernel's, or the other way round for what ICMP quotes.
fn ip(v6: bool, outward: bool, protocol: u8, class: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    if v6 {
        let (source, sink) = if outward { (LOCAL_V6, REMOTE_V6) } else { (REMOTE_V6, LOCAL_V6) };
        packet.extend((0x6000_0000 | u32::from(class) << 20).to_be_bytes());
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend(source);
        packet.extend(sink);
    } else {
        let (source, sink) = if outward { (LOCAL_V4, REMOTE_V4) } else { (REMOTE_V4, LOCAL_V4) };
        packet.extend([0x45, class]);
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
        packet.extend(source);
        packet.extend(sink);
        let check = fold(sum(&packet, 0));
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

/// The sum of the pseudo header.
fn pseudo(v6: bool, protocol: u8, length: usize) -> u32 {
    let start = u32::from(protocol) + length as u32;
    if v6 { sum(&REMOTE_V6, sum(&LOCAL_V6, start)) } else { sum(&REMOTE_V4, sum(&LOCAL_V4, start)) }
}

/// A segment of the script's host, as the kernel gets it.
pub(super) fn packet(segment: &Segment, v6: bool) -> Vec<u8> {
    let options = options(&segment.options);
    let mut tcp = Vec::new();
    tcp.extend(segment.src.port.to_be_bytes());
    tcp.extend(segment.dst.port.to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.to_be_bytes());
    let words = (5 + options.len() / 4) as u16;
    tcp.extend((words << 12 | segment.flags & 0x1ff).to_be_bytes());
    tcp.extend(segment.window.to_be_bytes());
    tcp.extend([0, 0]);
    tcp.extend(segment.urgent.to_be_bytes());
    tcp.extend(options);
    tcp.resize(tcp.len() + segment.len as usize, b'x');
    let check = fold(sum(&tcp, pseudo(v6, TCP, tcp.len())));
    tcp[16..18].copy_from_slice(&check.to_be_bytes());
    ip(v6, false, TCP, segment.dscp << 2 | segment.ecn, &tcp)
}

/// An ICMP message to the kernel about one of its segments.
pub(super) fn icmp(about: &IcmpAbout, v6: bool) -> Vec<u8> {
    let (kind, code, word) = match about.message {
        IcmpMessage::TooBig(mtu) if v6 => (2, 0, mtu),
        IcmpMessage::TooBig(mtu) => (3, 4, mtu & 0xffff),
        IcmpMessage::Unreachable { kind, code, .. } | IcmpMessage::Ignored(kind, code) => {
            (kind, code, 0)
        }
    };
    let mut quoted = Vec::new();
    quoted.extend(about.local.port.to_be_bytes());
    quoted.extend(about.remote.port.to_be_bytes());
    quoted.extend(about.seq.to_be_bytes());
    quoted.extend([0; 12]);
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(ip(v6, true, TCP, 0, &quoted));
    let protocol = if v6 { 58 } else { 1 };
    let start = if v6 { pseudo(v6, protocol, message.len()) } else { 0 };
    let check = fold(sum(&message, start));
    message[2..4].copy_from_slice(&check.to_be_bytes());
    ip(v6, false, protocol, 0, &message)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A segment that the kernel sent; `gso`: payload of each packet of a burst. `None`: not TCP.
pub(super) fn segment(packet: &[u8], gso: u32) -> Option<Segment> {
    let version = packet.first()? >> 4;
    let (class, header, label) = match version {
        4 if packet.get(9) == Some(&TCP) => (*packet.get(1)?, usize::from(packet[0] & 15) * 4, 0),
        6 if packet.get(6) == Some(&TCP) => {
            let first = word(packet, 0)?;
            ((first >> 20) as u8, 40, first & 0xf_ffff)
        }
        _ => return None,
    };
    let tcp = packet.get(header..)?;
    let place = |host, at| Some(Place { host, port: half(tcp, at)? });
    let bits = half(tcp, 12)?;
    let length = usize::from(bits >> 12) * 4;
    let payload = tcp.len().checked_sub(length)? as u32;
    Some(Segment {
        src: place(LOCAL, 0)?,
        dst: place(REMOTE, 2)?,
        seq: word(tcp, 4)?,
        ack: word(tcp, 8)?,
        flags: bits & 0x1ff,
        window: half(tcp, 14)?,
        urgent: half(tcp, 18)?,
        options: parse_options(tcp.get(20..length)?),
        len: payload,
        dscp: class >> 2,
        ecn: class & 3,
        gso: if gso < payload { gso } else { 0 },
        flow_label: label,
        ttl: *packet.get(if version == 4 { 8 } else { 7 })?,
        ..Segment::default()
    })
}

fn parse_options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut all = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind < 2 {
            all.push(if kind == 0 { TcpOption::End } else { TcpOption::Nop });
            bytes = &bytes[1..];
            continue;
        }
        let length = usize::from(bytes.get(1).copied().unwrap_or(0));
        let Some(content) = bytes.get(2..length.max(2)) else { return all };
        let option = match (kind, content.len()) {
            (2, 2) => half(content, 0).map(TcpOption::Mss),
            (3, 1) => Some(TcpOption::Scale(content[0])),
            (4, 0) => Some(TcpOption::SackOk),
            (5, _) => {
                let edge = |at: &[u8]| word(at, 0).unwrap_or(0);
                let blocks = content.chunks_exact(8).map(|c| (edge(c), edge(&c[4..])));
                Some(TcpOption::Sack(blocks.collect()))
            }
            (8, 8) => word(content, 0).zip(word(content, 4)).map(|(v, e)| TcpOption::Stamp(v, e)),
            (34, _) => Some(TcpOption::FastOpen(content.to_vec(), false)),
            (254, 2..) if content[..2] == [0xf9, 0x89] => {
                Some(TcpOption::FastOpen(content[2..].to_vec(), true))
            }
            (172 | 174, _) => Some(accurate(kind, content)),
            _ => None,
        };
        all.push(option.unwrap_or_else(|| TcpOption::Other(kind, content.to_vec())));
        bytes = bytes.get(length.max(2)..).unwrap_or(&[]);
    }
    all
}

fn accurate(kind: u8, content: &[u8]) -> TcpOption {
    let mut fields = content.chunks_exact(3).map(|c| u32::from_be_bytes([0, c[0], c[1], c[2]]));
    let (first, ceb, last) = (fields.next(), fields.next(), fields.next());
    let order = u8::from(kind == 174);
    let (e0b, e1b) = if order == 0 { (first, last) } else { (last, first) };
    TcpOption::AccEcn(AccEcn { order, e0b, ceb, e1b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_the_same_after_both_ways_in_both_versions() {
        let segment_out = Segment {
            src: Place { host: REMOTE, port: 50_001 },
            dst: Place { host: LOCAL, port: 8080 },
            seq: 7,
            ack: 0xffff_ff00,
            flags: 0x118,
            window: 500,
            options: vec![
                TcpOption::Mss(1000),
                TcpOption::SackOk,
                TcpOption::Stamp(1, 2),
                TcpOption::Nop,
                TcpOption::Scale(7),
                TcpOption::Sack(vec![(1, 2)]),
                TcpOption::Nop,
                TcpOption::Nop,
            ],
            len: 11,
            dscp: 5,
            ttl: 64,
            ecn: 3,
            ..Segment::default()
        };
        for v6 in [false, true] {
            let bytes = packet(&segment_out, v6);
            let back = segment(&bytes, 0).expect("TCP");
            let swapped = Segment {
                src: Place { host: LOCAL, ..segment_out.src },
                dst: Place { host: REMOTE, ..segment_out.dst },
                ..segment_out.clone()
            };
            assert_eq!(back, swapped, "IPv6: {v6}");
            // The sum over a packet with its checksum is 0 (RFC 1071).
            let header = if v6 { 40 } else { 20 };
            let tcp = &bytes[header..];
            assert_eq!(fold(sum(tcp, pseudo(v6, TCP, tcp.len()))), 0, "IPv6: {v6}");
        }
    }
}
