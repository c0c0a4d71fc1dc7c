//! `acklab scenarios`: what can be run, set and measured.

use std::fmt::{Display, Write};

use acklab_core::options::Word;
use acklab_lab::choices::{Choice, Registry};
use acklab_lab::parameter::{Kind, Parameter};
use acklab_lab::scenario::{Declaration, Scenario};
use acklab_papers::scenario::SCENARIOS;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::file::asked;
use crate::names;
use crate::outcome::{Failure, Format, print, print_json};
use acklab_lab::report::text::lay_out;

/// List the built-in scenarios, one scenario's parameters and metrics, or what can be chosen in them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scenarios {
    /// The scenario to describe, or a network's file; all are listed where none is named
    #[arg(value_parser = names::scenarios(), hide_possible_values = true)]
    name: Option<String>,
    /// List what can be chosen by name, with its options, instead
    #[arg(long, value_name = "WHAT", conflicts_with = "name", value_parser = registry())]
    list: Option<Registry>,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Scenarios {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(registry) = self.list {
            return match self.format {
                Format::Text => print(&choices(registry)),
                Format::Json => print_json(&choices_json(registry)),
            };
        }
        let one = self
            .name
            .as_deref()
            .map(|name| asked(name, &[]))
            .transpose()?
            .map(|asked| asked.scenario);
        match (one, self.format) {
            (None, Format::Text) => print(&list()),
            (None, Format::Json) => print_json(&json!({
                "schema": SCHEMA,
                "scenarios": SCENARIOS.iter().map(describe_json).collect::<Value>(),
            })),
            (Some(scenario), Format::Text) => print(&describe(scenario)),
            (Some(scenario), Format::Json) => {
                let mut object = describe_json(scenario);
                object["schema"] = json!(ONE_SCHEMA);
                print_json(&object)
            }
        }
    }
}

/// The lists that there are.
fn registry() -> impl TypedValueParser<Value = Registry> {
    PossibleValuesParser::new(Registry::NAMES).try_map(|name| name.parse::<Registry>())
}

fn list() -> String {
    let row = |of: &Declaration| vec![of.name.to_owned(), of.summary.to_owned()];
    let rows: Vec<_> = SCENARIOS.iter().map(|scenario| row(scenario.declaration())).collect();
    let mut text = lay_out(&["scenario", "what it is"], &rows);
    text.push_str("\n`acklab scenarios NAME` lists parameters, defaults, units and metrics. A network of one's own is a file\nsuch as scenarios/two-flows.toml, and FILE.toml stands in place of NAME everywhere (docs/network-file.md).\n");
    text
}

fn describe(scenario: &dyn Scenario) -> String {
    let Declaration { name, summary, doc, parameters, metrics, grid, replications, .. } =
        scenario.declaration();
    let mut text = format!("{name}: {summary}\n\n");
    let _ = writeln!(text, "{}\n\nParameters (--set name=value):", fill(doc, 0));
    parameters.iter().for_each(|parameter| describe_parameter(&mut text, parameter));
    if let Some(file) = scenario.network_file() {
        text.push_str("\nKeys of the file (--set key=value where all have one value, else --set NAME.key=value):\n");
        for key in file.keys() {
            let _ = writeln!(text, "  {key}");
        }
    }
    text.push_str("\nMetrics:\n");
    for metric in *metrics {
        let _ = writeln!(text, "  {}  ({})\n{}", metric.name, metric.unit, fill(metric.doc, 6));
    }
    let signals = scenario.signals(&scenario.declaration().defaults());
    if !signals.is_empty() {
        text.push_str("\nSignals, for the queries of `acklab verify`:\n");
        for signal in signals {
            let _ = writeln!(text, "  {}  ({}): {}", signal.name, signal.unit, signal.doc);
        }
    }
    if !grid.is_empty() {
        text.push_str("\nVaried by --all:\n");
        for axis in *grid {
            let _ = writeln!(text, "  {} = {}", axis.parameter, axis.values.join(", "));
        }
    }
    let _ = writeln!(text, "\nReplications: {replications} unless --replications says otherwise.");
    text
}

