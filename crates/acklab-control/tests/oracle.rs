//! Goal: discretisation, step responses and costs are those of scipy and python-control.
//! Method: `oracle/oracle.py` computes golden values with them, sharing no code with this crate (its
//! header names the versions); the loop's costs agree to 1e-9, matrices to 1e-12.

use acklab_control::margin::{
    closed_loop, continuous_margin, delay_margin, gain_margin, spectral_radius,
};
use acklab_control::peer::{Actuation, Driven};
use acklab_control::record::code;
use acklab_control::zoh::{DelayedZoh, Zoh};
use acklab_control::{
    Integration, Matrix, MotorLoop, PidGains, Split, StateSpace, TransferFunction, motor_loop,
};
use acklab_core::event::EventKind;
use acklab_core::time::Span;

const ZOH: &str = include_str!("oracle/zoh.txt");
const LOOP: &str = include_str!("oracle/loop.txt");
const EXACT: &str = include_str!("oracle/exact.txt");
const STEP: &str = include_str!("oracle/step.txt");
const MARGIN: &str = include_str!("oracle/margin.txt");

/// The words before the first bar, and the numbers of each group after it.
fn fields(line: &str) -> (Vec<&str>, Vec<Vec<f64>>) {
    let mut groups = line.split('|');
    let words = groups.next().expect("a line").split_whitespace().collect();
    let numbers = groups
        .map(|group| group.split_whitespace().map(|n| n.parse().expect("a number")).collect())
        .collect();
    (words, numbers)
}

fn integration(name: &str) -> Integration {
    match name {
        "forward-euler" => Integration::ForwardEuler,
        "backward-euler" => Integration::BackwardEuler,
        "tustin" => Integration::Tustin,
        other => panic!("{other}"),
    }
}

fn model(name: &str) -> StateSpace {
    let (numerator, denominator): (&[f64], &[f64]) = match name {
        "motor" | "motor-slow" => (&[36.3], &[1.0, 36.17, 0.0]),
        "lag" => (&[2.0, 3.0], &[1.0, 4.0]),
        "oscillator" => (&[1.0, 0.2], &[1.0, 0.1, 25.0]),
        "unstable" => (&[1.0], &[1.0, 0.5, -2.0, 0.25]),
        "stiff" => (&[5.0, 1.0, 2.0], &[0.5, 60.0, 700.0, 30.0]),
        other => panic!("{other}"),
    };
    TransferFunction::new(numerator, denominator).expect("a plant").to_state_space()
}

fn assert_near(what: &str, got: f64, expected: f64, relative: f64) {
    let error = (got - expected).abs() / expected.abs().max(1e-3);
    assert!(error <= relative, "{what}: {got} is not {expected} ({error:e})");
}

fn assert_matrix(what: &str, got: &Matrix, expected: &[f64]) {
    let expected = Matrix::from_fn(got.rows(), got.cols(), |i, j| expected[i * got.cols() + j]);
    let error = got.plus(-1.0, &expected).norm_1() / expected.norm_1();
    assert!(error < 1e-12, "{what}: {got:?} is not {expected:?} ({error:e})");
}

#[test]
fn matrices_under_zero_order_hold_are_those_of_scipy_with_and_without_delay() {
    assert_eq!(ZOH.lines().count(), 6);
    for line in ZOH.lines() {
        let (words, groups) = fields(line);
        let seconds = |word: &str| Span::from_secs_f64(word.parse().unwrap());
        let (model, period) = (model(words[0]), seconds(words[1]));
        let zoh = Zoh::new(&model, period);
        assert_matrix(words[0], &zoh.phi, &groups[0]);
        assert_matrix(words[0], &zoh.gamma, &groups[1]);
        let delayed = DelayedZoh::new(&model, period, period * 3 + seconds(words[2]));
        assert_eq!(delayed.periods, 3);
        assert_matrix(words[0], &delayed.phi, &groups[0]);
        assert_matrix(words[0], &delayed.gamma_older, &groups[2]);
        assert_matrix(words[0], &delayed.gamma_newer, &groups[3]);
    }
}

