//! What every scenario with a control loop measures of it, and what queries may name.

use acklab_control::margin::{delay_margin, gain_margin};
use acklab_control::record::code;
use acklab_control::{LoopRecord, LoopValue, PidGains, StateSpace};
use acklab_core::math;
use acklab_core::time::Span;

use crate::measured::{Measured, MetricDoc, Metrics};

/// Name, unit and meaning of a signal, and the value of the loop that it is.
pub type LoopSignal = (&'static str, &'static str, &'static str, LoopValue);

use LoopValue::Told;

/// What queries may name of every control loop.
pub const LOOP_SIGNALS: &[LoopSignal] = &[
    (
        "itae_rad_s",
        "rad s",
        "the ANCE article's ITAE so far: the sum of t|e| over the ticks",
        Told(code::COST_S),
    ),
    (
        "itae_rad_s2",
        "rad s²",
        "the integral of t|e| so far: the sampling period times that sum",
        LoopValue::Itae,
    ),
    (
        "overshoot",
        "of the step",
        "how far the position went beyond the reference since its last change, as a share of that change",
        LoopValue::Overshoot,
    ),
    (
        "settling_ms",
        "ms",
        "how long after the last change of the reference the position came within 2 % of it and stayed, so far",
        LoopValue::SettlingMs,
    ),
    ("position", "rad", "the motor's position, at each tick", Told(code::POSITION)),
    ("reference", "rad", "what the position should be", Told(code::REFERENCE)),
    ("command", "V", "the controller's command", Told(code::COMMAND)),
    (
        "loop_delay",
        "ms",
        "from the last sample that took effect to its effect",
        Told(code::LOOP_DELAY_MS),
    ),
    (
        "command_age",
        "ms",
        "age of the sample behind the acting command",
        Told(code::COMMAND_AGE_MS),
    ),
    ("missed", "ticks", "ticks in a row without a new command", Told(code::MISSED_COMMANDS)),
];

/// What is measured of the loop.
pub fn loop_metrics(record: &LoopRecord) -> Metrics {
    let mut metrics = Metrics::default();
    let costs = &record.costs;
    let steps = costs.steps();
    let mut scalar = |name, value| metrics.insert(name, Measured::Samples(vec![value]));
    scalar("itae_rad_s", costs.s());
    scalar("itae_rad_s2", costs.itae());
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
    metrics.insert("unstable_runs", Measured::Total(u64::from(costs.is_unstable())));
    metrics.insert("missed_samples", Measured::Total(record.missed_samples));
    metrics.insert("missed_commands", Measured::Total(record.missed_commands));
    metrics
}

/// How much more delay and gain the loop bears, by its map from tick to tick.
pub fn loop_margins(
    model: &StateSpace,
    gains: &PidGains,
    period: Span,
    delay: Span,
) -> [(&'static str, Measured); 2] {
    let longest = period * LONGEST;
    let bears = delay_margin(model, gains, period, longest).unwrap_or_default();
    let factor = gain_margin(model, gains, (period, delay), LARGEST);
    // What is as large as was looked for is larger, and how much is not known.
    let known = |value: f64, is_known: bool| {
        Measured::Samples(is_known.then_some(value).into_iter().collect())
    };
    let decibels = factor.map_or(f64::NAN, |factor| 20.0 * math::ln(factor) / math::ln(10.0));
    [
        ("delay_margin_ms", known(bears.as_millis_f64(), bears < longest)),
        ("gain_margin_db", known(decibels, factor.is_some_and(|factor| factor < LARGEST))),
    ]
}

/// Where the search for the delay margin ends, sampling periods.
const LONGEST: u64 = 20;
/// Where that for the gain margin does: 60 dB.
const LARGEST: f64 = 1000.0;

/// The greatest loop delay.
pub const DELAY_MARGIN: MetricDoc = MetricDoc {
    name: "delay_margin_ms",
    unit: "ms",
    doc: "The greatest loop delay at which the sampled loop is stable, by the spectral radius of \
          its map from tick to tick; 0 where it is unstable without delay. The derivative, the \
          limit and losses are left out of it. No sample where it is longer than 20 sampling periods.",
};

/// The greatest gain.
pub const GAIN_MARGIN: MetricDoc = MetricDoc {
    name: "gain_margin_db",
    unit: "dB",
    doc: "How much larger all gains together may be until the sampled loop is unstable, by the same map: under \
          motor-loop's loop_delay, and without any in a network. No sample where it is unstable as it is, or where 60 dB \
          do not suffice.",
};

/// How many replications say nothing but that the loop diverges.
pub const UNSTABLE_RUNS: MetricDoc = MetricDoc {
    name: "unstable_runs",
    unit: "replications",
    doc: "Replications in which the control loop is unstable: the position was more than ten steps of the reference away \
          from it, on either side. Their costs only say so. Summed.",
};

/// Of a network from a file whose flows include a control loop.
pub(super) const LOOP_METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "itae_rad_s",
        unit: "rad s",
        doc: "Of a control loop: the ANCE article's ITAE, the sum of t|e| over the plant's ticks. One sample per \
              replication.",
    },
    UNSTABLE_RUNS,
    DELAY_MARGIN,
    GAIN_MARGIN,
    MetricDoc {
        name: "itae_rad_s2",
        unit: "rad s²",
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
        unit: "of the step",
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
