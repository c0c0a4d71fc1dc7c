//! Opening and ending a connection, and what it costs a server that strangers knock.

use std::ops::ControlFlow;

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_rudp::wire::{Long, LongBody, Parameters, Writer};
use acklab_rudp::{Code, Config, Connection, Event, Listener, PathState};
use acklab_sim::road::Road;

use crate::support::{lane, road, road_of};

/// What the two ends told until then.
#[derive(Default)]
struct Told {
    client: Vec<(Time, Event)>,
    server: Vec<(Time, Event)>,
}

impl Told {
    fn opened(events: &[(Time, Event)]) -> Option<Time> {
        events.iter().find(|(_, event)| matches!(event, Event::Opened { .. })).map(|told| told.0)
    }

    fn closed(events: &[(Time, Event)]) -> Option<(Time, Code, bool)> {
        events.iter().find_map(|(at, event)| match event {
            Event::Closed { code, by_peer, .. } => Some((*at, *code, *by_peer)),
            _ => None,
        })
    }
}

fn listen(road: &mut Road, told: &mut Told, until_ms: u64) {
    let until = Time::ZERO + Span::from_millis(until_ms);
    road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
        while let Some(event) = client.poll_event() {
            told.client.push((now, event));
        }
        while let Some((_, event)) = server.poll_event() {
            told.server.push((now, event));
        }
        ControlFlow::Continue(())
    });
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn a_connection_is_open_after_one_round_trip_at_the_client_and_one_and_a_half_at_the_server() {
    let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
    listen(&mut road, &mut told, 200);
    let client = Told::opened(&told.client).expect("open");
    let server = Told::opened(&told.server).expect("open");
    assert!(client < ms(42) && server < ms(63), "{client:?} {server:?}");
}

#[test]
fn losing_any_one_or_two_datagrams_of_the_handshake_costs_less_than_half_a_second() {
    for first in 0..6 {
        for second in first..6 {
            let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
            let mut seen = 0;
            road.set_meddler(Box::new(move |_, _, _| {
                seen += 1;
                seen - 1 != first && seen - 1 != second
            }));
            listen(&mut road, &mut told, 1000);
            let both = [Told::opened(&told.client), Told::opened(&told.server)];
            let late = both.iter().any(|at| at.is_none_or(|at| at > ms(500)));
            assert!(!late, "without {first} and {second}: {both:?}");
        }
    }
}

#[test]
fn a_client_that_nobody_answers_says_so_after_ten_seconds() {
    let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
    road.set_up(0, false);
    listen(&mut road, &mut told, 20_000);
    assert_eq!(Told::closed(&told.client), Some((ms(10_000), Code::Idle, false)));
    assert!(told.server.is_empty());
}

#[test]
fn both_ends_are_told_of_the_end_though_most_of_its_copies_are_lost() {
    for lost in 0..3 {
        let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
        listen(&mut road, &mut told, 500);
        let now = road.now();
        road.client.close(now, Code::Done, "all \u{1b}[1mdelivered");
        let mut seen = 0;
        road.set_meddler(Box::new(move |_, end, _| {
            seen += usize::from(end == 0);
            end != 0 || seen > lost
        }));
        listen(&mut road, &mut told, 3000);
        let (_, code, by_peer) = Told::closed(&told.server).expect("told");
        assert_eq!((code, by_peer), (Code::Done, true));
        assert!(road.client.is_closed() && road.server.is_idle());
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
        let (mut road, mut told) = (road_of(1, &[lane(0.0)], &config), Told::default());
        listen(&mut road, &mut told, 20_000);
        assert_eq!(Told::closed(&told.client).is_some(), ends);
        assert_eq!(Told::closed(&told.server).is_some(), ends);
    }
}

#[test]
fn a_packet_of_another_version_is_answered_with_a_refusal_and_garbage_with_nothing() {
    let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
    let mut other = initial(7);
    other[4] = 9;
    road.inject(0, 5, other);
    let mut rng = Rng::named(1, "test/garbage");
    for len in 0..2000 {
        road.inject(0, 5, (0..len).map(|_| rng.next_u64() as u8).collect());
        road.inject(1, 5, (0..len).map(|_| rng.next_u64() as u8).collect());
    }
    let mut buffer = [0; 2000];
    let reply = road.server.poll_transmit(Time::ZERO, &mut buffer, 1).expect("a refusal");
    let refused = Long::parse(&buffer[..reply.len]).expect("a long packet");
    let code = Code::Version as u8;
    assert_eq!((refused.destination, refused.body), (7, LongBody::Refuse { code, text: b"" }));
    assert_eq!(road.server.poll_transmit(Time::ZERO, &mut buffer, 1), None);
    listen(&mut road, &mut told, 200);
    assert!(Told::opened(&told.server).is_some());
}

/// An INITIAL without protection.
fn initial(source: u64) -> Vec<u8> {
    let mut bytes = vec![0; 1200];
    let body = LongBody::Initial { mode: 255, ciphers: 0, copy: 0, token: None, message: &[] };
    Long { destination: 0, source, body }.emit(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn a_flood_of_greetings_takes_bounded_memory_and_honest_clients_still_come_in() {
    let (mut road, mut told) = (road(1, &[lane(0.0)]), Told::default());
    for n in 0..100_000_u64 {
        road.inject(0, 1000 + (n % 50_000) as u16, initial(n + 1));
    }
    assert!(road.server.connections().count() <= 256);
    listen(&mut road, &mut told, 1000);
    let opened = Told::opened(&told.client).expect("open");
    assert!(opened < ms(150), "one round trip more: {opened:?}");
    listen(&mut road, &mut told, 12_000);
    assert_eq!(road.server.connections().count(), 1, "the flood is forgotten");
    assert!(told.client.contains(&(Time::ZERO, Event::Path { id: 0, state: PathState::Active })));
}
