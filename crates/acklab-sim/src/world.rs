//! [`World`]: nodes, links, sockets and the loop that lets time pass.
//!
//! Each turn takes the earliest entry of the queue and lets its component act: a link delivers what
//! has arrived, a socket acts on its deadlines. Whatever follows at the same instant (forwarding,
//! replies, the application's next write) is done before the next entry is taken. A component has
//! one lazy alarm ([`crate::alarm`]), a link one pending event, so the queue's size is that of the
//! topology. Packets are moved by value; nothing is allocated for one.
//!
//! Where a node has a processor, packets wait for it on their way in and out ([`crate::ProcessorOptions`]); elsewhere
//! hosts take no time. Left out: routing that changes.

use std::any::Any;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{DropReason, EventKind, Interest, Sink};
use acklab_core::link::{Link, Medium};
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_host::connection::Connection as Segments;
use acklab_tcp::{Config, Connection, Stack};

use crate::alarm::Alarm;
use crate::app::{App, Stream};
use crate::observer::Observer;
use crate::peer::Peer;
use crate::processor::{Finished, Processor, Way};
use crate::queue::{EventQueue, Target};
use crate::segments::setup;
use crate::socket::{Socket, Transport};
use crate::store::Store;
use crate::topology::{Routes, Topology};

/// One end of a TCP connection as a scenario describes it.
pub struct End {
    /// Where.
    pub addr: Addr,
    /// How its TCP is set up.
    pub config: Config,
    /// Its initial sequence number.
    pub isn: Seq,
    /// What writes and reads there.
    pub app: Box<dyn App>,
}

/// A peer of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerId(u32);

/// A simulated network.
pub struct World<O> {
    now: Time,
    queue: EventQueue,
    nodes: Vec<Node>,
    links: Vec<LinkSlot>,
    routes: Routes,
    sockets: Vec<SocketSlot>,
    peers: Vec<PeerSlot>,
    processors: Vec<ProcessorSlot>,
    /// The bytes of datagrams on their way.
    store: Store,
    /// How many of the sink's events the store has seen.
    stored: usize,
    sink: Sink,
    /// What the observer is told of; the store must hear of drops and copies in any case.
    interest: Interest,
    observer: O,
    events: u64,
}

/// What stands at a node and sees every packet that arrives there, with its bytes if it has any: it may
/// alter both, as an address translator or an attacker does, and says whether the packet goes on.
pub type Middlebox = Box<dyn FnMut(Time, &mut Packet, Option<&mut Vec<u8>>) -> bool + Send>;

#[derive(Default)]
struct Node {
    tapped: bool,
    middlebox: Option<Middlebox>,
    /// Index of its processor.
    processor: Option<u32>,
    /// Sockets here by (own port, remote address), sorted.
    ports: Vec<((u16, Addr), u32)>,
    /// Datagram peers here by port, in the order in which they were attached.
    peers: Vec<(u16, u32)>,
}

struct LinkSlot {
    link: Link,
    from: NodeId,
    to: NodeId,
    alarm: Alarm,
}

impl LinkSlot {
    /// Schedules the link's next turn, unless that is done.
    #[inline]
    fn arm(&mut self, index: u32, now: Time, queue: &mut EventQueue) {
        if let Some(at) = self.alarm.arm(self.link.poll_timeout()) {
            queue.push(at.max(now), Target::Link(index));
        }
    }
}

struct ProcessorSlot {
    processor: Processor,
    node: NodeId,
    alarm: Alarm,
}

struct PeerSlot {
    peer: Box<dyn Peer>,
    alarm: Alarm,
}

struct SocketSlot {
    socket: Socket,
    alarm: Alarm,
}

