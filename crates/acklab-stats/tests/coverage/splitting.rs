//! Importance splitting: where every stage is passed with one probability, whatever came before, and where
//! what is decided at the start is inherited, which ties the stages together.

use acklab_core::rng::Rng;
use acklab_stats::{Passage, Segment, SplitEstimate, SplitPlan, Splittable};

use crate::{ALPHA, Tally, experiments};

/// The level is the number of stages passed.
struct Stages {
    /// Probability of a stage for either half of the trajectories, as their first seed decides; one in four
    /// ends at once where they differ, for either.
    passed: [f64; 2],
}

impl Stages {
    fn truth(&self, stages: i32) -> f64 {
        let [one, other] =
            self.passed.map(|passed| (1..stages).fold(self.first(passed), |all, _| all * passed));
        f64::midpoint(one, other)
    }

    /// The probability of the first stage.
    fn first(&self, passed: f64) -> f64 {
        if self.passed[0].to_bits() == self.passed[1].to_bits() { passed } else { 0.75 }
    }
}

impl Splittable for Stages {
    fn run(&mut self, path: &[Segment], level: f64) -> Passage {
        let mut start = Rng::named(path[0].seed, "stage");
        let passed = self.passed[usize::from(start.chance(0.5))];
        let reached = match path {
            [_] => start.chance(self.first(passed)),
            [.., last] => Rng::named(last.seed, "stage").chance(passed),
            [] => false,
        };
        let best = if reached { level } else { level - 1.0 };
        Passage { reached: reached.then_some(path.len() as u64), best }
    }
}

#[test]
fn the_interval_of_replications_covers() {
    // Down to 5e-7, 5e-7, 2.6e-6 and 5e-5; each tried on 20,000 experiments.
    for (passed, stages, effort, least) in [
        ([0.3; 2], 12, 100, 0.94),
        ([0.3; 2], 12, 20, 0.94),
        ([0.04; 2], 4, 100, 0.94),
        ([0.3, 0.167], 8, 100, 0.94),
    ] {
        let mut model = Stages { passed };
        let levels = (1..=stages).map(f64::from).collect();
        let truth = model.truth(stages);
        let mut tally = Tally::default();
        let (mut below, mut above) = (0, 0);
        for experiment in 0..experiments() {
            let plan = SplitPlan::new(Vec::clone(&levels), effort, experiment).expect("a plan");
            let runs: Vec<_> =
                (0..20).map(|replication| plan.replicate(&mut model, replication)).collect();
            let Some(found) = SplitEstimate::from_runs(&runs, 1.0 - ALPHA) else {
                tally.add(None, 0);
                continue;
            };
            below += u32::from(found.high < truth);
            above += u32::from(found.low > truth);
            let inside = (found.low..=found.high).contains(&truth);
            tally.add(Some(inside), found.trajectories);
        }
        println!("too low: {below}, too high: {above}");
        let name = format!("splitting, 20 x {effort}, {stages} stages of {passed:?}");
        tally.row(&name, least);
    }
}
