//! One reading of the paper, with what was measured under it.

use std::sync::atomic::AtomicBool;

use super::configuration::{DAISY, DUMBBELL, Measured, Technique, Topology};
use super::table4::Reading;
use super::tables;
use crate::reproduce::{Course, Stop};

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
        course: &mut Course<'_>,
    ) -> Result<Self, Stop> {
        let sets = [("preset", name)];
        let mut measure = |topology: Topology, techniques: &[Technique]| {
            let run = |technique: &Technique| {
                let title = format!(
                    "{name}: {replications} replications of {}, {topology:?}",
                    technique.name
                );
                let run = |ended: &AtomicBool| {
                    Measured::run(topology, *technique, &sets, seed, replications, ended)
                };
                let tables = |measured: &Result<Measured, _>| match measured {
                    Ok(one) => tables::of(topology, std::slice::from_ref(one)).into(),
                    Err(_) => vec![],
                };
                Ok(course.part(title, run, tables)??)
            };
            techniques.iter().map(run).collect::<Result<Vec<_>, Stop>>()
        };
        let daisy = measure(Topology::Daisy, &DAISY)?;
        let dumbbell = measure(Topology::Dumbbell, &DUMBBELL)?;
        let title = format!("{name}: table 4");
        let table4 = Reading::run(title, name.to_owned(), &sets, (seed, runs), course)?;
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
