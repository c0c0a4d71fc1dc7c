//! `bench-ref`, `bench-100m10`, `bench-1g50`: the workloads on which simulators are compared.
//!
//! n Reno flows without end through one drop-tail bottleneck, beside an uncontrolled flow of small
//! packets each way, as a networked control loop sends them. Simulators that are given "the same"
//! experiment still differ in what they do not call parameters: initial window, delayed ACKs, SACK,
//! whether the packet in service counts as queued. Each is a parameter here, so that the convention
//! of each peer can be set (docs/simulator.md has the table). Only drops are watched, since the
//! scenarios are there to measure how fast virtual time passes.

mod parameters;
mod transport;

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::options::Conflict;
use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{Bulk, Reader, ReaderModel};
use acklab_sim::arrivals::{Arrivals, Pattern};
use acklab_sim::peer::Datagrams;
use acklab_sim::segments;
use acklab_sim::{Access, Dumbbell, Duplex, End, Observer, ResultHash, Topology, World};
use acklab_stats::jain_index;

use self::parameters::{InService, METRICS, Set};
use acklab_lab::measured::{Measured, Metrics};
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::{
    Axis, Capture, CapturePoint, Declaration, MOST_PACKETS, Replication, Scenario, Tap,
};

/// One of the three workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// 3 flows over 1.5 Mbit/s, 30 s: the daisy chain of networked-control papers.
    Reference,
    /// 10 flows over 100 Mbit/s, 10 s.
    Hundred,
    /// 50 flows over 1 Gbit/s, 10 s.
    Gigabit,
}

const REFERENCE: Declaration = Declaration {
    name: "bench-ref",
    summary: "simulator benchmark: 3 Reno flows and a control flow, 1.5 Mbit/s, 30 s",
    doc: "A dumbbell: each flow has a sending host on the left and a receiving host on the right, with \
          separate access links, and all share the bottleneck, whose queue is drop-tail in each \
          direction. Flows write without end. Without `stagger` nothing in it is random. The defaults \
          are this simulator's own conventions; docs/simulator.md says which settings are those of \
          ns-2, ns-3 and htsim.",
    parameters: Set::PARAMETERS,
    metrics: METRICS,
    main_metric: "flow_throughput_bps",
    side_metrics: &["delivered_packets", "drops", "jain"],
    grid: &[
        Axis { parameter: "delack", values: &["off", "on"] },
        Axis { parameter: "sack", values: &["off", "on"] },
        Axis { parameter: "iw", values: &["1", "10"] },
    ],
    terms: &["delayed-ack"],
    ..Declaration::EMPTY
};

const HUNDRED: Declaration = Declaration {
    name: "bench-100m10",
    summary: "simulator benchmark: 10 Reno flows over 100 Mbit/s, 10 s",
    parameters: &parameters::HUNDRED,
    ..REFERENCE
};

const GIGABIT: Declaration = Declaration {
    name: "bench-1g50",
    summary: "simulator benchmark: 50 Reno flows over 1 Gbit/s, 10 s",
    parameters: &parameters::GIGABIT,
    ..REFERENCE
};

impl Scenario for Bench {
    fn declaration(&self) -> &Declaration {
        match self {
            Self::Reference => &REFERENCE,
            Self::Hundred => &HUNDRED,
            Self::Gigabit => &GIGABIT,
        }
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        if set.control_period.is_zero() {
            let reason = "must be longer than 0; control=off leaves the control flow out";
            return Err(settings.refuse("control_period", reason));
        }
        let carried = segments::check(&transport::config(&set));
        carried.map_err(|Conflict { name, reason }| {
            settings.refuse("stack", format!("{name}: {reason}"))
        })
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        let bits = set.bottleneck.as_bps() as f64 * set.duration.as_secs_f64();
        let control = set.duration.as_nanos() / set.control_period.as_nanos();
        ((bits / (8.0 * f64::from(set.packet))) as u64).saturating_add(2 * control)
    }

    fn most_packets(&self) -> u128 {
        MOST_PACKETS
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let set: Set = settings.read();
        let (network, topology) = build(&set);
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let interest = Interest::DROPS.with(Interest::MESSAGE);
        let watch = Watch { tap, ..Watch::default() };
        let mut world = World::new(&topology, seed, interest, watch);
        if let Some(node) = at.and_then(|at| node_at(&network, at)) {
            world.tap(node);
        }
        open_flows(&mut world, &network, &set, seed);
        let end = Time::ZERO + set.duration;
        world.run_until(end);
        result(world, &set)
    }
}

