use super::*;
use acklab_core::link::{Corruption, Duplication, ErrorRate, Impairments, Packets, Share};
use acklab_core::queue::{Discipline, Limit};

/// An IPv4 packet of `length` bytes with a protocol of no ports, numbered behind its header.
fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[0] = 0x45;
    frame[1] = 0b10;
    frame[9] = 253;
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Sends `count` frames of 1000 bytes, one every `gap`, and returns what leaves and when.
fn pass(direction: &mut Direction, count: u32, gap: Span) -> Vec<(Time, Vec<u8>)> {
    let mut left = Vec::new();
    let mut next = 0;
    loop {
        let send = (next < count).then(|| Time::ZERO + gap * u64::from(next));
        let due = direction.poll_timeout();
        match (due, send) {
            (Some(due), send) if send.is_none_or(|send| due <= send) => {
                direction.handle_timeout(due, &mut |frame| left.push((due, frame.to_vec())));
            }
            (_, Some(send)) => {
                direction.handle_frame(send, &numbered(next, 1000));
                next += 1;
            }
            (_, None) => return left,
        }
    }
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[20], frame[21], frame[22], frame[23]])
}

fn config() -> LinkConfig {
    LinkConfig::new("8mbit".parse().unwrap(), Span::from_millis(10))
}

#[test]
fn frames_leave_whole_in_order_and_on_time_and_their_wait_is_counted() {
    let mut direction = Direction::new(0, 1, config());
    // A frame takes 1 ms and one comes every half: the n-th waits n/2 ms.
    let left = pass(&mut direction, 101, Span::from_micros(500));
    for (index, (time, frame)) in left.iter().enumerate() {
        assert_eq!(*frame, numbered(index as u32, 1000));
        assert_eq!(time.as_nanos(), 11_000_000 + index as u64 * 1_000_000);
    }
    let tally = direction.tally();
    assert_eq!((tally.packets, tally.delivered, tally.bytes), (101, 101, 101_000));
    assert_eq!(tally.queue.max(), Span::from_millis(50));
    assert_eq!(tally.queue.mean(), Span::from_millis(25));
}

#[test]
fn every_frame_is_accounted_for_and_slots_are_used_again() {
    let packets = Packets::All;
    let impairments = Impairments {
        corruption: Some(Corruption { rate: ErrorRate::PerPacket(0.1), packets }),
        duplication: Some(Duplication { share: Share::independent(0.1), packets }),
        ..Impairments::default()
    };
    let queue = Discipline::drop_tail(Limit::packets(20));
    let config = config().with_impairments(impairments).with_queue(queue).with_jitter(Span::ZERO);
    let mut direction = Direction::new(0, 1, config);
    let left = pass(&mut direction, 20_000, Span::from_micros(980));
    let tally = direction.tally();
    assert!(tally.dropped > 0 && tally.duplicated > 1000 && tally.corrupted > 1000);
    assert_eq!(tally.delivered, left.len() as u64);
    assert_eq!(tally.packets, tally.delivered - tally.duplicated + tally.dropped + tally.lost);
    let damaged = |frame: &[u8]| -> u32 {
        frame.iter().zip(numbered(number(frame), 1000)).map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    let flipped = left.iter().filter(|(_, frame)| damaged(frame) == 1).count() as u64;
    let in_the_number = left.iter().filter(|(_, frame)| damaged(frame) > 1).count();
    assert_eq!(in_the_number, 0);
    // A flip of the number itself makes another frame's number: 32 bits of 7840.
    assert!(tally.corrupted - flipped < 30, "{flipped} of {}", tally.corrupted);
    // Twenty wait, ten are on the wire, and a few are about to be used again.
    assert!(direction.frames.slots.len() < 40, "{}", direction.frames.slots.len());
}

#[test]
fn a_mark_is_written_into_the_frame() {
    let queue = Discipline::by_name("threshold", 100).unwrap();
    let mut direction = Direction::new(0, 1, config().with_queue(queue));
    let left = pass(&mut direction, 300, Span::from_micros(800));
    let congested = left.iter().filter(|(_, frame)| frame[1] & 0b11 == 0b11).count() as u64;
    assert!(congested > 0 && congested == direction.tally().marked, "{congested}");
}

#[test]
fn the_same_seed_takes_the_same_frames_as_the_bare_link() {
    let config = config().with_loss(0.2);
    let mut direction = Direction::new(4, 9, config.clone());
    let gap = Span::from_millis(2);
    let numbers = |left: Vec<(Time, Vec<u8>)>| -> Vec<u32> {
        left.iter().map(|(_, frame)| number(frame)).collect()
    };
    let emulated = numbers(pass(&mut direction, 1000, gap));
    let mut link = Link::new(4, 9, config);
    let mut sink = Sink::default();
    let mut bare = Vec::new();
    for index in 0..1000 {
        let now = Time::ZERO + gap * u64::from(index);
        let packet = frame::describe(&numbered(index, 1000), [u64::from(index), 0]).unwrap();
        link.handle_packet(now, packet, &mut sink);
    }
    while let Some(due) = link.poll_timeout() {
        link.handle_timeout(due, &mut sink);
        while let Some(packet) = link.poll_transmit(due, &mut sink) {
            bare.push(slot(&packet) as u32);
        }
    }
    assert_eq!(emulated, bare);
    assert_eq!(direction.tally().lost, 1000 - emulated.len() as u64);
}
