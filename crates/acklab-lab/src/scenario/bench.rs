//! `bench-ref`, `bench-100m10`, `bench-1g50`: the workloads on which simulators are compared.
//!
//! n Reno flows without end through one drop-tail bottleneck, beside an uncontrolled flow of small
//! packets each way, as a networked control loop sends them. Simulators that are given "the same"
//! experiment still differ in what they do not call parameters: initial window, delayed ACKs, SACK,
//! whether the packet in service counts as queued. Each is a parameter here, so that the convention
//! of each peer can be set (docs/simulator.md has the table). Only drops are watched, since the
//! scenarios are there to measure how fast virtual time passes.

use acklab_core::ack;
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::queue::{Discipline, drop_tail::Limit};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::tcp::{Config, InitialWindow, Nagle};
use acklab_core::time::{Span, Time};
use acklab_sim::app::{Bulk, Reader, ReaderModel};
use acklab_sim::arrivals::{Arrivals, Pattern};
use acklab_sim::peer::Datagrams;
use acklab_sim::{Access, Dumbbell, Duplex, End, Observer, ResultHash, Topology, World};
use acklab_stats::jain_index;

use super::{Axis, Capture, CapturePoint, Replication, Scenario, Tap};
use crate::measured::{Measured, MetricDoc, Metrics};
use crate::parameter::{Kind, Parameter, SetError, Settings};

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

impl Scenario for Bench {
    fn name(&self) -> &'static str {
        match self {
            Self::Reference => "bench-ref",
            Self::Hundred => "bench-100m10",
            Self::Gigabit => "bench-1g50",
        }
    }

    fn summary(&self) -> &'static str {
        match self {
            Self::Reference => {
                "simulator benchmark: 3 Reno flows and a control flow, 1.5 Mbit/s, 30 s"
            }
            Self::Hundred => "simulator benchmark: 10 Reno flows over 100 Mbit/s, 10 s",
            Self::Gigabit => "simulator benchmark: 50 Reno flows over 1 Gbit/s, 10 s",
        }
    }

    fn doc(&self) -> &'static str {
        "A dumbbell: each flow has a sending host on the left and a receiving host on the right, with \
         access links of their own, and all share the bottleneck, whose queue is drop-tail in each \
         direction. Flows write without end. Without `stagger` nothing in it is random. The defaults \
         are this simulator's own conventions; docs/simulator.md says which settings are those of \
         ns-2, ns-3 and htsim."
    }

    fn parameters(&self) -> &'static [Parameter] {
        match self {
            Self::Reference => &REFERENCE,
            Self::Hundred => &HUNDRED,
            Self::Gigabit => &GIGABIT,
        }
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        METRICS
    }

    fn main_metric(&self) -> &'static str {
        "flow_throughput_bps"
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        &["delivered_packets", "drops", "jain"]
    }

    fn replications(&self) -> u64 {
        1
    }

    fn grid(&self) -> &'static [Axis] {
        &[
            Axis { parameter: "delack", values: &["off", "on"] },
            Axis { parameter: "sack", values: &["off", "on"] },
            Axis { parameter: "iw", values: &["1", "10"] },
        ]
    }

    fn terms(&self) -> &'static [&'static str] {
        &["delayed-ack"]
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        if settings.span("control-period").is_zero() {
            return Err(SetError::BadValue {
                name: "control-period".into(),
                text: "0".into(),
                reason: "must be longer than 0; control=off leaves the control flow out".into(),
            });
        }
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let bits =
            settings.rate("bottleneck").as_bps() as f64 * settings.span("duration").as_secs_f64();
        let control =
            settings.span("duration").as_nanos() / settings.span("control-period").as_nanos();
        (bits / (8.0 * settings.count("packet") as f64)) as u64 + 2 * control
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (network, topology) = build(settings);
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let interest = Interest::DROPS.with(Interest::MESSAGE);
        let watch = Watch { tap, ..Watch::default() };
        let mut world = World::new(&topology, seed, interest, watch);
        if let Some(node) = at.and_then(|at| node_at(&network, at)) {
            world.tap(node);
        }
        open_flows(&mut world, &network, settings, seed);
        let end = Time::ZERO + settings.span("duration");
        world.run_until(end);
        result(world, settings)
    }
}

