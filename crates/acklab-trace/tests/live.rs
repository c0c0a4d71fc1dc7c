//! Goal: a diagnosis of frames as they pass says what the diagnosis of a capture says, tells each hold once, and loses
//! none where a long connection is judged in stretches.
//! Method: the recorded demo, and an exchange of two writes and a reply whose holds are counted by construction.

use std::path::Path;

use acklab_core::time::{Span, Time};
use acklab_trace::capture::{CaptureReader, LinkType};
use acklab_trace::live::LiveDiagnosis;
use acklab_trace::{Options, diagnose};
use proptest::collection::vec;
use proptest::prelude::*;

const DEMO: &str = "../../demo/nagle-linux.pcapng";

#[test]
fn the_live_answer_is_that_of_the_capture() {
    let mut live = LiveDiagnosis::default();
    let mut reader = CaptureReader::open(Path::new(DEMO)).expect("the demo");
    let mut told = 0;
    while let Some(frame) = reader.next_frame().expect("a frame") {
        live.on_frame(frame.time, frame.link, frame.original_len, frame.bytes);
        if frame.number % 7 == 0 {
            told += live.look(|_| true).iter().map(|news| news.count).sum::<u64>();
        }
    }
    told += live.look(|_| true).iter().map(|news| news.count).sum::<u64>();
    let live = live.finish(|_| true, None);
    let of_file = diagnose(Path::new(DEMO), &Options::default(), |_| {}).expect("the demo");
    assert_eq!(live.to_json().expect("JSON"), of_file.to_json().expect("JSON"));
    let held: u64 =
        of_file.flows[0].directions.iter().map(acklab_trace::diagnosis::Direction::holds).sum();
    assert!(held > 10 && told == held, "{told} of {held} told");
}

#[test]
fn no_hold_is_lost_where_a_connection_is_judged_in_stretches() {
    let (exchanges, mut live) = (5_000, LiveDiagnosis::default());
    let (mut told, mut passed) = (0, 0);
    write_write_read(exchanges, |time, frame| {
        live.on_frame(time, LinkType::RAW, frame.len() as u32, frame);
        passed += 1;
        if passed % 301 == 0 {
            told += live.look(|_| true).iter().map(|news| news.count).sum::<u64>();
        }
    });
    told += live.look(|_| true).iter().map(|news| news.count).sum::<u64>();
    let diagnosis = live.finish(|_| true, None);
    let direction = &diagnosis.flows[0].directions[0];
    assert_eq!(direction.segments, 2 * exchanges);
    assert_eq!((direction.holds(), told), (exchanges, exchanges));
    assert!(!direction.sampled);
    let held_s = exchanges as f64 * 0.0401;
    assert!((direction.stalled_s() - held_s).abs() < 1.0, "{} s", direction.stalled_s());
    assert!((direction.added_delay_ms.max - 40.1).abs() < 0.5, "{:?}", direction.added_delay_ms);
}

#[test]
fn connections_that_are_not_wanted_are_not_told() {
    let mut live = LiveDiagnosis::default();
    write_write_read(50, |time, frame| {
        live.on_frame(time, LinkType::RAW, frame.len() as u32, frame);
    });
    assert!(live.look(|ends| ends[0].port == 1).is_empty());
    let diagnosis = live.finish(|_| false, Some("three frames were lost".to_owned()));
    assert!(diagnosis.flows.is_empty() && diagnosis.verdict.stalled.is_none());
    assert_eq!(diagnosis.verdict.limits, ["three frames were lost"]);
}

proptest! {
    /// What comes from a network is not trusted: any damage is judged or passed over.
    #[test]
    fn damaged_frames_are_judged_or_passed_over(
        damage in vec((0usize..400, 0usize..140, any::<u8>(), 0usize..140), 1..60),
    ) {
        let (mut live, mut number) = (LiveDiagnosis::default(), 0);
        write_write_read(100, |time, frame| {
            let mut frame = frame.to_vec();
            for (_, at, byte, cut) in damage.iter().filter(|damage| damage.0 == number) {
                let length = frame.len();
                frame[at % length] = *byte;
                frame.truncate((cut % length).max(1));
            }
            number += 1;
            live.on_frame(time, LinkType::RAW, frame.len() as u32, &frame);
            if number % 50 == 0 {
                live.look(|_| true);
            }
        });
        let diagnosis = live.finish(|_| true, None);
        prop_assert!(diagnosis.capture.packets == 400);
    }
}

/// A client writes 10 and then 100 bytes and waits for 32: the ACK of the first comes after 40 ms and lets the
/// second go, over and over, on a connection that was open before.
fn write_write_read(exchanges: u64, mut on_frame: impl FnMut(Time, &[u8])) {
    let mut now = Time::from_nanos(1_000_000_000);
    let (mut sent, mut answered) = (1_000u32, 5_000u32);
    let mut pass = |after_us: u64, from_client: bool, seq: u32, ack: u32, len: usize| {
        now += Span::from_micros(after_us);
        on_frame(now, &segment(from_client, seq, ack, len));
    };
    for exchange in 0..exchanges {
        pass(1_000 + exchange % 7, true, sent, answered, 10);
        sent += 10;
        pass(40_000 + exchange % 5, false, answered, sent, 0);
        pass(100 + exchange % 3, true, sent, answered, 100);
        sent += 100;
        pass(50, false, answered, sent, 32);
        answered += 32;
    }
}

/// An IPv4 packet (RFC 791) with a TCP segment without options (RFC 9293).
fn segment(from_client: bool, seq: u32, ack: u32, len: usize) -> Vec<u8> {
    let (client, server) = (([10, 0, 0, 1], 40_000u16), ([10, 0, 0, 2], 7_000u16));
    let (from, to) = if from_client { (client, server) } else { (server, client) };
    let mut packet = vec![0x45, 0];
    packet.extend((40 + len as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend(from.0);
    packet.extend(to.0);
    packet.extend(from.1.to_be_bytes());
    packet.extend(to.1.to_be_bytes());
    packet.extend(seq.to_be_bytes());
    packet.extend(ack.to_be_bytes());
    let flags = if len > 0 { 0x18 } else { 0x10 };
    packet.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    packet.resize(40 + len, b'x');
    packet
}
