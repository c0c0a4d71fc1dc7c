//! Goal: intervals cover and tests err as often as they say.
//! Method: not by drawing but exactly. For a success probability p, every state (runs, successes) of a
//! procedure has a probability that follows from those one run before; summed over the states in
//! which it ends, they give its coverage, its error rate and its mean number of runs. Means and
//! comparisons have too many states for that; they are drawn.
//!
//! The figures in docs/verification.md are printed by `cargo test -p acklab-stats --test coverage --
//! --nocapture`.

use acklab_core::math;
use acklab_core::rng::Rng;
use acklab_stats::{
    Comparison, ComparisonPlan, Decision, ErrorRates, Estimate, EstimatePlan, Estimator,
    Expectation, HalfWidth, ProportionMethod, Sprt, SprtPlan, StopRule,
};

const ALPHA: f64 = 0.05;

/// A state with its probability under each success probability.
type Weighted<S> = (S, Vec<f64>);

/// Every way to end within `runs_max` runs. The state must depend on the counts alone, not on the
/// order of outcomes; `push` says whether a state is an end.
fn ends<S: Clone>(
    start: &S,
    push: impl Fn(&mut S, bool) -> bool,
    ps: &[f64],
    runs_max: usize,
) -> Vec<Weighted<S>> {
    let mut ended = Vec::new();
    let mut alive = vec![Some((start.clone(), vec![1.0; ps.len()]))];
    for _ in 0..runs_max {
        let mut next: Vec<Option<(S, bool, Vec<f64>)>> = vec![None; alive.len() + 1];
        for (successes, (state, weights)) in
            alive.iter().enumerate().filter_map(|(k, slot)| Some((k, slot.as_ref()?)))
        {
            for holds in [false, true] {
                let share = |(weight, p): (&f64, &f64)| weight * if holds { *p } else { 1.0 - p };
                let weights: Vec<f64> = weights.iter().zip(ps).map(share).collect();
                let slot = &mut next[successes + usize::from(holds)];
                if let Some((.., sum)) = slot {
                    sum.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
                } else if weights.iter().any(|weight| *weight > 1e-13) {
                    let mut state = state.clone();
                    let done = push(&mut state, holds);
                    *slot = Some((state, done, weights));
                }
            }
        }
        alive.clear();
        for slot in next {
            alive.push(match slot {
                Some((state, true, weights)) => {
                    ended.push((state, weights));
                    None
                }
                slot => slot.map(|(state, _, weights)| (state, weights)),
            });
        }
    }
    ended
}

/// The probability of `event` at the end and the mean of `runs`, for each success probability.
fn outcome<S>(
    ended: &[Weighted<S>],
    ps: &[f64],
    event: impl Fn(&S, f64) -> bool,
    runs: impl Fn(&S) -> f64,
) -> Vec<(f64, f64)> {
    let each = ps.iter().enumerate().map(|(index, p)| {
        let mut total = (0.0, 0.0, 0.0);
        for (state, weights) in ended {
            let weight = weights[index];
            total.0 += if event(state, *p) { weight } else { 0.0 };
            total.1 += weight * runs(state);
            total.2 += weight;
        }
        assert!((total.2 - 1.0).abs() < 1e-6, "p = {p}: ends with probability {}", total.2);
        (total.0, total.1)
    });
    each.collect()
}

/// Away from round numbers, at which the coverage of a discrete law jumps.
fn probabilities() -> Vec<f64> {
    (0..=60).map(|step| 0.0003 + f64::from(step) * 0.016_65).collect()
}

fn covers(estimate: Estimate, p: f64) -> bool {
    estimate.interval.covers(p)
}

fn coverage(plan: EstimatePlan, ps: &[f64]) -> Vec<(f64, f64)> {
    let start = Estimator::new(plan).expect("a usable plan");
    let ended = ends(&start, Estimator::push, ps, 1000);
    let runs = |state: &Estimator| state.estimate().runs as f64;
    outcome(&ended, ps, |state, p| covers(state.estimate(), p), runs)
}

fn least(values: &[(f64, f64)]) -> f64 {
    values.iter().fold(1.0, |least, value| value.0.min(least))
}

fn mean(values: &[(f64, f64)]) -> f64 {
    values.iter().map(|value| value.0).sum::<f64>() / values.len() as f64
}