fn describe_parameter<D: Display>(text: &mut String, parameter: &Parameter<D>) {
    let Parameter { name, default, kind, doc } = parameter;
    let allowed = match kind {
        Kind::Choice(_) => "a word".into(),
        Kind::Number { unit, .. } if !unit.is_empty() => format!("{unit}, {}", kind.allowed()),
        kind => kind.allowed(),
    };
    let _ = writeln!(text, "  {name} = {default}  ({allowed})\n{}", fill(doc, 6));
    if let Kind::Choice(words) = kind {
        let _ = writeln!(text, "{}", fill(&format!("one of: {}", words.join(", ")), 6));
    }
}

/// What can be chosen, and what can be set of each.
fn choices(registry: Registry) -> String {
    let mut text = String::new();
    for Choice { name, doc, ack, options } in registry.choices() {
        let ack = ack.map_or(String::new(), |ack| format!(" Its ACK policy is {ack}:"));
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}", fill(&format!("{name}: {doc}{ack}"), 0));
        for option in &options {
            describe_parameter(&mut text, option);
        }
    }
    text
}

fn choices_json(registry: Registry) -> Value {
    let choice = |Choice { name, doc, ack, options }: Choice| {
        let options: Value = options.iter().map(parameter_json).collect();
        let mut object = json!({ "name": name, "doc": doc, "options": options });
        if let Some(ack) = ack {
            object["ack"] = json!(ack);
        }
        object
    };
    let choices: Value = registry.choices().into_iter().map(choice).collect();
    json!({ "schema": CHOICES_SCHEMA, "list": registry.name(), "choices": choices })
}

/// Breaks text at spaces into lines of at most 88 columns, indented.
fn fill(text: &str, indent: usize) -> String {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        let fits = line.chars().count() + 1 + word.chars().count() <= 88;
        if line.trim().is_empty() {
            line.push_str(word);
        } else if fits {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(" ".repeat(indent) + word);
        }
    }
    lines.join("\n")
}

fn describe_json(scenario: &dyn Scenario) -> Value {
    let declared = scenario.declaration();
    json!({
        "name": declared.name,
        "summary": declared.summary,
        "doc": declared.doc,
        "replications": declared.replications,
        "parameters": declared.parameters.iter().map(parameter_json).collect::<Value>(),
        "metrics": declared.metrics.iter().map(|metric| json!({
            "name": metric.name, "unit": metric.unit, "doc": metric.doc,
        })).collect::<Value>(),
        "signals": scenario.signals(&declared.defaults()).iter().map(|signal| json!({
            "name": signal.name, "unit": signal.unit, "doc": signal.doc,
        })).collect::<Value>(),
        "grid": declared.grid.iter().map(|axis| json!({
            "parameter": axis.parameter, "values": axis.values,
        })).collect::<Value>(),
    })
}

fn parameter_json<D: Display>(parameter: &Parameter<D>) -> Value {
    let mut object = json!({
        "name": parameter.name,
        "default": parameter.default.to_string(),
        "unit": parameter.kind.unit(),
        "allowed": parameter.kind.allowed(),
        "doc": parameter.doc,
    });
    if let Kind::Choice(words) = parameter.kind {
        object["choices"] = json!(words);
    }
    object
}

/// The JSON's schema name: of all scenarios, and of one.
const SCHEMA: &str = "acklab.scenarios/1";
const ONE_SCHEMA: &str = "acklab.scenario/1";
/// That of a list of what can be chosen.
const CHOICES_SCHEMA: &str = "acklab.choices/1";

const EXAMPLES: &str = "\
Examples:
  acklab scenarios
  acklab scenarios nagle-delack
  acklab scenarios --list queues                   names and options, for files and `acklab emulate`";
