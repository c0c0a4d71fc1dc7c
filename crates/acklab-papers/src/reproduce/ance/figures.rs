//! The paper's figures 2 to 5 and 10 to 35, from one run of each configuration.
//!
//! Figures 1 and 6 to 9 are drawings of topologies and automata, and have no data. Figure 31 comes from
//! the verification of table 4. A queue is drawn as the packets that wait beside the one in service.

use acklab_core::time::{Span, Time};

use super::configuration::{
    ANCE, CODEL, DAISY, DUMBBELL, EDCTCP, ENCN, JERSEY, PIE, RED, TABLE_4, Technique, Topology,
    settings,
};
use super::table4;
use acklab_lab::parameter::SetError;
use acklab_lab::report::text::capitalised;
use acklab_lab::report::{Block, Cdf, CdfSeries, LineSeries, Lines};
use acklab_lab::series::{self, Series};

/// One run of one configuration, its signals over time.
pub struct Trace {
    topology: Topology,
    technique: Technique,
    series: Vec<Series>,
}

/// Runs every configuration once, under the same seed.
pub fn trace_all(sets: &[(&str, &str)], seed: u64) -> Result<Vec<Trace>, SetError> {
    let daisy = DAISY.iter().map(|technique| (Topology::Daisy, *technique));
    let dumbbell = DUMBBELL.iter().map(|technique| (Topology::Dumbbell, *technique));
    let trace = |(topology, technique): (Topology, Technique)| {
        let settings = settings(topology, technique, sets)?;
        let until = Time::ZERO + Span::from_secs(30);
        let names = match topology {
            Topology::Daisy => DAISY_SIGNALS,
            Topology::Dumbbell => DUMBBELL_SIGNALS,
        };
        let series = series::record(topology.scenario(), &settings, seed, until, names);
        Ok(Trace { topology, technique, series })
    };
    daisy.chain(dumbbell).map(trace).collect()
}

const DAISY_SIGNALS: &[&str] = &["queue.length", "flow[0].cwnd", "throughput"];
const DUMBBELL_SIGNALS: &[&str] = &[
    "queue.length",
    "throughput",
    "jain",
    "itae_rad_s",
    "position",
    "reference",
    "flow[0].throughput",
    "flow[1].throughput",
    "flow[2].throughput",
];

/// Every figure, in the paper's order.
pub fn blocks(traces: &[Trace], table: &[table4::Row]) -> Vec<Block> {
    use Topology::{Daisy, Dumbbell};
    let one = |number, topology, technique, quantity| {
        Drawing { traces, number, topology, quantity }.of_one(technique)
    };
    let all = |number, topology, techniques, quantity| {
        Drawing { traces, number, topology, quantity }.of_all(techniques)
    };
    let each = |first: u32, quantity: &'static Quantity| {
        let numbered = (first..).zip(TABLE_4);
        numbered.map(move |(number, technique)| one(number, Dumbbell, technique, quantity))
    };
    let ecn = &[JERSEY, EDCTCP, ANCE];
    let mut blocks: Vec<Block> =
        [RED, CODEL, PIE, ENCN].map(|technique| one(2, Daisy, technique, &QUEUE)).into();
    blocks.push(one(3, Daisy, ANCE, &WINDOW));
    blocks.push(one(4, Daisy, ANCE, &QUEUE));
    blocks.push(all(5, Daisy, &DAISY, &THROUGHPUT));
    blocks.extend(each(10, &FLOWS));
    blocks.push(all(16, Dumbbell, &TABLE_4, &TOTAL));
    blocks.push(all(17, Dumbbell, &TABLE_4, &JAIN));
    blocks.extend(each(18, &POSITION));
    blocks.extend(each(24, &QUEUE));
    blocks.push(all(30, Dumbbell, &TABLE_4, &ITAE));
    blocks.push(figure_31(table));
    blocks.push(all(32, Dumbbell, ecn, &TOTAL));
    blocks.push(all(33, Dumbbell, ecn, &ITAE));
    blocks.push(one(34, Dumbbell, EDCTCP, &QUEUE));
    blocks.push(one(35, Dumbbell, JERSEY, &QUEUE));
    blocks
}

struct Quantity {
    title: &'static str,
    /// Signals, with their names in the legend.
    signals: &'static [(&'static str, &'static str)],
    /// The axis with its unit.
    axis: &'static str,
    /// What makes that unit of the signal's.
    factor: f64,
}

