//! [`Results`]: what a plan gave, and the contract's JSON of it.

use acklab_sim::ResultHash;
use acklab_stats::query::Query;
use serde_json::{Map, Value, json};

use crate::expected::Expected;
use crate::held::HeldExchange;
use crate::measured::Metrics;
use crate::monitor::NetworkRecord;
use crate::parameter::{Kind, Settings};
use crate::plan::Plan;
use crate::replications::Replications;
use crate::report::compare::{Compared, Comparison};
use crate::report::network::Network;
use crate::scenario::{Declaration, FileQuery, Flow, Replication};
use crate::timing::Timing;

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.run/1";

/// What a plan gave.
#[derive(Clone)]
pub struct Results {
    /// What was run.
    pub plan: Plan,
    /// Whether every replication of every case was run.
    pub is_complete: bool,
    /// One number for everything that happened; the same for the same plan, everywhere.
    pub hash: u64,
    /// Pooled over all cases and replications.
    pub metrics: Metrics,
    /// By flow, pooled over all cases and replications.
    pub flows: Vec<FlowResult>,
    /// By group of flows, likewise.
    pub groups: Vec<FlowResult>,
    /// Each case, in the plan's order.
    pub cases: Vec<CaseResult>,
    /// What it cost.
    pub timing: Timing,
}

/// One case, pooled over its replications.
#[derive(Clone)]
pub struct CaseResult {
    /// Its settings.
    pub settings: Settings,
    /// Pooled metrics.
    pub metrics: Metrics,
    /// Pooled metrics of each flow.
    pub flows: Vec<FlowResult>,
    /// Pooled metrics of each group of flows.
    pub groups: Vec<FlowResult>,
    /// How many samples of the main metric each replication gave.
    pub sample_counts: Vec<usize>,
    /// What each replication measured.
    pub replications: Replications,
    /// A closer look at flows and links, where one was asked for.
    pub network: Option<NetworkRecord>,
    /// The first replication's exchange in which a message waited longest, if any did.
    pub longest_hold: Option<HeldExchange>,
    /// Of the replications' hashes.
    pub hash: ResultHash,
}

/// One flow, pooled over replications.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Name within the scenario.
    pub id: String,
    /// Pooled metrics.
    pub metrics: Metrics,
}

impl FlowResult {
    pub(crate) fn pool_all(flows: &mut Vec<Self>, more: &[Self]) {
        for FlowResult { id, metrics } in more {
            Self::pool_one(flows, id, metrics);
        }
    }

    fn pool_one(flows: &mut Vec<Self>, id: &str, metrics: &Metrics) {
        match flows.iter_mut().find(|flow| flow.id == id) {
            Some(flow) => flow.metrics.pool(metrics),
            None => flows.push(Self { id: id.to_owned(), metrics: metrics.clone() }),
        }
    }

    fn to_json(&self) -> Value {
        json!({"id": self.id, "metrics": self.metrics.to_json()})
    }
}

impl CaseResult {
    pub(crate) fn new(settings: Settings, network: Option<NetworkRecord>) -> Self {
        Self {
            settings,
            metrics: Metrics::default(),
            flows: Vec::new(),
            groups: Vec::new(),
            sample_counts: Vec::new(),
            replications: Replications::default(),
            network,
            longest_hold: None,
            hash: ResultHash::default(),
        }
    }

    /// Takes in replication `number` of the case.
    pub(crate) fn pool(&mut self, number: u32, replication: &Replication, main_metric: &str) {
        if self.sample_counts.is_empty() {
            self.longest_hold.clone_from(&replication.longest_hold);
        }
        self.hash.word(replication.hash);
        self.sample_counts.push(replication.metrics.samples(main_metric).len());
        let flows = replication.flows.iter().chain(&replication.groups);
        let flows = flows.map(|flow| (flow.id.as_str(), &flow.metrics));
        self.replications.push(number, &replication.metrics, flows);
        self.metrics.pool(&replication.metrics);
        for (ours, theirs) in
            [(&mut self.flows, &replication.flows), (&mut self.groups, &replication.groups)]
        {
            for Flow { id, metrics } in theirs {
                FlowResult::pool_one(ours, id, metrics);
            }
        }
    }

