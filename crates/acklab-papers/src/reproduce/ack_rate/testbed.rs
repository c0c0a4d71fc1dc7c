//! A testbed under every policy.

use std::sync::atomic::AtomicBool;

use acklab_lab::plan::Plan as Runs;
use acklab_lab::report::{Column, Table, Unit};
use acklab_lab::results::{CaseResult, Results};
use acklab_lab::run;
use acklab_lab::scenario::Scenario;
use acklab_lab::sweep::Choices;
use acklab_stats::MeanInterval;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each policy on each testbed; two at least.
    pub replications: u64,
    /// Length of each transfer, seconds; the paper's are 100.
    pub seconds: u64,
}

/// One testbed under every policy of [`POLICIES`].
pub struct Testbed {
    pub name: &'static str,
    pub(super) results: Results,
}

impl Testbed {
    pub(super) fn run(
        name: &'static str,
        scenario: &'static dyn Scenario,
        sets: &[&str],
        plan: Plan,
        ended: &AtomicBool,
    ) -> Result<Self, String> {
        let mut choices = Choices::from(Runs::defaults(scenario));
        let policies = format!("ack={}", POLICIES.join(","));
        let duration = format!("duration={}s", plan.seconds);
        for set in [policies.as_str(), &duration].iter().chain(sets) {
            choices.set_pair(set).map_err(|error| error.to_string())?;
        }
        let runs = runs_over(scenario, &choices, plan)?;
        let results = run::run_closely_until(&runs, ended, &|| ());
        Ok(Self { name, results })
    }

    /// The case of a policy by its place in [`POLICIES`].
    pub fn case(&self, policy: usize) -> &CaseResult {
        &self.results.cases[policy]
    }

    /// A quantity under a policy over that under Linux's, less one: its mean over replications.
    pub fn change(
        &self,
        policy: usize,
        of: impl Fn(&CaseResult) -> Vec<f64>,
    ) -> Option<MeanInterval> {
        let (linux, ours) = (of(self.case(LINUX)), of(self.case(policy)));
        let ratios: Vec<f64> =
            linux.iter().zip(&ours).map(|(linux, ours)| ours / linux - 1.0).collect();
        MeanInterval::from_replications(&ratios, 0.95)
    }

    /// What every policy did, a row each.
    pub fn table(&self) -> Table {
        let policies: Vec<usize> = (0..POLICIES.len()).collect();
        let mean =
            |metric: &'static str| move |policy: &usize| self.case(*policy).metrics.number(metric);
        let columns = vec![
            Column::text("Policy")
                .key("policy")
                .plain("policy", 0)
                .over(&policies, |policy| POLICIES[*policy]),
            number("Throughput", "throughput_bps", Unit::mega("Mbit/s"), 1)
                .over(&policies, mean("throughput_bps")),
            number("ACKs per data segment", "acks_per_data_segment", "ratio".into(), 4)
                .over(&policies, mean("acks_per_data_segment")),
            number("Round trip", "rtt_ms", "ms".into(), 2).over(&policies, mean("rtt_ms")),
            number("Sender’s CPU", "cpu_share_sender", Unit::percent("% busy"), 1)
                .over(&policies, mean("cpu_share.sender")),
            number("Receiver’s CPU", "cpu_share_receiver", Unit::percent("% busy"), 1)
                .over(&policies, mean("cpu_share.receiver")),
            number("Sent again", "retransmissions", "segments".into(), 1)
                .over(&policies, mean("retransmissions")),
        ];
        Table::new(format!("{}: means over replications.", self.name), columns)
    }
}

/// The runs of a scenario with these choices.
pub(super) fn runs_over(
    scenario: &'static dyn Scenario,
    choices: &Choices,
    plan: Plan,
) -> Result<Runs, String> {
    let runs = Runs::over(scenario, choices, false, plan.seed, Some(plan.replications));
    runs.map_err(|error| error.to_string())
}

fn number(name: &str, key: &'static str, unit: Unit, decimals: usize) -> Column {
    Column::number(name, unit).key(key).plain(name, decimals)
}

/// Per replication: receiver's (or sender's) processor seconds per gigabyte.
pub(super) fn cpu_per_byte(metric: &'static str) -> impl Fn(&CaseResult) -> Vec<f64> {
    move |case| {
        let (cpu, rate) =
            (case.replications.values(metric), case.replications.values("throughput_bps"));
        cpu.iter().zip(&rate).map(|(cpu, rate)| cpu / rate).collect()
    }
}

/// The policies that are compared, Linux's first, the paper's second.
pub const POLICIES: [&str; 4] = ["linux", "ack-rate-limit", "tack", "ack-frequency"];
pub(super) const LINUX: usize = 0;
pub(super) const LIMITED: usize = 1;
