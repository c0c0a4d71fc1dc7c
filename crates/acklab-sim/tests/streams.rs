//! Goal: applications run over reliable UDP as over TCP, through the same routers, and the event stream
//! tells of both alike.
//! Method: a chain of three nodes, lossy or not, with an application at both ends; an observer keeps all.

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::{Duplication, LinkConfig, Packets, Share};
use acklab_core::packet::{Addr, Body, NodeId};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::{Config, Connection, Listener};
use acklab_sim::app::{
    App, Bulk, EXCHANGE_MS, MessageSource, Reader, ReaderModel, ReplyingServer, RequestClient,
    RequestPattern, Schedule,
};
use acklab_sim::rudp::{AppUser, End, Host, pair};
use acklab_sim::{Observer, PeerId, ResultHash, Topology, World};

#[derive(Default)]
struct Diary {
    events: Vec<Event>,
    hash: ResultHash,
}

impl Observer for Diary {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        self.events.push(*event);
    }
}

impl Diary {
    fn count(&self, which: impl Fn(&EventKind) -> bool) -> usize {
        self.events.iter().filter(|event| which(&event.kind)).count()
    }
}

const CLIENT: Addr = Addr { node: NodeId(0), port: 50_000 };
const SERVER: Addr = Addr { node: NodeId(2), port: 80 };

/// 5 ms each way and hop at 100 Mbit/s.
fn hop(loss: f64) -> LinkConfig {
    let rate = BitRate::from_bps(100_000_000).expect("positive");
    LinkConfig::new(rate, Span::from_millis(5)).with_loss(loss)
}

struct Run {
    world: World<Diary>,
    ends: [PeerId; 2],
}

impl Run {
    fn new(hop: &LinkConfig, client: Box<dyn App>, server: Box<dyn App>) -> Self {
        let mut topology = Topology::default();
        let nodes: [NodeId; 3] = std::array::from_fn(|_| topology.node());
        topology.duplex(nodes[0], nodes[1], hop);
        topology.duplex(nodes[1], nodes[2], hop);
        let mut world = World::new(&topology, 3, Interest::ALL, Diary::default());
        let end = |addr, app| End { addr, config: Config::default(), app };
        let (client, server) = pair(Time::ZERO, 3, end(CLIENT, client), end(SERVER, server));
        let server = world.attach(SERVER, Box::new(server));
        let client = world.attach(CLIENT, Box::new(client));
        Self { world, ends: [client, server] }
    }

    fn run(mut self, seconds: u64) -> Self {
        self.world.run_until(Time::ZERO + Span::from_secs(seconds));
        self
    }

    /// Bytes that client and server have read.
    fn read_bytes(&self) -> [u64; 2] {
        let client = self.world.peer::<Host<Connection, AppUser>>(self.ends[0]).expect("a client");
        let server = self.world.peer::<Host<Listener, AppUser>>(self.ends[1]).expect("a server");
        [client.user.total_read(), server.user.total_read()]
    }
}

fn promptly(bytes: u32) -> Box<dyn App> {
    Box::new(Reader::new(ReaderModel::Promptly, bytes))
}

#[test]
fn every_byte_written_is_read_also_over_a_lossy_path_and_the_end_is_orderly() {
    for loss in [0.0, 0.05] {
        let mut run =
            Run::new(&hop(loss), Box::new(Bulk::new(1_000_000, 8192)), promptly(1000)).run(3600);
        assert_eq!(run.read_bytes(), [0, 1_000_000], "loss {loss}");
        let diary = run.world.observer();
        assert_eq!(diary.count(|kind| matches!(kind, EventKind::MessageDelivered { .. })), 1000);
        assert_eq!(diary.count(|kind| matches!(kind, EventKind::MessageWritten { .. })), 123);
        assert_eq!(diary.count(|kind| matches!(kind, EventKind::MessageSent { .. })), 123);
        let lost = diary.count(|kind| matches!(kind, EventKind::Dropped { .. }));
        let told = diary.count(|kind| matches!(kind, EventKind::Loss { .. }));
        assert_eq!((lost > 0, told > 0), (loss > 0.0, loss > 0.0), "{lost} {told}");
        let end = diary.events.last().expect("events").time;
        assert!(end < Time::ZERO + Span::from_secs(10), "it ended at {end}");
        assert!(run.world.store().is_empty(), "{} datagrams kept", run.world.store().len());
    }
}

