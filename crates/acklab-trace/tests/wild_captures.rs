//! One real conversation with 39 holds, and one without, as other machines would have captured them: in tunnels and on
//! other links, twice each frame, cut short, joined by the card, begun late, stamped by coarse clocks, out of order. What
//! is lost may make the answer "cannot tell", but never a wrong one.

use acklab_core::time::{Span, Time};
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::diagnosis::Direction;
use acklab_trace::{Diagnosis, Options, diagnose_reader};

/// How a packet travels.
type Wrap<'a> = Box<dyn Fn(&[u8]) -> Vec<u8> + 'a>;

/// IPv4 packets with their times.
type Packets = Vec<(Time, Vec<u8>)>;

const HELD: &str = "nagle-linux.pcapng";
const FREE: &str = "nodelay-linux.pcapng";

fn packets(name: &str) -> Packets {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/").to_owned() + name;
    let mut reader = CaptureReader::open(path.as_ref()).expect("a demo");
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a frame") {
        packets.push((frame.time, frame.bytes[14..].to_vec()));
    }
    packets
}

fn judged(
    link: u16,
    snap_len: u32,
    packets: &Packets,
    wrap: impl Fn(&[u8]) -> Vec<u8>,
) -> Diagnosis {
    let options = WriterOptions { link: LinkType(link), snap_len, ..WriterOptions::default() };
    let mut writer = CaptureWriter::new(Vec::new(), options).expect("memory");
    for (time, packet) in packets {
        let frame = wrap(packet);
        let kept = &frame[..frame.len().min(snap_len as usize)];
        writer.write_frame(*time, kept, frame.len() as u32).expect("memory");
    }
    let capture = writer.finish().expect("memory");
    let mut reader = CaptureReader::new(capture.as_slice()).expect("a capture");
    diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("a diagnosis")
}

fn raw(packets: &Packets) -> Diagnosis {
    judged(101, 65_535, packets, <[u8]>::to_vec)
}

fn holds(diagnosis: &Diagnosis) -> u64 {
    diagnosis.flows.iter().flat_map(|f| &f.directions).map(Direction::holds).sum()
}

fn ethernet(rest: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], rest.concat().as_slice()].concat()
}

/// An outer IPv4 header.
fn outer(protocol: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let header =
        [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2];
    ethernet(&[&[8, 0], &header, &body])
}

#[test]
fn what_wraps_a_packet_changes_nothing() {
    let inside = |p: &[u8]| ethernet(&[&[8, 0], p]);
    let vxlan: [u8; 16] = [0x9c, 0x40, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 5, 0];
    let wraps: Vec<(&str, u16, Wrap<'_>)> = vec![
        ("VLAN", 1, Box::new(|p| ethernet(&[&[0x81, 0, 0, 5, 8, 0], p]))),
        ("QinQ", 1, Box::new(|p| ethernet(&[&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], p]))),
        ("MPLS", 1, Box::new(|p| ethernet(&[&[0x88, 0x47, 0, 0, 0x11, 64], p]))),
        ("GRE", 1, Box::new(|p| outer(47, &[&[0, 0, 8, 0], p]))),
        ("ERSPAN II", 1, Box::new(|p| outer(47, &[&[0x10, 0, 0x88, 0xbe], &[0; 12], &inside(p)]))),
        ("VXLAN", 1, Box::new(|p| outer(17, &[&vxlan, &inside(p)]))),
        ("IP in IP", 1, Box::new(|p| outer(4, &[p]))),
        ("padding", 1, Box::new(|p| ethernet(&[&[8, 0], p, &[0; 18]]))),
        ("Cisco HDLC", 104, Box::new(|p| [&[0x0f, 0, 8, 0], p].concat())),
        ("loopback", 0, Box::new(|p| [&[2, 0, 0, 0], p].concat())),
        (
            "802.11",
            105,
            Box::new(|p| {
                [&[8, 1, 0, 0][..], &[2; 20], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], p].concat()
            }),
        ),
        ("TSO without length", 101, Box::new(|p| [&p[..2], &[0, 0], &p[4..]].concat())),
    ];
    let (held, free) = (packets(HELD), packets(FREE));
    for (name, link, wrap) in &wraps {
        let found = judged(*link, 65_535, &held, wrap);
        assert_eq!((found.verdict.stalled, holds(&found)), (Some(true), 39), "{name}");
        let found = judged(*link, 65_535, &free, wrap);
        assert_eq!(found.verdict.stalled, Some(false), "{name}");
    }
}

