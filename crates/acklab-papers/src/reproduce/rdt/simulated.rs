//! The course's network in virtual time, and one transfer through it.
//!
//! One or two routers stand between source and destination. Each interface that sends (source to router,
//! router to destination, and back) loses with the same probability and delays, as `tc netem` did on
//! every egress of the course's slice; so data and ACK get through with (1-p)^4. Routers are programs
//! that pass datagrams on; the destination answers to the router from which a packet came. Rates are
//! unlimited: a packet is 46 us at 100 Mbit/s, against 12 ms of delays.

use std::collections::VecDeque;
use std::convert::Infallible;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Event, EventKind, Interest, Sink};
use acklab_core::link::{LinkConfig, Outage};
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::{Observer, Topology, World};

use super::protocol::{Header, PAYLOAD, PORT, Receiver, Sender, Settings, Stage, packet};

/// What lies between source and destination.
#[derive(Clone, Debug)]
pub struct Network {
    /// Loss probability of each interface.
    pub loss: f64,
    /// Delay of each interface, and of what follows it.
    pub delay: Span,
    /// Time that a router's program takes for a packet, one after the other, in either direction.
    pub router_cpu: Span,
    /// The second router is dead then.
    pub outage: Option<Outage>,
    /// No router: each direction is one such link, as the emulator has it. For one path.
    pub direct: Option<LinkConfig>,
}

impl Network {
    /// The course's, with routers that cost nothing: 14 ms of round trip.
    pub const fn new(loss: f64) -> Self {
        let router_cpu = Span::ZERO;
        Self { loss, delay: HOP_DELAY, router_cpu, outage: None, direct: None }
    }

    /// The interfaces of one direction as a single link.
    pub fn one_way(&self) -> LinkConfig {
        let passes = (1.0 - self.loss) * (1.0 - self.loss);
        LinkConfig::new(BitRate::INFINITE, self.delay * 2).with_loss(1.0 - passes)
    }
}

/// What a transfer came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// From the start to the last ACK, which is what the authors measured; `None` if it took longer
    /// than [`LIMIT`].
    pub seconds: Option<f64>,
    /// From there until the end packet was answered or given up.
    pub end_seconds: Option<f64>,
    /// Whether the end packet was answered.
    pub end_answered: bool,
    /// Data packets sent, copies included.
    pub sent: u64,
    /// ACKs that came back.
    pub acks: u64,
    /// The longest time without an ACK, seconds.
    pub longest_wait: f64,
    /// How often the sender took a path for dead.
    pub links_down: u32,
    /// Packets as they left the source: path and sequence number, if asked for.
    pub log: Vec<(usize, u16)>,
}

/// Sends a file with `settings` over `network`; the links draw from `seed`.
pub fn transfer(network: &Network, settings: Settings, seed: u64, log: bool) -> Transfer {
    let mut topology = Topology::default();
    let (source, destination) = (topology.node(), topology.node());
    let routers = connect(&mut topology, network, settings.paths, [source, destination]);
    let first_hops: Vec<Addr> = match routers.as_slice() {
        [] => vec![address(destination)],
        routers => routers.iter().map(|router| address(*router)).collect(),
    };
    let observer = Account { source, first_hops: first_hops.clone(), log, ..Account::default() };
    let mut world = World::new(&topology, seed, Interest::MESSAGE, observer);
    world.tap(source);
    let local = address(destination);
    let receiver = Receiver::new(settings.chunks);
    world.attach(local, Box::new(Destination { local, receiver, answer: None }));
    for local in routers.into_iter().map(address) {
        let ends = [address(source), address(destination)];
        let (cpu, free_at, held) = (network.router_cpu, Time::ZERO, VecDeque::new());
        world.attach(local, Box::new(Router { local, ends, cpu, free_at, held }));
    }
    let local = address(source);
    let sender = Sender::new(Time::ZERO, settings);
    let host = Source { local, first_hops, sender, stage: Stage::Sending, links_down: 0 };
    world.attach(local, Box::new(host));
    world.run_until(LIMIT);
    world.into_observer().transfer
}

