//! The scenario file: what was run, beside its result, so that it can be run again.
//!
//! TOML with the scenario's name, seed, replications, and what was set; or, for `scenario = "network"`,
//! the network itself ([`crate::network_file`]). `acklab run FILE.toml` takes it in place of a
//! scenario's name.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::de::DeTable;

use crate::network_file::{self, FileMistake, NetworkFile, Place, Reading};
use crate::parameter::{DURATION, SetError, Value};
use crate::plan::Plan;
use crate::scenario::{self, Catalog, Graph, Scenario, UnknownScenario};
use crate::sweep::Choices;

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
    #[serde(default, deserialize_with = "texts")]
    pub set: BTreeMap<String, String>,
}

/// What a file asks for.
pub struct Asked {
    /// The scenario.
    pub scenario: &'static dyn Scenario,
    /// Its settings, and what of them has several values.
    pub choices: Choices,
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications, where the file says.
    pub replications: Option<u64>,
    /// Whether the scenario's whole grid is run.
    pub all: bool,
}

impl Asked {
    /// Every case that is asked for.
    pub fn plan(&self) -> Result<Plan, SetError> {
        Plan::over(self.scenario, &self.choices, self.all, self.seed, self.replications)
    }
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
    /// What was asked to be set.
    #[error("--set: {0}")]
    Choice(SetError),
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
            Self::Scenario(_)
            | Self::Set(_)
            | Self::Choice(_)
            | Self::Link(_)
            | Self::NoLinks { .. } => None,
        }
    }
}

impl ScenarioFile {
    /// The file that runs `plan` again.
    pub fn of(plan: &Plan) -> Self {
        if let Some(file) = plan.scenario.network_file() {
            let sweeps = |name: &str| file.sweeps().iter().any(|sweep| sweep.name == name);
            let chosen = plan.settings.chosen().filter(|(name, _)| sweeps(name));
            let pairs: Vec<String> =
                chosen.map(|(name, value)| format!("{name}={value}")).collect();
            let file = file.clone().setting(&pairs);
            let (file, _) = file.expect("labels of a sweep are values of it");
            return Self::Network(Box::new(file.with(&network_values(plan))));
        }
        let mut set: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in plan.settings.chosen() {
            set.insert(name.to_owned(), value.to_string());
        }
        let grid = plan.scenario.declaration().grid.iter().filter(|_| plan.all);
        let of_grid: Vec<_> = grid.map(|axis| axis.parameter).collect();
        for axis in plan.axes.iter().filter(|axis| !of_grid.contains(&axis.parameter)) {
            set.insert(axis.parameter.to_owned(), axis.values.join(","));
        }
        Self::BuiltIn(BuiltIn {
            scenario: plan.scenario.declaration().name.into(),
            seed: plan.seed,
            replications: Some(plan.replications),
            all: plan.all,
            set,
        })
    }

    /// Reads a file's text, which names no other files.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if is_network(text) {
            return Ok(Self::Network(Box::new(NetworkFile::parse(text)?)));
        }
        Self::built_in(text)
    }

    /// The same of a text that may name others, which `reading` reads.
    pub fn parse_with(text: &str, reading: Reading<'_>) -> Result<Self, FileError> {
        if is_network(text) {
            return Ok(Self::Network(Box::new(NetworkFile::parse_with(text, reading)?)));
        }
        Self::built_in(text)
    }

    fn built_in(text: &str) -> Result<Self, FileError> {
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

    /// What it asks for, of the scenarios in `catalog` or of the network that the file itself holds.
    pub fn asked(self, catalog: Catalog) -> Result<Asked, FileError> {
        self.asked_with(catalog, &[])
    }

    /// The same with `pairs` of name and value or values set.
    pub fn asked_with(self, catalog: Catalog, pairs: &[String]) -> Result<Asked, FileError> {
        let (mut asked, pairs) = match self {
            Self::BuiltIn(file) => {
                let scenario = catalog.find(&file.scenario)?;
                let mut choices = Choices::from(scenario::defaults(scenario));
                for (name, value) in &file.set {
                    choices.set(name, value)?;
                }
                let BuiltIn { seed, replications, all, .. } = file;
                (Asked { scenario, choices, seed, replications, all }, pairs.to_vec())
            }
            Self::Network(file) => {
                let (file, pairs) = file.setting(pairs).map_err(FileError::Choice)?;
                let (seed, replications) = (file.seed(), Some(file.replications()));
                let scenario: &dyn Scenario = Graph::from_file(file)?;
                let choices = scenario::defaults(scenario).into();
                let all = !scenario.declaration().grid.is_empty();
                (Asked { scenario, choices, seed, replications, all }, pairs)
            }
        };
        for pair in pairs {
            asked.choices.set_pair(&pair).map_err(FileError::Choice)?;
        }
        if let (Some(_), Some(axis)) = (asked.scenario.network_file(), asked.choices.axes().first())
        {
            let reason = "takes one value here; other keys vary by a [[sweep]] in the file".into();
            let (name, text) = (axis.parameter.into(), axis.values.join(","));
            return Err(FileError::Choice(SetError::BadValue { name, text, reason }));
        }
        Ok(asked)
    }

    /// The plan it describes.
    pub fn plan(self, catalog: Catalog) -> Result<Plan, FileError> {
        Ok(self.asked(catalog)?.plan()?.within(None)?)
    }
}

/// Values as texts: numbers and rows of numbers may be written without quotes, and `plant = { numerator = [4] }` is
/// `plant_numerator = "4"`.
fn texts<'de, D: Deserializer<'de>>(source: D) -> Result<BTreeMap<String, String>, D::Error> {
    let table = toml::Table::deserialize(source)?;
    let mut set = BTreeMap::new();
    flatten("", &table, &mut set).map_err(D::Error::custom)?;
    Ok(set)
}

fn flatten(
    before: &str,
    table: &toml::Table,
    set: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    use toml::Value;
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    };
    for (key, value) in table {
        let name = format!("{before}{key}");
        let text = match value {
            Value::Table(inner) => {
                flatten(&format!("{name}_"), inner, set)?;
                continue;
            }
            Value::Array(row) => {
                let numbers = row.iter().filter(|item| item.is_integer() || item.is_float());
                let numbers: Vec<_> = numbers.filter_map(plain).collect();
                (numbers.len() == row.len()).then(|| numbers.join(" "))
            }
            value => plain(value),
        };
        let text = text.ok_or_else(|| {
            format!("{name} must be a text, a number, numbers in [], or a table of these; several cases are one text: \"a,b\"")
        })?;
        set.insert(name, text);
    }
    Ok(())
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
    let set = plan.settings.chosen().filter(|(name, _)| [DURATION, "watch"].contains(name));
    let set = set.map(|(name, value)| match value {
        Value::Count(_) | Value::Number(_) | Value::Flag(_) => (name, value.to_string()),
        // None of these has a quote or a backslash in it.
        Value::Span(_) | Value::Rate(_) | Value::Row(_) | Value::Choice(_) => {
            (name, format!("\"{value}\""))
        }
    });
    let mut values =
        vec![("seed", plan.seed.to_string()), ("replications", plan.replications.to_string())];
    values.extend(set);
    values
}