impl<O: Observer> World<O> {
    /// A world at time zero; links draw from streams named `link/0/...` under `seed`, and events of
    /// the classes in `interest` reach `observer`.
    pub fn new(topology: &Topology, seed: u64, interest: Interest, observer: O) -> Self {
        let media: Vec<_> = topology.media.iter().map(|overhead| Medium::new(*overhead)).collect();
        let links = topology.edges.iter().enumerate().map(|(index, edge)| LinkSlot {
            link: Link::on_medium(
                index as u32,
                seed,
                edge.config.clone(),
                edge.medium.map(|medium| media[medium].clone()),
            ),
            from: edge.from,
            to: edge.to,
            alarm: Alarm::default(),
        });
        let mut nodes: Vec<Node> = (0..topology.nodes()).map(|_| Node::default()).collect();
        let processors = topology.processors.iter().zip(0..).map(|(&(node, options), index)| {
            nodes[usize::from(node.0)].processor = Some(index);
            ProcessorSlot { processor: Processor::new(options), node, alarm: Alarm::default() }
        });
        let processors = processors.collect();
        Self {
            now: Time::ZERO,
            queue: EventQueue::default(),
            nodes,
            links: links.collect(),
            routes: topology.routes(),
            sockets: Vec::new(),
            peers: Vec::new(),
            processors,
            store: Store::default(),
            stored: 0,
            sink: Sink::new(interest),
            interest,
            observer,
            events: 0,
        }
    }

    /// Shows every packet that passes `node` to the observer.
    pub fn tap(&mut self, node: NodeId) {
        self.nodes[usize::from(node.0)].tapped = true;
    }

    /// Puts a middlebox at `node`, from now on.
    pub fn put_middlebox(&mut self, node: NodeId, middlebox: Middlebox) {
        self.nodes[usize::from(node.0)].middlebox = Some(middlebox);
    }

    /// Opens a TCP connection at the present time: `client` connects, `server` listens.
    pub fn connect(&mut self, client: End, server: End) {
        self.connect_at(self.now, client, server);
    }

    /// Opens a TCP connection at `at`, or now where that is past: `server` listens from now on, and
    /// the SYN of `client` leaves then.
    ///
    /// # Panics
    /// Where the stack of one cannot carry its configuration ([`crate::segments::check`]).
    pub fn connect_at(&mut self, at: Time, client: End, server: End) {
        let at = at.max(self.now);
        let (client_addr, server_addr) = (client.addr, server.addr);
        let listening = listening(server.config, server_addr, server.isn);
        self.add_socket(server_addr, client_addr, listening, server.app);
        let connecting = connecting(at, client.config, [client_addr, server_addr], client.isn);
        let index = self.add_socket(client_addr, server_addr, connecting, client.app);
        if at > self.now {
            let slot = &mut self.sockets[index as usize];
            if let Some(at) = slot.alarm.arm(Some(at)) {
                self.queue.push(at, Target::Socket(index));
            }
        } else {
            self.pump(index);
            self.publish();
        }
    }

    /// Lets `peer` take every datagram for `addr` and send its own from there, from now on.
    pub fn attach(&mut self, addr: Addr, peer: Box<dyn Peer>) -> PeerId {
        self.attach_at(&[addr], peer)
    }

    /// The same at several addresses: a host with an interface, which is a node here, for each.
    pub fn attach_at(&mut self, addrs: &[Addr], peer: Box<dyn Peer>) -> PeerId {
        let index = self.peers.len() as u32;
        for addr in addrs {
            self.nodes[usize::from(addr.node.0)].peers.push((addr.port, index));
        }
        self.peers.push(PeerSlot { peer, alarm: Alarm::default() });
        self.pump_peer(index);
        self.publish();
        PeerId(index)
    }

    /// The peer `id`, if it is a `P`.
    pub fn peer<P: Peer>(&self, id: PeerId) -> Option<&P> {
        let peer: &dyn Any = &*self.peers[id.0 as usize].peer;
        peer.downcast_ref()
    }

    /// Does something to the peer `id`, if it is a `P`, and lets it act on that.
    pub fn with_peer<P: Peer, T>(
        &mut self,
        id: PeerId,
        act: impl FnOnce(&mut P, Time, &mut Sink) -> T,
    ) -> Option<T> {
        let peer: &mut dyn Any = &mut *self.peers[id.0 as usize].peer;
        let done = act(peer.downcast_mut()?, self.now, &mut self.sink);
        self.pump_peer(id.0);
        self.publish();
        Some(done)
    }

    /// Sends a packet from `node` at the present time, past any socket: cross traffic, forged packets. One
    /// for that node itself is there at once.
    pub fn send(&mut self, node: NodeId, packet: Packet) {
        if packet.dst.node == node {
            self.arrive(node, &packet);
        } else {
            self.forward(node, &packet);
        }
        self.publish();
    }

