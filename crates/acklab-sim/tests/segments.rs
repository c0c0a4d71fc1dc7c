//! Goal: the host of acklab-host carries connections in a world as acklab-tcp does, beside it and in the same way every
//! time.
//! Method: a client and a server 10 ms apart over a lossy path, each on either stack, watched by an observer that keeps
//! all; what is written is counted, and acklab-tcp's figures stand beside.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::event::{AckReason, DropReason, Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::queue::{Discipline, threshold};
use acklab_core::segment::Flags;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{
    App, Bulk, EXCHANGE_MS, MessageSource, Reader, ReaderModel, ReplyingServer, RequestClient,
    RequestPattern, Schedule, Stream,
};
use acklab_sim::{End, Observer, ResultHash, Topology, World};
use acklab_tcp::{AckRequests, Config, Nagle, Stack, System};

#[derive(Default)]
struct Diary {
    events: Vec<Event>,
    /// When, payload and flags of what left the client.
    sent: Vec<(Time, u32, Flags)>,
    hash: ResultHash,
}

impl Observer for Diary {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        self.events.push(*event);
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        if let Body::Tcp(tcp) = &packet.body
            && packet.src == CLIENT
        {
            assert!(tcp.header_len() + tcp.payload_len <= 1480, "{tcp:?}");
            self.sent.push((now, tcp.payload_len, tcp.flags));
        }
    }
}

const CLIENT: Addr = Addr { node: NodeId(0), port: 50_000 };
const SERVER: Addr = Addr { node: NodeId(1), port: 80 };

fn config(stack: Stack) -> Config {
    Config { stack, ..System::Linux.config() }
}

/// Two nodes 10 ms apart.
fn path(loss: f64) -> Topology {
    let mut topology = Topology::default();
    let [one, other] = std::array::from_fn(|_| topology.node());
    let rate = BitRate::from_bps(100_000_000).expect("positive");
    let link = LinkConfig::new(rate, Span::from_millis(10)).with_loss(loss);
    topology.duplex(one, other, &link);
    topology
}

/// A client and a server 10 ms apart, run until nothing happens any more.
fn run(
    configs: [Config; 2],
    loss: f64,
    client: impl App + 'static,
    server: impl App + 'static,
) -> World<Diary> {
    run_from(Seq(u32::MAX - 5000), configs, loss, client, server)
}

/// The same where both ends begin to count at `isn`.
fn run_from(
    isn: Seq,
    configs: [Config; 2],
    loss: f64,
    client: impl App + 'static,
    server: impl App + 'static,
) -> World<Diary> {
    let mut world = World::new(&path(loss), 3, Interest::ALL, Diary::default());
    world.tap(CLIENT.node);
    let [of_client, of_server] = configs;
    let end = |addr, config, app| End { addr, config, isn, app };
    let server = end(SERVER, of_server, Box::new(server) as Box<dyn App>);
    world.connect(end(CLIENT, of_client, Box::new(client)), server);
    world.run_until(Time::ZERO + Span::from_secs(3600));
    world
}

fn read_by_server<O: Observer>(world: &World<O>) -> u64 {
    world.streams().next().map_or(0, Stream::total_read)
}

fn reader(bytes: u32) -> Reader {
    Reader::new(ReaderModel::Promptly, bytes)
}

const EACH: [[Stack; 2]; 4] = [
    [Stack::Stream, Stack::Stream],
    [Stack::Segments, Stack::Segments],
    [Stack::Segments, Stack::Stream],
    [Stack::Stream, Stack::Segments],
];

