//! Every link type there and back, and headers that lie.

use acklab_core::segment::{SackBlock, SackBlocks, TcpOptions, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use proptest::prelude::*;

use super::made::{IP_ID, LINKS, v6_address};
use super::*;
use crate::segment::{Endpoint, Flags, SeenOptions, Timestamp};

fn segment(payload_len: u32) -> TcpRepr {
    TcpRepr {
        seq: Seq(0xffff_fff0),
        ack: Seq(12),
        flags: Flags::ACK.with(Flags::PSH),
        window: 512,
        options: TcpOptions::default(),
        payload_len,
    }
}

fn made(link: LinkType, v6: bool, segment: TcpRepr) -> Vec<u8> {
    super::made::frame(link.0, v6, false, segment)
}

fn frame(link: LinkType, bytes: &[u8], original_len: u32) -> Frame<'_> {
    Frame { number: 7, time: Time::from_nanos(1_000), link, original_len, bytes }
}

/// What the dissector should find in a frame that ends with the segment's payload.
fn expected<'a>(bytes: &'a [u8], v6: bool, sent: &TcpRepr) -> Segment<'a> {
    let end = |host: u16, port| Endpoint {
        addr: if v6 { v6_address(host).into() } else { [192, 0, 2, host as u8].into() },
        port,
    };
    Segment {
        frame: 7,
        time: Time::from_nanos(1_000),
        src: end(1, 40_000),
        dst: end(2, 502),
        seq: sent.seq.0,
        ack: sent.ack.0,
        flags: sent.flags,
        window: sent.window,
        options: SeenOptions {
            mss: sent.options.mss,
            window_scale: sent.options.window_scale,
            sack_permitted: sent.options.sack_permitted,
            sack_blocks: sent.options.sack.as_slice().len() as u8,
            timestamp: sent.options.timestamp,
            cut: false,
        },
        payload_len: sent.payload_len,
        payload: &bytes[bytes.len() - sent.payload_len as usize..],
        ttl: 64,
        ip_id: if v6 { 0 } else { IP_ID },
    }
}

fn any_timestamp() -> impl Strategy<Value = Option<Timestamp>> {
    any::<Option<[u32; 2]>>().prop_map(|t| t.map(|[value, echo]| Timestamp { value, echo }))
}

fn any_tcp_options() -> impl Strategy<Value = TcpOptions> {
    let syn = (any::<u16>(), 0_u8..15, any::<bool>(), any_timestamp()).prop_map(
        |(mss, scale, sack_permitted, timestamp)| TcpOptions {
            mss: Some(mss),
            window_scale: Some(scale),
            sack_permitted,
            timestamp,
            ..TcpOptions::default()
        },
    );
    let blocks = prop::collection::vec(any::<[u32; 2]>(), 0..4);
    let data = (any_timestamp(), blocks).prop_map(|(timestamp, blocks)| {
        let mut sack = SackBlocks::default();
        for [left, right] in blocks {
            sack.push(SackBlock { left: Seq(left), right: Seq(right) });
        }
        TcpOptions { timestamp, sack, ..TcpOptions::default() }
    });
    prop_oneof![syn, data]
}

proptest! {
    #[test]
    fn a_segment_survives_every_link_type(
        link in prop::sample::select(&LINKS[..]),
        v6 in any::<bool>(),
        payload_len in 0_u32..100,
        options in any_tcp_options(),
        padding in 0_usize..7,
    ) {
        let link = LinkType(link);
        let v6 = (v6 || link == LinkType::IPV6) && link != LinkType::IPV4;
        let sent = TcpRepr { options, ..segment(payload_len) };
        let bytes = made(link, v6, sent);
        // Padding is not payload.
        let padded = [&bytes[..], &vec![0; padding]].concat();
        let found = dissect(&frame(link, &padded, padded.len() as u32)).unwrap();
        prop_assert!(!found.length_lies);
        let expected = format!("{:?}", expected(&bytes, v6, &sent));
        prop_assert_eq!(format!("{:?}", found.segment), expected);
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
        let mut sent = segment(32);
        sent.options.timestamp = Some(Timestamp { value: 1, echo: 2 });
        let bytes = made(LinkType::ETHERNET, false, sent);
        match dissect(&frame(LinkType::ETHERNET, &bytes[..cut], bytes.len() as u32)) {
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
    let mut bytes = made(LinkType::ETHERNET, false, segment(20));
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

    let extended = |next: u8, header: &[u8]| {
        let mut bytes = made(LinkType::RAW, true, segment(20));
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
    for v6 in [false, true] {
        let mut bytes = made(LinkType::ETHERNET, v6, segment(70_000));
        let wire_len = bytes.len() as u32;
        // Before segmentation offload the length is 0, as over IPv6 it is here.
        if !v6 {
            bytes[16..18].fill(0);
        }
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
    assert_eq!(with_options([1, 1, 1, 1, 1, 1, 1, 3]), SeenOptions::default());
    assert_eq!(with_options([8, 10, 0, 0, 0, 0, 0, 0]), SeenOptions::default());
    assert_eq!(with_options([5, 255, 0, 0, 0, 0, 0, 0]), SeenOptions::default());
}
