//! Content end to end, without packets: pieces are written, carried, lost and read.

use std::collections::BTreeSet;

use super::outgoing::KEPT_MAX;
use super::*;
use crate::Piece;
use crate::wire::{Frame, Frames, Writer};
use acklab_core::rng::Rng;

impl Content {
    /// How many streams are not over.
    pub(super) fn streams(&self) -> usize {
        let ids = self.sending.streams().ids().chain(self.receiving.ids());
        ids.collect::<BTreeSet<_>>().len()
    }
}

/// Two ends, and what of one is on its way to the other.
struct Pair {
    ends: [Content; 2],
    now: Time,
    rng: Rng,
    loss: f64,
}

/// What a packet carries.
struct Packet {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    control: Vec<ControlFrame>,
}

impl Pair {
    fn new(seed: u64, loss: f64, parameters: &Parameters) -> Self {
        let mut ends = [Content::new(true, parameters), Content::new(false, parameters)];
        for end in &mut ends {
            end.on_parameters(parameters);
        }
        Self { ends, now: Time::ZERO, rng: Rng::named(seed, "content"), loss }
    }

    fn packet(&mut self, from: usize) -> Option<Packet> {
        let room = 60 + self.rng.below(1400) as usize;
        let mut bytes = vec![0; room];
        let (mut pieces, mut control) = (Vec::new(), Vec::new());
        let mut writer = Writer::new(&mut bytes);
        let end = &mut self.ends[from];
        while let Some((name, frame)) = end.poll_control(writer.remaining()) {
            frame.emit(&mut writer);
            control.push(name);
        }
        while let Some(piece) = end.next_piece(self.now, writer.remaining(), true) {
            let len = end.sending().len_of(&piece, self.now);
            assert!(len <= writer.remaining(), "{piece:?} does not fit");
            end.sending().emit(&piece, self.now, &mut writer);
            pieces.push(piece);
        }
        let len = writer.position();
        bytes.truncate(len);
        (len > 0).then_some(Packet { bytes, pieces, control })
    }

    /// One round: up to 40 packets each way, lost, reordered and duplicated; then their fates are told.
    fn round(&mut self) -> bool {
        let mut any = false;
        for from in 0..2 {
            let packets: Vec<Packet> = (0..40).map_while(|_| self.packet(from)).collect();
            any |= !packets.is_empty();
            let mut order: Vec<usize> = (0..packets.len()).flat_map(|at| [at, at]).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, self.rng.below(at as u64 + 1) as usize);
            }
            let mut arrived = vec![false; packets.len()];
            for at in order {
                if self.rng.chance(self.loss) {
                    continue;
                }
                let taken = Frames::new(&packets[at].bytes).try_for_each(|frame| {
                    self.ends[1 - from].handle_frame(self.now, &frame.expect("well formed"))
                });
                assert_eq!(taken, Ok(()));
                arrived[at] = true;
            }
            for (packet, arrived) in packets.iter().zip(arrived) {
                let end = &mut self.ends[from];
                for piece in &packet.pieces {
                    if arrived { end.on_acked(piece) } else { end.on_lost(piece) }
                }
                for &control in &packet.control {
                    if arrived {
                        end.on_control_acked(control);
                    } else {
                        end.on_control_lost(control);
                    }
                }
            }
        }
        self.now += Span::from_millis(10);
        for end in &mut self.ends {
            end.handle_timeout(self.now);
        }
        any
    }
}

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn every_byte_arrives_once_and_in_order_whatever_the_network_does() {
    for seed in 0..20 {
        let small =
            Parameters { max_stream_data: 20_000, max_data: 70_000, ..Parameters::default() };
        let parameters = if seed % 2 == 0 { Parameters::default() } else { small };
        let mut pair = Pair::new(seed, 0.05 * (seed % 7) as f64, &parameters);
        let mut rng = Rng::named(seed, "bytes");
        let mut sent: Vec<(usize, u64, Vec<u8>)> = Vec::new();
        for from in [0, 1, 0, 1] {
            let stream = pair.ends[from].open_stream(pair.now, sent.len() < 2).expect("allowed");
            let len = rng.below(400_000) as usize;
            let all = bytes(&mut rng, len);
            for block in all.chunks(9_000) {
                assert!(pair.ends[from].write(stream, block.to_vec()));
            }
            pair.ends[from].finish(stream);
            sent.push((from, stream, all));
        }
        let mut read: Vec<(Vec<u8>, bool)> = vec![(Vec::new(), false); sent.len()];
        let mut idle = 0;
        while idle < 3 {
            idle = if pair.round() { 0 } else { idle + 1 };
            for ((from, stream, _), (got, ended)) in sent.iter().zip(&mut read) {
                while let Some(block) = pair.ends[1 - from].read(pair.now, *stream) {
                    assert!(!*ended && block.offset == got.len() as u64);
                    got.extend_from_slice(&block);
                    *ended = block.fin;
                }
            }
        }
        for ((_, stream, all), (got, ended)) in sent.iter().zip(&read) {
            assert!(*ended, "seed {seed}: stream {stream} ended");
            assert!(all == got, "seed {seed}: stream {stream}: {} of {}", got.len(), all.len());
        }
        for end in &pair.ends {
            assert_eq!(
                (
                    end.sending().waiting_bytes(),
                    end.sending.streams().kept(),
                    end.sending().has_lost()
                ),
                (0, 0, false)
            );
            assert!(!end.sending().has_new(pair.now));
        }
    }
}