#[test]
fn every_byte_arrives_whichever_stack_is_at_either_end() {
    for stacks in EACH {
        for loss in [0.0, 0.02] {
            let run = || run(stacks.map(config), loss, Bulk::new(600_000, 20_000), reader(1));
            let world = run();
            assert_eq!(read_by_server(&world), 600_000, "{stacks:?} {loss}");
            assert_eq!(world.observer().hash, run().observer().hash, "{stacks:?} {loss}");
            let count = |wanted: fn(&EventKind) -> bool| {
                world.observer().events.iter().filter(|event| wanted(&event.kind)).count()
            };
            let written = count(|kind| matches!(kind, EventKind::MessageWritten { .. }));
            let sent = count(|kind| matches!(kind, EventKind::MessageSent { .. }));
            assert!(written >= 30 && sent == written, "{stacks:?} {loss}: {written} {sent}");
        }
    }
}

#[test]
fn what_is_told_of_messages_and_segments_is_what_left() {
    let schedule = Schedule {
        count: 200,
        bytes: 100,
        period: Span::from_millis(3),
        jitter: Span::ZERO,
        skew_ppm: 0.0,
        phase: Span::from_millis(40),
    };
    let rng = || acklab_core::rng::Rng::named(1, "app");
    for nagle in [Nagle::Minshall, Nagle::Off] {
        let told = EACH.map(|stacks| {
            let configs = stacks.map(|stack| Config { nagle, ..config(stack) });
            let world = run(configs, 0.0, MessageSource::new(schedule, rng()), reader(100));
            let diary = world.observer();
            let count = |wanted: &dyn Fn(&EventKind) -> bool| {
                diary.events.iter().filter(|event| wanted(&event.kind)).count()
            };
            let data = diary.sent.iter().filter(|(_, len, _)| *len > 0).count();
            let of_client = count(&|kind| {
                matches!(kind, EventKind::SegmentSent { flow, len: 1.., .. } if flow.local == CLIENT)
            });
            assert_eq!(of_client, data, "{stacks:?}");
            let sent = count(&|kind| matches!(kind, EventKind::MessageSent { .. }));
            let delivered = count(&|kind| matches!(kind, EventKind::MessageDelivered { .. }));
            assert_eq!((sent, delivered), (200, 200), "{stacks:?}");
            let held = count(&|kind| matches!(kind, EventKind::Held { .. }));
            assert_eq!(held > 0, nagle == Nagle::Minshall, "{stacks:?}");
            assert_eq!(held, count(&|kind| matches!(kind, EventKind::Released { .. })));
            data
        });
        // One sender's decisions, whichever of the two makes them.
        assert!(told.iter().all(|data| data.abs_diff(told[0]) <= told[0] / 20), "{told:?}");
    }
}

fn requests(exchanges: u64) -> RequestPattern {
    RequestPattern {
        exchanges,
        header: 10,
        body: 129,
        gap: Span::ZERO,
        reply: 2000,
        service: Span::from_millis(3),
        think: Span::from_millis(50),
    }
}

#[test]
fn requests_are_answered_and_the_connection_ends() {
    let pattern = requests(5);
    for stacks in EACH {
        let client = RequestClient::new(pattern, CLIENT.node);
        let configs = stacks.map(|stack| Config { nagle: Nagle::Off, ..config(stack) });
        let world = run(configs, 0.0, client, ReplyingServer::new(pattern));
        let done = world.observer().events.iter().filter_map(|event| match event.kind {
            EventKind::App { code: EXCHANGE_MS, value, .. } => Some(value),
            _ => None,
        });
        let done: Vec<f64> = done.collect();
        assert_eq!(done.len(), 5, "{stacks:?}");
        assert!(done.iter().all(|ms| (23.0..30.0).contains(ms)), "{stacks:?} {done:?}");
        let fins = world.observer().sent.iter().filter(|(.., flags)| flags.has(Flags::FIN));
        assert_eq!(fins.count(), 1, "{stacks:?}");
    }
}

