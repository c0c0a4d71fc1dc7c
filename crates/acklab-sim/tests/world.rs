//! Goal: a world carries connections between hosts, in the same way every time.
//! Method: a chain of three nodes with TCP at both ends, watched by an observer that keeps all.

use acklab_core::event::{DropReason, Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{
    App, Bulk, EXCHANGE_MS, MessageSource, Reader, ReaderModel, ReplyingServer, RequestClient,
    RequestPattern, Schedule,
};
use acklab_sim::{End, Observer, ResultHash, Topology, World};
use acklab_tcp::Config;

#[derive(Default)]
struct Diary {
    events: Vec<Event>,
    passed: Vec<(Time, NodeId, u32)>,
    hash: ResultHash,
}

impl Observer for Diary {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        self.events.push(*event);
    }

    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.passed.push((now, node, packet.size()));
    }
}

const CLIENT: Addr = Addr { node: NodeId(0), port: 50_000 };
const SERVER: Addr = Addr { node: NodeId(2), port: 80 };

fn end(addr: Addr, app: impl App + 'static) -> End {
    End { addr, config: Config::default(), isn: Seq(7), app: Box::new(app) }
}

/// A chain client - router - server, 5 ms and `loss` each way and hop, run until it is quiet.
fn run(loss: f64, client: impl App + 'static, server: impl App + 'static) -> World<Diary> {
    let mut topology = Topology::default();
    let nodes: [NodeId; 3] = std::array::from_fn(|_| topology.node());
    let rate = BitRate::from_bps(100_000_000).expect("positive");
    let hop = LinkConfig::new(rate, Span::from_millis(5)).with_loss(loss);
    topology.duplex(nodes[0], nodes[1], &hop);
    topology.duplex(nodes[1], nodes[2], &hop);
    let mut world = World::new(&topology, 3, Interest::ALL, Diary::default());
    world.tap(nodes[0]);
    world.tap(nodes[1]);
    world.connect(end(CLIENT, client), end(SERVER, server));
    world.run_until(Time::ZERO + Span::from_secs(3600));
    world
}

fn pattern() -> RequestPattern {
    RequestPattern {
        exchanges: 5,
        header: 10,
        body: 129,
        gap: Span::ZERO,
        reply: 2000,
        service: Span::from_millis(3),
        think: Span::from_millis(50),
    }
}

fn read_bytes(world: &World<Diary>) -> Vec<u64> {
    world.connections().map(acklab_tcp::Connection::total_read).collect()
}

#[test]
fn every_byte_written_is_read_also_over_a_lossy_path() {
    for loss in [0.0, 0.02] {
        let world = run(loss, Bulk::new(1_000_000, 8192), Reader::new(ReaderModel::Promptly, 1000));
        assert_eq!(read_bytes(&world), [1_000_000, 0], "loss {loss}");
        let delivered = world.observer().events.iter();
        let delivered =
            delivered.filter(|e| matches!(e.kind, EventKind::MessageDelivered { .. })).count();
        assert_eq!(delivered, 1000);
        let lost = world
            .observer()
            .events
            .iter()
            .filter(|e| matches!(e.kind, EventKind::Dropped { reason: DropReason::Loss, .. }));
        assert_eq!(lost.count() > 0, loss > 0.0);
    }
}

#[test]
fn readers_of_every_model_that_read_get_everything() {
    let models = [
        ReaderModel::Promptly,
        ReaderModel::Every(Span::from_millis(70)),
        ReaderModel::After(Span::from_millis(30)),
    ];
    for model in models {
        let world = run(0.0, Bulk::new(200_000, 500), Reader::new(model, 500));
        assert_eq!(read_bytes(&world)[0], 200_000, "{model}");
    }
    let world = run(0.0, Bulk::new(200_000, 500), Reader::new(ReaderModel::Never, 500));
    assert_eq!(read_bytes(&world)[0], 0);
}

#[test]
fn an_exchange_takes_its_round_trips_and_pauses() {
    let pattern = RequestPattern { body: 0, ..pattern() };
    let world = run(0.0, RequestClient::new(pattern, CLIENT.node), ReplyingServer::new(pattern));
    let events = world.observer().events.iter();
    let times: Vec<f64> = events
        .filter_map(|event| match event.kind {
            EventKind::App { code: EXCHANGE_MS, value, .. } => Some(value),
            _ => None,
        })
        .collect();
    assert_eq!(times.len(), 5);
    // 20 ms round trip, 3 ms of service, and less than 1 ms to send 2000 bytes over two hops.
    assert!(times.iter().all(|ms| (23.0..24.0).contains(ms)), "{times:?}");
}