#[test]
fn intervals_of_a_fixed_number_of_runs_cover_as_they_say() {
    let ps = probabilities();
    println!("fixed number of runs: least and mean coverage over p, 1 - alpha = 0.95");
    for name in ["clopper-pearson", "wilson", "okamoto", "bayes", "jeffreys"] {
        for runs in [36, 171, 402] {
            let method = ProportionMethod::from_name(name).expect("a known name");
            let plan = EstimatePlan { method, runs: Some(runs), ..EstimatePlan::default() };
            let found = coverage(plan, &ps);
            println!("{name:16} {runs:4} runs: {:.4} {:.4}", least(&found), mean(&found));
            if ["clopper-pearson", "okamoto"].contains(&name) {
                assert!(least(&found) >= 1.0 - ALPHA, "{name}: {found:?}");
            }
            // The others are right on average and fall short near 0 and 1; the credible interval
            // under a uniform prior never contains 0 or 1, so it misses the first and last p here.
            let floor = if name == "bayes" { -1.0 } else { 0.8 };
            assert!(mean(&found) >= 0.93 && least(&found) > floor, "{name} {runs}: {found:?}");
        }
    }
}

#[test]
fn sequential_intervals_cover_nearly_as_they_say() {
    let ps = probabilities();
    println!("sequential, alpha = epsilon = 0.05: least and mean coverage, mean runs at p");
    for (name, stop, floor) in [
        ("clopper-pearson", StopRule::Width, 0.93),
        ("clopper-pearson", StopRule::EachSide, 0.93),
        ("wilson", StopRule::Width, 0.8),
        ("bayes", StopRule::Width, -1.0),
    ] {
        let method = ProportionMethod::from_name(name).expect("a known name");
        let found = coverage(EstimatePlan { method, stop, ..EstimatePlan::default() }, &ps);
        let runs: Vec<String> = found
            .iter()
            .zip(&ps)
            .step_by(10)
            .map(|((_, runs), p)| format!("{p:.4}: {runs:.0}"))
            .collect();
        let worst = found.iter().zip(&ps).min_by(|a, b| a.0.0.total_cmp(&b.0.0)).expect("values");
        println!(
            "{name:16} {:9}: {:.4} (p = {:.4}) {:.4}; runs {}",
            stop.name(),
            least(&found),
            worst.1,
            mean(&found),
            runs.join(", ")
        );
        assert!(least(&found) > floor && mean(&found) > 0.91, "{name}: {worst:?}");
    }
}

fn sprt(threshold: f64, at_least: bool, delta: f64) -> SprtPlan {
    SprtPlan {
        threshold,
        at_least,
        delta_minus: delta,
        delta_plus: delta,
        rates: ErrorRates { alpha: 0.05, beta: 0.1 },
        runs_max: None,
    }
}

#[test]
fn walds_test_errs_as_wald_proved_at_the_edges_of_indifference() {
    println!("Pr >= p0, alpha = 0.05, beta = 0.1: errors and mean runs at both edges");
    for (threshold, delta) in [(0.5, 0.05), (0.9, 0.03), (0.1, 0.03), (0.98, 0.02)] {
        for at_least in [true, false] {
            let start = Sprt::new(sprt(threshold, at_least, delta)).expect("a usable plan");
            let (true_edge, false_edge) = if at_least {
                (threshold + delta, threshold - delta)
            } else {
                (threshold - delta, threshold + delta)
            };
            let ps = [true_edge, false_edge];
            let ended = ends(&start, Sprt::push, &ps, 2500);
            let runs = |state: &Sprt| state.estimate().runs as f64;
            let rejected = outcome(&ended, &ps, |s, _| s.decision() == Decision::Rejected, runs);
            let ((alpha, runs_true), (accepted, runs_false)) = (rejected[0], rejected[1]);
            let beta = 1.0 - accepted;
            let sign = if at_least { ">=" } else { "<=" };
            println!(
                "Pr {sign} {threshold} (delta {delta}): alpha {alpha:.4} in {runs_true:.0} runs, \
                 beta {beta:.4} in {runs_false:.0} runs"
            );
            // Sequential Analysis, section 3.2: each may exceed what was asked by this factor, their
            // sum may not.
            assert!(alpha <= 0.05 / 0.9 + 1e-6 && beta <= 0.1 / 0.95 + 1e-6, "{threshold} {sign}");
            assert!(alpha + beta <= 0.15 + 1e-6 && alpha + beta > 0.05, "{threshold} {sign}");
        }
    }
}