#[test]
fn what_the_end_that_waited_sends_is_sent_for_the_first_time_wherever_it_begins_to_count() {
    let pattern = requests(3);
    for isn in [0, 1000, 1 << 30, (1 << 31) - 1000, 1 << 31, u32::MAX] {
        let configs = [Stack::Segments; 2].map(config);
        let client = RequestClient::new(pattern, CLIENT.node);
        let world = run_from(Seq(isn), configs, 0.0, client, ReplyingServer::new(pattern));
        let sent = world.observer().events.iter().filter_map(|event| match event.kind {
            EventKind::SegmentSent { flow, len: 1.., retransmission, .. }
                if flow.local == SERVER =>
            {
                Some(retransmission)
            }
            _ => None,
        });
        let sent: Vec<bool> = sent.collect();
        assert!(sent.len() >= 6 && !sent.contains(&true), "{isn}: {sent:?}");
    }
}

#[test]
fn a_receive_buffer_is_the_window_that_is_announced() {
    for stack in [Stack::Stream, Stack::Segments] {
        let receive_buffer = 200_000;
        let server = Config { receive_buffer, receive_tuning: false, ..config(stack) };
        let reader = Reader::new(ReaderModel::Never, 1);
        let mut world = World::new(&path(0.0), 3, Interest::ALL, Diary::default());
        world.tap(CLIENT.node);
        let end = |addr, config, app| End { addr, config, isn: Seq(9), app };
        let client: Box<dyn App> = Box::new(Bulk::new(3_000_000, 100_000));
        let client = end(CLIENT, config(stack), client);
        world.connect(client, end(SERVER, server, Box::new(reader)));
        world.run_until(Time::ZERO + Span::from_secs(2));
        let sent: u32 = world.observer().sent.iter().map(|(_, len, _)| len).sum();
        assert!(sent.abs_diff(receive_buffer) < receive_buffer / 20, "{stack:?}: {sent}");
    }
}

/// Bytes that so many seconds of bulk bring over 10 Mbit/s and 40 ms behind `queue`, the ACKs of what came in order, and
/// the events of that.
fn bulk(seconds: u64, config: &Config, queue: &Discipline) -> (u64, usize, Diary) {
    let mut topology = Topology::default();
    let [one, other] = std::array::from_fn(|_| topology.node());
    let rate = BitRate::from_bps(10_000_000).expect("positive");
    let link = LinkConfig::new(rate, Span::from_millis(20)).with_queue(queue.clone());
    topology.duplex(one, other, &link);
    let mut world = World::new(&topology, 3, Interest::ALL, Diary::default());
    world.tap(CLIENT.node);
    let end = |addr, app| End { addr, config: config.clone(), isn: Seq(77), app };
    let client: Box<dyn App> = Box::new(Bulk::new(1_000_000_000, 100_000));
    world.connect(end(CLIENT, client), end(SERVER, Box::new(reader(1))));
    world.run_until(Time::ZERO + Span::from_secs(seconds));
    let diary = world.observer();
    let acks = diary.events.iter().filter(|event| match event.kind {
        EventKind::AckSent { flow, reason, .. } => {
            flow.local == SERVER && reason != AckReason::OutOfOrder
        }
        _ => false,
    });
    let acks = acks.count();
    (read_by_server(&world), acks, world.into_observer())
}

/// The share by which two differ, of the first.
fn apart(one: f64, other: f64) -> f64 {
    (other - one).abs() / one
}

#[test]
fn every_congestion_control_carries_as_much_behind_the_hosts_window() {
    for name in Algorithm::NAMES {
        let congestion: Algorithm = name.parse().expect("its own name");
        let ecn = congestion.needs_marks();
        let routers = match *name {
            // The paper's router marks while there is room.
            "encn" => vec!["encn"],
            // The switch that sends packets back.
            "edctcp" => vec!["edctcp", "drop-tail"],
            _ if ecn => vec!["threshold", "codel"],
            _ => vec!["drop-tail"],
        };
        for router in routers {
            let queue = Discipline::by_name(router, 60).expect("known");
            let [stream, segments] = [Stack::Stream, Stack::Segments].map(|stack| {
                let config = Config { congestion: congestion.clone(), ecn, ..config(stack) };
                bulk(6, &config, &queue).0 as f64
            });
            assert!(apart(stream, segments) < 0.1, "{name}, {router}: {stream} {segments}");
        }
    }
}

