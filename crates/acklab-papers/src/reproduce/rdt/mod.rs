//! Sehlaver and Yalcinkaya, "CENG 435 Term Project Part II": a reliable transfer over UDP, run again.
//!
//! The protocol as it was ([`protocol`]) in the course's network, in virtual time ([`simulated`]), under
//! three readings of what its hosts cost ([`experiment`]); the paper's tables beside ours, three stop
//! rules ([`mod@stopping`]), and the paper's sentences one by one ([`claims`]); today's protocol in the same
//! network ([`today`]); and both on real packets ([`emulated`]). Their sources are the paper
//! and the program that its authors published, from which the constants are taken and no line.

#[cfg(target_os = "linux")]
pub mod bench;
pub mod claims;
pub mod emulated;
pub mod experiment;
mod page;
pub mod paper;
pub mod protocol;
pub mod simulated;
#[cfg(target_os = "linux")]
pub mod sockets;
pub mod stopping;
pub mod today;

use acklab_core::link::Outage;
use acklab_core::rng::replication_seed;
use acklab_core::time::{Span, Time};
use rayon::prelude::*;
use serde_json::{Value, json};

use self::claims::Judged;
use self::experiment::{Experiments, FITTED, MACHINES, Machine, Measured};
use self::paper::{ROWS, Row};
use self::simulated::{Network, transfer};
use self::stopping::{Campaign, Campaigns, Rule};
use acklab_lab::timing::{Stopwatch, Timing};

pub use acklab_stats::MeanInterval;
pub use page::html;

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.reproduce/1";

/// What is to be run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Seed of the first repetition.
    pub seed: u64,
    /// Repetitions of each experiment.
    pub repetitions: u64,
    /// Bytes of the file.
    pub size: usize,
}

/// Why nothing was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The file.
    #[error(
        "a file of {0} bytes has more packets than 16-bit sequence numbers; at most 33 553 407 can be sent"
    )]
    Size(usize),
}

/// Everything that was run.
pub struct Reproduction {
    /// What was asked for.
    pub plan: Plan,
    /// The experiments, machine by machine.
    pub experiments: Vec<Experiments>,
    /// Today's protocol, experiment by experiment.
    pub today: Vec<today::Measured>,
    /// Both protocols on real packets; empty until they have been run.
    pub emulated: Vec<emulated::Measured>,
    /// Stop rules on [`FITTED`], experiment by experiment.
    pub stopping: Vec<Stopping>,
    /// A router's death, machine by machine.
    pub dead: Vec<DeadPath>,
    /// The paper's sentences.
    pub claims: Vec<Judged>,
    /// What it cost.
    pub timing: Timing,
}

/// One experiment under one stop rule.
#[derive(Clone, Copy, Debug)]
pub struct Stopping {
    /// The experiment.
    pub row: Row,
    /// The rule.
    pub rule: Rule,
    /// One campaign of runs in the order of the seeds.
    pub campaign: Campaign,
    /// Many, of runs drawn again.
    pub campaigns: Campaigns,
}

/// What happened when the second router died.
#[derive(Clone, Copy, Debug)]
pub struct DeadPath {
    /// On which machines.
    pub machine: Machine,
    /// Transfer time with both, and with the death, seconds.
    pub seconds: [f64; 2],
    /// Longest time without an ACK, seconds.
    pub wait: f64,
}

impl Reproduction {
    /// Runs everything; `progress` is told what is being done.
    pub fn run(plan: Plan, mut progress: impl FnMut(&str)) -> Result<Self, PlanError> {
        let watch = Stopwatch::start();
        let Plan { seed, repetitions, size } = plan;
        let chunks = protocol::chunks(size).ok_or(PlanError::Size(size))?;
        let experiments: Vec<Experiments> = MACHINES
            .iter()
            .map(|machine| {
                progress(&format!("{}: {repetitions} repetitions", machine.name));
                Experiments::run(*machine, chunks, repetitions, seed)
            })
            .collect();
        progress("today's protocol");
        let today = today::run(size, repetitions, seed);
        progress("stop rules");
        let fitted = experiments.iter().find(|experiments| experiments.machine == FITTED);
        let stopping = fitted.map_or_else(Vec::new, |fitted| stopping(fitted, plan));
        progress("a router that dies");
        let dead = MACHINES.map(|machine| dead_path(machine, chunks, seed)).to_vec();
        let claims = claims::judge(&experiments, &stopping, &dead);
        let (emulated, timing) = (Vec::new(), watch.read(0));
        Ok(Self { plan, experiments, today, emulated, stopping, dead, claims, timing })
    }

    /// The result as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "paper": "rdt",
            "seed": self.plan.seed,
            "repetitions": self.plan.repetitions,
            "bytes": self.plan.size,
            "experiments": self.experiments.iter().map(experiments_json).collect::<Value>(),
            "today": self.today.iter().map(|today| today_json(today, self.plan.size)).collect::<Value>(),
            "emulated": emulated::to_json(&self.emulated),
            "stop_rules": self.stopping.iter().map(stopping_json).collect::<Value>(),
            "dead_path": self.dead.iter().map(dead_json).collect::<Value>(),
            "claims": self.claims.iter().map(claim_json).collect::<Value>(),
            "timing": self.timing.to_json(),
        })
    }
}

