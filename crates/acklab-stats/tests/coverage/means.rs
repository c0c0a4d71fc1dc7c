//! Means over runs: for a number of runs, until narrow, and at every look.

use acklab_core::rng::Rng;
use acklab_stats::{Expectation, HalfWidth, Interval, MeanPlan, Validity};

use crate::{ALPHA, EXPONENTIAL, JUMPS, LOGNORMAL, Law, NORMAL, Tally, experiments};

fn plan(half_width: HalfWidth, runs: Option<u64>, is_share: bool) -> MeanPlan {
    MeanPlan { alpha: ALPHA, half_width, runs, is_share, test: None }
}

/// Draws until the plan's end.
fn finished(plan: MeanPlan, law: &Law, experiment: u64) -> Expectation {
    let mut rng = Rng::named(experiment, law.name);
    let mut mean = Expectation::new(plan).expect("usable");
    while !mean.push(Some((law.draw)(&mut rng))) {}
    mean
}

fn covered(interval: Option<Interval>, law: &Law) -> Option<bool> {
    interval.map(|interval| interval.covers(law.mean))
}

const UNIFORM: Law =
    Law { name: "uniform(0, 1)", mean: 0.5, quantile: 0.9, draw: |rng| rng.uniform() };

/// The share of time of something rare.
const RARE: Law = Law {
    name: "uniform(0, 1) in 4 % of the runs, else 0",
    mean: 0.02,
    quantile: 0.0,
    draw: |rng| if rng.chance(0.04) { rng.uniform() } else { 0.0 },
};

const ALWAYS_OR_NEVER: Law = Law {
    name: "1 in 10 % of the runs, else 0",
    mean: 0.1,
    quantile: 0.0,
    draw: |rng| f64::from(rng.chance(0.1)),
};

const BESIDE_ONE: Law = Law {
    name: "21 in 2 % of the runs, else 1",
    mean: 1.4,
    quantile: 1.0,
    draw: |rng| 1.0 + (JUMPS.draw)(rng),
};

const NOISY: Law = Law {
    name: "normal(1, 0.01), and 20 more in 2 % of the runs",
    mean: 1.4,
    quantile: f64::NAN,
    draw: |rng| rng.normal(1.0, 0.01) + (JUMPS.draw)(rng),
};

#[test]
fn students_interval_covers_a_normal_mean_and_others_for_many_runs() {
    for (law, runs, least) in [
        (&NORMAL, 10, 0.95),
        (&NORMAL, 100, 0.95),
        (&EXPONENTIAL, 30, 0.92),
        (&EXPONENTIAL, 300, 0.94),
        (&LOGNORMAL, 30, 0.86),
        (&LOGNORMAL, 1000, 0.93),
        (&JUMPS, 100, 0.8),
        (&JUMPS, 1000, 0.93),
    ] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let plan = plan(HalfWidth::Relative(0.05), Some(runs), false);
            let mean = finished(plan, law, experiment);
            tally.add(covered(mean.interval(), law), mean.runs());
        }
        tally.row(&format!("Student, {runs} runs, {}", law.name), least);
    }
}

#[test]
fn means_without_a_number_of_runs_are_covered_or_have_no_interval() {
    let (relative, absolute) = (HalfWidth::Relative, HalfWidth::Absolute);
    for (law, half_width, name) in [
        (&JUMPS, absolute(0.3), "0.3"),
        (&JUMPS, absolute(1.0), "1"),
        (&BESIDE_ONE, relative(0.1), "10 %"),
        (&BESIDE_ONE, relative(0.2), "20 %"),
        (&NOISY, relative(0.1), "10 %"),
        (&NORMAL, relative(0.02), "2 %"),
        (&NORMAL, relative(0.05), "5 %"),
        (&EXPONENTIAL, relative(0.05), "5 %"),
        (&EXPONENTIAL, relative(0.1), "10 %"),
        (&LOGNORMAL, relative(0.1), "10 %"),
    ] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let mean = finished(plan(half_width, None, false), law, experiment);
            let interval = mean.interval();
            assert!(interval.is_none_or(|found| found.validity == Validity::AnyTime));
            tally.add(covered(interval, law), mean.runs());
        }
        tally.row(&format!("asymptotic, until ±{name}, {}", law.name), 1.0 - ALPHA);
    }
}

/// Whether all intervals up to `runs` runs cover; on the way to a number that is never reached.
fn always_covered(law: &Law, is_share: bool, runs: u64, experiment: u64) -> bool {
    let mut rng = Rng::named(experiment, law.name);
    let far = plan(HalfWidth::Relative(0.05), Some(u64::MAX), is_share);
    let mut mean = Expectation::new(far).expect("usable");
    (0..runs).all(|run| {
        mean.push(Some((law.draw)(&mut rng)));
        // The betting is looked at less often: it takes a while.
        let looks = !is_share || run % 20 == 19;
        !looks || covered(mean.interval(), law) != Some(false)
    })
}

#[test]
fn a_look_after_every_run_is_covered() {
    for law in [&NORMAL, &EXPONENTIAL, &LOGNORMAL, &JUMPS, &NOISY] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            tally.add(Some(always_covered(law, false, 2000, experiment)), 2000);
        }
        tally.row(&format!("asymptotic, every look to 2000, {}", law.name), 1.0 - ALPHA);
    }
    for law in [&UNIFORM, &RARE, &ALWAYS_OR_NEVER] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            tally.add(Some(always_covered(law, true, 200, experiment)), 200);
        }
        tally.row(&format!("betting, 10 looks to 200, {}", law.name), 1.0 - ALPHA);
    }
}

#[test]
fn shares_are_covered_by_the_betting() {
    for law in [&UNIFORM, &RARE, &ALWAYS_OR_NEVER] {
        for runs in [Some(100), None] {
            let mut tally = Tally::default();
            for experiment in 0..experiments() {
                let mean = finished(plan(HalfWidth::Absolute(0.1), runs, true), law, experiment);
                tally.add(covered(mean.interval(), law), mean.runs());
            }
            let until = if runs.is_some() { "100 runs" } else { "until ±0.1" };
            tally.row(&format!("betting, {until}, {}", law.name), 1.0 - ALPHA);
        }
    }
}
