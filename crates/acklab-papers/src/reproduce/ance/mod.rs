//! Sup, de Moraes and Bauchspiess, "Acknowledge-Based Non-Congestion Estimation" (IJCNIS 2020), run
//! again: every configuration, its figures, its table 4 and its sentences.
//!
//! The paper leaves much open, so everything but the figures is computed under each preset of the
//! `ance-*` scenarios; the figures are those of one.

pub mod claims;
pub mod configuration;
pub mod figures;
mod page;
mod preset;
mod reproduction;
pub mod sensitivity;
pub mod table4;
mod tables;

use std::path::Path;

use acklab_lab::report::Page;
use serde_json::{Value, json};

use super::{Reproduced, SCHEMA};

pub use preset::{PRESETS, Preset};
pub use reproduction::Reproduction;

use table4::Reading;

impl Reproduced for Reproduction {
    fn to_json(&self) -> Value {
        let preset = |(index, preset): (usize, &Preset)| {
            json!({
                "preset": preset.name,
                "claims": tables::claims_under(&self.claims, index).to_json(),
                "table4": tables::table4(&preset.table4).to_json(),
                "daisy": tables::means(&preset.daisy).to_json(),
                "dumbbell": tables::means(&preset.dumbbell).to_json(),
            })
        };
        let variant = |reading: &Reading| json!({"name": reading.name, "table4": tables::table4(reading).to_json()});
        json!({
            "schema": SCHEMA,
            "paper": "ance",
            "seed": self.seed,
            "replications": self.replications,
            "table4_runs": self.table4_runs,
            "variants": self.variants.iter().map(variant).collect::<Value>(),
            "presets": self.presets.iter().enumerate().map(preset).collect::<Value>(),
            "timing": self.timing.to_json(),
        })
    }

    fn page(&self) -> Page {
        page::page(self)
    }

    fn text(&self, report: &Path) -> String {
        let table4 = |reading: &Reading| {
            format!("\ntable 4, {}\n{}", reading.name, tables::table4(reading).to_text())
        };
        format!(
            "{}{}\n{} replications of each configuration, {:.1} CPU s; the report with all figures: {}\n",
            tables::claims(&self.claims).to_text(),
            page::readings(self).map(table4).collect::<String>(),
            self.replications,
            self.timing.cpu_s,
            report.display()
        )
    }
}