/// The loop of a line of loop.txt.
fn setup(words: &[&str]) -> MotorLoop {
    let ticks: u64 = words[0].parse().expect("ticks");
    let to_controller: u64 = words[2].parse().expect("ticks");
    let limit = words[3].parse().expect("a limit");
    MotorLoop {
        loop_delay: Span::from_millis(14) * ticks,
        split: match to_controller {
            n if n == ticks / 2 => Split::Half,
            0 => Split::Actuator,
            n if n == ticks => Split::Sensor,
            n => panic!("{n} of {ticks}"),
        },
        gains: PidGains { integration: integration(words[1]), limit, ..PidGains::default() },
        ..MotorLoop::default()
    }
}

#[test]
fn the_costs_of_the_delayed_loop_are_the_golden_values_at_every_delay_and_integration() {
    assert_eq!(LOOP.lines().count(), 56);
    for line in LOOP.lines() {
        let (words, groups) = fields(line);
        let record = motor_loop(&setup(&words), 1, |_| ()).unwrap();
        let costs = [record.costs.s(), record.costs.itae(), record.costs.iae(), record.costs.ise()];
        for (got, expected) in costs.iter().zip(&groups[0]) {
            assert_near(line, *got, *expected, 1e-9);
        }
    }
}

#[test]
fn driven_by_events_the_loop_is_the_ticked_one_where_delays_are_whole_periods() {
    for line in LOOP.lines().filter(|line| line.contains("forward-euler") && line.contains("inf")) {
        let (words, groups) = fields(line);
        if words[0].parse::<u64>().unwrap() > 4 || words[2] != "0" {
            continue;
        }
        let by_events = MotorLoop {
            driven: Driven::Event,
            actuation: Actuation::Arrival,
            split: Split::Actuator,
            ..setup(&words)
        };
        let record = motor_loop(&by_events, 1, |_| ()).unwrap();
        assert_near(line, record.costs.s(), groups[0][0], 1e-9);
        let delay = words[0].parse::<f64>().unwrap() * 14.0;
        assert!(record.loop_delay_ms.iter().all(|ms| (ms - delay).abs() < 1e-9), "{line}");
    }
}

#[test]
fn driven_by_events_the_loop_bears_any_delay_exactly() {
    assert_eq!(EXACT.lines().count(), 54);
    for line in EXACT.lines() {
        let (words, groups) = fields(line);
        let setup = MotorLoop {
            loop_delay: Span::from_micros(words[0].parse().unwrap()),
            driven: Driven::Event,
            actuation: Actuation::Arrival,
            // The scenario's halves are whole nanoseconds, as the golden values' are microseconds.
            split: if words[2] == "0" { Split::Actuator } else { Split::Half },
            gains: PidGains { integration: integration(words[1]), ..PidGains::default() },
            ..MotorLoop::default()
        };
        let record = motor_loop(&setup, 1, |_| ()).unwrap();
        assert_near(line, record.costs.s(), groups[0][0], 1e-9);
        let delay_ms = setup.loop_delay.as_millis_f64();
        assert!(record.loop_delay_ms.iter().all(|ms| (ms - delay_ms).abs() < 1e-9), "{line}");
    }
}

#[test]
fn a_command_for_the_period_just_ended_saves_one_period_of_delay() {
    for line in LOOP.lines().filter(|line| line.contains(" 0 inf") && !line.starts_with('6')) {
        let (words, groups) = fields(line);
        let ticks: u64 = words[0].parse().unwrap();
        let setup = MotorLoop {
            actuation: Actuation::PeriodEnded,
            split: Split::Actuator,
            loop_delay: Span::from_millis(14) * (ticks + 1),
            ..setup(&words)
        };
        let record = motor_loop(&setup, 1, |_| ()).unwrap();
        assert_near(line, record.costs.s(), groups[0][0], 1e-9);
        let delay_ms = (ticks * 14) as f64;
        assert!(record.loop_delay_ms.iter().all(|ms| (ms - delay_ms).abs() < 1e-9), "{line}");
    }
}

