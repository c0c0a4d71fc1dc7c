//! `motor-loop`: the networked DC motor over a fixed delay.
//!
//! The control loop of the ANCE article (plant of equation (3), PI controller, 14 ms, square wave of
//! 1 and 2 rad) with two delay lines in place of the network: what a given loop delay costs, before
//! any queue makes it vary. The loop itself is [`acklab_control::motor_loop()`].

mod declarations;

use acklab_control::{
    AntiWindup, LoopRecord, LoopRun, ModelError, MotorLoop as Loop, PidGains, SquareWave,
    TransferFunction, motor_loop,
};
use acklab_core::event::EventKind;
use acklab_core::time::Time;
use acklab_sim::ResultHash;

use self::declarations::{DECLARATION, Set, Windup};
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::control::{LOOP_SIGNALS, LoopSignal, loop_margins, loop_metrics};
use acklab_lab::scenario::{Capture, Declaration, Flow, Replication, Scenario};
use acklab_lab::signal::{Segment, Signal, Watch};

/// The networked DC motor over a fixed delay.
#[derive(Clone, Copy, Debug)]
pub struct MotorLoop;

impl Scenario for MotorLoop {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        for (name, span) in [("period", set.period), ("reference_period", set.reference_period)] {
            if span.is_zero() {
                return Err(settings.refuse(name, "must be longer than 0"));
            }
        }
        set.plant().map_err(|error| settings.refuse("plant_denominator", error.to_string()))?;
        Ok(())
    }

    fn note(&self, settings: &Settings) -> Option<String> {
        let mut setup = settings.read::<Set>().setup();
        setup.loss = 0.0;
        setup.duration = setup.duration.min(setup.loop_delay + setup.period * 10);
        let delays = motor_loop(&setup, 1, |_| ()).ok()?.loop_delay_ms;
        let (asked, acts) = (setup.loop_delay.as_millis_f64(), *delays.last()?);
        // A nanosecond for the rounding of halves.
        ((acts - asked).abs() > 1e-6).then(|| {
            format!(
                "loop_delay={} acts as {acts} ms, for controller and actuator wait for ticks that are {} apart",
                setup.loop_delay, setup.period
            )
        })
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        2 * set.duration.as_nanos().div_ceil(set.period.as_nanos().max(1))
    }

    fn run(&self, settings: &Settings, seed: u64, _capture: Option<Capture<'_>>) -> Replication {
        let setup = settings.read::<Set>().setup();
        let mut hash = ResultHash::default();
        let mut events = 0;
        let record = motor_loop(&setup, seed, |event| {
            hash.event(event);
            events += 1;
        })
        .expect("the settings were checked");
        let mut metrics = loop_metrics(&record);
        for (name, margin) in
            loop_margins(&setup.model, &setup.gains, setup.period, setup.loop_delay)
        {
            metrics.insert(name, margin);
        }
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
        let mut run = LoopRun::new(&settings.read::<Set>().setup(), first.seed)
            .expect("the settings were checked");
        let mut rest = rest.iter().peekable();
        let mut values = vec![0.0; LOOP_SIGNALS.len()];
        let mut record = LoopRecord::new(settings.read::<Set>().period);
        while let Some(at) = run.next_time().filter(|at| *at <= until) {
            while let Some(segment) = rest.next_if(|segment| segment.from <= at) {
                run.reseed(segment.seed);
            }
            let mut changed = false;
            run.turn(|event| {
                let EventKind::App { code, .. } = event.kind else { return };
                record.on_event(event);
                let mut signals = LOOP_SIGNALS.iter().zip(wanted);
                changed |=
                    signals.any(|(signal, wanted)| *wanted && signal.3.changes_with() == code);
            });
            for (value, signal) in values.iter_mut().zip(LOOP_SIGNALS) {
                *value = record.value(signal.3);
            }
            if changed && each(at, &values).is_break() {
                return;
            }
        }
    }
}

impl Set {
    fn setup(&self) -> Loop {
        let (first, second) = (self.reference_first, self.reference_second);
        Loop {
            model: self.plant().expect("the settings were checked").to_state_space(),
            gains: self.gains(),
            period: self.period,
            loop_delay: self.loop_delay,
            split: self.split,
            driven: self.controller,
            actuation: self.actuation,
            phase: self.phase,
            loss: self.loss / 100.0,
            missing: self.missing,
            reference: SquareWave { first, second, period: self.reference_period },
            duration: self.duration,
        }
    }

    fn plant(&self) -> Result<TransferFunction, ModelError> {
        TransferFunction::new(self.plant_numerator.numbers(), self.plant_denominator.numbers())
    }

    fn gains(&self) -> PidGains {
        PidGains {
            integration: self.integration,
            anti_windup: match self.anti_windup {
                Windup::None => AntiWindup::None,
                Windup::Clamping => AntiWindup::Clamping,
                Windup::BackCalculation => AntiWindup::BackCalculation(self.tracking),
            },
            limit: self.limit,
            ..PidGains::pid(self.kp, self.ki, self.kd, self.derivative_filter)
        }
    }
}

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
        let note = |pairs: &[&str]| {
            let mut settings = defaults(&MotorLoop);
            for pair in pairs {
                settings.set_pair(pair).unwrap();
            }
            MotorLoop.note(&settings).unwrap_or_default()
        };
        assert!(note(&["loop_delay=40ms", "loss=50"]).starts_with("loop_delay=40ms acts as 42 ms"));
        assert_eq!(note(&["loop_delay=42ms"]), "");
        assert_eq!(note(&["loop_delay=20ms", "actuation=arrival", "controller=event-driven"]), "");
        assert!(note(&["loop_delay=20ms", "actuation=arrival"]).contains("acts as 24 ms"));
    }

    #[test]
    fn what_is_watched_is_what_was_recorded_and_another_seed_draws_other_losses() {
        let mut settings = defaults(&MotorLoop);
        settings.set_pair("loss=20").unwrap();
        let cost = |path: &[Segment]| {
            let wanted: Vec<bool> =
                LOOP_SIGNALS.iter().map(|signal| signal.0 == "itae_rad_s").collect();
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
    fn a_plant_and_reference_of_ones_own_do_what_their_closed_form_says() {
        let proportional = run(&[
            "plant_numerator=1",
            "plant_denominator=1 1",
            "kp=3",
            "ki=0",
            "period=10ms",
            "reference_first=2",
            "reference_second=2",
        ]);
        // 1/(s + 1) under a gain of 3 leaves a quarter of the step, and e(t) = 2 (0.25 + 0.75 exp(-4 t)) has the
        // integral 2 (0.25 T + 0.1875): 15.375 in 30 s, less the holding of the command.
        let cost = proportional.metrics.number("iae");
        assert!((cost / 15.375 - 1.0).abs() < 0.01, "{cost}");
        assert!(proportional.metrics.number("unstable_runs") < 1.0);
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