#[test]
fn comparisons_err_at_most_as_often_as_they_say() {
    let plan = ComparisonPlan {
        u0: 0.8,
        u1: 1.25,
        rates: ErrorRates { alpha: 0.05, beta: 0.05 },
        epsilon: 0.01,
        pairs_max: None,
    };
    let experiments = 400;
    for (left, right) in [(0.2, 0.2 / (0.2 + 0.8 * 1.25)), (0.4, 0.4 * 1.25 / (0.4 * 1.25 + 0.6))] {
        let mut rng = Rng::named(1, "comparison");
        let mut wrong = 0;
        for _ in 0..experiments {
            let mut comparison = Comparison::new(plan).expect("a usable plan");
            while !(comparison.push(rng.chance(left)) || comparison.push(rng.chance(right))) {}
            let expect = if left > right { Decision::Accepted } else { Decision::Rejected };
            wrong += u32::from(comparison.decision() != expect);
        }
        println!("{left} >= {right:.3} (odds 1.25 apart): {wrong} of {experiments} wrong");
        // 20 expected at the very edge; 34 or more have probability 0.2 %.
        assert!(wrong <= 33, "{left} {right}: {wrong}");
    }
}

/// A law with its mean.
struct Law {
    name: &'static str,
    mean: f64,
    draw: fn(&mut Rng) -> f64,
}

fn jump(rng: &mut Rng) -> f64 {
    if rng.chance(0.02) { 20.0 } else { 0.0 }
}

#[test]
fn means_without_a_number_of_runs_are_covered_or_have_no_interval() {
    let jumps = Law { name: "2 % jumps of 20", mean: 0.4, draw: jump };
    let beside_one = Law { name: "1 and 2 % jumps of 20", mean: 1.4, draw: |rng| 1.0 + jump(rng) };
    let noisy = Law {
        name: "normal(1, 0.01) and 2 % jumps of 20",
        mean: 1.4,
        draw: |rng| rng.normal(1.0, 0.01) + jump(rng),
    };
    let normal = Law { name: "normal(10, 3)", mean: 10.0, draw: |rng| rng.normal(10.0, 3.0) };
    let exponential = Law { name: "exponential(1)", mean: 1.0, draw: |rng| rng.exponential(1.0) };
    let lognormal = Law {
        name: "lognormal(0, 1)",
        mean: math::exp(0.5),
        draw: |rng| math::exp(rng.normal(0.0, 1.0)),
    };
    let (relative, absolute) = (HalfWidth::Relative, HalfWidth::Absolute);
    println!(
        "means until narrow, alpha = 0.05, 1000 experiments: covered of those with an interval"
    );
    for (law, half_width) in [
        (&jumps, relative(0.2)),
        (&jumps, absolute(0.1)),
        (&jumps, absolute(0.2)),
        (&jumps, absolute(0.3)),
        (&jumps, absolute(1.0)),
        (&beside_one, relative(0.1)),
        (&beside_one, relative(0.2)),
        (&noisy, relative(0.1)),
        (&normal, relative(0.02)),
        (&normal, relative(0.05)),
        (&exponential, relative(0.05)),
        (&exponential, relative(0.1)),
        (&lognormal, relative(0.1)),
    ] {
        let (mut given, mut covered, mut runs) = (0, 0, 0);
        for experiment in 0..1000 {
            let mut rng = Rng::named(experiment, law.name);
            let mut mean = Expectation::new(None, ALPHA, half_width).expect("usable");
            while !mean.push(Some((law.draw)(&mut rng))) {}
            runs += mean.runs();
            if let Some(interval) = mean.interval() {
                given += 1;
                covered += u32::from((interval.low..=interval.high).contains(&law.mean));
            }
        }
        let (share, runs) = (f64::from(covered) / f64::from(given), runs as f64 / 1000.0);
        println!("{}, {half_width:?}: {share:.3} of {given}; {runs:.0} runs", law.name);
        assert!(share >= 0.93 && given > 900, "{}, {half_width:?}: {share} of {given}", law.name);
    }
}