/// Every rule on every experiment; runs beyond the repetitions are made as they are needed.
fn stopping(experiments: &Experiments, plan: Plan) -> Vec<Stopping> {
    let seed = plan.seed;
    let most = RUNS_PER_REPETITION * plan.repetitions as usize;
    let pairs: Vec<(&Measured, Rule)> = experiments
        .measured
        .iter()
        .flat_map(|measured| Rule::ALL.map(|rule| (measured, rule)))
        .collect();
    pairs
        .into_par_iter()
        .map(|(measured, rule)| {
            let (row, pool) = (measured.paper, measured.seconds());
            let campaign = rule.apply(most, |index| {
                pool.get(index).copied().unwrap_or_else(|| {
                    let Experiments { machine, chunks, .. } = *experiments;
                    let run = experiment::repetition(machine, chunks, row, seed, index as u64);
                    run.seconds.unwrap_or(f64::NAN)
                })
            });
            let campaigns = Campaigns::resampled(rule, &pool, CAMPAIGNS, MOST_RUNS, seed);
            Stopping { row, rule, campaign, campaigns }
        })
        .collect()
}

/// At the paper's least loss, the second router dies after [`DEATH`].
fn dead_path(machine: Machine, chunks: u16, seed: u64) -> DeadPath {
    let settings = machine.settings(chunks, 2);
    let alive = machine.network(ROWS[0].loss);
    let outage = Some(Outage { from: Time::ZERO + DEATH, until: Time::MAX });
    let run = |network: &Network| transfer(network, settings, replication_seed(seed, 0), false);
    let (alive, died) = (run(&alive), run(&Network { outage, ..alive }));
    let seconds = [&alive, &died].map(|run| run.seconds.unwrap_or(f64::NAN));
    DeadPath { machine, seconds, wait: died.longest_wait }
}

fn experiments_json(experiments: &Experiments) -> Value {
    let rows = experiments.measured.iter().map(|measured| {
        let interval = measured.interval();
        let (vain, vain_seconds) = measured.vain_ends();
        json!({
            "loss": measured.paper.loss,
            "paths": measured.paper.paths,
            "paper_s": measured.paper.mean,
            "mean_s": interval.map(|interval| interval.mean),
            "low_s": interval.map(|interval| interval.low),
            "high_s": interval.map(|interval| interval.high),
            "transmissions_per_packet": measured.tries(experiments.chunks),
            "ends_unanswered": vain,
            "end_unanswered_s": vain_seconds,
            "seconds": measured.seconds(),
        })
    });
    json!({
        "machine": experiments.machine.name,
        "sender_ms": experiments.machine.sender.as_millis_f64(),
        "router_ms": experiments.machine.router.as_millis_f64(),
        "rows": rows.collect::<Value>(),
    })
}

fn today_json(measured: &today::Measured, size: usize) -> Value {
    let (interval, middle) = (measured.interval(), measured.median_and_longest());
    json!({
        "loss": measured.paper.loss,
        "paths": measured.paper.paths,
        "mean_s": interval.map(|interval| interval.mean),
        "low_s": interval.map(|interval| interval.low),
        "high_s": interval.map(|interval| interval.high),
        "median_s": middle.map(|(median, _)| median),
        "longest_s": middle.map(|(_, longest)| longest),
        "wire_bytes_per_byte": measured.wire_share(size),
    })
}

fn stopping_json(stopping: &Stopping) -> Value {
    let Stopping { row, rule, campaign, campaigns } = stopping;
    json!({
        "loss": row.loss,
        "paths": row.paths,
        "rule": rule.formula(),
        "runs": campaign.runs,
        "stopped": campaign.stopped,
        "mean_s": campaign.mean,
        "margin_s": campaign.margin.is_finite().then_some(campaign.margin),
        "median_runs": campaigns.median_runs,
        "stopped_at_once": campaigns.at_once,
        "coverage": campaigns.coverage,
    })
}

fn dead_json(dead: &DeadPath) -> Value {
    json!({
        "machine": dead.machine.name,
        "alive_s": dead.seconds[0],
        "died_s": dead.seconds[1],
        "longest_wait_s": dead.wait,
    })
}

fn claim_json(claim: &Judged) -> Value {
    let outcomes = MACHINES.iter().zip(claim.outcomes);
    let outcomes: serde_json::Map<String, Value> =
        outcomes.map(|(machine, outcome)| (machine.name.into(), outcome.word().into())).collect();
    json!({
        "place": claim.place,
        "claim": claim.text,
        "outcomes": outcomes,
        "figures": claim.figures,
    })
}

/// A campaign ends after so many runs for each repetition, whatever its rule says: the code's may ask
/// for thousands.
const RUNS_PER_REPETITION: usize = 10;
/// The same for a campaign of runs drawn again, which cost nothing.
const MOST_RUNS: usize = 5000;
/// Campaigns of runs drawn again.
const CAMPAIGNS: usize = 2000;
/// When the second router dies.
const DEATH: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Reproduction {
        let plan = Plan { seed: 1, repetitions: 3, size: 100_000 };
        Reproduction::run(plan, |_| {}).expect("a small file")
    }

    #[test]
    fn the_same_plan_gives_the_same_result_and_a_page() {
        let (one, mut two) = (small(), small());
        two.timing = one.timing;
        assert_eq!(one.to_json(), two.to_json());
        let page = html(&one).expect("templates are sound");
        assert!(page.contains("Table 2: transfer time through two routers"));
        assert!(one.claims.iter().all(|claim| page.contains(claim.text)));
    }

    #[test]
    fn a_file_of_too_many_packets_is_refused() {
        let plan = Plan { seed: 1, repetitions: 2, size: 33_553_408 };
        let refused = Reproduction::run(plan, |_| {}).err();
        assert_eq!(refused, Some(PlanError::Size(33_553_408)));
        assert!(protocol::chunks(33_553_407).is_some());
    }
}
