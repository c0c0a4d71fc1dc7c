use super::*;

fn plan(runs: Option<u64>, half_width: HalfWidth) -> MeanPlan {
    MeanPlan { alpha: 0.05, half_width, runs, is_share: false, test: None }
}

fn mean(runs: Option<u64>, half_width: HalfWidth) -> Expectation {
    Expectation::new(plan(runs, half_width)).expect("usable")
}

#[test]
fn a_fixed_number_of_runs_includes_those_without_a_value() {
    let mut mean = mean(Some(4), HalfWidth::Relative(0.05));
    let done: Vec<bool> = [Some(1.0), None, Some(3.0), Some(f64::NAN), Some(9.0)]
        .into_iter()
        .map(|value| mean.push(value))
        .collect();
    assert_eq!(done, [false, false, false, true, true]);
    assert_eq!((mean.runs(), mean.runs_without_value()), (4, 2));
    let interval = mean.interval().expect("two values");
    assert!((interval.low + interval.high - 4.0).abs() < 1e-12, "{interval:?}");
    assert_eq!((interval.method, interval.validity), ("student-t", Validity::FixedRuns));
}

#[test]
fn without_a_number_the_interval_narrows_to_what_is_wanted() {
    // The same for values a hundredth as large, which a term without a unit would not give.
    for (half_width, scale) in [
        (HalfWidth::Relative(0.01), 1.0),
        (HalfWidth::Absolute(1.0), 1.0),
        (HalfWidth::Absolute(0.01), 0.01),
    ] {
        let mut mean = mean(None, half_width);
        let values = (0..10_000).map(|run| Some(scale * (100.0 + f64::from(run * 37 % 41) - 20.0)));
        let after = values.filter(|value| mean.push(*value)).count();
        assert_eq!(after, 10_000 - mean.runs() as usize + 1);
        let interval = mean.interval().expect("values");
        let width = interval.width() / scale / 2.0;
        assert!((1300..1400).contains(&mean.runs()), "{half_width:?}: {}", mean.runs());
        assert!((0.995..=1.000_001).contains(&width), "{interval:?}");
        assert_eq!((interval.method, interval.validity), ("asymptotic", Validity::AnyTime));
    }
}

#[test]
fn on_the_way_to_a_number_of_runs_there_is_an_interval_for_any_time_or_none() {
    let mut mean = mean(Some(1000), HalfWidth::Relative(0.05));
    for run in 0..1000 {
        mean.push(Some(f64::from(run % 7)));
        let method = mean.interval().map(|interval| interval.method);
        let expect = match run {
            0..298 => None,
            298..999 => Some("asymptotic"),
            _ => Some("student-t"),
        };
        assert_eq!(method, expect, "{run}");
    }
}

#[test]
fn runs_that_are_all_alike_end_without_an_interval() {
    for (runs, ends) in [(None, 299), (Some(40), 40)] {
        let mut mean = mean(runs, HalfWidth::Relative(0.05));
        let pushed = (1..1000).find(|_| mean.push(Some(0.1))).expect("an end");
        assert_eq!((pushed, mean.interval()), (ends, None));
        let at_most = mean.differing_at_most().expect("alike");
        assert!((libm::pow(1.0 - at_most, f64::from(ends)) - 0.05).abs() < 1e-12, "{at_most}");
        assert!((mean.mean().expect("values") - 0.1).abs() < 1e-15);
    }
}

#[test]
fn a_mean_without_spread_up_to_the_look_goes_on_where_one_value_differs() {
    let mut mean = mean(None, HalfWidth::Relative(0.05));
    let ended = (0..2000).any(|run| mean.push(Some(if run == 250 { 20.0 } else { 0.0 })));
    assert!(!ended && mean.differing_at_most().is_none());
}

#[test]
fn shares_are_bet_on_and_have_an_interval_though_all_are_alike() {
    let share = MeanPlan { is_share: true, ..plan(None, HalfWidth::Absolute(0.05)) };
    let mut mean = Expectation::new(share).expect("usable");
    let runs = (1..1000).find(|_| mean.push(Some(0.0))).expect("an end");
    let interval = mean.interval().expect("bounded values");
    assert_eq!((interval.method, interval.validity), ("betting", Validity::AnyTime));
    assert!(interval.low.abs() < 1e-9 && interval.high <= 0.1 && runs < 80, "{runs}: {interval:?}");
    assert_eq!(mean.differing_at_most(), None);
}

fn test(threshold: f64, at_least: bool, share: f64) -> Expectation {
    let test = Some(MeanTest { threshold, at_least, delta_minus: 0.02, delta_plus: 0.02 });
    let share_plan = MeanPlan { is_share: true, test, ..plan(None, HalfWidth::Absolute(0.05)) };
    let mut mean = Expectation::new(share_plan).expect("usable");
    let values = (0..100_000).map(|run| Some(2.0 * share * f64::from(run * 37 % 101) / 100.0));
    let _ = values.into_iter().find(|value| mean.push(*value));
    mean
}

#[test]
fn a_test_of_a_share_is_decided_by_its_confidence_sequence() {
    use Decision::{Accepted, Rejected};
    for (threshold, at_least, share, decision, at_most) in [
        (0.05, false, 0.01, Accepted, Some(0.07)),
        (0.05, false, 0.2, Rejected, None),
        (0.3, true, 0.4, Accepted, None),
        (0.3, true, 0.2, Rejected, Some(0.32)),
        // Either answer would do; there is one all the same.
        (0.3, true, 0.303, Accepted, None),
    ] {
        let mean = test(threshold, at_least, share);
        let claim = mean.claim().expect("decided");
        assert_eq!(mean.decision(), Some(decision), "{threshold} {at_least} {share}");
        assert_eq!(claim.at_most, at_most, "{claim:?}");
        assert_eq!(claim.at_least.is_none(), at_most.is_some(), "{claim:?}");
    }
    assert!(test(0.05, false, 0.2).runs() < test(0.05, false, 0.08).runs());
}

#[test]
fn useless_plans_are_refused() {
    let relative = HalfWidth::Relative(0.05);
    for plan in [
        plan(Some(1), relative),
        plan(None, HalfWidth::Relative(0.0)),
        plan(None, HalfWidth::Absolute(f64::NAN)),
        MeanPlan { alpha: 1.0, ..plan(None, relative) },
        // Whether a mean without bounds is that large has no such test.
        MeanPlan {
            test: Some(MeanTest {
                threshold: 0.5,
                at_least: true,
                delta_minus: 0.1,
                delta_plus: 0.1,
            }),
            ..plan(None, relative)
        },
    ] {
        assert!(Expectation::new(plan).is_none(), "{plan:?}");
    }
}
