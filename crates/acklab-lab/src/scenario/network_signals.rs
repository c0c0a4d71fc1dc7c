//! Signals of queues and flows: what queries may name in every scenario of a network, and the walk
//! through a run that shows their values.

use std::ops::{ControlFlow, RangeInclusive};

use acklab_control::LoopValue;
use acklab_core::event::Interest;
use acklab_core::time::Time;
use acklab_sim::{Observer, World};

use super::network::{Changes, NetworkRecorder};
use crate::signal::{Segment, Signal, Watch};

/// Where a signal's value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Packets that wait at the watched link.
    QueueLength,
    /// Bytes that wait there.
    QueueBytes,
    /// Packets dropped there so far.
    Drops,
    /// Packets marked there so far.
    Marks,
    /// Bits per second acknowledged since time 0, all flows.
    Throughput,
    /// Jain's index of the flows' throughput.
    Jain,
    /// A flow's congestion window, full segments.
    Cwnd(usize),
    /// A flow's slow-start threshold, full segments.
    Ssthresh(usize),
    /// Full segments of a flow acknowledged so far.
    Acked(usize),
    /// Bits per second of one flow.
    FlowThroughput(usize),
    /// A value of the control loop.
    Loop(LoopValue),
}

impl Source {
    /// What must change for its value to change. Throughput is looked at when an ACK comes.
    const fn changes(self) -> Changes {
        match self {
            Self::QueueLength | Self::QueueBytes | Self::Drops | Self::Marks => Changes::QUEUE,
            Self::Throughput
            | Self::Jain
            | Self::Cwnd(_)
            | Self::Ssthresh(_)
            | Self::Acked(_)
            | Self::FlowThroughput(_) => Changes::FLOWS,
            Self::Loop(_) => Changes::APP,
        }
    }
}

/// The signals of the bottleneck and of all flows together.
pub fn of_network() -> Vec<(Signal, Source)> {
    let signals = NETWORK_SIGNALS.iter();
    let named = signals.map(|&(name, unit, doc, source)| {
        let name = name.to_owned();
        (Signal { name, unit, doc }, source)
    });
    named.collect()
}

/// The signals of flows: `flow[N].cwnd` and so on, where N is the flow's number; the recorder's senders
/// are in the same order.
pub fn of_flows(numbers: impl IntoIterator<Item = usize>) -> Vec<(Signal, Source)> {
    let mut list = Vec::new();
    for (flow, number) in numbers.into_iter().enumerate() {
        let of_flow: [(&str, &str, &str, Source); 4] = [
            ("cwnd", "packets", "congestion window", Source::Cwnd(flow)),
            ("ssthresh", "packets", "slow-start threshold", Source::Ssthresh(flow)),
            ("acked", "packets", "packets acknowledged so far", Source::Acked(flow)),
            (
                "throughput",
                "bit/s",
                "acknowledged since time 0, over time",
                Source::FlowThroughput(flow),
            ),
        ];
        for (name, unit, doc, source) in of_flow {
            list.push((Signal { name: format!("flow[{number}].{name}"), unit, doc }, source));
        }
    }
    list
}

/// An observer whose values queries may name.
pub trait Shows: Observer {
    /// Names one of the values.
    type Source: Copy;

    /// What must change for a value to change.
    fn changes_of(source: Self::Source) -> Changes;

    /// What changed since the last time.
    fn take_changes(&mut self) -> Changes;

    /// The watched link's index in the world.
    fn link(&self) -> u32;

    /// A value at `now`.
    fn value(&self, source: Self::Source, now: Time) -> f64;
}

impl Shows for NetworkRecorder<'_> {
    type Source = Source;

    fn changes_of(source: Source) -> Changes {
        source.changes()
    }

    fn take_changes(&mut self) -> Changes {
        self.take_changes()
    }

    fn link(&self) -> u32 {
        self.bottleneck()
    }

    fn value(&self, source: Source, now: Time) -> f64 {
        value(source, self, now)
    }
}