/// Links between the ends; the routers on the way, one for each path.
fn connect(
    topology: &mut Topology,
    network: &Network,
    paths: usize,
    ends: [NodeId; 2],
) -> Vec<NodeId> {
    let [source, destination] = ends;
    if let Some(link) = &network.direct {
        topology.duplex(source, destination, link);
        return Vec::new();
    }
    let mut interface = LinkConfig::new(BitRate::INFINITE, network.delay).with_loss(network.loss);
    let mut router = |path| {
        interface.impairments.outages.extend(network.outage.filter(|_| path == 1));
        let router = topology.node();
        topology.duplex(source, router, &interface);
        topology.duplex(router, destination, &interface);
        router
    };
    (0..paths).map(&mut router).collect()
}

const fn address(node: NodeId) -> Addr {
    Addr { node, port: PORT }
}

/// A transfer that takes longer is given up: ten times the longest of the paper.
const LIMIT: Time = Time::from_nanos(1_800_000_000_000);
/// `tc netem ... delay 3ms` on every interface (the authors' README), and half a millisecond for the
/// link and the program behind it, which is ours: they measured 0.5 ms for a bare link there and back.
const HOP_DELAY: Span = Span::from_micros(3500);
/// Event codes of a transfer: seconds until the data was delivered, until the end was answered, and
/// until it was given up;
const DELIVERED: u32 = 1;
const ANSWERED: u32 = 2;
const GIVEN_UP: u32 = 3;
/// A path was found to be down; their number so far.
const LINK_DOWN: u32 = 4;

/// Watches the source.
#[derive(Default)]
struct Account {
    source: NodeId,
    first_hops: Vec<Addr>,
    log: bool,
    /// When the last ACK came.
    heard: Time,
    transfer: Transfer,
}

impl Observer for Account {
    fn on_event(&mut self, event: &Event) {
        let EventKind::App { code, value, .. } = event.kind else { return };
        match code {
            DELIVERED => self.transfer.seconds = Some(value),
            LINK_DOWN => self.transfer.links_down = value as u32,
            _ => {
                self.transfer.end_seconds = Some(value);
                self.transfer.end_answered = code == ANSWERED;
            }
        }
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        let Some(header) = header(packet) else { return };
        if packet.src.node != self.source {
            if header.ack > 0 {
                self.transfer.acks += 1;
                let waited = now.since(self.heard).as_secs_f64();
                self.transfer.longest_wait = self.transfer.longest_wait.max(waited);
                self.heard = now;
            }
            return;
        }
        self.transfer.sent += u64::from(header.seq > 0);
        if self.log {
            let path = self.first_hops.iter().position(|hop| *hop == packet.dst);
            self.transfer.log.push((path.unwrap_or_default(), header.seq));
        }
    }
}

/// The source's host.
struct Source {
    local: Addr,
    /// Where each path begins.
    first_hops: Vec<Addr>,
    sender: Sender,
    /// What has been told.
    stage: Stage,
    links_down: u32,
}

impl Source {
    fn tell(&mut self, now: Time, sink: &mut Sink) {
        let (stage, links_down) = (self.sender.stage(), self.sender.links_down());
        let node = self.local.node;
        if links_down > self.links_down {
            self.links_down = links_down;
            let value = f64::from(links_down);
            sink.record(now, EventKind::App { node, code: LINK_DOWN, value });
        }
        if stage == self.stage {
            return;
        }
        self.stage = stage;
        let (code, value) = match stage {
            Stage::Sending => return,
            Stage::Ending(delivered) => (DELIVERED, delivered.as_secs_f64()),
            Stage::Over { delivered, ended, answered } => {
                let code = if answered { ANSWERED } else { GIVEN_UP };
                (code, ended.since(delivered).as_secs_f64())
            }
        };
        sink.record(now, EventKind::App { node, code, value });
    }
}

