//! What can be set of `motor-loop`, and what it measures.

use acklab_lab::measured::MetricDoc;
use acklab_lab::parameter::{Kind, Parameter};

/// The words for how the integral is discretised.
pub(super) const INTEGRATIONS: &[&str] = &["forward-euler", "backward-euler", "tustin"];

/// The words for when a command begins to act.
const ACTUATIONS: &[&str] = &["tick", "period-ended", "arrival"];

/// A gain in the unit that its parameter's description names.
const fn gain(unit: &'static str) -> Kind {
    Kind::Number { min: -1e6, max: 1e6, unit }
}

/// What can be set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "loop_delay",
        default: "0",
        kind: Kind::Span,
        doc: "From a sample to the action of its command.",
    },
    Parameter {
        name: "integration",
        default: "forward-euler",
        kind: Kind::Choice(INTEGRATIONS),
        doc: "How the controller's integral is discretised.",
    },
    Parameter {
        name: "actuation",
        default: "tick",
        kind: Kind::Choice(ACTUATIONS),
        doc: "When a command begins to act: tick latches it at the plant's next tick; period-ended \
              computes each sample as if the newest command had acted over the period just ended, \
              one period less than tick; arrival lets it act at once.",
    },
    Parameter {
        name: "controller",
        default: "time-driven",
        kind: Kind::Choice(&["time-driven", "event-driven"]),
        doc: "Whether the controller computes at its own ticks or whenever a sample arrives.",
    },
    Parameter {
        name: "split",
        default: "half",
        kind: Kind::Choice(&["half", "sensor", "actuator"]),
        doc: "Which way has the delay: half each (of an odd number of periods the larger part before \
              the actuator), all before the controller, or all before the actuator.",
    },
    Parameter {
        name: "phase",
        default: "0",
        kind: Kind::Span,
        doc: "First tick of a time-driven controller; the plant's is at 0.",
    },
    Parameter { name: "period", default: "14ms", kind: Kind::Span, doc: "Sampling period." },
    Parameter { name: "kp", default: "11.86", kind: gain("V/rad"), doc: "Proportional gain." },
    Parameter { name: "ki", default: "47.45", kind: gain("V/(rad s)"), doc: "Integral gain." },
    Parameter { name: "kd", default: "0", kind: gain("V s/rad"), doc: "Derivative gain." },
    Parameter {
        name: "derivative_filter",
        default: "0",
        kind: Kind::Span,
        doc: "Time constant of the derivative's filter.",
    },
    Parameter {
        name: "limit",
        default: "1000000000000000",
        kind: Kind::Number { min: 1e-3, max: 1e15, unit: "V" },
        doc: "Commands stay within ± this; the default only keeps a loop that diverges finite.",
    },
    Parameter {
        name: "anti_windup",
        default: "none",
        kind: Kind::Choice(&["none", "clamping", "back-calculation"]),
        doc: "What the integral does while the command is at its limit: wind up, stand still, or be \
              led back over `tracking`.",
    },
    Parameter {
        name: "tracking",
        default: "100ms",
        kind: Kind::Span,
        doc: "The time that anti_windup=back-calculation means.",
    },
    Parameter {
        name: "loss",
        default: "0",
        kind: Kind::Number { min: 0.0, max: 90.0, unit: "%" },
        doc: "Share of samples, and of commands, that are lost.",
    },
    Parameter {
        name: "missing",
        default: "hold",
        kind: Kind::Choice(&["hold", "zero"]),
        doc: "What stands in for a sample or command that did not come since the last tick.",
    },
    Parameter {
        name: "reference",
        default: "1-first",
        kind: Kind::Choice(&["1-first", "2-first"]),
        doc: "Which level of the square wave comes first, 1 or 2 rad.",
    },
    Parameter {
        name: "reference_period",
        default: "2s",
        kind: Kind::Span,
        doc: "Length of both levels together.",
    },
    Parameter {
        name: "duration",
        default: "30s",
        kind: Kind::Span,
        doc: "How long; the sampling period that begins last is finished.",
    },
];

/// What is measured of the loop.
const LOOP_METRICS: [MetricDoc; 13] = [
    MetricDoc {
        name: "itae_rad_s",
        unit: "rad s",
        doc: "The ANCE article's ITAE: the sum of t|e| over the plant's ticks, without the factor h. \
              One sample per replication.",
    },
    MetricDoc {
        name: "itae",
        unit: "rad s²",
        doc: "The integral of t|e|: the sampling period times the sum. One sample per replication.",
    },
    MetricDoc {
        name: "iae",
        unit: "rad s",
        doc: "The integral of |e|. One sample per replication.",
    },
    MetricDoc {
        name: "ise",
        unit: "rad² s",
        doc: "The integral of e². One sample per replication.",
    },
    MetricDoc {
        name: "overshoot",
        unit: "of the step",
        doc: "How far the position went beyond the reference after a change of it, as a share of the \
              change. One sample per change that another followed.",
    },
    MetricDoc {
        name: "settling_ms",
        unit: "ms",
        doc: "From a change of the reference until the position stays within 2 % of the change; the \
              time to the next change where it did not settle. One sample per change that another \
              followed.",
    },
    MetricDoc {
        name: "loop_delay_ms",
        unit: "ms",
        doc: "From a sample to the instant at which the first command computed from it began to act. \
              One sample per sample so answered.",
    },
    MetricDoc {
        name: "sample_age_ms",
        unit: "ms",
        doc: "Age of information at the controller: of its newest sample, each time it computes.",
    },
    MetricDoc {
        name: "command_age_ms",
        unit: "ms",
        doc: "Age of information at the actuator: of the sample behind the acting command, at each of \
              the plant's ticks.",
    },
    MetricDoc {
        name: "missed_samples",
        unit: "ticks",
        doc: "Ticks at which the controller had no new sample; summed.",
    },
    MetricDoc {
        name: "missed_samples_run",
        unit: "ticks",
        doc: "The most of them in a row. One sample per replication.",
    },
    MetricDoc {
        name: "missed_commands",
        unit: "ticks",
        doc: "Ticks at which the plant had no new command; summed.",
    },
    MetricDoc {
        name: "missed_commands_run",
        unit: "ticks",
        doc: "The most of them in a row. One sample per replication.",
    },
];

/// What is measured: of the loop, and its margin.
pub(super) const METRICS: &[MetricDoc] = &{
    let mut metrics = [MetricDoc {
        name: "delay_margin_ms",
        unit: "ms",
        doc: "The greatest loop delay at which the sampled loop is stable, by the spectral radius of \
              its map from tick to tick; 0 where it is unstable without delay. The derivative, the \
              limit and losses are left out of it. No sample where it is longer than 20 sampling periods.",
    }; LOOP_METRICS.len() + 1];
    let mut i = 0;
    while i < LOOP_METRICS.len() {
        metrics[i] = LOOP_METRICS[i];
        i += 1;
    }
    metrics
};
