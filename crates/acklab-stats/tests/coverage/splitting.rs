//! Importance splitting where every stage is passed with one probability, whatever came before.

use acklab_core::rng::Rng;
use acklab_stats::{Passage, Segment, SplitEstimate, SplitPlan, Splittable};

use crate::{ALPHA, Tally, experiments};

/// The level is the number of stages passed.
struct Stages {
    passed: f64,
}

impl Splittable for Stages {
    fn run(&mut self, path: &[Segment], level: f64) -> Passage {
        let last = path[path.len() - 1];
        let passed = Rng::named(last.seed, "stage").chance(self.passed);
        let reached = passed.then_some(path.len() as u64);
        Passage { reached, best: if passed { level } else { level - 1.0 } }
    }
}

#[test]
fn the_interval_of_replications_covers() {
    // Down to 5e-7, 2e-7 and 2.6e-6.
    for (passed, stages, effort, least) in
        [(0.3_f64, 12, 100, 0.925), (0.3, 12, 20, 0.88), (0.04, 4, 100, 0.9)]
    {
        let levels = (1..=stages).map(f64::from).collect();
        let truth = (0..stages).map(|_| passed).product::<f64>();
        let mut tally = Tally::default();
        let (mut below, mut above) = (0, 0);
        for experiment in 0..experiments() {
            let plan = SplitPlan::new(Vec::clone(&levels), effort, experiment).expect("a plan");
            let mut model = Stages { passed };
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
        tally.row(&format!("splitting, 20 x {effort}, {stages} stages of {passed}"), least);
    }
}