#[test]
fn step_responses_are_those_of_python_control() {
    assert_eq!(STEP.lines().count(), 12);
    for line in STEP.lines() {
        let (words, groups) = fields(line);
        let setup = MotorLoop {
            duration: Span::from_millis(980),
            ..setup(&[words[0], words[1], "0", "inf"])
        };
        let mut positions = Vec::new();
        motor_loop(&setup, 1, |event| {
            if let EventKind::App { code: code::POSITION, value, .. } = event.kind {
                positions.push(value);
            }
        })
        .unwrap();
        assert_eq!(positions.len(), groups[0].len());
        for (got, expected) in positions.iter().zip(&groups[0]) {
            assert!((got - expected).abs() < 1e-12, "{line}: {got} is not {expected}");
        }
    }
}

#[test]
fn spectral_radii_and_delay_margins_are_those_of_numpys_eigenvalues() {
    let (motor, period) = (model("motor"), Span::from_millis(14));
    let gains = |name| PidGains { integration: integration(name), ..PidGains::default() };
    assert_eq!(MARGIN.lines().count(), 34);
    for line in MARGIN.lines() {
        let (words, groups) = fields(line);
        match words[..] {
            ["radius", form, ms] => {
                let delay = Span::from_millis(ms.parse().unwrap());
                let map = closed_loop(&motor, &gains(form), period, delay);
                assert_near(line, spectral_radius(&map), groups[0][0], 1e-9);
            }
            ["margin", form] => {
                let longest = Span::from_millis(200);
                let margin = delay_margin(&motor, &gains(form), period, longest).unwrap();
                assert_near(line, margin.as_secs_f64(), groups[0][0], 1e-6);
            }
            _ => {
                let found =
                    continuous_margin(&TransferFunction::dc_motor(), &gains("tustin")).unwrap();
                assert_near(line, found.crossover, groups[0][0], 1e-9);
                assert_near(line, found.phase.to_degrees(), groups[0][1], 1e-9);
                assert_near(line, found.delay, groups[0][2], 1e-9);
            }
        }
    }
}

#[test]
fn a_loop_has_no_margin_where_it_is_unstable_and_all_of_it_where_nothing_feeds_back() {
    let (motor, period) = (model("motor"), Span::from_millis(14));
    let longest = Span::from_millis(50);
    assert_eq!(delay_margin(&motor, &PidGains::p(200.0), period, longest), None);
    let lag = model("lag");
    assert_eq!(delay_margin(&lag, &PidGains::p(0.1), period, longest), Some(longest));
}

#[test]
fn beyond_the_margin_the_simulated_loop_diverges_and_before_it_does_not() {
    // 70.09 ms for backward Euler, 71.92 ms for forward Euler: 71 ms divides them.
    let worst = |form| {
        let setup = MotorLoop {
            loop_delay: Span::from_millis(71),
            driven: Driven::Event,
            actuation: Actuation::Arrival,
            split: Split::Actuator,
            gains: PidGains { integration: integration(form), ..PidGains::default() },
            duration: Span::from_secs(2000),
            ..MotorLoop::default()
        };
        let mut worst = 0.0_f64;
        motor_loop(&setup, 1, |event| {
            if let EventKind::App { code: code::POSITION, value, .. } = event.kind {
                worst = worst.max(value.abs());
            }
        })
        .unwrap();
        worst
    };
    assert!(worst("forward-euler") < 100.0, "{}", worst("forward-euler"));
    // Its commands end at the cap of 1e6 V, so its position does not grow for ever.
    assert!(worst("backward-euler") > 1e4, "{}", worst("backward-euler"));
}

#[test]
fn at_the_gain_margin_the_loop_is_at_its_delay_margin() {
    let motor = TransferFunction::dc_motor().to_state_space();
    let (period, most) = (Span::from_millis(14), 100.0);
    for delay in [Span::ZERO, Span::from_millis(20), Span::from_millis(42)] {
        let gains = PidGains::default();
        let factor = gain_margin(&motor, &gains, (period, delay), most).expect("it is stable");
        let scaled = PidGains { kp: factor * gains.kp, ki: factor * gains.ki, ..gains };
        let bears = delay_margin(&motor, &scaled, period, Span::from_secs(1)).expect("stable");
        let off = bears.as_secs_f64() - delay.as_secs_f64();
        assert!((0.0..1e-6).contains(&off), "{delay}: {factor} bears {bears}");
    }
    // Nothing is left beyond the delay margin, and a lag that is never unstable has all there is.
    let late = Span::from_millis(80);
    assert_eq!(gain_margin(&motor, &PidGains::default(), (period, late), most), None);
}
