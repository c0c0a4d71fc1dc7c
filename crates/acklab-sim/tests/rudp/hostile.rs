//! Attackers on the way who replay and alter, and peers that lie.

use std::sync::{Arc, Mutex};

use acklab_core::endpoint::Endpoint as _;
use acklab_core::rng::Rng;
use acklab_rudp::protect::{Protection, TAG, Unprotected};
use acklab_rudp::wire::{Frame, SHORT_HEADER, ShortHeader, Writer, ack};
use acklab_rudp::{Code, Config, Connection, Event, Listener};

use crate::support::{Net, PORT, Transfer, Use, lane, ms};

#[test]
fn altered_datagrams_are_lost_ones() {
    let mut transfer = Transfer::new(3, &[lane(0.0)]);
    let mut rng = Rng::named(3, "test/alter");
    transfer.net.set_meddler(move |_, _, datagram| {
        if rng.chance(0.05) {
            let bit = rng.below(8 * datagram.len() as u64);
            datagram[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        true
    });
    transfer.finish(ms(5000));
}

#[test]
fn replayed_datagrams_change_nothing() {
    let mut transfer = Transfer::new(4, &[lane(0.05)]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let store = heard.clone();
    transfer.net.set_meddler(move |_, end, datagram| {
        store.lock().expect("no panic").push((end, datagram.clone()));
        true
    });
    let mut rng = Rng::named(4, "test/replay");
    let mut until = 100;
    while !transfer.run(ms(until)) {
        until += 20;
        assert!(until < 5000);
        for _ in 0..200 {
            let (end, datagram) = {
                let heard = heard.lock().expect("no panic");
                heard[rng.below(heard.len() as u64) as usize].clone()
            };
            transfer.net.inject(end, [(PORT + 9, datagram)]);
        }
    }
    transfer.finish(ms(5000));
    let stats = transfer.net.stats();
    assert_eq!(stats.len(), 1);
    assert_eq!(stats[0].addrs.remote.port(), PORT, "the path was not moved");
}

#[test]
fn copies_that_come_first_from_elsewhere_draw_no_answers_there() {
    let mut transfer = Transfer::new(5, &[lane(0.0)]);
    transfer.run(ms(200));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let store = heard.clone();
    transfer.net.set_meddler(move |_, end, datagram| {
        if end == 0 {
            store.lock().expect("no panic").push(datagram.clone());
        }
        end != 0
    });
    let mut until = 200;
    while !transfer.run(ms(until)) {
        until += 1;
        assert!(until < 5000, "{} B received", transfer.file().received);
        for datagram in std::mem::take(&mut *heard.lock().expect("no panic")) {
            // From four places, so that none of them is always the last.
            for from in [PORT + 9, PORT + 10 + until as u16 % 3, PORT] {
                transfer.net.inject(0, [(from, datagram.clone())]);
            }
        }
    }
    let seconds = transfer.finish(ms(5000));
    assert!(seconds < 2.4, "{seconds} s");
    let theirs = transfer.net.server(|_, server| {
        let (_, server) = server.connections().next().expect("a connection");
        server.path_stats().next().expect("a path").addrs
    });
    assert_eq!(theirs.remote.port(), PORT);
}

/// A packet that only the holder of the keys can make: without protection, anyone.
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
    transfer.file().events.iter().find_map(|(_, event)| match event {
        Event::Closed { code, .. } => Some(*code),
        _ => None,
    })
}

#[test]
fn an_ack_that_claims_to_have_waited_for_ever_is_no_more_than_an_ack() {
    let mut transfer = Transfer::new(9, &[lane(0.0)]);
    transfer.run(ms(300));
    let id = transfer.net.client(|_, client| client.id());
    // Numbers that the server is about to use, so that acknowledging them is no lie.
    let next = transfer.net.server(|_, server| {
        let (_, server) = server.connections().next().expect("a connection");
        server.path_stats().next().expect("a path").packets + 1
    });
    for (number, delay) in [(0, (1 << 62) - 1), (1, 1 << 40)] {
        let slow = forged(id, next + number, |writer| {
            assert!(ack::emit(writer, 0, std::iter::once(0..1), delay, None));
        });
        transfer.net.inject(1, [(PORT, slow)]);
    }
    transfer.finish(ms(5000));
}

#[test]
fn a_peer_that_acknowledges_what_was_never_sent_is_told_to_go() {
    let mut transfer = Transfer::new(5, &[lane(0.0)]);
    transfer.run(ms(300));
    let id = transfer.net.client(|_, client| client.id());
    let lie = forged(id, 5000, |writer| {
        assert!(ack::emit(writer, 0, std::iter::once(0..100_000), 0, None));
    });
    transfer.net.inject(1, [(PORT, lie)]);
    transfer.run(ms(400));
    assert_eq!(closed(&transfer), Some(Code::Protocol));
}

#[test]
fn a_peer_that_acknowledges_blindly_is_found_out_at_a_number_left_out() {
    let mut found = 0;
    for seed in 10..20 {
        let mut transfer = Transfer::new(seed, &[lane(0.0)]);
        transfer.run(ms(60));
        let id = transfer.net.client(|_, client| client.id());
        // Every 2 ms it claims to have all that has left by then.
        for step in 0..400 {
            if transfer.run(ms(60 + 2 * step)) || closed(&transfer).is_some() {
                break;
            }
            let sent = transfer.net.stats()[0].packets;
            // The handshake's datagrams have no numbers; so this claims a little less than all.
            let claimed = sent.saturating_sub(8);
            let lie = forged(id, 5000 + step, |writer| {
                ack::emit(writer, 0, std::iter::once(0..claimed), 0, None);
            });
            transfer.net.inject(1, [(PORT, lie)]);
        }
        found += usize::from(closed(&transfer) == Some(Code::Protocol));
    }
    assert!(found >= 5, "{found} of 10 liars");
}

#[test]
fn a_frame_that_cannot_be_read_ends_the_connection_with_a_reason() {
    let mut transfer = Transfer::new(6, &[lane(0.0)]);
    transfer.run(ms(300));
    let id = transfer.net.client(|_, client| client.id());
    transfer.net.inject(1, [(PORT, forged(id, 5000, |writer| writer.put_u8(0x7f)))]);
    transfer.run(ms(400));
    assert_eq!(closed(&transfer), Some(Code::FrameEncoding));
}

#[test]
fn a_peer_that_floods_challenges_gets_few_responses() {
    let mut transfer = Transfer::new(7, &[lane(0.0)]);
    transfer.run(ms(300));
    let id = transfer.net.client(|_, client| client.id());
    let before = transfer.net.stats()[0].packets;
    let flood = (0..10_000).map(|number| {
        let flood = forged(id, 5000 + number, |writer| {
            for _ in 0..100 {
                Frame::PathChallenge([7; 8]).emit(writer);
            }
        });
        (PORT, flood)
    });
    transfer.net.inject(1, flood);
    let after = transfer.net.stats()[0].packets;
    assert!(after - before <= 64, "{} packets", after - before);
}

#[test]
fn a_server_whose_client_stops_reading_holds_no_more_than_was_granted() {
    let written = Arc::new(Mutex::new(0_u64));
    let (sum, mut stream) = (written.clone(), None);
    let users = (
        Use::by(move |now, client: &mut Connection| {
            while client.poll_event().is_some() {}
            if !client.is_open() {
                return;
            }
            let content = client.content();
            let stream =
                *stream.get_or_insert_with(|| content.open_stream(now, false).expect("a stream"));
            while content.room(stream) > 0 {
                content.write(stream, vec![1; 1 << 16]);
                *sum.lock().expect("no panic") += 1 << 16;
            }
        }),
        Use::by(|_, server: &mut Listener| while server.poll_event().is_some() {}),
    );
    let mut net = Net::new(8, &[lane(0.0)], 1, &Config::default(), users);
    net.run(ms(20_000), || false);
    let sent = net.stats()[0].content;
    assert!(sent < 26 << 20, "{sent} bytes left for a reader that takes none");
    let written = *written.lock().expect("no panic");
    assert!(written < 64 << 20, "{written} bytes were taken to be sent");
    assert!(net.is_open());
}

#[test]
fn a_packet_that_removes_another_path_is_acknowledged_as_its_own() {
    let mut transfer = Transfer::new(8, &[lane(0.0), lane(0.0), lane(0.0)]);
    let mut done = false;
    transfer.net.set_meddler(move |now, end, datagram| {
        let short = ShortHeader::parse(datagram).ok();
        if !done && end == 0 && now > ms(500) && short.is_some_and(|header| header.path == 2) {
            done = true;
            let mut frame = [0; 16];
            let mut writer = Writer::new(&mut frame);
            Frame::RemovePath { path: 0, code: 0 }.emit(&mut writer);
            let len = writer.position();
            datagram.splice(SHORT_HEADER..SHORT_HEADER, frame[..len].iter().copied());
            let number = u64::from(ShortHeader::parse(datagram).expect("short").number32);
            let (header, body) = datagram.split_at_mut(SHORT_HEADER);
            Unprotected::default().seal(2, number, header, body);
        }
        true
    });
    transfer.finish(ms(5000));
    assert_eq!(closed(&transfer), None);
    let theirs = transfer.net.server(|_, server| {
        let (_, server) = server.connections().next().expect("a connection");
        server.path_stats().map(|stats| stats.id).collect::<Vec<_>>()
    });
    assert_eq!(theirs, [2, 4], "the frame was taken");
}