#[test]
fn parcels_of_all_kinds_arrive_whole_and_once_or_are_told_to_be_gone() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, 0.05 * (seed % 7) as f64, &Parameters::default());
        let mut rng = Rng::named(seed, "parcels");
        let mut sent = Vec::new();
        for at in 0..200_u64 {
            let len = 1 + rng.below(if at % 50 == 0 { 1 << 20 } else { 3000 }) as usize;
            let body = bytes(&mut rng, len);
            let kind = match at % 3 {
                0 => Kind::Reliable,
                1 => Kind::OneShot,
                _ => Kind::Expiring { life_ms: rng.below(400) },
            };
            let id = pair.ends[0].send_parcel(pair.now, body.clone(), kind, at as u8 % 8, false);
            assert_eq!(id, Ok(at));
            sent.push((kind, body));
        }
        let (mut fates, mut told) = (vec![0; sent.len()], vec![0; sent.len()]);
        let mut idle = 0;
        while idle < 150 {
            idle = if pair.round() { 0 } else { idle + 1 };
            while let Some((id, body)) = pair.ends[1].receive_parcel() {
                assert!(sent[id as usize].1 == body);
                fates[id as usize] += 1;
            }
            while let Some(event) = pair.ends[1].poll_event() {
                if let ContentEvent::ParcelGone { parcel, ours: false } = event {
                    fates[parcel as usize] += 1;
                    assert!(sent[parcel as usize].0 != Kind::Reliable);
                }
            }
            while let Some(event) = pair.ends[0].poll_event() {
                match event {
                    ContentEvent::ParcelGone { parcel, ours: true }
                    | ContentEvent::ParcelDelivered { parcel } => told[parcel as usize] += 1,
                    _ => panic!("{event:?}"),
                }
            }
        }
        assert_eq!(fates, vec![1; sent.len()], "seed {seed}: delivered or gone, once");
        assert_eq!(told, vec![1; sent.len()], "seed {seed}: told once");
        let end = &pair.ends[0];
        assert_eq!(
            (end.sending().waiting_bytes(), end.sending().has_lost(), end.has_control()),
            (0, false, false)
        );
    }
}

#[test]
fn a_sender_never_begins_more_than_the_peer_takes() {
    let mut pair = Pair::new(1, 0.0, &Parameters::default());
    for _ in 0..100 {
        let sent = pair.ends[0].send_parcel(pair.now, vec![1; 3000], Kind::Reliable, 4, false);
        assert!(sent.is_ok());
    }
    let mut pieces = Vec::new();
    while let Some(piece) = pair.ends[0].next_piece(pair.now, 1400, true) {
        pieces.push(piece);
    }
    let begun = |piece: &&Piece| matches!(piece, Piece::Parcel { offset: 0, .. });
    assert_eq!(pieces.iter().filter(begun).count(), 64);
    assert_eq!(pair.ends[0].sending().waiting_bytes(), 36 * 3000);
    assert!(!pair.ends[0].sending().has_new(pair.now));
    for piece in &pieces {
        pair.ends[0].on_acked(piece);
    }
    assert!(pair.ends[0].sending().has_new(pair.now));
}

