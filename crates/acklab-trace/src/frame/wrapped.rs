//! Tunnels, tags and link types around one packet: the segment inside is found, whole and cut short.

use acklab_core::segment::{TcpOptions, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;

use super::*;
use crate::segment::Flags;

/// An IPv4 packet with 32 bytes of payload.
fn packet() -> Vec<u8> {
    let segment = TcpRepr {
        seq: Seq(77),
        ack: Seq(12),
        flags: Flags::ACK.with(Flags::PSH),
        window: 512,
        options: TcpOptions::default(),
        payload_len: 32,
    };
    super::made::frame(LinkType::RAW.0, false, false, segment)
}

fn found(link: LinkType, bytes: &[u8]) -> Result<(u32, u32, u16), Skip> {
    let time = Time::from_nanos(1);
    let frame = Frame { number: 1, time, link, original_len: bytes.len() as u32, bytes };
    dissect(&frame).map(|d| (d.segment.seq, d.segment.payload_len, d.segment.dst.port))
}

fn ethernet(rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], rest].concat()
}

/// An outer IPv4 header of this protocol, without checksum.
fn outer(protocol: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let header =
        [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2];
    ethernet(&[&[8, 0], &header[..], body].concat())
}

fn udp(port: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    outer(17, &[&[0x9c, 0x40, high, low, 0, 0, 0, 0], body].concat())
}

#[test]
fn what_tunnels_and_tags_carry_is_found() {
    let (ip, inner) = (packet(), ethernet(&[&[8, 0], &packet()[..]].concat()));
    let with = |head: &[u8], rest: &[u8]| [head, rest].concat();
    let label = [0, 0, 0x11, 64];
    let frames: Vec<(&str, Vec<u8>)> = vec![
        ("MPLS", ethernet(&with(&[0x88, 0x47, 0, 0, 0x10, 64], &with(&label, &ip)))),
        ("pseudowire", ethernet(&with(&[0x88, 0x47, 0, 0, 0x11, 64, 0, 0, 0, 0], &inner))),
        ("HSR", ethernet(&with(&[0x89, 0x2f, 0, 60, 0, 9, 8, 0], &ip))),
        ("SNAP", ethernet(&with(&[0, 80, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip))),
        ("IP in IP", outer(4, &ip)),
        ("IP in IP in IP", outer(4, &outer(4, &ip)[14..])),
        ("GRE", outer(47, &with(&[0, 0, 8, 0], &ip))),
        ("GRE, key, sequence", outer(47, &with(&[0x30, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 1], &ip))),
        ("GRE, Ethernet", outer(47, &with(&[0, 0, 0x65, 0x58], &inner))),
        ("ERSPAN I", outer(47, &with(&[0, 0, 0x88, 0xbe], &inner))),
        ("ERSPAN II", outer(47, &with(&[&[0x10, 0, 0x88, 0xbe][..], &[0; 12]].concat(), &inner))),
        ("ERSPAN III", outer(47, &with(&[&[0x10, 0, 0x22, 0xeb][..], &[0; 16]].concat(), &inner))),
        ("VXLAN", udp(4789, &with(&[8, 0, 0, 0, 0, 0, 5, 0], &inner))),
        ("Geneve", udp(6081, &with(&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 0, 0, 0, 0], &inner))),
        ("GTP-U", udp(2152, &with(&[0x30, 0xff, 0, 72, 0, 0, 0, 7], &ip))),
        (
            "GTP-U, extended",
            udp(2152, &with(&[0x34, 0xff, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0], &ip)),
        ),
    ];
    for (name, bytes) in &frames {
        assert_eq!(found(LinkType::ETHERNET, bytes), Ok((77, 32, 502)), "{name}");
        for cut in 0..bytes.len() {
            // Whatever is missing, nothing wrong is found, and nothing panics.
            if let Ok((seq, _, port)) = found(LinkType::ETHERNET, &bytes[..cut]) {
                assert_eq!((seq, port), (77, 502), "{name} cut at {cut}");
            }
        }
    }
}

#[test]
fn rare_link_types_are_understood() {
    let ip = packet();
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let wireless = [&[0x88, 1, 0, 0][..], &[2; 18], &[0; 4], &snap, &ip].concat();
    let frames = [
        (LinkType::PPP_HDLC, [&[0xff, 3, 0, 0x21][..], &ip].concat()),
        (LinkType::C_HDLC, [&[0x0f, 0, 8, 0][..], &ip].concat()),
        (LinkType::PPP_PPPD, [&[0, 3, 0, 0x21][..], &ip].concat()),
        (LinkType::IEEE_802_11, wireless.clone()),
        (LinkType::RADIOTAP, [&[0, 0, 8, 0, 0, 0, 0, 0][..], &wireless].concat()),
        (LinkType::PPI, [&[0, 0, 8, 0, 105, 0, 0, 0][..], &wireless].concat()),
        (LinkType::PFLOG, [&[61][..], &[0; 63], &ip].concat()),
        (LinkType::NFLOG, [&[2, 0, 0, 0, 5, 0, 10, 0, 9, 0, 0, 0, 76, 0, 9, 0][..], &ip].concat()),
    ];
    for (link, bytes) in &frames {
        assert_eq!(found(*link, bytes), Ok((77, 32, 502)), "{link}");
        assert!((0..64).all(|cut| found(*link, &bytes[..cut.min(36)]).is_err()), "{link}");
    }
}

#[test]
fn headers_that_contain_themselves_end() {
    let ppi = [0, 0, 8, 0, 192, 0, 0, 0].repeat(1_000);
    assert_eq!(found(LinkType::PPI, &ppi), Err(Skip::LinkType));
    let tunnels = (0..50).fold(packet(), |inner, _| outer(4, &inner)[14..].to_vec());
    assert_eq!(found(LinkType::RAW, &tunnels), Err(Skip::NotTcp));
    let labels = ethernet(&[&[0x88, 0x47][..], &[0; 4_000]].concat());
    assert_eq!(found(LinkType::ETHERNET, &labels), Err(Skip::NotIp));
}
