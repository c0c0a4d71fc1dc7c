//! The page of a comparison: its table, and each flow's courses and distributions in all worlds on the same axes.

use acklab_lab::report::{
    Block, Cdf, CdfSeries, Column, LineSeries, Lines, Page, Section, Table, Tone, Verdict,
    conditions,
};
use acklab_stats::Ecdf;

use crate::compare::{Comparison, value_at};
use crate::seen::Seen;

/// The page of `comparison`, of the network `subject`, that `command` makes again.
pub fn page(comparison: &Comparison, subject: String, command: String) -> Page {
    let mut sections = vec![Section::new("Figures", vec![table(comparison).into()])];
    for (flow, name) in comparison.names().iter().enumerate() {
        let mut blocks: Vec<Block> =
            COURSES.iter().filter_map(|course| course.block(comparison, flow)).collect();
        blocks.extend(SPREADS.iter().filter_map(|spread| spread.block(comparison, flow)));
        sections.push(Section::new(format!("Flow {name}"), blocks));
    }
    Page {
        title: "One network in several worlds".into(),
        subject,
        verdict: verdict(comparison),
        sections,
        terms: vec!["rtt", "cdf"],
        conditions: conditions(command),
    }
}

fn verdict(comparison: &Comparison) -> Verdict {
    let errors = comparison.errors();
    let headline = match errors.first() {
        Some(error) => error.clone(),
        None => comparison.headline(),
    };
    let runs = match comparison.replications() {
        1 => "one replication".to_owned(),
        more => format!("the mean of {more} replications"),
    };
    let explanation = format!(
        "These figures are {runs}. `sim` is acklab’s TCP, `linux-vt` the Linux kernel; both are in virtual time and see the same writes. \
         Losses and other randomness are each world’s own, so that single replications differ."
    );
    Verdict {
        tone: if errors.is_empty() { Tone::Neutral } else { Tone::Fault },
        headline,
        explanation: vec![explanation],
        fixes: Vec::new(),
    }
}

fn table(comparison: &Comparison) -> Table {
    let rows = comparison.rows();
    let columns = comparison.heading().into_iter().enumerate();
    let columns = columns
        .map(|(at, name)| Column::text(name).over(&rows, |row: &Vec<String>| row[at].clone()));
    Table::new("Means over replications", columns.collect())
}

/// What is drawn over time.
struct Course {
    title: &'static str,
    y_title: &'static str,
    caption: &'static str,
    scale: f64,
    of: fn(&Seen) -> &[(f64, f64)],
}

const COURSES: [Course; 2] = [
    Course {
        title: "Acknowledged",
        y_title: "acknowledged (kB)",
        caption: "Payload that was acknowledged since the start, first replication.",
        scale: 1e-3,
        of: |seen| &seen.progress,
    },
    Course {
        title: "Congestion window",
        y_title: "window (segments)",
        caption: "In full segments, first replication; the kernel’s is looked at every 10 ms.",
        scale: 1.0,
        of: |seen| &seen.windows,
    },
];

impl Course {
    fn block(&self, comparison: &Comparison, flow: usize) -> Option<Block> {
        let series: Vec<_> = comparison
            .firsts(flow)
            .map(|(world, seen)| LineSeries {
                name: world.name().into(),
                points: self.points((self.of)(seen)),
            })
            .collect();
        if series.iter().all(|series| series.points.is_empty()) {
            return None;
        }
        let lines = Lines {
            x_title: "time (s)".into(),
            y_title: self.y_title.into(),
            series,
            solid: true,
            ..Lines::default()
        };
        Some(Block::plot(self.title, self.caption, lines))
    }

    fn points(&self, course: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let Some((end, _)) = course.last() else { return Vec::new() };
        let times = (0..=DRAWN).map(|step| end * f64::from(step) / f64::from(DRAWN));
        times.map(|at| (at, self.scale * value_at(course, at))).collect()
    }
}

/// What is drawn as a distribution.
struct Spread {
    title: &'static str,
    x_title: &'static str,
    caption: &'static str,
    of: fn(&Seen) -> &[f64],
}

const SPREADS: [Spread; 3] = [
    Spread {
        title: "Round trips",
        x_title: "round trip (ms)",
        caption: "From a segment’s departure to the ACK that covers it, first replication.",
        of: |seen| &seen.round_trips_ms,
    },
    Spread {
        title: "Delays",
        x_title: "delay (ms)",
        caption: "From a message’s write to its last byte’s read, or from a request to its answer, first replication.",
        of: |seen| &seen.delays_ms,
    },
    Spread {
        title: "Buffering",
        x_title: "buffering (ms)",
        caption: "From a message’s write to its last byte’s departure, first replication.",
        of: |seen| &seen.buffering_ms,
    },
];

impl Spread {
    fn block(&self, comparison: &Comparison, flow: usize) -> Option<Block> {
        let series: Vec<_> = comparison
            .firsts(flow)
            .filter_map(|(world, seen)| {
                let points = Ecdf::from_samples((self.of)(seen).to_vec())?.points(DRAWN as usize);
                Some(CdfSeries { name: world.name().into(), points, straight: false })
            })
            .collect();
        if series.is_empty() {
            return None;
        }
        let cdf = Cdf { x_title: self.x_title.into(), series, marks: Vec::new() };
        Some(Block::plot(self.title, self.caption, cdf))
    }
}

/// Points of a line.
const DRAWN: u32 = 600;