#[test]
fn every_ack_policy_acknowledges_as_often_in_the_hosts_receiver() {
    let queue = Discipline::by_name("drop-tail", 200).expect("known");
    for name in Profile::NAMES {
        let ack: Profile = name.parse().expect("its own name");
        let [stream, segments] = [Stack::Stream, Stack::Segments].map(|stack| {
            let (read, acks, _) = bulk(6, &Config { ack: ack.clone(), ..config(stack) }, &queue);
            acks as f64 / read as f64
        });
        assert!(apart(stream, segments) < 0.15, "{name}: {stream} {segments}");
    }
}

/// TARR: one ACK for as many segments as eight in a window leave; without loss AckCC asks for nothing.
#[test]
fn a_sender_that_asks_for_acks_gets_as_few_from_the_host() {
    let queue = Discipline::by_name("drop-tail", 200).expect("known");
    // Linux's quick ACKs while a window grows are no policy's, and each stack's window grows in its own way.
    // And one of ack-frequency's is for ten segments anyway.
    for (ack, near, rarer) in [
        ("linux", 0.25, 2.0),
        ("delayed", 0.15, 2.0),
        ("tick", 0.15, 2.0),
        ("ack-frequency", 0.15, 1.0),
    ] {
        let ack: Profile = ack.parse().expect("its own name");
        let share = |stack, ack_requests| {
            let config = Config { ack: ack.clone(), ack_requests, ..config(stack) };
            let (read, acks, _) = bulk(6, &config, &queue);
            acks as f64 / read as f64
        };
        let [stream, segments] =
            [Stack::Stream, Stack::Segments].map(|stack| share(stack, AckRequests::Tarr));
        assert!(apart(stream, segments) < near, "{ack:?}: {stream} {segments}");
        let without = share(Stack::Segments, AckRequests::Off);
        assert!(segments * rarer < without, "{ack:?}: {segments} asked for, {without} without");
        if rarer > 1.0 {
            // ACKs for more segments than were asked for would pass for lost ones.
            let careful = share(Stack::Segments, AckRequests::AckCc);
            assert!(apart(without, careful) < 0.001, "{ack:?}: {without} {careful}");
        }
    }
}

/// RFC 5690: where ACKs are lost the sender asks for rarer ones.
#[test]
fn lost_acks_are_asked_for_less_often_of_the_host() {
    let share = |stack, ack_requests| {
        let mut topology = Topology::default();
        let [one, other] = std::array::from_fn(|_| topology.node());
        let rate = BitRate::from_bps(10_000_000).expect("positive");
        let link = LinkConfig::new(rate, Span::from_millis(20));
        topology.link(one, other, link.clone());
        topology.link(other, one, link.with_loss(0.2));
        let mut world = World::new(&topology, 3, Interest::ALL, Diary::default());
        let ack = Profile::delayed(2, Span::from_millis(40));
        let config = Config { ack, ack_requests, ..config(stack) };
        let end = |addr, app| End { addr, config: config.clone(), isn: Seq(77), app };
        let client: Box<dyn App> = Box::new(Bulk::new(1_000_000_000, 100_000));
        world.connect(end(CLIENT, client), end(SERVER, Box::new(reader(1))));
        world.run_until(Time::ZERO + Span::from_secs(10));
        let read = read_by_server(&world);
        let acks = world.observer().events.iter().filter(
            |event| matches!(event.kind, EventKind::AckSent { flow, .. } if flow.local == SERVER),
        );
        acks.count() as f64 / read as f64
    };
    let [stream, segments] =
        [Stack::Stream, Stack::Segments].map(|stack| share(stack, AckRequests::AckCc));
    let without = share(Stack::Segments, AckRequests::Off);
    assert!(segments * 2.0 < without, "{segments} asked for, {without} without");
    assert!(apart(stream, segments) < 0.3, "{stream} {segments}");
}