#[test]
fn two_writes_of_a_request_leave_as_two_segments() {
    let pattern = RequestPattern { exchanges: 1, ..pattern() };
    let world = run(0.0, RequestClient::new(pattern, CLIENT.node), ReplyingServer::new(pattern));
    let events = world.observer().events.iter();
    let lengths: Vec<u32> = events
        .filter_map(|event| match event.kind {
            EventKind::SegmentSent { flow, len, .. } if flow.local == CLIENT && len > 0 => {
                Some(len)
            }
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [10, 129]);
}

#[test]
fn a_source_keeps_its_schedule_by_its_own_clock() {
    let schedule = Schedule {
        count: 100,
        bytes: 100,
        period: Span::from_millis(100),
        jitter: Span::ZERO,
        skew_ppm: 1000.0,
        phase: Span::from_millis(7),
    };
    let source = MessageSource::new(schedule, Rng::named(1, "app/sender"));
    let world = run(0.0, source, Reader::new(ReaderModel::Promptly, 100));
    let events = world.observer().events.iter();
    let written: Vec<Time> = events
        .filter(|event| matches!(event.kind, EventKind::MessageWritten { .. }))
        .map(|event| event.time)
        .collect();
    assert_eq!(written.len(), 100);
    let gap = written[1].since(written[0]);
    assert_eq!(gap, Span::from_micros(100_100), "1000 ppm slow");
    assert!(written.windows(2).all(|pair| pair[1].since(pair[0]) == gap));
}

#[test]
fn a_tap_sees_each_packet_once_as_it_passes() {
    let world = run(0.0, Bulk::new(50_000, 50_000), Reader::new(ReaderModel::Promptly, 1000));
    let passed = &world.observer().passed;
    assert!(passed.is_sorted_by_key(|(time, ..)| *time));
    let at = |node: u16| passed.iter().filter(|(_, n, _)| *n == NodeId(node)).count();
    // What the client sends and receives crosses the router; nothing is lost here.
    assert!(at(1) > 35 + 20, "35 segments of data, and ACKs: {}", at(1));
    assert_eq!((at(0), at(2)), (at(1), 0), "the client and the router are tapped");
}

#[test]
fn the_same_world_has_the_same_history_and_another_seed_another() {
    let history = |loss| {
        let world = run(loss, Bulk::new(100_000, 1000), Reader::new(ReaderModel::Promptly, 1000));
        (world.observer().hash.finish(), world.events(), world.now())
    };
    assert_eq!(history(0.01), history(0.01));
    assert_ne!(history(0.01), history(0.05));
}

#[test]
fn a_packet_for_nobody_is_dropped_and_told() {
    let mut topology = Topology::default();
    let [a, b] = std::array::from_fn(|_| topology.node());
    topology.duplex(a, b, &LinkConfig::default());
    let mut world = World::new(&topology, 1, Interest::ALL, Diary::default());
    let nowhere = Addr { node: NodeId(9), port: 80 };
    let reader = || Reader::new(ReaderModel::Promptly, 1);
    let at_home = Addr { node: b, port: 80 };
    world.connect(end(CLIENT, reader()), end(at_home, reader()));
    world.run_until(Time::ZERO + Span::from_secs(1));
    let dropped = |world: &World<Diary>| {
        let events = world.observer().events.iter();
        events.filter(|e| matches!(e.kind, EventKind::Dropped { .. })).count()
    };
    assert_eq!(dropped(&world), 0);
    world.send(a, Packet { src: CLIENT, dst: nowhere, ..datagram() });
    world.send(a, Packet { src: CLIENT, dst: Addr { port: 81, ..at_home }, ..datagram() });
    world.run_until(Time::ZERO + Span::from_secs(2));
    assert_eq!(dropped(&world), 2, "no route, and no socket");
}

fn datagram() -> Packet {
    use acklab_core::packet::{Body, Ecn};
    Packet {
        src: CLIENT,
        dst: SERVER,
        ecn: Ecn::NotEct,
        returned: false,
        body: Body::Datagram { len: 100, words: [0; 2] },
    }
}
