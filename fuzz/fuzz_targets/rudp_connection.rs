//! A client and a server of reliable UDP between whom the input decides everything: what arrives, in
//! which order, how often, altered or not; what the applications do; and authentic packets with any
//! frames, as a peer could send that holds the keys. No panic, no deadline that is never met, no more
//! than so many packets at one instant, no unasked-for memory.
#![no_main]

use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_rudp::protect::{PlainGreeter, Protection, TAG, Unprotected};
use acklab_rudp::{Code, Config, Connection, Handle, Limits, Listener, PathAddrs};
use acklab_core::time::{Span, Time};
use acklab_rudp::wire::{Kind, SHORT_HEADER, ShortHeader, Writer};
use libfuzzer_sys::fuzz_target;

/// Packets at one instant that make a storm.
const STORM: usize = 50_000;
/// Datagrams on the way; older ones are lost.
const ON_THE_WAY: usize = 256;

/// The bytes that decide.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

struct World {
    now: Time,
    client: Connection,
    server: Listener,
    handle: Option<Handle>,
    way: Vec<(usize, PathAddrs, Vec<u8>)>,
    keys: [Unprotected; 2],
}

fn path(lane: u8) -> PathAddrs {
    let address = |end: u8| std::net::SocketAddr::from(([10, 77, lane % 4, end], 7000));
    PathAddrs { local: address(1), remote: address(2) }
}

const fn turned(addrs: PathAddrs) -> PathAddrs {
    PathAddrs { local: addrs.remote, remote: addrs.local }
}

impl World {
    fn new() -> Self {
        let config = Config { key_packets: 50, ..Config::default() };
        let client = Connection::connect(
            Time::ZERO,
            config.clone(),
            Box::new(Rng::named(1, "client")),
            Box::new(PlainGreeter),
            &[path(0), path(1)],
        );
        let entropy = || -> Box<dyn acklab_rudp::protect::Entropy> {
            Box::new(Rng::named(1, "server"))
        };
        let greeter = Box::new(PlainGreeter);
        let server = Listener::new(Time::ZERO, config, entropy, greeter, Limits::default());
        let keys = [Unprotected::default(); 2];
        Self { now: Time::ZERO, client, server, handle: None, way: Vec::new(), keys }
    }

    /// The connection of an end, if there is one.
    fn end(&mut self, end: usize) -> Option<&mut Connection> {
        match end {
            0 => Some(&mut self.client),
            _ => self.server.connection(self.handle?),
        }
    }

    fn arrive(&mut self, to: usize, addrs: PathAddrs, mut datagram: Vec<u8>) {
        match to {
            0 => self.client.handle_datagram(self.now, addrs, Ecn::NotEct, &mut datagram),
            _ => self.server.handle_datagram(self.now, addrs, Ecn::NotEct, &mut datagram),
        }
    }

    /// After everything: what wants to leave leaves, and no deadline stands that has passed.
    fn settle(&mut self) {
        while self.client.poll_event().is_some() {}
        while let Some((handle, _)) = self.server.poll_event() {
            self.handle = Some(handle);
        }
        let mut buffer = [0; 1 << 14];
        for end in [0, 1] {
            let mut sent = 0;
            loop {
                let transmit = match end {
                    0 => self.client.poll_transmit(self.now, &mut buffer, 8),
                    _ => self.server.poll_transmit(self.now, &mut buffer, 8),
                };
                let Some(transmit) = transmit else { break };
                assert!(transmit.segment > 0 && transmit.segment <= 1472);
                assert!(transmit.len <= buffer.len());
                sent += 1;
                assert!(sent < STORM, "a storm from end {end}");
                for datagram in buffer[..transmit.len].chunks(transmit.segment) {
                    self.way.push((1 - end, turned(transmit.addrs), datagram.to_vec()));
                }
            }
            let due =
                if end == 0 { self.client.poll_timeout() } else { self.server.poll_timeout() };
            if due.is_some_and(|due| due <= self.now) {
                match end {
                    0 => self.client.handle_timeout(self.now),
                    _ => self.server.handle_timeout(self.now),
                }
                while match end {
                    0 => self.client.poll_transmit(self.now, &mut buffer, 8),
                    _ => self.server.poll_transmit(self.now, &mut buffer, 8),
                }
                .is_some()
                {}
                let due =
                    if end == 0 { self.client.poll_timeout() } else { self.server.poll_timeout() };
                assert!(due.is_none_or(|due| due > self.now), "end {end}: a deadline that stays");
            }
        }
        let excess = self.way.len().saturating_sub(ON_THE_WAY);
        self.way.drain(..excess);
    }

