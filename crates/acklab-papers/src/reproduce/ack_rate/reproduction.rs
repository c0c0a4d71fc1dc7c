//! Everything of the paper that is run.

use std::sync::atomic::AtomicBool;

use acklab_lab::report::Claim;
use acklab_lab::scenario::Scenario;
use acklab_lab::timing::{Stopwatch, Timing};

use super::claims;
use super::gain::{self, Gains};
use super::testbed::{Plan, Testbed};
use crate::reproduce::{Course, Stop};
use crate::scenario::{ACK_RATE_ROUTER, ACK_RATE_VM};

/// Everything that was run.
pub struct Reproduction {
    pub plan: Plan,
    pub router: Testbed,
    pub vm: Testbed,
    /// The router's, with one packet lost after some 50 s.
    pub drop: Testbed,
    /// What rarer ACKs are worth: routers', virtual machines'.
    pub gains: [Vec<Gains>; 2],
    pub claims: Vec<Claim>,
    pub timing: Timing,
}

impl Reproduction {
    /// Runs everything.
    pub fn run(plan: Plan, course: &mut Course<'_>) -> Result<Self, Stop> {
        let watch = Stopwatch::start();
        let mut testbed = |title: String, name, scenario: &'static dyn Scenario, sets: &[&str]| {
            let run = |ended: &AtomicBool| Testbed::run(name, scenario, sets, plan, ended);
            let tables = |done: &Result<Testbed, String>| done.iter().map(Testbed::table).collect();
            course.part(title, run, tables)?.map_err(Stop::Refused)
        };
        let seconds = plan.seconds;
        let title = format!("Routers: {seconds} s under each policy");
        let router = testbed(title, "Routers of 2009", &ACK_RATE_ROUTER, &[])?;
        let vm = testbed("Virtual machines".into(), "Virtual machines", &ACK_RATE_VM, &[])?;
        let name = "Routers, one packet lost";
        let drop = testbed(name.into(), name, &ACK_RATE_ROUTER, &["drop=one"])?;
        let mut gains = |name, scenario: &'static dyn Scenario, costs| {
            let run = |ended: &AtomicBool| gain::run(scenario, costs, plan, ended);
            let tables = |done: &Result<Vec<Gains>, _>| {
                done.iter().map(|gains| gain::table(name, gains)).collect()
            };
            course
                .part(format!("{name}: what rarer ACKs are worth"), run, tables)?
                .map_err(Stop::Refused)
        };
        let gains = [
            gains("Routers of 2009", &ACK_RATE_ROUTER, gain::CLOCKS)?,
            gains("Virtual machines", &ACK_RATE_VM, gain::EXITS)?,
        ];
        let claims = claims::judge(plan.seconds, [&router, &vm, &drop]);
        let events =
            [&router, &vm, &drop].map(|testbed| testbed.results.timing.events).iter().sum();
        Ok(Self { plan, router, vm, drop, gains, claims, timing: watch.read(events) })
    }

    /// All of them.
    pub fn testbeds(&self) -> [&Testbed; 3] {
        [&self.router, &self.vm, &self.drop]
    }
}
