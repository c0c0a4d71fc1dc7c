//! Intervals of a probability.

use acklab_stats::{Estimate, EstimatePlan, Estimator, ProportionMethod, ReachCurve, StopRule};

use acklab_core::rng::Rng;

use crate::exact::{ends, ever_outside, outcome};
use crate::{ALPHA, Tally, experiments};

/// Away from round numbers, at which the coverage of a discrete law jumps.
fn probabilities() -> Vec<f64> {
    (0..=60).map(|step| 0.0003 + f64::from(step) * 0.016_65).collect()
}

fn covers(estimate: Estimate, p: f64) -> bool {
    estimate.interval.covers(p)
}

fn coverage(plan: EstimatePlan, ps: &[f64]) -> Vec<(f64, f64)> {
    let start = Estimator::new(plan).expect("a usable plan");
    let ended = ends(&start, Estimator::push, ps, 1100);
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
            let method = ProportionMethod::from_name(name);
            assert!(method.is_some(), "{name}");
            let plan = EstimatePlan { method, runs: Some(runs), ..EstimatePlan::default() };
            let found = coverage(plan, &ps);
            println!("| {name}, {runs} runs | {:.4} | {:.4} |", least(&found), mean(&found));
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
fn sequential_intervals_cover_as_they_say_or_are_called_nominal() {
    let ps = probabilities();
    println!("sequential, alpha = epsilon = 0.05: least and mean coverage, mean runs at p");
    for (name, stop, floor) in [
        ("", StopRule::Width, 1.0 - ALPHA),
        ("", StopRule::EachSide, 1.0 - ALPHA),
        ("clopper-pearson", StopRule::Width, 0.93),
        ("clopper-pearson", StopRule::EachSide, 0.95),
        ("wilson", StopRule::Width, 0.8),
        ("bayes", StopRule::Width, -1.0),
    ] {
        let method = ProportionMethod::from_name(name);
        let found = coverage(EstimatePlan { method, stop, ..EstimatePlan::default() }, &ps);
        let runs: Vec<String> =
            found.iter().step_by(10).map(|(_, runs)| format!("{runs:.0}")).collect();
        let worst = found.iter().zip(&ps).min_by(|a, b| a.0.0.total_cmp(&b.0.0)).expect("values");
        println!(
            "| {}, {} | {:.4} (at p = {:.3}) | {:.4} | {} |",
            if name.is_empty() { "confidence sequence" } else { name },
            stop.name(),
            least(&found),
            worst.1,
            mean(&found),
            runs[..4].join(", ")
        );
        assert!(least(&found) >= floor && mean(&found) > 0.91, "{name}: {worst:?}");
    }
}

/// The counts of so many runs whose interval covers p: they hang together, as its ends rise with them.
fn held(method: ProportionMethod, p: f64, runs: u64) -> std::ops::RangeInclusive<u64> {
    let ends = |successes| method.interval(successes, runs, 1.0 - ALPHA).expect("a question");
    let first = first_of(runs, |successes| ends(successes).high >= p);
    let beyond = first_of(runs + 1, |successes| successes > runs || ends(successes).low > p);
    first..=beyond.saturating_sub(1)
}

fn first_of(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[test]
fn a_look_after_every_run_is_covered_by_the_sequence_and_not_by_a_fixed_interval() {
    println!("ever missed by one of the intervals after 1, 2, …, 2000 runs: p = 0.01, 0.1, 0.5");
    let ps = [0.01, 0.1, 0.5];
    let missed = |method| ps.map(|p| ever_outside(p, 2000, |runs| held(method, p, runs)));
    for precision in [2.0, 20.0, 200.0] {
        let found = missed(ProportionMethod::BetaBinomial { precision });
        println!("| confidence sequence, precision {precision} | {found:.4?} |");
        assert!(found.iter().all(|share| *share <= ALPHA), "{precision}: {found:?}");
    }
    let found = missed(ProportionMethod::ClopperPearson);
    println!("| clopper-pearson | {found:.4?} |");
    assert!(found.iter().all(|share| *share > 0.1), "a look after every run costs: {found:?}");
}

#[test]
fn the_band_of_when_a_formula_became_true_holds_the_whole_curve() {
    // At t in 0..1 a run has met the formula with probability 0.7 t.
    for (name, is_fixed, looks) in [
        ("fixed at 200 runs", true, &[200][..]),
        ("after 50, 100, 200, 400", false, &[50, 100, 200, 400]),
    ] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let mut rng = Rng::named(experiment, "reach");
            let met = |rng: &mut Rng| Some(rng.uniform()).filter(|_| rng.chance(0.7));
            let runs: Vec<Option<f64>> = (0..400).map(|_| met(&mut rng)).collect();
            let inside = looks.iter().all(|look: &usize| {
                let reached: Vec<f64> = runs[..*look].iter().flatten().copied().collect();
                let curve = ReachCurve::new(&reached, *look as u64, ALPHA, is_fixed).expect("runs");
                let mut before = 0.0;
                curve.points.iter().all(|point| {
                    // The largest distance is at a step, before it or after it.
                    let far =
                        (point.share - 0.7 * point.at).abs().max((before - 0.7 * point.at).abs());
                    before = point.share;
                    far <= curve.band
                })
            });
            tally.add(Some(inside), looks[looks.len() - 1] as u64);
        }
        tally.row(&format!("band of the reach curve, {name}"), 1.0 - ALPHA);
    }
}
