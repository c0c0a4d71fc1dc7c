//! Segments as the bytes of IP packets, and back.
//!
//! Places get their ports here; which number a host has is the caller's. Payload is `x` for every byte. Of extension
//! headers of IPv6 nothing is known: a packet that has one is no TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use acklab_host::datagram::Datagram;
use acklab_host::errno;
use acklab_host::segment::{AccEcn, Place, Segment, TcpOption};

use crate::world::{IcmpAbout, IcmpMessage, Quoted};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Where a packet comes from and where it goes; both have one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Its source.
    pub from: IpAddr,
    /// Its destination.
    pub to: IpAddr,
}

impl Ends {
    /// The way back.
    #[must_use]
    pub const fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for end in [self.from, self.to] {
            match end {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        bytes
    }
}

/// What an IP packet carries.
#[derive(Clone, Debug)]
pub enum Content {
    /// A segment.
    Segment(Segment),
    /// A datagram.
    Datagram(Datagram),
    /// An ICMP message about a packet of the ends of [`Packet`].
    Icmp(IcmpAbout),
}

/// An IP packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its ends; of ICMP those of the segment that it is about.
    pub ends: Ends,
    /// What it carries.
    pub content: Content,
}

/// Codes of IPv4's "unreachable" (RFC 792, RFC 1122 section 3.2.2.1): name, error, whether it ends a connection that opens.
pub(crate) const UNREACHABLE: [(&str, i32, bool); 16] = [
    ("net_unreachable", errno::ENETUNREACH, false),
    ("host_unreachable", errno::EHOSTUNREACH, false),
    ("protocol_unreachable", errno::ENOPROTOOPT, true),
    ("port_unreachable", errno::ECONNREFUSED, true),
    ("frag_needed", errno::EMSGSIZE, false),
    ("source_route_failed", errno::EOPNOTSUPP, false),
    ("net_unknown", errno::ENETUNREACH, true),
    ("host_unknown", errno::EHOSTDOWN, true),
    ("source_host_isolated", errno::ENONET, true),
    ("net_prohibited", errno::ENETUNREACH, true),
    ("host_prohibited", errno::EHOSTUNREACH, true),
    ("net_unreachable_for_tos", errno::ENETUNREACH, false),
    ("host_unreachable_for_tos", errno::EHOSTUNREACH, false),
    ("packet_filtered", errno::EHOSTUNREACH, true),
    ("precedence_violation", errno::EHOSTUNREACH, true),
    ("precedence_cutoff", errno::EHOSTUNREACH, true),
];
/// The same of IPv6 (RFC 4443 section 3.1).
pub(crate) const UNREACHABLE_V6: [(&str, i32, bool); 5] = [
    ("no_route", errno::ENETUNREACH, false),
    ("admin_prohibited", errno::EACCES, true),
    ("not_neighbour", errno::EHOSTUNREACH, false),
    ("address_unreachable", errno::EHOSTUNREACH, false),
    ("port_unreachable", errno::ECONNREFUSED, true),
];

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

/// The usual time to live.
const TTL: u8 = 64;

/// The IP packet of a payload; a time to live of 0 is the usual one.
fn ip(ends: Ends, protocol: u8, (class, ttl): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let ttl = if ttl == 0 { TTL } else { ttl };
    let mut packet = Vec::new();
    if ends.from.is_ipv6() {
        packet.extend((0x6000_0000 | u32::from(class) << 20).to_be_bytes());
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, ttl]);
        packet.extend(ends.bytes());
    } else {
        packet.extend([0x45, class]);
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 1, 0, 0, ttl, protocol, 0, 0]);
        packet.extend(ends.bytes());
        let check = fold(sum(&packet, 0));
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

/// The sum of the pseudo header.
fn pseudo(ends: Ends, protocol: u8, length: usize) -> u32 {
    sum(&ends.bytes(), u32::from(protocol) + length as u32)
}

/// A segment as an IP packet, of at most 65,515 bytes with its TCP header.
pub fn packet(segment: &Segment, ends: Ends) -> Vec<u8> {
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
    let check = fold(sum(&tcp, pseudo(ends, TCP, tcp.len())));
    tcp[16..18].copy_from_slice(&check.to_be_bytes());
    ip(ends, TCP, (segment.dscp << 2 | segment.ecn, segment.ttl), &tcp)
}

/// A datagram as an IP packet, of at most 65,507 bytes.
pub fn datagram(datagram: &Datagram, ends: Ends) -> Vec<u8> {
    let mut udp = udp_header(datagram.src.port, datagram.dst.port, datagram.len);
    udp.resize(udp.len() + datagram.len as usize, b'x');
    // RFC 768: a sum of 0 stands for none.
    let check = match fold(sum(&udp, pseudo(ends, UDP, udp.len()))) {
        0 => 0xffff,
        check => check,
    };
    udp[6..8].copy_from_slice(&check.to_be_bytes());
    ip(ends, UDP, (datagram.tos, datagram.ttl), &udp)
}

fn udp_header(from: u16, to: u16, len: u32) -> Vec<u8> {
    let length = (8 + len) as u16;
    [from, to, length, 0].into_iter().flat_map(u16::to_be_bytes).collect()
}