    /// The bytes of datagrams on their way.
    pub const fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Lets time pass until nothing is pending or `limit` is reached.
    pub fn run_until(&mut self, limit: Time) {
        while let Some((at, target)) = self.queue.pop_until(limit) {
            self.turn(at, target);
        }
    }

    /// When the next turn is; `None` when nothing is pending.
    pub fn next_time(&self) -> Option<Time> {
        self.queue.next_time()
    }

    /// Takes one turn; returns false when nothing is pending.
    pub fn step(&mut self) -> bool {
        let next = self.queue.pop();
        if let Some((at, target)) = next {
            self.turn(at, target);
        }
        next.is_some()
    }

    fn turn(&mut self, at: Time, target: Target) {
        self.now = at;
        match target {
            Target::Link(index) => self.deliver(index),
            Target::Socket(index) => {
                let slot = &mut self.sockets[index as usize];
                slot.alarm.ring();
                if slot.socket.handle_timeout(at, &mut self.sink) {
                    self.events += 1;
                }
                self.pump(index);
            }
            Target::Peer(index) => {
                let slot = &mut self.peers[index as usize];
                slot.alarm.ring();
                if slot.peer.poll_timeout().is_some_and(|due| due <= at) {
                    self.events += 1;
                    slot.peer.handle_timeout(at, &mut self.sink);
                }
                self.pump_peer(index);
            }
            Target::Processor(index) => self.work(index),
        }
        self.publish();
    }

    /// A processor is done with a packet, or was interrupted.
    #[cold]
    fn work(&mut self, index: u32) {
        let now = self.now;
        let slot = &mut self.processors[index as usize];
        slot.alarm.ring();
        let node = slot.node;
        let finished = slot.processor.finish(now);
        if let Some(Finished { way, packet, took }) = finished {
            self.events += 1;
            self.sink.record(now, EventKind::Worked { node, took });
            match way {
                Way::In => self.take(node, &packet),
                Way::Out => self.leave(node, &packet),
            }
        }
        self.processors[index as usize].processor.go_on(now, finished.is_some());
        self.arm_processor(index);
    }

    fn arm_processor(&mut self, index: u32) {
        let slot = &mut self.processors[index as usize];
        if let Some(at) = slot.alarm.arm(slot.processor.poll_timeout()) {
            self.queue.push(at.max(self.now), Target::Processor(index));
        }
    }

    /// When the next packet leaves the queue of link `index` without a turn that tells of it
    /// ([`Link::next_departure`]).
    pub fn next_departure(&self, index: u32) -> Option<Time> {
        self.links[index as usize].link.next_departure()
    }

    /// Tells the observer of every packet that has left the queue of link `index` by `until`, which is
    /// no later than the next turn or the end of the run. Nothing else changes.
    pub fn tell_departures(&mut self, index: u32, until: Time) {
        self.links[index as usize].link.advance(until, &mut self.sink);
        self.publish();
    }

    /// From now on links, peers, connections and applications draw as they would under `seed`: a run
    /// that branches. What was drawn before, such as the next arrival of a process, stays.
    pub fn reseed(&mut self, seed: u64) {
        for slot in &mut self.links {
            slot.link.reseed(seed);
        }
        for slot in &mut self.peers {
            slot.peer.reseed(seed);
        }
        for slot in &mut self.sockets {
            slot.socket.reseed(seed);
        }
    }

