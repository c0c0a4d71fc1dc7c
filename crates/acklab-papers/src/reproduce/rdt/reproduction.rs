//! Everything of the paper that is run.

use acklab_lab::report::{Claim, Table};
use acklab_lab::timing::{Stopwatch, Timing};

use super::campaigns::{self, Stopping};
use super::dead_path::DeadPath;
use super::emulated::Real;
use super::experiment::{Experiments, FITTED, MACHINES};
use super::today::{self, Today};
use super::{claims, protocol, tables};
use crate::reproduce::{Course, Stop};

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
        "--size: a file of {0} bytes has more packets than 16-bit sequence numbers; at most 33 553 407 can be sent"
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
    /// Runs everything.
    pub fn run(plan: Plan, course: &mut Course<'_>) -> Result<Self, Stop> {
        let watch = Stopwatch::start();
        let Plan { seed, repetitions, size } = plan;
        let chunks = protocol::chunks(size).ok_or(PlanError::Size(size))?;
        let mut experiments = Vec::new();
        for machine in MACHINES {
            experiments.push(course.part(
                format!("{}: {repetitions} repetitions", machine.name),
                |ended| Experiments::run(machine, chunks, repetitions, seed, ended),
                |done| vec![tables::machine(done)],
            )?);
        }
        let today = course.part(
            "today's protocol",
            |ended| today::run(size, repetitions, seed, ended),
            |today| vec![tables::today(today, &experiments[0], &[], size)],
        )?;
        let fitted = experiments.iter().find(|experiments| experiments.machine == FITTED);
        let stopping = course.part(
            "stop rules",
            |_| fitted.map_or_else(Vec::new, |fitted| campaigns::run(fitted, repetitions, seed)),
            |stopping| vec![tables::stop_rules(stopping)],
        )?;
        let dead = course.part(
            "a router that dies",
            |_| MACHINES.map(|machine| DeadPath::run(machine, chunks, seed)).to_vec(),
            |dead| vec![tables::dead_path(dead)],
        )?;
        let claims = claims::judge(&experiments, &stopping, &dead);
        let (emulated, timing) = (Vec::new(), watch.read(0));
        Ok(Self { plan, experiments, today, emulated, stopping, dead, claims, timing })
    }

    /// Today's protocol beside the course's.
    pub(super) fn todays(&self) -> Table {
        tables::today(&self.today, self.ideal(), &self.emulated, self.plan.size)
    }

    /// The experiments on hosts that cost nothing.
    pub fn ideal(&self) -> &Experiments {
        &self.experiments[0]
    }
}
