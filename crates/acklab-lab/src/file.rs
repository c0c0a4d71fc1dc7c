//! The scenario file: what was run, beside its result, so that it can be run again.
//!
//! TOML with the scenario's name, seed, replications, and what was set. `acklab run FILE.toml`
//! takes it in place of a scenario's name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::parameter::SetError;
use crate::plan::Plan;
use crate::scenario::{self, UnknownScenario};

/// A scenario with everything that decides its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name of a built-in scenario.
    pub scenario: String,
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications; the scenario's own number where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replications: Option<u64>,
    /// Whether the scenario's whole grid is run.
    #[serde(default)]
    pub all: bool,
    /// Parameters that differ from their defaults, as text.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// Why a scenario file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not TOML, or not these keys.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The scenario is not known.
    #[error(transparent)]
    Scenario(#[from] UnknownScenario),
    /// A parameter is not known or its value does not fit.
    #[error(transparent)]
    Set(#[from] SetError),
}

impl ScenarioFile {
    /// The file that runs `plan` again.
    pub fn of(plan: &Plan) -> Self {
        Self {
            scenario: plan.scenario.name().into(),
            seed: plan.seed,
            replications: Some(plan.replications),
            all: plan.all,
            set: plan
                .settings
                .chosen()
                .map(|(name, value)| (name.to_owned(), value.to_string()))
                .collect(),
        }
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        Ok(toml::from_str(text)?)
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let body = toml::to_string(self).expect("plain keys and strings are always TOML");
        format!("# Run again with: acklab run THIS_FILE\n{body}")
    }

    /// The plan it describes.
    pub fn plan(&self) -> Result<Plan, FileError> {
        let scenario = scenario::find(&self.scenario)?;
        let mut settings = scenario::defaults(scenario);
        for (name, value) in &self.set {
            settings.set(name, value)?;
        }
        let build = if self.all { Plan::all } else { Plan::single };
        Ok(build(scenario, settings, self.seed, self.replications)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_gives_the_same_plan_again() {
        let text =
            "scenario = \"nagle-delack\"\nseed = 7\nreplications = 3\n[set]\nrtt = \"10ms\"\n";
        let file = ScenarioFile::parse(text).unwrap();
        let plan = file.plan().unwrap();
        assert_eq!(ScenarioFile::of(&plan), file);
        assert_eq!(ScenarioFile::parse(&file.to_text()).unwrap(), file);
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let check = |text: &str, message: &str| {
            let error = ScenarioFile::parse(text).and_then(|file| file.plan()).err().unwrap();
            assert!(error.to_string().contains(message), "{error}");
        };
        check("scenario = \"nagle-delack\"", "missing field `seed`");
        check("scenario = \"nope\"\nseed = 1", "no scenario is called");
        check("scenario = \"nagle-delack\"\nseed = 1\n[set]\nrtt = \"x\"", "rtt=x");
        check("scenario = \"nagle-delack\"\nseed = 1\ncolour = 2", "unknown field");
    }
}
