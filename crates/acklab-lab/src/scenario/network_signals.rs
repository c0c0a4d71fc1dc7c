//! Signals of queues and flows: what queries may name in every scenario of a network, and the walk
//! through a run that shows their values.

use std::ops::ControlFlow;

use acklab_core::event::Interest;
use acklab_core::time::Time;
use acklab_sim::World;

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
    /// A value that the control loop tells under this code.
    Loop(u32),
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

/// Runs a world along `path` up to `until` and shows the values of `signals` after each change of one of
/// `wanted`; `open` makes the world of a seed in which events of some classes are told.
pub fn follow<'a>(
    signals: &[(Signal, Source)],
    path: &[Segment],
    until: Time,
    wanted: &[bool],
    open: impl FnOnce(u64, Interest) -> World<NetworkRecorder<'a>>,
    each: Watch<'_>,
) {
    let Some((first, rest)) = path.split_first() else { return };
    let sources: Vec<_> =
        signals.iter().zip(wanted).map(|((_, source), wanted)| wanted.then_some(*source)).collect();
    let changes = changes(&sources);
    let mut world = open(first.seed, interest(changes));
    let mut values = vec![0.0; sources.len()];
    let mut show = |world: &World<NetworkRecorder<'_>>, at| {
        for (slot, source) in values.iter_mut().zip(&sources) {
            if let Some(source) = source {
                *slot = value(*source, world.observer(), at);
            }
        }
        each(at, &values)
    };
    if show(&world, Time::ZERO) == ControlFlow::Break(()) {
        return;
    }
    let mut rest = rest.iter().peekable();
    let link = world.observer().bottleneck();
    loop {
        let departure = world.next_departure(link).filter(|_| changes.has(Changes::QUEUE));
        let next = departure.into_iter().chain(world.next_time()).min();
        let Some(at) = next.filter(|at| *at <= until) else { return };
        if departure == Some(at) {
            // Before a turn at the same instant, as a managed queue lets it leave.
            world.tell_departures(link, at);
        } else {
            while let Some(segment) = rest.next_if(|segment| segment.from <= at) {
                world.reseed(segment.seed);
            }
            world.step();
        }
        let wanted_one = world.observer_mut().take_changes().has(changes);
        if wanted_one && show(&world, at) == ControlFlow::Break(()) {
            return;
        }
    }
}

/// What must be watched for the wanted ones.
fn changes(wanted: &[Option<Source>]) -> Changes {
    wanted.iter().flatten().fold(Changes::NONE, |all, source| all.with(source.changes()))
}

/// The event classes that tell of such changes.
fn interest(changes: Changes) -> Interest {
    [
        (Changes::QUEUE, Interest::QUEUE),
        (Changes::FLOWS, Interest::CONGESTION),
        (Changes::APP, Interest::MESSAGE),
    ]
    .into_iter()
    .filter(|(change, _)| changes.has(*change))
    .fold(Interest::NONE, |all, (_, interest)| all.with(interest))
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
        Source::Loop(code) => recorder.loop_value(code),
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
