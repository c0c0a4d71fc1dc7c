//! `rfc7928`: the mixes of traffic with which RFC 7928 characterises queue management.
//!
//! A dumbbell (its figure 1) whose bottleneck has the discipline under study in both directions. One
//! parameter chooses the traffic of sections 5 to 9; every mix gives the same metrics, so that
//! disciplines can be set side by side over all of them. A light probe measures what a packet waits.
//! Left out: capacity that varies (section 8.2.5), flow completion times of short flows other than
//! the web exchanges, and the RFC's comparison of implementations.

mod mixes;
mod parameters;

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{
    App, Bulk, EXCHANGE_MS, Reader, ReaderModel, ReplyingServer, RequestClient, Source,
};
use acklab_sim::arrivals::{Arrivals, Pattern};
use acklab_sim::peer::{DATAGRAM_DELAY_MS, Datagrams};
use acklab_sim::{Access, Dumbbell, Duplex, End, Observer, Topology, World};
use acklab_tcp::{Config, InitialWindow};

use self::mixes::{Member, Traffic, members};
use self::parameters::{DECLARATION, FULL_PACKET, Set};
use acklab_lab::measured::Measured;
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::network::{NetworkRecorder, Watched, WatchedSender};
use acklab_lab::scenario::{
    Capture, CapturePoint, Declaration, MOST_PACKETS, Replication, Scenario,
};

/// The mixes of traffic of RFC 7928.
#[derive(Clone, Copy, Debug)]
pub struct Rfc7928;

impl Scenario for Rfc7928 {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        for (name, rtt) in [("rtt", set.rtt), ("other_rtt", set.other_rtt)] {
            if rtt < SHORTEST_RTT {
                return Err(settings.refuse(name, format!("must be at least {SHORTEST_RTT}")));
            }
        }
        if set.rate == BitRate::INFINITE {
            let reason = "must be finite: a bottleneck without a rate has no queue";
            return Err(settings.refuse("rate", reason));
        }
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        let bits = set.rate.as_bps() as f64 * set.duration.as_secs_f64();
        let probes = set.duration.as_nanos() / PROBE_PERIOD.as_nanos();
        ((2.0 * bits / (8.0 * FULL_PACKET)) as u64).saturating_add(probes)
    }

    fn most_packets(&self) -> u128 {
        MOST_PACKETS
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let set: Set = settings.read();
        let members = members(&set);
        let (network, topology) = build(&set, &members);
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let recorder = NetworkRecorder::new(watched(&set, &members, &network), tap);
        let observer = Watcher::new(recorder, &network, set.rate);
        let mut world = World::new(&topology, seed, Interest::ALL, observer);
        if let Some(point) = at {
            world.tap(match point {
                CapturePoint::Sender => network.pairs[0].0,
                CapturePoint::Middle => network.left_router,
                CapturePoint::Receiver => network.pairs[0].1,
            });
        }
        for (index, (member, pair)) in members.into_iter().zip(&network.pairs).enumerate() {
            open(&mut world, set.ecn.is_on(), member, *pair, seed, index);
        }
        open_probe(&mut world, &network, seed);
        let end = Time::ZERO + set.duration;
        world.run_until(end);
        world.tell_departures(network.forward, end);
        let events = world.events();
        world.into_observer().finish(end, events)
    }
}

/// The dumbbell; its last pair is the probe's.
fn build(set: &Set, members: &[Member]) -> (Dumbbell, Topology) {
    let rate = set.rate;
    let fast = BitRate::from_bps(rate.as_bps().saturating_mul(10)).unwrap_or(BitRate::INFINITE);
    let discipline = set.queue.for_packets(set.queue_packets());
    let bottleneck = Duplex::symmetric(LinkConfig::new(rate, MIDDLE).with_queue(discipline));
    let access = |rtt: Span| {
        let each = (rtt / 2).saturating_sub(MIDDLE) / 2;
        let quiet = LinkConfig::new(fast, each);
        let jittery = quiet.clone().with_jitter(set.jitter);
        Access {
            left: Duplex { forward: jittery.clone(), backward: quiet.clone() },
            right: Duplex { forward: quiet, backward: jittery },
        }
    };
    let quiet_probe = Access {
        left: Duplex::symmetric(LinkConfig::new(BitRate::INFINITE, Span::ZERO)),
        right: Duplex::symmetric(LinkConfig::new(BitRate::INFINITE, Span::ZERO)),
    };
    let mut flows: Vec<Access> = members.iter().map(|member| access(member.rtt)).collect();
    flows.push(quiet_probe);
    let mut topology = Topology::default();
    (topology.dumbbell(&bottleneck, &flows), topology)
}

fn watched(set: &Set, members: &[Member], network: &Dumbbell) -> Watched {
    let bulk = members.iter().zip(&network.pairs);
    let bulk =
        bulk.filter(|(member, _)| matches!(member.traffic, Traffic::Bulk) && !member.reverse);
    let senders = bulk.map(|(member, pair)| WatchedSender {
        addr: Addr { node: pair.0, port: SOURCE_PORT },
        name: member.name.clone(),
        wire_factor: FULL_PACKET / FULL_PAYLOAD,
        mss: FULL_PAYLOAD,
    });
    Watched {
        bottleneck: network.forward,
        rate: set.rate,
        senders: senders.collect(),
        period: PROBE_PERIOD,
    }
}

