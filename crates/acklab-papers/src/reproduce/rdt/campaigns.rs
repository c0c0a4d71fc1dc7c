//! Each stop rule on each experiment: one campaign of runs in the order of the seeds, and many of runs
//! that are drawn again.

use acklab_core::rng::replication_seed;
use rayon::prelude::*;

use super::experiment::{Experiment, Experiments};
use super::paper::Row;
use super::stopping::{Campaign, Campaigns, Rule};

/// One experiment under one stop rule.
#[derive(Clone, Copy, Debug)]
pub struct Stopping {
    pub row: Row,
    pub rule: Rule,
    /// One campaign of runs in the order of the seeds.
    pub campaign: Campaign,
    /// Many, of runs drawn again.
    pub campaigns: Campaigns,
}

/// Every rule on every experiment; runs beyond the repetitions are made as they are needed.
pub fn run(experiments: &Experiments, repetitions: u64, seed: u64) -> Vec<Stopping> {
    let most = RUNS_PER_REPETITION * repetitions as usize;
    let pairs: Vec<(&Experiment, Rule)> = experiments
        .measured
        .iter()
        .flat_map(|measured| Rule::ALL.map(|rule| (measured, rule)))
        .collect();
    let stopping = |(measured, rule): (&Experiment, Rule)| {
        let (row, pool) = (measured.paper, measured.seconds());
        let campaign = rule.apply(most, |index| {
            pool.get(index).copied().unwrap_or_else(|| {
                let seed = replication_seed(seed, index as u64);
                let run = experiments.machine.transfer(experiments.chunks, row, seed);
                run.seconds.unwrap_or(f64::NAN)
            })
        });
        let campaigns = Campaigns::resampled(rule, &pool, CAMPAIGNS, MOST_RUNS, seed);
        Stopping { row, rule, campaign, campaigns }
    };
    pairs.into_par_iter().map(stopping).collect()
}

/// A campaign ends after so many runs for each repetition, whatever its rule says: the code's may ask
/// for thousands.
const RUNS_PER_REPETITION: usize = 10;
/// The same for a campaign of runs drawn again, which cost nothing.
const MOST_RUNS: usize = 5000;
/// Campaigns of runs drawn again.
const CAMPAIGNS: usize = 2000;
