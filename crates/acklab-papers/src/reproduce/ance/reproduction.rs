//! Everything of the paper that is run.

use acklab_lab::report::Claim;
use acklab_lab::timing::{Stopwatch, Timing};

use super::claims;
use super::figures::{self, Trace};
use super::preset::{PRESETS, Preset};
use super::table4::{self, Reading};
use crate::reproduce::{Course, Stop};

/// Everything that was run.
pub struct Reproduction {
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each configuration.
    pub replications: u64,
    /// Runs of each row of table 4.
    pub table4_runs: u64,
    /// Each reading, in the order of [`PRESETS`].
    pub presets: Vec<Preset>,
    /// Table 4 under changes to the readings.
    pub variants: Vec<Reading>,
    /// The paper's sentences under each reading.
    pub claims: Vec<Claim>,
    /// One run of each configuration under the first reading.
    pub traces: Vec<Trace>,
    pub timing: Timing,
}

impl Reproduction {
    /// Runs everything, `table4_runs` runs for each row of table 4.
    pub fn run(
        seed: u64,
        replications: u64,
        table4_runs: u64,
        course: &mut Course<'_>,
    ) -> Result<Self, Stop> {
        let watch = Stopwatch::start();
        let mut presets = Vec::new();
        for name in PRESETS {
            presets.push(Preset::run(name, seed, (replications, table4_runs), course)?);
        }
        let variants = table4::variants(seed, table4_runs, course)?;
        let claims = claims::judge(&presets);
        let traces = course.part(
            "One run of each configuration for the figures",
            |_| figures::trace_all(&[("preset", PRESETS[0])], seed),
            |_| vec![],
        )??;
        let timing = watch.read(0);
        Ok(Self { seed, replications, table4_runs, presets, variants, claims, traces, timing })
    }
}
