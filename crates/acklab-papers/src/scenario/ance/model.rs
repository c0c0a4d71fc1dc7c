//! The daisy chain and the dumbbell as topologies, connections and queues.
//!
//! ```text
//! daisy chain    sender A -- R1 == bottleneck == R2 -- receiver A
//! dumbbell       senders A, B, C -- R1 == bottleneck == R2 -- receivers A, B, C
//!                plant           -- R1                  R2 -- controller
//! ```
//!
//! Samples of the plant travel with the TCP data, commands with its ACKs (facts the paper leaves open).
//! Host processing time is jitter on each TCP host's own uplink.

use acklab_control::{
    ControllerPeer, ControllerSetup, Driven, PidGains, PlantPeer, PlantSetup, TransferFunction,
};
use acklab_core::ack;
use acklab_core::cc::Algorithm;
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{Bulk, Reader, ReaderModel};
use acklab_sim::{End, Observer, Topology, World};
use acklab_tcp::{Config, InitialWindow};

use super::algorithms::{congestion_control, discipline};
use super::parameters::{Control, Phase, Set, Start};
use acklab_lab::scenario::network::{Watched, WatchedSender};

/// A topology with the roles of its nodes.
pub(super) struct Model {
    pub(super) topology: Topology,
    pub(super) senders: Vec<NodeId>,
    receivers: Vec<NodeId>,
    /// Plant and controller, in the dumbbell.
    pub(super) control: Option<[NodeId; 2]>,
    /// The bottleneck in the direction of the data.
    pub(super) bottleneck: u32,
    pub(super) routers: [NodeId; 2],
}

impl Model {
    /// The topology that resolved settings describe; the dumbbell where they have flows.
    pub(super) fn new(set: &Set) -> Self {
        let mut topology = Topology::default();
        let routers = [topology.node(), topology.node()];
        let Set { network, control, .. } = set;
        let bottleneck_link =
            LinkConfig::new(network.rate, network.delay).with_queue(discipline(set));
        let bottleneck = topology.link(routers[0], routers[1], bottleneck_link.clone());
        topology.link(routers[1], routers[0], bottleneck_link);
        let access = |delay: Span| LinkConfig::new(network.access_rate, delay);
        let mut host = |router: NodeId, delay: Span, jitter: Span| {
            let node = topology.node();
            topology.link(node, router, access(delay).with_jitter(jitter));
            topology.link(router, node, access(delay));
            node
        };
        let jitter = set.tcp.host_jitter;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for flow in 0..set.flows() {
            senders.push(host(routers[0], network.tx_access, jitter));
            receivers.push(host(routers[1], network.rx_access + control.rx_spread * flow, jitter));
        }
        let control = set.dumbbell.then(|| {
            let delay = control.ncs_access;
            [routers[0], routers[1]].map(|router| host(router, delay, Span::ZERO))
        });
        Self { topology, senders, receivers, control, bottleneck, routers }
    }

    /// What a recorder watches here.
    pub(super) fn watched(&self, set: &Set) -> Watched {
        let packet = f64::from(set.tcp.packet);
        let mss = f64::from(mss(set));
        let names = (b'A'..=b'Z').map(|letter| char::from(letter).to_string());
        let senders = self.senders.iter().zip(names).map(|(node, name)| WatchedSender {
            addr: Addr { node: *node, port: DATA_PORT },
            name,
            wire_factor: packet / mss,
            mss,
        });
        Watched {
            bottleneck: self.bottleneck,
            rate: set.network.rate,
            senders: senders.collect(),
            period: PERIOD,
        }
    }

