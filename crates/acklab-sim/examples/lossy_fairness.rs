//! How `lossy` shares a bottleneck: Jain's index and shares beside 1 and 4 rivals over 60 s, in virtual time on a dumbbell of
//! 20 Mbit/s behind drop-tail: reliable UDP, then TCP with `lossy` and TCP with CUBIC in its place. Rivals are the core's TCP, but
//! `lossy` is carried as the judged flow is. Prints the tables of docs/lossy.md.
//!
//!     cargo run --release -p acklab-sim --example lossy_fairness [-- WORD...]
//!
//! With words: only the rows that contain them all. `transport=tcp` judges TCP with `lossy` first.
//! `first=bbr1` judges another algorithm, `loss=0.01` loses packets at random, `seeds=1` and `compare=false`, which leaves the last
//! four columns out, are quicker; `from=11` begins with another seed (the table's are 1 to 5). `rival=bbr3` puts another algorithm beside it; `late=20` lets the judged flow join
//! so many seconds after the others, and counts from then on; `rtt2=80` gives the rivals that round trip, ms.
//! `queue=dualpi2` puts another discipline of that room in the bottleneck, and `queue=policer` a policer of that burst before a link five
//! times as fast; `ecn=true` lets all flows use ECN, a `dctcp` as one of L4S. `rivals=0` leaves it alone. `jitter=700` is what each host
//! adds to a packet at most, us, on each of its two edges: 100 where it is not said.

use acklab_core::cc::Algorithm;
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::options::Value;
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
const SECONDS: u64 = 60;
/// The last flow has started by then, seconds.
const STARTED: u64 = 1;
const SEEDS: u64 = 5;
/// Payload and packet of a full segment with time stamps, bytes.
const PAYLOAD: u64 = 1448;
const PACKET: u64 = 1500;

/// What was acknowledged on each flow.
#[derive(Default)]
struct Watch {
    senders: Vec<Addr>,
    acked: Vec<u64>,
}

impl Observer for Watch {
    fn on_event(&mut self, event: &Event) {
        if let EventKind::Congestion { flow, acked, .. } = event.kind
            && let Some(index) = self.senders.iter().position(|addr| *addr == flow.local)
        {
            self.acked[index] = acked;
        }
    }
}

#[derive(Clone)]
struct Row {
    rtt_ms: u64,
    /// Drop-tail queue: its name and bytes.
    buffer: (String, u64),
    rival: String,
    rivals: usize,
    /// The flow that is judged.
    first: String,
    /// Random loss behind the bottleneck.
    loss: f64,
    /// It starts so much later than its rivals, seconds.
    late: u64,
    /// The rivals' round trip, ms; 0: the same.
    rtt2_ms: u64,
    /// The bottleneck's discipline.
    queue: String,
    ecn: bool,
    /// Reliable UDP carries the judged flow, and those of its like.
    rudp: bool,
    /// Each host adds up to so much to each packet, on each of its two edges, us.
    jitter_us: u64,
}

impl Row {
    fn name(&self) -> String {
        format!("{} ms | {} | {} {}", self.rtt_ms, self.buffer.0, self.rivals, self.rival)
    }

    /// Its rate, and what waits before it.
    fn bottleneck(&self) -> (u64, Discipline) {
        let limit = Limit::bytes(self.buffer.1);
        let mut queue: Discipline = self.queue.parse().expect("a known discipline");
        if let Discipline::Policer(options) = &mut queue {
            options.committed_rate = BitRate::from_bps(RATE_BPS).expect("not zero");
            options.burst = self.buffer.1 as u32;
            return (5 * RATE_BPS, queue);
        }
        (RATE_BPS, queue.with_limit(limit))
    }

