//! Queries about every case of a plan: one answer each, side by side.

use std::sync::atomic::{AtomicBool, Ordering};

use acklab_stats::Decision;
use serde_json::{Value, json};

use super::{Job, Precision, Report, Verification, VerifyError};
use crate::parameter::Settings;
use crate::plan::Plan;
use crate::report::{Cell, Column, Table};
use crate::results::sets;
use crate::scenario::FileQuery;

/// The JSON's schema name.
const SCHEMA: &str = "acklab.verify-cases/1";

/// Queries about the cases of a plan.
pub struct Cases {
    plan: Plan,
    jobs: Vec<(Settings, String, Job)>,
}

/// The answers so far.
pub struct Answered {
    plan: Plan,
    rows: Vec<Row>,
    /// Cases times queries.
    asked: usize,
}

/// One case and one query.
struct Row {
    settings: Settings,
    /// The query's name, or the query.
    name: String,
    verification: Verification,
}

impl Cases {
    /// Asks `query` about every case of `plan`, or without one whatever its file asks and gives a bound.
    pub fn new(plan: Plan, query: Option<&str>, precision: Precision) -> Result<Self, VerifyError> {
        let mut jobs = Vec::new();
        for case in &plan.cases {
            let asked: Vec<(String, String)> = if let Some(query) = query {
                vec![(query.to_owned(), query.to_owned())]
            } else {
                let queries = plan.scenario.queries(case).iter();
                let bounded = queries.filter(|query| query.bound.query().bound().is_some());
                let named =
                    |query: &FileQuery| (query.name.to_owned(), query.bound.text().to_owned());
                bounded.map(named).collect()
            };
            for (name, text) in asked {
                let job = Job::new(plan.scenario, case.clone(), &text, precision, plan.seed)?;
                jobs.push((case.clone(), name, job));
            }
        }
        if jobs.is_empty() {
            return Err(VerifyError::NoQuery);
        }
        Ok(Self { plan, jobs })
    }

    /// Answers them one after the other. `progress` sees each case's number, of how many, and what is known of it;
    /// once `stop` is set, the answers so far are returned.
    pub fn run(
        self,
        stop: &AtomicBool,
        mut progress: impl FnMut(usize, usize, &Report),
    ) -> Answered {
        let (all, mut rows) = (self.jobs.len(), Vec::new());
        for (number, (settings, name, job)) in self.jobs.into_iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let verification = job.run(stop, |report, _| progress(number, all, report));
            rows.push(Row { settings, name, verification });
        }
        Answered { plan: self.plan, rows, asked: all }
    }
}

impl Row {
    /// What became of the bound.
    fn outcome(&self) -> &'static str {
        match self.verification.report.decision {
            Some(Decision::Accepted) => "holds",
            Some(Decision::Rejected) => "fails",
            _ => "cannot tell",
        }
    }

    fn value(&self, name: &str) -> String {
        let value = self.settings.values().find(|(known, _)| *known == name);
        value.map_or_else(String::new, |(_, value)| value.to_string())
    }

    /// The estimate with its interval, in words.
    fn estimate(&self) -> Cell {
        let report = &self.verification.report;
        match (report.estimate, report.interval) {
            (Some(estimate), Some(interval)) => {
                let words = format!("{estimate:.4} [{:.4}, {:.4}]", interval.low, interval.high);
                Cell::Ranked { words, value: estimate }
            }
            (Some(estimate), None) => estimate.into(),
            _ => Cell::Missing,
        }
    }
}

impl Answered {
    /// Whether a bound fails in some case.
    pub fn is_refuted(&self) -> bool {
        self.rows.iter().any(|row| row.verification.report.decision == Some(Decision::Rejected))
    }

    /// Whether every query about every case has its answer.
    pub fn is_complete(&self) -> bool {
        self.rows.len() == self.asked && self.rows.iter().all(|row| row.verification.is_answered())
    }

    /// A row for each case and query.
    pub fn table(&self) -> Table {
        let rows = &self.rows;
        let axis = |parameter: &'static str| {
            Column::text(parameter).plain(parameter, 0).over(rows, move |row| row.value(parameter))
        };
        let mut columns: Vec<Column> =
            self.plan.axes.iter().map(|axes| axis(axes.parameter)).collect();
        let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > 1 {
            columns
                .push(Column::text("Query").plain("query", 0).over(rows, |row| row.name.as_str()));
        }
        if rows.iter().any(|row| row.verification.report.claim.is_some() || row.has_bound()) {
            columns.push(Column::text("Bound").plain("bound", 0).over(rows, Row::outcome));
        }
        columns.push(
            Column::text("Estimate").plain("estimate [interval]", 0).over(rows, Row::estimate),
        );
        columns.push(
            Column::number("Runs", "")
                .plain("runs", 0)
                .over(rows, |row| row.verification.report.runs),
        );
        Table::new("Every case", columns)
    }

    /// The contract's JSON: for each case and query what [`Verification::to_json`] has, its axes and the outcome
    /// in a word.
    pub fn to_json(&self) -> Value {
        let one = |row: &Row| {
            let axes = self.plan.axes.iter().map(|axis| axis.parameter);
            let axes = axes.map(|name| (name.to_owned(), json!(row.value(name))));
            let mut object = row.verification.to_json();
            object["axes"] = Value::Object(axes.collect());
            object["name"] = json!(row.name);
            object["outcome"] = if row.has_bound() { json!(row.outcome()) } else { Value::Null };
            object
        };
        json!({
            "schema": SCHEMA,
            "scenario": self.plan.scenario.declaration().name,
            "sets": sets(&self.plan.settings),
            "seed": self.plan.seed,
            "complete": self.is_complete(),
            "cases": self.rows.iter().map(one).collect::<Value>(),
        })
    }
}

impl Row {
    /// Whether the query is one about a bound or a comparison.
    fn has_bound(&self) -> bool {
        self.verification.is_test
    }
}
