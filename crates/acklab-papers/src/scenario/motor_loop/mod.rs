//! `motor-loop`: the networked DC motor over a fixed delay.
//!
//! The control loop of the ANCE article (plant of equation (3), PI controller, 14 ms, square wave of
//! 1 and 2 rad) with two delay lines in place of the network: what a given loop delay costs, before
//! any queue makes it vary. The loop itself is [`acklab_control::motor_loop()`].

mod declarations;

use acklab_control::margin::delay_margin;
use acklab_control::peer::{Actuation, Driven, Missing};
use acklab_control::record::code;
use acklab_control::{
    AntiWindup, Integration, LoopRecord, LoopRun, MotorLoop as Loop, PidGains, Split, SquareWave,
    motor_loop,
};
use acklab_core::event::EventKind;
use acklab_core::time::{Span, Time};
use acklab_sim::ResultHash;

use self::declarations::{INTEGRATIONS, METRICS, PARAMETERS};
use acklab_lab::measured::{Measured, MetricDoc, Metrics};
use acklab_lab::parameter::{Parameter, SetError, Settings};
use acklab_lab::scenario::{Axis, Capture, Flow, Replication, Scenario};
use acklab_lab::signal::{Segment, Signal, Watch};

/// The networked DC motor over a fixed delay.
#[derive(Clone, Copy, Debug)]
pub struct MotorLoop;

impl Scenario for MotorLoop {
    fn name(&self) -> &'static str {
        "motor-loop"
    }

    fn summary(&self) -> &'static str {
        "a DC motor under PI control over a fixed delay: what the delay costs, and how much it bears"
    }

    fn doc(&self) -> &'static str {
        "A motor with the transfer function 36.3/(s² + 36.17 s) follows a square wave of 1 and 2 rad \
         under a PI controller, both sampled every `period`, with `loop_delay` between a sample and \
         the action of its command. Driven by time, a delay acts as the whole number of periods that \
         it begins; driven by events (controller=event-driven, actuation=arrival) it is exact. The \
         plant is discretised exactly; packets have no size here, nothing queues, and only `loss` is \
         random."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        METRICS
    }

    fn main_metric(&self) -> &'static str {
        "itae_rad_s"
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        &["itae", "iae", "overshoot", "settling_ms", "loop_delay_ms"]
    }

    fn replications(&self) -> u64 {
        1
    }

    fn grid(&self) -> &'static [Axis] {
        &[
            Axis {
                parameter: "loop_delay",
                values: &["0", "14ms", "28ms", "42ms", "56ms", "70ms", "84ms"],
            },
            Axis { parameter: "integration", values: INTEGRATIONS },
        ]
    }

    fn courses(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[
            ("Motor position", &["position", "reference"]),
            ("Command", &["command"]),
            ("ITAE, as the ANCE article has it", &["itae"]),
        ]
    }

    fn terms(&self) -> &'static [&'static str] {
        &[]
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let refuse = |name: &str, reason: &str| {
            let text = settings.span(name).to_string();
            Err(SetError::BadValue { name: name.into(), text, reason: reason.into() })
        };
        if settings.span("period").is_zero() {
            return refuse("period", "must be longer than 0");
        }
        if settings.span("reference_period").is_zero() {
            return refuse("reference_period", "must be longer than 0");
        }
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let period = settings.span("period").as_nanos().max(1);
        2 * settings.span("duration").as_nanos().div_ceil(period)
    }

    fn run(&self, settings: &Settings, seed: u64, _capture: Option<Capture<'_>>) -> Replication {
        let setup = setup(settings);
        let mut hash = ResultHash::default();
        let mut events = 0;
        let record = motor_loop(&setup, seed, |event| {
            hash.event(event);
            events += 1;
        })
        .expect("the settings were checked");
        let mut metrics = loop_metrics(&record);
        let longest = setup.period * LONGEST_MARGIN;
        let margin = delay_margin(&setup.model, &setup.gains, setup.period, longest);
        // One that is as long as was looked is longer, and how much is not known.
        let known = Some(margin.unwrap_or_default()).filter(|margin| *margin < longest);
        let margin_ms = known.map(Span::as_millis_f64).into_iter().collect();
        metrics.insert("delay_margin_ms", Measured::Samples(margin_ms));
        let flows = vec![Flow { id: "loop".into(), metrics: metrics.clone() }];
        Replication { hash: hash.finish(), events, metrics, flows, ..Replication::default() }
    }

    fn signals(&self, _settings: &Settings) -> Vec<Signal> {
        let named = |&(name, unit, doc, _): &LoopSignal| Signal { name: name.into(), unit, doc };
        LOOP_SIGNALS.iter().map(named).collect()
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        let Some((first, rest)) = path.split_first() else { return };
        let mut run =
            LoopRun::new(&setup(settings), first.seed).expect("the settings were checked");
        let mut rest = rest.iter().peekable();
        let mut values = vec![0.0; LOOP_SIGNALS.len()];
        while let Some(at) = run.next_time().filter(|at| *at <= until) {
            while let Some(segment) = rest.next_if(|segment| segment.from <= at) {
                run.reseed(segment.seed);
            }
            let mut changed = false;
            run.turn(|event| {
                let EventKind::App { code, value, .. } = event.kind else { return };
                if let Some(index) = LOOP_SIGNALS.iter().position(|signal| signal.3 == code) {
                    values[index] = value;
                    changed |= wanted[index];
                }
            });
            if changed && each(at, &values).is_break() {
                return;
            }
        }
    }
}

