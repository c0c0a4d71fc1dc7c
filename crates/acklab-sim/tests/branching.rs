//! Goal: a run that is given another seed in the middle keeps its past and has another future, whatever
//! it draws from: importance splitting can split nothing else.
//! Method: one world for every single source of randomness, run twice: as it is, and with a second seed
//! from half-time on. What both tell must be the same up to then, and differ after. Of the registries,
//! every congestion control and queue that behaves otherwise under another seed must branch.

use std::sync::{Arc, Mutex};

use acklab_core::cc::reno::Reno;
use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnSample, Factory, LossSample, RtoSample, Snapshot,
    Start,
};
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::{
    Corruption, Duplication, ErrorRate, GilbertElliott, Impairments, LinkConfig, Loss, LossModel,
    Packets, Reordering, Share, Shift,
};
use acklab_core::packet::Addr;
use acklab_core::queue::Discipline;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{App, Bulk, MessageSource, Reader, ReaderModel, Schedule, Source};
use acklab_sim::arrivals::{Arrivals, Length, Pattern};
use acklab_sim::peer::Datagrams;
use acklab_sim::{End, Observer, Topology, World, rudp};
use acklab_tcp::Config;

#[derive(Default)]
struct Diary(Vec<Event>);

impl Observer for Diary {
    fn on_event(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// Who sends into the link.
enum Traffic {
    Datagrams(Pattern),
    Writer(Pattern),
    Messages(Schedule),
}

const MS: Span = Span::from_millis(1);
const HALF: Time = Time::from_nanos(2_000_000_000);
const END: Time = Time::from_nanos(4_000_000_000);

/// What happens, with a second seed from half-time on if there is one.
fn events(traffic: &Traffic, link: &LinkConfig, second: Option<u64>) -> Vec<Event> {
    let mut topology = Topology::default();
    let [from, to] = std::array::from_fn(|_| topology.node());
    topology.link(from, to, link.clone());
    topology.link(to, from, LinkConfig::new(link.rate, MS));
    let [from, to] = [from, to].map(|node| Addr { node, port: 9 });
    let mut world = World::new(&topology, 1, Interest::ALL, Diary::default());
    let rng = || Rng::named(1, "traffic");
    let arrivals = |pattern: &Pattern| Arrivals::new(pattern.clone(), rng(), Time::ZERO, Time::MAX);
    let app: Box<dyn App> = match traffic {
        Traffic::Datagrams(pattern) => {
            world.attach(to, Box::new(Datagrams::sink(to)));
            world.attach(from, Box::new(Datagrams::new(from, to, arrivals(pattern))));
            Box::new(Reader::new(ReaderModel::Never, 1))
        }
        Traffic::Writer(pattern) => Box::new(Source::new(arrivals(pattern))),
        Traffic::Messages(schedule) => Box::new(MessageSource::new(*schedule, rng())),
    };
    if !matches!(traffic, Traffic::Datagrams(_)) {
        let end = |addr, app| End { addr, config: Config::default(), isn: Seq(7), app };
        let reader = Box::new(Reader::new(ReaderModel::Promptly, u32::MAX));
        world.connect(end(from, app), end(to, reader));
    }
    world.run_until(HALF);
    if let Some(second) = second {
        world.reseed(second);
    }
    world.run_until(END);
    world.into_observer().0
}

fn check(what: &str, traffic: &Traffic, link: &LinkConfig) {
    let [whole, branch] = [None, Some(2)].map(|seed| events(traffic, link, seed));
    let past = |events: &[Event]| events.iter().take_while(|e| e.time <= HALF).count();
    let now = past(&whole);
    assert!(now > 100 && now + 100 < whole.len(), "{what}: {now} of {}", whole.len());
    assert!(whole[..now] == branch[..past(&branch)], "{what}: another past");
    assert!(whole[now..] != branch[now..], "{what}: the future did not branch");
}

/// Packets of 8 ms at load 1.6: nothing is random there.
fn regular() -> (Traffic, LinkConfig) {
    let pattern = Pattern::Constant { period: MS * 5, bytes: 972 };
    let rate = "1mbit".parse().expect("a rate");
    (Traffic::Datagrams(pattern), LinkConfig::new(rate, MS * 5))
}

#[test]
fn without_randomness_nothing_branches() {
    let (traffic, link) = regular();
    assert!(events(&traffic, &link, None) == events(&traffic, &link, Some(2)));
}

#[test]
fn every_kind_of_traffic_branches() {
    let (_, link) = regular();
    let length = |shape| Length::Pareto { mean: MS * 30, shape };
    let on_off = |length| Pattern::OnOff { on: length, off: length, period: MS * 5, bytes: 300 };
    for pattern in [
        Pattern::Poisson { mean: MS * 13, bytes: 972 },
        on_off(Length::Exponential { mean: MS * 30 }),
        on_off(length(1.5)),
    ] {
        let what = format!("{pattern:?}");
        check(&what, &Traffic::Datagrams(pattern.clone()), &link);
        check(&format!("{what} over TCP"), &Traffic::Writer(pattern), &link);
    }
    let schedule = Schedule {
        count: 1000,
        bytes: 500,
        period: MS * 10,
        jitter: MS * 3,
        skew_ppm: 0.0,
        phase: Span::ZERO,
    };
    check("messages with jitter", &Traffic::Messages(schedule), &link);
}

#[test]
fn every_draw_of_a_link_branches() {
    let (traffic, link) = regular();
    let all = Packets::All;
    let share = Share::independent(0.2);
    let with = |change: &dyn Fn(&mut Impairments)| {
        let mut impairments = Impairments::default();
        change(&mut impairments);
        link.clone().with_impairments(impairments)
    };
    let loss =
        |model: LossModel| with(&|i| i.loss = Some(Loss { model: model.clone(), packets: all }));
    let chain = GilbertElliott::simple(0.1, 0.4);
    let shift = Shift::Late(MS * 20);
    let rate = ErrorRate::PerPacket(0.2);
    let mut links = vec![
        ("jitter".to_owned(), link.clone().with_jitter(MS * 20)),
        ("loss".to_owned(), loss(LossModel::Independent(0.2))),
        ("Gilbert-Elliott".to_owned(), loss(LossModel::GilbertElliott(chain))),
        (
            "reordering".to_owned(),
            with(&|i| i.reordering = Some(Reordering { share, gap: 1, shift, packets: all })),
        ),
        (
            "duplication".to_owned(),
            with(&|i| i.duplication = Some(Duplication { share, packets: all })),
        ),
        (
            "corruption".to_owned(),
            with(&|i| i.corruption = Some(Corruption { rate, packets: all })),
        ),
    ];
    // The others flip no coins.
    for name in ["red", "pie"] {
        let queue = Discipline::by_name(name, 100).expect("a queue");
        links.push((name.to_owned(), link.clone().with_queue(queue)));
    }
    for (what, link) in links {
        check(&what, &traffic, &link);
    }
}

/// Where coins are flipped.
#[derive(Clone, Copy)]
struct Seeds {
    /// Of the world.
    world: u64,
    /// Of the connection: its initial sequence number.
    connection: u32,
    /// From [`EARLY`] on, of the world.
    second: Option<u64>,
}

/// Two nodes with a queue between them, 2 Mbit/s and 20 ms there and back.
fn path(queue: &str, seed: u64) -> (World<Diary>, [Addr; 2]) {
    let mut topology = Topology::default();
    let [from, to] = std::array::from_fn(|_| topology.node());
    let link = LinkConfig::new("2mbit".parse().expect("a rate"), MS * 10);
    // E-DCTCP's senders keep so short a queue that only a shorter one hands anything back.
    let room = if queue == "edctcp" { 4 } else { 60 };
    let queue = Discipline::by_name(queue, room).expect("a queue");
    topology.link(from, to, link.clone().with_queue(queue));
    topology.link(to, from, link);
    let world = World::new(&topology, seed, Interest::ALL, Diary::default());
    (world, [from, to].map(|node| Addr { node, port: 9 }))
}

fn bulk_and_reader() -> [Box<dyn App>; 2] {
    let reader = Reader::new(ReaderModel::Promptly, u32::MAX);
    [Box::new(Bulk::unlimited()), Box::new(reader)]
}

fn connect(world: &mut World<Diary>, ends: [Addr; 2], cc: &Algorithm, isn: u32) {
    let ecn = cc.needs_marks();
    let config = Config { congestion: cc.clone(), ecn, ..Config::default() };
    let [from, to] = ends;
    let end = |addr, app| End { addr, config: config.clone(), isn: Seq(isn), app };
    let [bulk, reader] = bulk_and_reader();
    world.connect(end(from, bulk), end(to, reader));
}

/// The congestion window of a transfer without end through `queue` as it changes.
fn windows(cc: &Algorithm, queue: &str, seeds: Seeds) -> Vec<(Time, u64)> {
    let (mut world, ends) = path(queue, seeds.world);
    connect(&mut world, ends, cc, seeds.connection);
    world.run_until(EARLY);
    if let Some(second) = seeds.second {
        world.reseed(second);
    }
    world.run_until(Time::ZERO + Span::from_secs(15));
    let window = |event: &Event| match event.kind {
        EventKind::Congestion { flow, cwnd, .. } if flow.local == ends[0] => {
            Some((event.time, cwnd))
        }
        _ => None,
    };
    world.observer().0.iter().filter_map(window).collect()
}

/// Before any coin is flipped.
const EARLY: Time = Time::from_nanos(15_000_000);
const PLAIN: Seeds = Seeds { world: 1, connection: 7, second: None };

/// Whoever behaves otherwise under another seed from the start must do so under one from [`EARLY`] on.
fn check_coins(what: &str, windows: impl Fn(Seeds) -> Vec<(Time, u64)>, other: Seeds) -> bool {
    let whole = windows(PLAIN);
    assert!(whole.len() > 100, "{what}");
    let flips = whole != windows(other);
    let branches = whole != windows(Seeds { second: Some(2), ..PLAIN });
    assert_eq!(flips, branches, "{what}: its coins, and whether a run branches by them");
    flips
}

#[test]
fn every_congestion_control_that_flips_coins_branches() {
    let other = Seeds { connection: 8, ..PLAIN };
    let flips = |cc: &Algorithm| {
        let queue = if cc.name() == "edctcp" { "edctcp" } else { "drop-tail" };
        check_coins(cc.name(), |seeds| windows(cc, queue, seeds), other)
    };
    let all = Algorithm::all();
    let random: Vec<&str> = all.iter().filter(|cc| flips(cc)).map(Algorithm::name).collect();
    assert_eq!(random, ["edctcp", "cdg", "bbr1", "bbr3"]);
}

#[test]
fn every_queue_that_flips_coins_branches() {
    let other = Seeds { world: 3, ..PLAIN };
    let cc = Algorithm::default();
    let flips = |queue: &&&str| check_coins(queue, |seeds| windows(&cc, queue, seeds), other);
    let random = Discipline::NAMES.iter().filter(flips).count();
    assert!(random >= 3, "RED, PIE and FQ-PIE do, {random} did");
}

/// Reno that notes the seeds it is given.
struct Noting(Reno, Arc<Mutex<Vec<u64>>>);

impl CongestionControl for Noting {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.0.on_ack(now, sample);
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.0.on_loss(now, sample);
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        self.0.on_ecn(now, sample);
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.0.on_rto(now, sample);
    }

    fn cwnd(&self) -> u64 {
        self.0.cwnd()
    }

    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn reseed(&mut self, seed: u64) {
        self.1.lock().expect("one thread").push(seed);
    }
}

#[test]
fn every_connection_is_given_a_seed_of_its_own_over_tcp_and_over_reliable_udp() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&noted);
    let cc = Algorithm::Custom(Factory::new(move |start: &Start| {
        Box::new(Noting(Reno::new(start), Arc::clone(&note)))
    }));
    let (mut world, ends) = path("drop-tail", 1);
    for number in 0..4_u16 {
        let ends = ends.map(|end| Addr { port: 20 + number, ..end });
        if number % 2 == 0 {
            connect(&mut world, ends, &cc, number.into());
            continue;
        }
        let config = acklab_rudp::Config {
            seed: number.into(),
            algorithm: cc.clone(),
            ..acklab_rudp::Config::default()
        };
        let end = |addr, app| rudp::End { addr, config: config.clone(), app };
        let [bulk, reader] = bulk_and_reader();
        let (client, server) = rudp::pair(Time::ZERO, 1, end(ends[0], bulk), end(ends[1], reader));
        world.attach(ends[1], Box::new(server));
        world.attach(ends[0], Box::new(client));
    }
    world.run_until(HALF);
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for seed in [2, 3] {
        world.reseed(seed << 40);
        let mut seeds = std::mem::take(&mut *noted.lock().expect("one thread"));
        seeds.sort_unstable();
        // Both ends of the four, of which those over TCP have one initial sequence number here.
        assert_eq!(seeds.len(), 8, "{seeds:?}");
        seeds.dedup();
        assert!(seeds.len() >= 6, "{seeds:?}");
        seen.push(seeds);
    }
    assert!(seen[0].iter().all(|seed| !seen[1].contains(seed)), "{seen:?}");
}
