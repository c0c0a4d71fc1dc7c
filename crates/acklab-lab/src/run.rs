//! Runs a [`Plan`]: one replication per thread, reduced in the order of the seeds.
//!
//! The order in which threads finish decides nothing: rayon collects by position, and pooling is
//! sequential. So the result and its hash are the same for one thread and for many.

use acklab_sim::ResultHash;
use rayon::prelude::*;

use crate::measured::Metrics;
use crate::monitor::{MOST_KEPT, NetworkRecord};
use crate::parameter::Settings;
use crate::plan::Plan;
use crate::results::{CaseResult, FlowResult, Results};
use crate::scenario::{Capture, Replication};
use crate::timing::Stopwatch;

/// Runs every replication of every case on all cores.
pub fn run(plan: &Plan) -> Results {
    let watch = Stopwatch::start();
    let one = |&(case, seed): &(&Settings, u64)| plan.scenario.run(case, seed, None);
    let replications = jobs(plan).par_iter().map(one).collect();
    pool(plan, replications, vec![None; plan.cases.len()], watch)
}

/// The same with a closer look at flows and links, where the scenario offers one.
pub fn run_closely(plan: &Plan) -> Results {
    let watch = Stopwatch::start();
    let jobs = jobs(plan);
    let mut replications = Vec::with_capacity(jobs.len());
    let mut networks: Vec<Option<NetworkRecord>> = vec![None; plan.cases.len()];
    let each = plan.replications as usize;
    // What was looked at is pooled before more of it is made.
    for (part, jobs) in jobs.chunks(AT_ONCE).enumerate() {
        let looked = jobs.par_iter().enumerate().map(|(index, &(case, seed))| {
            let with_courses = (part * AT_ONCE + index) % each < MOST_KEPT;
            match plan.scenario.run_closely(case, seed, with_courses) {
                Some((replication, record)) => (replication, Some(record)),
                None => (plan.scenario.run(case, seed, None), None),
            }
        });
        for (replication, record) in looked.collect::<Vec<_>>() {
            let case = replications.len() / each;
            replications.push(replication);
            if let Some(record) = record {
                networks[case].get_or_insert_default().pool(record);
            }
        }
    }
    pool(plan, replications, networks, watch)
}

fn jobs(plan: &Plan) -> Vec<(&Settings, u64)> {
    plan.cases.iter().flat_map(|case| plan.seeds().map(move |seed| (case, seed))).collect()
}

fn pool(
    plan: &Plan,
    replications: Vec<Replication>,
    networks: Vec<Option<NetworkRecord>>,
    watch: Stopwatch,
) -> Results {
    let events = replications.iter().map(|replication| replication.events).sum();

    let mut remaining = replications.into_iter();
    let cases: Vec<CaseResult> = plan
        .cases
        .iter()
        .zip(networks)
        .map(|(case, network)| {
            let mut result = CaseResult::new(case.clone(), network);
            for replication in remaining.by_ref().take(plan.replications as usize) {
                result.pool(&replication, plan.scenario.declaration().main_metric);
            }
            result
        })
        .collect();

    let mut hash = ResultHash::default();
    let mut metrics = Metrics::default();
    let (mut flows, mut groups): (Vec<FlowResult>, Vec<FlowResult>) = <_>::default();
    for case in &cases {
        hash.word(case.hash());
        metrics.pool(&case.metrics);
        FlowResult::pool_all(&mut flows, &case.flows);
        FlowResult::pool_all(&mut groups, &case.groups);
    }
    let hash = if let [only] = cases.as_slice() { only.hash() } else { hash.finish() };
    let timing = watch.read(events);
    Results { plan: plan.clone(), hash, metrics, flows, groups, cases, timing }
}

/// Runs the first replication of the first case again and shows its packets to `capture`.
pub fn record(plan: &Plan, capture: Capture<'_>) {
    if let (Some(case), Some(seed)) = (plan.cases.first(), plan.seeds().next()) {
        plan.scenario.run(case, seed, Some(capture));
    }
}

/// Replications that are looked at before they are pooled.
const AT_ONCE: usize = 64;
