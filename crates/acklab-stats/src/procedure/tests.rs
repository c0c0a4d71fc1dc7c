use super::*;
use crate::interval::Validity;
use crate::query::parse;
use crate::sprt::Decision;

fn procedure(text: &str, settings: Settings) -> (BoundQuery, Procedure) {
    let bound = parse(text).and_then(|query| query.bind(text, &["x"]));
    let bound = bound.unwrap_or_else(|error| panic!("{error}"));
    let procedure = Procedure::new(&bound, &settings).expect("usable settings");
    (bound, procedure)
}

/// Runs in which x is `value(run)` from second 1 on, pushed in batches of `batch`.
fn carry_out(text: &str, batch: u64, value: impl Fn(u64) -> f64) -> Procedure {
    carry_out_with(Settings::default(), text, batch, value)
}

fn carry_out_with(
    settings: Settings,
    text: &str,
    batch: u64,
    value: impl Fn(u64) -> f64,
) -> Procedure {
    let (bound, mut procedure) = procedure(text, settings);
    let mut first = 0;
    while !procedure.is_done() {
        let outcomes: Vec<RunOutcome> = (first..first + batch)
            .map(|run| {
                let mut monitor = bound.monitor(run);
                monitor.observe(0.0, &[0.0]);
                monitor.observe(1.0, &[value(run)]);
                monitor.finish(2.0)
            })
            .collect();
        for outcome in outcomes {
            procedure.push(outcome);
        }
        first += batch;
    }
    procedure
}

#[test]
fn the_report_does_not_depend_on_the_size_of_a_batch() {
    let value = |run: u64| f64::from(u32::try_from(run * 7919 % 101).expect("small"));
    for text in [
        "Pr[<=2](<> x > 60)",
        "Pr[<=2]([] x < 60) >= 0.4",
        "Pr[<=2](<> x > 20) >= Pr[<=2](<> x > 80)",
        "E[<=2; 50](max: x)",
        "E[<=2](share: x > 60) <= 0.2",
        "quantile[<=2; 80](0.9, max: x)",
        "S[<=2; 4](avg: x)",
        "simulate [<=2; 40] {x} : 7 : x > 50",
    ] {
        let alone = carry_out(text, 1, value);
        let batched = carry_out(text, 64, value);
        assert!(alone.report().complete, "{text}");
        assert_eq!(alone.report(), batched.report(), "{text}");
        assert_eq!(alone.reach_curve(), batched.reach_curve(), "{text}");
        assert_eq!(alone.trajectories(), batched.trajectories(), "{text}");
    }
}

#[test]
fn a_formula_that_never_holds_takes_63_runs_or_uppaals_36_and_has_an_empty_curve() {
    let done = carry_out("Pr[<=2](<> x > 60)", 1, |_| 0.0);
    let report = done.report();
    assert_eq!((report.runs, report.successes, report.estimate), (63, Some(0), Some(0.0)));
    let interval = report.interval.expect("an interval");
    assert_eq!((interval.method, interval.validity), ("beta-binomial", Validity::AnyTime));
    assert!(interval.high <= 0.1, "{interval:?}");
    let uppaal = Settings { method: Some(ProportionMethod::ClopperPearson), ..Settings::default() };
    let done = carry_out_with(uppaal, "Pr[<=2](<> x > 60)", 1, |_| 0.0);
    let report = done.report();
    assert_eq!((report.runs, report.successes), (36, Some(0)));
    let interval = report.interval.expect("an interval");
    assert!((interval.high - 0.097_393_755_914).abs() < 1e-12);
    assert_eq!((interval.method, interval.validity), ("clopper-pearson", Validity::Nominal));
    let curve = done.reach_curve().expect("runs");
    assert!(curve.points.is_empty() && curve.runs == 36);
}

#[test]
fn decisions_and_means_are_reported() {
    let hypothesis = carry_out("Pr[<=2](<> x > 0) >= 0.9", 8, |_| 1.0).report();
    assert_eq!((hypothesis.kind, hypothesis.decision), ("hypothesis", Some(Decision::Accepted)));
    let compared = carry_out("Pr[<=2](<> x > 2) >= Pr[<=2](<> x > 0)", 8, |_| 1.0).report();
    assert_eq!(compared.decision, Some(Decision::Rejected));
    assert_eq!(compared.sides.expect("two sides").map(|side| side.successes), [0, 30]);
    let mean = carry_out("E[<=2; 4](max: x)", 3, |run| [1.0, 3.0][run as usize % 2]).report();
    assert_eq!((mean.runs, mean.estimate), (4, Some(2.0)));
    let alike = carry_out("E[<=2](max: x)", 8, |_| 1.0).report();
    assert_eq!((alike.runs, alike.estimate, alike.interval), (299, Some(1.0), None));
    assert!((alike.differing_at_most.expect("alike") - 0.01).abs() < 1e-4, "{alike:?}");
}

#[test]
fn runs_have_a_limit_and_settings_a_meaning() {
    let settings = Settings { runs_max: Some(5), ..Settings::default() };
    let (bound, mut limited) = procedure("Pr[<=2](<> x > 0)", settings);
    for run in 0..9 {
        limited.push(bound.monitor(run).finish(2.0));
    }
    assert_eq!((limited.report().runs, limited.report().complete), (5, false));
    assert_eq!(limited.runs_expected(), Some(5));
    for wrong in [
        Settings { alpha: 0.0, ..settings },
        Settings { beta: 0.99, ..settings },
        Settings { epsilon: f64::NAN, ..settings },
        Settings { epsilon_abs: Some(0.0), ..settings },
        // Of a mean without a number of runs alone.
        Settings { epsilon_abs: Some(0.1), ..settings },
        Settings { delta_plus: -0.1, ..settings },
        Settings { u1: 0.5, ..settings },
        Settings { runs_max: Some(0), ..settings },
    ] {
        let error = Procedure::new(&bound, &wrong).expect_err("unusable");
        assert!(error.message.contains("write"), "{error}");
    }
}
