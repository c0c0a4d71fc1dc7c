//! One transmitter in front of a queue, ours or an oracle's, and the arrivals of an overload step.

use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::queue::{Queue, Setup, Verdict, Verdicts};
use acklab_core::rng::Rng;
use acklab_core::time::Time;
use acklab_core::units::BitRate;

/// Bytes of every packet.
pub(crate) const SIZE: u32 = 1000;
/// Nanoseconds to transmit one at 1.5 Mb/s.
pub(crate) const SERVICE: u64 = 5_333_334;

/// A queue with a log of what it dropped.
pub(crate) trait Server {
    /// A packet arrives.
    fn arrive(&mut self, now: u64, id: u64);
    /// The transmitter asks for the next packet.
    fn leave(&mut self, now: u64) -> Option<u64>;
    /// A periodic timer, where the oracle has one.
    fn tick(&mut self, _now: u64) {}
}

/// Drives `server` with packets 0, 1, ... at the times given. A timer goes first, then the
/// transmitter, then an arrival.
pub(crate) fn drive(server: &mut impl Server, arrivals: &[u64], period: u64) {
    let (mut next, mut busy_until, mut tick) = (0, None, period);
    while next < arrivals.len() || busy_until.is_some() {
        let arrival = arrivals.get(next).copied().unwrap_or(u64::MAX);
        let free = busy_until.unwrap_or(u64::MAX);
        let now = arrival.min(free).min(tick);
        if tick == now {
            server.tick(now);
            tick += period;
        } else if free == now {
            busy_until = server.leave(now).map(|_| now + SERVICE);
        } else {
            server.arrive(now, next as u64);
            next += 1;
            if busy_until.is_none() {
                busy_until = server.leave(now).map(|_| now + SERVICE);
            }
        }
    }
}

/// Thirty seconds around the capacity of 187.5 packets/s: calm, a step to 30 % overload, silence, a short
/// step to twice the capacity, calm, and the first step again. Gaps vary by half.
pub(crate) fn overload_steps() -> Vec<u64> {
    let mut rng = Rng::named(9, "test/arrivals");
    let phases = [(3.0, 0.7), (12.0, 1.3), (14.0, 0.0), (17.0, 2.0), (22.0, 0.8), (30.0, 1.3)];
    let (mut now, mut arrivals) = (0.0, Vec::new());
    for (until, load) in phases {
        while load > 0.0 && now < until {
            arrivals.push((now * 1e9) as u64);
            now += SERVICE as f64 / 1e9 / load * (0.5 + rng.uniform());
        }
        now = until;
    }
    arrivals
}

/// Two minutes of short overloads with pauses of a few CoDel intervals to some seconds between them, so
/// that a dropping state is re-entered after all kinds of times.
pub(crate) fn short_overloads() -> Vec<u64> {
    let mut rng = Rng::named(10, "test/arrivals");
    let (mut now, mut arrivals) = (0.0, Vec::new());
    while now < 120.0 {
        let until = now + 0.2 + 0.8 * rng.uniform();
        while now < until {
            arrivals.push((now * 1e9) as u64);
            now += SERVICE as f64 / 1e9 / 1.8 * (0.5 + rng.uniform());
        }
        now += 1.8 * rng.uniform();
    }
    arrivals
}

/// One of our queues.
pub(crate) struct Ours<Q> {
    pub(crate) queue: Q,
    /// Packet and time of every drop.
    pub(crate) drops: Vec<(u64, u64)>,
    /// What is to be recorded of the queue at every arrival.
    pub(crate) log: Vec<f64>,
    pub(crate) watch: fn(&mut Q, Time) -> f64,
    verdicts: Verdicts,
}

impl<Q: Queue> Ours<Q> {
    pub(crate) fn new(queue: Q, watch: fn(&mut Q, Time) -> f64) -> Self {
        Self { queue, drops: Vec::new(), log: Vec::new(), watch, verdicts: Verdicts::default() }
    }

    fn note(&mut self, now: u64) {
        for (packet, verdict) in self.verdicts.drain() {
            if verdict != Verdict::Marked {
                self.drops.push((id(&packet), now));
            }
        }
    }
}

impl<Q: Queue> Server for Ours<Q> {
    fn arrive(&mut self, now: u64, number: u64) {
        let now_time = Time::from_nanos(now);
        self.queue.enqueue(now_time, packet(number, 0, Ecn::NotEct), &mut self.verdicts);
        self.log.push((self.watch)(&mut self.queue, now_time));
        self.note(now);
    }

    fn leave(&mut self, now: u64) -> Option<u64> {
        let left = self.queue.dequeue(Time::from_nanos(now), &mut self.verdicts);
        self.note(now);
        left.map(|packet| id(&packet))
    }
}

/// A packet of [`SIZE`] bytes.
pub(crate) fn packet(id: u64, port: u16, ecn: Ecn) -> Packet {
    let header = Packet::IPV4_HEADER + Packet::UDP_HEADER;
    let body = Body::Datagram { len: SIZE - header, words: [id, 0] };
    let src = Addr { port, ..Addr::default() };
    Packet { src, dst: Addr::default(), ecn, returned: false, body }
}

/// The number that [`packet`] was given.
pub(crate) fn id(packet: &Packet) -> u64 {
    match packet.body {
        Body::Datagram { words, .. } => words[0],
        Body::Tcp(_) | Body::Stored { .. } => u64::MAX,
    }
}

/// The bottleneck of the tests.
pub(crate) fn setup() -> Setup<'static> {
    Setup { rate: BitRate::from_bps(1_500_000).expect("positive"), seed: 4, name: "link/0" }
}

/// Asserts that two trajectories agree to within rounding.
pub(crate) fn assert_close(ours: &[f64], oracle: &[f64]) {
    assert_eq!(ours.len(), oracle.len());
    for (index, (x, y)) in ours.iter().zip(oracle).enumerate() {
        assert!((x - y).abs() <= 1e-9 * y.abs().max(1e-9), "arrival {index}: {x} for {y}");
    }
}
