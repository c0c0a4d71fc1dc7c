//! The scenario file: what was run, beside its result, so that it can be run again.
//!
//! TOML with the scenario's name, seed, replications, and what was set; or, for `scenario = "network"`,
//! the network itself ([`crate::network_file`]). `acklab run FILE.toml` takes it in place of a
//! scenario's name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use crate::network_file::{self, FileMistake, NetworkFile, Place};
use crate::parameter::{SetError, Settings, Value};
use crate::plan::Plan;
use crate::scenario::{self, Catalog, Graph, Scenario, UnknownScenario};

/// A scenario with everything that decides its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioFile {
    /// One of those that are built in.
    BuiltIn(BuiltIn),
    /// A network that the file describes.
    Network(Box<NetworkFile>),
}

/// A built-in scenario with everything that decides its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltIn {
    /// Its name.
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

/// What a file asks for.
pub struct Asked {
    /// The scenario.
    pub scenario: &'static dyn Scenario,
    /// Its settings.
    pub settings: Settings,
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications, where the file says.
    pub replications: Option<u64>,
    /// Whether the scenario's whole grid is run.
    pub all: bool,
}

/// Why a scenario file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not TOML, not these keys, or not these values.
    #[error(transparent)]
    Mistake(#[from] FileMistake),
    /// The scenario is not known.
    #[error(transparent)]
    Scenario(#[from] UnknownScenario),
    /// A parameter is not known or its value does not fit.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A link to watch that is not there.
    #[error("--watch: {0}")]
    Link(String),
    /// Links to watch in a scenario that is built in.
    #[error(
        "--watch: {scenario} is built in and watches its bottleneck; links are watched in a network of \
         one's own (docs/network-file.md)"
    )]
    NoLinks {
        /// Its name.
        scenario: String,
    },
}

impl FileError {
    /// Where in the file it is, if it is at one place.
    pub const fn place(&self) -> Option<Place> {
        match self {
            Self::Mistake(mistake) => Some(mistake.place),
            Self::Scenario(_) | Self::Set(_) | Self::Link(_) | Self::NoLinks { .. } => None,
        }
    }
}

impl ScenarioFile {
    /// The file that runs `plan` again.
    pub fn of(plan: &Plan) -> Self {
        if let Some(file) = plan.scenario.network_file() {
            return Self::Network(Box::new(file.with(&network_values(plan))));
        }
        let set = plan.settings.chosen();
        Self::BuiltIn(BuiltIn {
            scenario: plan.scenario.declaration().name.into(),
            seed: plan.seed,
            replications: Some(plan.replications),
            all: plan.all,
            set: set.map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
        })
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if is_network(text) {
            return Ok(Self::Network(Box::new(NetworkFile::parse(text)?)));
        }
        let file = toml::from_str(text).map_err(|error| FileMistake::from((text, error)))?;
        Ok(Self::BuiltIn(file))
    }

    /// The same with these links watched, the first for the metrics: a network's `watch`.
    pub fn watching(self, links: &[String]) -> Result<Self, FileError> {
        match self {
            _ if links.is_empty() => Ok(self),
            Self::BuiltIn(file) => Err(FileError::NoLinks { scenario: file.scenario }),
            Self::Network(file) => {
                let watching = file.watching(links);
                watching.map(|file| Self::Network(Box::new(file))).map_err(FileError::Link)
            }
        }
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        match self {
            Self::BuiltIn(file) => {
                let body = toml::to_string(file).expect("plain keys and strings are always TOML");
                format!("# Run again with: acklab run THIS_FILE\n{body}")
            }
            Self::Network(file) => file.text().to_owned(),
        }
    }

    /// What it asks for, of the scenarios in `catalog` or of its own network.
    pub fn asked(self, catalog: Catalog) -> Result<Asked, FileError> {
        match self {
            Self::BuiltIn(file) => {
                let scenario = catalog.find(&file.scenario)?;
                let mut settings = scenario::defaults(scenario);
                for (name, value) in &file.set {
                    settings.set(name, value)?;
                }
                let BuiltIn { seed, replications, all, .. } = file;
                Ok(Asked { scenario, settings, seed, replications, all })
            }
            Self::Network(file) => {
                let (seed, replications) = (file.seed(), Some(file.replications()));
                let scenario: &dyn Scenario = Graph::from_file(*file);
                let settings = scenario::defaults(scenario);
                Ok(Asked { scenario, settings, seed, replications, all: false })
            }
        }
    }

    /// The plan it describes.
    pub fn plan(self, catalog: Catalog) -> Result<Plan, FileError> {
        let Asked { scenario, settings, seed, replications, all } = self.asked(catalog)?;
        let build = if all { Plan::all } else { Plan::single };
        Ok(build(scenario, settings, seed, replications)?)
    }
}

/// Whether the file describes a network: by its scenario, or because it has links or flows.
fn is_network(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    DeTable::parse(text).is_ok_and(|root| {
        let root = root.get_ref();
        let named = root.get("scenario").and_then(|scenario| scenario.get_ref().as_str());
        named == Some(network_file::SCENARIO)
            || ["link", "flow"].iter().any(|key| root.contains_key(*key))
    })
}

/// What a plan of a network changes at the top level of its file, as TOML.
fn network_values(plan: &Plan) -> Vec<(&'static str, String)> {
    let set = plan.settings.chosen().map(|(name, value)| match value {
        Value::Count(_) | Value::Number(_) | Value::Flag(_) => (name, value.to_string()),
        // None of these has a quote or a backslash in it.
        Value::Span(_) | Value::Rate(_) | Value::Choice(_) => (name, format!("\"{value}\"")),
    });
    let mut values =
        vec![("seed", plan.seed.to_string()), ("replications", plan.replications.to_string())];
    values.extend(set);
    values
}
