//! What the ANCE scenarios measure of their control loop, and what queries may name.

use acklab_control::LoopRecord;
use acklab_core::event::Interest;
use acklab_core::time::Time;

use crate::measured::{Measured, MetricDoc, Metrics};
use crate::parameter::Settings;
use crate::scenario::motor_loop::LOOP_SIGNALS;
use crate::scenario::network::{Changes, NETWORK_METRICS, NetworkRecorder};
use crate::signal::Signal;

/// Where a signal's value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    QueueLength,
    QueueBytes,
    Drops,
    Marks,
    Throughput,
    Jain,
    Cwnd(usize),
    Ssthresh(usize),
    Acked(usize),
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

/// The signals under resolved settings.
pub(super) fn list(settings: &Settings) -> Vec<(Signal, Source)> {
    let dumbbell = settings.has("flows");
    let flows = if dumbbell { settings.count("flows") as usize } else { 1 };
    let mut list = Vec::new();
    let mut add = |name: &str, unit, doc, source| {
        list.push((Signal { name: name.to_owned(), unit, doc }, source));
    };
    if dumbbell {
        for (name, unit, doc, code) in LOOP_SIGNALS {
            add(name, unit, doc, Source::Loop(*code));
        }
    }
    for (name, unit, doc, source) in NETWORK_SIGNALS {
        add(name, unit, doc, *source);
    }
    for flow in 0..flows {
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
            add(&format!("flow[{flow}].{name}"), unit, doc, source);
        }
    }
    list
}

/// What must be watched for the wanted ones.
pub(super) fn changes(wanted: &[Option<Source>]) -> Changes {
    wanted.iter().flatten().fold(Changes::NONE, |all, source| all.with(source.changes()))
}

/// The event classes that tell of such changes.
pub(super) fn interest(changes: Changes) -> Interest {
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
pub(super) fn value(source: Source, recorder: &NetworkRecorder<'_>, now: Time) -> f64 {
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

/// Adds what the loop cost.
pub(super) fn add_loop_metrics(metrics: &mut Metrics, control: &LoopRecord) {
    let one = |value: f64| Measured::Samples(vec![value]);
    let costs = &control.costs;
    metrics.insert("itae_rad_s", one(costs.s()));
    metrics.insert("itae", one(costs.itae()));
    metrics.insert("iae", one(costs.iae()));
    metrics.insert("ise", one(costs.ise()));
    metrics.insert("loop_delay_ms", Measured::Samples(control.loop_delay_ms.clone()));
    metrics.insert("command_age_ms", Measured::Samples(control.command_age_ms.clone()));
    metrics.insert("missed_commands", one(control.missed_commands as f64));
    metrics.insert("missed_commands_run", one(control.missed_commands_run as f64));
}

/// What the dumbbell measures: the network and the loop.
pub(super) const DUMBBELL_METRICS: &[MetricDoc] = &{
    let [a, b, c, d, e, f, g, h, i, r] = NETWORK_METRICS;
    let [j, k, l, m, n, o, p, q] = LOOP_METRICS;
    [j, k, l, m, n, o, p, q, a, b, c, d, e, f, g, h, i, r]
};

const LOOP_METRICS: [MetricDoc; 8] = [
    MetricDoc {
        name: "itae_rad_s",
        unit: "rad s",
        doc: "The paper's ITAE: the sum of t|e| over the sampling instants, which lacks the factor h. \
              One sample per replication.",
    },
    MetricDoc {
        name: "itae",
        unit: "rad s^2",
        doc: "Integral of time times absolute error, h times the sum. One sample per replication.",
    },
    MetricDoc {
        name: "iae",
        unit: "rad s",
        doc: "Integral of the absolute error. One sample per replication.",
    },
    MetricDoc {
        name: "ise",
        unit: "rad^2 s",
        doc: "Integral of the squared error. One sample per replication.",
    },
    MetricDoc {
        name: "loop_delay_ms",
        unit: "ms",
        doc: "From a sample of the motor's position to the instant at which the first command computed \
              from it acts. One sample per sample that took effect.",
    },
    MetricDoc {
        name: "command_age_ms",
        unit: "ms",
        doc: "Age, at each of the motor's ticks, of the sample behind the acting command: age of \
              information. One sample per tick.",
    },
    MetricDoc {
        name: "missed_commands",
        unit: "ticks",
        doc: "Ticks of the motor without a new command since the one before. One sample per \
              replication.",
    },
    MetricDoc {
        name: "missed_commands_run",
        unit: "ticks",
        doc: "The most of them in a row. One sample per replication.",
    },
];
