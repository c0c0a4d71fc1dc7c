//! Hostile peers from bytes: what arrives, in which order, how often, altered or not; what the
//! applications do; and authentic packets with any frames, as a peer could send that holds the keys. No
//! panic, no deadline that is never met, no more than so many packets at one instant.

use acklab_core::contract::Choices;
use acklab_core::packet::Ecn;
use acklab_core::time::Span;

use super::ends::{Ends, OnTheWay, path, turned};
use crate::protect::{Protection, TAG, Unprotected};
use crate::wire::{Kind, SHORT_HEADER, ShortHeader, Writer};
use crate::{Code, Config};

/// Runs a client and a server against peers that may send anything.
///
/// # Panics
/// Where the contract does not hold.
pub fn attack_peers(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let config = Config { key_packets: 50, ..Config::default() };
    let mut attack = Attack { ends: Ends::new(&config), keys: [Unprotected::default(); 2] };
    // The handshake first: without it most operations come to nothing.
    for _ in 0..6 {
        attack.ends.pass(Span::from_millis(5));
        for datagram in std::mem::take(&mut attack.ends.way) {
            attack.ends.arrive(datagram);
        }
    }
    let mut steps = 0;
    while !choices.is_empty() && steps < MAX_STEPS {
        attack.step(&mut choices);
        attack.ends.settle();
        steps += 1;
    }
}

/// Decisions of one script; keeps a fuzzer's single run short.
const MAX_STEPS: usize = 2000;

struct Attack {
    ends: Ends,
    keys: [Unprotected; 2],
}

impl Attack {
    fn arrive(&mut self, to: usize, addrs: crate::PathAddrs, bytes: Vec<u8>) {
        self.ends.arrive(OnTheWay { to, addrs, ecn: Ecn::NotEct, bytes });
    }

    /// An authentic packet with any frames.
    fn forge(&mut self, to: usize, choices: &mut Choices<'_>) {
        let Some(connection) = self.ends.end(to).map(|connection| connection.id()) else { return };
        let (lane, id) = (choices.byte(), choices.byte());
        let number = u64::from(choices.byte()) * 8 + 500;
        let len = usize::from(choices.byte()) * 4;
        let frames = choices.take(len);
        let mut packet = vec![0; SHORT_HEADER];
        let header =
            ShortHeader { key_phase: false, connection, path: id % 8, number32: number as u32 };
        header.emit(&mut Writer::new(&mut packet));
        packet.extend_from_slice(frames);
        packet.extend_from_slice(&[0; TAG]);
        let (header, body) = packet.split_at_mut(SHORT_HEADER);
        self.keys[to].seal(id % 8, number, header, body);
        let addrs = if to == 0 { path(lane) } else { turned(path(lane)) };
        self.arrive(to, addrs, packet);
    }

    fn use_content(&mut self, end: usize, choices: &mut Choices<'_>) {
        let now = self.ends.now;
        let (what, argument) = (choices.byte(), u64::from(choices.byte()));
        let Some(connection) = self.ends.end(end) else { return };
        let open = connection.is_open();
        let content = connection.content();
        match what % 10 {
            0 if open => drop(content.open_stream(now, argument.is_multiple_of(2))),
            1 => drop(content.write(argument % 8, vec![argument as u8; argument as usize * 100])),
            2 => content.finish(argument % 8),
            3 => drop(content.read(now, argument % 8)),
            4 => content.reset_stream(argument % 8, argument),
            5 => content.stop_stream(argument % 8, argument),
            6 if open => {
                let kind = match argument % 3 {
                    0 => Kind::Reliable,
                    1 => Kind::OneShot,
                    _ => Kind::Expiring { life_ms: argument * 10 },
                };
                let bytes = vec![1; 1 + argument as usize * 50];
                let redundant = argument > 128;
                let _ = content.send_parcel(now, bytes, kind, (argument % 8) as u8, redundant);
            }
            7 => drop(content.receive_parcel()),
            8 => drop(connection.add_path(now, path(argument as u8))),
            _ => connection.remove_path(now, (argument % 8) as u8),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let operation = choices.byte();
        let end = usize::from(operation >> 7);
        let somewhere = usize::from(choices.byte()) % self.ends.way.len().max(1);
        let waits = !self.ends.way.is_empty();
        match operation % 16 {
            0 => self.ends.pass(Span::from_micros(u64::from(choices.byte()) * 100)),
            1 => self.ends.pass(Span::from_millis(u64::from(choices.byte()) * 10)),
            2..=6 if waits => {
                let datagram = self.ends.way.remove(0);
                self.ends.arrive(datagram);
            }
            7 if waits => {
                let datagram = self.ends.way[somewhere].clone();
                self.ends.arrive(datagram);
            }
            8 if waits => drop(self.ends.way.remove(somewhere)),
            9 if waits => {
                let mut datagram = self.ends.way.remove(somewhere);
                let bit = usize::from(choices.byte()) * 31 % (8 * datagram.bytes.len());
                datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                self.ends.arrive(datagram);
            }
            10 => self.forge(end, choices),
            11 => {
                let len = usize::from(choices.byte()) * 6;
                let addrs = if end == 0 { path(0) } else { turned(path(0)) };
                self.arrive(end, addrs, choices.take(len).to_vec());
            }
            12 if waits => {
                // From another address.
                let mut datagram = self.ends.way.remove(0);
                datagram.addrs.remote.set_port(u16::from(choices.byte()));
                self.ends.arrive(datagram);
            }
            13 if choices.byte() == 0 => {
                let now = self.ends.now;
                if let Some(connection) = self.ends.end(end) {
                    connection.close(now, Code::Done, "enough");
                }
            }
            _ => self.use_content(end, choices),
        }
    }
}
