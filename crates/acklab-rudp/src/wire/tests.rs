//! What is emitted parses to the same, and the shorter encoding of an ACK says all that it can.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use acklab_core::ranges::RangeSet;

fn value() -> impl Strategy<Value = u64> {
    (0..=varint::MAX, 0..62_u32).prop_map(|(value, shift)| value >> shift)
}

fn set(numbers: impl IntoIterator<Item = u64>) -> RangeSet {
    let mut ranges = RangeSet::new();
    for number in numbers {
        ranges.insert(number..number + 1);
    }
    ranges
}

fn emitted_ack(ranges: &RangeSet, room: usize, ecn: Option<EcnCounts>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; room];
    let mut writer = Writer::new(&mut bytes);
    let written = ack::emit(&mut writer, 3, ranges.iter().rev(), 77, ecn);
    let len = writer.position();
    assert_eq!(written, len > 0);
    bytes.truncate(len);
    written.then_some(bytes)
}

fn parsed(bytes: &[u8]) -> Result<Vec<Frame<'_>>, Malformed> {
    Frames::new(bytes).collect()
}

fn acked(bytes: &[u8]) -> (AckFrame<'_>, RangeSet) {
    let frames = parsed(bytes).expect("well formed");
    let [Frame::Ack(frame)] = frames[..] else { panic!("{frames:?}") };
    let mut ranges = RangeSet::new();
    for range in frame.ranges() {
        ranges.insert(*range.start()..*range.end() + 1);
    }
    assert_eq!(ranges.len(), frame.ranges().count(), "ranges do not touch");
    (frame, ranges)
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..40)
}

/// Every frame of the table but ACK, which has a separate property.
fn with_frame(choice: u8, a: u64, b: u64, c: u64, byte: u8, data: &[u8], f: impl Fn(Frame<'_>)) {
    let total = 1 + (c % PARCEL_MAX) as u32;
    let inside = &data[..data.len().min(total as usize)];
    let offset = (a % (u64::from(total) - inside.len() as u64 + 1)) as u32;
    let statuses = [PathStatus::Use, PathStatus::Spare, PathStatus::Silent];
    let kinds = [Kind::Reliable, Kind::OneShot, Kind::Expiring { life_ms: b % (LIFE_MAX_MS + 1) }];
    let v4 = SocketAddr::from(([byte; 4], a as u16));
    let v6 = SocketAddr::from(([byte; 16], a as u16));
    let random = a.to_be_bytes();
    let text = data;
    f(match choice {
        0 => Frame::Padding(1 + a as usize % 1000),
        1 => Frame::Ping,
        2 => {
            Frame::AckFrequency { path: byte, sequence: a, packets: b, delay_us: c, reordering: 3 }
        }
        3 => Frame::ImmediateAck { path: byte },
        4 => Frame::PathChallenge(random),
        5 => Frame::PathResponse(random),
        6 => Frame::PathStatus { path: byte, sequence: a, status: statuses[b as usize % 3] },
        7 => Frame::AddPath { id: byte, address: if b & 1 == 0 { v4 } else { v6 } },
        8 => Frame::RemovePath { path: byte, code: a },
        9 => Frame::MaxData(a),
        10 => Frame::MaxStreamData { stream: a, bytes: b },
        11 => Frame::MaxStreams(a),
        12 => {
            let offset = a.min(varint::MAX - data.len() as u64);
            Frame::Stream { stream: b, offset, fin: byte & 1 == 0, data }
        }
        13 => {
            Frame::Parcel { parcel: b, kind: kinds[byte as usize % 3], total, offset, data: inside }
        }
        14 => Frame::ParcelGone { parcel: a, total },
        15 => Frame::DataBlocked(a),
        16 => Frame::StreamDataBlocked { stream: a, limit: b },
        17 => Frame::ResetStream { stream: a, code: b, final_size: c },
        18 => Frame::StopSending { stream: a, code: b },
        _ => Frame::Close { code: a, text },
    });
}

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_written_and_every_cut_is_noticed(
        choice in 0..20_u8, a in value(), b in value(), c in value(), byte in any::<u8>(),
        data in data(),
    ) {
        with_frame(choice, a, b, c, byte, &data, |frame| {
            let mut bytes = vec![0xaa; frame.len()];
            let mut writer = Writer::new(&mut bytes);
            frame.emit(&mut writer);
            assert_eq!(writer.remaining(), 0, "{frame:?}");
            assert_eq!(parsed(&bytes), Ok(vec![frame]));
            let cut = parsed(&bytes[..bytes.len() - 1]);
            assert!(bytes.len() == 1 || choice == 0 || cut.is_err(), "{frame:?} cut: {cut:?}");
        });
    }

    #[test]
    fn an_ack_says_all_that_its_encoding_can(
        start in 0..3000_u64, count in 1..600_u64, loss in 0..90_u64, salt in any::<u64>(),
        room in prop_oneof![Just(1200_usize), 0..60_usize], with_ecn in any::<bool>(),
    ) {
        let mut rng = acklab_core::rng::Rng::named(salt, "ack");
        let ranges = set((start..start + count).filter(|_| rng.below(100) >= loss));
        let ecn = with_ecn.then_some(EcnCounts { ect0: 900, ect1: 0, ce: 5 });
        let Some(bytes) = emitted_ack(&ranges, room, ecn) else {
            prop_assert!(room < 20 || ranges.is_empty());
            return Ok(());
        };
        let (frame, said) = acked(&bytes);
        let newest = ranges.last().expect("something was emitted");
        prop_assert_eq!((frame.path, frame.delay_us, frame.ecn), (3, 77, ecn));
        prop_assert_eq!(frame.largest, newest.end - 1);
        prop_assert!(said.iter().all(|range| ranges.covers(&range)));
        if room == 1200 {
            let mut recent = ranges.clone();
            recent.remove(0..frame.largest.saturating_sub(256));
            prop_assert!(recent.iter().all(|range| said.covers(&range)), "{:?}", frame);
            // Type, path, largest, delay, length, and at most 32 bytes of bitmap or ranges.
            let counters = if with_ecn { 4 } else { 0 };
            prop_assert!(bytes.len() <= 7 + 32 + counters);
        }
        let mut again = vec![0; Frame::Ack(frame).len()];
        Frame::Ack(frame).emit(&mut Writer::new(&mut again));
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn arbitrary_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parsed(&bytes);
        let _ = Long::parse(&bytes);
        let _ = ShortHeader::parse(&bytes);
        let _ = Parameters::decode(&bytes);
    }
}