/// The dumbbell; its last pair of hosts is the control flow's.
fn build(set: &Set) -> (Dumbbell, Topology) {
    // The limit counts what waits; one that counts the packet in service has room for one less.
    let waiting = set.queue - u32::from(set.in_service == InService::Counted);
    let queue = Discipline::drop_tail(Limit::packets(waiting));
    let bottleneck =
        Duplex::symmetric(LinkConfig::new(set.bottleneck, set.delay).with_queue(queue));
    let flow = Access {
        left: Duplex::symmetric(LinkConfig::new(set.access, set.left)),
        right: Duplex::symmetric(LinkConfig::new(set.access, set.right)),
    };
    let mut topology = Topology::default();
    let flows = set.flows as usize + 1;
    (topology.dumbbell(&bottleneck, &vec![flow; flows]), topology)
}

fn node_at(network: &Dumbbell, point: CapturePoint) -> Option<NodeId> {
    let &(left, right) = network.pairs.first()?;
    Some(match point {
        CapturePoint::Sender => left,
        CapturePoint::Middle => network.left_router,
        CapturePoint::Receiver => right,
    })
}

fn open_flows(world: &mut World<Watch<'_>>, network: &Dumbbell, set: &Set, seed: u64) {
    let config = transport::config(set);
    let mut draws = Rng::named(seed, "bench/start");
    let Some((&control, flows)) = network.pairs.split_last() else { return };
    for &(left, right) in flows {
        let start = Span::from_nanos(draws.below(set.stagger.as_nanos()));
        let end = |node, port, app| End {
            addr: Addr { node, port },
            config: config.clone(),
            isn: Seq(0),
            app,
        };
        let sender = end(left, SENDER_PORT, Box::new(Bulk::unlimited()) as _);
        let reader = Reader::new(ReaderModel::Promptly, u32::MAX);
        let receiver = end(right, RECEIVER_PORT, Box::new(reader) as _);
        world.connect_at(Time::ZERO + start, sender, receiver);
    }
    if set.control.is_on() {
        let bytes = set.control_bytes - UDP_HEADERS;
        let pattern = Pattern::Constant { period: set.control_period, bytes };
        let [plant, controller] =
            [control.0, control.1].map(|node| Addr { node, port: CONTROL_PORT });
        for (from, to, name) in [(plant, controller, "plant"), (controller, plant, "controller")] {
            let rng = Rng::named(seed, &format!("peer/{name}"));
            let arrivals = Arrivals::new(pattern.clone(), rng, Time::ZERO, Time::MAX);
            world.attach(from, Box::new(Datagrams::new(from, to, arrivals)));
        }
    }
}

/// Counts drops, and hashes what it sees.
#[derive(Default)]
struct Watch<'a> {
    hash: ResultHash,
    drops: u64,
    control_drops: u64,
    control_delay_ms: Vec<f64>,
    tap: Option<Tap<'a>>,
}

impl Observer for Watch<'_> {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        match event.kind {
            EventKind::Dropped { packet, .. } => {
                self.hash.word(event.time.as_nanos());
                match packet.body {
                    Body::Tcp(segment) => {
                        self.hash.word(u64::from(segment.seq.0));
                        self.drops += 1;
                    }
                    Body::Datagram { .. } | Body::Stored { .. } => self.control_drops += 1,
                }
            }
            EventKind::App { value, .. } => self.control_delay_ms.push(value),
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap(now, packet);
        }
    }
}

fn result(world: World<Watch<'_>>, set: &Set) -> Replication {
    let seconds = set.duration.as_secs_f64();
    let events = world.events();
    let mut delivered = 0;
    let mut throughput = Vec::with_capacity(set.flows as usize);
    // Receivers stand before their senders.
    for receiver in world.streams().step_by(2) {
        let bytes = receiver.total_read();
        delivered += bytes / transport::payload(set);
        throughput.push(bytes as f64 * 8.0 / seconds);
    }
    let mut watch = world.into_observer();
    for bps in &throughput {
        watch.hash.word(bps.to_bits());
    }
    let mut metrics = Metrics::default();
    let total: f64 = throughput.iter().sum();
    metrics.insert("delivered_packets", Measured::Total(delivered));
    metrics.insert("drops", Measured::Total(watch.drops));
    metrics.insert("control_drops", Measured::Total(watch.control_drops));
    metrics.insert("throughput_bps", Measured::Samples(vec![total]));
    metrics.insert("jain", Measured::Samples(jain_index(&throughput).into_iter().collect()));
    metrics.insert("flow_throughput_bps", Measured::Samples(throughput));
    metrics.insert("control_delay_ms", Measured::Samples(watch.control_delay_ms));
    let hash = watch.hash.finish();
    Replication { hash, events, metrics, ..Replication::default() }
}

const SENDER_PORT: u16 = 50_000;
const RECEIVER_PORT: u16 = 5001;
const CONTROL_PORT: u16 = 7000;
/// IPv4 and UDP headers, bytes.
const UDP_HEADERS: u32 = Packet::IPV4_HEADER + Packet::UDP_HEADER;
