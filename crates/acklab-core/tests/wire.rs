//! Bytes and back.

use std::net::Ipv4Addr;

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{
    AckRequest, Flags, SackBlock, SackBlocks, TcpOptions, TcpRepr, Timestamp,
};
use acklab_core::seq::Seq;
use acklab_core::wire::{ParseError, emit_ipv4, parse_ipv4};
use proptest::prelude::*;

fn address(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (node.0 >> 8) as u8, node.0 as u8)
}

fn node(address: Ipv4Addr) -> NodeId {
    let [_, _, high, low] = address.octets();
    NodeId(u16::from_be_bytes([high, low]))
}

prop_compose! {
    fn options()(
        mss in any::<Option<u16>>(),
        window_scale in proptest::option::of(0_u8..15),
        sack_permitted in any::<bool>(),
        stamp in any::<Option<(u32, u32)>>(),
        blocks in proptest::collection::vec(any::<(u32, u32)>(), 0..4),
        syn in any::<bool>(),
        request in proptest::option::of((0..4_u8, any::<u8>())),
    ) -> (TcpOptions, bool) {
        // What stands beside each other on a real segment: a SYN's options, or SACK with a
        // timestamp; forty bytes in all.
        let mut sack = SackBlocks::default();
        for (left, right) in blocks.into_iter().filter(|_| !syn) {
            sack.push(SackBlock { left: Seq(left), right: Seq(right) });
        }
        let timestamp = stamp.map(|(value, echo)| Timestamp { value, echo });
        let options = TcpOptions {
            mss: mss.filter(|_| syn),
            window_scale: window_scale.filter(|_| syn),
            sack_permitted: sack_permitted && syn,
            sack,
            timestamp,
            ack_request: request.map(|(which, number)| match which {
                0 => AckRequest::TarrCapable,
                1 => AckRequest::Tarr(number & 0x7f),
                2 => AckRequest::AckCcPermitted,
                _ => AckRequest::AckCc(number),
            }).filter(|_| sack.as_slice().len() < 3),
        };
        (options, syn)
    }
}

prop_compose! {
    fn packet()(
        (options, syn) in options(),
        ports in any::<(u16, u16)>(),
        nodes in any::<(u16, u16)>(),
        (seq, ack, window) in any::<(u32, u32, u16)>(),
        ecn in prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)],
        payload_len in 0_u32..1500,
        datagram in any::<bool>(),
    ) -> Packet {
        let flags = if syn { Flags::SYN.with(Flags::ACK) } else { Flags::ACK.with(Flags::PSH) };
        let (seq, ack) = (Seq(seq), Seq(ack));
        let segment = TcpRepr { seq, ack, flags, window, options, payload_len };
        let body =
            if datagram { Body::Datagram { len: payload_len, words: [0; 2] } } else { Body::Tcp(segment) };
        let end = |node, port| Addr { node: NodeId(node), port };
        Packet { src: end(nodes.0, ports.0), dst: end(nodes.1, ports.1), ecn, returned: false, body }
    }
}

proptest! {
    #[test]
    fn what_is_emitted_parses_back(packet in packet(), identification in any::<u16>()) {
        let bytes = emit_ipv4(&packet, identification, address);
        prop_assert_eq!(bytes.len(), packet.size() as usize);
        prop_assert_eq!(parse_ipv4(&bytes, node), Ok(packet));
    }

    #[test]
    fn one_flipped_bit_is_noticed(packet in packet(), place in any::<prop::sample::Index>()) {
        let mut bytes = emit_ipv4(&packet, 1, address);
        let bit = place.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(parse_ipv4(&bytes, node) != Ok(packet));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_ipv4(&bytes, node);
    }
}

#[test]
fn a_segment_has_the_bytes_that_it_should() {
    let segment = TcpRepr {
        seq: Seq(1),
        ack: Seq(2),
        flags: Flags::ACK.with(Flags::PSH),
        window: 500,
        payload_len: 4,
        ..TcpRepr::default()
    };
    let end = |node, port| Addr { node: NodeId(node), port };
    let packet = Packet {
        src: end(1, 4000),
        dst: end(2, 80),
        ecn: Ecn::NotEct,
        returned: false,
        body: Body::Tcp(segment),
    };
    let bytes = emit_ipv4(&packet, 7, address);
    let expect = [
        0x45, 0, 0, 44, 0, 7, 0x40, 0, 64, 6, 0x26, 0xc3, 10, 0, 0, 1, 10, 0, 0, 2, //
        0x0f, 0xa0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0xf4, 0x25, 0x79, 0, 0, //
        b'1', b'2', b'3', b'4',
    ];
    assert_eq!(bytes, expect, "{bytes:02x?}");
}

#[test]
fn lies_are_named() {
    let packet = Packet {
        src: Addr::default(),
        dst: Addr::default(),
        ecn: Ecn::NotEct,
        returned: false,
        body: Body::Tcp(TcpRepr::default()),
    };
    let good = emit_ipv4(&packet, 0, address);
    let check = |at: usize, byte: u8, expect| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert_eq!(parse_ipv4(&bytes, node), Err(expect), "byte {at}");
    };
    check(0, 0x65, ParseError::Version);
    check(3, 200, ParseError::Truncated);
    check(8, 1, ParseError::Checksum);
    check(33, 0xff, ParseError::Checksum);
    assert_eq!(parse_ipv4(&good[..19], node), Err(ParseError::Truncated));
}

#[test]
fn the_options_of_a_syn_stand_in_the_order_of_linux() {
    // MSS 1460, SACK permitted with timestamps 1 and 0, window scale 7; what is missing leaves NOPs.
    let check = |sack_permitted, stamps: bool, expected: &[u8]| {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted,
            timestamp: stamps.then_some(Timestamp { value: 1, echo: 0 }),
            ..TcpOptions::default()
        };
        let body = Body::Tcp(TcpRepr { flags: Flags::SYN, options, ..TcpRepr::default() });
        let addr = Addr::default();
        let packet = Packet { src: addr, dst: addr, ecn: Ecn::NotEct, returned: false, body };
        assert_eq!(&emit_ipv4(&packet, 0, address)[40..], expected);
    };
    let (mss, scale) = ([2, 4, 5, 180], [1, 3, 3, 7]);
    let stamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
    check(true, true, &[&mss[..], &[4, 2], &stamps, &scale].concat());
    check(false, true, &[&mss[..], &[1, 1], &stamps, &scale].concat());
    check(true, false, &[&mss[..], &[1, 1, 4, 2], &scale].concat());
    check(false, false, &[mss, scale].concat());
}