/// Lets a member of the mix begin.
fn open(
    world: &mut World<Watcher<'_>>,
    ecn: bool,
    member: Member,
    (left, right): (NodeId, NodeId),
    seed: u64,
    index: usize,
) {
    let (from, to) = if member.reverse { (right, left) } else { (left, right) };
    let source = Addr { node: from, port: SOURCE_PORT };
    let sink = Addr { node: to, port: SINK_PORT };
    let rng = Rng::named(seed, &format!("app/{index}"));
    let mut config = Config { congestion: member.cc, ecn, ..Config::default() };
    config.window.initial = InitialWindow::Segments(member.initial_window);
    // Coins of a congestion control come from it, too.
    let mut isn = Rng::named(seed, &format!("isn/{index}"));
    let mut end = |addr, app: Box<dyn App>| {
        let isn = Seq(isn.next_u64() as u32);
        End { addr, config: config.clone(), isn, app }
    };
    let reader = || Box::new(Reader::new(ReaderModel::Promptly, u32::MAX));
    let arrivals = |pattern| Arrivals::new(pattern, rng, member.start, member.stop);
    let (client, server) = match member.traffic {
        Traffic::Bulk => {
            let bulk = Bulk::unlimited().until(member.stop);
            (end(source, Box::new(bulk)), end(sink, reader()))
        }
        Traffic::Writer(pattern) => {
            (end(source, Box::new(Source::new(arrivals(pattern)))), end(sink, reader()))
        }
        Traffic::Web(pattern) => (
            end(sink, Box::new(RequestClient::new(pattern, to))),
            end(source, Box::new(ReplyingServer::new(pattern))),
        ),
        Traffic::Datagrams(pattern) => {
            world.attach(sink, Box::new(Datagrams::sink(sink)));
            world.attach(source, Box::new(Datagrams::new(source, sink, arrivals(pattern))));
            return;
        }
    };
    world.connect_at(member.start, client, server);
}

/// The probe starts at a random phase, so that it does not beat with periodic traffic.
fn open_probe(world: &mut World<Watcher<'_>>, network: &Dumbbell, seed: u64) {
    let Some(&(left, right)) = network.pairs.last() else { return };
    let mut rng = Rng::named(seed, "probe/phase");
    let start = Time::from_nanos(rng.below(PROBE_PERIOD.as_nanos()));
    let [from, to] = [left, right].map(|node| Addr { node, port: SINK_PORT });
    let pattern = Pattern::Constant { period: PROBE_PERIOD, bytes: PROBE_BYTES - PROBE_HEADERS };
    let arrivals = Arrivals::new(pattern, rng, start, Time::MAX);
    world.attach(to, Box::new(Datagrams::sink(to)));
    world.attach(from, Box::new(Datagrams::new(from, to, arrivals)));
}

/// The recorder of the bottleneck, with what probe and web clients tell.
struct Watcher<'a> {
    network: NetworkRecorder<'a>,
    probe: (NodeId, NodeId),
    bottleneck: u32,
    /// Delay of a probe that waits for nothing, ms.
    least_ms: f64,
    queue_delay_ms: Vec<f64>,
    probes_lost: u64,
    exchange_ms: Vec<f64>,
}

impl<'a> Watcher<'a> {
    fn new(network: NetworkRecorder<'a>, dumbbell: &Dumbbell, rate: BitRate) -> Self {
        let transmission = rate.serialisation(u64::from(PROBE_BYTES));
        Self {
            network,
            probe: dumbbell.pairs[dumbbell.pairs.len() - 1],
            bottleneck: dumbbell.forward,
            least_ms: (MIDDLE + transmission).as_millis_f64(),
            queue_delay_ms: Vec::new(),
            probes_lost: 0,
            exchange_ms: Vec::new(),
        }
    }

    fn finish(mut self, end: Time, events: u64) -> Replication {
        let (mut metrics, flows) = self.network.finish(end);
        metrics.insert("queue_delay_ms", Measured::Samples(self.queue_delay_ms));
        metrics.insert("probes_lost", Measured::Total(self.probes_lost));
        metrics.insert("exchange_ms", Measured::Samples(self.exchange_ms));
        let hash = self.network.hash();
        Replication { hash, events, metrics, flows, groups: vec![], longest_hold: None }
    }
}

impl Observer for Watcher<'_> {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::App { node, code: DATAGRAM_DELAY_MS, value } if node == self.probe.1 => {
                // Times are rounded to nanoseconds: what is less than nothing is nothing.
                self.queue_delay_ms.push((value - self.least_ms).max(0.0));
            }
            EventKind::App { code: EXCHANGE_MS, value, .. } => self.exchange_ms.push(value),
            EventKind::Dropped { link, packet, .. }
                if link == self.bottleneck && packet.src.node == self.probe.0 =>
            {
                self.probes_lost += 1;
            }
            _ => {}
        }
        self.network.on_event(event);
    }

    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.network.on_packet(now, node, packet);
    }
}

/// Propagation of the bottleneck.
const MIDDLE: Span = Span::from_millis(1);
const SHORTEST_RTT: Span = Span::from_millis(4);
const PROBE_PERIOD: Span = Span::from_millis(10);
/// A probe with its headers, bytes.
const PROBE_BYTES: u32 = 100;
const PROBE_HEADERS: u32 = Packet::IPV4_HEADER + Packet::UDP_HEADER;
/// What headers with timestamps leave of a full packet, bytes.
const FULL_PAYLOAD: f64 = 1448.0;
const SOURCE_PORT: u16 = 50_000;
const SINK_PORT: u16 = 5001;
