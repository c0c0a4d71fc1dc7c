//! Runs a [`Plan`]: one replication per thread, reduced in the order of the seeds.
//!
//! The order in which threads finish decides nothing: rayon collects by position, and pooling is
//! sequential. So the result and its hash are the same for one thread and for many.

use acklab_sim::ResultHash;
use rayon::prelude::*;

use crate::measured::Metrics;
use crate::plan::Plan;
use crate::results::{CaseResult, FlowResult, Results};
use crate::scenario::{Capture, Replication};
use crate::timing::Stopwatch;

/// Runs every replication of every case on all cores.
pub fn run(plan: &Plan) -> Results {
    let watch = Stopwatch::start();
    let jobs: Vec<_> =
        plan.cases.iter().flat_map(|case| plan.seeds().map(move |seed| (case, seed))).collect();
    let replications: Vec<Replication> =
        jobs.into_par_iter().map(|(case, seed)| plan.scenario.run(case, seed, None)).collect();
    let events = replications.iter().map(|replication| replication.events).sum();

    let mut remaining = replications.into_iter();
    let cases: Vec<CaseResult> = plan
        .cases
        .iter()
        .map(|case| {
            let mut result = CaseResult::new(case.clone());
            for replication in remaining.by_ref().take(plan.replications as usize) {
                result.pool(&replication, plan.scenario.declaration().main_metric);
            }
            result
        })
        .collect();

    let mut hash = ResultHash::default();
    let mut metrics = Metrics::default();
    let mut flows: Vec<FlowResult> = Vec::new();
    for case in &cases {
        hash.word(case.hash());
        metrics.pool(&case.metrics);
        FlowResult::pool_all(&mut flows, &case.flows);
    }
    let hash = if let [only] = cases.as_slice() { only.hash() } else { hash.finish() };
    Results { plan: plan.clone(), hash, metrics, flows, cases, timing: watch.read(events) }
}

/// Runs the first replication of the first case again and shows its packets to `capture`.
pub fn record(plan: &Plan, capture: Capture<'_>) {
    if let (Some(case), Some(seed)) = (plan.cases.first(), plan.seeds().next()) {
        plan.scenario.run(case, seed, Some(capture));
    }
}
