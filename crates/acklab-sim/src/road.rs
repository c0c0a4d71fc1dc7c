//! [`Road`]: reliable UDP in virtual time. A client and a server with their bytes, and between them as
//! many paths as there are pairs of links.
//!
//! The same connections run on sockets. Packets in the links are values; their bytes wait in a store
//! beside them and are found by number, so a duplicate is two packets with one content. Content older than
//! [`MEMORY`] is forgotten: a packet that was so long on its way counts as lost.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Interest, Sink};
use acklab_core::link::{Link, LinkConfig};
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_rudp::{Connection, Listener, PathAddrs, Transmit};

/// How long the content of a datagram is kept.
pub const MEMORY: Span = Span::from_secs(8);
/// A buffer for one datagram.
const DATAGRAM: usize = 1 << 16;
/// The server's port on every path.
pub const PORT: u16 = 7000;

/// So many turns at one instant are no progress but a deadline that is never met.
const STUCK: u32 = 100_000;

/// The two directions of a path.
struct Lane {
    forward: Link,
    reverse: Link,
    up: bool,
    /// Bytes at the IP layer that left the client, and that left the server.
    wire: [u64; 2],
}

/// Bytes of datagrams on their way, by number.
#[derive(Default)]
struct Store {
    first: u64,
    contents: VecDeque<(Time, Box<[u8]>)>,
}

impl Store {
    fn put(&mut self, now: Time, bytes: &[u8]) -> u64 {
        while self.contents.pop_front_if(|(at, _)| now.since(*at) > MEMORY).is_some() {
            self.first += 1;
        }
        self.contents.push_back((now, bytes.into()));
        self.first + self.contents.len() as u64 - 1
    }

    fn get(&self, number: u64) -> Option<&[u8]> {
        let index = number.checked_sub(self.first)?;
        self.contents.get(index as usize).map(|(_, bytes)| &**bytes)
    }
}

/// Who uses the two ends: called whenever something may have changed.
pub trait Ends {
    /// Reads and writes; `Break` ends the run.
    fn on_progress(
        &mut self,
        now: Time,
        client: &mut Connection,
        server: &mut Listener,
    ) -> ControlFlow<()>;

    /// When it wants to be called though nothing has happened.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

impl<F> Ends for F
where
    F: FnMut(Time, &mut Connection, &mut Listener) -> ControlFlow<()>,
{
    fn on_progress(
        &mut self,
        now: Time,
        client: &mut Connection,
        server: &mut Listener,
    ) -> ControlFlow<()> {
        self(now, client, server)
    }
}

/// Somebody on the way: sees each datagram that arrives, from the client (0) or the server (1), may
/// alter it, and says whether it goes on.
pub type Meddler = Box<dyn FnMut(Time, usize, &mut Vec<u8>) -> bool>;

/// Two ends and the paths between them.
pub struct Road {
    /// The client.
    pub client: Connection,
    /// The server.
    pub server: Listener,
    lanes: Vec<Lane>,
    store: Store,
    sink: Sink,
    now: Time,
    buffer: Vec<u8>,
    /// Turns since time last moved.
    stuck: u32,
    meddler: Option<Meddler>,
    /// Until when an end's processor is busy elsewhere, and what arrived there meanwhile.
    busy: [Time; 2],
    waiting: [VecDeque<(PathAddrs, Ecn, Vec<u8>)>; 2],
    /// Where the client's packets of a path come from, as the server sees it.
    ports: Vec<u16>,
}

/// The ends of path `lane` as the client sees them.
pub fn path(lane: u8) -> PathAddrs {
    let host = |end| IpAddr::V4(Ipv4Addr::new(10, 77, lane, end));
    PathAddrs { local: SocketAddr::new(host(1), PORT), remote: SocketAddr::new(host(2), PORT) }
}

impl Road {
    /// A road whose paths are links of (client to server, server to client).
    pub fn new(
        seed: u64,
        client: Connection,
        server: Listener,
        lanes: &[(LinkConfig, LinkConfig)],
    ) -> Self {
        let lane = |(index, (forward, reverse)): (usize, &(LinkConfig, LinkConfig))| Lane {
            forward: Link::new(2 * index as u32, seed, forward.clone()),
            reverse: Link::new(2 * index as u32 + 1, seed, reverse.clone()),
            up: true,
            wire: [0; 2],
        };
        Self {
            client,
            server,
            lanes: lanes.iter().enumerate().map(lane).collect(),
            store: Store::default(),
            sink: Sink::new(Interest::NONE),
            now: Time::ZERO,
            buffer: vec![0; DATAGRAM],
            stuck: 0,
            meddler: None,
            busy: [Time::ZERO; 2],
            waiting: [VecDeque::new(), VecDeque::new()],
            ports: vec![PORT; lanes.len()],
        }
    }

    /// The present time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Bytes at the IP layer that left the client, and that left the server, over all paths.
    pub fn wire_bytes(&self) -> [u64; 2] {
        let sum = |end: usize| self.lanes.iter().map(|lane| lane.wire[end]).sum();
        [sum(0), sum(1)]
    }

    /// Cuts a path, or mends it; what is on its way when it is cut is lost.
    pub fn set_up(&mut self, lane: usize, up: bool) {
        self.lanes[lane].up = up;
    }

    /// From now on the client's packets of a path come from another port: a NAT forgot it.
    pub fn rebind(&mut self, lane: usize) {
        self.ports[lane] += 1;
    }

    /// Puts somebody on the way.
    pub fn set_meddler(&mut self, meddler: Meddler) {
        self.meddler = Some(meddler);
    }

