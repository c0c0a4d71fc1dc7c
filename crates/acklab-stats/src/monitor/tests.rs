use super::*;
use crate::query::parse;

/// Runs `query` over the signals x and y; returns the verdict's time of decision, the outcome.
fn judge(query: &str, states: &[(f64, f64, f64)], end: f64) -> (bool, f64) {
    let bound = parse(query).and_then(|parsed| parsed.bind(query, &["x", "y"]));
    let mut monitor = bound.unwrap_or_else(|error| panic!("{error}")).monitor(0);
    for (time, x, y) in states {
        monitor.observe(*time, &[*x, *y]);
    }
    match monitor.finish(end) {
        RunOutcome::Formula { holds, at } => (holds, at),
        other => panic!("{other:?}"),
    }
}

#[test]
fn formulas_hold_as_defined_up_to_and_at_their_limits() {
    let run = [(0.0, 0.0, 1.0), (1.0, 1.0, 1.0), (2.0, 2.0, 1.0), (3.0, 0.0, 0.0), (4.0, 5.0, 0.0)];
    for (query, holds, at) in [
        ("Pr[<=10](<> x > 1)", true, 2.0),
        ("Pr[<=2](<> x > 1)", true, 2.0),
        ("Pr[<=1.5](<> x > 1)", false, 1.5),
        ("Pr[<=10](<> x > 9)", false, 5.0),
        ("Pr[<=10]([] x < 3)", false, 4.0),
        ("Pr[<=3]([] x < 3)", true, 3.0),
        ("Pr[<=10]([] x < 9)", true, 5.0),
        ("Pr[<=10](y > 0 U x >= 2)", true, 2.0),
        // y falls at the very state at which x has not yet risen.
        ("Pr[<=10](y > 0 U x >= 5)", false, 3.0),
        ("Pr[<=10](x < 5 U y < 1)", true, 3.0),
        ("Pr[x<=1](<> y < 1)", false, 1.0),
    ] {
        assert_eq!(judge(query, &run, 5.0), (holds, at), "{query}");
    }
}

#[test]
fn intervals_see_what_a_signal_holds_in_between() {
    let run = [(0.0, 0.0, 1.0), (1.0, 1.0, 1.0), (2.0, 0.0, 1.0)];
    for (query, holds, at) in [
        ("Pr[<=10](<>[1.5,1.7] x == 1)", true, 1.5),
        ("Pr[<=10](<>[2,3] x == 1)", false, 3.0),
        ("Pr[<=10](<>[1,1] x == 1)", true, 1.0),
        ("Pr[<=10]([][1,1.9] x == 1)", true, 1.9),
        ("Pr[<=10]([][1,2] x == 1)", false, 2.0),
        ("Pr[<=10]([][0.5,1.5] x == 1)", false, 0.5),
        ("Pr[<=10](y > 0 U[2.5,9] x == 0)", true, 2.5),
        ("Pr[<=10](x == 0 U[2.5,9] y > 0)", false, 1.0),
        ("Pr[<=10](<>[4,5] x == 0)", true, 4.0),
        ("Pr[<=3](<>[4,5] x == 0)", false, 3.0),
    ] {
        let end = if query.starts_with("Pr[<=3]") { 3.0 } else { 6.0 };
        assert_eq!(judge(query, &run, end), (holds, at), "{query}");
    }
}

#[test]
fn states_of_no_duration_count() {
    let run = [(0.0, 0.0, 1.0), (1.0, 9.0, 1.0), (1.0, 0.0, 1.0), (2.0, 0.0, 1.0)];
    assert_eq!(judge("Pr[<=3](<> x > 5)", &run, 3.0), (true, 1.0));
    assert_eq!(judge("Pr[<=3]([] x < 5)", &run, 3.0), (false, 1.0));
}

