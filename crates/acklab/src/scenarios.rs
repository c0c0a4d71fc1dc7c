//! `acklab scenarios`: what can be run, set and measured.

use std::fmt::Write;

use acklab_lab::parameter::Parameter;
use acklab_lab::scenario::{self, Scenario};
use acklab_papers::scenario::SCENARIOS;
use clap::Args;
use serde_json::{Value, json};

use crate::file::asked;
use crate::outcome::{Failure, Format, print, print_json};
use acklab_lab::report::text::lay_out;

/// List the built-in scenarios, or one scenario's parameters and metrics
#[derive(Args)]
#[command(after_help = "Examples:\n  acklab scenarios\n  acklab scenarios nagle-delack")]
pub(crate) struct Scenarios {
    /// The scenario to describe, or a network's file; all are listed where none is named
    name: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Scenarios {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let one = self.name.as_deref().map(asked).transpose()?.map(|asked| asked.scenario);
        match (one, self.format) {
            (None, Format::Text) => print(&list()),
            (None, Format::Json) => print_json(&json!({
                "schema": SCHEMA,
                "scenarios": SCENARIOS.iter().map(describe_json).collect::<Value>(),
            })),
            (Some(scenario), Format::Text) => print(&describe(scenario)),
            (Some(scenario), Format::Json) => {
                let mut object = describe_json(scenario);
                object["schema"] = json!(SCHEMA);
                print_json(&object)
            }
        }
    }
}

fn list() -> String {
    let rows: Vec<_> =
        SCENARIOS.iter().map(|s| vec![s.name().to_owned(), s.summary().to_owned()]).collect();
    let mut text = lay_out(&["scenario", "what it is"], &rows);
    text.push_str("\n`acklab scenarios NAME` lists parameters, defaults, units and metrics.\n");
    text
}

fn describe(scenario: &dyn Scenario) -> String {
    let mut text = format!("{}: {}\n\n", scenario.name(), scenario.summary());
    let _ = writeln!(text, "{}\n\nParameters (--set name=value):", fill(scenario.doc(), 0));
    for parameter in scenario.parameters() {
        let Parameter { name, default, kind, doc } = parameter;
        let _ = writeln!(text, "  {name} = {default}  ({})", kind_words(parameter));
        let _ = writeln!(text, "{}", fill(doc, 6));
        if let acklab_lab::parameter::Kind::Choice(words) = kind {
            let _ = writeln!(text, "{}", fill(&format!("one of: {}", words.join(", ")), 6));
        }
    }
    text.push_str("\nMetrics:\n");
    for metric in scenario.metrics() {
        let _ = writeln!(text, "  {}  ({})\n{}", metric.name, metric.unit, fill(metric.doc, 6));
    }
    let signals = scenario.signals(&scenario::defaults(scenario));
    if !signals.is_empty() {
        text.push_str("\nSignals, for the queries of `acklab verify`:\n");
        for signal in signals {
            let _ = writeln!(text, "  {}  ({}): {}", signal.name, signal.unit, signal.doc);
        }
    }
    if !scenario.grid().is_empty() {
        text.push_str("\nVaried by --all:\n");
        for axis in scenario.grid() {
            let _ = writeln!(text, "  {} = {}", axis.parameter, axis.values.join(", "));
        }
    }
    let _ =
        writeln!(text, "\nReplications: {} unless --reps says otherwise.", scenario.replications());
    text
}

fn kind_words(parameter: &Parameter) -> String {
    match parameter.kind {
        acklab_lab::parameter::Kind::Choice(_) => "a word".into(),
        acklab_lab::parameter::Kind::Number { unit, .. } => {
            format!("{unit}, {}", parameter.kind.allowed())
        }
        kind => kind.allowed(),
    }
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
    json!({
        "name": scenario.name(),
        "summary": scenario.summary(),
        "doc": scenario.doc(),
        "replications": scenario.replications(),
        "parameters": scenario.parameters().iter().map(parameter_json).collect::<Value>(),
        "metrics": scenario.metrics().iter().map(|metric| json!({
            "name": metric.name, "unit": metric.unit, "doc": metric.doc,
        })).collect::<Value>(),
        "signals": scenario.signals(&scenario::defaults(scenario)).iter().map(|signal| json!({
            "name": signal.name, "unit": signal.unit, "doc": signal.doc,
        })).collect::<Value>(),
        "grid": scenario.grid().iter().map(|axis| json!({
            "parameter": axis.parameter, "values": axis.values,
        })).collect::<Value>(),
    })
}

fn parameter_json(parameter: &Parameter) -> Value {
    let mut object = json!({
        "name": parameter.name,
        "default": parameter.default,
        "unit": parameter.kind.unit(),
        "allowed": parameter.kind.allowed(),
        "doc": parameter.doc,
    });
    if let acklab_lab::parameter::Kind::Choice(words) = parameter.kind {
        object["choices"] = json!(words);
    }
    object
}

/// The JSON's schema name.
const SCHEMA: &str = "acklab.scenarios/1";
