//! Statkus, Paulikas and Krukonis, "TCP Acknowledgment Optimization in Low Power and Embedded Devices", run again
//! in virtual time.
//!
//! Both testbeds are scenarios (`ack-rate-router`, `ack-rate-vm`): hosts whose packets cost what Linux's do by
//! count of instructions. Each policy runs under the same seeds; the paper's sentences are judged by intervals
//! over replications ([`claims`]). The kernel's side of it is `kernel/ack-rate-limit.patch`.

mod claims;
mod gain;
mod page;
mod reproduction;
mod testbed;

use std::path::Path;

use acklab_lab::report::Page;
use serde_json::{Value, json};

use super::{Reproduced, SCHEMA};

pub use gain::Gains;
pub use reproduction::Reproduction;
pub use testbed::{POLICIES, Plan, Testbed};

impl Reproduced for Reproduction {
    fn to_json(&self) -> Value {
        let testbed =
            |testbed: &Testbed| json!({ "name": testbed.name, "rows": testbed.table().to_json() });
        json!({
            "schema": SCHEMA,
            "paper": "ack-rate",
            "seed": self.plan.seed,
            "replications": self.plan.replications,
            "seconds": self.plan.seconds,
            "testbeds": self.testbeds().map(testbed),
            "gains": {
                "router": gain::table("Routers of 2009", &self.gains[0]).to_json(),
                "vm": gain::table("Virtual machines", &self.gains[1]).to_json(),
            },
            "claims": claims::table(&self.claims).to_json(),
            "timing": self.timing.to_json(),
        })
    }

    fn page(&self) -> Page {
        page::page(self)
    }

    fn text(&self, report: &Path) -> String {
        let [router, vm] = &self.gains;
        let tables = [
            self.router.table(),
            self.vm.table(),
            self.drop.table(),
            gain::table("Routers of 2009", router),
            gain::table("Virtual machines", vm),
            claims::table(&self.claims),
        ];
        format!(
            "{}\n{} replications of each policy, {:.1} CPU s; the report: {}\n",
            tables.map(|table| table.to_text()).join("\n"),
            self.plan.replications,
            self.timing.cpu_s,
            report.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Course;
    use acklab_lab::report::Outcome;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_same_plan_gives_the_same_result_and_a_page() {
        let plan = Plan { seed: 1, replications: 2, seconds: 12 };
        let run = || {
            let ended = AtomicBool::new(false);
            Reproduction::run(plan, &mut Course::new(&ended, |_| {})).expect("sound scenarios")
        };
        let (one, mut two) = (run(), run());
        two.timing = one.timing;
        assert_eq!(one.to_json(), two.to_json());
        let page = one.page().to_html().expect("templates are sound");
        assert!(one.claims.iter().all(|claim| page.contains(claim.text)));
        for figure in ["figures 5, 6", "figure 10", "figure 17", "figure 20"] {
            assert!(page.contains(figure), "{figure}");
        }
        // The fewer ACKs, the more of a busy processor is left for data, and a fast one gains nothing.
        let [slow, .., fast] = &one.gains[0][..] else { panic!("several clocks") };
        assert!(slow.load > 0.9 && slow.points.is_sorted_by(|a, b| a.0 < b.0), "{:?}", slow.points);
        assert!(slow.points[3].1 > 0.05, "{:?}", slow.points);
        assert!(fast.load < slow.load);
        // Nothing can be said of what begins after 20 s.
        assert!(one.claims.iter().all(|claim| claim.outcomes[0] == Outcome::Open));
        // An ACK for two segments costs the router that sends more than one for ten.
        let [linux, rare] =
            [0, 3].map(|policy| one.router.case(policy).metrics.number("throughput_bps"));
        assert!(rare > 1.05 * linux, "{linux} {rare}");
    }
}
