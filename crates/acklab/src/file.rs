//! Scenarios as a verb's first argument: by name, or in a file.

use std::fs;
use std::path::Path;

use acklab_lab::file::{Asked, FileError, ScenarioFile};
use acklab_lab::scenario;
use acklab_lab::sweep::Choices;
use acklab_papers::scenario::SCENARIOS;

use crate::outcome::Failure;
use crate::set;

/// The built-in scenario called `name`, or what the file `name` asks for, with `sets` set.
pub(crate) fn asked(name: &str, sets: &[String]) -> Result<Asked, Failure> {
    asked_watching(name, sets, &[])
}

/// The same, where a network's file watches `links` instead of those that it names.
pub(crate) fn asked_watching(
    name: &str,
    sets: &[String],
    links: &[String],
) -> Result<Asked, Failure> {
    set::distinct(sets)?;
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "toml") {
        let found = SCENARIOS.find(name);
        let scenario = found.map_err(|error| Failure::Unusable(error.to_string()))?;
        if !links.is_empty() {
            let scenario = name.to_owned();
            return Err(Failure::Unusable(FileError::NoLinks { scenario }.to_string()));
        }
        let mut choices = Choices::from(scenario::defaults(scenario));
        for pair in sets {
            choices.set_pair(pair).map_err(|error| Failure::at("--set", error))?;
        }
        return Ok(Asked { scenario, choices, seed: DEFAULT_SEED, replications: None, all: false });
    }
    let text = fs::read_to_string(path).map_err(|e| Failure::at(path.display(), e))?;
    let beside = |name: &str| {
        let path = path.parent().unwrap_or(Path::new("")).join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let file = ScenarioFile::parse_with(&text, &beside).and_then(|file| file.watching(links));
    let asked = file.and_then(|file| file.asked_with(SCENARIOS, sets));
    asked.map_err(|error| match error {
        // The error begins with line and column.
        _ if error.place().is_some() => Failure::Unusable(format!("{}:{error}", path.display())),
        FileError::Choice(_) => Failure::Unusable(error.to_string()),
        _ => Failure::at(path.display(), error),
    })
}

/// The seed where none is given.
const DEFAULT_SEED: u64 = 1;
