//! Goal: a metric and a signal of one name mean the same, and the loop's signals are its metrics as they come about.
//! Method: of every built-in scenario with signals, names and units are compared; motor-loop is run and watched.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use acklab_core::time::Time;
use acklab_lab::scenario::defaults;
use acklab_lab::signal::Segment;
use acklab_papers::scenario::SCENARIOS;

#[test]
fn a_metric_and_a_signal_of_one_name_have_one_unit() {
    let mut both = 0;
    for scenario in SCENARIOS.iter() {
        let signals = scenario.signals(&defaults(scenario));
        for metric in scenario.declaration().metrics {
            for signal in signals.iter().filter(|signal| signal.name == metric.name) {
                let name = scenario.declaration().name;
                assert_eq!(signal.unit, metric.unit, "{name}: {}", metric.name);
                both += 1;
            }
        }
    }
    assert!(both >= 4, "{both}");
}

/// "itae" would be the article's sum to one reader and the integral to another. A name without its unit is that of one
/// quantity only where it stands beside no other unit.
#[test]
fn no_name_is_that_of_two_others_without_their_units() {
    for scenario in SCENARIOS.iter() {
        let signals = scenario.signals(&defaults(scenario));
        let metrics =
            scenario.declaration().metrics.iter().map(|metric| (metric.name, metric.unit));
        let names: BTreeMap<&str, &str> = signals
            .iter()
            .map(|signal| (signal.name.as_str(), signal.unit))
            .chain(metrics)
            .collect();
        for (name, own) in &names {
            let other = |(other, unit): &(&&str, &&str)| {
                let rest = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
                let unit_added =
                    rest.is_some_and(|unit| ["s", "ms", "rad_s", "rad_s2", "bps"].contains(&unit));
                unit_added && unit != &own
            };
            let longer: Vec<_> = names.iter().filter(other).collect();
            assert!(longer.is_empty(), "{}: {name} in {own} beside {longer:?}", scenario.name());
        }
        assert!(!names.contains_key("itae"), "{}", scenario.name());
    }
}

#[test]
fn the_greatest_values_of_the_loops_signals_are_its_metrics() {
    let scenario = SCENARIOS.find("motor-loop").expect("it is there");
    let mut settings = defaults(scenario);
    for pair in ["loss=10%", "loop_delay=14ms"] {
        settings.set_pair(pair).expect("fits");
    }
    let measured = scenario.run(&settings, 3, None).metrics;
    let signals = scenario.signals(&settings);
    let names = ["overshoot", "settling_ms", "itae_rad_s", "itae_rad_s2"];
    let place = |name| signals.iter().position(|signal| signal.name == name).expect("a signal");
    let mut most = vec![0.0_f64; signals.len()];
    let path = [Segment { from: Time::ZERO, seed: 3 }];
    let wanted = vec![true; signals.len()];
    scenario.watch(&settings, &path, Time::MAX, &wanted, &mut |_, values| {
        for (most, value) in most.iter_mut().zip(values) {
            *most = most.max(*value);
        }
        ControlFlow::Continue(())
    });
    for name in names {
        let spread = measured.spread(name).expect("samples");
        let found = most[place(name)];
        assert!((found / spread.max - 1.0).abs() < 1e-9, "{name}: {found} {}", spread.max);
    }
}

#[test]
fn a_loop_beyond_its_margin_is_called_unstable() {
    let scenario = SCENARIOS.find("motor-loop").expect("it is there");
    let unstable = |delay: &str| {
        let mut settings = defaults(scenario);
        settings.set("loop_delay", delay).expect("fits");
        scenario.run(&settings, 1, None).metrics.number("unstable_runs")
    };
    assert!(unstable("56ms") < 0.5 && unstable("100ms") > 0.5);
    // Over the margin with a reference that never changes, and against its step.
    let of = |pairs: &[&str]| {
        let mut settings = defaults(scenario);
        for pair in pairs {
            settings.set_pair(pair).expect("fits");
        }
        scenario.run(&settings, 1, None).metrics.number("unstable_runs")
    };
    let constant = ["reference_first=1", "reference_second=1"];
    assert!(of(&[&constant[..], &["loop_delay=100ms"]].concat()) > 0.5);
    assert!(of(&[&constant[..], &["loop_delay=42ms"]].concat()) < 0.5);
    assert!(of(&["kp=-1", "ki=0"]) > 0.5);
}
