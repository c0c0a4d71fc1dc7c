//! `acklab dataset read`.

use std::fs;
use std::path::PathBuf;

use acklab_core::options::Word;
use acklab_lab::expected::Expected;
use acklab_lab::report;
use acklab_lab::report::run::{RunCase, RunReport};
use acklab_lab::report::text::{lay_out, number};
use acklab_lab::scenario::{Scenario, defaults};
use acklab_worlds::dataset::case::CaseFiles;
use acklab_worlds::dataset::layout::CaseName;
use acklab_worlds::dataset::{self, Summary};
use acklab_worlds::nagle::SCENARIO;
use clap::Args;
use serde_json::{Value, json};

use super::files::{unusable, write_parquet};
use crate::file;
use crate::outcome::{Failure, Format, print, print_json};

/// Tell what a data set holds: statistics of every case, and its three figures as a report
#[derive(Args)]
pub(super) struct Read {
    /// The folder that has Data, or Data itself
    dir: PathBuf,
    /// Write report.html and messages.parquet into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// A case ready to be told.
struct Told<'a> {
    files: &'a CaseFiles,
    delays: Vec<f64>,
    summary: Summary,
    expected: Option<Expected>,
}

impl Read {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cases = dataset::read(&self.dir).map_err(|fault| unusable(&fault))?;
        let scenario = file::asked(SCENARIO, &[])?.scenario;
        let told: Vec<Told<'_>> =
            cases.iter().filter_map(|files| tell_of(scenario, files)).collect();
        if let Some(out) = &self.out {
            fs::create_dir_all(out).map_err(|error| Failure::at(out.display(), error))?;
            write_parquet(&cases, out)?;
            let html =
                self.page(scenario, &told).map_err(|error| Failure::at("report.html", error))?;
            let path = out.join("report.html");
            fs::write(&path, html).map_err(|error| Failure::at(path.display(), error))?;
        }
        match self.format {
            Format::Text => print(&text(&told)),
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "cases": told.iter().map(to_json).collect::<Vec<_>>(),
            })),
        }
    }

    fn page(
        &self,
        scenario: &dyn Scenario,
        told: &[Told<'_>],
    ) -> Result<String, impl std::fmt::Display + use<>> {
        let declaration = scenario.declaration();
        let cases = told.iter().map(|one| RunCase {
            axes: axes(&one.files.name),
            samples: &one.delays,
            numbers: vec![one.files.messages_per_segment()],
            expected: one.expected.clone(),
        });
        let mut conditions =
            report::conditions(format!("acklab dataset read {}", self.dir.display()));
        conditions.retain(|(name, _)| name != "world");
        let mut page = report::run::page(&RunReport {
            scenario: declaration.name.into(),
            summary: format!("Buffering delays of the data set in {}", self.dir.display()),
            metric: "buffering delay".into(),
            unit: "ms".into(),
            numbers: vec![("messages per segment".into(), String::new())],
            cases: cases.collect(),
            replications: told.first().map_or(0, |one| one.files.runs.len() as u64),
            figures: declaration.figures,
            terms: declaration.terms.to_vec(),
            conditions,
            ..RunReport::default()
        });
        page.title = "Buffering delays: a data set".into();
        page.to_html()
    }
}

/// As the scenario's parameters say it, so that its figures find their cases.
fn axes(name: &CaseName) -> Vec<(String, String)> {
    let system = name.system().map_or(name.receiver.clone(), |system| system.name().to_owned());
    let nagle = if name.nagle { "on" } else { "off" };
    [
        ("receiver", system),
        ("nagle", nagle.to_owned()),
        ("rtt", format!("{}ms", name.rtt as f64 / 1e6)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn tell_of<'a>(scenario: &'static dyn Scenario, files: &'a CaseFiles) -> Option<Told<'a>> {
    let delays = files.delays_ms();
    let summary = Summary::from_samples(&delays)?;
    let expected = expected(scenario, &files.name);
    Some(Told { files, delays, summary, expected })
}

/// What theory says of a case, at the published period and size of messages.
pub(super) fn expected(scenario: &dyn Scenario, name: &CaseName) -> Option<Expected> {
    let mut settings = defaults(scenario);
    let known = name.system().is_some()
        && axes(name).iter().all(|(name, value)| settings.set(name, value).is_ok());
    known.then(|| scenario.expected(&settings)).flatten()
}

fn text(told: &[Told<'_>]) -> String {
    let rows: Vec<_> = told
        .iter()
        .map(|one| {
            let Summary { count, mean, p50, p95, max, .. } = one.summary;
            let law = one.expected.as_ref();
            let mut row = vec![
                one.files.name.to_string(),
                one.files.runs.len().to_string(),
                count.to_string(),
            ];
            row.extend([mean, p50, p95, max].map(|value| number(value, 3)));
            row.push(number(one.files.messages_per_segment(), 2));
            row.extend(
                [law.map(|law| law.mean_low), law.map(|law| law.mean_high), law.map(|law| law.max)]
                    .map(|value| number(value.unwrap_or(f64::NAN), 0)),
            );
            row
        })
        .collect();
    let heading = [
        "case",
        "runs",
        "messages",
        "mean ms",
        "p50",
        "p95",
        "max",
        "per segment",
        "ideal",
        "drifting",
        "C",
    ];
    lay_out(&heading, &rows)
}

fn to_json(one: &Told<'_>) -> Value {
    let name = &one.files.name;
    let Summary { count, mean, p50, p95, max, .. } = one.summary;
    json!({
        "case": name.to_string(),
        "receiver": name.receiver,
        "nagle": if name.nagle { "on" } else { "off" },
        "rtt_ms": name.rtt as f64 / 1e6,
        "runs": one.files.runs.len(),
        "messages": count,
        "messages_per_segment": one.files.messages_per_segment(),
        "buffering_delay_ms": { "mean": mean, "p50": p50, "p95": p95, "max": max },
        "closed_form": one.expected.as_ref().map(|law| json!({
            "mean_ideal_clocks": law.mean_low, "mean_drifting_clocks": law.mean_high, "max": law.max,
        })),
    })
}

/// Name of the result's form.
const SCHEMA: &str = "acklab.dataset/1";