impl Endpoint for Source {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        if let Some(header) = header(&packet) {
            self.sender.handle_packet(now, header);
            self.tell(now, sink);
        }
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.sender.handle_timeout(now);
        self.tell(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Packet> {
        let (header, path) = self.sender.poll_transmit(now)?;
        let payload = if header == Header::END { 0 } else { PAYLOAD };
        Some(datagram(self.local, self.first_hops[path], header, payload))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.sender.poll_timeout()
    }
}

/// The destination's host.
struct Destination {
    local: Addr,
    receiver: Receiver,
    answer: Option<Packet>,
}

impl Endpoint for Destination {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, _now: Time, packet: Packet, _sink: &mut Sink) {
        let Some(header) = header(&packet) else { return };
        let (_, answer) = self.receiver.handle_packet(header, true);
        self.answer = answer.map(|answer| datagram(self.local, packet.src, answer, 0));
    }

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, _now: Time, _sink: &mut Sink) -> Option<Packet> {
        self.answer.take()
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// A router's program: what comes from one end goes to the other.
struct Router {
    local: Addr,
    ends: [Addr; 2],
    cpu: Span,
    /// When it has done what it holds.
    free_at: Time,
    held: VecDeque<(Time, Packet)>,
}

impl Endpoint for Router {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Packet, _sink: &mut Sink) {
        let [source, destination] = self.ends;
        let dst = if packet.src == source { destination } else { source };
        self.free_at = self.free_at.max(now) + self.cpu;
        self.held.push_back((self.free_at, Packet { src: self.local, dst, ..packet }));
    }

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Packet> {
        self.held.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.held.front().map(|(at, _)| *at)
    }
}

/// In virtual time a packet's first word is its header.
fn datagram(src: Addr, dst: Addr, header: Header, payload: usize) -> Packet {
    let len = (packet::HEADER + payload) as u32;
    let words = [u64::from(header.seq) << 16 | u64::from(header.ack), 0];
    let body = Body::Datagram { len, words };
    Packet { src, dst, ecn: Ecn::NotEct, returned: false, body }
}

fn header(packet: &Packet) -> Option<Header> {
    let Body::Datagram { words: [word, _], .. } = packet.body else { return None };
    Some(Header { seq: (word >> 16) as u16, ack: word as u16 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::rdt::protocol::chunks;

    fn settings(size: usize, paths: usize) -> Settings {
        Settings::new(chunks(size).expect("small enough"), paths)
    }

    #[test]
    fn without_loss_each_window_takes_a_round_trip() {
        let transfer = transfer(&Network::new(0.0), settings(160 * 512 - 1, 1), 1, false);
        // Ten windows of 16 packets, 14 ms each.
        let seconds = transfer.seconds.expect("it ends");
        assert!((seconds - 0.14).abs() < 1e-9, "{seconds}");
        assert_eq!((transfer.sent, transfer.acks, transfer.end_answered), (160, 160, true));
    }

    #[test]
    fn the_same_seed_gives_the_same_transfer_and_another_does_not() {
        let network = Network { router_cpu: Span::from_micros(100), ..Network::new(0.15) };
        let run = |seed| transfer(&network, settings(200_000, 2), seed, true);
        assert_eq!(run(3), run(3));
        assert_ne!(run(3).log, run(4).log);
    }

    #[test]
    fn loss_takes_data_and_acks_on_four_interfaces() {
        let transfer = transfer(&Network::new(0.28), settings(2_000_000, 2), 1, false);
        // Geometric number of tries per packet with success 0.72^4; five standard errors.
        let (p, packets) = (0.72_f64 * 0.72 * 0.72 * 0.72, 3907.0);
        let error = 5.0 * ((1.0 - p) / (p * p) / packets).sqrt();
        let tries = transfer.sent as f64 / packets;
        assert!((tries - 1.0 / p).abs() < error, "{tries} for {}", 1.0 / p);
    }

    #[test]
    fn a_dead_router_is_left_after_a_thousand_time_outs() {
        let dead = Outage { from: Time::from_nanos(100_000_000), until: Time::MAX };
        let network = Network { outage: Some(dead), ..Network::new(0.0) };
        let transfer = transfer(&network, settings(1_000_000, 2), 1, false);
        assert_eq!(transfer.links_down, 1);
        // 1000 time-outs of 14.05 ms.
        assert!((13.9..14.3).contains(&transfer.longest_wait), "{}", transfer.longest_wait);
        assert!(transfer.seconds.is_some_and(|seconds| seconds > 14.0));
    }
}
