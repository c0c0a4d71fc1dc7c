//! Runs a [`Plan`]: one replication per thread, reduced in the order of the seeds.
//!
//! The order in which threads finish decides nothing: rayon collects by position, and pooling is
//! sequential. So the result and its hash are the same for one thread and for many. A run that is ended early keeps
//! the replications that are done.

use std::sync::atomic::{AtomicBool, Ordering};

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
    run_until(plan, &AtomicBool::new(false), &|| ())
}

/// The same until `ended` is set, when no further replication begins; `on_done` is told of each.
pub fn run_until(plan: &Plan, ended: &AtomicBool, on_done: &(dyn Fn() + Sync)) -> Results {
    let watch = Stopwatch::start();
    let one = |&(case, seed): &(&Settings, u64)| {
        if ended.load(Ordering::Relaxed) {
            return None;
        }
        let done = plan.scenario.attempt(case, seed);
        on_done();
        done
    };
    let replications = jobs(plan).par_iter().map(one).collect();
    pool(plan, replications, vec![None; plan.cases.len()], watch)
}

/// As [`run`], with a closer look at flows and links, where the scenario offers one.
pub fn run_closely(plan: &Plan) -> Results {
    run_closely_until(plan, &AtomicBool::new(false), &|| ())
}

/// The same until `ended` is set, when no further replication begins; `on_done` is told of each.
pub fn run_closely_until(plan: &Plan, ended: &AtomicBool, on_done: &(dyn Fn() + Sync)) -> Results {
    let watch = Stopwatch::start();
    let jobs = jobs(plan);
    let mut replications = Vec::with_capacity(jobs.len());
    let mut networks: Vec<Option<NetworkRecord>> = vec![None; plan.cases.len()];
    let each = plan.replications as usize;
    // What was looked at is pooled before more of it is made.
    for (part, jobs) in jobs.chunks(AT_ONCE).enumerate() {
        let looked = jobs.par_iter().enumerate().map(|(index, &(case, seed))| {
            if ended.load(Ordering::Relaxed) {
                return None;
            }
            let with_courses = (part * AT_ONCE + index) % each < MOST_KEPT;
            let done = match plan.scenario.run_closely(case, seed, with_courses) {
                Some((replication, record)) => Some((replication, Some(record))),
                None => plan.scenario.attempt(case, seed).map(|replication| (replication, None)),
            };
            on_done();
            done
        });
        for done in looked.collect::<Vec<_>>() {
            let case = replications.len() / each;
            let (replication, record) = done.unzip();
            replications.push(replication);
            if let Some(record) = record.flatten() {
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
    replications: Vec<Option<Replication>>,
    networks: Vec<Option<NetworkRecord>>,
    watch: Stopwatch,
) -> Results {
    let events = replications.iter().flatten().map(|replication| replication.events).sum();
    let is_complete = replications.iter().all(Option::is_some);

    let mut remaining = replications.into_iter();
    let cases: Vec<CaseResult> = plan
        .cases
        .iter()
        .zip(networks)
        .map(|(case, network)| {
            let mut result = CaseResult::new(case.clone(), network);
            for (number, replication) in
                (0..).zip(remaining.by_ref().take(plan.replications as usize))
            {
                if let Some(replication) = replication {
                    result.pool(number, &replication, plan.scenario.declaration().main_metric);
                }
            }
            result
        })
        .filter(|case| !case.sample_counts.is_empty())
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
    Results { plan: plan.clone(), is_complete, hash, metrics, flows, groups, cases, timing }
}

/// Runs the first replication of the first case again and shows its packets to `capture`.
pub fn record(plan: &Plan, capture: Capture<'_>) {
    if let (Some(case), Some(seed)) = (plan.cases.first(), plan.seeds().next()) {
        plan.scenario.run(case, seed, Some(capture));
    }
}

/// Replications that are looked at before they are pooled.
const AT_ONCE: usize = 64;