/// What is measured of the loop.
fn loop_metrics(record: &LoopRecord) -> Metrics {
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

fn setup(settings: &Settings) -> Loop {
    let levels = [1.0, 2.0];
    let first = usize::from(settings.choice("reference") == "2-first");
    Loop {
        gains: gains(settings),
        period: settings.span("period"),
        loop_delay: settings.span("loop_delay"),
        split: match settings.choice("split") {
            "sensor" => Split::Sensor,
            "actuator" => Split::Actuator,
            _ => Split::Half,
        },
        driven: match settings.choice("controller") {
            "event-driven" => Driven::Event,
            _ => Driven::Time,
        },
        actuation: actuation(settings.choice("actuation")),
        phase: settings.span("phase"),
        loss: settings.number("loss") / 100.0,
        missing: match settings.choice("missing") {
            "zero" => Missing::Zero,
            _ => Missing::Hold,
        },
        reference: SquareWave {
            first: levels[first],
            second: levels[1 - first],
            period: settings.span("reference_period"),
        },
        duration: settings.span("duration"),
        ..Loop::default()
    }
}

fn gains(settings: &Settings) -> PidGains {
    PidGains {
        integration: integration(settings.choice("integration")),
        anti_windup: match settings.choice("anti_windup") {
            "clamping" => AntiWindup::Clamping,
            "back-calculation" => AntiWindup::BackCalculation(settings.span("tracking")),
            _ => AntiWindup::None,
        },
        limit: settings.number("limit"),
        ..PidGains::pid(
            settings.number("kp"),
            settings.number("ki"),
            settings.number("kd"),
            settings.span("derivative_filter"),
        )
    }
}

/// The integration that a parameter's word means.
fn integration(word: &str) -> Integration {
    match word {
        "backward-euler" => Integration::BackwardEuler,
        "tustin" => Integration::Tustin,
        _ => Integration::ForwardEuler,
    }
}

/// The actuation that a parameter's word means.
fn actuation(word: &str) -> Actuation {
    match word {
        "period-ended" => Actuation::PeriodEnded,
        "arrival" => Actuation::Arrival,
        _ => Actuation::Tick,
    }
}

/// Where the search for the delay margin ends, sampling periods.
const LONGEST_MARGIN: u64 = 20;

/// Name, unit and meaning of a signal, and the code under which the loop tells it.
pub(super) type LoopSignal = (&'static str, &'static str, &'static str, u32);

/// What queries may name of every control loop.
pub(super) const LOOP_SIGNALS: &[LoopSignal] = &[
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

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_lab::scenario::defaults;

    fn run(pairs: &[&str]) -> Replication {
        let mut settings = defaults(&MotorLoop);
        for pair in pairs {
            settings.set_pair(pair).unwrap();
        }
        MotorLoop.check(&settings).unwrap();
        MotorLoop.run(&settings, 1, None)
    }

    /// One line per loop: ticks of delay, integration, ticks of it to the controller, limit; costs.
    const GOLDEN: &str = include_str!("../../../../acklab-control/tests/oracle/loop.txt");

    #[test]
    fn settings_reach_the_loop_and_its_cost_is_the_golden_value() {
        let mut lines = 0;
        for line in GOLDEN.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [ticks, form, to_controller, limit, _, expected, ..] = words[..] else {
                panic!("{line}");
            };
            let ticks: u64 = ticks.parse().unwrap();
            if to_controller.parse() != Ok(ticks / 2) {
                continue;
            }
            let delay = format!("loop_delay={}ms", 14 * ticks);
            let limit = format!("limit={}", limit.replace("inf", "1e15"));
            let replication = run(&[&delay, &format!("integration={form}"), &limit]);
            let cost = replication.metrics.number("itae_rad_s");
            let expected: f64 = expected.parse().unwrap();
            assert!((cost / expected - 1.0).abs() < 1e-9, "{line}: {cost}");
            lines += 1;
        }
        assert_eq!(lines, 23);
    }

    #[test]
    fn driven_by_events_the_delay_is_exact_and_by_time_it_is_rounded_up_to_ticks() {
        let delay = |pairs: &[&str]| run(pairs).metrics.number("loop_delay_ms");
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-6, "{got}");
        near(delay(&["loop_delay=20ms"]), 28.0);
        near(delay(&["loop_delay=20ms", "actuation=arrival", "controller=event-driven"]), 20.0);
        // Half of it to the controller's next tick, at 14 ms, and the other half exactly.
        near(delay(&["loop_delay=20ms", "actuation=arrival"]), 24.0);
        // One period less: the command counts for the period that has just ended.
        near(delay(&["loop_delay=28ms", "actuation=period-ended"]), 14.0);
    }

    #[test]
    fn what_is_watched_is_what_was_recorded_and_another_seed_draws_other_losses() {
        let mut settings = defaults(&MotorLoop);
        settings.set_pair("loss=20").unwrap();
        let cost = |path: &[Segment]| {
            let wanted: Vec<bool> = LOOP_SIGNALS.iter().map(|signal| signal.0 == "itae").collect();
            let index = wanted.iter().position(|wanted| *wanted).unwrap();
            let mut last = 0.0;
            MotorLoop.watch(&settings, path, Time::MAX, &wanted, &mut |_, values| {
                last = values[index];
                std::ops::ControlFlow::Continue(())
            });
            last
        };
        let whole = cost(&[Segment { from: Time::ZERO, seed: 7 }]);
        let recorded = MotorLoop.run(&settings, 7, None).metrics.number("itae_rad_s");
        assert!((whole - recorded).abs() < 1e-9, "{whole} {recorded}");
        let half = Time::from_nanos(15_000_000_000);
        let split = cost(&[Segment { from: Time::ZERO, seed: 7 }, Segment { from: half, seed: 8 }]);
        assert!((whole - split).abs() > 1.0, "{whole} {split}");
    }

    #[test]
    fn losses_cost_and_are_counted() {
        let (whole, lossy) = (run(&["loop_delay=14ms"]), run(&["loop_delay=14ms", "loss=10"]));
        let number = |name| (whole.metrics.number(name), lossy.metrics.number(name));
        let missed = number("missed_commands");
        assert!(missed.0 < 1.0 && (150.0..280.0).contains(&missed.1), "{missed:?}");
        let (before, after) = number("itae_rad_s");
        assert!(after > before, "{after} {before}");
        let longest = number("missed_commands_run").1;
        assert!((2.0..6.0).contains(&longest), "{longest}");
    }
}