/// An ICMP message about a packet; `ends` are the message's.
pub fn icmp(about: &IcmpAbout, ends: Ends) -> Vec<u8> {
    let v6 = ends.from.is_ipv6();
    let (kind, code, word) = match about.message {
        IcmpMessage::TooBig(mtu) if v6 => (2, 0, mtu),
        IcmpMessage::TooBig(mtu) => (3, 4, mtu & 0xffff),
        IcmpMessage::Unreachable { kind, code, .. } | IcmpMessage::Ignored(kind, code) => {
            (kind, code, 0)
        }
    };
    let (from, to) = (about.local.port, about.remote.port);
    let (quoted_protocol, quoted) = match about.quoted {
        Quoted::Segment(seq) => {
            let mut tcp: Vec<u8> = [from, to].into_iter().flat_map(u16::to_be_bytes).collect();
            tcp.extend(seq.to_be_bytes());
            tcp.extend([0; 12]);
            (TCP, tcp)
        }
        Quoted::Datagram => (UDP, udp_header(from, to, 0)),
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(ip(ends.back(), quoted_protocol, (0, 0), &quoted));
    let protocol = if v6 { ICMP_V6 } else { ICMP };
    let start = if v6 { pseudo(ends, protocol, message.len()) } else { 0 };
    let check = fold(sum(&message, start));
    message[2..4].copy_from_slice(&check.to_be_bytes());
    ip(ends, protocol, (0, 0), &message)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// What the header of an IP packet says, and what stands behind it.
struct Header<'a> {
    ends: Ends,
    protocol: u8,
    class: u8,
    label: u32,
    ttl: u8,
    behind: &'a [u8],
}

fn header(packet: &[u8]) -> Option<Header<'_>> {
    match packet.first()? >> 4 {
        4 => {
            let quad = |at: usize| {
                let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
                Some(IpAddr::from(Ipv4Addr::from(bytes)))
            };
            let length = usize::from(packet[0] & 15) * 4;
            let end = usize::from(half(packet, 2)?).clamp(length, packet.len().max(length));
            Some(Header {
                ends: Ends { from: quad(12)?, to: quad(16)? },
                protocol: *packet.get(9)?,
                class: packet[1],
                label: 0,
                ttl: packet[8],
                behind: packet.get(length..end)?,
            })
        }
        6 => {
            let sixteen = |at: usize| {
                let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(IpAddr::from(Ipv6Addr::from(bytes)))
            };
            let first = word(packet, 0)?;
            let end = (40 + usize::from(half(packet, 4)?)).min(packet.len());
            Some(Header {
                ends: Ends { from: sixteen(8)?, to: sixteen(24)? },
                protocol: *packet.get(6)?,
                class: (first >> 20) as u8,
                label: first & 0xf_ffff,
                ttl: *packet.get(7)?,
                behind: packet.get(40..end)?,
            })
        }
        _ => None,
    }
}

/// Reads an IP packet; `gso`: payload of each packet of a burst. `None`: neither TCP nor UDP nor ICMP about them.
pub fn read(packet: &[u8], gso: u32) -> Option<Packet> {
    let header = header(packet)?;
    match header.protocol {
        TCP => {}
        UDP => return read_datagram(&header),
        _ => return read_icmp(&header),
    }
    let tcp = header.behind;
    let place = |at| Some(Place { host: 0, port: half(tcp, at)? });
    let bits = half(tcp, 12)?;
    let length = usize::from(bits >> 12) * 4;
    let payload = tcp.len().checked_sub(length)? as u32;
    let segment = Segment {
        src: place(0)?,
        dst: place(2)?,
        seq: word(tcp, 4)?,
        ack: word(tcp, 8)?,
        flags: bits & 0x1ff,
        window: half(tcp, 14)?,
        urgent: half(tcp, 18)?,
        options: parse_options(tcp.get(20..length)?),
        len: payload,
        dscp: header.class >> 2,
        ecn: header.class & 3,
        gso: if gso < payload { gso } else { 0 },
        flow_label: header.label,
        ttl: header.ttl,
        ..Segment::default()
    };
    Some(Packet { ends: header.ends, content: Content::Segment(segment) })
}

fn read_datagram(header: &Header<'_>) -> Option<Packet> {
    let place = |at| Some(Place { host: 0, port: half(header.behind, at)? });
    let datagram = Datagram {
        src: place(0)?,
        dst: place(2)?,
        len: header.behind.len().checked_sub(8)? as u32,
        tos: header.class,
        ttl: header.ttl,
    };
    Some(Packet { ends: header.ends, content: Content::Datagram(datagram) })
}

