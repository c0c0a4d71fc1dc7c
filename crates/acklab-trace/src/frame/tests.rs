//! Every link type there and back, and headers that lie.

use std::net::IpAddr;

use acklab_core::time::Time;
use proptest::prelude::*;

use super::*;
use crate::segment::{Endpoint, Flags, Options};

const LINKS: [u16; 11] = [0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276];

fn segment(payload: &[u8]) -> Segment<'_> {
    let end = |last, port| Endpoint { addr: IpAddr::from([192, 0, 2, last]), port };
    Segment {
        frame: 7,
        time: Time::from_nanos(1_000),
        src: end(1, 40_000),
        dst: end(2, 502),
        seq: 0xffff_fff0,
        ack: 12,
        flags: Flags(Flags::ACK | Flags::PSH),
        window: 512,
        options: Options::default(),
        payload_len: payload.len() as u32,
        payload,
        ttl: 64,
        ip_id: 99,
    }
}

fn to_v6(segment: &mut Segment<'_>) {
    segment.src.addr = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
    segment.dst.addr = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2]);
    segment.ip_id = 0;
}

fn frame(link: LinkType, bytes: &[u8], original_len: u32) -> Frame<'_> {
    Frame { number: 7, time: Time::from_nanos(1_000), link, original_len, bytes }
}

fn same(a: &Segment<'_>, b: &Segment<'_>) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn any_tcp_options() -> impl Strategy<Value = Options> {
    let syn = (any::<u16>(), 0_u8..15, any::<bool>(), any::<Option<(u32, u32)>>()).prop_map(
        |(mss, scale, sack_permitted, timestamp)| Options {
            mss: Some(mss),
            window_scale: Some(scale),
            sack_permitted,
            timestamp,
            ..Options::default()
        },
    );
    let data = (any::<Option<(u32, u32)>>(), any::<Option<(u32, u32)>>(), 1_u8..3).prop_map(
        |(timestamp, sack_first, blocks)| Options {
            timestamp,
            sack_first,
            sack_blocks: if sack_first.is_some() { blocks } else { 0 },
            ..Options::default()
        },
    );
    prop_oneof![syn, data]
}

proptest! {
    #[test]
    fn a_segment_survives_every_link_type(
        link in prop::sample::select(&LINKS[..]),
        v6 in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        options in any_tcp_options(),
        padding in 0_usize..7,
    ) {
        let link = LinkType(link);
        let mut sent = segment(&payload);
        sent.options = options;
        if (v6 || link == LinkType::IPV6) && link != LinkType::IPV4 {
            to_v6(&mut sent);
        }
        let mut bytes = Vec::new();
        let wire_len = encode(link, &sent, &mut bytes);
        prop_assert_eq!(wire_len as usize, bytes.len());
        // Padding is not payload.
        bytes.resize(bytes.len() + padding, 0);
        let found = dissect(&frame(link, &bytes, bytes.len() as u32)).unwrap();
        prop_assert!(!found.length_lies);
        prop_assert!(same(&found.segment, &sent), "{:?} is not {:?}", found.segment, sent);
    }

    #[test]
    fn any_bytes_are_dissected_without_panic(
        link in prop::sample::select(&LINKS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        original_len in any::<u32>(),
    ) {
        let _ = dissect(&frame(LinkType(link), &bytes, original_len));
    }

    #[test]
    fn a_frame_snapped_anywhere_keeps_its_payload_length_or_is_counted(cut in 0_usize..98) {
        let payload = [0x5a; 32];
        let mut sent = segment(&payload);
        sent.options.timestamp = Some((1, 2));
        let mut bytes = Vec::new();
        let wire_len = encode(LinkType::ETHERNET, &sent, &mut bytes);
        match dissect(&frame(LinkType::ETHERNET, &bytes[..cut], wire_len)) {
            Ok(found) => {
                prop_assert!(cut >= 54);
                prop_assert_eq!(found.segment.payload_len, 32);
                prop_assert_eq!(found.segment.payload.len(), cut.saturating_sub(66));
            }
            Err(skip) => prop_assert!(cut < 54 && skip == Skip::Snapped),
        }
    }
}

/// An Ethernet frame with a 20-byte payload, changed by `change`.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(LinkType::ETHERNET, &segment(&[0x5a; 20]), &mut bytes);
    change(&mut bytes);
    bytes
}

