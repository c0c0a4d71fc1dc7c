//! Somebody on the way who replays and alters, and peers that lie.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_rudp::protect::{Protection, TAG, Unprotected};
use acklab_rudp::wire::{Frame, SHORT_HEADER, ShortHeader, Writer, ack};
use acklab_rudp::{Code, Connection, Event, Listener};
use acklab_sim::road::{PORT, Road};

use crate::support::{FILE, Transfer, lane, road};

fn run(road: &mut Road, transfer: &mut Transfer, until: Time) -> bool {
    road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
        transfer.on_progress(now, client, server)
    })
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn altered_datagrams_are_lost_ones() {
    let mut road = road(3, &[lane(0.0)]);
    let mut rng = Rng::named(3, "test/alter");
    road.set_meddler(Box::new(move |_, _, datagram| {
        if rng.chance(0.05) {
            let bit = rng.below(8 * datagram.len() as u64);
            datagram[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        true
    }));
    let mut transfer = Transfer::default();
    assert!(run(&mut road, &mut transfer, ms(5000)), "{} received", transfer.received);
    assert_eq!(transfer.received, FILE);
}

/// Datagrams on the way, with the end they came from.
type Heard = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

#[test]
fn replayed_datagrams_change_nothing() {
    let mut road = road(4, &[lane(0.05)]);
    let heard = Heard::default();
    let store = heard.clone();
    road.set_meddler(Box::new(move |_, end, datagram| {
        store.borrow_mut().push((end, datagram.clone()));
        true
    }));
    let mut transfer = Transfer::default();
    let mut rng = Rng::named(4, "test/replay");
    let mut until = 100;
    while !run(&mut road, &mut transfer, ms(until)) {
        until += 20;
        assert!(until < 5000);
        for _ in 0..200 {
            let (end, datagram) = {
                let heard = heard.borrow();
                heard[rng.below(heard.len() as u64) as usize].clone()
            };
            road.inject(end, PORT + 9, datagram);
        }
    }
    assert_eq!(transfer.received, FILE);
    let stats: Vec<_> = road.client.path_stats().collect();
    assert_eq!(stats.len(), 1);
    assert_eq!(stats[0].addrs.remote.port(), PORT, "nobody moved the path");
}

/// A packet that only the holder of the keys can make: without protection, everybody.
fn forged(connection: u64, number: u64, frames: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut packet = vec![0; 1200];
    let header = ShortHeader { key_phase: false, connection, path: 0, number32: number as u32 };
    header.emit(&mut Writer::new(&mut packet[..SHORT_HEADER]));
    let mut writer = Writer::new(&mut packet[SHORT_HEADER..]);
    frames(&mut writer);
    let len = SHORT_HEADER + writer.position() + TAG;
    packet.truncate(len);
    let (header, body) = packet.split_at_mut(SHORT_HEADER);
    Unprotected::default().seal(0, number, header, body);
    packet
}

/// What the client was closed with.
fn closed(transfer: &Transfer) -> Option<Code> {
    transfer.events.iter().find_map(|(_, event)| match event {
        Event::Closed { code, .. } => Some(*code),
        _ => None,
    })
}

#[test]
fn an_ack_that_claims_to_have_waited_for_ever_is_no_more_than_an_ack() {
    let (mut road, mut transfer) = (road(9, &[lane(0.0)]), Transfer::default());
    run(&mut road, &mut transfer, ms(300));
    let id = road.client.id();
    // Numbers that the server is about to use, so that acknowledging them is no lie.
    let (_, server) = road.server.connections().next().expect("a connection");
    let next = server.path_stats().next().expect("a path").packets + 1;
    for (number, delay) in [(0, (1 << 62) - 1), (1, 1 << 40)] {
        let slow = forged(id, next + number, |writer| {
            assert!(ack::emit(writer, 0, std::iter::once(0..1), delay, None));
        });
        road.inject(1, PORT, slow);
    }
    assert!(run(&mut road, &mut transfer, ms(5000)));
    assert_eq!(transfer.received, FILE);
}

#[test]
fn a_peer_that_acknowledges_what_was_never_sent_is_told_to_go() {
    let (mut road, mut transfer) = (road(5, &[lane(0.0)]), Transfer::default());
    run(&mut road, &mut transfer, ms(300));
    let id = road.client.id();
    let lie = forged(id, 5000, |writer| {
        assert!(ack::emit(writer, 0, std::iter::once(0..100_000), 0, None));
    });
    road.inject(1, PORT, lie);
    run(&mut road, &mut transfer, ms(400));
    assert_eq!(closed(&transfer), Some(Code::Protocol));
}

#[test]
fn a_peer_that_acknowledges_blindly_is_found_out_at_a_number_left_out() {
    let mut found = 0;
    for seed in 10..20 {
        let (mut road, mut transfer) = (road(seed, &[lane(0.0)]), Transfer::default());
        run(&mut road, &mut transfer, ms(60));
        let id = road.client.id();
        // Every 2 ms it claims to have all that has left by then.
        for step in 0..400 {
            if run(&mut road, &mut transfer, ms(60 + 2 * step)) || closed(&transfer).is_some() {
                break;
            }
            let sent = road.client.path_stats().next().expect("a path").packets;
            // The handshake's datagrams have no numbers; so this claims a little less than all.
            let claimed = sent.saturating_sub(8);
            let lie = forged(id, 5000 + step, |writer| {
                ack::emit(writer, 0, std::iter::once(0..claimed), 0, None);
            });
            road.inject(1, PORT, lie);
        }
        found += usize::from(closed(&transfer) == Some(Code::Protocol));
    }
    assert!(found >= 5, "{found} of 10 liars");
}

#[test]
fn a_frame_that_cannot_be_read_ends_the_connection_with_a_reason() {
    let (mut road, mut transfer) = (road(6, &[lane(0.0)]), Transfer::default());
    run(&mut road, &mut transfer, ms(300));
    let id = road.client.id();
    road.inject(1, PORT, forged(id, 5000, |writer| writer.put_u8(0x7f)));
    run(&mut road, &mut transfer, ms(400));
    assert_eq!(closed(&transfer), Some(Code::FrameEncoding));
}

#[test]
fn a_peer_that_floods_challenges_gets_few_responses() {
    let (mut road, mut transfer) = (road(7, &[lane(0.0)]), Transfer::default());
    run(&mut road, &mut transfer, ms(300));
    let id = road.client.id();
    let before = road.client.path_stats().next().expect("a path").packets;
    for number in 0..10_000 {
        let flood = forged(id, 5000 + number, |writer| {
            for _ in 0..100 {
                Frame::PathChallenge([7; 8]).emit(writer);
            }
        });
        road.inject(1, PORT, flood);
    }
    let mut buffer = vec![0; 1 << 16];
    let now = road.now();
    let mut sent = 0;
    while road.client.poll_transmit(now, &mut buffer, 1).is_some() && sent < 1000 {
        sent += 1;
    }
    let after = road.client.path_stats().next().expect("a path").packets;
    assert!(after - before <= 64, "{} packets", after - before);
}

#[test]
fn a_server_whose_client_stops_reading_holds_no_more_than_was_granted() {
    let mut road = road(8, &[lane(0.0)]);
    let (mut stream, mut written) = (None, 0_u64);
    road.run(ms(20_000), &mut |now, client: &mut Connection, server: &mut Listener| {
        while client.poll_event().is_some() {}
        while server.poll_event().is_some() {}
        if client.is_open() {
            let content = client.content();
            let stream =
                *stream.get_or_insert_with(|| content.open_stream(now, false).expect("a stream"));
            while content.room(stream) > 0 {
                content.write(stream, vec![1; 1 << 16]);
                written += 1 << 16;
            }
        }
        ControlFlow::Continue(())
    });
    let sent = road.client.path_stats().next().expect("a path").content;
    assert!(sent < 26 << 20, "{sent} bytes left for a reader that takes none");
    assert!(written < 64 << 20, "{written} bytes were taken to be sent");
    assert!(road.client.is_open());
}
