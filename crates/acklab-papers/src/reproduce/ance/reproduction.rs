//! Everything of the paper that is run.

use acklab_lab::report::Claim;
use acklab_lab::timing::{Stopwatch, Timing};
use acklab_lab::verify::VerifyError;

use super::claims;
use super::figures::{self, Trace};
use super::preset::{PRESETS, Preset};

/// Everything that was run.
pub struct Reproduction {
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each configuration.
    pub replications: u64,
    /// Each reading, in the order of [`PRESETS`].
    pub presets: Vec<Preset>,
    /// The paper's sentences under each reading.
    pub claims: Vec<Claim>,
    /// One run of each configuration under the first reading.
    pub traces: Vec<Trace>,
    /// What it cost.
    pub timing: Timing,
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
        let claims = claims::judge(&presets);
        progress("one run of each configuration for the figures");
        let traces = figures::trace_all(&[("preset", PRESETS[0])], seed)?;
        Ok(Self { seed, replications, presets, claims, traces, timing: watch.read(0) })
    }
}
