//! Tests and comparisons, and what their decisions say.

use acklab_core::rng::Rng;
use acklab_stats::{
    Claim, Comparison, ComparisonPlan, Decision, ErrorRates, Expectation, HalfWidth, MeanPlan,
    MeanTest, Sprt, SprtPlan,
};

use crate::exact::{ends, outcome};
use crate::{ALPHA, Tally, experiments};

const RATES: ErrorRates = ErrorRates { alpha: 0.05, beta: 0.1 };

fn sprt(threshold: f64, at_least: bool, delta: f64) -> SprtPlan {
    SprtPlan {
        threshold,
        at_least,
        delta_minus: delta,
        delta_plus: delta,
        rates: RATES,
        runs_max: None,
    }
}

#[test]
fn a_test_errs_at_most_as_asked_at_the_edges_of_indifference() {
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
            let ended = ends(&start, Sprt::push, &ps, 2600);
            let runs = |state: &Sprt| state.estimate().runs as f64;
            let rejected = outcome(&ended, &ps, |s, _| s.decision() == Decision::Rejected, runs);
            let ((alpha, runs_true), (accepted, runs_false)) = (rejected[0], rejected[1]);
            let beta = 1.0 - accepted;
            let sign = if at_least { ">=" } else { "<=" };
            println!(
                "| `{sign} {threshold}` | {delta} | {alpha:.4} ({runs_true:.0}) | {beta:.4} \
                 ({runs_false:.0}) |"
            );
            // Each alone, which Wald's own limits do not promise; and neither is given away, but where the
            // edge is a probability of 0 or 1 under which nothing can deceive.
            for (edge, error, limit) in
                [(true_edge, alpha, RATES.alpha), (false_edge, beta, RATES.beta)]
            {
                let certain = edge <= 0.0 || edge >= 1.0;
                let least = if certain { 0.0 } else { 0.7 * limit };
                assert!(
                    (least..=limit + 1e-6).contains(&error),
                    "{threshold} {sign} {edge}: {error}"
                );
            }
        }
    }
}

fn is_wrong(claim: &Claim, truth: f64) -> bool {
    // The bound itself is within.
    claim.at_least.is_some_and(|bound| truth < bound - 1e-12)
        || claim.at_most.is_some_and(|bound| truth > bound + 1e-12)
}

#[test]
fn what_a_decision_says_is_wrong_at_most_as_often_as_it_says_whatever_the_probability() {
    let start = Sprt::new(sprt(0.1, false, 0.02)).expect("a usable plan");
    // Below, at the edges of, within and above the region of indifference.
    let ps = [0.01, 0.06, 0.0799, 0.08, 0.0801, 0.09, 0.1, 0.11, 0.1199, 0.12, 0.1201, 0.14, 0.3];
    let ended = ends(&start, Sprt::push, &ps, 6000);
    let runs = |state: &Sprt| state.estimate().runs as f64;
    let claim = |state: &Sprt| state.claim().expect("decided");
    let wrong = outcome(&ended, &ps, |state, p| is_wrong(&claim(state), p), runs);
    let covers = outcome(&ended, &ps, |state, p| state.estimate().interval.covers(p), runs);
    println!("Pr <= 0.1, delta 0.02, alpha 0.05, beta 0.1: wrong claims, coverage of the interval");
    for ((p, (wrong, runs)), (covered, _)) in ps.iter().zip(&wrong).zip(&covers) {
        println!("| {p} | {wrong:.4} | {covered:.4} | {runs:.0} |");
        assert!(*wrong <= RATES.beta && *covered >= 1.0 - ALPHA, "{p}");
    }
}

#[test]
fn comparisons_err_at_most_as_often_as_they_say() {
    for (left, right, epsilon) in [
        // Just beyond the edges, at which either answer is right enough: odds 1.26 apart.
        (0.2, 0.2 / (0.2 + 0.8 * 1.26), 0.01),
        (0.4, 0.4 * 1.26 / (0.4 * 1.26 + 0.6), 0.01),
        (0.3, 0.3, 0.01),
        // Just further apart than epsilon, and rarely disagreeing.
        (0.0505, 0.0, 0.05),
        (0.055, 0.0, 0.05),
    ] {
        let plan = ComparisonPlan {
            u0: 0.8,
            u1: 1.25,
            rates: ErrorRates { alpha: 0.05, beta: 0.05 },
            epsilon,
            pairs_max: None,
        };
        let odds = left * (1.0 - right) / (right * (1.0 - left));
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let mut rng = Rng::named(experiment, "comparison");
            let mut comparison = Comparison::new(plan).expect("a usable plan");
            while !(comparison.push(rng.chance(left)) || comparison.push(rng.chance(right))) {}
            let claim = comparison.claim().expect("decided");
            let truth = if claim.about == "difference" { (left - right).abs() } else { odds };
            let [pairs, _] = comparison.estimates();
            tally.add(Some(!is_wrong(&claim, truth)), 2 * pairs.runs);
        }
        tally.row(&format!("comparison of {left} with {right:.4}"), 1.0 - ALPHA);
    }
}

#[test]
fn a_test_of_a_share_of_time_errs_at_most_as_often_as_it_says() {
    // A run's share is uniform between 0 and twice its mean.
    let test = MeanTest { threshold: 0.1, at_least: false, delta_minus: 0.02, delta_plus: 0.02 };
    let half_width = HalfWidth::Absolute(0.05);
    for mean in [0.05, 0.079, 0.1, 0.121, 0.2] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let mut rng = Rng::named(experiment, "share");
            let plan =
                MeanPlan { alpha: ALPHA, half_width, runs: None, is_share: true, test: Some(test) };
            let mut tested = Expectation::new(plan).expect("usable");
            while !tested.push(Some(2.0 * mean * rng.uniform())) {}
            let claim = tested.claim().expect("decided");
            tally.add(Some(!is_wrong(&claim, mean)), tested.runs());
        }
        tally.row(&format!("share <= 0.1, delta 0.02, where it is {mean}"), 1.0 - ALPHA);
    }
}
