//! Several paths of one connection: where they meet in one bottleneck they take what one flow takes there (RFC 6356); where
//! each has its own, all of it is used.

use acklab_core::cc::Algorithm;
use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::{Event as Told, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::protect::{Entropy, PlainGreeter};
use acklab_rudp::{Config, Connection, ContentEvent, Event, Limits, Listener, PathAddrs};
use acklab_sim::app::{Bulk, Reader, ReaderModel};
use acklab_sim::rudp::{self, Host};
use acklab_sim::{Access, Duplex, End, Observer, Topology, World};
use acklab_tcp::Stack;

use crate::support::{PORT, Use, lane_of, ms, nodes};

const RATE_BPS: u64 = 20_000_000;
/// Counted from then on, ms, and for so long, s.
const STARTED_MS: u64 = 2_000;
const SECONDS: u64 = 60;

/// Bytes at the IP layer that arrived at each receiver's node.
#[derive(Default)]
struct Arrived {
    receivers: Vec<NodeId>,
    bytes: Vec<u64>,
}

impl Observer for Arrived {
    fn on_event(&mut self, _event: &Told) {}

    fn on_packet(&mut self, _now: Time, node: NodeId, packet: &Packet) {
        if let Some(index) = self.receivers.iter().position(|&receiver| receiver == node)
            && packet.dst.node == node
        {
            self.bytes[index] += u64::from(packet.size());
        }
    }
}

/// Who else is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rival {
    Tcp(&'static str),
    /// As a Linux host sends it, segment by segment.
    Linux(&'static str),
    Rudp,
}

pub(crate) struct Case {
    /// Round trip, ms.
    pub(crate) rtt_ms: u64,
    /// Queue of the bottleneck, ms.
    pub(crate) queue_ms: u64,
    pub(crate) rivals: Vec<Rival>,
    pub(crate) paths: usize,
}

fn link(bps: u64, delay: Span) -> LinkConfig {
    LinkConfig::new(BitRate::from_bps(bps).expect("not zero"), delay)
}

/// A connection that writes without end over all of these paths.
fn attach_bulk<O: Observer>(world: &mut World<O>, seed: u64, paths: &[[Addr; 2]]) {
    let config = Config { seed, ..Config::default() };
    let ways: Vec<_> = paths
        .iter()
        .map(|&[local, remote]| PathAddrs { local: local.into(), remote: remote.into() })
        .collect();
    let (entropy, greeter) = (Box::new(Rng::named(seed, "client")), Box::new(PlainGreeter));
    let client = Connection::connect(Time::ZERO, config.clone(), entropy, greeter, &ways);
    let mut stream = None;
    let write = Use::by(move |now, client: &mut Connection| {
        while client.poll_event().is_some() {}
        if client.is_open() {
            let content = client.content();
            let stream =
                *stream.get_or_insert_with(|| content.open_stream(now, false).expect("a stream"));
            while content.room(stream) > 0 {
                content.write(stream, vec![0; 256 << 10]);
            }
        }
    });
    let mut made = 0;
    let entropy = move || -> Box<dyn Entropy> {
        made += 1;
        Box::new(Rng::named(seed + made, "server"))
    };
    let server = Listener::new(
        Time::ZERO,
        config,
        Box::new(entropy),
        Box::new(PlainGreeter),
        Limits::default(),
    );
    let read = Use::by(move |now, server: &mut Listener| {
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while connection.content().read(now, stream).is_some() {}
        }
    });
    let ends = |end: usize| paths.iter().map(|path| path[end]).collect::<Vec<_>>();
    world.attach_at(&ends(1), Box::new(Host::new(server, read)));
    world.attach_at(&ends(0), Box::new(Host::new(client, write)));
}

/// Mbit/s of each of the connection's paths and of each rival.
pub(crate) fn run(case: &Case, seed: u64) -> Vec<f64> {
    let delay = Span::from_micros(case.rtt_ms * 500 - 500);
    let queue = Discipline::drop_tail(Limit::bytes(RATE_BPS / 8000 * case.queue_ms));
    let bottleneck = Duplex {
        forward: link(RATE_BPS, delay).with_queue(queue),
        backward: link(1_000_000_000, delay),
    };
    // A host is not a metronome.
    let edge = link(1_000_000_000, Span::from_micros(250)).with_jitter(Span::from_micros(100));
    let edge = Duplex::symmetric(edge);
    let access = Access { left: edge.clone(), right: edge };
    let mut topology = Topology::default();
    let count = case.paths + case.rivals.len();
    let pairs = topology.dumbbell(&bottleneck, &vec![access; count]).pairs;
    let ends: Vec<[Addr; 2]> =
        pairs.iter().map(|&(l, r)| [l, r].map(|node| Addr { node, port: PORT })).collect();
    let receivers: Vec<_> = pairs.iter().map(|pair| pair.1).collect();
    let watch = Arrived { bytes: vec![0; count], receivers: receivers.clone() };
    let mut world = World::new(&topology, seed, Interest::NONE, watch);
    for &node in &receivers {
        world.tap(node);
    }
    attach_bulk(&mut world, seed, &ends[..case.paths]);
    let mut rng = Rng::named(seed, "starts");
    for (&[from, to], rival) in ends[case.paths..].iter().zip(&case.rivals) {
        let start = Time::ZERO + Span::from_micros(rng.below(1_000_000));
        let (bulk, reader) =
            (Box::new(Bulk::unlimited()), Box::new(Reader::new(ReaderModel::Promptly, u32::MAX)));
        match rival {
            Rival::Rudp => {
                let config = Config { seed: seed + 100, ..Config::default() };
                let (client, server) = rudp::pair(
                    start,
                    seed + 100,
                    rudp::End { addr: from, config: config.clone(), app: bulk },
                    rudp::End { addr: to, config, app: reader },
                );
                world.attach(to, Box::new(server));
                world.attach(from, Box::new(client));
            }
            Rival::Tcp(name) | Rival::Linux(name) => {
                let congestion: Algorithm = name.parse().expect("a known name");
                let exact = matches!(rival, Rival::Linux(_));
                let stack = if exact { Stack::Segments } else { Stack::Stream };
                let config = acklab_tcp::Config {
                    congestion,
                    stack,
                    send_buffer: 4 << 20,
                    receive_buffer: 4 << 20,
                    receive_tuning: false,
                    window_scale: Some(7),
                    ..acklab_tcp::Config::default()
                };
                world.connect_at(
                    start,
                    End { addr: from, config: config.clone(), isn: Seq(7), app: bulk },
                    End { addr: to, config, isn: Seq(7), app: reader },
                );
            }
        }
    }
    world.run_until(ms(STARTED_MS));
    let before = world.observer().bytes.clone();
    world.run_until(ms(STARTED_MS) + Span::from_secs(SECONDS));
    let after = world.observer().bytes.iter().zip(before);
    after.map(|(after, before)| (after - before) as f64 * 8.0 / SECONDS as f64 / 1e6).collect()
}

/// Three seeds' shares of all paths together, 1 is what one flow is to have, in order.
pub(crate) fn shares(case: &Case) -> [f64; 3] {
    let mut shares = [1, 2, 3].map(|seed| {
        let rates = run(case, seed);
        let of_paths: f64 = rates[..case.paths].iter().sum();
        of_paths * (1 + case.rivals.len()) as f64 / rates.iter().sum::<f64>()
    });
    shares.sort_by(f64::total_cmp);
    shares
}

#[test]
fn paths_that_meet_in_one_bottleneck_take_what_one_flow_takes() {
    println!("RTT, queue, beside, paths: share of one flow, three seeds");
    for (rtt_ms, queue_ms) in [(40, 100), (40, 40)] {
        for rival in [Rival::Rudp, Rival::Tcp("cubic")] {
            for paths in [1, 2] {
                let case = Case { rtt_ms, queue_ms, rivals: vec![rival], paths };
                let shares = shares(&case);
                println!("{rtt_ms} ms, {queue_ms} ms, {rival:?}, {paths}: {shares:.2?}");
                // Uncoupled, at 100 ms of queue: 1.37 beside reliable UDP, 1.04 beside CUBIC.
                assert!(shares[1] <= 1.2, "{rival:?}: {shares:?}");
                assert!(shares[1] >= 0.6, "{rival:?}: {shares:?}");
            }
        }
    }
}

#[test]
fn paths_that_meet_nowhere_use_all_of_each() {
    for (rates, losses) in [([20, 20], 0.0), ([20, 4], 0.0), ([20, 20], 0.05)] {
        let mut topology = Topology::default();
        let mut ends = Vec::new();
        for (index, rate) in rates.into_iter().enumerate() {
            let (forward, reverse) = lane_of(&format!("{rate}mbit"), 20, losses);
            let [a, b] = [topology.node(), topology.node()];
            assert_eq!([a, b], nodes(index));
            topology.link(a, b, forward);
            topology.link(b, a, reverse);
            ends.push([a, b].map(|node| Addr { node, port: PORT }));
        }
        let receivers: Vec<_> = ends.iter().map(|ends| ends[1].node).collect();
        let watch = Arrived { bytes: vec![0; 2], receivers: receivers.clone() };
        let mut world = World::new(&topology, 1, Interest::NONE, watch);
        for &node in &receivers {
            world.tap(node);
        }
        attach_bulk(&mut world, 1, &ends);
        let seconds = 20;
        world.run_until(ms(STARTED_MS));
        let before = world.observer().bytes.clone();
        world.run_until(ms(STARTED_MS) + Span::from_secs(seconds));
        for ((after, before), rate) in world.observer().bytes.iter().zip(before).zip(rates) {
            let most = f64::from(rate) * 1e6 / 8.0 * seconds as f64 * (1.0 - losses);
            let used = (after - before) as f64 / most;
            println!("{rates:?} Mbit/s, loss {losses}: {:.1} % of {rate}", 100.0 * used);
            assert!(used > 0.97, "{rates:?} Mbit/s, loss {losses}: {used} of {rate}");
        }
    }
}