    /// An authentic packet with any frames.
    fn forge(&mut self, to: usize, choices: &mut Choices<'_>) {
        let Some(connection) = self.end(to).map(|connection| connection.id()) else { return };
        let (lane, id) = (choices.byte(), choices.byte());
        let number = u64::from(choices.byte()) * 8 + 500;
        let len = usize::from(choices.byte()) * 4;
        let frames = choices.bytes(len);
        let mut packet = vec![0; SHORT_HEADER];
        let header =
            ShortHeader { key_phase: false, connection, path: id % 8, number32: number as u32 };
        header.emit(&mut Writer::new(&mut packet));
        packet.extend_from_slice(&frames);
        packet.extend_from_slice(&[0; TAG]);
        let (header, body) = packet.split_at_mut(SHORT_HEADER);
        self.keys[to].seal(id % 8, number, header, body);
        let addrs = if to == 0 { path(lane) } else { turned(path(lane)) };
        self.arrive(to, addrs, packet);
    }

    fn use_content(&mut self, end: usize, choices: &mut Choices<'_>) {
        let now = self.now;
        let (what, argument) = (choices.byte(), u64::from(choices.byte()));
        let Some(connection) = self.end(end) else { return };
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
                drop(content.send_parcel(now, bytes, kind, (argument % 8) as u8, argument > 128));
            }
            7 => drop(content.receive_parcel()),
            8 => drop(connection.add_path(now, path(argument as u8))),
            _ => connection.remove_path(now, (argument % 8) as u8),
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let operation = choices.byte();
        let end = usize::from(operation >> 7);
        match operation % 16 {
            0 => self.now = self.now + Span::from_micros(u64::from(choices.byte()) * 100),
            1 => self.now = self.now + Span::from_millis(u64::from(choices.byte()) * 10),
            2..=6 if !self.way.is_empty() => {
                let (to, addrs, datagram) = self.way.remove(0);
                self.arrive(to, addrs, datagram);
            }
            7 if !self.way.is_empty() => {
                let at = usize::from(choices.byte()) % self.way.len();
                let (to, addrs, datagram) = self.way[at].clone();
                self.arrive(to, addrs, datagram);
            }
            8 if !self.way.is_empty() => {
                let at = usize::from(choices.byte()) % self.way.len();
                self.way.remove(at);
            }
            9 if !self.way.is_empty() => {
                let at = usize::from(choices.byte()) % self.way.len();
                let (to, addrs, mut datagram) = self.way.remove(at);
                let bit = usize::from(choices.byte()) * 31 % (8 * datagram.len());
                datagram[bit / 8] ^= 1 << (bit % 8);
                self.arrive(to, addrs, datagram);
            }
            10 => self.forge(end, choices),
            11 => {
                let len = usize::from(choices.byte()) * 6;
                let bytes = choices.bytes(len);
                self.arrive(end, if end == 0 { path(0) } else { turned(path(0)) }, bytes);
            }
            12 if !self.way.is_empty() => {
                // From another address.
                let (to, mut addrs, datagram) = self.way.remove(0);
                addrs.remote.set_port(u16::from(choices.byte()));
                self.arrive(to, addrs, datagram);
            }
            13 if choices.byte() == 0 => {
                let now = self.now;
                if let Some(connection) = self.end(end) {
                    connection.close(now, Code::Done, "enough");
                }
            }
            _ => self.use_content(end, choices),
        }
        if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
            self.client.handle_timeout(self.now);
        }
        if self.server.poll_timeout().is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        self.settle();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    let mut choices = Choices(bytes);
    world.settle();
    // The handshake first: without it most operations come to nothing.
    for _ in 0..6 {
        world.now = world.now + Span::from_millis(5);
        for (to, addrs, datagram) in std::mem::take(&mut world.way) {
            world.arrive(to, addrs, datagram);
        }
        world.settle();
    }
    let mut steps = 0;
    while !choices.0.is_empty() && steps < 2000 {
        world.step(&mut choices);
        steps += 1;
    }
});