static QUEUE: Quantity = Quantity {
    title: "bottleneck queue",
    signals: &[("queue.length", "waiting")],
    axis: "waiting packets",
    factor: 1.0,
};
static WINDOW: Quantity = Quantity {
    title: "congestion window",
    signals: &[("flow[0].cwnd", "window")],
    axis: "congestion window (packets)",
    factor: 1.0,
};
static THROUGHPUT: Quantity = Quantity {
    title: "Throughput",
    signals: &[("throughput", "total")],
    axis: "acknowledged since time 0 (Mbit/s)",
    factor: 1e-6,
};
static TOTAL: Quantity = Quantity { title: "Total TCP throughput", ..THROUGHPUT };
static FLOWS: Quantity = Quantity {
    title: "throughput of each flow",
    signals: &[
        ("flow[0].throughput", "A"),
        ("flow[1].throughput", "B"),
        ("flow[2].throughput", "C"),
    ],
    ..THROUGHPUT
};
static JAIN: Quantity = Quantity {
    title: "Jain's index of the flows",
    signals: &[("jain", "index")],
    axis: "Jain's index",
    factor: 1.0,
};
static POSITION: Quantity = Quantity {
    title: "motor position",
    signals: &[("reference", "reference"), ("position", "position")],
    axis: "position (rad)",
    factor: 1.0,
};
static ITAE: Quantity = Quantity {
    title: "ITAE of the motor",
    signals: &[("itae_rad_s", "itae")],
    axis: "sum of t|e| (rad s)",
    factor: 1.0,
};

/// A figure of the paper.
struct Drawing<'a> {
    traces: &'a [Trace],
    number: u32,
    topology: Topology,
    quantity: &'static Quantity,
}

impl Drawing<'_> {
    /// One technique, a line for each signal.
    fn of_one(&self, technique: Technique) -> Block {
        let line = |(signal, name): &(&str, &str)| self.line(name, technique, signal);
        let title =
            format!("Figure {}: {} for {}", self.number, self.quantity.title, technique.name);
        self.lines(title, self.quantity.signals.iter().map(line).collect())
    }

    /// One signal, a line for each technique.
    fn of_all(&self, techniques: &[Technique]) -> Block {
        let (signal, _) = self.quantity.signals[0];
        let line = |technique: &Technique| self.line(technique.name, *technique, signal);
        let title = format!("Figure {}: {}", self.number, self.quantity.title);
        self.lines(title, techniques.iter().map(line).collect())
    }

    fn line(&self, name: &str, technique: Technique, signal: &str) -> LineSeries {
        let mut traces = self.traces.iter();
        let trace = traces.find(|t| t.topology == self.topology && t.technique == technique);
        let series = trace.and_then(|trace| trace.series.iter().find(|s| s.name == signal));
        let points = series.map_or(&[][..], |series| &series.points);
        let points = points.iter().map(|(time, value)| (*time, value * self.quantity.factor));
        LineSeries { name: name.to_owned(), points: points.collect() }
    }

    fn lines(&self, title: String, series: Vec<LineSeries>) -> Block {
        let axis = self.quantity.axis;
        let caption = format!("{} over simulated time, one run.", capitalised(axis));
        let (x_title, y_title) = ("time (s)".into(), axis.into());
        Block::plot(title, caption, Lines { x_title, y_title, series, ..Lines::default() })
    }
}

/// When the ITAE passes the threshold, over the runs of table 4.
fn figure_31(table: &[table4::Row]) -> Block {
    let curve = |row: &table4::Row| {
        let reached = row.ours.reached.as_ref()?;
        let first = [(0.0, 0.0)];
        let rise = reached.points.iter().map(|point| (point.at, point.share));
        let last = [(30.0, reached.share_at(30.0))];
        let points = first.into_iter().chain(rise).chain(last).collect();
        Some(CdfSeries { name: row.paper.technique.name.to_owned(), points, straight: false })
    };
    Block::plot(
        "Figure 31: cumulative probability that the ITAE has passed 8727 rad s",
        "Share of the runs of table 4 in which it had, by simulated time. A technique with no such run has no \
         curve.",
        Cdf {
            x_title: "time (s)".into(),
            series: table.iter().filter_map(curve).filter(|s| s.points.len() > 2).collect(),
            marks: vec![],
        },
    )
}
