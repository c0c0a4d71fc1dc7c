//! Goal: traffic leaves when its description says, over the shapes that papers use.
//! Method: hosts on a quick dumbbell; an observer keeps every event with its time.

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{App, Bulk, Reader, ReaderModel, Source};
use acklab_sim::arrivals::{Arrivals, Length, Pattern};
use acklab_sim::peer::{DATAGRAM_DELAY_MS, Datagrams};
use acklab_sim::{Access, Duplex, End, Observer, Topology, World};
use acklab_tcp::{Config, Connection};

#[derive(Default)]
struct Diary(Vec<Event>);

impl Observer for Diary {
    fn on_event(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// Two pairs of hosts, 10 ms each way between them, 10 Mbit/s in the middle.
fn dumbbell() -> (World<Diary>, [(Addr, Addr); 2]) {
    let rate = |bps| BitRate::from_bps(bps).expect("positive");
    let hop = |bps, ms| Duplex::symmetric(LinkConfig::new(rate(bps), Span::from_millis(ms)));
    let access = Access { left: hop(1_000_000_000, 2), right: hop(1_000_000_000, 3) };
    let mut topology = Topology::default();
    let built = topology.dumbbell(&hop(10_000_000, 5), &[access.clone(), access]);
    let pair = |i: usize| {
        let (left, right) = built.pairs[i];
        (Addr { node: left, port: 50_000 }, Addr { node: right, port: 80 })
    };
    (World::new(&topology, 1, Interest::ALL, Diary::default()), [pair(0), pair(1)])
}

fn end(addr: Addr, app: impl App + 'static) -> End {
    End { addr, config: Config::default(), isn: Seq(7), app: Box::new(app) }
}

fn reader() -> Reader {
    Reader::new(ReaderModel::Promptly, 1000)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// When segments with data, or with control bits, left `addr`.
fn departures(world: &World<Diary>, addr: Addr) -> Vec<Time> {
    let sent = world.observer().0.iter().filter(|event| {
        matches!(event.kind, EventKind::SegmentSent { flow, len, control, .. }
            if flow.local == addr && (len > 0 || control))
    });
    sent.map(|event| event.time).collect()
}

#[test]
fn a_flow_that_starts_later_sends_its_first_syn_then() {
    let (mut world, [(a, b), (c, d)]) = dumbbell();
    world.connect_at(at(500), end(a, Bulk::new(10_000, 1000)), end(b, reader()));
    world.connect_at(Time::ZERO, end(c, Bulk::new(10_000, 1000)), end(d, reader()));
    world.run_until(at(400));
    assert_eq!(departures(&world, a), []);
    assert_eq!(departures(&world, c)[0], Time::ZERO);
    world.run_until(at(5000));
    assert_eq!(departures(&world, a)[0], at(500));
    let read: Vec<u64> = world.connections().map(Connection::total_read).collect();
    assert_eq!(read, [10_000, 0, 10_000, 0]);
}

#[test]
fn an_unlimited_flow_fills_the_bottleneck_until_it_is_stopped() {
    let (mut world, [(a, b), _]) = dumbbell();
    world.connect(end(a, Bulk::unlimited().until(at(2000))), end(b, reader()));
    world.run_until(at(2000));
    let read = |world: &World<Diary>| world.connections().next().map_or(0, Connection::total_read);
    let bps = read(&world) as f64 * 8.0 / 2.0;
    assert!((9.0e6..10.0e6).contains(&bps), "{bps}");
    // What the send buffer held is still delivered, and then both ends close.
    world.run_until(at(20_000));
    let last = departures(&world, a).pop().expect("segments");
    assert!(last < at(6000), "{last:?}");
    let quiet = read(&world);
    world.run_until(at(40_000));
    assert_eq!(read(&world), quiet);
}

#[test]
fn a_trace_is_written_byte_for_byte_when_it_says() {
    let (mut world, [(a, b), _]) = dumbbell();
    let trace =
        [(100, 500), (200, 3000), (250, 1)].map(|(ms, bytes)| (Span::from_millis(ms), bytes));
    let rng = Rng::named(1, "app/trace");
    let arrivals = Arrivals::new(Pattern::Trace(trace.into()), rng, Time::ZERO, Time::MAX);
    world.connect(end(a, Source::new(arrivals)), end(b, reader()));
    world.run_until(at(10_000));
    let written: Vec<(Time, u32)> = world
        .observer()
        .0
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::MessageWritten { bytes, .. } => Some((event.time, bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(written, [(at(100), 500), (at(200), 3000), (at(250), 1)]);
    assert_eq!(world.connections().next().map(Connection::total_read), Some(3501));
}

#[test]
fn an_on_off_writer_has_its_mean_rate() {
    let (mut world, [(a, b), _]) = dumbbell();
    let length = Length::Exponential { mean: Span::from_millis(100) };
    let pattern =
        Pattern::OnOff { on: length, off: length, period: Span::from_millis(1), bytes: 250 };
    let arrivals = Arrivals::new(pattern, Rng::named(2, "app/on-off"), Time::ZERO, Time::MAX);
    world.connect(end(a, Source::new(arrivals)), end(b, reader()));
    world.run_until(at(200_000));
    // On for half of the time at 2 Mbit/s; the share of 1000 periods has a deviation of 2 %.
    let bps = world.connections().next().map_or(0, Connection::total_read) as f64 * 8.0 / 200.0;
    assert!((0.9e6..1.1e6).contains(&bps), "{bps}");
}

#[test]
fn datagrams_go_both_ways_with_the_delay_of_the_path() {
    let (mut world, [(plant, controller), _]) = dumbbell();
    for (from, to) in [(plant, controller), (controller, plant)] {
        let pattern = Pattern::Constant { period: Span::from_millis(14), bytes: 20 };
        let rng = Rng::named(1, "peer/unused");
        let arrivals = Arrivals::new(pattern, rng, Time::ZERO, at(1400));
        world.attach(from, Box::new(Datagrams::new(from, to, arrivals)));
    }
    world.run_until(at(2000));
    let delays = |node: NodeId| -> Vec<f64> {
        let told = world.observer().0.iter().filter_map(|event| match event.kind {
            EventKind::App { node: n, code: DATAGRAM_DELAY_MS, value } if n == node => Some(value),
            _ => None,
        });
        told.collect()
    };
    for node in [plant.node, controller.node] {
        let delays = delays(node);
        assert_eq!(delays.len(), 100);
        // 10 ms of propagation; 48 bytes take 38.4 us at 10 Mbit/s and 0.4 us at 1 Gbit/s, twice.
        assert!(delays.iter().all(|ms| (ms - 10.0392).abs() < 1e-3), "{delays:?}");
    }
}
