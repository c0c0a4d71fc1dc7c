//! Reliable UDP with `prague` in the L4S service: alone and beside others behind DualPI2, and behind a classic queue that marks.
//! RFC 9332 judges: its L queue's millisecond, and the coupling that gives flows of equal round trips equal rates.

use std::collections::VecDeque;

use acklab_core::cc::Algorithm;
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, Ecn};
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::Config;
use acklab_sim::app::{Bulk, Reader, ReaderModel};
use acklab_sim::{Access, Duplex, End, Observer, Topology, World, rudp};

use crate::support::PORT;

const RATE_BPS: u64 = 20_000_000;
/// Counted from then on and for so long, s.
const STARTED: u64 = 5;
const SECONDS: u64 = 60;

/// What the bottleneck did with the packets of each sender.
#[derive(Default)]
struct Watch {
    link: u32,
    senders: Vec<Addr>,
    counts: bool,
    /// Bytes that left, and packets of them with a mark.
    served: Vec<u64>,
    marked: Vec<u64>,
    packets: Vec<u64>,
    dropped: u64,
    /// When the first sender's packets came, and how long those that left had waited.
    waiting: VecDeque<Time>,
    waited: Vec<Span>,
}

impl Observer for Watch {
    fn on_event(&mut self, event: &Event) {
        let index = |addr| self.senders.iter().position(|sender| *sender == addr);
        match &event.kind {
            EventKind::Offered { link, packet }
                if *link == self.link && index(packet.src) == Some(0) =>
            {
                self.waiting.push_back(event.time);
            }
            EventKind::Served { link, packet } if *link == self.link => {
                let Some(index) = index(packet.src) else { return };
                let came = (index == 0).then(|| self.waiting.pop_front()).flatten();
                if !self.counts {
                    return;
                }
                self.served[index] += u64::from(packet.size());
                self.packets[index] += 1;
                self.marked[index] += u64::from(packet.ecn == Ecn::Ce);
                self.waited.extend(came.map(|came| event.time.since(came)));
            }
            EventKind::Dropped { packet, .. } if index(packet.src) == Some(0) => {
                self.waiting.pop_front();
                self.dropped += u64::from(self.counts);
            }
            _ => {}
        }
    }
}

