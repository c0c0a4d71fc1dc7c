//! A road that does to datagrams whatever a network may do: it loses, delays, reorders, duplicates and
//! damages them, goes dead for a while, and changes the address it sends from as a NAT does.
//!
//! It stands between the two ends on the loopback interface, one pair of sockets per path, and is driven
//! by the same loop as they are. The weather of each path changes every few seconds; all of it comes
//! from one seed. Damage is done to the datagram and not to the packet, so UDP's checksum does not find it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_rudp::{Batch, Datagram, PathAddrs};

/// How long a path's weather lasts, at most.
const WEATHER: Span = Span::from_secs(6);
/// Longer waits in front of a slow path are drops.
const LONGEST_QUEUE: Span = Span::from_millis(100);
/// Loopback.
pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What happened on the road, readable from outside.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) carried: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) copied: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) flaps: AtomicU64,
    pub(crate) moves: AtomicU64,
}

/// One path's conditions, both ways alike.
#[derive(Clone, Copy, Debug)]
struct Weather {
    rate: BitRate,
    delay: Span,
    lose: f64,
    reorder: f64,
    copy: f64,
    damage: f64,
    /// Nothing passes before that.
    dead_until: Time,
    over: Time,
}

/// Two sockets that belong together.
#[derive(Debug)]
struct Path {
    /// Where the client sends to.
    front: SocketAddr,
    /// Where the server sees it come from.
    back: SocketAddr,
    client: Option<SocketAddr>,
    server: SocketAddr,
    weather: Weather,
    /// When the transmitter is free again: to the server, to the client.
    free: [Time; 2],
}

/// A datagram under way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    due: Time,
    order: u64,
    path: usize,
    to_server: bool,
    ect: bool,
    bytes: Vec<u8>,
}

/// The road.
pub(crate) struct Relay {
    paths: Vec<Path>,
    pending: BinaryHeap<Reverse<Pending>>,
    order: u64,
    /// Buffers that are used again.
    spare: Vec<Vec<u8>>,
    /// What leaves at present.
    leaving: Vec<u8>,
    rng: Rng,
    tally: Arc<Tally>,
}

impl Relay {
    /// A road of as many paths as the server has addresses, and its sockets.
    pub(crate) fn new(
        seed: u64,
        servers: &[SocketAddr],
        tally: Arc<Tally>,
    ) -> Result<(Self, Sockets), Box<dyn std::error::Error>> {
        let mut sockets = Sockets::listen(&vec![SocketAddr::new(HERE, 0); servers.len()])?;
        let fronts: Vec<SocketAddr> = sockets.local().collect();
        let mut rng = Rng::named(seed, "road");
        let mut paths = Vec::new();
        for (front, &server) in fronts.into_iter().zip(servers) {
            let back = sockets.add(Some(HERE), server)?.local;
            let weather = Weather::draw(&mut rng, Time::ZERO);
            paths.push(Path { front, back, client: None, server, weather, free: [Time::ZERO; 2] });
        }
        let relay = Self {
            paths,
            pending: BinaryHeap::new(),
            order: 0,
            spare: Vec::new(),
            leaving: Vec::new(),
            rng,
            tally,
        };
        Ok((relay, sockets))
    }

    /// Where a client finds the paths.
    pub(crate) fn fronts(&self) -> Vec<SocketAddr> {
        self.paths.iter().map(|path| path.front).collect()
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn put(&mut self, due: Time, path: usize, to_server: bool, ect: bool, datagram: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        self.order += 1;
        self.pending.push(Reverse(Pending { due, order: self.order, path, to_server, ect, bytes }));
    }
}

impl Weather {
    fn draw(rng: &mut Rng, now: Time) -> Self {
        let mbit = 20 + rng.below(100);
        let loss = [0.0, 0.0, 0.01, 0.05, 0.15, 0.28][rng.below(6) as usize];
        let sometimes = |rng: &mut Rng, most: f64| {
            if rng.chance(0.5) { rng.uniform() * most } else { 0.0 }
        };
        let dead = if rng.chance(0.2) { rng.below(2_500) } else { 0 };
        Self {
            rate: BitRate::from_bps(mbit * 1_000_000).expect("above zero"),
            delay: Span::from_micros(500 + rng.below(30_000)),
            lose: loss,
            reorder: sometimes(rng, 0.05),
            copy: sometimes(rng, 0.05),
            damage: sometimes(rng, 0.02),
            dead_until: now + Span::from_millis(dead),
            over: now + Span::from_nanos(1 + rng.below(WEATHER.as_nanos())),
        }
    }
}

impl Endpoint for Relay {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = ();