/// Above 7 % of random loss the bitmap is shorter, below it ranges are (docs/rudp.md section 2).
#[test]
fn the_shorter_encoding_is_chosen() {
    for (loss, bitmap) in [(0, false), (1, false), (3, false), (15, true), (28, true), (50, true)] {
        let mut rng = acklab_core::rng::Rng::named(loss, "encoding");
        let ranges = set((0..2000).filter(|_| rng.below(100) >= loss).chain([2000]));
        let bytes = emitted_ack(&ranges, 1200, None).expect("room");
        assert_eq!(bytes[0] == 0x03, bitmap, "{loss} % of loss: {} bytes", bytes.len());
    }
}

#[test]
fn one_hole_far_below_is_still_told() {
    let ranges = set((0..100).chain(101..5000));
    let (_, said) = acked(&emitted_ack(&ranges, 1200, None).expect("room"));
    assert_eq!(said, ranges);
}

#[test]
fn frames_beyond_the_limits_of_the_table_are_malformed() {
    let table: [(&str, &[u8]); 16] = [
        ("unknown type", &[0x1c]),
        ("first range below 0", &[0x02, 0, 5, 0, 0, 6]),
        ("further range below 0", &[0x02, 0, 5, 0, 1, 2, 1, 1]),
        ("33 further ranges", &{
            let mut bytes = [0; 73];
            bytes[..7].copy_from_slice(&[0x02, 0, 0x40, 200, 0, 33, 0]);
            bytes
        }),
        ("bitmap of no byte", &[0x03, 0, 5, 0, 0]),
        ("bitmap of 33 bytes", &{
            let mut bytes = [0; 39];
            bytes[..6].copy_from_slice(&[0x03, 0, 0x40, 200, 0, 33]);
            bytes
        }),
        ("bitmap below 0", &[0x03, 0, 2, 0, 1, 0b100]),
        ("status 3", &[0x0a, 0, 0, 3]),
        ("family 5", &[0x0b, 0, 5, 1, 2, 3, 4, 0, 1]),
        ("stream beyond the largest varint", &{
            let mut bytes = [0xff; 12];
            bytes[..2].copy_from_slice(&[0x10, 0]);
            bytes
        }),
        ("kind 3", &[0x14, 0, 3, 5, 0, 1]),
        ("fragment without data", &[0x14, 0, 0, 5, 0]),
        ("fragment beyond the parcel", &[0x14, 0, 0, 2, 1, 1, 1]),
        ("parcel of more than 2^24", &[0x16, 0, 0x81, 0, 0, 1]),
        ("life of more than 2^22", &[0x14, 0, 2, 5, 0, 0x80, 0x40, 0, 1, 1]),
        ("text of 81 bytes", &{
            let mut bytes = [b'a'; 85];
            bytes[..4].copy_from_slice(&[0x1b, 0, 0x40, 81]);
            bytes
        }),
    ];
    for (what, bytes) in table {
        assert_eq!(parsed(bytes), Err(Malformed), "{what}");
    }
    assert_eq!(parsed(&[0x03, 0, 2, 0, 1, 0b11]).map(|frames| frames.len()), Ok(1));
}

#[test]
fn only_padding_acks_and_close_are_not_acknowledged() {
    with_frame(0, 1, 1, 1, 1, b"x", |frame| assert!(!frame.is_ack_eliciting()));
    with_frame(19, 1, 1, 1, 1, b"x", |frame| assert!(!frame.is_ack_eliciting()));
    for choice in 1..19 {
        with_frame(choice, 1, 1, 1, 1, b"x", |frame| assert!(frame.is_ack_eliciting()));
    }
    assert!(!Frame::Ack(acked(&[0x02, 0, 5, 0, 0, 1]).0).is_ack_eliciting());
}
