//! Goal: whole connections with passphrases and keys: they open, carry and change keys for those who have
//! the secret; they fail with one clear reason at both ends for those who have not; and whoever sits on
//! the wire can read, alter, repeat and invent packets and gets nothing.
//! Method: a client and a server of the core in virtual time with this crate's greeters, and a middleman
//! who is handed every datagram and decides what goes on.

use std::path::Path;

use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_net::rudp::keys::Identity;
use acklab_net::rudp::noise::{KeysClient, KeysServer, PassphraseClient, PassphraseServer};
use acklab_net::rudp::peers::KnownPeers;
use acklab_rudp::protect::{ClientGreeter, PlainGreeter, ServerGreeter};
use acklab_rudp::{
    Code, Config, Connection, ContentEvent, Datagram, Event, Limits, Listener, PathAddrs,
};

/// What becomes of a datagram: each (delay, bytes) arrives.
type Fate = Vec<(Span, Vec<u8>)>;

const DELAY: Span = Span::from_millis(10);

struct Wire {
    client: Connection,
    server: Listener,
    now: Time,
    /// (arrival, whether at the server, bytes).
    flying: Vec<(Time, bool, Vec<u8>)>,
    client_events: Vec<Event>,
    server_events: Vec<Event>,
    written: usize,
    stream: Option<u64>,
    received: Vec<u8>,
    delivered: bool,
    /// Turns since time last moved.
    stuck: u32,
}

fn addrs() -> PathAddrs {
    let address = |text: &str| text.parse().expect("an address");
    PathAddrs { local: address("192.0.2.1:7000"), remote: address("192.0.2.2:7000") }
}

impl Wire {
    fn new(
        config: &Config,
        client: Box<dyn ClientGreeter>,
        server: Box<dyn ServerGreeter>,
    ) -> Self {
        let entropy = Box::new(Rng::named(1, "client"));
        let client = Connection::connect(Time::ZERO, config.clone(), entropy, client, &[addrs()]);
        let mut made = 0;
        let entropy = move || {
            made += 1;
            Box::new(Rng::named(made, "server")) as Box<_>
        };
        let server = Listener::new(Time::ZERO, config.clone(), entropy, server, Limits::default());
        Self {
            client,
            server,
            now: Time::ZERO,
            flying: Vec::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            written: 0,
            stream: None,
            received: Vec::new(),
            delivered: false,
            stuck: 0,
        }
    }

    /// Runs for `span` more; `middleman` sees each datagram and whether it goes to the server.
    fn run(&mut self, span: Span, middleman: &mut dyn FnMut(bool, &[u8]) -> Fate) {
        let end = self.now + span;
        loop {
            self.tell();
            self.transmit(middleman);
            let arrival = self.flying.iter().map(|flying| flying.0).min();
            let next = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
            let next = next.into_iter().flatten().min().map_or(end, |at| at.max(self.now));
            if next >= end {
                self.now = end;
                return;
            }
            self.stuck = if next > self.now { 0 } else { self.stuck + 1 };
            assert!(self.stuck < 10_000, "time stands still at {:?}", self.now);
            self.now = next;
            self.arrive();
            self.client.handle_timeout(self.now, &mut Sink::default());
            self.server.handle_timeout(self.now, &mut Sink::default());
        }
    }

    fn transmit(&mut self, middleman: &mut dyn FnMut(bool, &[u8]) -> Fate) {
        let now = self.now;
        for to_server in [true, false] {
            while let Some(batch) = if to_server {
                self.client.poll_transmit(now, &mut Sink::default())
            } else {
                self.server.poll_transmit(now, &mut Sink::default())
            } {
                for datagram in batch.datagrams() {
                    for (delay, bytes) in middleman(to_server, datagram) {
                        self.flying.push((now + delay, to_server, bytes));
                    }
                }
            }
        }
    }

    fn arrive(&mut self) {
        let now = self.now;
        let (due, later) = self.flying.drain(..).partition(|flying| flying.0 <= now);
        self.flying = later;
        let due: Vec<(Time, bool, Vec<u8>)> = due;
        for (_, at_server, mut bytes) in due {
            let PathAddrs { local, remote } = addrs();
            let (ecn, bytes, sink) = (Ecn::NotEct, &mut bytes[..], &mut Sink::default());
            if at_server {
                let addrs = PathAddrs { local: remote, remote: local };
                self.server.handle_packet(now, Datagram { addrs, ecn, bytes }, sink);
            } else {
                self.client.handle_packet(now, Datagram { addrs: addrs(), ecn, bytes }, sink);
            }
        }
    }

