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
use acklab_lab::report::{Block, Cdf, CdfSeries, Figure, LineSeries, Lines, Plot};
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
    "itae",
    "position",
    "reference",
    "flow[0].throughput",
    "flow[1].throughput",
    "flow[2].throughput",
];

/// Every figure, in the paper's order.
pub fn blocks(traces: &[Trace], table: &[table4::Row]) -> Vec<Block> {
    let drawing = Drawing { traces };
    let mut blocks = Vec::new();
    for technique in [RED, CODEL, PIE, ENCN] {
        blocks.push(drawing.of_one(2, "bottleneck queue", Topology::Daisy, technique, QUEUE));
    }
    blocks.push(drawing.of_one(3, "congestion window", Topology::Daisy, ANCE, WINDOW));
    blocks.push(drawing.of_one(4, "bottleneck queue", Topology::Daisy, ANCE, QUEUE));
    let throughput = "Throughput";
    blocks.push(drawing.of_all(5, throughput, Topology::Daisy, &DAISY, THROUGHPUT));
    for (number, technique) in (10..).zip(TABLE_4) {
        let title = "throughput of each flow";
        blocks.push(drawing.of_one(number, title, Topology::Dumbbell, technique, FLOWS));
    }
    let (dumbbell, total) = (Topology::Dumbbell, "Total TCP throughput");
    blocks.push(drawing.of_all(16, total, dumbbell, &TABLE_4, THROUGHPUT));
    blocks.push(drawing.of_all(17, "Jain's index of the flows", dumbbell, &TABLE_4, JAIN));
    for (number, technique) in (18..).zip(TABLE_4) {
        blocks.push(drawing.of_one(number, "motor position", dumbbell, technique, POSITION));
    }
    for (number, technique) in (24..).zip(TABLE_4) {
        blocks.push(drawing.of_one(number, "bottleneck queue", dumbbell, technique, QUEUE));
    }
    blocks.push(drawing.of_all(30, "ITAE of the motor", dumbbell, &TABLE_4, ITAE));
    blocks.push(figure_31(table));
    let ecn = [JERSEY, EDCTCP, ANCE];
    blocks.push(drawing.of_all(32, total, dumbbell, &ecn, THROUGHPUT));
    blocks.push(drawing.of_all(33, "ITAE of the motor", dumbbell, &ecn, ITAE));
    blocks.push(drawing.of_one(34, "bottleneck queue", dumbbell, EDCTCP, QUEUE));
    blocks.push(drawing.of_one(35, "bottleneck queue", dumbbell, JERSEY, QUEUE));
    blocks
}

/// What is drawn: signals with their names in the legend, the axis, and a factor.
#[derive(Clone, Copy)]
struct Quantity {
    signals: &'static [(&'static str, &'static str)],
    axis: &'static str,
    factor: f64,
}

const QUEUE: Quantity =
    Quantity { signals: &[("queue.length", "waiting")], axis: "waiting packets", factor: 1.0 };
const WINDOW: Quantity = Quantity {
    signals: &[("flow[0].cwnd", "window")],
    axis: "congestion window (packets)",
    factor: 1.0,
};
const THROUGHPUT: Quantity = Quantity {
    signals: &[("throughput", "total")],
    axis: "acknowledged since time 0 (Mbit/s)",
    factor: 1e-6,
};
const FLOWS: Quantity = Quantity {
    signals: &[
        ("flow[0].throughput", "A"),
        ("flow[1].throughput", "B"),
        ("flow[2].throughput", "C"),
    ],
    axis: "acknowledged since time 0 (Mbit/s)",
    factor: 1e-6,
};
const JAIN: Quantity =
    Quantity { signals: &[("jain", "index")], axis: "Jain's index", factor: 1.0 };
const POSITION: Quantity = Quantity {
    signals: &[("reference", "reference"), ("position", "position")],
    axis: "position (rad)",
    factor: 1.0,
};
const ITAE: Quantity =
    Quantity { signals: &[("itae", "itae")], axis: "sum of t|e| (rad s)", factor: 1.0 };

struct Drawing<'a> {
    traces: &'a [Trace],
}

impl Drawing<'_> {
    fn points(
        &self,
        topology: Topology,
        technique: Technique,
        signal: &str,
        factor: f64,
    ) -> Vec<(f64, f64)> {
        let trace = self.traces.iter().find(|t| t.topology == topology && t.technique == technique);
        let series = trace.and_then(|trace| trace.series.iter().find(|s| s.name == signal));
        series.map_or(vec![], |series| {
            series.points.iter().map(|(time, value)| (*time, value * factor)).collect()
        })
    }

    /// One technique, a line for each signal.
    fn of_one(
        &self,
        number: u32,
        title: &str,
        topology: Topology,
        technique: Technique,
        quantity: Quantity,
    ) -> Block {
        let line = |(signal, name): &(&str, &str)| LineSeries {
            name: (*name).to_owned(),
            points: self.points(topology, technique, signal, quantity.factor),
        };
        let title = format!("Figure {number}: {title} for {}", technique.name);
        lines(title, quantity, quantity.signals.iter().map(line).collect())
    }

    /// One signal, a line for each technique.
    fn of_all(
        &self,
        number: u32,
        title: &str,
        topology: Topology,
        techniques: &[Technique],
        quantity: Quantity,
    ) -> Block {
        let (signal, _) = quantity.signals[0];
        let line = |technique: &Technique| LineSeries {
            name: technique.name.to_owned(),
            points: self.points(topology, *technique, signal, quantity.factor),
        };
        lines(format!("Figure {number}: {title}"), quantity, techniques.iter().map(line).collect())
    }
}

fn lines(title: String, quantity: Quantity, series: Vec<LineSeries>) -> Block {
    Block::Figure(Figure {
        caption: format!("{} over simulated time, one run.", capitalised(quantity.axis)),
        title,
        drawing: Plot::Lines(Lines {
            x_title: "time (s)".into(),
            y_title: quantity.axis.into(),
            series,
            scatter: false,
            ..Lines::default()
        }),
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
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
    Block::Figure(Figure {
        title: "Figure 31: cumulative probability that the ITAE has passed 8727 rad s".into(),
        caption:
            "Share of the runs of table 4 in which it had, by simulated time. A technique with \
                  no such run has no curve."
                .into(),
        drawing: Plot::Cdf(Cdf {
            x_title: "time (s)".into(),
            series: table.iter().filter_map(curve).filter(|s| s.points.len() > 2).collect(),
            marks: vec![],
        }),
    })
}