    /// The closer look with the metrics that belong to it, where there is one.
    pub fn looked(&self) -> Option<Network<'_>> {
        let record = self.network.as_ref()?;
        let flows = self.flows.iter().map(|flow| &flow.metrics).collect();
        Some(Network { record, metrics: &self.metrics, flows })
    }

    /// One number for all its replications.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    fn to_json(&self, plan: &Plan) -> Value {
        let mut object = json!({
            "sets": sets(&self.settings),
            "name": self.name(plan),
            "axes": self.axes(plan).into_iter().map(|(name, value)| (name.to_owned(), json!(value)))
                .collect::<Value>(),
            "values": self.replications.values_json(),
            "hash": hex(self.hash()),
            "metrics": self.metrics.to_json(),
            "intervals": self.replications.to_json(),
        });
        if let Some(expected) = plan.scenario.expected(&self.settings) {
            object["closed_form"] = closed_form(&expected);
        }
        object
    }

    /// What tells this case from the others: the parameters that vary with their values; where none does, the parameters that were set.
    pub fn axes(&self, plan: &Plan) -> Vec<(&'static str, String)> {
        let of_grid = |name| {
            plan.all && plan.scenario.declaration().grid.iter().any(|axis| axis.parameter == name)
        };
        let of_axes = |name| plan.axes.iter().any(|axis| axis.parameter == name);
        let shown = |name| !plan.is_grid() || of_axes(name) || of_grid(name);
        self.settings
            .chosen()
            .filter(|(name, _)| shown(*name))
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }

    /// The same in one line.
    pub fn name(&self, plan: &Plan) -> String {
        let axes = self.axes(plan);
        let words: Vec<_> = axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if words.is_empty() { "defaults".to_owned() } else { words.join(" ") }
    }
}

