//! Everything of the paper that is run.

use acklab_lab::report::Claim;
use acklab_lab::timing::{Stopwatch, Timing};

use super::claims;
use super::gain::{self, Gains};
use super::testbed::{Plan, Testbed};
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
    /// Runs everything; `progress` is told what is being done.
    pub fn run(plan: Plan, mut progress: impl FnMut(&str)) -> Result<Self, String> {
        let watch = Stopwatch::start();
        progress("routers: 100 s under each policy");
        let router = Testbed::run("Routers of 2009", &ACK_RATE_ROUTER, &[], plan)?;
        progress("virtual machines");
        let vm = Testbed::run("Virtual machines", &ACK_RATE_VM, &[], plan)?;
        progress("routers, one packet lost");
        let drop = Testbed::run("Routers, one packet lost", &ACK_RATE_ROUTER, &["drop=one"], plan)?;
        progress("what rarer ACKs are worth");
        let gains = [
            gain::run(&ACK_RATE_ROUTER, gain::CLOCKS, plan)?,
            gain::run(&ACK_RATE_VM, gain::EXITS, plan)?,
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
