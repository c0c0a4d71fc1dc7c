//! Andrews, "XUDP: A Real-Time Multimedia Networking Protocol" (Worcester Polytechnic Institute, 1997),
//! run again: tables 8.1 and 8.2 with their graphs, and the frame experiments 8.5 and 8.6.
//!
//! The thesis names the 100 ms acknowledgment timer as the culprit of table 8.1, but between its two runs
//! it also changed the window. So both are run with and without either.

pub mod experiment;
mod page;
pub mod paper;
pub mod parameters;
mod policies;
pub mod protocol;
mod reproduction;
mod runs;
pub mod sensitivity;
pub mod tables;
pub mod today;

use std::path::Path;

use acklab_lab::report::Page;
use serde_json::{Map, Value, json};

use super::{Reproduced, SCHEMA};

pub use policies::PolicyRow;
pub use reproduction::Reproduction;
pub use runs::{REMOVED, Run, TIMER, TIMER_TWEAKED, TWEAKED};
pub use sensitivity::Changed;

impl Reproduced for Reproduction {
    fn to_json(&self) -> Value {
        let settings: Map<String, Value> = self
            .settings
            .values()
            .map(|(name, value)| (name.to_owned(), json!(value.to_string())))
            .collect();
        json!({
            "schema": SCHEMA,
            "paper": "xudp",
            "seed": self.seed,
            "parameters": settings,
            "stream": tables::logs(&self.stream).to_json(),
            "factor": {
                "paper": paper::FACTOR,
                "timer_removed": self.factor(REMOVED),
                "timer_removed_window_tweaked": self.factor(TWEAKED),
            },
            "today": tables::logs(&self.today).to_json(),
            "frames": tables::logs(&self.frames).to_json(),
            "policies": tables::policy_logs(&self.policies).to_json(),
            "sensitivity": tables::change_logs(&self.sensitivity).to_json(),
            "timing": self.timing.to_json(),
        })
    }

    fn page(&self) -> Page {
        page::page(self)
    }

    fn text(&self, report: &Path) -> String {
        format!(
            "{}\n\
             Without the timer, and nothing else changed, {:.1} times as fast; with the tweaked window, too, \
             {:.1} times; the thesis, which changed both, {:.1} times.\n\n\
             The same parcels over today's protocol, on computers that take no time\n{}\n\
             The protocol of 1997 under other ACK policies\n{}\n\
             {:.1} CPU s; graphs, and what each open parameter decides: {}\n",
            tables::runs(self).to_text(),
            self.factor(REMOVED),
            self.factor(TWEAKED),
            paper::FACTOR,
            tables::today(&self.today).to_text(),
            tables::policies(&self.policies).to_text(),
            self.timing.cpu_s,
            report.display()
        )
    }
}
