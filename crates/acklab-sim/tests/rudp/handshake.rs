//! Opening and ending a connection, and what greetings of unauthenticated hosts cost a server.

use std::sync::{Arc, Mutex, MutexGuard};

use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::Sink;
use acklab_core::packet::{Ecn, Packet};
use acklab_core::rng::Rng;
use acklab_core::time::Time;
use acklab_rudp::protect::{Entropy, PlainGreeter};
use acklab_rudp::wire::{Long, LongBody, Parameters, Writer};
use acklab_rudp::{
    Code, Config, Connection, Datagram, Event, Limits, Listener, PathAddrs, PathState,
};

use crate::support::{Lane, Net, Use, lane, lane_with_outages, ms, nodes, path};

/// What the two ends told until now.
#[derive(Default)]
struct Told {
    client: Vec<(Time, Event)>,
    server: Vec<(Time, Event)>,
}

fn opened(events: &[(Time, Event)]) -> Option<Time> {
    events.iter().find(|(_, event)| matches!(event, Event::Opened { .. })).map(|told| told.0)
}

fn closed(events: &[(Time, Event)]) -> Option<(Time, Code, bool)> {
    events.iter().find_map(|(at, event)| match event {
        Event::Closed { code, by_peer, .. } => Some((*at, *code, *by_peer)),
        _ => None,
    })
}

/// Two ends that tell and do nothing.
struct Meeting {
    net: Net,
    told: Arc<Mutex<Told>>,
}

impl Meeting {
    fn new() -> Self {
        Self::of(lane(0.0), &Config::default())
    }

    fn of(lane: Lane, config: &Config) -> Self {
        Self::over(&[lane], config)
    }

    /// The client knows the first of the paths.
    fn over(lanes: &[Lane], config: &Config) -> Self {
        let told = Arc::new(Mutex::new(Told::default()));
        let (client_told, server_told) = (told.clone(), told.clone());
        let users = (
            Use::by(move |now, client: &mut Connection| {
                let events = std::iter::from_fn(|| client.poll_event()).map(|event| (now, event));
                client_told.lock().expect("no panic").client.extend(events);
            }),
            Use::by(move |now, server: &mut Listener| {
                let events = std::iter::from_fn(|| server.poll_event()).map(|told| (now, told.1));
                server_told.lock().expect("no panic").server.extend(events);
            }),
        );
        Self { net: Net::new(1, lanes, 1, config, users), told }
    }

    fn run(&mut self, until: u64) -> MutexGuard<'_, Told> {
        self.net.run(ms(until), || false);
        self.told.lock().expect("no panic")
    }
}

#[test]
fn a_connection_is_open_after_one_round_trip_at_the_client_and_one_and_a_half_at_the_server() {
    let mut meeting = Meeting::new();
    let told = meeting.run(200);
    let client = opened(&told.client).expect("open");
    let server = opened(&told.server).expect("open");
    assert!(client < ms(42) && server < ms(63), "{client:?} {server:?}");
}

#[test]
fn losing_any_one_or_two_datagrams_of_the_handshake_costs_less_than_half_a_second() {
    for first in 0..6 {
        for second in first..6 {
            let mut meeting = Meeting::new();
            let mut seen = 0;
            meeting.net.set_meddler(move |_, _, _| {
                seen += 1;
                seen - 1 != first && seen - 1 != second
            });
            let told = meeting.run(1000);
            let both = [opened(&told.client), opened(&told.server)];
            let late = both.iter().any(|at| at.is_none_or(|at| at > ms(500)));
            assert!(!late, "without {first} and {second}: {both:?}");
        }
    }
}

#[test]
fn a_peer_is_found_at_whichever_of_its_addresses_answers_and_the_others_are_no_paths() {
    let dead = lane_with_outages(lane(0.0), &[(0, 20_000)]);
    for (lanes, found) in [([dead.clone(), lane(0.0)], 1), ([lane(0.0), dead], 0)] {
        let mut meeting = Meeting::over(&lanes, &Config::default());
        meeting.net.client(|_, client| client.greet_also(path(1)));
        let client = opened(&meeting.run(3000).client).expect("open");
        assert!(client < ms(140), "{client:?}");
        let paths: Vec<_> = meeting.net.client(|_, client| {
            client.path_stats().map(|it| (it.id, it.addrs, it.state)).collect()
        });
        assert_eq!(paths, [(0, path(found), PathState::Active)]);
    }
}

#[test]
fn a_client_that_is_not_answered_says_so_after_ten_seconds() {
    let dead = lane_with_outages(lane(0.0), &[(0, 20_000)]);
    let mut meeting = Meeting::of(dead, &Config::default());
    let told = meeting.run(20_000);
    assert_eq!(closed(&told.client), Some((ms(10_000), Code::Idle, false)));
    assert!(told.server.is_empty());
}