#[test]
fn classes_go_in_order_and_streams_of_one_class_take_turns() {
    let mut pair = Pair::new(1, 0.0, &Parameters::default());
    let streams = [0, 1, 2].map(|_| pair.ends[0].open_stream(pair.now, false).expect("allowed"));
    for stream in streams {
        assert!(pair.ends[0].write(stream, vec![0; 4000]));
    }
    pair.ends[0].set_priority(streams[2], 1, false);
    let mut order = Vec::new();
    while let Some(Piece::Stream { stream, .. }) = pair.ends[0].next_piece(pair.now, 1400, true) {
        order.push(streams.iter().position(|&known| known == stream).expect("ours"));
    }
    assert_eq!(order, [2, 2, 2, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn an_expiring_parcel_goes_ahead_of_its_class_near_its_end() {
    let mut pair = Pair::new(1, 0.0, &Parameters::default());
    let end = &mut pair.ends[0];
    end.on_rtt(Span::from_millis(40), Span::from_millis(60));
    let reliable = end.send_parcel(pair.now, vec![0; 9000], Kind::Reliable, 4, false);
    let kind = Kind::Expiring { life_ms: 1000 };
    let expiring = end.send_parcel(pair.now, vec![0; 9000], kind, 4, false);
    let mut next =
        |after_ms| match end.next_piece(Time::ZERO + Span::from_millis(after_ms), 1400, true) {
            Some(Piece::Parcel { parcel, .. }) => Ok(parcel),
            other => panic!("{other:?}"),
        };
    assert_eq!([next(0), next(0), next(0)], [reliable, reliable, reliable]);
    assert_eq!([next(850), next(850), next(850)], [expiring, expiring, expiring]);
    // In its last half of a round trip nothing of it leaves.
    assert_eq!([next(985), next(985)], [reliable, reliable]);
}

#[test]
fn what_nobody_reads_stops_the_sender_at_the_grant_and_reading_lets_it_go_on() {
    let parameters =
        Parameters { max_stream_data: 100_000, max_data: 150_000, ..Parameters::default() };
    let mut pair = Pair::new(3, 0.1, &parameters);
    let streams = [0, 1].map(|_| pair.ends[0].open_stream(pair.now, false).expect("allowed"));
    for stream in streams {
        assert!(pair.ends[0].write(stream, vec![stream as u8; 1 << 20]));
        pair.ends[0].finish(stream);
    }
    while pair.round() {}
    assert_eq!(pair.ends[0].sending().waiting_bytes(), 2 * (1 << 20) - 150_000);
    let mut read = [0, 0];
    while pair.ends[0].sending().waiting_bytes() > 0 {
        for (stream, read) in streams.into_iter().zip(&mut read) {
            while let Some(block) = pair.ends[1].read(pair.now, stream) {
                assert!(block.iter().all(|&byte| byte == stream as u8));
                *read += block.len();
            }
        }
        assert!(pair.round(), "it goes on");
    }
}

#[test]
fn a_stream_that_is_reset_or_stopped_gives_its_credit_back() {
    let parameters = Parameters { max_data: 200_000, ..Parameters::default() };
    for (seed, stops) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let mut pair = Pair::new(seed, 0.2, &parameters);
        for _ in 0..10 {
            let stream = pair.ends[0].open_stream(pair.now, true).expect("allowed");
            assert!(pair.ends[0].write(stream, vec![1; 150_000]));
            pair.round();
            if stops {
                pair.ends[1].stop_stream(stream, 9);
                pair.ends[1].finish(stream);
            } else {
                pair.ends[0].reset_stream(stream, 9);
                pair.ends[1].reset_stream(stream, 9);
            }
            pair.ends[0].stop_stream(stream, 9);
            while pair.round() {}
            let mut told = 0;
            for end in &mut pair.ends {
                while let Some(event) = end.poll_event() {
                    told += u32::from(matches!(
                        event,
                        ContentEvent::StreamReset { code: 9, .. }
                            | ContentEvent::StreamStopped { code: 9, .. }
                    ));
                }
                assert!(end.streams() == 0, "seed {seed}: forgotten at both ends");
                assert_eq!((end.sending().waiting_bytes(), end.sending.streams().kept()), (0, 0));
            }
            assert!(told > 0);
        }
    }
}

#[test]
fn streams_that_are_over_let_the_peer_open_others() {
    let parameters = Parameters { max_streams: 4, ..Parameters::default() };
    let mut pair = Pair::new(5, 0.3, &parameters);
    let mut opened = 0;
    while opened < 50 {
        while let Some(stream) = pair.ends[0].open_stream(pair.now, false) {
            assert!(pair.ends[0].write(stream, vec![2; 100]));
            pair.ends[0].finish(stream);
            opened += 1;
        }
        pair.round();
        while let Some(event) = pair.ends[1].poll_event() {
            if let ContentEvent::Readable { stream } = event {
                while pair.ends[1].read(pair.now, stream).is_some() {}
            }
        }
        assert!(pair.ends[1].streams() <= 4);
    }
}

#[test]
fn writing_stops_when_there_is_no_room_and_goes_on_when_told() {
    let mut pair = Pair::new(6, 0.1, &Parameters::default());
    let stream = pair.ends[0].open_stream(pair.now, false).expect("allowed");
    let (mut written, mut read, mut told) = (0_u64, 0, 0);
    while written < 20 << 20 {
        while pair.ends[0].room(stream) > 0 {
            assert!(pair.ends[0].write(stream, vec![0; 1 << 20]));
            written += 1 << 20;
        }
        assert!(pair.ends[0].sending.streams().kept() <= KEPT_MAX + (1 << 20));
        loop {
            assert!(pair.round(), "neither end waits for ever");
            while let Some(block) = pair.ends[1].read(pair.now, stream) {
                read += block.len() as u64;
            }
            if pair.ends[0].poll_event() == Some(ContentEvent::Writable { stream }) {
                told += 1;
                break;
            }
        }
    }
    assert!(read > 0 && told >= 10, "{read} bytes read, {told} times told");
}

#[test]
fn the_bare_end_of_a_stream_is_told_again_when_it_was_lost() {
    let mut pair = Pair::new(1, 0.0, &Parameters::default());
    let [client, server] = &mut pair.ends;
    for len in [0, 100] {
        let stream = client.open_stream(Time::ZERO, false).expect("allowed");
        assert!(client.write(stream, vec![3; len]));
        let data = client.next_piece(Time::ZERO, 1400, true);
        assert_eq!(data.is_some(), len > 0);
        client.finish(stream);
        for _ in 0..3 {
            let end = client.next_piece(Time::ZERO, 1400, true).expect("the end");
            assert_eq!(end, Piece::Stream { stream, offset: len as u64, len: 0, fin: true });
            assert_eq!(client.next_piece(Time::ZERO, 1400, true), None);
            assert_eq!(client.sending().still_wanted(&end), Some(end));
            client.on_lost(&end);
        }
        let end = client.next_piece(Time::ZERO, 1400, true).expect("the end");
        let mut bytes = [0; 50];
        let mut writer = Writer::new(&mut bytes);
        client.sending().emit(&end, Time::ZERO, &mut writer);
        for frame in Frames::new(writer.written()) {
            assert_eq!(server.handle_frame(Time::ZERO, &frame.expect("well formed")), Ok(()));
        }
        assert_eq!(
            server.read(Time::ZERO, stream).map(|block| block.fin),
            (len == 0).then_some(true)
        );
        client.on_acked(&end);
        let all = data.is_none_or(|data| {
            assert_eq!(client.poll_event(), None);
            assert_eq!(client.sending().still_wanted(&data), Some(data));
            client.on_acked(&data);
            client.sending().still_wanted(&data).is_none()
        });
        assert!(all && client.poll_event() == Some(ContentEvent::StreamDelivered { stream }));
        assert!(client.sending().stream(stream).is_none() && !client.receiving.has(stream));
    }
}

#[test]
fn a_piece_that_nearly_fills_a_packet_is_made_to_fill_it() {
    let mut pair = Pair::new(1, 0.0, &Parameters::default());
    let end = &mut pair.ends[0];
    let stream = end.open_stream(pair.now, false).expect("allowed");
    // Header of 3 bytes and data of 100; a length field would take 2 bytes more.
    for (spare, left) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
        assert!(end.write(stream, vec![5; 100]));
        let room = 103 + spare + usize::from(spare > 0);
        let piece = end.next_piece(pair.now, room, true).expect("data");
        assert_eq!(piece.len(), 100);
        let mut bytes = vec![0xaa; room];
        let mut writer = Writer::new(&mut bytes);
        end.sending().emit(&piece, pair.now, &mut writer);
        assert_eq!(writer.remaining(), left, "{spare} bytes to spare");
        let last = Frames::new(writer.written()).last().expect("a frame");
        assert!(matches!(last, Ok(Frame::Stream { data, .. }) if data == [5; 100]));
    }
}

#[test]
fn a_sender_keeps_no_more_than_its_bound_while_nothing_is_acknowledged() {
    let generous =
        Parameters { max_data: 1 << 40, max_stream_data: 1 << 40, ..Parameters::default() };
    let mut pair = Pair::new(1, 0.0, &generous);
    let end = &mut pair.ends[0];
    let streams = [0, 1].map(|_| end.open_stream(Time::ZERO, false).expect("allowed"));
    let mut pieces = Vec::new();
    while streams.iter().any(|&stream| end.room(stream) > 0) {
        for stream in streams {
            if end.room(stream) > 0 {
                assert!(end.write(stream, vec![0; 1 << 20]));
            }
        }
        while let Some(piece) = end.next_piece(Time::ZERO, 60_000, true) {
            pieces.push(piece);
        }
    }
    assert_eq!(end.sending.streams().kept(), KEPT_MAX);
    while end.poll_event().is_some() {}
    for piece in &pieces[..pieces.len() / 2] {
        end.on_acked(piece);
    }
    let mut told = [end.poll_event(), end.poll_event()];
    told.sort_by_key(|event| matches!(event, Some(ContentEvent::Writable { stream: 6 })));
    assert_eq!(told, streams.map(|stream| Some(ContentEvent::Writable { stream })));
    assert_eq!(end.poll_event(), None);
}
