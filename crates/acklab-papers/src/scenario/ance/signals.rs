//! What the ANCE scenarios measure of their control loop, and what queries may name.

use acklab_control::LoopRecord;
use acklab_core::options::joined;

use super::parameters::Set;
use acklab_lab::measured::{Measured, MetricDoc, Metrics};
use acklab_lab::metrics;
use acklab_lab::scenario::control::{LOOP_SIGNALS, UNSTABLE_RUNS};
use acklab_lab::scenario::network::NETWORK_METRICS;
use acklab_lab::scenario::network_signals::{self, Source};
use acklab_lab::signal::Signal;

/// The signals under resolved settings.
pub(super) fn list(set: &Set) -> Vec<(Signal, Source)> {
    let mut list = Vec::new();
    let mut add = |name: &str, unit, doc, source| {
        list.push((Signal { name: name.to_owned(), unit, doc }, source));
    };
    if set.dumbbell {
        for (name, unit, doc, code) in LOOP_SIGNALS {
            add(name, unit, doc, Source::Loop(*code));
        }
    }
    list.extend(network_signals::of_network());
    list.extend(network_signals::of_flows(0..set.flows() as usize));
    list
}

/// Adds what the loop cost.
pub(super) fn add_loop_metrics(metrics: &mut Metrics, control: &LoopRecord) {
    let one = |value: f64| Measured::Samples(vec![value]);
    let costs = &control.costs;
    metrics.insert("itae_rad_s", one(costs.s()));
    metrics.insert("itae_rad_s2", one(costs.itae()));
    metrics.insert(UNSTABLE_RUNS.name, Measured::Total(u64::from(costs.is_unstable())));
    metrics.insert("iae", one(costs.iae()));
    metrics.insert("ise", one(costs.ise()));
    metrics.insert("loop_delay_ms", Measured::Samples(control.loop_delay_ms.clone()));
    metrics.insert("command_age_ms", Measured::Samples(control.command_age_ms.clone()));
    metrics.insert("missed_commands", one(control.missed_commands as f64));
    metrics.insert("missed_commands_run", one(control.missed_commands_run as f64));
}

/// What the dumbbell measures: the loop and the network.
pub(super) const DUMBBELL_METRICS: [MetricDoc; LOOP_METRICS.len() + 1 + NETWORK_METRICS.len()] =
    joined(LOOP_METRICS[0], &[&LOOP_METRICS, &[UNSTABLE_RUNS], &NETWORK_METRICS]);

const LOOP_METRICS: [MetricDoc; 8] = metrics! {
    /// The paper's ITAE: the sum of t|e| over the sampling instants, which lacks the factor h. One
    /// sample per replication.
    "itae_rad_s" in "rad s";
    /// Integral of time times absolute error, h times the sum. One sample per replication.
    "itae_rad_s2" in "rad s²";
    /// Integral of the absolute error. One sample per replication.
    "iae" in "rad s";
    /// Integral of the squared error. One sample per replication.
    "ise" in "rad^2 s";
    /// From a sample of the motor's position to the instant at which the first command computed from
    /// it acts. One sample per sample that took effect.
    "loop_delay_ms" in "ms";
    /// Age, at each of the motor's ticks, of the sample behind the acting command: age of
    /// information. One sample per tick.
    "command_age_ms" in "ms";
    /// Ticks of the motor without a new command since the one before. One sample per replication.
    "missed_commands" in "ticks";
    /// The most of them in a row. One sample per replication.
    "missed_commands_run" in "ticks";
};