    /// An end (0 the client, 1 the server) gets no processor for so long: what arrives waits, and so does
    /// what it would send.
    pub fn keep_busy(&mut self, end: usize, span: Span) {
        self.busy[end] = self.now + span;
    }

    /// A datagram from nowhere arrives at the server (`end` 0: as if the client had sent it) or at the
    /// client, on path 0, from the given port.
    pub fn inject(&mut self, end: usize, port: u16, mut datagram: Vec<u8>) {
        let mut addrs = path(0);
        if end == 0 {
            addrs = PathAddrs { local: addrs.remote, remote: addrs.local };
        }
        addrs.remote.set_port(port);
        match end {
            0 => self.server.handle_datagram(self.now, addrs, Ecn::NotEct, &mut datagram),
            _ => self.client.handle_datagram(self.now, addrs, Ecn::NotEct, &mut datagram),
        }
    }

    /// Runs until `until` or until the application breaks; whether it did.
    pub fn run(&mut self, until: Time, ends: &mut impl Ends) -> bool {
        loop {
            if ends.on_progress(self.now, &mut self.client, &mut self.server).is_break() {
                return true;
            }
            self.transmit();
            let Some(next) = self.next_time(ends).filter(|&at| at <= until) else {
                self.now = self.now.max(until);
                return false;
            };
            self.stuck = if next > self.now { 0 } else { self.stuck + 1 };
            assert!(self.stuck < STUCK, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next_time(&self, ends: &impl Ends) -> Option<Time> {
        let freed = |end: usize| (self.busy[end] > self.now).then_some(self.busy[end]);
        let own = [
            freed(0).or_else(|| self.client.poll_timeout()),
            freed(1).or_else(|| self.server.poll_timeout()),
            ends.poll_timeout(),
        ];
        let links = self
            .lanes
            .iter()
            .flat_map(|lane| [lane.forward.poll_timeout(), lane.reverse.poll_timeout()]);
        own.into_iter().chain(links).flatten().min()
    }

    fn transmit(&mut self) {
        for end in [0, 1] {
            while self.busy[end] <= self.now {
                let (now, buffer) = (self.now, &mut self.buffer[..]);
                let transmit = match end {
                    0 => self.client.poll_transmit(now, buffer, usize::MAX),
                    _ => self.server.poll_transmit(now, buffer, usize::MAX),
                };
                let Some(transmit) = transmit else { break };
                self.send(end, &transmit);
            }
        }
    }

    /// Puts a batch into the links.
    fn send(&mut self, end: usize, transmit: &Transmit) {
        // Both ends have addresses 10.77.LANE.x.
        let IpAddr::V4(local) = transmit.addrs.local.ip() else { return };
        let index = usize::from(local.octets()[2]);
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let mut at = 0;
        while at < transmit.len {
            let len = transmit.segment.min(transmit.len - at);
            let number = self.store.put(self.now, &self.buffer[at..at + len]);
            at += len;
            let node = |end: usize| Addr { node: NodeId(end as u16), port: PORT };
            let packet = Packet {
                src: node(end),
                dst: node(1 - end),
                ecn: transmit.ecn,
                returned: false,
                body: Body::Datagram { len: len as u32, words: [number, 0] },
            };
            lane.wire[end] += u64::from(packet.size());
            if lane.up {
                let link = if end == 0 { &mut lane.forward } else { &mut lane.reverse };
                link.handle_packet(self.now, packet, &mut self.sink);
            }
        }
    }

    /// Everything that is due now.
    fn step(&mut self) {
        let now = self.now;
        for index in 0..self.lanes.len() {
            for end in [0, 1] {
                let lane = &mut self.lanes[index];
                let link = if end == 0 { &mut lane.forward } else { &mut lane.reverse };
                if link.poll_timeout().is_none_or(|due| due > now) {
                    continue;
                }
                link.handle_timeout(now, &mut self.sink);
                while let Some(packet) = {
                    let lane = &mut self.lanes[index];
                    let link = if end == 0 { &mut lane.forward } else { &mut lane.reverse };
                    link.poll_transmit(now, &mut self.sink)
                } {
                    self.deliver(index, end, &packet);
                }
            }
        }
        for end in [0, 1] {
            while self.busy[end] <= now
                && let Some((addrs, ecn, bytes)) = self.waiting[end].pop_front()
            {
                self.hand_over(end, addrs, ecn, bytes);
            }
        }
        if self.busy[0] <= now && self.client.poll_timeout().is_some_and(|due| due <= now) {
            self.client.handle_timeout(now);
        }
        if self.busy[1] <= now && self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
        }
    }

    fn hand_over(&mut self, end: usize, addrs: PathAddrs, ecn: Ecn, mut bytes: Vec<u8>) {
        if self.busy[end] > self.now {
            self.waiting[end].push_back((addrs, ecn, bytes));
        } else if end == 0 {
            self.client.handle_datagram(self.now, addrs, ecn, &mut bytes);
        } else {
            self.server.handle_datagram(self.now, addrs, ecn, &mut bytes);
        }
    }

    fn deliver(&mut self, index: usize, end: usize, packet: &Packet) {
        let Body::Datagram { words: [number, _], .. } = packet.body else { return };
        if !self.lanes[index].up {
            return;
        }
        let Some(bytes) = self.store.get(number) else { return };
        let mut bytes = bytes.to_vec();
        if let Some(meddler) = &mut self.meddler
            && !meddler(self.now, end, &mut bytes)
        {
            return;
        }
        let mut addrs = path(index as u8);
        if end == 0 {
            addrs = PathAddrs { local: addrs.remote, remote: addrs.local };
            addrs.remote.set_port(self.ports[index]);
        }
        self.hand_over(1 - end, addrs, packet.ecn, bytes);
    }
}
