//! A hostile network between honest ends, from bytes: it loses, delays, repeats, reorders, damages and marks
//! datagrams and changes the addresses they come from, while both applications write and read as they like.
//! No byte is read that was not written, in its place; and once the network relents everything arrives,
//! unless an end gave up after silence.

use std::collections::BTreeMap;

use acklab_core::cc::Algorithm;
use acklab_core::contract::Choices;
use acklab_core::packet::Ecn;
use acklab_core::time::Span;

use super::ends::Ends;
use crate::{Code, Config, ContentEvent, Event};

/// Runs two honest ends, whose keys change every `key_packets`, over a network that may do anything; a
/// digest of all that left.
///
/// # Panics
/// Where the contract does not hold, where a byte is read that was not written, or where something does
/// not arrive.
pub fn attack_network(bytes: &[u8], key_packets: u64) -> u64 {
    let mut choices = Choices::new(bytes);
    let names = Algorithm::NAMES;
    let algorithm = names[usize::from(choices.byte()) % names.len()].parse().unwrap_or_default();
    let ecn = choices.flip();
    let config = Config { algorithm, ecn, key_packets, ..Config::default() };
    let users = [User::default(), User::default()];
    let mut attack = Attack { ends: Ends::new(&config), users };
    let mut steps = 0;
    while !choices.is_empty() && steps < MAX_STEPS {
        attack.step(&mut choices);
        attack.read();
        steps += 1;
    }
    attack.finish();
    attack.ends.digest
}

/// Decisions of one script.
const MAX_STEPS: usize = 1000;
/// Streams that an application opens at most.
const STREAMS: usize = 4;
/// What one script writes on a stream at most, bytes.
const MOST: u64 = 100_000;
/// Steps of 10 ms within which everything has arrived once the network relents: half a minute.
const PATIENCE: usize = 3000;

/// An application: what it has written on each of its streams and read of each of the peer's.
#[derive(Default)]
struct User {
    written: BTreeMap<u64, u64>,
    read: BTreeMap<u64, (u64, bool)>,
    finished: bool,
}

struct Attack {
    ends: Ends,
    users: [User; 2],
}

fn byte(stream: u64, offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1).wrapping_add(stream * 7) >> 13) as u8
}

impl Attack {
    fn step(&mut self, choices: &mut Choices<'_>) {
        let ends = &mut self.ends;
        let operation = choices.byte();
        let (waits, somewhere) = (ends.way.len(), usize::from(choices.byte()));
        match operation % 16 {
            0 => ends.pass(Span::from_micros(u64::from(choices.byte()) * 100)),
            1 => ends.pass(Span::from_millis(u64::from(choices.byte()) * 4)),
            2..=6 if waits > 0 => {
                let datagram = ends.way.remove(0);
                ends.arrive(datagram);
            }
            7 if waits > 0 => {
                let datagram = ends.way.remove(somewhere % waits);
                ends.arrive(datagram);
            }
            8 if waits > 0 => {
                let datagram = ends.way[somewhere % waits].clone();
                ends.arrive(datagram);
            }
            9 if waits > 0 => drop(ends.way.remove(somewhere % waits)),
            10 if waits > 0 => {
                let mut datagram = ends.way.remove(somewhere % waits);
                let bit = usize::from(choices.word()) % (8 * datagram.bytes.len());
                datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                ends.arrive(datagram);
            }
            11 if waits > 0 => {
                let datagram = &mut ends.way[somewhere % waits];
                datagram.ecn = if datagram.ecn == Ecn::NotEct { Ecn::NotEct } else { Ecn::Ce };
            }
            12 => {
                // An address translator: the client is behind another port.
                if let Some(datagram) = ends.way.iter_mut().find(|datagram| datagram.to == 1) {
                    datagram.addrs.remote.set_port(7000 + somewhere as u16 % 4);
                }
            }
            _ => self.write(usize::from(operation >> 7), choices),
        }
    }

    fn write(&mut self, end: usize, choices: &mut Choices<'_>) {
        let now = self.ends.now;
        let user = &mut self.users[end];
        let Some(connection) = self.ends.end(end).filter(|end| end.is_open()) else { return };
        let content = connection.content();
        if user.written.len() < STREAMS
            && choices.flip()
            && let Some(stream) = content.open_stream(now, false)
        {
            user.written.insert(stream, 0);
        }
        let index = usize::from(choices.byte()) % user.written.len().max(1);
        if let Some((&stream, written)) = user.written.iter_mut().nth(index) {
            let len = u64::from(choices.word()).min(MOST - *written);
            let bytes = (*written..*written + len).map(|at| byte(stream, at)).collect();
            assert!(content.write(stream, bytes), "stream {stream} is open");
            *written += len;
        }
        self.ends.settle();
    }

    /// Both applications read whatever there is.
    fn read(&mut self) {
        let now = self.ends.now;
        for end in [0, 1] {
            for event in std::mem::take(&mut self.ends.told[end]) {
                if let Event::Closed { code, .. } = event {
                    let opened = self.users.iter().any(|user| !user.written.is_empty());
                    assert!(!opened || matches!(code, Code::Idle | Code::Done), "{code:?}");
                }
                let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
                let read = self.users[end].read.entry(stream).or_default();
                let Some(connection) = self.ends.end(end) else { continue };
                while let Some(block) = connection.content().read(now, stream) {
                    for value in block.iter() {
                        assert_eq!(*value, byte(stream, read.0), "stream {stream}, {}", read.0);
                        read.0 += 1;
                    }
                    read.1 |= block.fin;
                }
            }
            let written = &self.users[1 - end].written;
            for (stream, (read, _)) in &self.users[end].read {
                let written = written.get(stream).copied().unwrap_or(0);
                assert!(*read <= written, "{read} bytes read of {written}");
            }
        }
        self.ends.settle();
    }

    /// The network relents, and both applications end their streams.
    fn finish(&mut self) {
        for _ in 0..PATIENCE {
            for end in [0, 1] {
                let user = &mut self.users[end];
                let Some(connection) = self.ends.end(end).filter(|end| end.is_open()) else {
                    continue;
                };
                if !std::mem::replace(&mut user.finished, true) {
                    user.written.keys().for_each(|stream| connection.content().finish(*stream));
                }
            }
            self.ends.settle();
            for datagram in std::mem::take(&mut self.ends.way) {
                self.ends.arrive(datagram);
            }
            self.read();
            if self.has_ended() {
                return;
            }
            self.ends.pass(Span::from_millis(10));
        }
        let stats = [0, 1].map(|end| {
            let end = self.ends.end(end);
            end.map(|end| (end.is_open(), end.path_stats().collect::<Vec<_>>()))
        });
        let read = self.users.each_ref().map(|user| (&user.written, &user.read));
        panic!("not everything has arrived: {read:?} {stats:#?}");
    }

    /// Whether everything has arrived, or an end gave up.
    fn has_ended(&mut self) -> bool {
        let gave_up = self.ends.client.is_closed();
        let arrived = [0, 1].into_iter().all(|end| {
            let read = &self.users[1 - end].read;
            let written = &self.users[end].written;
            written.iter().all(|(stream, written)| read.get(stream) == Some(&(*written, true)))
        });
        gave_up
            || (arrived && self.users.iter().all(|user| user.finished || user.written.is_empty()))
    }
}