#[test]
fn a_decided_run_may_stop_and_looks_no_further() {
    let text = "Pr[<=3](<> x > 5)";
    let bound = parse(text).and_then(|query| query.bind(text, &["x"])).expect("a query");
    let mut monitor = bound.monitor(0);
    assert!(!monitor.observe(0.0, &[1.0]));
    assert_eq!(monitor.verdict(), Verdict::Undecided);
    assert!(monitor.observe(1.0, &[6.0]));
    assert!(monitor.observe(9.0, &[0.0]));
    assert_eq!(monitor.verdict(), Verdict::Holds);
    assert_eq!(monitor.finish(9.0), RunOutcome::Formula { holds: true, at: 1.0 });
}

#[test]
fn extremes_pass_over_what_is_not_a_number_and_what_is_past_the_limit() {
    for (text, expect) in [
        ("E[<=2; 9](max: x / y)", Some(4.0)),
        ("E[<=2; 9](min: x / y)", Some(2.0)),
        ("E[<=2; 9](max: x / (y - y))", None),
    ] {
        let bound = parse(text).and_then(|query| query.bind(text, &["x", "y"]));
        let mut monitor = bound.expect("a query").monitor(0);
        for (time, x, y) in [(0.0, 2.0, 1.0), (1.0, 4.0, 1.0), (2.0, 1.0, 0.0), (3.0, 9.0, 1.0)] {
            assert_eq!(monitor.observe(time, &[x, y]), time > 2.0);
        }
        assert_eq!(monitor.finish(3.0), RunOutcome::Value(expect), "{text}");
    }
}

#[test]
fn a_simulation_records_changes_and_says_whether_its_filter_held() {
    let text = "simulate [<=2] {x, x + y} : y > 3";
    let bound = parse(text).and_then(|query| query.bind(text, &["x", "y"]));
    let mut monitor = bound.expect("a query").monitor(0);
    for (time, x) in [(0.0, 1.0), (0.5, 1.0), (1.0, 2.0), (2.5, 3.0)] {
        monitor.observe(time, &[x, 1.0]);
    }
    let rows = vec![(0.0, vec![1.0, 2.0]), (1.0, vec![2.0, 3.0])];
    let expect = RunOutcome::Trajectory(Trajectory { rows, kept: false });
    assert_eq!(monitor.finish(2.5), expect);
}