/// The dumbbell; its last pair of hosts is the control flow's.
fn build(settings: &Settings) -> (Dumbbell, Topology) {
    let link = |rate, delay| LinkConfig::new(settings.rate(rate), settings.span(delay));
    // The limit counts what waits; one that counts the packet in service has room for one less.
    let counted = u64::from(settings.choice("in-service") == "counted");
    let waiting = (settings.count("queue") - counted) as u32;
    let queue = Discipline::DropTail(Limit::packets(waiting));
    let bottleneck = Duplex::symmetric(link("bottleneck", "delay").with_queue(queue));
    let flow = Access {
        left: Duplex::symmetric(link("access", "left")),
        right: Duplex::symmetric(link("access", "right")),
    };
    let mut topology = Topology::default();
    let flows = settings.count("flows") as usize + 1;
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

fn open_flows(world: &mut World<Watch<'_>>, network: &Dumbbell, settings: &Settings, seed: u64) {
    let config = transport(settings);
    let mut draws = Rng::named(seed, "bench/start");
    let Some((&control, flows)) = network.pairs.split_last() else { return };
    for &(left, right) in flows {
        let start = Span::from_nanos(draws.below(settings.span("stagger").as_nanos()));
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
    if settings.choice("control") == "on" {
        let bytes = settings.count("control-bytes") as u32 - UDP_HEADERS;
        let pattern = Pattern::Constant { period: settings.span("control-period"), bytes };
        let [plant, controller] =
            [control.0, control.1].map(|node| Addr { node, port: CONTROL_PORT });
        for (from, to, name) in [(plant, controller, "plant"), (controller, plant, "controller")] {
            let rng = Rng::named(seed, &format!("peer/{name}"));
            let arrivals = Arrivals::new(pattern.clone(), rng, Time::ZERO, Time::MAX);
            world.attach(from, Box::new(Datagrams::new(from, to, arrivals)));
        }
    }
}

/// Reno with the conventions that were set.
fn transport(settings: &Settings) -> Config {
    let defaults = Config::default();
    let every_second = ack::Profile::Delayed { segments: 2, delay: settings.span("delack-timer") };
    Config {
        mss: settings.count("packet") as u16 - TCP_HEADERS,
        initial_window: InitialWindow::Segments(settings.count("iw") as u32),
        ack: match settings.choice("delack") {
            "off" => ack::Profile::EverySegment,
            "on" => every_second,
            _ => defaults.ack,
        },
        sack: settings.choice("sack") == "on",
        timestamps: settings.choice("timestamps") == "on",
        limited_transmit: settings.choice("limited-transmit") == "on",
        min_rto: settings.span("min-rto"),
        nagle: Nagle::Off,
        ..defaults
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
                    Body::Datagram { .. } => self.control_drops += 1,
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

fn result(world: World<Watch<'_>>, settings: &Settings) -> Replication {
    let seconds = settings.span("duration").as_secs_f64();
    let events = world.events();
    let mut delivered = 0;
    let mut throughput = Vec::with_capacity(settings.count("flows") as usize);
    // Receivers stand before their senders.
    for receiver in world.connections().step_by(2) {
        let bytes = receiver.total_read();
        delivered += bytes / u64::from(receiver.mss());
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
/// IPv4 and TCP headers without options, bytes.
const TCP_HEADERS: u16 = 40;
/// IPv4 and UDP headers, bytes.
const UDP_HEADERS: u32 = Packet::IPV4_HEADER + Packet::UDP_HEADER;

/// Defaults in which the workloads differ.
struct Defaults {
    flows: &'static str,
    bottleneck: &'static str,
    access: &'static str,
    queue: &'static str,
    packet: &'static str,
    control: &'static str,
    duration: &'static str,
}

static REFERENCE: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "3",
    bottleneck: "1500kbit",
    access: "10mbit",
    queue: "17",
    packet: "1000",
    control: "on",
    duration: "30s",
});

static HUNDRED: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "10",
    bottleneck: "100mbit",
    access: "1gbit",
    queue: "670",
    packet: "1500",
    control: "off",
    duration: "10s",
});

static GIGABIT: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "50",
    bottleneck: "1gbit",
    access: "10gbit",
    queue: "6670",
    packet: "1500",
    control: "off",
    duration: "10s",
});