#[test]
fn both_ends_are_told_of_the_end_though_most_of_its_copies_are_lost() {
    for lost in 0..3 {
        let mut meeting = Meeting::new();
        drop(meeting.run(500));
        let mut seen = 0;
        meeting.net.set_meddler(move |_, end, _| {
            seen += usize::from(end == 0);
            end != 0 || seen > lost
        });
        let text = "all \u{1b}[1mdelivered";
        meeting.net.client(|now, client| client.close(now, Code::Done, text));
        drop(meeting.run(3000));
        assert!(meeting.net.client(|_, client| client.is_closed()));
        assert!(meeting.net.server(|_, server| server.is_idle()));
        let told = meeting.run(3000);
        let (_, code, by_peer) = closed(&told.server).expect("told");
        assert_eq!((code, by_peer), (Code::Done, true));
        let text = told.server.iter().find_map(|(_, event)| match event {
            Event::Closed { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(text, Some("all [1mdelivered"), "nothing that moves a terminal");
    }
}

#[test]
fn a_silent_connection_ends_after_its_idle_time_unless_it_is_kept_alive() {
    for (keep_alive, ends) in [(false, true), (true, false)] {
        let parameters = Parameters { idle_ms: 2000, ..Parameters::default() };
        let config = Config { keep_alive, parameters, ..Config::default() };
        let mut meeting = Meeting::of(lane(0.0), &config);
        let told = meeting.run(20_000);
        assert_eq!(closed(&told.client).is_some(), ends);
        assert_eq!(closed(&told.server).is_some(), ends);
    }
}

#[test]
fn a_packet_of_another_version_is_answered_with_a_refusal_and_garbage_with_nothing() {
    let mut meeting = Meeting::new();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let heard = answers.clone();
    let [client, _] = nodes(0);
    let listen = move |_, packet: &mut Packet, bytes: Option<&mut Vec<u8>>| {
        if packet.dst.port == ATTACKER {
            heard.lock().expect("no panic").extend(bytes.cloned());
        }
        true
    };
    meeting.net.world.put_middlebox(client, Box::new(listen));
    let mut other = initial(7);
    other[4] = 9;
    meeting.net.inject(0, [(ATTACKER, other)]);
    let mut rng = Rng::named(1, "test/garbage");
    for end in [0, 1] {
        let garbage =
            (0..2000).map(|len| (ATTACKER, (0..len).map(|_| rng.next_u64() as u8).collect()));
        meeting.net.inject(end, garbage);
    }
    assert!(opened(&meeting.run(200).server).is_some());
    let answers = answers.lock().expect("no panic");
    let [refusal] = &answers[..] else { panic!("{} answers", answers.len()) };
    let refused = Long::parse(refusal).expect("a long packet");
    let code = Code::Version as u8;
    assert_eq!((refused.destination, refused.body), (7, LongBody::Refuse { code, text: b"" }));
}

/// The port of a sender without a connection.
const ATTACKER: u16 = 5;

/// An INITIAL without protection.
fn initial(source: u64) -> Vec<u8> {
    let mut bytes = vec![0; 1200];
    let body = LongBody::Initial { mode: 255, ciphers: 0, copy: 0, token: None, message: &[] };
    Long { destination: 0, source, body }.emit(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn a_flood_of_greetings_takes_bounded_memory_and_honest_clients_still_come_in() {
    let mut meeting = Meeting::new();
    meeting.net.inject(0, (0..100_000).map(|n| (1000 + (n % 50_000) as u16, initial(n + 1))));
    assert!(meeting.net.server(|_, server| server.connections().count()) <= 256);
    let at = opened(&meeting.run(1000).client).expect("open");
    assert!(at < ms(150), "one round trip more: {at:?}");
    let first = (Time::ZERO, Event::Path { id: 0, state: PathState::Active });
    assert!(meeting.run(12_000).client.contains(&first));
    let left = meeting.net.server(|_, server| server.connections().count());
    assert_eq!(left, 1, "the flood is forgotten");
}

#[test]
fn a_client_that_never_shows_that_it_has_the_keys_is_told_of_when_its_time_is_over() {
    let (config, sink) = (Config::default(), &mut Sink::default());
    let entropy = Box::new(Rng::named(1, "client"));
    let addrs = path(0);
    let mut client =
        Connection::connect(Time::ZERO, config.clone(), entropy, Box::new(PlainGreeter), &[addrs]);
    let entropy = || -> Box<dyn Entropy> { Box::new(Rng::named(1, "server")) };
    let (greeter, limits) = (Box::new(PlainGreeter), Limits::default());
    let mut server = Listener::new(Time::ZERO, config, entropy, greeter, limits);
    let mut bytes = client.poll_transmit(Time::ZERO, sink).expect("an INITIAL").bytes.to_vec();
    let addrs = PathAddrs { local: addrs.remote, remote: addrs.local };
    let datagram = Datagram { addrs, ecn: Ecn::NotEct, bytes: &mut bytes };
    server.handle_packet(Time::ZERO, datagram, sink);
    assert!(server.poll_transmit(Time::ZERO, sink).is_some() && server.poll_event().is_none());
    server.handle_timeout(ms(10_000), sink);
    let told = server.poll_event().map(|(_, event)| event);
    assert!(matches!(told, Some(Event::Closed { code: Code::Idle, .. })), "{told:?}");
    assert!(server.poll_event().is_none() && server.is_idle());
}

#[test]
fn a_handshake_that_the_application_ends_is_pending_no_longer() {
    let sink = &mut Sink::default();
    let entropy = || -> Box<dyn Entropy> { Box::new(Rng::named(1, "server")) };
    let limits = Limits { pending: 1, ..Limits::default() };
    let greeter = Box::new(PlainGreeter);
    let mut server = Listener::new(Time::ZERO, Config::default(), entropy, greeter, limits);
    let PathAddrs { local: remote, remote: local } = path(0);
    for source in 1..4 {
        let mut bytes = initial(source);
        let datagram =
            Datagram { addrs: PathAddrs { local, remote }, ecn: Ecn::NotEct, bytes: &mut bytes };
        server.handle_packet(Time::ZERO, datagram, sink);
        assert_eq!(server.connections().count(), 1, "greeting {source} is answered");
        for (_, connection) in server.connections() {
            connection.close(Time::ZERO, Code::Stopped, "");
        }
        while server.poll_event().is_some() {}
        assert!(server.is_idle());
    }
}