    /// Attaches plant and controller, where there are any.
    pub(super) fn open_control<O: Observer>(
        &self,
        world: &mut World<O>,
        set: &Set,
        draws: &mut Rng,
    ) {
        let Some(nodes) = self.control else { return };
        let [plant, controller] = nodes.map(|node| Addr { node, port: CONTROL_PORT });
        let Control { actuation, integration, missing, saturation: limit, .. } = set.control;
        let phase = match set.control.phase {
            Phase::Random => Span::from_nanos(draws.below(PERIOD.as_nanos())),
            Phase::Fixed => Span::ZERO,
        };
        let motor = TransferFunction::dc_motor().to_state_space();
        let plant_setup = PlantSetup {
            period: PERIOD,
            actuation,
            missing,
            ..PlantSetup::new(motor, plant, controller)
        };
        let controller_setup = ControllerSetup {
            gains: PidGains { integration, limit, ..PidGains::default() },
            period: PERIOD,
            phase,
            driven: Driven::Time,
            missing,
            ..ControllerSetup::new(controller, plant)
        };
        let peer = PlantPeer::new(plant_setup).expect("the motor has one input and one output");
        world.attach(plant, Box::new(peer));
        let peer = ControllerPeer::new(controller_setup).expect("the period is longer than zero");
        world.attach(controller, Box::new(peer));
    }

    /// Opens the flows, each at its time.
    pub(super) fn open_flows<O: Observer>(&self, world: &mut World<O>, set: &Set, draws: &mut Rng) {
        let config = tcp(set);
        for (flow, (&sender, &receiver)) in (0..).zip(self.senders.iter().zip(&self.receivers)) {
            let at = start(set, flow, draws);
            let isn = [Seq(draws.next_u64() as u32), Seq(draws.next_u64() as u32)];
            let client = End {
                addr: Addr { node: sender, port: DATA_PORT },
                config: config.clone(),
                isn: isn[0],
                app: Box::new(Bulk::new(u64::MAX, mss(set))),
            };
            let server = End {
                addr: Addr { node: receiver, port: DATA_PORT },
                config: config.clone(),
                isn: isn[1],
                app: Box::new(Reader::new(ReaderModel::Promptly, u32::MAX)),
            };
            world.connect_at(at, client, server);
        }
    }
}

/// Payload of a full packet, bytes.
fn mss(set: &Set) -> u32 {
    set.tcp.packet - HEADERS
}

/// How both ends of every flow are set up.
fn tcp(set: &Set) -> Config {
    let (own, mss) = (&set.tcp, mss(set));
    let window = own.rwnd * mss;
    let mut config = Config {
        receive_buffer: window,
        window_scale: (window > u32::from(u16::MAX)).then_some(4),
        congestion: congestion_control(set),
        ack: if own.delack.is_on() {
            ack::Profile::delayed(2, Span::from_millis(200))
        } else {
            ack::Profile::EverySegment
        },
        ecn: own.ecn.is_on(),
        ..Config::textbook(mss as u16)
    };
    config.window.initial = InitialWindow::Segments(own.iw);
    config.window.ssthresh = Some(ssthresh(set) * u64::from(mss));
    config.rto.min = own.rto_min;
    config.loss.recovery = own.recovery;
    config
}

/// The initial slow-start threshold in segments.
fn ssthresh(set: &Set) -> u64 {
    match (set.tcp.ssthresh, set.cc()) {
        (0, Algorithm::Ance(_) | Algorithm::Encn(_)) => 16,
        (0, _) => 30,
        (segments, _) => segments,
    }
}

/// When flow number `flow` starts.
fn start(set: &Set, flow: u64, draws: &mut Rng) -> Time {
    let spread = set.tcp.start_spread;
    Time::ZERO
        + match set.tcp.start {
            Start::Random => Span::from_nanos(draws.below(spread.as_nanos() + 1)),
            Start::Fixed => spread * flow,
        }
}

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = Packet::IPV4_HEADER + acklab_core::segment::TcpRepr::HEADER;
const DATA_PORT: u16 = 5001;
const CONTROL_PORT: u16 = 5002;
/// The paper's sampling period h.
pub(super) const PERIOD: Span = Span::from_millis(14);