#[test]
fn short_frames_and_frames_seen_twice_change_nothing() {
    let (held, free) = (packets(HELD), packets(FREE));
    for snap_len in [54, 64, 96] {
        let found = judged(1, snap_len, &held, |p| ethernet(&[&[8, 0], p]));
        assert_eq!((found.verdict.stalled, holds(&found)), (Some(true), 39), "{snap_len} bytes");
    }
    // By a mirror port at once, and again behind a router.
    for (apart, hops) in [(0, 0), (2, 0), (300, 0), (5, 1), (400, 1)] {
        let twice = |packets: &Packets| {
            let again = |(time, packet): &(Time, Vec<u8>)| {
                let mut copy = packet.clone();
                copy[8] -= hops;
                (*time + Span::from_micros(apart), copy)
            };
            let mut all: Packets = packets.clone();
            all.extend(packets.iter().map(again));
            all.sort_by_key(|packet| packet.0);
            all
        };
        let found = raw(&twice(&held));
        assert_eq!((found.verdict.stalled, holds(&found)), (Some(true), 39), "{apart} us");
        assert_eq!(raw(&twice(&free)).verdict.stalled, Some(false), "{apart} us");
    }
}

/// Consecutive segments of one host within `window` as one, as receive offload hands them up.
fn joined(packets: &Packets, window: Span) -> Packets {
    let ports = |p: &[u8]| [p[20], p[21], p[22], p[23]];
    let sequence = |p: &[u8]| u32::from_be_bytes([p[24], p[25], p[26], p[27]]);
    let payload = |p: &[u8]| 20 + usize::from(p[32] >> 4) * 4;
    let mut all: Packets = Vec::new();
    for (time, packet) in packets {
        let more = packet.len() > payload(packet);
        if let Some((before, last)) = all.last_mut().filter(|_| more) {
            let bytes = (last.len() - payload(last)) as u32;
            let follows = ports(last) == ports(packet)
                && bytes > 0
                && sequence(last).wrapping_add(bytes) == sequence(packet)
                && time.since(*before) < window;
            if follows {
                last.extend(&packet[payload(packet)..]);
                let [high, low] = (last.len() as u16).to_be_bytes();
                last[2..4].copy_from_slice(&[high, low]);
                continue;
            }
        }
        all.push((*time, packet.clone()));
    }
    all
}

#[test]
fn segments_that_the_card_joined_are_judged_alike() {
    let found = raw(&joined(&packets(HELD), Span::from_micros(60)));
    assert_eq!((found.verdict.stalled, holds(&found)), (Some(true), 39));
    assert_ne!(raw(&joined(&packets(FREE), Span::from_micros(60))).verdict.stalled, Some(true));
}

#[test]
fn clocks_that_are_set_do_no_harm_and_coarse_ones_leave_it_open() {
    let (held, free) = (packets(HELD), packets(FREE));
    let stamped = |packets: &Packets, stamp: &dyn Fn(usize, u64) -> u64| -> Packets {
        let at = |(i, (time, p)): (usize, &(Time, Vec<u8>))| {
            (Time::from_nanos(stamp(i, time.as_nanos())), p.clone())
        };
        packets.iter().enumerate().map(at).collect()
    };
    let hour = 3_600_000_000_000;
    for set in [hour, 0_u64.wrapping_sub(hour)] {
        let set = move |i: usize, ns: u64| if i > 100 { ns.wrapping_add(set) } else { ns };
        assert_eq!(raw(&stamped(&held, &set)).verdict.stalled, Some(true));
    }
    for tick in [15_625_000, 1_000_000_000, u64::MAX] {
        let coarse = |_: usize, ns: u64| ns / tick * tick;
        for packets in [&held, &free] {
            let verdict = raw(&stamped(packets, &coarse)).verdict;
            assert_eq!(verdict.stalled, None, "ticks of {tick} ns: {}", verdict.summary);
            assert!(verdict.decides.iter().any(|d| d.contains("millisecond")), "{tick}");
        }
    }
}

#[test]
fn packets_out_of_their_order_leave_it_open() {
    for name in [HELD, FREE, "modbus-slow.pcapng"] {
        let mut packets = packets(name);
        packets.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        let verdict = raw(&packets).verdict;
        assert_eq!(verdict.stalled, None, "{name}: {}", verdict.summary);
        assert!(verdict.decides.iter().any(|d| d.contains("reordercap")), "{name}");
    }
}

#[test]
fn a_capture_may_begin_anywhere_and_ports_may_be_used_again() {
    let held = packets(HELD);
    for skip in [1, 3, 20] {
        let found = raw(&held[skip..].to_vec());
        assert_eq!(found.verdict.stalled, Some(true), "{skip}");
        assert!(holds(&found) >= 36, "{skip}: {}", holds(&found));
    }
    // The same addresses and ports, other sequence numbers.
    let again = held.iter().map(|(time, packet)| {
        let mut packet = packet.clone();
        let acks = packet[33] & 0x10 != 0;
        for at in if acks { &[24, 28][..] } else { &[24] } {
            let bytes: [u8; 4] = packet[*at..*at + 4].try_into().expect("4 bytes");
            let moved = u32::from_be_bytes(bytes).wrapping_add(77_777);
            packet[*at..*at + 4].copy_from_slice(&moved.to_be_bytes());
        }
        (*time + Span::from_secs(10), packet)
    });
    let both: Packets = held.iter().cloned().chain(again).collect();
    let found = raw(&both);
    assert_eq!((found.flows.len(), holds(&found)), (2, 78));
}