#[test]
fn the_event_stream_tells_of_every_datagram_and_of_what_was_acknowledged() {
    let run = Run::new(&hop(0.02), Box::new(Bulk::new(500_000, 500_000)), promptly(1000)).run(60);
    let diary = run.world.observer();
    let (mut fresh, mut again, mut acked) = (0, 0, 0);
    for event in &diary.events {
        match event.kind {
            EventKind::SegmentSent { flow, len, retransmission, .. } if flow.local == CLIENT => {
                let sum = if retransmission { &mut again } else { &mut fresh };
                *sum += u64::from(len);
            }
            EventKind::Congestion { flow, acked: now, in_flight, cwnd, .. }
                if flow.local == CLIENT =>
            {
                assert!(now >= acked && cwnd > 0, "{event:?}");
                assert!(in_flight <= 2 * cwnd.max(20_000), "{event:?}");
                acked = now;
            }
            _ => {}
        }
    }
    // Bytes that share a packet with some that are sent again count as sent again.
    assert!((480_000..=500_000).contains(&fresh) && fresh + again > 500_000, "{fresh} {again}");
    assert_eq!(acked, 500_001, "all of it, and one for the handshake");
    let acks = diary.count(|kind| {
        matches!(kind, EventKind::AckSent { flow, delay, .. }
            if flow.local == SERVER && *delay <= Span::from_millis(8))
    });
    assert!(acks > 10, "{acks}");
}

#[test]
fn what_links_copy_arrives_twice_and_is_kept_until_then() {
    let mut copying = hop(0.05);
    let share = Share::independent(0.3);
    copying.impairments.duplication = Some(Duplication { share, packets: Packets::All });
    let mut run = Run::new(&copying, Box::new(Bulk::new(300_000, 1000)), promptly(1000)).run(60);
    assert_eq!(run.read_bytes(), [0, 300_000]);
    let copies = run.world.observer().count(|kind| {
        matches!(kind, EventKind::Copied { packet, .. }
        if matches!(packet.body, Body::Stored { .. }))
    });
    assert!(copies > 60, "{copies}");
    assert!(run.world.store().is_empty(), "{} datagrams kept", run.world.store().len());
}

#[test]
fn an_exchange_takes_its_round_trips_and_pauses() {
    let pattern = RequestPattern {
        exchanges: 5,
        header: 10,
        body: 0,
        gap: Span::ZERO,
        reply: 2000,
        service: Span::from_millis(3),
        think: Span::from_millis(50),
    };
    let client = Box::new(RequestClient::new(pattern, CLIENT.node));
    let run = Run::new(&hop(0.0), client, Box::new(ReplyingServer::new(pattern))).run(60);
    let events = run.world.observer().events.iter();
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
fn messages_are_told_when_they_are_written_when_they_leave_and_when_they_are_read() {
    let schedule = Schedule {
        count: 100,
        bytes: 100,
        period: Span::from_millis(100),
        jitter: Span::ZERO,
        skew_ppm: 0.0,
        phase: Span::from_millis(7),
    };
    let source = MessageSource::new(schedule, acklab_core::rng::Rng::named(1, "app/sender"));
    let run = Run::new(&hop(0.0), Box::new(source), promptly(100)).run(60);
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for event in &run.world.observer().events {
        match event.kind {
            EventKind::MessageWritten { flow, bytes: 100, .. } if flow.local == CLIENT => {
                written.push(event.time);
            }
            EventKind::MessageSent { written_at, .. } => assert_eq!(event.time, written_at),
            EventKind::MessageDelivered { flow, .. } if flow.local == SERVER => {
                read.push(event.time);
            }
            _ => {}
        }
    }
    assert_eq!((written.len(), read.len()), (100, 100));
    for (written, read) in written.iter().zip(read) {
        let delay = read.since(*written);
        assert!((10.0..10.1).contains(&delay.as_millis_f64()), "{delay}");
    }
}

#[test]
fn the_same_world_has_the_same_history_and_another_seed_another() {
    let history = |loss| {
        let run = Run::new(&hop(loss), Box::new(Bulk::new(300_000, 1000)), promptly(1000)).run(60);
        (run.world.observer().hash.finish(), run.world.events(), run.world.now())
    };
    assert_eq!(history(0.03), history(0.03));
    assert_ne!(history(0.03), history(0.04));
}
