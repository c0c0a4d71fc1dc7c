//! Sehlaver and Yalcinkaya, "CENG 435 Term Project Part II": a reliable transfer over UDP, run again.
//!
//! The protocol as it was ([`protocol`]) in the course's network, in virtual time ([`simulated`]), under
//! three readings of what its hosts cost ([`experiment`]); the paper's tables beside ours, three stop
//! rules ([`mod@stopping`]), and the paper's sentences one by one ([`claims`]); today's protocol in the same
//! network ([`today`]); and both on real packets ([`emulated`]). Their sources are the paper
//! and the program that its authors published, from which the constants are taken and no line.

#[cfg(target_os = "linux")]
pub mod bench;
pub mod campaigns;
pub mod claims;
pub mod dead_path;
pub mod emulated;
pub mod experiment;
mod graphs;
mod page;
pub mod paper;
pub mod protocol;
mod reproduction;
pub mod simulated;
#[cfg(target_os = "linux")]
pub mod sockets;
pub mod stopping;
mod tables;
pub mod today;

use std::path::Path;

use acklab_lab::report::Page;
use serde_json::{Value, json};

use super::{Reproduced, SCHEMA};
use experiment::Experiments;

pub use reproduction::{Plan, PlanError, Reproduction};

impl Reproduced for Reproduction {
    fn to_json(&self) -> Value {
        let machine = |experiments: &Experiments| {
            json!({
                "machine": experiments.machine.name,
                "sender_ms": experiments.machine.sender.as_millis_f64(),
                "router_ms": experiments.machine.router.as_millis_f64(),
                "rows": tables::machine(experiments).to_json(),
            })
        };
        json!({
            "schema": SCHEMA,
            "paper": "rdt",
            "seed": self.plan.seed,
            "repetitions": self.plan.repetitions,
            "bytes": self.plan.size,
            "experiments": self.experiments.iter().map(machine).collect::<Value>(),
            "today": self.todays().to_json(),
            "emulated": tables::emulated(self).to_json(),
            "stop_rules": tables::stop_rules(&self.stopping).to_json(),
            "dead_path": tables::dead_path(&self.dead).to_json(),
            "claims": tables::claims_in_a_word(&self.claims).to_json(),
            "timing": self.timing.to_json(),
        })
    }

    fn page(&self) -> Page {
        page::page(self)
    }

    fn text(&self, report: &Path) -> String {
        let tables = [
            tables::times(self),
            self.todays(),
            tables::stop_rules(&self.stopping),
            tables::claims_in_a_word(&self.claims),
        ];
        format!(
            "{}\n{} repetitions of each experiment, {:.1} CPU s; the report: {}\n",
            tables.map(|table| table.to_text()).join("\n"),
            self.plan.repetitions,
            self.timing.cpu_s,
            report.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::{Course, Stop};
    use super::emulated::{Real, Transfer};
    use super::*;

    fn small() -> Reproduction {
        let plan = Plan { seed: 1, repetitions: 3, size: 100_000 };
        let ended = AtomicBool::new(false);
        Reproduction::run(plan, &mut Course::new(&ended, |_| {})).expect("a small file")
    }

    #[test]
    fn the_same_plan_gives_the_same_result_and_a_page() {
        let (one, mut two) = (small(), small());
        two.timing = one.timing;
        assert_eq!(one.to_json(), two.to_json());
        let page = one.page().to_html().expect("templates are sound");
        assert!(page.contains("Table 2: transfer time through two routers"));
        assert!(one.claims.iter().all(|claim| page.contains(claim.text)));
    }

    #[test]
    fn one_real_transfer_alone_shows_its_time_on_the_page_and_on_the_terminal() {
        let mut reproduction = small();
        let transfer = |seconds| Transfer {
            seconds,
            wire_bytes: 120_000,
            packets: 250,
            log: vec![],
            lateness_us: 20.0,
            wake_us: None,
            doubts: vec![],
        };
        let real =
            |paper| Real { paper, course: vec![transfer(1.25)], today: vec![transfer(1.75)] };
        reproduction.emulated = paper::ROWS.map(real).into();
        let page = reproduction.page().to_html().expect("templates are sound");
        let text = reproduction.text(Path::new("report.html"));
        for (on_page, on_terminal) in [(">1.25</td>", " 1.25 "), (">1.75</td>", " 1.75\n")] {
            assert!(page.contains(on_page), "{on_page}");
            assert!(text.contains(on_terminal), "{text}");
        }
    }

    #[test]
    fn a_file_of_too_many_packets_is_refused() {
        let plan = Plan { seed: 1, repetitions: 2, size: 33_553_408 };
        let ended = AtomicBool::new(false);
        let refused = Reproduction::run(plan, &mut Course::new(&ended, |_| {})).err();
        let Some(Stop::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert_eq!(reason, PlanError::Size(33_553_408).to_string());
        assert!(protocol::chunks(33_553_407).is_some());
    }
}
