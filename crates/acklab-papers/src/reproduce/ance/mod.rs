//! Sup, de Moraes and Bauchspiess, "Acknowledge-Based Non-Congestion Estimation" (IJCNIS 2020), run
//! again: every configuration, its figures, its table 4 and its sentences.
//!
//! The paper leaves much open, so everything but the figures is computed under each preset of the
//! `ance-*` scenarios; the figures are those of one.

pub mod claims;
pub mod configuration;
pub mod figures;
mod page;
pub mod sensitivity;
pub mod table4;

use serde_json::{Value, json};

use acklab_lab::timing::{Stopwatch, Timing};
use acklab_lab::verify::VerifyError;
use claims::{CLAIMS, Judged, Outcome};
use configuration::{DAISY, DUMBBELL, Measured, Topology};
use figures::Trace;

pub use page::html;

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.reproduce/1";

/// The readings of the paper that are run.
pub const PRESETS: [&str; 3] = ["plain", "paper-fit", "literal"];

/// Everything that was run.
pub struct Reproduction {
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each configuration.
    pub replications: u64,
    /// Each reading.
    pub presets: Vec<Preset>,
    /// One run of each configuration under the first reading.
    pub traces: Vec<Trace>,
    /// What it cost.
    pub timing: Timing,
}

/// One reading of the paper.
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Replications of the daisy chain.
    pub daisy: Vec<Measured>,
    /// Replications of the dumbbell.
    pub dumbbell: Vec<Measured>,
    /// The paper's sentences.
    pub claims: Vec<Judged>,
    /// Its table 4.
    pub table4: Vec<table4::Row>,
}

impl Reproduction {
    /// Runs everything; `progress` is told what has been done.
    pub fn run(
        seed: u64,
        replications: u64,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, VerifyError> {
        let watch = Stopwatch::start();
        let mut presets = Vec::new();
        for name in PRESETS {
            presets.push(Preset::run(name, seed, replications, &mut progress)?);
        }
        progress("one run of each configuration for the figures");
        let traces = figures::trace_all(&[("preset", PRESETS[0])], seed)?;
        Ok(Self { seed, replications, presets, traces, timing: watch.read(0) })
    }

    /// The result as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "paper": "ance",
            "seed": self.seed,
            "replications": self.replications,
            "presets": self.presets.iter().map(Preset::to_json).collect::<Value>(),
            "timing": self.timing.to_json(),
        })
    }
}

impl Preset {
    fn run(
        name: &'static str,
        seed: u64,
        replications: u64,
        progress: &mut impl FnMut(&str),
    ) -> Result<Self, VerifyError> {
        let sets = [("preset", name)];
        let mut measure = |topology: Topology, techniques: &[configuration::Technique]| {
            let run = |technique: &configuration::Technique| {
                progress(&format!("{name}: {} replications of {}", replications, technique.name));
                Measured::run(topology, *technique, &sets, seed, replications)
            };
            techniques.iter().map(run).collect::<Result<Vec<_>, _>>()
        };
        let daisy = measure(Topology::Daisy, &DAISY)?;
        let dumbbell = measure(Topology::Dumbbell, &DUMBBELL)?;
        let judge = |claim: &claims::Claim| {
            claim.judge(if claim.topology == Topology::Daisy { &daisy } else { &dumbbell })
        };
        let claims = CLAIMS.iter().map(judge).collect();
        progress(&format!("{name}: table 4"));
        let table4 = table4::run(&sets, seed)?;
        Ok(Self { name, daisy, dumbbell, claims, table4 })
    }

    /// How many claims came out so.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.claims.iter().filter(|judged| judged.outcome == outcome).count()
    }

    fn to_json(&self) -> Value {
        let claims: Value = self
            .claims
            .iter()
            .map(|judged| {
                json!({
                    "place": judged.claim.place,
                    "claim": judged.claim.text,
                    "outcome": judged.outcome.word(),
                    "figures": judged.figures,
                })
            })
            .collect();
        let table4: Value = self
            .table4
            .iter()
            .map(|row| {
                let (low, high) = row.interval();
                json!({
                    "technique": row.paper.technique.name,
                    "paper": {
                        "low": row.paper.interval.0,
                        "high": row.paper.interval.1,
                        "successes": row.paper.counts.0,
                        "runs": row.paper.counts.1,
                    },
                    "low": low,
                    "high": high,
                    "successes": row.ours.report.successes,
                    "runs": row.ours.report.runs,
                    "overlaps": row.overlaps(),
                })
            })
            .collect();
        let measured = |list: &[Measured]| -> Value {
            list.iter()
                .map(|measured| {
                    let mut object = json!({"technique": measured.technique.name});
                    for metric in [
                        "throughput_bps",
                        "jain",
                        "queue_mean_packets",
                        "queue_empty_share",
                        "idle_share",
                        "itae_rad_s",
                    ] {
                        let mean = measured.mean(metric);
                        object[metric] = json!(mean.is_finite().then_some(mean));
                    }
                    object
                })
                .collect()
        };
        json!({
            "preset": self.name,
            "claims": claims,
            "table4": table4,
            "daisy": measured(&self.daisy),
            "dumbbell": measured(&self.dumbbell),
        })
    }
}
