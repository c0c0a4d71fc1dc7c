//! Goal: what the recorder says about the kernel is true, and it leaves nothing behind.
//! Method: record the real kernel (needs root; skipped with a message otherwise) and look at the
//! frames byte by byte, with no part of the analyser in between. Waits are only ever checked
//! against lower bounds, and "at once" by what was acknowledged by then, so that a busy machine cannot fail them.

#![cfg(target_os = "linux")]

use std::sync::atomic::AtomicBool;

use acklab_core::time::{Span, Time};
use acklab_net::record::{self, RecordError, RecordOptions};

/// Ethernet, IPv4 without options.
const TCP_OFFSET: usize = 14 + 20;

/// One data segment: when, from which port, how many bytes of payload.
struct DataSegment {
    time: Time,
    from_server: bool,
    bytes: usize,
}

/// Records, or says why not and returns `None`.
fn recorded(options: &RecordOptions) -> Option<Vec<(Time, Vec<u8>)>> {
    let mut frames = Vec::new();
    let ended = AtomicBool::new(false);
    match record::run(options, &ended, &mut |time, frame| frames.push((time, frame.to_vec()))) {
        Ok(_) => Some(frames),
        Err(RecordError::Privilege { doing }) => {
            eprintln!("SKIPPED: recording the kernel: {doing}: not permitted here");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn data_segments(frames: &[(Time, Vec<u8>)]) -> Vec<DataSegment> {
    let field =
        |frame: &[u8], at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let segment = |(time, frame): &(Time, Vec<u8>)| {
        let header = usize::from(frame[TCP_OFFSET + 12] >> 4) * 4;
        DataSegment {
            time: *time,
            from_server: field(frame, TCP_OFFSET) == 7000,
            bytes: field(frame, 16) - 20 - header,
        }
    };
    frames.iter().map(segment).filter(|segment| segment.bytes > 0).collect()
}

/// How long each body left after its header, in order of length.
fn body_delays(options: &RecordOptions, frames: &[(Time, Vec<u8>)]) -> Vec<Span> {
    // What the server sends again lies between them on a busy machine.
    let mut segments = data_segments(frames);
    segments.retain(|segment| !segment.from_server);
    let mut delays: Vec<Span> = segments
        .windows(2)
        .filter(|pair| pair[0].bytes == options.header_bytes)
        .filter(|pair| pair[1].bytes == options.body_bytes)
        .map(|pair| pair[1].time.since(pair[0].time))
        .collect();
    delays.sort_unstable();
    delays
}

#[test]
fn every_write_of_the_exchange_is_recorded_once_and_in_order() {
    let options = RecordOptions { exchanges: 12, ..RecordOptions::default() };
    let Some(frames) = recorded(&options) else { return };
    assert!(frames.windows(2).all(|pair| pair[0].0 <= pair[1].0), "time runs backwards");
    let segments = data_segments(&frames);
    let sent = |from_server: bool| -> usize {
        segments.iter().filter(|s| s.from_server == from_server).map(|s| s.bytes).sum()
    };
    assert_eq!(sent(false), 12 * (10 + 129));
    assert_eq!(sent(true), 12 * 32);
}

#[test]
fn nagle_holds_bodies_until_the_delayed_ack() {
    let options = RecordOptions { exchanges: 12, ..RecordOptions::default() };
    let Some(frames) = recorded(&options) else { return };
    let delays = body_delays(&options, &frames);
    // TCP_DELACK_MIN is 40 ms, its timer may fire up to one jiffy (4 ms at HZ = 250, 10 ms at
    // HZ = 100) early with respect to the segment's arrival. A receiver that reads late on a busy machine
    // acknowledges sooner (11 of 12 are held on an idle one): no count but "some" is the kernel's promise.
    let held = delays.iter().filter(|delay| **delay >= Span::from_millis(30)).count();
    assert_eq!(delays.len(), 12);
    assert!(held > 0, "{delays:?}");
    assert_eq!(
        bodies_ahead_of_the_ack(&options, &frames),
        0,
        "held until the ACK, however early it comes"
    );
}

/// Bodies that left while their header was not acknowledged yet, whatever the time between them.
fn bodies_ahead_of_the_ack(options: &RecordOptions, frames: &[(Time, Vec<u8>)]) -> usize {
    let word = |frame: &[u8], at: usize| {
        u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
    };
    let mut acked = 0;
    let mut ahead = 0;
    for (_, frame) in frames {
        let header = usize::from(frame[TCP_OFFSET + 12] >> 4) * 4;
        let bytes = usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 20 - header;
        if frame[TCP_OFFSET..TCP_OFFSET + 2] == 7000_u16.to_be_bytes() {
            acked = word(frame, TCP_OFFSET + 8);
        } else if bytes == options.body_bytes && word(frame, TCP_OFFSET + 4) != acked {
            ahead += 1;
        }
    }
    ahead
}

#[test]
fn nodelay_lets_bodies_go_ahead_of_the_ack() {
    let options = RecordOptions { exchanges: 12, nodelay: true, ..RecordOptions::default() };
    let Some(frames) = recorded(&options) else { return };
    assert!(bodies_ahead_of_the_ack(&options, &frames) > 0, "none of 12");
}

#[test]
fn the_caller_stays_in_its_own_namespace() {
    let here = || std::fs::read_link("/proc/thread-self/ns/net").ok();
    let before = here();
    let Some(_) = recorded(&RecordOptions { exchanges: 1, ..RecordOptions::default() }) else {
        return;
    };
    assert!(before.is_some());
    assert_eq!(here(), before);
}
