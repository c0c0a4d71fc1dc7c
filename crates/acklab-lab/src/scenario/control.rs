//! What every scenario with a control loop measures of it, and what queries may name.

use acklab_control::LoopRecord;
use acklab_control::record::code;

use crate::measured::{Measured, MetricDoc, Metrics};

/// Name, unit and meaning of a signal, and the code under which the loop tells it.
pub type LoopSignal = (&'static str, &'static str, &'static str, u32);

/// What queries may name of every control loop.
pub const LOOP_SIGNALS: &[LoopSignal] = &[
    ("itae", "rad s", "the paper's ITAE so far: the sum of t|e| over the ticks", code::COST_S),
    ("position", "rad", "the motor's position, at each tick", code::POSITION),
    ("reference", "rad", "what the position should be", code::REFERENCE),
    ("command", "V", "the controller's command", code::COMMAND),
    (
        "loop_delay",
        "ms",
        "from the last sample that took effect to its effect",
        code::LOOP_DELAY_MS,
    ),
    ("command_age", "ms", "age of the sample behind the acting command", code::COMMAND_AGE_MS),
    ("missed", "ticks", "ticks in a row without a new command", code::MISSED_COMMANDS),
];

/// What is measured of the loop.
pub fn loop_metrics(record: &LoopRecord) -> Metrics {
    let mut metrics = Metrics::default();
    let costs = &record.costs;
    let steps = costs.steps();
    let mut scalar = |name, value| metrics.insert(name, Measured::Samples(vec![value]));
    scalar("itae_rad_s", costs.s());
    scalar("itae", costs.itae());
    scalar("iae", costs.iae());
    scalar("ise", costs.ise());
    scalar("missed_samples_run", record.missed_samples_run as f64);
    scalar("missed_commands_run", record.missed_commands_run as f64);
    let mut samples = |name, values| metrics.insert(name, Measured::Samples(values));
    samples("overshoot", steps.iter().map(|step| step.overshoot).collect());
    samples("settling_ms", steps.iter().map(|step| step.settling.as_millis_f64()).collect());
    samples("loop_delay_ms", record.loop_delay_ms.clone());
    samples("sample_age_ms", record.sample_age_ms.clone());
    samples("command_age_ms", record.command_age_ms.clone());
    metrics.insert("missed_samples", Measured::Total(record.missed_samples));
    metrics.insert("missed_commands", Measured::Total(record.missed_commands));
    metrics
}

/// Of a network from a file whose flows include a control loop.
pub(super) const LOOP_METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "itae",
        unit: "rad s^2",
        doc: "Of a control loop: the integral of time times absolute error. One sample per replication.",
    },
    MetricDoc {
        name: "iae",
        unit: "rad s",
        doc: "Of a control loop: the integral of the absolute error. One sample per replication.",
    },
    MetricDoc {
        name: "ise",
        unit: "rad^2 s",
        doc: "Of a control loop: the integral of the squared error. One sample per replication.",
    },
    MetricDoc {
        name: "overshoot",
        unit: "share",
        doc: "Of a control loop: how far the output went beyond a step of the reference, as a share of the \
              step. One sample per step.",
    },
    MetricDoc {
        name: "settling_ms",
        unit: "ms",
        doc: "Of a control loop: from a step of the reference until the output stays within 2 % of the step. \
              One sample per step.",
    },
    MetricDoc {
        name: "loop_delay_ms",
        unit: "ms",
        doc: "Of a control loop: from a sample to the instant at which its command begins to act. One \
              sample per sample that had effect.",
    },
    MetricDoc {
        name: "missed_commands",
        unit: "ticks",
        doc: "Of a control loop: ticks without a new command; summed.",
    },
];
