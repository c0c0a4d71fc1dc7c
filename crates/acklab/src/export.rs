//! `acklab export`: a scenario as a model for another tool.

use std::fs;
use std::path::{Path, PathBuf};

use acklab_lab::scenario::{self, Scenario};
use acklab_papers::scenario::{Ance, SCENARIOS};
use acklab_uppaal as uppaal;
use clap::{Args, Subcommand};

use crate::outcome::{Failure, print, tell};

/// Write a scenario as a model for another tool
#[derive(Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    Uppaal(Uppaal),
}

/// Write a scenario as timed automata for UPPAAL SMC
///
/// The file holds plant, controller, channels, routers, TCP transmitters and receivers as templates,
/// and the ANCE paper's query Pr[<=30000000](<> itae > 8727). One unit of its time is 1 us.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
struct Uppaal {
    /// Name of the scenario: ance-dumbbell is the one that has automata
    scenario: String,
    /// Set parameters; `acklab scenarios ance-dumbbell` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// Write the file here instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.format {
            Format::Uppaal(verb) => verb.run(),
        }
    }
}

impl Uppaal {
    fn run(self) -> Result<(), Failure> {
        let xml = self.xml()?;
        let Some(path) = self.out else { return print(&xml) };
        write(&path, &xml)?;
        tell(&format!("{}: open it in UPPAAL 4.1.20 or later, or 5", path.display()));
        Ok(())
    }

    fn xml(&self) -> Result<String, Failure> {
        let scenario =
            SCENARIOS.find(&self.scenario).map_err(|error| Failure::Unusable(error.to_string()))?;
        let name = scenario.declaration().name;
        if name != Ance::Dumbbell.declaration().name {
            return Err(Failure::Unusable(format!(
                "{name} has no timed automata; ance-dumbbell has"
            )));
        }
        let mut settings = scenario::defaults(scenario);
        for pair in &self.sets {
            settings.set_pair(pair).map_err(|error| Failure::at("--set", error))?;
        }
        scenario.check(&settings).map_err(|error| Failure::at("--set", error))?;
        let model = uppaal::Model::from_settings(&settings);
        Ok(model.map_err(|error| Failure::at("--set", error))?.to_xml())
    }
}

fn write(path: &Path, xml: &str) -> Result<(), Failure> {
    fs::write(path, xml).map_err(|error| Failure::at(path.display(), error))
}

const EXAMPLES: &str = "\
Examples:
  acklab export uppaal ance-dumbbell --out dumbbell.xml      drop-tail and Reno
  acklab export uppaal ance-dumbbell --set cc=ance --out ance.xml
  acklab export uppaal ance-dumbbell --set queue=codel preset=paper-fit --out codel.xml

Queues: drop-tail, red, codel, pie, encn. Congestion controls: reno, ance, encn. Anything else that
the automata do not have is refused. docs/uppaal.md says how to use the file and what it models.";
