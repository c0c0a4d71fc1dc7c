//! The folder that a run writes.
//!
//! `result.json` (the contract's JSON), `samples.parquet` (one row per sample of the main metric),
//! `replications.parquet` (every metric of every replication), `report.html`, and `scenario.toml`, with which the run can be repeated. The scenario is written
//! first, before anything is computed, so that a folder that cannot be written is told at once.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acklab_core::time::Time;

use crate::columns::{Column, Columns, ColumnsError};
use crate::file::ScenarioFile;
use crate::plan::Plan;
use crate::replications;
use crate::report::network::{CasesReport, NetworkReport};
use crate::report::run::{self, RunCase, RunReport};
use crate::report::{
    self, Figure, Ladder, LineSeries, Lines, Plot, ReportError, Section, exchange,
};
use crate::results::{CaseResult, Results, hex};
use crate::series::{self, Series};

/// A folder for a run's files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or the folder itself.
    #[error("{file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    #[error("samples.parquet: {0}")]
    Samples(#[from] ColumnsError),
    #[error("report.html: {0}")]
    Report(#[from] ReportError),
}

impl Folder {
    /// Makes the folder where it is not there and writes `scenario.toml` into it.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, OutputError> {
        fs::create_dir_all(path)
            .map_err(|source| OutputError::File { file: path.display().to_string(), source })?;
        let folder = Self { path: path.to_owned() };
        folder.write_file("scenario.toml", ScenarioFile::of(plan).to_text().as_bytes())?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(&self, results: &Results) -> Result<(), OutputError> {
        let json = format!("{:#}\n", results.to_json());
        self.write_file("result.json", json.as_bytes())?;
        let mut parquet = Vec::new();
        samples(results).write_parquet(&mut parquet)?;
        self.write_file("samples.parquet", &parquet)?;
        let mut parquet = Vec::new();
        let cases = results.cases.iter();
        let plan = &results.plan;
        let named = |case: &CaseResult| {
            let axes = if plan.is_grid() { case.axes(plan) } else { Vec::new() };
            (case.name(plan), axes)
        };
        let each = cases.map(|case| (named(case), &case.replications));
        replications::columns(each).write_parquet(&mut parquet)?;
        self.write_file("replications.parquet", &parquet)?;
        self.write_file("report.html", page(results)?.as_bytes())
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        fs::write(self.path.join(name), bytes)
            .map_err(|source| OutputError::File { file: name.into(), source })
    }
}

/// One row per sample of the main metric: the case's parameters, replication, count, value.
fn samples(results: &Results) -> Columns {
    let plan = &results.plan;
    let main = plan.scenario.declaration().main_metric;
    let counts: Vec<usize> = results.cases.iter().map(|c| c.sample_counts.iter().sum()).collect();
    let names = results.cases.first().map(|case| case.axes(plan)).unwrap_or_default();
    let mut columns = Columns::default();
    for (axis, (name, _)) in names.iter().enumerate() {
        let mut dictionary: Vec<String> = Vec::new();
        let mut indices = Vec::new();
        for (case, count) in results.cases.iter().zip(&counts) {
            let value = case.axes(plan).swap_remove(axis).1;
            let index = dictionary.iter().position(|word| *word == value).unwrap_or_else(|| {
                dictionary.push(value);
                dictionary.len() - 1
            });
            indices.resize(indices.len() + count, index as u32);
        }
        columns = columns.with(name, Column::Words { dictionary, indices });
    }
    let (mut replication, mut index, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for case in &results.cases {
        for (number, count) in (0..).zip(&case.sample_counts) {
            replication.resize(replication.len() + count, number);
            index.extend(0..*count as u32);
        }
        values.extend_from_slice(case.metrics.samples(main));
    }
    columns
        .with("replication", Column::U32(replication))
        .with("index", Column::U32(index))
        .with(main, Column::F64(values))
}

/// The report's HTML.
fn page(results: &Results) -> Result<String, ReportError> {
    let plan = &results.plan;
    let scenario = plan.scenario;
    if let Some(network) = results.looked() {
        let report = NetworkReport {
            title: format!("acklab run {}", scenario.declaration().name),
            summary: scenario.declaration().summary.into(),
            network,
            terms: scenario.declaration().terms.to_vec(),
            conditions: conditions(results),
        };
        return report.page().to_html();
    }
    let networks: Option<Vec<_>> = results.cases.iter().map(CaseResult::looked).collect();
    if let Some(networks) = networks.filter(|_| plan.is_grid()) {
        let report = CasesReport {
            title: format!("acklab run {}", scenario.declaration().name),
            summary: scenario.declaration().summary.into(),
            comparison: results.comparison(),
            networks,
            terms: scenario.declaration().terms.to_vec(),
            conditions: conditions(results),
        };
        return report.page().to_html();
    }
    let doc = |name: &str| scenario.declaration().metrics.iter().find(|metric| metric.name == name);
    let words = |name: &str| {
        let unit = doc(name).map_or("", |metric| metric.unit);
        // A unit of several words has underscores in the name.
        let suffix = match unit {
            "bit/s" => "bps".to_owned(),
            unit => unit.replace(' ', "_").replace('²', "2"),
        };
        let bare = name.strip_suffix(&suffix).unwrap_or(name).trim_end_matches('_');
        (in_words(bare), if bare == name { String::new() } else { unit.to_owned() })
    };
    let main = scenario.declaration().main_metric;
    let (metric, unit) = words(main);
    let cases = results.cases.iter().map(|case| RunCase {
        axes: case.axes(plan).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        samples: case.metrics.samples(main),
        numbers: scenario
            .declaration()
            .side_metrics
            .iter()
            .map(|name| case.metrics.number(name))
            .collect(),
        expected: scenario.expected(&case.settings),
    });
    let report = RunReport {
        scenario: scenario.declaration().name.into(),
        summary: scenario.declaration().summary.into(),
        metric,
        unit,
        numbers: scenario.declaration().side_metrics.iter().map(|name| words(name)).collect(),
        cases: cases.collect(),
        replications: plan.replications,
        figures: if plan.all { scenario.declaration().figures } else { &[] },
        courses: courses(results),
        ladder: ladder(results),
        terms: scenario.declaration().terms.to_vec(),
        conditions: conditions(results),
        notes: results.notes(),
    };
    let mut page = run::page(&report);
    if plan.is_grid() && plan.replications > 1 {
        let figures = results.comparison().figures();
        page.sections.push(Section::new("Across the axes, one value per replication", figures));
    }
    page.to_html()
}

/// A metric's name as words: "ack delay" is "ACK delay".
fn in_words(name: &str) -> String {
    let word = |word: &str| match word {
        "ack" | "rtt" | "itae" | "iae" | "ise" => word.to_uppercase(),
        "acks" => "ACKs".to_owned(),
        _ => word.to_owned(),
    };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

/// What the scenario draws over time, of the first replication, for a plan of one case.
fn courses(results: &Results) -> Vec<Figure<Plot>> {
    let plan = &results.plan;
    let ([case], false) = (results.cases.as_slice(), plan.is_grid()) else { return Vec::new() };
    let figure = |(title, names): &(&str, &[&str])| {
        let until = Time::ZERO + case.settings.duration().unwrap_or_default();
        let drawn = series::record(plan.scenario, &case.settings, plan.seed, until, names);
        let unit = drawn.first().map_or("", |series| series.unit);
        let line = |series: Series| LineSeries { name: series.name, points: series.points };
        Figure {
            title: (*title).to_owned(),
            caption: "The first replication.".to_owned(),
            drawing: Plot::Lines(Lines {
                x_title: "time (s)".into(),
                y_title: unit.into(),
                series: drawn.into_iter().map(line).collect(),
                ..Lines::default()
            }),
        }
    };
    plan.scenario.declaration().courses.iter().map(figure).collect()
}

/// The longest hold of the first replication, for a plan of one case.
fn ladder(results: &Results) -> Option<Ladder> {
    let ([case], false) = (results.cases.as_slice(), results.plan.is_grid()) else { return None };
    let host = |part: &str| {
        let system = case.settings.values().find(|(name, _)| *name == part);
        system.map_or(part.to_owned(), |(_, system)| format!("{part}, {system}"))
    };
    let hold = case.longest_hold.as_ref()?;
    Some(exchange::ladder(hold, host("sender"), host("receiver")))
}

/// How to get the result again.
fn conditions(results: &Results) -> Vec<(String, String)> {
    let plan = &results.plan;
    let file = plan.scenario.network_file().map(|_| "scenario.toml");
    let mut command = format!("acklab run {}", file.unwrap_or(plan.scenario.declaration().name));
    let is_axis = |name: &str| plan.axes.iter().any(|axis| axis.parameter == name);
    let alone = plan.settings.chosen().filter(|(name, _)| file.is_none() && !is_axis(name));
    for (index, (name, value)) in alone.enumerate() {
        let separator = if index == 0 { " --set " } else { " " };
        command.extend([separator, name, "=", &value.to_string()]);
    }
    for axis in plan.axes.iter().filter(|_| file.is_none() && !plan.all) {
        command.extend([" --set ", axis.parameter, "=", &axis.values.join(",")]);
    }
    if plan.all && file.is_none() {
        command.push_str(" --all");
    }
    let _ = write!(command, " --seed {} --replications {}", plan.seed, plan.replications);
    let mut conditions = report::conditions(command);
    if let Some(file) = file {
        conditions.push((file.to_owned(), "beside this report".to_owned()));
    }
    conditions.push(("result hash".to_owned(), hex(results.hash)));
    let defaults = plan.settings.values().map(|(name, value)| format!("{name}={value}"));
    conditions.push(("parameters".to_owned(), defaults.collect::<Vec<_>>().join(" ")));
    conditions
}
