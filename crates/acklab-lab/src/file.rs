//! The scenario file: what was run, beside its result, so that it can be run again.
//!
//! TOML with the scenario's name, seed, replications, and what was set. `acklab run FILE.toml`
//! takes it in place of a scenario's name. With the scenario `graph` the file describes a network of
//! its own in `[[link]]` and `[[flow]]` entries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use toml::Spanned;

use crate::parameter::SetError;
use crate::plan::Plan;
use crate::scenario::graph::{self, FlowEntry, Graph, GraphError, LinkEntry};
use crate::scenario::{self, Scenario, UnknownScenario};

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
    /// Links of the scenario `graph`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<Spanned<LinkEntry>>,
    /// Flows of the scenario `graph`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Spanned<FlowEntry>>,
}

/// Why a scenario file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not TOML, or not these keys.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A graph that cannot be.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Links or flows beside a built-in scenario.
    #[error("[[link]] and [[flow]] belong to scenario = \"graph\"; {scenario} has its own network")]
    NoGraph {
        /// The scenario that was named.
        scenario: String,
    },
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
        let (link, flow) = plan.scenario.graph().map_or((&[][..], &[][..]), Graph::entries);
        Self {
            link: link.to_vec(),
            flow: flow.to_vec(),
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

    /// The plan that the file with this `text` describes.
    pub fn plan(&self, text: &str) -> Result<Plan, FileError> {
        let scenario: &'static dyn Scenario = if self.scenario == Graph::NAME {
            // One for each file that is read, and a program reads one.
            Box::leak(Box::new(graph::build(&self.link, &self.flow, text)?))
        } else if self.link.is_empty() && self.flow.is_empty() {
            scenario::find(&self.scenario)?
        } else {
            return Err(FileError::NoGraph { scenario: self.scenario.clone() });
        };
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
        let plan = file.plan(text).unwrap();
        assert_eq!(ScenarioFile::of(&plan), file);
        assert_eq!(ScenarioFile::parse(&file.to_text()).unwrap(), file);
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let check = |text: &str, message: &str| {
            let error = ScenarioFile::parse(text).and_then(|file| file.plan(text)).err().unwrap();
            assert!(error.to_string().contains(message), "{error}");
        };
        check("scenario = \"nagle-delack\"", "missing field `seed`");
        check("scenario = \"nope\"\nseed = 1", "no scenario is called");
        check("scenario = \"nagle-delack\"\nseed = 1\n[set]\nrtt = \"x\"", "rtt=x");
        check("scenario = \"nagle-delack\"\nseed = 1\ncolour = 2", "unknown field");
    }

    const GRAPH: &str = "scenario = \"graph\"\nseed = 1\n[set]\nduration = \"5s\"\n\
        [[link]]\nfrom = \"a\"\nto = \"r\"\nrate = \"100mbit\"\ndelay = \"1ms\"\n\
        [[link]]\nfrom = \"r\"\nto = \"b\"\nrate = \"5mbit\"\ndelay = \"10ms\"\n\
        queue = \"codel\"\nlimit = 50\nwatch = true\n\
        [[flow]]\nfrom = \"a\"\nto = \"b\"\n\
        [[flow]]\nfrom = \"a\"\nto = \"b\"\ncc = \"cubic\"\nstart = \"1s\"\n";

    #[test]
    fn a_graph_runs_and_its_file_gives_the_same_run_again() {
        let plan = ScenarioFile::parse(GRAPH).unwrap().plan(GRAPH).unwrap();
        let results = crate::run::run(&plan);
        let bps = results.metrics.number("throughput_bps");
        assert!((4.0e6..5.0e6).contains(&bps), "{bps}");
        assert_eq!(results.flows.len(), 2);
        let again = ScenarioFile::of(&plan).to_text();
        let again = ScenarioFile::parse(&again).unwrap().plan(&again).unwrap();
        assert_eq!(crate::run::run(&again).hash, results.hash);
    }

    #[test]
    fn mistakes_in_a_graph_are_told_with_their_place() {
        let check = |from: &str, to: &str, message: &str| {
            let text = GRAPH.replace(from, to);
            let error = ScenarioFile::parse(&text).unwrap().plan(&text).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        };
        check(
            "watch = true",
            "one_way = true",
            "line 18, column 1: no route leads from node \"b\"",
        );
        check("cc = \"cubic\"", "cc = \"cubik\"", "line 21, column 1: unknown congestion control");
        check("5mbit", "-5mbit", "line 10, column 1: rate \"-5mbit\"");
        check("to = \"b\"\ncc", "to = \"z\"\ncc", "no node is called \"z\"; the nodes are a, r, b");
        check("scenario = \"graph\"", "scenario = \"bench-ref\"", "bench-ref has its own network");
    }
}