impl Results {
    /// The cases side by side: by what the file asks, then by the scenario's main and side metrics.
    pub fn comparison(&self) -> Comparison {
        let (plan, declaration) = (&self.plan, self.plan.scenario.declaration());
        let asked = plan.cases.first().map_or(&[][..], |case| plan.scenario.queries(case));
        let compared = |name: &'static str, query: Option<&FileQuery>| {
            let doc = declaration.metrics.iter().find(|metric| metric.name == name);
            let query = query.map(|query| query.bound.query());
            let bound = query.and_then(Query::bound);
            Compared {
                name: name.to_owned(),
                unit: doc.map_or("", |metric| metric.unit).to_owned(),
                doc: doc.map_or("", |metric| metric.doc).to_owned(),
                bound: bound.map(|bound| (bound.at_least, bound.threshold)),
                yes_or_no: query.is_some_and(|query| !matches!(query, Query::Expectation { .. })),
                values: self.cases.iter().map(|case| case.replications.values(name)).collect(),
            }
        };
        let mut metrics: Vec<_> =
            asked.iter().map(|query| compared(query.name, Some(query))).collect();
        let own = std::iter::once(&declaration.main_metric).chain(declaration.side_metrics);
        metrics.extend(own.map(|name| compared(name, None)));
        // What is 0 everywhere, or was measured nowhere, compares nothing.
        metrics.retain(|metric| {
            metric.bound.is_some() || metric.values.iter().flatten().any(|value| *value != 0.0)
        });
        let axes = self.cases.first().map(|case| case.axes(plan)).unwrap_or_default();
        let values = |case: &CaseResult| case.axes(plan).into_iter().map(|(_, value)| value);
        Comparison {
            axes: axes.into_iter().map(|(name, _)| with_unit(name, declaration)).collect(),
            cases: self.cases.iter().map(|case| values(case).collect()).collect(),
            metrics,
        }
    }

    /// What has to be known before the figures are read: loops that diverge, and what was done otherwise than the settings'
    /// words say; each sentence once.
    pub fn notes(&self) -> Vec<String> {
        let unstable = self.metrics.number("unstable_runs");
        let unstable = (unstable > 0.0).then(|| {
            format!(
                "unstable: in {unstable:.0} of {} replications the control loop diverges; of its costs this is all that counts",
                self.replications_done()
            )
        });
        let said = self.cases.iter().filter_map(|case| self.plan.scenario.note(&case.settings));
        let mut notes: Vec<String> = unstable.into_iter().chain(said).collect();
        notes.dedup();
        notes
    }

    /// How many replications were run, of all cases together.
    pub fn replications_done(&self) -> usize {
        self.cases.iter().map(|case| case.sample_counts.len()).sum()
    }

    /// The closer look with the metrics that belong to it, where there is one of a single case.
    pub fn looked(&self) -> Option<Network<'_>> {
        match self.cases.as_slice() {
            [only] if !self.plan.is_grid() => only.looked(),
            _ => None,
        }
    }

    /// The contract's JSON; with a grid, `cases` stands beside the contract's keys.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
        add("schema", json!(SCHEMA));
        add("scenario", json!(self.plan.scenario.declaration().name));
        add("sets", sets(&self.plan.settings));
        add("seed", json!(self.plan.seed));
        add("replications", json!(self.plan.replications));
        add("world", json!(self.plan.scenario.world()));
        add("complete", json!(self.is_complete));
        if !self.is_complete {
            add("replications_done", json!(self.replications_done()));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            add("notes", json!(notes));
        }
        add("hash", json!(hex(self.hash)));
        add("metrics", self.metrics.to_json());
        add("flows", self.flows.iter().map(FlowResult::to_json).collect());
        if !self.groups.is_empty() {
            add("groups", self.groups.iter().map(FlowResult::to_json).collect());
        }
        if let ([only], false) = (self.cases.as_slice(), self.plan.is_grid()) {
            add("intervals", only.replications.to_json());
        }
        if let ([only], false) = (self.cases.as_slice(), self.plan.is_grid())
            && let Some(expected) = self.plan.scenario.expected(&only.settings)
        {
            add("closed_form", closed_form(&expected));
        }
        if self.plan.is_grid() {
            let comparison = self.comparison();
            let axes = self.plan.axes.iter();
            let axes = axes.map(|axis| json!({"name": axis.parameter, "values": axis.values}));
            add("axes", axes.collect());
            let one = |(index, case): (usize, &CaseResult)| {
                let mut object = case.to_json(&self.plan);
                object["queries"] = comparison.outcomes_json(index);
                object
            };
            add("cases", self.cases.iter().enumerate().map(one).collect());
        }
        if let Some(network) = self.looked() {
            let tables = [("flows", network.flow_table()), ("links", network.link_table())];
            let tables = tables.map(|(name, table)| (name.to_owned(), table.to_json()));
            add("network", Value::Object(tables.into_iter().collect()));
        }
        add("timing", self.timing.to_json());
        Value::Object(object)
    }
}

/// A parameter's name with its unit, where its values are bare numbers.
fn with_unit(name: &str, declaration: &Declaration) -> String {
    let declared = declaration.parameters.iter().find(|parameter| parameter.name == name);
    match declared.map(|parameter| parameter.kind) {
        Some(Kind::Number { unit, .. }) if !unit.is_empty() => format!("{name}, {unit}"),
        _ => name.to_owned(),
    }
}

/// The closed form of the main metric, in its unit.
fn closed_form(expected: &Expected) -> Value {
    json!({
        "mean_ideal_clocks": expected.mean_low,
        "mean_drifting_clocks": expected.mean_high,
        "max": expected.max,
    })
}

pub(crate) fn sets(settings: &Settings) -> Value {
    settings.chosen().map(|(name, value)| (name.to_owned(), json!(value.to_string()))).collect()
}

/// A hash as 16 hexadecimal digits.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}
