//! Content end to end, without packets: pieces are written, carried, lost and read.

use super::*;
use crate::rng::Rng;
use crate::rudp::Piece;
use crate::wire::rudp::{Frames, Writer};

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
            let len = end.len_of(&piece, self.now);
            assert!(len <= writer.remaining(), "{piece:?} does not fit");
            end.emit(&piece, self.now, &mut writer);
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
            assert_eq!((end.waiting_bytes(), end.kept, end.has_lost()), (0, 0, false));
            assert!(!end.has_new(pair.now));
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
        assert_eq!((end.waiting_bytes(), end.has_lost(), end.has_control()), (0, false, false));
    }
}
