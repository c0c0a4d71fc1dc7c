//! [`Ends`]: a client, a server and what is on its way between them, held to the contract.

use acklab_core::contract::{check_quiet, drain, expire};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Interest, Sink};
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use crate::protect::{Entropy, PlainGreeter};
use crate::{Batch, Config, Connection, Datagram, Event, Handle, Limits, Listener, PathAddrs};

/// Datagrams on their way at most; older ones are lost.
const ON_THE_WAY: usize = 256;
/// The largest datagram, bytes of UDP payload.
const LARGEST: usize = 1472;

/// A datagram on its way: to the client (0) or the server (1), its addresses there, its mark and bytes.
#[derive(Clone, Debug)]
pub(super) struct OnTheWay {
    pub(super) to: usize,
    pub(super) addrs: PathAddrs,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

/// The two ends.
pub(super) struct Ends {
    pub(super) now: Time,
    pub(super) client: Connection,
    pub(super) server: Listener,
    /// The server's connection, once it has told something.
    pub(super) handle: Option<Handle>,
    pub(super) way: Vec<OnTheWay>,
    /// What the client and the server's connection told.
    pub(super) told: [Vec<Event>; 2],
    /// FNV-1a over when what left.
    pub(super) digest: u64,
    sink: Sink,
}

/// The ends of path `lane` as the client sees them.
pub(super) fn path(lane: u8) -> PathAddrs {
    let address = |end: u8| ([10, 77, lane % 4, end], 7000).into();
    PathAddrs { local: address(1), remote: address(2) }
}

/// The same as the other end sees them.
pub(super) const fn turned(addrs: PathAddrs) -> PathAddrs {
    PathAddrs { local: addrs.remote, remote: addrs.local }
}

impl Ends {
    /// A client that knows two paths to a server.
    pub(super) fn new(config: &Config) -> Self {
        let client = Connection::connect(
            Time::ZERO,
            config.clone(),
            Box::new(Rng::named(1, "client")),
            Box::new(PlainGreeter),
            &[path(0), path(1)],
        );
        // Every connection draws the same: ids that would collide must not mix connections up.
        let entropy = || -> Box<dyn Entropy> { Box::new(Rng::named(1, "server")) };
        let greeter = Box::new(PlainGreeter);
        let limits = Limits::default();
        let server = Listener::new(Time::ZERO, config.clone(), entropy, greeter, limits);
        let mut ends = Self {
            now: Time::ZERO,
            client,
            server,
            handle: None,
            way: Vec::new(),
            told: [Vec::new(), Vec::new()],
            digest: 0xcbf2_9ce4_8422_2325,
            sink: Sink::new(Interest::ALL),
        };
        ends.settle();
        ends
    }

    /// The connection of an end, if there is one.
    pub(super) fn end(&mut self, end: usize) -> Option<&mut Connection> {
        match end {
            0 => Some(&mut self.client),
            _ => self.server.connection(self.handle?),
        }
    }

    pub(super) fn arrive(&mut self, datagram: OnTheWay) {
        let OnTheWay { to, addrs, ecn, mut bytes } = datagram;
        let arrival = Datagram { addrs, ecn, bytes: &mut bytes };
        match to {
            0 => self.client.handle_packet(self.now, arrival, &mut self.sink),
            _ => self.server.handle_packet(self.now, arrival, &mut self.sink),
        }
        self.settle();
    }

    /// Lets `span` pass, deadline by deadline.
    pub(super) fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.next_time().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// The next deadline.
    pub(super) fn next_time(&self) -> Option<Time> {
        [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    /// After anything happened: what may leave leaves, what is to be told is, no deadline stands that has
    /// passed, and a time-out before its time does nothing.
    pub(super) fn settle(&mut self) {
        let Self { client, server, way, sink, digest, .. } = self;
        let now = self.now;
        let events = settled(client, now, sink, |batch| send(batch, now, 1, way, digest));
        self.told[0].extend(events);
        let events = settled(server, now, sink, |batch| send(batch, now, 0, way, digest));
        for (handle, event) in events {
            if *self.handle.get_or_insert(handle) == handle {
                self.told[1].push(event);
            }
        }
        sink.drain();
        let excess = self.way.len().saturating_sub(ON_THE_WAY);
        self.way.drain(..excess);
    }
}

fn send(batch: Batch<'_>, now: Time, to: usize, way: &mut Vec<OnTheWay>, digest: &mut u64) {
    assert!(batch.segment > 0 && batch.segment <= LARGEST, "{} bytes", batch.segment);
    let mut mix = |word: u64| *digest = (*digest ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    for datagram in batch.datagrams() {
        mix(now.as_nanos());
        for byte in datagram {
            mix(u64::from(*byte));
        }
        let (addrs, ecn) = (turned(batch.addrs), batch.ecn);
        way.push(OnTheWay { to, addrs, ecn, bytes: datagram.to_vec() });
    }
}

/// Drains an endpoint and handles what is due.
fn settled<E: Endpoint>(
    endpoint: &mut E,
    now: Time,
    sink: &mut Sink,
    mut each: impl FnMut(E::Departure<'_>),
) -> Vec<E::AppEvent> {
    let mut told = drain(endpoint, now, sink, &mut each);
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        told.extend(expire(endpoint, now, sink, &mut each));
    }
    check_quiet(endpoint, now, sink);
    told
}