const SWITCH: Kind = Kind::Choice(&["on", "off"]);
const PARAMETERS: usize = 21;

const fn parameters(of: &Defaults) -> [Parameter; PARAMETERS] {
    const fn row(
        name: &'static str,
        default: &'static str,
        kind: Kind,
        doc: &'static str,
    ) -> Parameter {
        Parameter { name, default, kind, doc }
    }
    [
        row("flows", of.flows, Kind::Count { min: 1, max: 2000 }, "Reno flows."),
        row("duration", of.duration, Kind::Span, "Simulated time."),
        row("bottleneck", of.bottleneck, Kind::Rate, "Rate of the bottleneck."),
        row("delay", "5ms", Kind::Span, "Propagation of the bottleneck."),
        row("access", of.access, Kind::Rate, "Rate of every access link."),
        row("left", "2ms", Kind::Span, "Propagation of the senders' access links."),
        row(
            "right",
            "33ms",
            Kind::Span,
            "Propagation of the receivers' access links; with 2 ms and 5 ms a round trip of 80 ms, so \
             that a queue of 670 packets at 100 Mbit/s is one bandwidth-delay product.",
        ),
        row(
            "queue",
            of.queue,
            Kind::Count { min: 2, max: 10_000_000 },
            "Packets that the bottleneck's queue holds, in each direction.",
        ),
        row(
            "in-service",
            "extra",
            Kind::Choice(&["extra", "counted"]),
            "Whether the packet being transmitted has a place beside the queue (here, ns-2, ns-3) or \
             takes one of it (htsim).",
        ),
        row(
            "packet",
            of.packet,
            Kind::Count { min: 100, max: 9000 },
            "Bytes of a full packet at the IP layer, headers and options included.",
        ),
        row("iw", "10", Kind::Count { min: 1, max: 1000 }, "Initial window, segments."),
        row(
            "delack",
            "on",
            Kind::Choice(&["on", "off", "linux"]),
            "Delayed ACKs: on acknowledges every second segment or after `delack-timer`; off every \
             segment; linux as that system does.",
        ),
        row("delack-timer", "200ms", Kind::Span, "The longest delay under delack=on."),
        row(
            "sack",
            "on",
            SWITCH,
            "Selective acknowledgments (RFC 2018, RFC 6675); off is NewReno.",
        ),
        row("timestamps", "on", SWITCH, "The timestamp option, 12 bytes of each packet."),
        row(
            "limited-transmit",
            "on",
            SWITCH,
            "New data on the first two duplicate ACKs (RFC 3042).",
        ),
        row("min-rto", "200ms", Kind::Span, "Lower bound of the retransmission time-out."),
        row(
            "stagger",
            "0",
            Kind::Span,
            "Each flow starts up to this long after the beginning, drawn uniformly.",
        ),
        row("control", of.control, SWITCH, "The control flow: small datagrams each way."),
        row("control-period", "14ms", Kind::Span, "From one of its packets to the next."),
        row(
            "control-bytes",
            "48",
            Kind::Count { min: 28, max: 1500 },
            "Bytes of each, headers included.",
        ),
    ]
}

const METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "flow_throughput_bps",
        unit: "bit/s",
        doc: "Payload that each flow's receiver read, over the duration. One sample per flow.",
    },
    MetricDoc {
        name: "throughput_bps",
        unit: "bit/s",
        doc: "The flows' sum. One sample per replication.",
    },
    MetricDoc {
        name: "jain",
        unit: "1",
        doc: "Jain's index of the flows' throughputs. One sample per replication.",
    },
    MetricDoc {
        name: "delivered_packets",
        unit: "packets",
        doc: "Full segments that the receivers read in order, each counted once; summed.",
    },
    MetricDoc {
        name: "drops",
        unit: "packets",
        doc: "TCP packets that found the bottleneck's queue full, in either direction; summed.",
    },
    MetricDoc {
        name: "control_drops",
        unit: "packets",
        doc: "The same of the control flow; summed.",
    },
    MetricDoc {
        name: "control_delay_ms",
        unit: "ms",
        doc: "From a control packet's departure to its arrival. One sample per packet.",
    },
];
