//! Goal: segments whose payload exists survive the way to bytes and back over both IPs, and what routers
//! report about them is understood.

use std::net::{IpAddr, SocketAddr};

use acklab_core::contract::attack_tcp_wire;
use acklab_core::packet::Ecn;
use acklab_core::segment::{AckRequest, Flags, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::wire::checksum::Checksum;
use acklab_core::wire::{
    IcmpReport, ParseError, TcpPacket, Trouble, emit_ip, emit_tcp, parse_icmp, parse_tcp,
    transport_checksum,
};
use proptest::prelude::*;

fn ends(v6: bool, ports: (u16, u16)) -> (SocketAddr, SocketAddr) {
    let address =
        |text: &str, port| SocketAddr::new(text.parse::<IpAddr>().expect("an address"), port);
    if v6 {
        (address("fd78::2", ports.0), address("2001:db8:1:2:3:4:5:6", ports.1))
    } else {
        (address("10.78.0.2", ports.0), address("192.0.2.200", ports.1))
    }
}

fn data(seq: u32, stamp: Option<(u32, u32)>, len: usize) -> TcpRepr {
    TcpRepr {
        seq: Seq(seq),
        ack: Seq(77),
        flags: Flags::ACK.with(Flags::PSH),
        window: 500,
        options: TcpOptions {
            timestamp: stamp.map(|(value, echo)| Timestamp { value, echo }),
            ..TcpOptions::default()
        },
        payload_len: len as u32,
    }
}

proptest! {
    #[test]
    fn a_payload_arrives_as_it_was_sent_and_a_flipped_bit_of_it_is_noticed(
        v6 in any::<bool>(),
        ports in any::<(u16, u16)>(),
        seq in any::<u32>(),
        stamp in any::<Option<(u32, u32)>>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
        cut in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
    ) {
        let (source, destination) = ends(v6, ports);
        let segment = data(seq, stamp, bytes.len());
        let halves = bytes.split_at(cut.index(bytes.len() + 1));
        let mut packet = Vec::new();
        let ecn = Ecn::Ect0;
        emit_tcp((source, destination), ecn, 9, &segment, [halves.0, halves.1], &mut packet);
        // Padding behind the packet is none of it.
        let mut padded = packet.clone();
        padded.extend([0; 3]);
        let expect = TcpPacket { source, destination, ecn, segment, payload: &bytes };
        prop_assert_eq!(parse_tcp(&padded), Ok(expect));
        let transport = if v6 { 40 } else { 20 };
        let bit = transport * 8 + place.index((packet.len() - transport) * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(parse_tcp(&packet), Err(ParseError::Checksum));
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>()) {
        if let Some(first) = bytes.first_mut() {
            *first = if v6 { 0x60 } else { 0x45 };
        }
        let _ = (parse_tcp(&bytes), parse_icmp(&bytes));
    }

    #[test]
    fn what_is_read_of_any_options_is_read_again_from_what_is_written(
        head in proptest::collection::vec(any::<u8>(), 12),
        options in proptest::collection::vec(
            prop_oneof![
                Just(vec![1]),
                any::<u8>().prop_map(|r| vec![254, 5, 0, 0xac, r]),
                Just(vec![254, 4, 0, 0xac]),
                any::<u8>().prop_map(|r| vec![253, 5, 0x56, 0x90, r]),
                Just(vec![253, 4, 0x56, 0x90]),
                any::<[u8; 8]>().prop_map(|stamp| [&[8, 10], &stamp[..]].concat()),
                (0_u8..3, any::<[u8; 16]>()).prop_map(|(n, b)| [&[5, 2 + 8 * n][..], &b[..8 * usize::from(n)]].concat()),
                any::<[u8; 3]>().prop_map(|bytes| bytes.to_vec()),
            ],
            0..6,
        ),
        payload in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut options = options.concat();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 1);
        let offset = (((20 + options.len()) / 4) << 4) as u8;
        let segment = [&head[..], &[offset, head[3], 1, 2, 0, 0, 0, 0], &options, &payload].concat();
        attack_tcp_wire(&segment);
    }

    #[test]
    fn a_quoted_segment_however_short_never_panics(
        quote in proptest::collection::vec(any::<u8>(), 0..100),
        kind in 0_u8..5,
        v6 in any::<bool>(),
    ) {
        let _ = parse_icmp(&report(v6, [kind, 4, 0, 0, 0, 0, 0, 0], &quote));
    }
}

/// An ICMP message of a router, with its checksum.
fn report(v6: bool, mut head: [u8; 8], quote: &[u8]) -> Vec<u8> {
    let (receiver, router) = ends(v6, (0, 0));
    let ends = (router.ip(), receiver.ip());
    let protocol = if v6 { 58 } else { 1 };
    let body = [&head[..], quote].concat();
    let sum = if v6 {
        transport_checksum(ends, protocol, &body)
    } else {
        Checksum::default().sum(&body).finish()
    };
    head[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = Vec::new();
    emit_ip(ends, Ecn::NotEct, protocol, 0, 8 + quote.len(), &mut packet);
    packet.extend(head);
    packet.extend(quote);
    packet
}

#[test]
fn a_report_says_which_segment_was_in_trouble_and_why() {
    let check = |v6, head, trouble| {
        let (source, destination) = ends(v6, (40_000, 80));
        let segment = data(123_456, None, 1000);
        let mut sent = Vec::new();
        emit_tcp((source, destination), Ecn::NotEct, 0, &segment, [&[7; 1000], &[]], &mut sent);
        // RFC 792: the header and eight bytes.
        let quote = &sent[..if v6 { 48 } else { 28 }];
        let mut bytes = report(v6, head, quote);
        let expect = IcmpReport { source, destination, seq: Seq(123_456), trouble };
        assert_eq!(parse_icmp(&bytes), Some(expect));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(parse_icmp(&bytes), None);
    };
    check(false, [3, 4, 0, 0, 0, 0, 0x05, 0x14], Trouble::TooBig { mtu: 1300 });
    check(false, [3, 1, 0, 0, 0, 0, 0, 0], Trouble::Unreachable { kind: 3, code: 1 });
    check(true, [2, 0, 0, 0, 0, 0, 0x05, 0x14], Trouble::TooBig { mtu: 1300 });
    check(true, [1, 3, 0, 0, 0, 0, 0, 0], Trouble::Unreachable { kind: 1, code: 3 });
}

#[test]
fn other_messages_are_no_reports() {
    // An echo request, and a report about a datagram of another protocol.
    assert_eq!(parse_icmp(&report(false, [8, 0, 0, 0, 0, 1, 0, 1], &[0; 28])), None);
    let mut quote = [0; 28];
    (quote[0], quote[9]) = (0x45, 17);
    assert_eq!(parse_icmp(&report(false, [3, 4, 0, 0, 0, 0, 5, 20], &quote)), None);
}

#[test]
fn requests_for_acks_have_the_bytes_of_their_drafts() {
    let options = |request| {
        let options = TcpOptions { ack_request: Some(request), ..TcpOptions::default() };
        let segment = TcpRepr { options, ..TcpRepr::default() };
        let (source, destination) = ends(false, (1, 2));
        let mut bytes = Vec::new();
        emit_tcp((source, destination), Ecn::NotEct, 0, &segment, [&[], &[]], &mut bytes);
        bytes.split_off(40)
    };
    assert_eq!(options(AckRequest::TarrCapable), [0xfe, 4, 0, 0xac]);
    assert_eq!(options(AckRequest::Tarr(4)), [1, 1, 1, 0xfe, 5, 0, 0xac, 4]);
    assert_eq!(options(AckRequest::AckCcPermitted), [0xfd, 4, 0x56, 0x90]);
    assert_eq!(options(AckRequest::AckCc(200)), [1, 1, 1, 0xfd, 5, 0x56, 0x90, 200]);
}