    fn tell(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.delivered |= matches!(event, Event::Content(ContentEvent::StreamDelivered { .. }));
            self.client_events.push(event);
        }
        while let Some((handle, event)) = self.server.poll_event() {
            if let Event::Content(ContentEvent::Readable { stream }) = &event
                && let Some(connection) = self.server.connection(handle)
            {
                while let Some(block) = connection.content().read(self.now, *stream) {
                    self.received.extend_from_slice(&block);
                }
            }
            self.server_events.push(event);
        }
    }

    /// Writes `file` as the connection has room for it, until it is delivered.
    fn carry(&mut self, file: &[u8], limit: Span, middleman: &mut dyn FnMut(bool, &[u8]) -> Fate) {
        let end = self.now + limit;
        while !self.delivered && self.now < end {
            if self.client.is_open() {
                let now = self.now;
                let content = self.client.content();
                let open = || content.open_stream(now, false).expect("a stream");
                let stream = *self.stream.get_or_insert_with(open);
                // So slowly that keys may change on the way.
                if self.written < file.len() && content.room(stream) > 0 {
                    let until = (self.written + 5_000).min(file.len());
                    content.write(stream, file[self.written..until].to_vec());
                    self.written = until;
                    if until == file.len() {
                        content.finish(stream);
                    }
                }
            }
            self.run(Span::from_millis(5), middleman);
        }
    }
}

fn honest(_: bool, datagram: &[u8]) -> Fate {
    vec![(DELAY, datagram.to_vec())]
}

