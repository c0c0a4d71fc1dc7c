//! A client, a server, paths between them and a file to be sent.

use std::sync::{Arc, Mutex, MutexGuard};

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Event as Told, Interest, Sink};
use acklab_core::link::{LinkConfig, Outage};
use acklab_core::packet::{Addr, Ecn, NodeId, Packet};
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::protect::{Entropy, PlainGreeter};
use acklab_rudp::{
    Config, Connection, ContentEvent, Datagram, Event, Limits, Listener, PathAddrs, PathStats,
};
use acklab_sim::peer::Peer;
use acklab_sim::rudp::{Host, User};
use acklab_sim::{Observer, PeerId, Topology, World};

use crate::busy::Busy;

/// The transfer of the table, bytes.
pub(crate) const FILE: usize = 5_000_000;
/// How much is written at once.
const BLOCK: usize = 256 << 10;
/// Both ends' port on every path.
pub(crate) const PORT: u16 = 7000;

/// The two directions of a path.
pub(crate) type Lane = (LinkConfig, LinkConfig);

/// 20 Mbit/s, 20 ms, 100 ms of queue.
pub(crate) fn lane(loss: f64) -> Lane {
    lane_of("20mbit", 20, loss)
}

pub(crate) fn lane_of(rate: &str, delay_ms: u64, loss: f64) -> Lane {
    let rate: BitRate = rate.parse().expect("a rate");
    let bytes = rate.as_bps() / 8 / 10;
    let queue = Discipline::drop_tail(Limit::bytes(bytes));
    let one = LinkConfig::new(rate, Span::from_millis(delay_ms)).with_loss(loss).with_queue(queue);
    (one.clone(), one)
}

/// The lane, dead at these times.
pub(crate) fn lane_with_outages(lane: Lane, outages: &[(u64, u64)]) -> Lane {
    let outages: Vec<_> =
        outages.iter().map(|&(from, until)| Outage { from: ms(from), until: ms(until) }).collect();
    let mut lane = lane;
    lane.0.impairments.outages.clone_from(&outages);
    lane.1.impairments.outages = outages;
    lane
}

pub(crate) fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// The nodes at the ends of path `lane`: the client's and the server's.
pub(crate) fn nodes(lane: usize) -> [NodeId; 2] {
    [NodeId(2 * lane as u16), NodeId(2 * lane as u16 + 1)]
}

/// The ends of path `lane` as the client sees them.
pub(crate) fn path(lane: usize) -> PathAddrs {
    let [local, remote] = nodes(lane).map(|node| Addr { node, port: PORT }.into());
    PathAddrs { local, remote }
}

/// Bytes at the IP layer that left the client's nodes.
#[derive(Default)]
pub(crate) struct Wire {
    bytes: u64,
}

impl Observer for Wire {
    fn on_event(&mut self, _event: &Told) {}

    fn on_packet(&mut self, _now: Time, node: NodeId, packet: &Packet) {
        if packet.src.node == node {
            self.bytes += u64::from(packet.size());
        }
    }
}

/// What uses an end.
pub(crate) struct Use<E>(Box<dyn User<E> + Send>);

impl<E> Use<E> {
    pub(crate) fn by(user: impl User<E> + Send + 'static) -> Self {
        Self(Box::new(user))
    }
}

impl<E> User<E> for Use<E> {
    fn on_progress(&mut self, now: Time, endpoint: &mut E, sink: &mut Sink) {
        self.0.on_progress(now, endpoint, sink);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
}

type HostOf<E> = Busy<Host<E, Use<E>>>;

/// Two ends and the paths between them.
pub(crate) struct Net {
    pub(crate) world: World<Wire>,
    ends: [PeerId; 2],
    lanes: usize,
}

impl Net {
    /// A client that knows the first `known` of the paths, and a server that has them all.
    pub(crate) fn new(
        seed: u64,
        lanes: &[Lane],
        known: usize,
        config: &Config,
        users: (Use<Connection>, Use<Listener>),
    ) -> Self {
        let mut topology = Topology::default();
        for (index, (forward, reverse)) in lanes.iter().enumerate() {
            let [a, b] = [topology.node(), topology.node()];
            assert_eq!([a, b], nodes(index));
            topology.link(a, b, forward.clone());
            topology.link(b, a, reverse.clone());
        }
        let mut world = World::new(&topology, seed, Interest::NONE, Wire::default());
        for index in 0..lanes.len() {
            world.tap(nodes(index)[0]);
        }
        let config = Config { seed, ..config.clone() };
        let paths: Vec<_> = (0..known).map(path).collect();
        let entropy = Box::new(Rng::named(seed, "client"));
        let greeter = Box::new(PlainGreeter);
        let client = Connection::connect(Time::ZERO, config.clone(), entropy, greeter, &paths);
        let mut made = 0;
        let entropy = move || -> Box<dyn Entropy> {
            made += 1;
            Box::new(Rng::named(seed + made, "server"))
        };
        let greeter = Box::new(PlainGreeter);
        let server = Listener::new(Time::ZERO, config, entropy, greeter, Limits::default());
        let addrs = |end: usize| -> Vec<Addr> {
            (0..lanes.len()).map(|lane| Addr { node: nodes(lane)[end], port: PORT }).collect()
        };
        let server = Box::new(Busy::new(Host::new(server, users.1)));
        let server = world.attach_at(&addrs(1), server);
        let client = Box::new(Busy::new(Host::new(client, users.0)));
        let client = world.attach_at(&addrs(0), client);
        Self { world, ends: [client, server], lanes: lanes.len() }
    }

