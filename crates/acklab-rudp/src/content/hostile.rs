//! Tests: what a peer may send that breaks a rule or would cost memory.

use proptest::prelude::*;

use super::*;
use crate::wire::Frame;
use crate::{Code, Refused};

fn takes(end: &mut Content, frame: &Frame<'_>) -> Result<(), Refused> {
    end.handle_frame(Time::ZERO, frame)
}

fn stream(stream: u64, offset: u64, fin: bool, data: &[u8]) -> Frame<'_> {
    Frame::Stream { stream, offset, fin, data }
}

fn parcel(parcel: u64, kind: Kind, total: u32, offset: u32, data: &[u8]) -> Frame<'_> {
    Frame::Parcel { parcel, kind, total, offset, data }
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_which() {
    let small = Parameters {
        max_data: 64 << 10,
        max_stream_data: 16 << 10,
        max_streams: 2,
        parcel_max: 1000,
        ..Parameters::default()
    };
    let flow = Err(Refused::Close(Code::FlowControl));
    let rule = Err(Refused::Close(Code::Protocol));
    let data = [7; 10];
    let good = [stream(0, 0, false, &data), stream(2, 0, true, &data)];
    let table: [(&str, Frame<'_>, Result<(), Refused>); 15] = [
        ("more than a stream's window", stream(0, (16 << 10) - 9, false, &data), flow),
        ("to the window's last byte", stream(0, (16 << 10) - 10, false, &data), Ok(())),
        ("a third stream", stream(4, 0, false, &data), flow),
        ("beyond the end of a stream", stream(2, 10, false, &data), flow),
        ("another end of a stream", stream(2, 0, true, &data[..5]), flow),
        ("an end below what came", stream(0, 0, true, &data[..5]), flow),
        ("a stream that we never opened", stream(1, 0, false, &data), rule),
        ("data on our one-way stream", stream(3, 0, false, &data), rule),
        ("credit for its own one-way stream", Frame::MaxStreamData { stream: 2, bytes: 1 }, rule),
        ("a reset below what came", Frame::ResetStream { stream: 0, code: 0, final_size: 5 }, flow),
        ("too large a parcel", parcel(0, Kind::Reliable, 1001, 0, &data), flow),
        ("a parcel id far ahead", parcel(4096, Kind::OneShot, 10, 0, &data), flow),
        ("the last id allowed", parcel(4095, Kind::OneShot, 10, 0, &data), Ok(())),
        ("gone far ahead", Frame::ParcelGone { parcel: 4096, total: 0 }, flow),
        ("gone beyond the credit", Frame::ParcelGone { parcel: 9, total: 64 << 10 }, flow),
    ];
    for (what, frame, expected) in table {
        let mut server = Content::new(false, &small);
        server.on_parameters(&small);
        assert_eq!(server.open_stream(Time::ZERO, false), Some(3));
        for frame in &good {
            assert_eq!(takes(&mut server, frame), Ok(()));
        }
        assert_eq!(takes(&mut server, &frame), expected, "{what}");
    }
}

#[test]
fn what_one_parcel_says_of_itself_never_changes() {
    let mut server = Content::new(false, &Parameters::default());
    assert_eq!(takes(&mut server, &parcel(0, Kind::Reliable, 30, 0, &[1; 10])), Ok(()));
    for frame in
        [parcel(0, Kind::Reliable, 31, 10, &[1; 10]), parcel(0, Kind::OneShot, 30, 10, &[1; 10])]
    {
        assert_eq!(takes(&mut server, &frame), Err(Refused::Close(Code::Protocol)));
    }
}

#[test]
fn a_packet_that_makes_too_many_gaps_counts_as_lost() {
    let mut server = Content::new(false, &Parameters::default());
    for gap in 0..1024 {
        assert_eq!(takes(&mut server, &stream(0, 1 + 2 * gap, false, b"x")), Ok(()));
        let fragment = parcel(0, Kind::Reliable, 5000, 1 + 2 * gap as u32, b"x");
        assert_eq!(takes(&mut server, &fragment), Ok(()));
    }
    let lost = Err(Refused::Lost);
    assert_eq!(takes(&mut server, &stream(0, 4000, false, b"x")), lost);
    assert_eq!(takes(&mut server, &parcel(0, Kind::Reliable, 5000, 4000, b"x")), lost);
    // One that closes a gap is taken, and then there is room for another.
    assert_eq!(takes(&mut server, &stream(0, 0, false, b"x")), Ok(()));
    assert_eq!(takes(&mut server, &stream(0, 2, false, b"x")), Ok(()));
    assert_eq!(takes(&mut server, &stream(0, 4000, false, b"x")), Ok(()));
}

#[test]
fn the_sixty_fifth_parcel_drops_the_oldest_that_may_be_lost() {
    let mut server = Content::new(false, &Parameters::default());
    for id in 0..64 {
        let kind = if id == 5 || id == 9 { Kind::OneShot } else { Kind::Reliable };
        assert_eq!(takes(&mut server, &parcel(id, kind, 20, 0, &[1; 10])), Ok(()));
    }
    for dropped in [5, 9] {
        let next = parcel(100 + dropped, Kind::Reliable, 20, 0, &[1; 10]);
        assert_eq!(takes(&mut server, &next), Ok(()));
        let gone = ContentEvent::ParcelGone { parcel: dropped, ours: false };
        assert_eq!(server.poll_event(), Some(gone));
    }
    let next = parcel(200, Kind::Reliable, 20, 0, &[1; 10]);
    assert_eq!(takes(&mut server, &next), Err(Refused::Close(Code::FlowControl)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn hostile_frames_cost_bounded_memory(
        steps in prop::collection::vec((0..9_u8, 0..9_u64, 0..90_000_u64, 0..3000_u32), 1..200)
    ) {
        let small = Parameters {
            max_data: 64 << 10,
            max_stream_data: 16 << 10,
            max_streams: 4,
            parcel_max: 3000,
            ..Parameters::default()
        };
        let mut end = Content::new(false, &small);
        end.on_parameters(&small);
        let ours = end.open_stream(Time::ZERO, true).expect("allowed");
        prop_assert!(end.write(ours, vec![0; 5000]));
        let data = [9; 3000];
        for (at, (choice, id, a, b)) in steps.into_iter().enumerate() {
            let now = Time::ZERO + Span::from_millis(5 * at as u64);
            let len = (b as usize).clamp(1, 3000);
            let kind = Kind::Expiring { life_ms: a % 100 };
            let kind = [Kind::Reliable, Kind::OneShot, kind][a as usize % 3];
            let frame = match choice {
                0 => Frame::Stream { stream: id, offset: a, fin: b % 8 == 0, data: &data[..len] },
                1 => {
                    let (total, part) = (3000, &data[..len.min(200)]);
                    let offset = a as u32 % (total - part.len() as u32 + 1);
                    Frame::Parcel { parcel: id * 500, kind, total, offset, data: part }
                }
                2 => Frame::ParcelGone { parcel: a % 5000, total: b },
                3 => Frame::ResetStream { stream: id, code: 1, final_size: a },
                4 => Frame::StopSending { stream: id, code: 2 },
                5 => Frame::MaxStreamData { stream: id, bytes: a },
                6 => Frame::MaxData(a),
                7 => Frame::MaxStreams(a % 10),
                _ => Frame::StreamDataBlocked { stream: id, limit: a },
            };
            let _ = end.handle_frame(now, &frame);
            end.handle_timeout(now);
            if b % 3 == 0 {
                while end.read(now, id).is_some() {}
                while end.receive_parcel().is_some() {}
            }
            while end.next_piece(now, 1200, true).is_some() {}
            prop_assert!(end.streams() <= 9 && end.notes.controls() <= 40);
            let held = end.receiving.held();
            prop_assert!(held <= small.max_data as usize, "{held} held");
        }
    }
}