fn file() -> Vec<u8> {
    (0..1_000_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect()
}

fn with_passphrases(
    client: &str,
    server: &str,
) -> (Box<dyn ClientGreeter>, Box<dyn ServerGreeter>) {
    (
        Box::new(PassphraseClient::new(client.parse().expect("a passphrase"))),
        Box::new(PassphraseServer::new(server.parse().expect("a passphrase"))),
    )
}

/// The server knows `known` alone; the client wants to talk to `wanted`.
fn with_keys(
    client: &Identity,
    wanted: &Identity,
    server: &Identity,
    known: &Identity,
) -> (Box<dyn ClientGreeter>, Box<dyn ServerGreeter>) {
    let line = format!("alice {}", known.public());
    let peers = KnownPeers::parse(&line, Path::new("peers")).expect("one good line");
    (
        Box::new(KeysClient::new(client.clone(), wanted.public())),
        Box::new(KeysServer::new(server.clone(), peers)),
    )
}

fn both_modes() -> [(Box<dyn ClientGreeter>, Box<dyn ServerGreeter>); 2] {
    let (alice, bob) = (Identity::generate(), Identity::generate());
    [with_passphrases("bada-kilo", "bada-kilo"), with_keys(&alice, &bob, &bob, &alice)]
}

/// The codes with which an end was told that it is over.
fn closed(events: &[Event]) -> Vec<Code> {
    let code = |event: &Event| match event {
        Event::Closed { code, .. } => Some(*code),
        _ => None,
    };
    events.iter().filter_map(code).collect()
}

fn opened(events: &[Event]) -> Vec<Option<[u8; 32]>> {
    let peer = |event: &Event| match event {
        Event::Opened { peer } => Some(*peer),
        _ => None,
    };
    events.iter().filter_map(peer).collect()
}

#[test]
fn each_end_is_told_who_the_other_is() {
    let (alice, bob) = (Identity::generate(), Identity::generate());
    let (client, server) = with_keys(&alice, &bob, &bob, &alice);
    let mut wire = Wire::new(&Config::default(), client, server);
    wire.run(Span::from_millis(200), &mut honest);
    assert_eq!(opened(&wire.client_events), [Some(bob.public().0)]);
    assert_eq!(opened(&wire.server_events), [Some(alice.public().0)]);

    let (client, server) = with_passphrases("bada-kilo", " bada-kilo ");
    let mut wire = Wire::new(&Config::default(), client, server);
    wire.run(Span::from_millis(200), &mut honest);
    assert_eq!(opened(&wire.client_events), [None]);
    assert_eq!(opened(&wire.server_events), [None]);
}

#[test]
fn a_file_arrives_whole_across_many_key_updates_losses_and_packets_that_overtake_each_other() {
    for (client, server) in both_modes() {
        let config = Config { key_packets: 20, ..Config::default() };
        let mut wire = Wire::new(&config, client, server);
        let mut dice = Rng::named(1, "middleman");
        let mut phases = [(0_u8, 0_u32); 2];
        let mut middleman = |to_server: bool, datagram: &[u8]| {
            if datagram[0] & 0x80 == 0 {
                let (last, changes) = &mut phases[usize::from(to_server)];
                *changes += u32::from(*last != datagram[0]);
                *last = datagram[0];
            }
            match dice.next_u64() % 100 {
                0..5 => Vec::new(),
                more => vec![(DELAY + Span::from_millis(more % 8), datagram.to_vec())],
            }
        };
        wire.carry(&file(), Span::from_secs(60), &mut middleman);
        assert!(wire.delivered && wire.received == file(), "{:?}", wire.client_events);
        let [(_, down), (_, up)] = phases;
        assert!(up >= 3 && down >= 1, "keys changed {up} times upwards, {down} downwards");
    }
}

#[test]
fn the_wrong_secret_is_one_clear_reason_at_both_ends() {
    let (alice, bob, mallory) = (Identity::generate(), Identity::generate(), Identity::generate());
    let plain = || Box::new(PlainGreeter);
    let (keys_client, keys_server) = with_keys(&alice, &bob, &bob, &alice);
    let (passphrase_client, passphrase_server) = with_passphrases("a", "a");
    for ((client, server), at_client, at_server) in [
        (with_passphrases("bada-kilo", "bada-kila"), Code::WrongSecret, vec![Code::WrongSecret]),
        // Who does not know the server's key gets no answer.
        (with_keys(&alice, &mallory, &bob, &alice), Code::Idle, vec![]),
        (with_keys(&mallory, &bob, &bob, &alice), Code::UnknownPeer, vec![]),
        ((keys_client, passphrase_server), Code::Mode, vec![]),
        ((passphrase_client, keys_server), Code::Mode, vec![]),
        ((plain() as Box<_>, with_passphrases("a", "a").1), Code::Mode, vec![]),
        ((with_passphrases("a", "a").0, plain() as Box<_>), Code::Mode, vec![]),
    ] {
        let mut wire = Wire::new(&Config::default(), client, server);
        wire.run(Span::from_secs(15), &mut honest);
        assert_eq!(closed(&wire.client_events), [at_client]);
        assert_eq!(opened(&wire.client_events), []);
        assert_eq!(opened(&wire.server_events), [], "no key was shown");
        assert_eq!(closed(&wire.server_events), at_server);
        assert!(wire.server.is_idle());
    }
}

#[test]
fn answers_under_altered_headers_that_come_first_do_not_keep_the_true_one_out() {
    for which in [1_usize, 5, 8, 12, 13, 20, 21, 22, 24, 25, 60] {
        for (client, server) in both_modes() {
            let mut wire = Wire::new(&Config::default(), client, server);
            let mut middleman = |to_server: bool, datagram: &[u8]| {
                let mut fate = honest(to_server, datagram);
                if !to_server && datagram[0] == 0x81 {
                    let mut altered = datagram.to_vec();
                    altered[which] ^= 1;
                    fate.insert(0, (Span::from_millis(5), altered));
                }
                fate
            };
            wire.carry(&file(), Span::from_secs(30), &mut middleman);
            assert!(wire.delivered, "byte {which}: {:?}", wire.client_events);
            assert_eq!(wire.received, file());
        }
    }
}

#[test]
fn a_first_greeting_that_was_altered_on_the_way_does_not_keep_its_copies_out() {
    // A byte of: the ciphers offered, the session, the share, the Noise message and the parameters.
    for place in [22, 70, 90, 120, 140] {
        for (client, server) in both_modes() {
            let mut wire = Wire::new(&Config::default(), client, server);
            let mut first = true;
            let mut middleman = |to_server: bool, datagram: &[u8]| {
                let mut bytes = datagram.to_vec();
                if to_server && std::mem::take(&mut first) {
                    bytes[place] ^= 2;
                }
                vec![(DELAY, bytes)]
            };
            wire.run(Span::from_millis(500), &mut middleman);
            assert_eq!(
                opened(&wire.client_events).len(),
                1,
                "byte {place}: {:?} {:?}",
                wire.client_events,
                wire.server
            );
            wire.run(Span::from_millis(2000), &mut honest);
            assert_eq!(closed(&wire.client_events), [], "byte {place}");
        }
    }
}

#[test]
fn whoever_repeats_and_alters_everything_changes_nothing() {
    for (client, server) in both_modes() {
        let mut wire = Wire::new(&Config::default(), client, server);
        let mut dice = Rng::named(2, "middleman");
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut middleman = |to_server: bool, datagram: &[u8]| {
            let mut fate = honest(to_server, datagram);
            fate.push((DELAY + Span::from_millis(dice.next_u64() % 50), datagram.to_vec()));
            if datagram[0] & 0x80 == 0 {
                let mut altered = datagram.to_vec();
                let bit = dice.next_u64() as usize % (8 * altered.len());
                altered[bit / 8] ^= 1 << (bit % 8);
                fate.insert(0, (DELAY, altered));
            }
            if seen.len() < 1000 {
                seen.push(datagram.to_vec());
            }
            // An old one, also in the other direction.
            let old = seen[dice.next_u64() as usize % seen.len()].clone();
            fate.push((DELAY, old));
            fate
        };
        wire.carry(&file(), Span::from_secs(30), &mut middleman);
        assert!(wire.delivered && wire.received == file(), "{:?}", wire.client_events);
        assert_eq!(opened(&wire.server_events).len(), 1);
    }
}

#[test]
fn nothing_of_what_is_sent_can_be_read_on_the_wire() {
    for (client, server) in both_modes() {
        let mut wire = Wire::new(&Config::default(), client, server);
        let text = b"a text that no third host sees, ever ".repeat(1000);
        let mut leaked = 0;
        let mut middleman = |to_server: bool, datagram: &[u8]| {
            leaked += datagram.windows(12).filter(|part| *part == b"no third hos").count();
            honest(to_server, datagram)
        };
        wire.carry(&text, Span::from_secs(10), &mut middleman);
        assert_eq!(wire.received, text);
        assert_eq!(leaked, 0);
    }
}

/// The server loses its state, and another process of the same takes its place.
fn restart(wire: &mut Wire, server: Box<dyn ServerGreeter>) {
    let entropy = || Box::new(Rng::named(99, "server again")) as Box<_>;
    wire.server = Listener::new(wire.now, Config::default(), entropy, server, Limits::default());
}

fn ended(wire: &Wire) -> Option<(Code, &str)> {
    wire.client_events.iter().find_map(|event| match event {
        Event::Closed { code, text, by_peer: false } => Some((*code, text.as_str())),
        _ => None,
    })
}

#[test]
fn a_server_with_keys_that_lost_its_state_says_so_at_once_and_to_its_clients_alone() {
    let [alice, bob] = [Identity::generate(), Identity::generate()];
    let greeters = || with_keys(&alice, &bob, &bob, &alice);
    let (client, server) = greeters();
    let mut wire = Wire::new(&Config::default(), client, server);
    let mut last = Vec::new();
    wire.carry(&file(), Span::from_millis(300), &mut |to_server, datagram| {
        if to_server {
            last = datagram.to_vec();
        }
        honest(to_server, datagram)
    });
    // Whoever knows the ids and not the token ends nothing.
    let mut forged = [&[0x84][..], b"AKL\x02", &[0; 8], &[0; 8], &[7; 16]].concat();
    forged[13..21].copy_from_slice(&last[1..9]);
    wire.flying.push((wire.now, false, forged));
    wire.run(Span::from_millis(50), &mut honest);
    assert_eq!(ended(&wire), None);
    restart(&mut wire, greeters().1);
    // A scan hears nothing: other ids, and packets that are no longer than the answer.
    let mut heard = 0;
    for (id, len) in [(5_u64, 100), (u64::MAX, 1200), (u64::from_be_bytes([1; 8]), 60)] {
        let mut scan = vec![0; len];
        scan[1..9].copy_from_slice(&id.to_be_bytes());
        wire.flying.push((wire.now, true, scan));
    }
    wire.flying.push((wire.now, true, last[..37].to_vec()));
    let none = &mut |to_server: bool, _: &[u8]| {
        heard += usize::from(!to_server);
        Fate::new()
    };
    wire.run(Span::from_millis(5), none);
    assert_eq!(heard, 0);
    wire.carry(&file(), Span::from_millis(150), &mut honest);
    assert_eq!(ended(&wire), Some((Code::Idle, "the peer has lost the connection")));
}

#[test]
fn a_server_with_a_passphrase_that_lost_its_state_says_nothing() {
    let greeters = || with_passphrases("able-baker-cat-dog", "able-baker-cat-dog");
    let (client, server) = greeters();
    let mut wire = Wire::new(&Config::default(), client, server);
    wire.carry(&file(), Span::from_millis(300), &mut honest);
    restart(&mut wire, greeters().1);
    let mut heard = 0;
    wire.run(Span::from_secs(2), &mut |to_server, datagram| {
        heard += usize::from(!to_server);
        honest(to_server, datagram)
    });
    assert_eq!((heard, ended(&wire)), (0, None));
}