    pub(crate) fn client<T>(&mut self, act: impl FnOnce(Time, &mut Connection) -> T) -> T {
        let act =
            |host: &mut HostOf<Connection>, now, _: &mut Sink| act(now, &mut host.inner.endpoint);
        self.world.with_peer(self.ends[0], act).expect("the client")
    }

    pub(crate) fn server<T>(&mut self, act: impl FnOnce(Time, &mut Listener) -> T) -> T {
        let act =
            |host: &mut HostOf<Listener>, now, _: &mut Sink| act(now, &mut host.inner.endpoint);
        self.world.with_peer(self.ends[1], act).expect("the server")
    }

    pub(crate) fn stats(&mut self) -> Vec<PathStats> {
        self.client(|_, client| client.path_stats().collect())
    }

    pub(crate) fn is_open(&mut self) -> bool {
        self.client(|_, client| client.is_open())
    }

    /// Bytes at the IP layer that left the client, over all paths.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.world.observer().bytes
    }

    /// Datagrams from nowhere arrive at once at the server (`end` 0: as if the client had sent them) or at
    /// the client, on path 0, from the given ports.
    pub(crate) fn inject(
        &mut self,
        end: usize,
        datagrams: impl IntoIterator<Item = (u16, Vec<u8>)>,
    ) {
        let mut addrs = path(0);
        if end == 0 {
            addrs = PathAddrs { local: addrs.remote, remote: addrs.local };
        }
        let (ecn, sink) = (Ecn::NotEct, &mut Sink::default());
        let datagrams = datagrams.into_iter().map(|(port, bytes)| {
            addrs.remote.set_port(port);
            (addrs, bytes)
        });
        match end {
            0 => self.server(|now, server| {
                for (addrs, mut bytes) in datagrams {
                    server.handle_packet(now, Datagram { addrs, ecn, bytes: &mut bytes }, sink);
                }
            }),
            _ => self.client(|now, client| {
                for (addrs, mut bytes) in datagrams {
                    client.handle_packet(now, Datagram { addrs, ecn, bytes: &mut bytes }, sink);
                }
            }),
        }
    }

    /// Shows each datagram that arrives, from the client (0) or the server (1), to `meddler`, who may alter
    /// it and says whether it goes on.
    pub(crate) fn set_meddler(
        &mut self,
        meddler: impl FnMut(Time, usize, &mut Vec<u8>) -> bool + Send + 'static,
    ) {
        let meddler = Arc::new(Mutex::new(meddler));
        for lane in 0..self.lanes {
            for (end, node) in nodes(lane).into_iter().rev().enumerate() {
                let meddler = meddler.clone();
                let box_ = move |now, _: &mut Packet, bytes: Option<&mut Vec<u8>>| {
                    let mut meddler = meddler.lock().expect("no panic");
                    bytes.is_none_or(|bytes| meddler(now, end, bytes))
                };
                self.world.put_middlebox(node, Box::new(box_));
            }
        }
    }

    /// From now on the client's packets of path 0 come from that port: a NAT forgot it.
    pub(crate) fn rebind(&mut self, port: u16) {
        let [client, server] = nodes(0);
        let translate = move |_, packet: &mut Packet, _: Option<&mut Vec<u8>>| {
            packet.src.port = port;
            true
        };
        self.world.put_middlebox(server, Box::new(translate));
        let translate_back = |_, packet: &mut Packet, _: Option<&mut Vec<u8>>| {
            packet.dst.port = PORT;
            true
        };
        self.world.put_middlebox(client, Box::new(translate_back));
    }

    /// An end (0 the client, 1 the server) gets no processor for so long: what arrives waits, and so does
    /// what it would send.
    pub(crate) fn keep_busy(&mut self, end: usize, until: Time) {
        fn busy<P: Peer>(peer: &mut Busy<P>, until: Time) {
            peer.until = Some(until);
        }
        let id = self.ends[end];
        match end {
            0 => self.world.with_peer(id, |host: &mut HostOf<Connection>, _, _| busy(host, until)),
            _ => self.world.with_peer(id, |host: &mut HostOf<Listener>, _, _| busy(host, until)),
        };
    }

