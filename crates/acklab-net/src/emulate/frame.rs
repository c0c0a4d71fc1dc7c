//! What the emulator reads in a real IP packet, and the two things it writes there.
//!
//! Read: length, ECN, addresses, protocol and ports (IPv4, RFC 791; ports for TCP and UDP), which is what
//! a queueing discipline looks at. Written: the ECN field with the header checksum kept right
//! (RFC 1624 equation 3), and one flipped bit. IPv6 packets are not looked at: the emulated network has
//! none.

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};

/// Where the second byte (DSCP and ECN) is.
const TOS: usize = 1;
/// Where the header checksum is.
const CHECKSUM: usize = 10;
/// TCP and UDP, which have ports in the same place.
const WITH_PORTS: [u8; 2] = [6, 17];

/// The packet of virtual time that stands for `frame`; `words` names it. `None` for what is no IPv4.
///
/// A discipline sees a datagram of the same size. Hosts are the last two bytes of their addresses, and a
/// packet without ports has its protocol for one, so that fair queueing keeps the flows apart.
pub(super) fn describe(frame: &[u8], words: [u64; 2]) -> Option<Packet> {
    let header = frame.get(..Packet::IPV4_HEADER as usize)?;
    if header[0] >> 4 != 4 {
        return None;
    }
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let protocol = header[9];
    let transport = usize::from(header[0] & 0xf) * 4;
    let later_fragment = word(6)? & 0x1fff != 0;
    let port = |at: usize| {
        let known = WITH_PORTS.contains(&protocol) && !later_fragment;
        known.then(|| word(transport + at)).flatten().unwrap_or(u16::from(protocol))
    };
    let headers = Packet::IPV4_HEADER + Packet::UDP_HEADER;
    let len = (frame.len() as u32).saturating_sub(headers);
    Some(Packet {
        src: Addr { node: NodeId(word(14)?), port: port(0) },
        dst: Addr { node: NodeId(word(18)?), port: port(2) },
        ecn: ecn_of(header[TOS]),
        returned: false,
        body: Body::Datagram { len, words },
    })
}

const fn ecn_of(tos: u8) -> Ecn {
    match tos & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Writes `ecn` into an IPv4 packet, where it is another one.
pub(super) fn set_ecn(frame: &mut [u8], ecn: Ecn) {
    if ecn_of(frame[TOS]) == ecn {
        return;
    }
    let bits = match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    let old = u16::from_be_bytes([frame[0], frame[TOS]]);
    frame[TOS] = frame[TOS] & !0b11 | bits;
    let new = u16::from_be_bytes([frame[0], frame[TOS]]);
    let checksum = u16::from_be_bytes([frame[CHECKSUM], frame[CHECKSUM + 1]]);
    // HC' = ~(~HC + ~m + m')
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Flips the bit number `choice` of the packet, counted around; behind the IP header where there is
/// anything behind it, so that the receiver's transport finds out.
pub(super) fn flip_bit(frame: &mut [u8], choice: u64) {
    let header = usize::from(frame[0] & 0xf) * 4;
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
    fn what_is_no_ipv4_and_what_is_cut_is_refused_or_has_no_ports() {
        assert_eq!(describe(&[0x60; 60], [0; 2]), None);
        for length in 0..20 {
            assert_eq!(describe(&udp()[..length], [0; 2]), None);
        }
        let cut = describe(&udp()[..21], [0; 2]).unwrap();
        assert_eq!((cut.src.port, cut.dst.port), (17, 17));
    }
}
