//! Everything of the paper that is run.

use acklab_lab::report::Claim;
use acklab_lab::timing::{Stopwatch, Timing};

use super::campaigns::{self, Stopping};
use super::dead_path::DeadPath;
use super::emulated::Real;
use super::experiment::{Experiments, FITTED, MACHINES};
use super::today::{self, Today};
use super::{claims, protocol};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Seed of the first repetition.
    pub seed: u64,
    /// Repetitions of each experiment.
    pub repetitions: u64,
    /// Bytes of the file.
    pub size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "a file of {0} bytes has more packets than 16-bit sequence numbers; at most 33 553 407 can be sent"
    )]
    Size(usize),
}

/// Everything that was run.
pub struct Reproduction {
    /// What was asked for.
    pub plan: Plan,
    /// The experiments, machine by machine.
    pub experiments: Vec<Experiments>,
    /// Today's protocol, experiment by experiment.
    pub today: Vec<Today>,
    /// Both protocols on real packets; empty until they have been run.
    pub emulated: Vec<Real>,
    /// Stop rules on [`FITTED`], experiment by experiment.
    pub stopping: Vec<Stopping>,
    /// A router's death, machine by machine.
    pub dead: Vec<DeadPath>,
    /// The paper's sentences under each of [`MACHINES`].
    pub claims: Vec<Claim>,
    pub timing: Timing,
}

impl Reproduction {
    /// Runs everything; `progress` is told what is being done.
    pub fn run(plan: Plan, mut progress: impl FnMut(&str)) -> Result<Self, PlanError> {
        let watch = Stopwatch::start();
        let Plan { seed, repetitions, size } = plan;
        let chunks = protocol::chunks(size).ok_or(PlanError::Size(size))?;
        let experiments: Vec<Experiments> = MACHINES
            .iter()
            .map(|machine| {
                progress(&format!("{}: {repetitions} repetitions", machine.name));
                Experiments::run(*machine, chunks, repetitions, seed)
            })
            .collect();
        progress("today's protocol");
        let today = today::run(size, repetitions, seed);
        progress("stop rules");
        let fitted = experiments.iter().find(|experiments| experiments.machine == FITTED);
        let stopping =
            fitted.map_or_else(Vec::new, |fitted| campaigns::run(fitted, repetitions, seed));
        progress("a router that dies");
        let dead = MACHINES.map(|machine| DeadPath::run(machine, chunks, seed)).to_vec();
        let claims = claims::judge(&experiments, &stopping, &dead);
        let (emulated, timing) = (Vec::new(), watch.read(0));
        Ok(Self { plan, experiments, today, emulated, stopping, dead, claims, timing })
    }

    /// The experiments on hosts that cost nothing.
    pub fn ideal(&self) -> &Experiments {
        &self.experiments[0]
    }
}