    /// Runs until `until` or until it is over; whether it is.
    pub(crate) fn run(&mut self, until: Time, mut over: impl FnMut() -> bool) -> bool {
        while !over() {
            if self.world.next_time().is_none_or(|at| at > until) {
                return false;
            }
            self.world.step();
        }
        true
    }
}

/// The byte at an offset of the file.
pub(crate) fn byte(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// A file on its way from the client to the server.
#[derive(Default)]
pub(crate) struct File {
    /// Bytes.
    size: usize,
    stream: Option<u64>,
    written: usize,
    pub(crate) received: usize,
    /// When the client knew that all of it had arrived.
    pub(crate) done: Option<Time>,
    pub(crate) events: Vec<(Time, Event)>,
    /// When content left on path 0, and how much of it.
    pub(crate) used: Vec<Time>,
    content: u64,
}

impl File {
    fn send(&mut self, now: Time, client: &mut Connection) {
        if let Some(stats) = client.path_stats().find(|stats| stats.id == 0)
            && stats.content > self.content
        {
            self.content = stats.content;
            self.used.push(now);
        }
        while let Some(event) = client.poll_event() {
            if let Event::Content(ContentEvent::StreamDelivered { .. }) = event {
                self.done = Some(now);
            }
            self.events.push((now, event));
        }
        if !client.is_open() {
            return;
        }
        let content = client.content();
        let stream =
            *self.stream.get_or_insert_with(|| content.open_stream(now, false).expect("a stream"));
        while self.written < self.size && content.room(stream) > 0 {
            let end = (self.written + BLOCK).min(self.size);
            content.write(stream, (self.written..end).map(byte).collect());
            self.written = end;
            if end == self.size {
                content.finish(stream);
            }
        }
    }

    fn receive(&mut self, now: Time, server: &mut Listener) {
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some(block) = connection.content().read(now, stream) {
                for &value in &*block {
                    assert_eq!(value, byte(self.received), "at offset {}", self.received);
                    self.received += 1;
                }
            }
        }
    }
}

/// A file and the network that carries it.
pub(crate) struct Transfer {
    pub(crate) net: Net,
    file: Arc<Mutex<File>>,
}

impl Transfer {
    pub(crate) fn new(seed: u64, lanes: &[Lane]) -> Self {
        Self::of(seed, lanes, lanes.len(), &Config::default())
    }

    /// The client knows only the first `known` paths.
    pub(crate) fn of(seed: u64, lanes: &[Lane], known: usize, config: &Config) -> Self {
        let file = Arc::new(Mutex::new(File { size: FILE, ..File::default() }));
        let (sending, receiving) = (file.clone(), file.clone());
        let users = (
            Use::by(move |now, client: &mut Connection| {
                sending.lock().expect("no panic").send(now, client);
            }),
            Use::by(move |now, server: &mut Listener| {
                receiving.lock().expect("no panic").receive(now, server);
            }),
        );
        Self { net: Net::new(seed, lanes, known, config, users), file }
    }

    /// The file has so many bytes.
    pub(crate) fn with_bytes(self, bytes: usize) -> Self {
        self.file().size = bytes;
        self
    }

    pub(crate) fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().expect("no panic")
    }

    /// Runs until `until`; whether all of the file had arrived by then.
    pub(crate) fn run(&mut self, until: Time) -> bool {
        let file = self.file.clone();
        self.net.run(until, || file.lock().expect("no panic").done.is_some())
    }

    /// The same; all of it must have arrived, each byte as it was.
    pub(crate) fn finish(&mut self, until: Time) -> f64 {
        let ended = self.run(until);
        let file = self.file();
        assert!(ended, "not done by {until}: {} of {} received", file.received, file.size);
        assert_eq!(file.received, file.size, "{:?}", file.events);
        file.done.expect("done").as_secs_f64()
    }
}

/// Seconds, and bytes on the wire over bytes of the file.
pub(crate) fn transfer(seed: u64, lanes: &[Lane]) -> (f64, f64) {
    let mut transfer = Transfer::new(seed, lanes);
    let seconds = transfer.finish(ms(60_000));
    (seconds, transfer.net.wire_bytes() as f64 / FILE as f64)
}

pub(crate) fn medians(lanes: &[Lane], seeds: u64) -> (f64, f64) {
    let mut runs: Vec<_> = (1..=seeds).map(|seed| transfer(seed, lanes)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wire = runs.iter().map(|run| run.1).fold(0.0, f64::max);
    (runs[runs.len() / 2].0, wire)
}