#[test]
fn headers_that_lie_are_found_out() {
    let check = |what: &str, expect: Result<(u32, bool), Skip>, change: fn(&mut Vec<u8>)| {
        let bytes = changed(change);
        let found = dissect(&frame(LinkType::ETHERNET, &bytes, bytes.len() as u32));
        let found = found.map(|d| (d.segment.payload_len, d.length_lies));
        assert_eq!(found, expect, "{what}");
    };
    check("nothing", Ok((20, false)), |_| {});
    check("total length 0, as before TSO", Ok((20, false)), |b| b[16..18].fill(0));
    check("total length beyond the frame", Ok((20, true)), |b| b[16..18].fill(0xff));
    check("total length within the header", Ok((20, true)), |b| b[17] = 19);
    check("total length within TCP's", Err(Skip::Malformed), |b| b[17] = 30);
    check("IP header length 4", Err(Skip::Malformed), |b| b[14] = 0x41);
    check("IP version 5", Err(Skip::Malformed), |b| b[14] = 0x55);
    check("TCP header length 0", Err(Skip::Malformed), |b| b[46] = 0);
    check("TCP header beyond the segment", Err(Skip::Malformed), |b| b[46] = 0xf0);
    check("UDP", Err(Skip::NotTcp), |b| b[23] = 17);
    check("ARP", Err(Skip::NotIp), |b| b[13] = 6);
    check("802.3 length", Err(Skip::NotIp), |b| b[12..14].copy_from_slice(&[0, 60]));
    check("first fragment", Ok((20, false)), |b| b[20] = 0x20);
    check("later fragment", Err(Skip::Fragment), |b| b[21] = 5);
}

#[test]
fn tags_tunnels_and_extension_headers_are_followed() {
    let dissect_eth = |bytes: &[u8]| {
        dissect(&frame(LinkType::ETHERNET, bytes, bytes.len() as u32))
            .map(|d| (d.segment.payload_len, d.segment.src.port))
    };
    let insert = |at: usize, what: &[u8]| {
        let what = what.to_vec();
        changed(move |b| drop(b.splice(at..at, what)))
    };
    assert_eq!(dissect_eth(&insert(12, &[0x81, 0, 0, 5])), Ok((20, 40_000)));
    let qinq = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 5];
    assert_eq!(dissect_eth(&insert(12, &qinq)), Ok((20, 40_000)));
    assert_eq!(dissect_eth(&insert(12, &[0x81, 0, 0, 5].repeat(6))), Err(Skip::NotIp));
    let mut pppoe = insert(14, &[0x11, 0, 0, 1, 0, 62, 0, 0x21]);
    pppoe[12..14].copy_from_slice(&[0x88, 0x64]);
    assert_eq!(dissect_eth(&pppoe), Ok((20, 40_000)));

    let mut sent = segment(&[0x5a; 20]);
    to_v6(&mut sent);
    let extended = |next: u8, header: &[u8]| {
        let mut bytes = Vec::new();
        encode(LinkType::RAW, &sent, &mut bytes);
        bytes[6] = next;
        bytes[5] += header.len() as u8;
        bytes.splice(40..40, header.iter().copied());
        let len = bytes.len() as u32;
        dissect(&frame(LinkType::RAW, &bytes, len)).map(|d| d.segment.payload_len)
    };
    assert_eq!(extended(0, &[6, 0, 0, 0, 0, 0, 0, 0]), Ok(20));
    assert_eq!(extended(60, &[43, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]), Ok(20));
    assert_eq!(extended(51, &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]), Ok(20));
    assert_eq!(extended(44, &[6, 0, 0, 1, 0, 0, 0, 9]), Ok(20));
    assert_eq!(extended(44, &[6, 0, 0, 8, 0, 0, 0, 9]), Err(Skip::Fragment));
    assert_eq!(extended(0, &[17, 0, 0, 0, 0, 0, 0, 0]), Err(Skip::NotTcp));
    assert_eq!(extended(0, &[6, 99, 0, 0, 0, 0, 0, 0]), Err(Skip::Snapped));
}

#[test]
fn a_super_frame_beyond_the_ip_length_counts_whole() {
    let payload = vec![0x5a; 70_000];
    let mut bytes = Vec::new();
    for v6 in [false, true] {
        let mut sent = segment(&payload);
        if v6 {
            to_v6(&mut sent);
        }
        bytes.clear();
        let wire_len = encode(LinkType::ETHERNET, &sent, &mut bytes);
        let found = dissect(&frame(LinkType::ETHERNET, &bytes[..96], wire_len)).unwrap();
        assert_eq!((found.segment.payload_len, found.length_lies), (70_000, false));
    }
}

#[test]
fn malformed_options_end_the_list_and_nothing_else() {
    let with_options = |options: [u8; 8]| {
        let bytes = changed(|b| {
            b[17] += 8;
            b[46] = 0x70;
            drop(b.splice(54..54, options));
        });
        let found = dissect(&frame(LinkType::ETHERNET, &bytes, bytes.len() as u32)).unwrap();
        assert_eq!(found.segment.payload_len, 20);
        found.segment.options
    };
    assert_eq!(with_options([2, 4, 5, 0xb4, 3, 3, 7, 0]).window_scale, Some(7));
    assert_eq!(with_options([2, 4, 5, 0xb4, 3, 0, 7, 0]).mss, Some(1_460));
    assert_eq!(with_options([1, 1, 1, 1, 1, 1, 1, 3]), Options::default());
    assert_eq!(with_options([8, 10, 0, 0, 0, 0, 0, 0]), Options::default());
    assert_eq!(with_options([5, 255, 0, 0, 0, 0, 0, 0]), Options::default());
}