/// A run's value over the signals x, y and a counter n.
fn reduce(query: &str, states: &[(f64, f64, f64, f64)], end: f64) -> Option<f64> {
    let bound = parse(query).and_then(|parsed| parsed.bind(query, &["x", "y", "n"]));
    let mut monitor = bound.unwrap_or_else(|error| panic!("{error}")).monitor(0);
    for (time, x, y, n) in states {
        if monitor.observe(*time, &[*x, *y, *n]) {
            break;
        }
    }
    match monitor.finish(end) {
        RunOutcome::Value(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_reduced_to_what_the_query_asks_for() {
    // x is 0 for 1 s, 4 for 2 s, 1 for 1 s, and 9 for no time at second 3; y is not a number once.
    let run = [
        (0.0, 0.0, 2.0, 0.0),
        (1.0, 4.0, 2.0, 1.0),
        (3.0, 9.0, f64::NAN, 1.0),
        (3.0, 1.0, 3.0, 4.0),
        (4.0, 7.0, 3.0, 5.0),
    ];
    for (query, expect) in [
        ("E[<=4](max: x)", Some(9.0)),
        ("E[<=2](max: x)", Some(4.0)),
        ("E[<=4](max[3.5,9]: x)", Some(7.0)),
        ("E[<=4](max[3.5,3.6]: x)", Some(1.0)),
        ("E[<=4](min[1,2]: x)", Some(4.0)),
        ("E[<=4](min[1.5,1.5]: x)", Some(4.0)),
        ("E[<=4](max[5,6]: x)", None),
        ("E[<=4](last: x)", Some(7.0)),
        ("E[<=3.5](last: x)", Some(1.0)),
        ("E[<=4](last[0,2]: x)", Some(4.0)),
        ("E[<=4](avg: x)", Some(9.0 / 4.0)),
        ("E[<=9](avg: x)", Some((9.0 + 2.0 * 7.0) / 6.0)),
        ("E[<=4](avg[2,3.5]: x)", Some(4.5 / 1.5)),
        ("E[<=4](avg[2,2]: x)", None),
        ("E[<=4](share: x > 2)", Some(0.5)),
        ("E[<=4](share[0.5,2]: x > 2)", Some(1.0 / 1.5)),
        ("E[<=4](sum: x)", Some(9.0)),
        ("E[<=4](quantile(0.2): x)", Some(0.0)),
        ("E[<=4](quantile(0.5): x)", Some(1.0)),
        ("E[<=4](quantile(0.51): x)", Some(4.0)),
        // By the counter: 4 once, 1 three times, 7 once.
        ("E[<=4](avg per n: x)", Some(14.0 / 5.0)),
        ("E[<=4](share per n: x < 2)", Some(0.6)),
        ("E[<=4](sum per n: x)", Some(14.0)),
        ("E[<=4](sum[2,4] per n: 1)", Some(4.0)),
        ("E[<=4](quantile(0.6) per n: x)", Some(1.0)),
        ("E[<=4](quantile(0.7) per n: x)", Some(4.0)),
        ("E[<=0.5](avg per n: x)", None),
        ("E[<=0.5](sum per n: x)", Some(0.0)),
        // What has no value weighs nothing; a comparison with it does not hold.
        ("E[<=4](avg: y)", Some((3.0 * 2.0 + 3.0) / 4.0)),
        ("E[<=4](avg: x / (n - n))", None),
        // The clock is a signal: by n, x is 0 for one, 4 for none, and 1 or 9 for three.
        ("E[n<=4](avg: x)", Some((0.0 + 9.0 * 3.0) / 4.0)),
    ] {
        let value = reduce(query, &run, 6.0);
        let near = match (value, expect) {
            (Some(value), Some(expect)) => (value - expect).abs() < 1e-12,
            (value, expect) => value.is_none() && expect.is_none(),
        };
        assert!(near, "{query}: {value:?} for {expect:?}");
    }
}

#[test]
fn a_steady_state_is_looked_at_in_equal_slices() {
    let slices = |text: &str| {
        let bound = parse(text).and_then(|query| query.bind(text, &["x", "n"]));
        let mut monitor = bound.expect("a query").monitor(0);
        for step in 0..=1000 {
            monitor.observe(f64::from(step), &[f64::from(step % 4), f64::from(step)]);
        }
        match monitor.finish(1000.0) {
            RunOutcome::Slices(slices) => slices,
            other => panic!("{other:?}"),
        }
    };
    for (text, weight, sums) in [
        ("S[<=1000](avg: x)", 1.0, &[0.0, 1.0, 2.0, 3.0][..]),
        ("S[<=1000](avg[500,1000]: x)", 0.5, &[0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.5, 1.5]),
        ("S[<=1000](share: x > 2)", 1.0, &[0.0, 0.0, 0.0, 1.0]),
    ] {
        let slices = slices(text);
        assert_eq!(slices.len(), 1000);
        for (slice, sum) in slices.iter().zip(sums.iter().cycle()) {
            assert!((slice.weight - weight).abs() < 1e-9, "{text}: {slice:?}");
            assert!((slice.sum - sum).abs() < 1e-9, "{text}: {slice:?} {sum}");
        }
    }
    // Each state counts once, in the slice that it begins; the first counted nothing before it.
    let counted = slices("S[<=1000](avg per n: x)");
    assert!((counted[0].weight).abs() < 1e-12 && (counted[999].weight - 2.0).abs() < 1e-12);
    assert!((counted[7].sum - 3.0).abs() < 1e-12, "{:?}", counted[7]);
    // One value that lasts over all slices.
    let text = "S[<=10](avg: x)";
    let bound = parse(text).and_then(|query| query.bind(text, &["x"])).expect("a query");
    let mut monitor = bound.monitor(0);
    monitor.observe(0.0, &[3.0]);
    let RunOutcome::Slices(slices) = monitor.finish(10.0) else { panic!("slices") };
    assert!(slices.iter().all(|slice| (slice.sum - 0.03).abs() < 1e-12), "{:?}", slices[0]);
}
