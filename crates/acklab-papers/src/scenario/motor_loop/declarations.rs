//! What can be set of `motor-loop`, and what it measures.

use acklab_control::{Actuation, Driven, Integration, Missing, Split};
use acklab_core::options::{Row, Word, joined};
use acklab_core::time::Span;
use acklab_lab::measured::MetricDoc;
use acklab_lab::metrics;
use acklab_lab::scenario::control::{DELAY_MARGIN, GAIN_MARGIN, UNSTABLE_RUNS};
use acklab_lab::scenario::{Axis, Declaration};

acklab_core::options! {
    /// What can be set.
    pub(super) struct Set {
        /// From a sample to the action of its command.
        loop_delay: Span = "0",
        /// How the controller's integral is discretised.
        integration: Integration = "forward-euler",
        /// When a command begins to act: tick latches it at the plant's next tick; period-ended
        /// computes each sample as if the newest command had acted over the period just ended, one
        /// period less than tick; arrival lets it act at once.
        actuation: Actuation as choice(&["tick", "period-ended", "arrival"]) = "tick",
        /// Whether the controller computes at its own ticks or whenever a sample arrives.
        controller: Driven = "time-driven",
        /// Which way has the delay: half each (of an odd number of periods the larger part before
        /// the actuator), all before the controller, or all before the actuator.
        split: Split = "half",
        /// First tick of a time-driven controller; the plant's is at 0.
        phase: Span = "0",
        /// Sampling period.
        period: Span = "14ms",
        /// Proportional gain.
        kp: f64 as number(-1e6, 1e6, "V/rad") = "11.86",
        /// Integral gain.
        ki: f64 as number(-1e6, 1e6, "V/(rad s)") = "47.45",
        /// Derivative gain.
        kd: f64 as number(-1e6, 1e6, "V s/rad") = "0",
        /// Time constant of the derivative's filter.
        derivative_filter: Span = "0",
        /// Commands stay within ± this; the default only keeps a loop that diverges finite.
        limit: f64 as number(1e-3, 1e15, "V") = "1000000000000000",
        /// What the integral does while the command is at its limit: wind up, stand still, or be
        /// led back over `tracking`.
        anti_windup: Windup = "none",
        /// The time that anti_windup=back-calculation means.
        tracking: Span = "100ms",
        /// Share of samples, and of commands, that are lost.
        loss: f64 as number(0.0, 90.0, "%") = "0",
        /// What stands in for a sample or command that did not come since the last tick.
        missing: Missing = "hold",
        /// Of the plant's transfer function, the coefficients of the numerator, that of the highest power of
        /// s first.
        plant_numerator: Row = "36.3",
        /// The same of the denominator: 1 36.17 0 is s² + 36.17 s.
        plant_denominator: Row = "1 36.17 0",
        /// The reference, a square wave: the level that comes first.
        reference_first: f64 as number(-1e6, 1e6, "rad") = "1",
        /// The other level.
        reference_second: f64 as number(-1e6, 1e6, "rad") = "2",
        /// Length of both levels together.
        reference_period: Span = "2s",
        /// How long; the sampling period that begins last is finished.
        duration: Span = "30s",
    }
}

acklab_core::words! {
    /// What the integral does while the command is at its limit.
    pub(super) enum Windup {
        None = "none",
        Clamping = "clamping",
        BackCalculation = "back-calculation",
    }
}

/// What is measured of the loop.
const LOOP_METRICS: [MetricDoc; 13] = metrics! {
    /// The ANCE article's ITAE: the sum of t|e| over the plant's ticks, without the factor h. One
    /// sample per replication.
    "itae_rad_s" in "rad s";
    /// The integral of t|e|: the sampling period times the sum. One sample per replication.
    "itae_rad_s2" in "rad s²";
    /// The integral of |e|. One sample per replication.
    "iae" in "rad s";
    /// The integral of e². One sample per replication.
    "ise" in "rad² s";
    /// How far the position went beyond the reference after a change of it, as a share of the change.
    /// One sample per change that another followed.
    "overshoot" in "of the step";
    /// From a change of the reference until the position stays within 2 % of the change; the time to
    /// the next change where it did not settle. One sample per change that another followed.
    "settling_ms" in "ms";
    /// From a sample to the instant at which the first command computed from it began to act. One
    /// sample per sample so answered.
    "loop_delay_ms" in "ms";
    /// Age of information at the controller: of its newest sample, each time it computes.
    "sample_age_ms" in "ms";
    /// Age of information at the actuator: of the sample behind the acting command, at each of the
    /// plant's ticks.
    "command_age_ms" in "ms";
    /// Ticks at which the controller had no new sample; summed.
    "missed_samples" in "ticks";
    /// The most of them in a row. One sample per replication.
    "missed_samples_run" in "ticks";
    /// Ticks at which the plant had no new command; summed.
    "missed_commands" in "ticks";
    /// The most of them in a row. One sample per replication.
    "missed_commands_run" in "ticks";
};

/// What is measured: of the loop, and its margin.
const METRICS: [MetricDoc; LOOP_METRICS.len() + 3] =
    joined(DELAY_MARGIN, &[&LOOP_METRICS, &[DELAY_MARGIN, GAIN_MARGIN, UNSTABLE_RUNS]]);

pub(super) const DECLARATION: Declaration = Declaration {
    name: "motor-loop",
    summary: "a DC motor under PI control over a fixed delay: what the delay costs, and how much it bears",
    doc: "A plant, by default a motor with the transfer function 36.3/(s² + 36.17 s), follows a square wave, by \
          default of 1 and 2 rad, under a PI controller, both sampled every `period`, with `loop_delay` between a sample and \
          the action of its command. Driven by time, a delay acts as the whole number of periods that \
          it begins; driven by events (controller=event-driven, actuation=arrival) it is exact. The \
          plant is discretised exactly; packets have no size here, nothing queues, and only `loss` is \
          random.",
    parameters: Set::PARAMETERS,
    metrics: &METRICS,
    main_metric: "itae_rad_s",
    side_metrics: &["itae_rad_s2", "iae", "overshoot", "settling_ms", "loop_delay_ms"],
    grid: &[
        Axis {
            parameter: "loop_delay",
            values: &["0", "14ms", "28ms", "42ms", "56ms", "70ms", "84ms"],
        },
        Axis { parameter: "integration", values: Integration::NAMES },
    ],
    courses: &[
        ("Motor position", &["position", "reference"]),
        ("Command", &["command"]),
        ("ITAE, as the ANCE article has it", &["itae_rad_s"]),
    ],
    ..Declaration::EMPTY
};