    /// Bytes that were acknowledged on each flow in the time measured; the first flow is `lossy`.
    fn run(&self, seed: u64) -> Vec<f64> {
        let link = |bps: u64, delay: Span| {
            LinkConfig::new(BitRate::from_bps(bps).expect("not zero"), delay)
        };
        // 250 us on each of four edges.
        let delay = Span::from_micros(self.rtt_ms * 500 - 500);
        let (rate, queue) = self.bottleneck();
        let bottleneck = Duplex {
            forward: link(rate, delay).with_queue(queue).with_loss(self.loss),
            backward: link(1_000_000_000, delay),
        };
        // A host is not a metronome.
        let access = |more_ms: u64| {
            let delay = Span::from_micros(250 + more_ms * 250);
            let edge = link(1_000_000_000, delay).with_jitter(Span::from_micros(self.jitter_us));
            let edge = Duplex::symmetric(edge);
            Access { left: edge.clone(), right: edge }
        };
        let mut all = vec![access(self.rtt2_ms.saturating_sub(self.rtt_ms)); 1 + self.rivals];
        all[0] = access(0);
        let mut topology = Topology::default();
        let dumbbell = topology.dumbbell(&bottleneck, &all);
        let senders: Vec<Addr> =
            dumbbell.pairs.iter().map(|&(node, _)| Addr { node, port: 50_000 }).collect();
        let watch = Watch { acked: vec![0; senders.len()], senders };
        let mut world = World::new(&topology, seed, Interest::CONGESTION, watch);
        let mut rng = Rng::named(seed, "starts");
        for (index, &(left, right)) in dumbbell.pairs.iter().enumerate() {
            let name = if index == 0 { &self.first } else { &self.rival };
            let mut congestion: Algorithm = name.parse().expect("a known name");
            if let Some(options) = congestion.options() {
                options.set("l4s", Value::Flag(true));
            }
            let late = if index == 0 { Span::from_secs(self.late) } else { Span::ZERO };
            let start = Time::ZERO + late + Span::from_micros(rng.below(STARTED * 1_000_000));
            let from = Addr { node: left, port: 50_000 };
            let to = Addr { node: right, port: 80 };
            let bulk: Box<dyn App> = Box::new(Bulk::unlimited());
            let reader: Box<dyn App> = Box::new(Reader::new(ReaderModel::Promptly, PAYLOAD as u32));
            if self.rudp && (index == 0 || name == "lossy") {
                let config =
                    acklab_rudp::Config { algorithm: congestion, seed, ..Default::default() };
                let end = |addr, app| rudp::End { addr, config: config.clone(), app };
                let (client, server) = rudp::pair(start, seed, end(from, bulk), end(to, reader));
                world.attach(to, Box::new(server));
                world.attach(from, Box::new(client));
                continue;
            }
            let end = |addr, app| End {
                addr,
                config: Config {
                    congestion: congestion.clone(),
                    ecn: self.ecn,
                    send_buffer: 4 << 20,
                    receive_buffer: 4 << 20,
                    receive_tuning: false,
                    window_scale: Some(7),
                    ..Config::default()
                },
                isn: Seq(7),
                app,
            };
            world.connect_at(start, end(from, bulk), end(to, reader));
        }
        let started = self.late + STARTED;
        world.run_until(Time::ZERO + Span::from_secs(started));
        let before = world.observer().acked.clone();
        world.run_until(Time::ZERO + Span::from_secs(started + SECONDS));
        let now = world.observer().acked.iter();
        now.zip(before).map(|(now, before)| (now - before) as f64).collect()
    }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Every row beside these rivals; `like` says the rest.
fn rows(names: &[&str], counts: &[usize], like: &Row) -> Vec<Row> {
    let mut rows = Vec::new();
    for rtt_ms in [40, 10, 100] {
        let bdp = RATE_BPS / 8 * rtt_ms / 1000;
        let buffers =
            [("100 ms", RATE_BPS / 80), ("0.2 BDP", bdp / 5), ("1 BDP", bdp), ("5 BDP", bdp * 5)];
        // At 100 ms of round trip the first is the third.
        for (name, bytes) in buffers.into_iter().skip(usize::from(rtt_ms == 100)) {
            for rival in names {
                for &rivals in counts {
                    let buffer = (name.to_owned(), bytes);
                    let rival = (*rival).to_owned();
                    rows.push(Row { rtt_ms, buffer, rival, rivals, ..like.clone() });
                }
            }
        }
    }
    rows
}

fn share_of_first(run: &[f64]) -> f64 {
    run[0] * run.len() as f64 / run.iter().sum::<f64>()
}

/// Of the link's rate, headers counted.
fn used(run: &[f64]) -> f64 {
    let bits = run.iter().sum::<f64>() * 8.0 * PACKET as f64 / PAYLOAD as f64;
    bits / (RATE_BPS * SECONDS) as f64
}

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.contains('='));
    let option = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
    let number = |name: &str| option(name).and_then(|number| number.parse().ok());
    let from = number("from=").unwrap_or(1);
    let seeds = from..from + number("seeds=").unwrap_or(SEEDS);
    let compares = option("compare=").is_none_or(|word| word != "false");
    let like = Row {
        first: option("first=").unwrap_or("lossy").to_owned(),
        loss: option("loss=").and_then(|loss| loss.parse().ok()).unwrap_or(0.0),
        late: number("late=").unwrap_or(0),
        rtt2_ms: number("rtt2=").unwrap_or(0),
        queue: option("queue=").unwrap_or("drop-tail").to_owned(),
        ecn: option("ecn=").is_some_and(|word| word == "true"),
        rudp: option("transport=").is_none_or(|word| word == "rudp"),
        jitter_us: number("jitter=").unwrap_or(100),
        rtt_ms: 0,
        buffer: Default::default(),
        rival: String::new(),
        rivals: 0,
    };
    let rivals: Vec<&str> =
        option("rival=").map_or(vec!["cubic", "bbr1", "reno", "lossy"], |name| vec![name]);
    let alone = option("rivals=").is_some_and(|word| word == "0");
    let counts: &[usize] = if alone { &[0] } else { &[1, 4] };
    let others = "TCP with lossy: Jain | share | CUBIC: Jain | share |";
    let (others, ruler) = if compares { (others, "---|---|---|---|") } else { ("", "") };
    println!(
        "| RTT | buffer | rivals | Jain, median | least | share, 1 is fair | link used | {others}"
    );
    println!("|---|---|---|---|---|---|---|{ruler}");
    for row in rows(&rivals, counts, &like) {
        if !words.iter().all(|word| row.name().contains(word.as_str())) {
            continue;
        }
        let runs = |row: &Row| seeds.clone().map(|seed| row.run(seed)).collect::<Vec<Vec<f64>>>();
        let of = |runs: &[Vec<f64>], figure: fn(&[f64]) -> f64| -> Vec<f64> {
            runs.iter().map(|run| figure(run)).collect()
        };
        let ours = runs(&row);
        print!(
            "| {} | {:.3} | {:.3} | {:.2} | {:.1} % |",
            row.name(),
            median(of(&ours, jain)),
            of(&ours, jain).into_iter().fold(1.0, f64::min),
            median(of(&ours, share_of_first)),
            100.0 * median(of(&ours, used)),
        );
        let in_its_place: &[&str] = if compares { &["lossy", "cubic"] } else { &[] };
        for first in in_its_place {
            let other = runs(&Row { first: (*first).to_owned(), rudp: false, ..row.clone() });
            let (jain, share) = (median(of(&other, jain)), median(of(&other, share_of_first)));
            print!(" {jain:.3} | {share:.2} |");
        }
        println!();
    }
}
