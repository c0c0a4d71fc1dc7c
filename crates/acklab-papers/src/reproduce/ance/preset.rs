//! One reading of the paper, with what was measured under it.

use acklab_lab::verify::VerifyError;

use super::configuration::{DAISY, DUMBBELL, Measured, Technique, Topology};
use super::table4::Reading;

/// The readings of the paper that are run: presets of the `ance-*` scenarios.
pub const PRESETS: [&str; 3] = ["plain", "paper-fit", "literal"];

/// One reading of the paper.
pub struct Preset {
    pub name: &'static str,
    /// Replications of the daisy chain.
    pub daisy: Vec<Measured>,
    /// Replications of the dumbbell.
    pub dumbbell: Vec<Measured>,
    /// The paper's table 4.
    pub table4: Reading,
}

impl Preset {
    pub(super) fn run(
        name: &'static str,
        seed: u64,
        (replications, runs): (u64, u64),
        progress: &mut impl FnMut(&str),
    ) -> Result<Self, VerifyError> {
        let sets = [("preset", name)];
        let mut measure = |topology: Topology, techniques: &[Technique]| {
            let run = |technique: &Technique| {
                progress(&format!("{name}: {} replications of {}", replications, technique.name));
                Measured::run(topology, *technique, &sets, seed, replications)
            };
            techniques.iter().map(run).collect::<Result<Vec<_>, _>>()
        };
        let daisy = measure(Topology::Daisy, &DAISY)?;
        let dumbbell = measure(Topology::Dumbbell, &DUMBBELL)?;
        progress(&format!("{name}: table 4"));
        let table4 = Reading::run(name.to_owned(), &sets, seed, runs)?;
        Ok(Self { name, daisy, dumbbell, table4 })
    }

    /// Replications of one topology.
    pub fn of(&self, topology: Topology) -> &[Measured] {
        match topology {
            Topology::Daisy => &self.daisy,
            Topology::Dumbbell => &self.dumbbell,
        }
    }
}