fn read_icmp(outer: &Header<'_>) -> Option<Packet> {
    let v6 = match outer.protocol {
        ICMP => false,
        ICMP_V6 => true,
        _ => return None,
    };
    let (kind, code) = (*outer.behind.first()?, *outer.behind.get(1)?);
    let quoted = header(outer.behind.get(8..)?)?;
    let about = match quoted.protocol {
        TCP => Quoted::Segment(word(quoted.behind, 4)?),
        UDP => Quoted::Datagram,
        _ => return None,
    };
    let place = |at| Some(Place { host: 0, port: half(quoted.behind, at)? });
    let codes: &[(&str, i32, bool)] = if v6 { &UNREACHABLE_V6 } else { &UNREACHABLE };
    let message = match (kind, codes.get(usize::from(code))) {
        (2, _) if v6 => IcmpMessage::TooBig(word(outer.behind, 4)?),
        (3, _) if !v6 && code == 4 => IcmpMessage::TooBig(u32::from(half(outer.behind, 6)?)),
        (1 | 3, Some(&(_, errno, hard))) if v6 == (kind == 1) => {
            IcmpMessage::Unreachable { errno, hard, kind, code }
        }
        _ => IcmpMessage::Ignored(kind, code),
    };
    let about = IcmpAbout { local: place(0)?, remote: place(2)?, quoted: about, message };
    Some(Packet { ends: quoted.ends, content: Content::Icmp(about) })
}

fn parse_options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut all = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind == 0 {
            all.push(TcpOption::End);
            return all;
        }
        if kind == 1 {
            all.push(TcpOption::Nop);
            bytes = &bytes[1..];
            continue;
        }
        let length = usize::from(bytes.get(1).copied().unwrap_or(0));
        // Behind an illegal length nothing can be read.
        let Some(content) = bytes.get(2..length) else { return all };
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
        bytes = &bytes[length..];
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

    fn both() -> [Ends; 2] {
        [("192.0.2.1", "192.168.0.1"), ("fd3d:fa7b:d17d::1", "fd3d:a0b:17d6::1")]
            .map(|(from, to)| Ends { from: from.parse().expect("IP"), to: to.parse().expect("IP") })
    }

    fn place(port: u16) -> Place {
        Place { host: 0, port }
    }

    #[test]
    fn a_segment_is_the_same_after_both_ways_in_both_versions() {
        let segment = Segment {
            src: place(50_001),
            dst: place(8080),
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
        for ends in both() {
            let bytes = packet(&segment, ends);
            let back = read(&bytes, 0).expect("TCP");
            assert_eq!(back.ends, ends);
            assert!(matches!(back.content, Content::Segment(s) if s == segment), "{ends:?}");
            // The sum over a packet with its checksum is 0 (RFC 1071).
            let tcp = header(&bytes).expect("IP").behind;
            assert_eq!(fold(sum(tcp, pseudo(ends, TCP, tcp.len()))), 0, "{ends:?}");
        }
    }

    #[test]
    fn options_end_at_the_end_of_the_list_and_at_a_length_that_is_illegal() {
        let mss = TcpOption::Mss(1460);
        for (bytes, read) in [
            (vec![2, 4, 5, 180, 0, 3, 3, 7], vec![mss.clone(), TcpOption::End]),
            (vec![2, 4, 5, 180, 3, 0, 3, 7], vec![mss.clone()]),
            (vec![2, 4, 5, 180, 3, 1, 3, 7], vec![mss.clone()]),
            (vec![2, 4, 5, 180, 3, 9, 3, 7], vec![mss.clone()]),
            (vec![2, 4, 5, 180, 3], vec![mss.clone()]),
            // One that is not known is passed over.
            (vec![77, 4, 1, 2, 2, 4, 5, 180], vec![TcpOption::Other(77, vec![1, 2]), mss.clone()]),
        ] {
            assert_eq!(parse_options(&bytes), read, "{bytes:?}");
        }
    }

    #[test]
    fn icmp_is_about_the_packet_that_it_quotes() {
        for ends in both() {
            let v6 = ends.from.is_ipv6();
            let refused = IcmpMessage::Unreachable {
                errno: errno::ECONNREFUSED,
                hard: true,
                kind: if v6 { 1 } else { 3 },
                code: if v6 { 4 } else { 3 },
            };
            let quotes = [Quoted::Segment(9), Quoted::Datagram];
            for (message, quoted) in [IcmpMessage::TooBig(1280), refused].into_iter().zip(quotes) {
                let about = IcmpAbout { local: place(80), remote: place(5), quoted, message };
                let back = read(&icmp(&about, ends), 0).expect("ICMP");
                assert_eq!(back.ends, ends.back());
                let Content::Icmp(got) = back.content else { panic!("ICMP") };
                let fields = |a: &IcmpAbout| (a.local, a.remote, a.quoted, a.message);
                assert_eq!(fields(&got), fields(&about));
            }
        }
    }

    #[test]
    fn a_datagram_is_the_same_after_both_ways_in_both_versions() {
        for ends in both() {
            for len in [0, 1, 1472] {
                let sent = Datagram { src: place(5), dst: place(80), len, tos: 8, ttl: 64 };
                let bytes = datagram(&sent, ends);
                let Some(Packet { content: Content::Datagram(got), .. }) = read(&bytes, 0) else {
                    panic!("UDP")
                };
                assert_eq!(got, sent);
                let udp = header(&bytes).expect("IP").behind;
                assert_eq!(fold(sum(udp, pseudo(ends, UDP, udp.len()))), 0, "{ends:?}");
            }
        }
    }
}