/// E-DCTCP: what the switch sends back goes again after its wait, and recovery never begins for it.
#[test]
fn what_a_switch_sends_back_is_no_loss_to_the_host() {
    // Full before it marks.
    let room = threshold::Options { threshold: 30.0, ..threshold::Options::packets(25) };
    let queue = Discipline::Edctcp(room);
    let congestion: Algorithm = "edctcp".parse().expect("known");
    let [stream, segments] = [Stack::Stream, Stack::Segments].map(|stack| {
        let config = Config { congestion: congestion.clone(), ecn: true, ..config(stack) };
        let (read, _, diary) = bulk(20, &config, &queue);
        let count = |of: fn(&EventKind) -> bool| {
            diary.events.iter().filter(|event| of(&event.kind)).count()
        };
        let returned =
            count(|kind| matches!(kind, EventKind::Dropped { reason: DropReason::Returned, .. }));
        let mended = count(|kind| matches!(kind, EventKind::Loss { timeout: false, .. }));
        let timeouts = count(|kind| matches!(kind, EventKind::Loss { timeout: true, .. }));
        assert!(returned > 10, "{stack:?}: {returned} came back");
        // A wait may outlast the time-out.
        assert_eq!(
            (mended, timeouts * 20 > returned),
            (0, false),
            "{stack:?}: {timeouts} time-outs"
        );
        read as f64
    });
    assert!(apart(stream, segments) < 0.1, "{stream} {segments}");
}

/// RFC 8257 section 3.3: the window falls by the share of marks, which keeps the queue at the threshold without loss.
#[test]
fn marks_that_come_back_keep_dctcp_from_filling_the_queue() {
    let queue = Discipline::Threshold(threshold::Options {
        threshold: 20.0,
        ..threshold::Options::packets(300)
    });
    let congestion: Algorithm = "dctcp".parse().expect("known");
    let config = Config { congestion, ecn: true, ..config(Stack::Segments) };
    let (read, _, diary) = bulk(20, &config, &queue);
    let lost = diary.events.iter().filter(|event| matches!(event.kind, EventKind::Loss { .. }));
    assert_eq!(lost.count(), 0);
    let longest = diary.events.iter().filter_map(|event| match event.kind {
        EventKind::Congestion { in_flight, .. } if event.time > Time::ZERO + Span::from_secs(2) => {
            Some(in_flight)
        }
        _ => None,
    });
    // 50 kB are on the way over 40 ms; 20 packets wait at the threshold, and some come before the marks do.
    let longest = longest.max().expect("a window");
    let marks = diary.events.iter().filter(|event| matches!(event.kind, EventKind::Marked { .. }));
    let share = marks.count() as f64 / (read as f64 / 1448.0);
    assert!(longest < 50_000 + 40 * 1448, "{longest}");
    assert!(read > 23_500_000, "{read}");
    assert!(share < 0.25, "{share} of the packets were marked");
}

/// The times at which the client's first SYNs leave, and payloads of what follows.
fn unanswered(config: Config) -> Vec<f64> {
    let world = run([config.clone(), config], 1.0, Bulk::new(1000, 1000), reader(1));
    world
        .observer()
        .sent
        .iter()
        .take(3)
        .map(|(at, ..)| at.since(Time::ZERO).as_secs_f64())
        .collect()
}

/// RFC 6298 section 2.1: the first time-out, then twice as long; Linux begins to double after four
/// (net.ipv4.tcp_syn_linear_timeouts).
#[test]
fn the_first_time_out_is_what_is_asked_for() {
    for initial in [1_u64, 3] {
        for (stack, second) in [(Stack::Stream, 3), (Stack::Segments, 2)] {
            let mut config = config(stack);
            config.rto.initial = Span::from_secs(initial);
            let expected = [0, initial, second * initial].map(|seconds| seconds as f64);
            assert_eq!(unanswered(config), expected, "{stack:?}");
        }
    }
}

