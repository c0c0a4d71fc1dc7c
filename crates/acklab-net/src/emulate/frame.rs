//! What the emulator reads in a real IP packet, and the two things it writes there.
//!
//! Read: length, ECN, addresses, protocol and ports (IPv4, RFC 791; IPv6, RFC 8200; ports for TCP and UDP),
//! which is what a queueing discipline looks at. Written: the ECN field, with IPv4's header checksum kept
//! right (RFC 1624 equation 3), and one flipped bit. What a kernel sends unasked over IPv6 (router
//! solicitations, multicast listener reports) does not belong to the traffic and is left out, since it would
//! draw from the link's randomness at odd times. IPv6 extension headers are not followed.

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};

/// Where the second byte is, which holds ECN.
const TOS: usize = 1;
/// Where IPv4's header checksum is.
const CHECKSUM: usize = 10;
/// Size of an IPv6 header (RFC 8200 section 3).
const IPV6_HEADER: usize = 40;
/// TCP and UDP, which have ports in the same place.
const WITH_PORTS: [u8; 2] = [6, 17];

/// The parts of a header that matter.
struct Header {
    protocol: u8,
    source: u16,
    destination: u16,
    /// Where the ports are, if there are any.
    transport: Option<usize>,
}

/// The packet of virtual time that stands for `frame`; `words` names it. `None` for what does not belong
/// to the traffic.
///
/// A discipline sees a datagram of the same size. Hosts are the last two bytes of their addresses, and a
/// packet without ports has its protocol for one, so that fair queueing keeps the flows apart.
pub(super) fn describe(frame: &[u8], words: [u64; 2]) -> Option<Packet> {
    let header = match frame.first()? >> 4 {
        4 => ipv4(frame)?,
        6 => ipv6(frame)?,
        _ => return None,
    };
    let with_ports = WITH_PORTS.contains(&header.protocol);
    let port = |at: usize| {
        let transport = header.transport.filter(|_| with_ports);
        let known = transport.and_then(|transport| word(frame, transport + at));
        known.unwrap_or(u16::from(header.protocol))
    };
    let headers = Packet::IPV4_HEADER + Packet::UDP_HEADER;
    let len = (frame.len() as u32).saturating_sub(headers);
    Some(Packet {
        src: Addr { node: NodeId(header.source), port: port(0) },
        dst: Addr { node: NodeId(header.destination), port: port(2) },
        ecn: ecn_of(frame),
        returned: false,
        body: Body::Datagram { len, words },
    })
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

fn ipv4(frame: &[u8]) -> Option<Header> {
    let later_fragment = word(frame, 6)? & 0x1fff != 0;
    Some(Header {
        protocol: *frame.get(9)?,
        source: word(frame, 14)?,
        destination: word(frame, 18)?,
        transport: (!later_fragment).then_some(header_length(frame)),
    })
}

fn ipv6(frame: &[u8]) -> Option<Header> {
    let (source, destination) = (frame.get(8..24)?, frame.get(24..IPV6_HEADER)?);
    let link_local = source[0] == 0xfe && source[1] & 0xc0 == 0x80;
    let multicast = destination[0] == 0xff;
    let unspecified = source.iter().all(|&byte| byte == 0);
    if link_local || multicast || unspecified {
        return None;
    }
    Some(Header {
        protocol: frame[6],
        source: word(frame, 22)?,
        destination: word(frame, 38)?,
        transport: Some(IPV6_HEADER),
    })
}

/// Bytes of the IP header of a packet that has been described.
fn header_length(frame: &[u8]) -> usize {
    if frame[0] >> 4 == 6 { IPV6_HEADER } else { usize::from(frame[0] & 0xf) * 4 }
}

/// How far left the ECN field is in the second byte: IPv6's traffic class is shifted by four bits.
fn ecn_shift(frame: &[u8]) -> u32 {
    if frame[0] >> 4 == 6 { 4 } else { 0 }
}

fn ecn_of(frame: &[u8]) -> Ecn {
    match frame[TOS] >> ecn_shift(frame) & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Writes `ecn` into a packet that has been described, where it is another one.
pub(super) fn set_ecn(frame: &mut [u8], ecn: Ecn) {
    if ecn_of(frame) == ecn {
        return;
    }
    let bits = match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    let old = u16::from_be_bytes([frame[0], frame[TOS]]);
    let shift = ecn_shift(frame);
    frame[TOS] = frame[TOS] & !(0b11 << shift) | bits << shift;
    if frame[0] >> 4 == 4 {
        let new = u16::from_be_bytes([frame[0], frame[TOS]]);
        let checksum = u16::from_be_bytes([frame[CHECKSUM], frame[CHECKSUM + 1]]);
        let renewed = renewed_checksum(checksum, old, new);
        frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&renewed.to_be_bytes());
    }
}

/// The checksum of a header in which `old` became `new`: HC' = ~(~HC + ~m + m').
fn renewed_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Flips the bit number `choice` of a packet that has been described, counted around; behind the IP header
/// where there is anything behind it, so that the receiver's transport finds out.
pub(super) fn flip_bit(frame: &mut [u8], choice: u64) {
    let header = header_length(frame);
    let from = if frame.len() > header { header } else { 0 };
    let bit = (choice % ((frame.len() - from) as u64 * 8)) as usize;
    frame[from + bit / 8] ^= 1 << (bit % 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet from 10.77.3.1:5000 to 10.77.3.2:7 with ECT(0) and a right checksum.
    fn udp() -> Vec<u8> {
        let mut frame =
            vec![0x45, 0x02, 0, 48, 1, 2, 0, 0, 64, 17, 0, 0, 10, 77, 3, 1, 10, 77, 3, 2];
        let sum = checksum(&frame);
        frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        frame.extend([5000u16, 7, 28, 0].iter().flat_map(|word| word.to_be_bytes()));
        frame.resize(48, 0xaa);
        frame
    }

    /// A UDP packet from fd77:0:0:3::1 port 5000 to fd77:0:0:3::2 port 7 with ECT(0).
    fn udp6() -> Vec<u8> {
        let mut frame = vec![0; IPV6_HEADER];
        (frame[0], frame[1], frame[6], frame[7]) = (0x60, 0x20, 17, 64);
        for (at, host) in [(8, 1), (24, 2)] {
            frame[at..at + 2].copy_from_slice(&[0xfd, 0x77]);
            (frame[at + 7], frame[at + 15]) = (3, host);
        }
        frame.extend([5000u16, 7, 28, 0].iter().flat_map(|word| word.to_be_bytes()));
        frame.resize(68, 0xaa);
        frame
    }

    /// RFC 791's checksum; 0 over a header that holds its own.
    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header[..20]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_packet_keeps_its_size_flow_and_ecn() {
        let packet = describe(&udp(), [7, 0]).unwrap();
        assert_eq!((packet.size(), packet.ecn), (48, Ecn::Ect0));
        assert_eq!((packet.src.port, packet.dst.port), (5000, 7));
        assert_eq!(packet.src.node, NodeId(3 << 8 | 1));
        assert_eq!(packet.body, Body::Datagram { len: 20, words: [7, 0] });
    }

    #[test]
    fn a_mark_leaves_the_header_checksum_right() {
        for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect1, Ecn::Ect0] {
            let mut frame = udp();
            set_ecn(&mut frame, ecn);
            assert_eq!(describe(&frame, [0; 2]).unwrap().ecn, ecn);
            assert_eq!(checksum(&frame), 0, "{ecn:?}");
        }
    }

    #[test]
    fn ipv6_keeps_its_size_flow_and_ecn_and_nothing_else_changes_with_a_mark() {
        let mut frame = udp6();
        let packet = describe(&frame, [0; 2]).unwrap();
        assert_eq!((packet.size(), packet.ecn), (68, Ecn::Ect0));
        assert_eq!((packet.src.port, packet.dst.port, packet.dst.node), (5000, 7, NodeId(2)));
        set_ecn(&mut frame, Ecn::Ce);
        assert_eq!(describe(&frame, [0; 2]).unwrap().ecn, Ecn::Ce);
        frame[1] = 0x20;
        assert_eq!(frame, udp6());
        flip_bit(&mut frame, 3);
        assert_eq!(frame[..40], udp6()[..40]);
    }

    #[test]
    fn what_a_kernel_says_to_its_neighbours_over_ipv6_is_no_traffic() {
        for (at, bytes) in [(8, [0xfe, 0x80]), (24, [0xff, 0x02])] {
            let mut frame = udp6();
            frame[at..at + 2].copy_from_slice(&bytes);
            assert_eq!(describe(&frame, [0; 2]), None);
        }
        let mut frame = udp6();
        frame[8..24].fill(0);
        assert_eq!(describe(&frame, [0; 2]), None);
    }

    #[test]
    fn one_bit_behind_the_header_is_flipped() {
        for choice in 0..500 {
            let mut frame = udp();
            flip_bit(&mut frame, choice);
            let differing: u32 =
                frame.iter().zip(udp()).map(|(new, old)| (new ^ old).count_ones()).sum();
            assert_eq!(differing, 1);
            assert_eq!(frame[..20], udp()[..20]);
        }
    }

    #[test]
    fn what_is_no_ip_and_what_is_cut_is_refused_or_has_no_ports() {
        assert_eq!(describe(&[0x50; 60], [0; 2]), None);
        assert_eq!(describe(&[], [0; 2]), None);
        for length in 0..40 {
            assert_eq!(describe(&udp6()[..length], [0; 2]), None);
        }
        for length in 0..20 {
            assert_eq!(describe(&udp()[..length], [0; 2]), None);
        }
        let cut = describe(&udp()[..21], [0; 2]).unwrap();
        assert_eq!((cut.src.port, cut.dst.port), (17, 17));
    }
}
