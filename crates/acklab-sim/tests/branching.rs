//! Goal: a run that is given another seed in the middle keeps its past and has another future, whatever
//! it draws from: importance splitting can split nothing else.
//! Method: one world for every single source of randomness, run twice: as it is, and with a second seed
//! from half-time on. What both tell must be the same up to then, and differ after.

use acklab_core::event::{Event, Interest};
use acklab_core::link::{
    Corruption, Duplication, ErrorRate, GilbertElliott, Impairments, LinkConfig, Loss, LossModel,
    Packets, Reordering, Share, Shift,
};
use acklab_core::packet::Addr;
use acklab_core::queue::Discipline;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{App, MessageSource, Reader, ReaderModel, Schedule, Source};
use acklab_sim::arrivals::{Arrivals, Length, Pattern};
use acklab_sim::peer::Datagrams;
use acklab_sim::{End, Observer, Topology, World};
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