/// RFC 896: the tail of a write longer than a segment waits for the ACK of what came before it, a round trip of 20 ms;
/// Minshall's variant lets it go.
#[test]
fn the_tail_of_a_message_waits_under_the_classic_rule_and_not_under_minshalls() {
    let schedule = Schedule {
        count: 2,
        bytes: 2000,
        period: Span::from_secs(1),
        jitter: Span::ZERO,
        skew_ppm: 0.0,
        phase: Span::from_millis(40),
    };
    for (nagle, waits) in [(Nagle::Classic, 20), (Nagle::Minshall, 0)] {
        for stack in [Stack::Stream, Stack::Segments] {
            let config = Config { nagle, ack: Profile::EverySegment, ..config(stack) };
            let source = MessageSource::new(schedule, acklab_core::rng::Rng::named(1, "app"));
            let world = run([config.clone(), config], 0.0, source, reader(2000));
            let mut data = world.observer().sent.iter().filter(|(_, len, _)| *len > 0);
            let [(first, 1448, _), (second, 552, _)] =
                [data.next(), data.next()].map(Option::unwrap)
            else {
                panic!("{nagle} {stack:?}");
            };
            let waited = second.since(*first).as_millis_f64();
            assert!((waited - f64::from(waits)).abs() < 1.0, "{nagle} {stack:?}: {waited}");
        }
    }
}

/// Bytes that reached the server marked, and bytes that its ACKs with ECE cover.
#[derive(Default)]
struct Echoes {
    marked: u64,
    echoed: u64,
    acks: u64,
    last: Option<Seq>,
}

impl Observer for Echoes {
    fn on_event(&mut self, _event: &Event) {}

    fn on_packet(&mut self, _now: Time, _node: NodeId, packet: &Packet) {
        let Body::Tcp(tcp) = &packet.body else { return };
        if packet.dst == SERVER && packet.ecn == Ecn::Ce {
            self.marked += u64::from(tcp.payload_len);
        }
        if packet.src == SERVER {
            let covers = self.last.replace(tcp.ack).map_or(0, |last| tcp.ack.distance(last));
            self.acks += u64::from(covers > 0);
            if tcp.flags.has(Flags::ECE) && !tcp.flags.has(Flags::SYN) {
                self.echoed += covers as u64;
            }
        }
    }
}

/// RFC 8257 section 3.2: an ACK covers marked packets or others, never both, although ACKs are delayed.
#[test]
fn every_marked_byte_and_no_other_is_echoed_where_each_mark_counts() {
    for (cc, router) in [("dctcp", "threshold"), ("jersey", "threshold"), ("encn", "encn")] {
        for stack in [Stack::Stream, Stack::Segments] {
            let congestion: Algorithm = cc.parse().expect("known");
            let config = Config { congestion, ecn: true, ..config(stack) };
            let queue = Discipline::by_name(router, 300).expect("known");
            let mut topology = Topology::default();
            let [one, other] = std::array::from_fn(|_| topology.node());
            let rate = BitRate::from_bps(10_000_000).expect("positive");
            let link = LinkConfig::new(rate, Span::from_millis(5)).with_queue(queue);
            topology.duplex(one, other, &link);
            let mut world = World::new(&topology, 3, Interest::ALL, Echoes::default());
            world.tap(SERVER.node);
            let end = |addr, app| End { addr, config: config.clone(), isn: Seq(77), app };
            let client: Box<dyn App> = Box::new(Bulk::new(4_000_000, 100_000));
            world.connect(end(CLIENT, client), end(SERVER, Box::new(reader(1))));
            world.run_until(Time::ZERO + Span::from_secs(60));
            let read = read_by_server(&world);
            let Echoes { marked, echoed, acks, .. } = *world.observer();
            assert_eq!(read, 4_000_000, "{cc} {stack:?}");
            // The FIN's number may be covered with the last bytes.
            assert!(
                marked > 20_000 && marked.abs_diff(echoed) <= 1,
                "{cc} {stack:?}: {marked} {echoed}"
            );
            assert!(acks < 4_000_000 / 1448, "{cc} {stack:?}: {acks} ACKs");
        }
    }
}