/// A flow: reliable UDP, or TCP with ECN.
#[derive(Clone, Copy)]
enum Flow {
    Rudp(&'static str),
    Tcp(&'static str),
}

use Flow::{Rudp, Tcp};

/// What was seen of a run.
struct Seen {
    /// Mbit/s.
    rates: Vec<f64>,
    /// Of the first flow: share of its packets that bear a mark, drops, and how long 99 of 100 wait at most, ms.
    marked: f64,
    dropped: u64,
    waits_ms: f64,
}

impl Seen {
    fn used(&self) -> f64 {
        self.rates.iter().sum::<f64>() * 1e6 / RATE_BPS as f64
    }

    fn jain(&self) -> f64 {
        let sum: f64 = self.rates.iter().sum();
        let squares: f64 = self.rates.iter().map(|rate| rate * rate).sum();
        sum * sum / (self.rates.len() as f64 * squares)
    }
}

fn run(queue: &str, rtt_ms: u64, flows: &[Flow], seed: u64) -> Seen {
    let link = |bps, delay| LinkConfig::new(BitRate::from_bps(bps).expect("not zero"), delay);
    let delay = Span::from_micros(rtt_ms * 500 - 500);
    let queue: Discipline = queue.parse().expect("a known queue");
    let queue = queue.with_limit(Limit::bytes(RATE_BPS / 8 / 4));
    let bottleneck = Duplex {
        forward: link(RATE_BPS, delay).with_queue(queue),
        backward: link(1_000_000_000, delay),
    };
    let edge = link(1_000_000_000, Span::from_micros(250)).with_jitter(Span::from_micros(100));
    let edge = Duplex::symmetric(edge);
    let access = Access { left: edge.clone(), right: edge };
    let mut topology = Topology::default();
    let dumbbell = topology.dumbbell(&bottleneck, &vec![access; flows.len()]);
    let ends: Vec<[Addr; 2]> =
        dumbbell.pairs.iter().map(|&(l, r)| [l, r].map(|node| Addr { node, port: PORT })).collect();
    let none = vec![0; flows.len()];
    let watch = Watch {
        link: dumbbell.forward,
        senders: ends.iter().map(|ends| ends[0]).collect(),
        served: none.clone(),
        marked: none.clone(),
        packets: none,
        ..Watch::default()
    };
    let interest = Interest::PASSAGE.with(Interest::DROPS);
    let mut world = World::new(&topology, seed, interest, watch);
    let mut rng = Rng::named(seed, "starts");
    for (&[from, to], flow) in ends.iter().zip(flows) {
        let start = Time::ZERO + Span::from_micros(rng.below(1_000_000));
        let (bulk, reader) =
            (Box::new(Bulk::unlimited()), Box::new(Reader::new(ReaderModel::Promptly, u32::MAX)));
        match flow {
            Rudp(name) => {
                let algorithm: Algorithm = name.parse().expect("a known name");
                let config = Config { algorithm, seed, ..Config::default() };
                let client = rudp::End { addr: from, config: config.clone(), app: bulk };
                let server = rudp::End { addr: to, config, app: reader };
                let (client, server) = rudp::pair(start, seed, client, server);
                world.attach(to, Box::new(server));
                world.attach(from, Box::new(client));
            }
            Tcp(name) => {
                let config = acklab_tcp::Config {
                    congestion: name.parse().expect("a known name"),
                    ecn: true,
                    send_buffer: 4 << 20,
                    receive_buffer: 4 << 20,
                    receive_tuning: false,
                    window_scale: Some(7),
                    ..acklab_tcp::Config::default()
                };
                world.connect_at(
                    start,
                    End { addr: from, config: config.clone(), isn: Seq(7), app: bulk },
                    End { addr: to, config, isn: Seq(7), app: reader },
                );
            }
        }
    }
    world.run_until(Time::ZERO + Span::from_secs(STARTED));
    world.observer_mut().counts = true;
    world.run_until(Time::ZERO + Span::from_secs(STARTED + SECONDS));
    let watch = world.observer();
    let mut waited = watch.waited.clone();
    waited.sort_unstable();
    let at_most = waited.get(waited.len() * 99 / 100).copied().unwrap_or(Span::ZERO);
    Seen {
        rates: watch.served.iter().map(|&n| n as f64 * 8e-6 / SECONDS as f64).collect(),
        marked: watch.marked[0] as f64 / watch.packets[0].max(1) as f64,
        dropped: watch.dropped,
        waits_ms: at_most.as_secs_f64() * 1e3,
    }
}

/// Three seeds.
fn runs(queue: &str, rtt_ms: u64, flows: &[Flow]) -> Vec<Seen> {
    let seen: Vec<Seen> = [1, 2, 3].map(|seed| run(queue, rtt_ms, flows, seed)).into();
    for Seen { rates, marked, dropped, waits_ms } in &seen {
        println!(
            "{queue} {rtt_ms} ms: {rates:.2?} Mbit/s, {:.2} % marked, {dropped} dropped, 99 % wait {waits_ms:.2} ms",
            100.0 * marked
        );
    }
    seen
}

#[test]
fn alone_it_fills_the_link_and_hardly_waits() {
    for rtt_ms in [10, 40, 100] {
        for seen in runs("dualpi2", rtt_ms, &[Rudp("prague")]) {
            assert!(seen.used() >= 0.95, "{}", seen.used());
            assert!(seen.waits_ms <= 2.0 && seen.dropped == 0);
        }
    }
}

#[test]
fn beside_flows_of_the_classic_queue_it_takes_its_share_and_waits_no_longer() {
    for rivals in [1, 4] {
        for cc in ["cubic", "reno"] {
            let mut flows = vec![Rudp("prague")];
            flows.resize(1 + rivals, Tcp(cc));
            for seen in runs("dualpi2", 40, &flows) {
                assert!(seen.jain() >= 0.9, "{}", seen.jain());
                assert!(seen.used() >= 0.95 && seen.waits_ms <= 2.0);
                // RFC 9332 section 2.1: W = 2 / p of a scalable flow; packets of 1500 B on the wire, 41 ms.
                let window = seen.rates[0] * 41e-3 * 1e6 / 8.0 / 1500.0;
                let law = window * seen.marked / 2.0;
                assert!((0.75..=1.3).contains(&law), "{window} packets, {law} of the law's");
            }
        }
    }
}

#[test]
fn flows_of_its_kind_share_alike() {
    for flows in [2, 5] {
        for seen in runs("dualpi2", 40, &vec![Rudp("prague"); flows]) {
            assert!(seen.jain() >= 0.95, "{}", seen.jain());
            // Five windows of 13 packets that a step of 1 ms marks.
            assert!(seen.used() >= 0.94 && seen.waits_ms <= 4.0, "{}", seen.used());
        }
    }
}

#[test]
fn in_a_classic_queue_that_marks_it_gives_way_as_others_do() {
    for queue in ["codel", "pie"] {
        for seen in runs(queue, 40, &[Rudp("prague"), Tcp("cubic")]) {
            assert!(seen.jain() >= 0.9, "{queue}: {}", seen.jain());
        }
    }
}
