//! Reliable UDP and TCP of every congestion control behind one router, in virtual time: shares, fairness,
//! round trips and drops. Prints the table of docs/rudp-measured.md, "Beside TCP".
//!
//!     cargo run --release -p acklab-sim --example transports [-- WORD...]
//!
//! With words: only the rows that contain them all. `seeds=1` is quicker.

use acklab_core::cc::Algorithm;
use acklab_core::event::{DropReason, Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::Addr;
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{App, Bulk, Reader, ReaderModel};
use acklab_sim::{Access, Duplex, End, Observer, Topology, World, rudp};
use acklab_tcp::Config;

const RATE_BPS: u64 = 20_000_000;
const RTT_MS: u64 = 40;
/// One bandwidth-delay product of drop-tail.
const BUFFER: u64 = RATE_BPS / 8 * RTT_MS / 1000;
const SECONDS: u64 = 60;
/// The last flow has started by then, and counting begins, seconds.
const STARTED: u64 = 1;
const SEEDS: u64 = 5;
/// Flows of each transport.
const EACH: usize = 2;

/// What was acknowledged on each flow, and what the bottleneck did.
struct Watch {
    senders: Vec<Addr>,
    acked: Vec<u64>,
    drops: u64,
    /// Bytes that wait, since when, and their integral over time.
    queue: (u64, Time, f64),
}

impl Observer for Watch {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Congestion { flow, acked, .. } => {
                if let Some(index) = self.senders.iter().position(|addr| *addr == flow.local) {
                    self.acked[index] = acked;
                }
            }
            EventKind::Queue { link: BOTTLENECK, bytes, .. } => {
                let (before, since, sum) = self.queue;
                let passed = event.time.since(since).as_secs_f64();
                self.queue = (bytes, event.time, sum + before as f64 * passed);
            }
            EventKind::Dropped { link: BOTTLENECK, reason: DropReason::Overflow, .. } => {
                self.drops += 1;
            }
            _ => {}
        }
    }
}

/// The first link that the dumbbell makes.
const BOTTLENECK: u32 = 0;

/// One run's figures.
struct Figures {
    /// Share of the fair one that each transport's flows have on average: reliable UDP, TCP.
    shares: [f64; 2],
    jain: f64,
    /// Of the rate, payload alone.
    used: f64,
    /// Mean round trip of a packet that waits in the bottleneck's queue.
    rtt_ms: f64,
    drops_per_second: f64,
}

fn link(bps: u64, delay: Span) -> LinkConfig {
    LinkConfig::new(BitRate::from_bps(bps).expect("not zero"), delay)
}

fn run(udp: &str, tcp: &str, seed: u64) -> Figures {
    // 250 us on each of four edges.
    let delay = Span::from_micros(RTT_MS * 500 - 500);
    let queue = Discipline::drop_tail(Limit::bytes(BUFFER));
    let bottleneck = Duplex {
        forward: link(RATE_BPS, delay).with_queue(queue),
        backward: link(1_000_000_000, delay),
    };
    // A host is not a metronome.
    let edge = link(1_000_000_000, Span::from_micros(250)).with_jitter(Span::from_micros(100));
    let edge = Duplex::symmetric(edge);
    let mut topology = Topology::default();
    let access = vec![Access { left: edge.clone(), right: edge }; 2 * EACH];
    let pairs = topology.dumbbell(&bottleneck, &access).pairs;
    let addrs = |port| move |&(left, right)| [left, right].map(|node| Addr { node, port });
    let ends: Vec<[Addr; 2]> = pairs.iter().map(addrs(50_000)).collect();
    let watch = Watch {
        senders: ends.iter().map(|ends| ends[0]).collect(),
        acked: vec![0; ends.len()],
        drops: 0,
        queue: (0, Time::ZERO, 0.0),
    };
    let interest = Interest::CONGESTION.with(Interest::QUEUE);
    let mut world = World::new(&topology, seed, interest, watch);
    let mut rng = Rng::named(seed, "starts");
    for (index, [from, to]) in ends.into_iter().enumerate() {
        let start = Time::ZERO + Span::from_micros(rng.below(STARTED * 1_000_000));
        let bulk: Box<dyn App> = Box::new(Bulk::unlimited());
        let reader: Box<dyn App> = Box::new(Reader::new(ReaderModel::Promptly, u32::MAX));
        if index < EACH {
            let algorithm: Algorithm = udp.parse().expect("a known name");
            let config = acklab_rudp::Config { algorithm, seed, ..Default::default() };
            let end = |addr, app| rudp::End { addr, config: config.clone(), app };
            let (client, server) = rudp::pair(start, seed, end(from, bulk), end(to, reader));
            world.attach(to, Box::new(server));
            world.attach(from, Box::new(client));
        } else {
            let config = Config {
                congestion: tcp.parse().expect("a known name"),
                send_buffer: 4 << 20,
                receive_buffer: 4 << 20,
                receive_tuning: false,
                window_scale: Some(7),
                ..Config::default()
            };
            let end = |addr, app| End { addr, config: config.clone(), isn: Seq(7), app };
            world.connect_at(start, end(from, bulk), end(to, reader));
        }
    }
    world.run_until(Time::ZERO + Span::from_secs(STARTED));
    let (before, drops, waited) =
        (world.observer().acked.clone(), world.observer().drops, world.observer().queue.2);
    world.run_until(Time::ZERO + Span::from_secs(STARTED + SECONDS));
    let watch = world.observer();
    let bytes: Vec<f64> =
        watch.acked.iter().zip(before).map(|(now, before)| (now - before) as f64).collect();
    let sum: f64 = bytes.iter().sum();
    let share = |of: &[f64]| of.iter().sum::<f64>() / sum * 2.0;
    let squares: f64 = bytes.iter().map(|bytes| bytes * bytes).sum();
    let seconds = SECONDS as f64;
    let queue_ms = (watch.queue.2 - waited) / seconds * 8.0 / RATE_BPS as f64 * 1e3;
    Figures {
        shares: [share(&bytes[..EACH]), share(&bytes[EACH..])],
        jain: sum * sum / (bytes.len() as f64 * squares),
        used: sum * 8.0 / seconds / RATE_BPS as f64,
        rtt_ms: RTT_MS as f64 + queue_ms,
        drops_per_second: (watch.drops - drops) as f64 / seconds,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.contains('='));
    let seeds = options.iter().find_map(|option| option.strip_prefix("seeds="));
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    println!(
        "| reliable UDP | TCP | share of reliable UDP, 1 is fair | of TCP | Jain | payload, of the \
         rate | RTT, ms | drops/s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for udp in Algorithm::NAMES {
        for tcp in [*udp, "cubic"] {
            let row = format!("{udp} {tcp}");
            if !words.iter().all(|word| row.contains(word.as_str())) {
                continue;
            }
            let runs: Vec<Figures> = (1..=seeds).map(|seed| run(udp, tcp, seed)).collect();
            let of =
                |figure: fn(&Figures) -> f64| median(runs.iter().map(figure).collect::<Vec<_>>());
            println!(
                "| {udp} | {tcp} | {:.2} | {:.2} | {:.3} | {:.1} % | {:.1} | {:.1} |",
                of(|run| run.shares[0]),
                of(|run| run.shares[1]),
                of(|run| run.jain),
                100.0 * of(|run| run.used),
                of(|run| run.rtt_ms),
                of(|run| run.drops_per_second),
            );
            if *udp == "cubic" {
                break;
            }
        }
    }
}
