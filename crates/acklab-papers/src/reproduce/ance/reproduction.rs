//! Everything of the paper that is run.

use acklab_lab::report::Claim;
use acklab_lab::timing::{Stopwatch, Timing};
use acklab_lab::verify::VerifyError;

use super::claims;
use super::figures::{self, Trace};
use super::preset::{PRESETS, Preset};
use super::table4::{self, Reading};

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
    /// Runs everything, `table4_runs` runs for each row of table 4; `progress` is told what has been done.
    pub fn run(
        seed: u64,
        replications: u64,
        table4_runs: u64,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, VerifyError> {
        let watch = Stopwatch::start();
        let mut presets = Vec::new();
        for name in PRESETS {
            presets.push(Preset::run(name, seed, (replications, table4_runs), &mut progress)?);
        }
        let variants = table4::variants(seed, table4_runs, &mut progress)?;
        let claims = claims::judge(&presets);
        progress("one run of each configuration for the figures");
        let traces = figures::trace_all(&[("preset", PRESETS[0])], seed)?;
        let timing = watch.read(0);
        Ok(Self { seed, replications, table4_runs, presets, variants, claims, traces, timing })
    }
}