    /// The present time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events so far: packets that came out of a link, and deadlines on which a socket or peer acted.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to be told something.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the world and returns its observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// The connections that acklab-tcp carries, in the order in which their ends were added: server, client,
    /// server, ...
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.sockets.iter().filter_map(|slot| slot.socket.connection())
    }

    /// All connections as their applications see them, in the same order.
    pub fn streams(&self) -> impl Iterator<Item = &dyn Stream> {
        self.sockets.iter().map(|slot| slot.socket.stream())
    }

    fn add_socket(
        &mut self,
        local: Addr,
        remote: Addr,
        transport: Transport,
        app: Box<dyn App>,
    ) -> u32 {
        let index = self.sockets.len() as u32;
        let socket = Socket::new(local.node, transport, app);
        self.sockets.push(SocketSlot { socket, alarm: Alarm::default() });
        let ports = &mut self.nodes[usize::from(local.node.0)].ports;
        let key = (local.port, remote);
        let place = ports.partition_point(|(other, _)| *other < key);
        ports.insert(place, (key, index));
        index
    }

    /// Everything that has reached the far end of a link.
    fn deliver(&mut self, index: u32) {
        let now = self.now;
        let mut slot = &mut self.links[index as usize];
        slot.alarm.ring();
        slot.link.handle_timeout(now, &mut self.sink);
        let to = slot.to;
        while let Some(packet) = slot.link.poll_transmit(now, &mut self.sink) {
            self.events += 1;
            self.arrive(to, &packet);
            slot = &mut self.links[index as usize];
        }
        slot.arm(index, now, &mut self.queue);
    }

    /// A packet is at `node`: for a socket there, or on its way.
    fn arrive(&mut self, node: NodeId, packet: &Packet) {
        let here = &self.nodes[usize::from(node.0)];
        if here.tapped || here.middlebox.is_some() {
            self.inspect(node, packet);
        } else {
            self.pass(node, packet);
        }
    }

    /// A packet is at a node where it is looked at.
    #[cold]
    fn inspect(&mut self, node: NodeId, packet: &Packet) {
        let here = &mut self.nodes[usize::from(node.0)];
        if here.tapped {
            self.observer.on_packet(self.now, node, packet);
        }
        if let Some(middlebox) = &mut here.middlebox {
            let mut altered = *packet;
            let bytes = self.store.bytes_mut(&mut altered);
            let mut shown = altered;
            if !middlebox(self.now, &mut shown, bytes) {
                let (link, reason, packet) = (u32::MAX, DropReason::Loss, altered);
                self.sink.record(self.now, EventKind::Dropped { link, reason, packet });
                return;
            }
            return self.pass(node, &shown);
        }
        self.pass(node, packet);
    }

    /// A packet goes into a node, through its processor where it has one.
    #[inline]
    fn pass(&mut self, node: NodeId, packet: &Packet) {
        match self.nodes[usize::from(node.0)].processor {
            None => self.take(node, packet),
            Some(index) => self.receive_through(index, packet),
        }
    }

    #[cold]
    fn receive_through(&mut self, index: u32, packet: &Packet) {
        if !self.processors[index as usize].processor.receive(self.now, packet) {
            let (link, reason) = (u32::MAX, DropReason::Overflow);
            self.sink.record(self.now, EventKind::Dropped { link, reason, packet: *packet });
        }
        self.arm_processor(index);
    }

    #[inline]
    fn take(&mut self, node: NodeId, packet: &Packet) {
        let (local, remote) = ends(packet);
        if local.node != node {
            return match self.nodes[usize::from(node.0)].processor {
                Some(index) => self.send_through(index, packet),
                None => self.forward(node, packet),
            };
        }
        let here = &self.nodes[usize::from(node.0)];
        let key = (local.port, remote);
        if let Ok(found) = here.ports.binary_search_by(|(other, _)| other.cmp(&key)) {
            let index = here.ports[found].1;
            let socket = &mut self.sockets[index as usize].socket;
            socket.handle_packet(self.now, *packet, &mut self.sink);
            self.pump(index);
        } else if let Some(&(_, index)) = here.peers.iter().find(|(port, _)| *port == local.port) {
            self.keep_stored();
            let Self { peers, sink, store, .. } = self;
            peers[index as usize].peer.handle_packet(self.now, *packet, sink, store);
            self.pump_peer(index);
        } else {
            self.drop_unreachable(packet);
        }
    }

    fn forward(&mut self, node: NodeId, packet: &Packet) {
        let Some(index) = self.routes.next_link(node, ends(packet).0.node) else {
            return self.drop_unreachable(packet);
        };
        let mut slot = &mut self.links[index as usize];
        slot.link.handle_packet(self.now, *packet, &mut self.sink);
        slot.arm(index, self.now, &mut self.queue);
        let from = slot.from;
        while let Some(back) = slot.link.poll_event() {
            self.arrive(from, &back);
            slot = &mut self.links[index as usize];
        }
    }

    fn drop_unreachable(&mut self, packet: &Packet) {
        let reason = DropReason::Unreachable;
        self.sink.record(self.now, EventKind::Dropped { link: u32::MAX, reason, packet: *packet });
    }

    /// Lets a socket say all it has to say at this instant.
    fn pump(&mut self, index: u32) {
        let now = self.now;
        loop {
            let socket = &mut self.sockets[index as usize].socket;
            let Some(packet) = socket.poll_transmit(now, &mut self.sink) else { break };
            let node = socket.node;
            self.say(node, &packet);
        }
        let slot = &mut self.sockets[index as usize];
        if let Some(at) = slot.alarm.arm(slot.socket.poll_timeout()) {
            self.queue.push(at.max(now), Target::Socket(index));
        }
    }

    /// Lets a peer say all it has to say at this instant.
    fn pump_peer(&mut self, index: u32) {
        let now = self.now;
        loop {
            let Self { peers, sink, store, .. } = self;
            let Some(packet) = peers[index as usize].peer.poll_transmit(now, sink, store) else {
                break;
            };
            self.keep_stored();
            self.say(packet.src.node, &packet);
        }
        let slot = &mut self.peers[index as usize];
        if let Some(at) = slot.alarm.arm(slot.peer.poll_timeout()) {
            self.queue.push(at.max(now), Target::Peer(index));
        }
    }

    /// A host sends a packet.
    #[inline]
    fn say(&mut self, node: NodeId, packet: &Packet) {
        match self.nodes[usize::from(node.0)].processor {
            Some(index) => self.send_through(index, packet),
            None => self.leave(node, packet),
        }
    }

    #[cold]
    fn send_through(&mut self, index: u32, packet: &Packet) {
        self.processors[index as usize].processor.send(self.now, packet);
        self.arm_processor(index);
    }

    /// A packet leaves a node; one that was forwarded was seen when it arrived.
    #[inline]
    fn leave(&mut self, node: NodeId, packet: &Packet) {
        if self.nodes[usize::from(node.0)].tapped && ends(packet).1.node == node {
            self.observer.on_packet(self.now, node, packet);
        }
        self.forward(node, packet);
    }

    /// The store hears of what happened to packets since it last did.
    #[inline]
    fn keep_stored(&mut self) {
        if self.store.is_used() {
            self.tell_store();
        }
    }

    fn tell_store(&mut self) {
        self.sink.listen(self.interest.with(Interest::DROPS));
        let events = self.sink.events();
        for event in &events[self.stored.min(events.len())..] {
            self.store.on_event(&event.kind);
        }
        self.stored = events.len();
    }

    /// Hands this turn's events to the observer. Most turns have none.
    #[inline]
    fn publish(&mut self) {
        if self.store.is_used() || !self.sink.events().is_empty() {
            self.publish_events();
        }
    }

    fn publish_events(&mut self) {
        self.keep_stored();
        self.stored = 0;
        let all = !self.store.is_used();
        for event in self.sink.drain() {
            if all || self.interest.has(event.kind.class()) {
                self.observer.on_event(&event);
            }
        }
    }
}

/// The end that waits.
fn listening(config: Config, local: Addr, isn: Seq) -> Transport {
    match config.stack {
        Stack::Stream => Transport::Stream(Connection::listen(config, local, isn)),
        Stack::Segments => {
            let setup = setup(&config).unwrap_or_else(|conflict| panic!("{conflict:?}"));
            Transport::Segments(Box::new(Segments::listen(&setup, local, isn)))
        }
    }
}

/// The end that connects at `at`.
fn connecting(at: Time, config: Config, ends: [Addr; 2], isn: Seq) -> Transport {
    let [local, remote] = ends;
    match config.stack {
        Stack::Stream => Transport::Stream(Connection::connect(at, config, local, remote, isn)),
        Stack::Segments => {
            let setup = setup(&config).unwrap_or_else(|conflict| panic!("{conflict:?}"));
            Transport::Segments(Box::new(Segments::connect(at, &setup, local, remote, isn)))
        }
    }
}

/// Where a packet is going, and where it comes from.
const fn ends(packet: &Packet) -> (Addr, Addr) {
    if packet.returned { (packet.src, packet.dst) } else { (packet.dst, packet.src) }
}
