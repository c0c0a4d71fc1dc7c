//! Statkus, Paulikas and Krukonis, "TCP Acknowledgment Optimization in Low Power and Embedded Devices", run again
//! in virtual time.
//!
//! Both testbeds are scenarios ([`ACK_RATE_ROUTER`], [`ACK_RATE_VM`]): hosts whose packets cost what Linux's do by
//! count of instructions. Each policy runs under the same seeds; the paper's sentences are judged by intervals
//! over replications ([`claims`]). The kernel's side of it is `kernel/ack-rate-limit.patch`.

mod claims;
mod page;

use std::path::Path;

use acklab_lab::plan::Plan as Runs;
use acklab_lab::report::{Claim, Column, Page, Table, Unit};
use acklab_lab::results::{CaseResult, Results};
use acklab_lab::run;
use acklab_lab::scenario::Scenario;
use acklab_lab::sweep::Choices;
use acklab_lab::timing::{Stopwatch, Timing};
use acklab_stats::MeanInterval;
use serde_json::{Value, json};

use super::{Reproduced, SCHEMA};
use crate::scenario::{ACK_RATE_ROUTER, ACK_RATE_VM};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each policy on each testbed; two at least.
    pub replications: u64,
}

/// One testbed under every policy of [`POLICIES`].
pub struct Testbed {
    pub name: &'static str,
    results: Results,
}

impl Testbed {
    fn run(
        name: &'static str,
        scenario: &'static dyn Scenario,
        sets: &[&str],
        plan: Plan,
    ) -> Result<Self, String> {
        let mut choices = Choices::from(Runs::defaults(scenario));
        let policies = format!("ack={}", POLICIES.join(","));
        for set in [policies.as_str()].iter().chain(sets) {
            choices.set_pair(set).map_err(|error| error.to_string())?;
        }
        let runs = Runs::over(scenario, &choices, false, plan.seed, Some(plan.replications));
        let runs = runs.map_err(|error| error.to_string())?;
        Ok(Self { name, results: run::run_closely(&runs) })
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
            number("Throughput", "throughput_bps", Unit::mega("bit/s"), 1)
                .over(&policies, mean("throughput_bps")),
            number("ACKs per data segment", "acks_per_data_segment", "ratio".into(), 4)
                .over(&policies, mean("acks_per_data_segment")),
            number("Round trip", "rtt_ms", "ms".into(), 2).over(&policies, mean("rtt_ms")),
            number("Sender’s CPU", "cpu_share_sender", Unit::percent("busy"), 1)
                .over(&policies, mean("cpu_share.sender")),
            number("Receiver’s CPU", "cpu_share_receiver", Unit::percent("busy"), 1)
                .over(&policies, mean("cpu_share.receiver")),
            number("Sent again", "retransmissions", "segments".into(), 1)
                .over(&policies, mean("retransmissions")),
        ];
        Table::new(format!("{}: means over replications.", self.name), columns)
    }
}

fn number(name: &str, key: &'static str, unit: Unit, decimals: usize) -> Column {
    Column::number(name, unit).key(key).plain(name, decimals)
}

/// Per replication: receiver's (or sender's) processor seconds per gigabyte.
fn cpu_per_byte(metric: &'static str) -> impl Fn(&CaseResult) -> Vec<f64> {
    move |case| {
        let (cpu, rate) =
            (case.replications.values(metric), case.replications.values("throughput_bps"));
        cpu.iter().zip(&rate).map(|(cpu, rate)| cpu / rate).collect()
    }
}

/// Everything that was run.
pub struct Reproduction {
    pub plan: Plan,
    pub router: Testbed,
    pub vm: Testbed,
    /// The router's, with one packet lost after some 50 s.
    pub drop: Testbed,
    pub claims: Vec<Claim>,
    pub timing: Timing,
}

impl Reproduction {
    /// Runs everything; `progress` is told what is being done.
    pub fn run(plan: Plan, mut progress: impl FnMut(&str)) -> Result<Self, String> {
        let watch = Stopwatch::start();
        progress("routers: 100 s under each policy");
        let router = Testbed::run("Routers of 2009", &ACK_RATE_ROUTER, &[], plan)?;
        progress("virtual machines");
        let vm = Testbed::run("Virtual machines", &ACK_RATE_VM, &[], plan)?;
        progress("routers, one packet lost");
        let drop = Testbed::run("Routers, one packet lost", &ACK_RATE_ROUTER, &["drop=one"], plan)?;
        let claims = claims::judge(&router, &vm, &drop);
        let events =
            [&router, &vm, &drop].map(|testbed| testbed.results.timing.events).iter().sum();
        Ok(Self { plan, router, vm, drop, claims, timing: watch.read(events) })
    }

    fn testbeds(&self) -> [&Testbed; 3] {
        [&self.router, &self.vm, &self.drop]
    }
}

impl Reproduced for Reproduction {
    fn to_json(&self) -> Value {
        let testbed =
            |testbed: &Testbed| json!({ "name": testbed.name, "rows": testbed.table().to_json() });
        json!({
            "schema": SCHEMA,
            "paper": "ack-rate",
            "seed": self.plan.seed,
            "replications": self.plan.replications,
            "testbeds": self.testbeds().map(testbed),
            "claims": claims::table(&self.claims).to_json(),
            "timing": self.timing.to_json(),
        })
    }

    fn page(&self) -> Page {
        page::page(self)
    }

    fn text(&self, report: &Path) -> String {
        let tables =
            [self.router.table(), self.vm.table(), self.drop.table(), claims::table(&self.claims)];
        format!(
            "{}\n{} replications of each policy, {:.1} CPU s; the report: {}\n",
            tables.map(|table| table.to_text()).join("\n"),
            self.plan.replications,
            self.timing.cpu_s,
            report.display()
        )
    }
}

/// The policies that are compared, Linux's first, the paper's second.
pub const POLICIES: [&str; 4] = ["linux", "ack-rate-limit", "tack", "ack-frequency"];
const LINUX: usize = 0;
const LIMITED: usize = 1;