    fn handle_packet(&mut self, now: Time, arrival: Datagram<'_>, _sink: &mut Sink) {
        let Datagram { addrs: from, ecn, bytes: datagram } = arrival;
        let Some(index) =
            self.paths.iter().position(|path| [path.front, path.back].contains(&from.local))
        else {
            return;
        };
        let path = &mut self.paths[index];
        let to_server = from.local == path.front;
        if to_server {
            path.client = Some(from.remote);
        }
        let weather = path.weather;
        let free = &mut path.free[usize::from(to_server)];
        let begins = (*free).max(now);
        if begins.since(now) > LONGEST_QUEUE {
            return Self::count(&self.tally.late);
        }
        *free = begins + weather.rate.serialisation(datagram.len() as u64 + 28);
        let mut due = *free + weather.delay;
        if now < weather.dead_until || self.rng.chance(weather.lose) {
            return Self::count(&self.tally.lost);
        }
        if self.rng.chance(weather.reorder) {
            due += Span::from_micros(self.rng.below(20_000));
        }
        let ect = ecn != Ecn::NotEct;
        if self.rng.chance(weather.copy) {
            Self::count(&self.tally.copied);
            let again = due + Span::from_micros(self.rng.below(5_000));
            self.put(again, index, to_server, ect, datagram);
        }
        if self.rng.chance(weather.damage) && !datagram.is_empty() {
            Self::count(&self.tally.damaged);
            let place = self.rng.below(datagram.len() as u64 * 8);
            datagram[place as usize / 8] ^= 1 << (place % 8);
        }
        self.put(due, index, to_server, ect, datagram);
    }

    fn handle_timeout(&mut self, now: Time, _sink: &mut Sink) {
        for path in &mut self.paths {
            if path.weather.over <= now {
                path.weather = Weather::draw(&mut self.rng, now);
                if path.weather.dead_until > now {
                    Self::count(&self.tally.flaps);
                }
            }
        }
    }

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Batch<'_>> {
        loop {
            if self.pending.peek()?.0.due > now {
                return None;
            }
            let Reverse(next) = self.pending.pop()?;
            let path = &self.paths[next.path];
            let addrs = if next.to_server {
                Some(PathAddrs { local: path.back, remote: path.server })
            } else {
                path.client.map(|remote| PathAddrs { local: path.front, remote })
            };
            self.spare.push(std::mem::replace(&mut self.leaving, next.bytes));
            if let Some(addrs) = addrs {
                Self::count(&self.tally.carried);
                let ecn = if next.ect { Ecn::Ect0 } else { Ecn::NotEct };
                let bytes = &self.leaving;
                return Some(Batch { addrs, ecn, bytes, segment: bytes.len().max(1) });
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let weather = self.paths.iter().map(|path| path.weather.over).min();
        weather.into_iter().chain(self.pending.peek().map(|next| next.0.due)).min()
    }
}

/// What surrounds the road: it ends when told, and moves a path's far socket now and then.
struct Keeper {
    over: Arc<AtomicBool>,
    move_at: Time,
    every: Span,
    tally: Arc<Tally>,
}

impl Application<Relay> for Keeper {
    fn on_progress(
        &mut self,
        now: Time,
        relay: &mut Relay,
        sockets: &mut Sockets,
    ) -> ControlFlow<()> {
        if self.over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if now >= self.move_at {
            self.move_at = now + self.every;
            let index = relay.rng.below(relay.paths.len() as u64) as usize;
            let path = &mut relay.paths[index];
            if let Ok(moved) = sockets.add(Some(HERE), path.server) {
                sockets.remove(path.back);
                path.back = moved.local;
                Relay::count(&self.tally.moves);
            }
        }
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.move_at)
    }
}

/// Runs the road until `over` is set and its waker has called.
pub(crate) fn run(
    mut relay: Relay,
    mut driver: Driver,
    over: Arc<AtomicBool>,
    every: Span,
) -> std::io::Result<()> {
    let tally = relay.tally.clone();
    let mut keeper = Keeper { over, move_at: driver.now() + every, every, tally };
    driver.run(&mut relay, &mut keeper)
}