/// Runs a world along `path` up to `until` and shows the values of `signals` after each change of one of
/// `wanted`; `open` makes the world of a seed in which such changes are told.
pub fn follow<O: Shows>(
    signals: &[(Signal, O::Source)],
    path: &[Segment],
    until: Time,
    wanted: &[bool],
    open: impl FnOnce(u64, Changes) -> World<O>,
    each: Watch<'_>,
) {
    let Some((first, rest)) = path.split_first() else { return };
    let sources: Vec<_> =
        signals.iter().zip(wanted).map(|((_, source), wanted)| wanted.then_some(*source)).collect();
    let mut world = open(first.seed, changes::<O>(&sources));
    // Whether it came to the end does not matter here.
    let _ = step_through(&mut world, rest, Time::ZERO..=until, &sources, each);
}

/// Lets a world run from its present time to the end of `times` and shows the values of those `sources` that are
/// wanted, at first and after each change of one of them.
pub(crate) fn step_through<O: Shows>(
    world: &mut World<O>,
    rest: &[Segment],
    times: RangeInclusive<Time>,
    sources: &[Option<O::Source>],
    each: Watch<'_>,
) -> ControlFlow<()> {
    let (changes, until) = (changes::<O>(sources), *times.end());
    let mut values = vec![0.0; sources.len()];
    let mut show = |world: &World<O>, at| {
        for (slot, source) in values.iter_mut().zip(sources) {
            if let Some(source) = source {
                *slot = world.observer().value(*source, at);
            }
        }
        each(at, &values)
    };
    show(world, *times.start())?;
    let mut rest = rest.iter().peekable();
    let link = world.observer().link();
    let told = changes.has(Changes::QUEUE.with(Changes::PASSAGE));
    loop {
        let departure = world.next_departure(link).filter(|_| told);
        let next = departure.into_iter().chain(world.next_time()).min();
        let Some(at) = next.filter(|at| *at <= until) else { return ControlFlow::Continue(()) };
        if departure == Some(at) {
            // Before a turn at the same instant, as a managed queue lets it leave.
            world.tell_departures(link, at);
        } else {
            while let Some(segment) = rest.next_if(|segment| segment.from <= at) {
                world.reseed(segment.seed);
            }
            world.step();
        }
        if world.observer_mut().take_changes().has(changes) {
            show(world, at)?;
        }
    }
}

/// What must be watched for the wanted ones.
pub(crate) fn changes<O: Shows>(wanted: &[Option<O::Source>]) -> Changes {
    let sources = wanted.iter().flatten();
    sources.fold(Changes::NONE, |all, source| all.with(O::changes_of(*source)))
}

impl Changes {
    /// The event classes that tell of such changes.
    pub fn interest(self) -> Interest {
        [
            (Self::QUEUE, Interest::QUEUE),
            (Self::FLOWS, Interest::CONGESTION),
            (Self::APP, Interest::MESSAGE),
            (Self::PASSAGE, Interest::PASSAGE.with(Interest::DROPS)),
        ]
        .into_iter()
        .filter(|(change, _)| self.has(*change))
        .fold(Interest::NONE, |all, (_, interest)| all.with(interest))
    }
}

/// A signal's value at `now`.
fn value(source: Source, recorder: &NetworkRecorder<'_>, now: Time) -> f64 {
    match source {
        Source::QueueLength => f64::from(recorder.queue_packets()),
        Source::QueueBytes => recorder.queue_bytes() as f64,
        Source::Drops => recorder.drops_and_marks().0 as f64,
        Source::Marks => recorder.drops_and_marks().1 as f64,
        Source::Throughput => recorder.total_throughput(now),
        Source::Jain => recorder.jain(),
        Source::Cwnd(flow) => recorder.cwnd(flow),
        Source::Ssthresh(flow) => recorder.ssthresh(flow),
        Source::Acked(flow) => recorder.acked(flow),
        Source::FlowThroughput(flow) => recorder.throughput(flow, now),
        Source::Loop(value) => recorder.control().value(value),
    }
}

const NETWORK_SIGNALS: &[(&str, &str, &str, Source)] = &[
    ("queue.length", "packets", "waiting at the bottleneck", Source::QueueLength),
    ("queue.bytes", "bytes", "waiting at the bottleneck", Source::QueueBytes),
    ("drops", "packets", "dropped at the bottleneck so far", Source::Drops),
    ("marks", "packets", "marked at the bottleneck so far", Source::Marks),
    (
        "throughput",
        "bit/s",
        "of all flows: acknowledged since time 0, over time",
        Source::Throughput,
    ),
    ("jain", "index", "fairness of the flows' throughput so far", Source::Jain),
];
