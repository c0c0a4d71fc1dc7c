//! Time against loss, as the paper's figures have it.

use acklab_lab::report::{Block, ErrorBar, LineSeries, Lines};
use acklab_stats::MeanInterval;

use super::experiment::Experiments;
use super::paper::{LOSSES, Row};
use super::reproduction::Reproduction;

/// Figures 1 to 3 on one kind of machine, the paper's lines beside ours.
pub(super) fn of_machine(experiments: &Experiments) -> Block {
    let curves = experiments.measured.chunks(LOSSES.len()).flat_map(|measured| {
        let name = path_name(measured[0].paper);
        let ours = measured.iter().map(|one| {
            let ends = one.interval().map(|interval| (interval.low, interval.high));
            Point { loss: one.paper.loss, mean: one.mean(), ends }
        });
        let paper = measured.iter().map(|one| {
            let (mean, margin) = (one.paper.mean, one.paper.margin_seconds());
            Point { loss: one.paper.loss, mean, ends: Some((mean - margin, mean + margin)) }
        });
        [
            Curve { name: name.to_owned(), points: ours.collect() },
            Curve { name: format!("{name}, paper"), points: paper.collect() },
        ]
    });
    over_loss(
        format!("Figures 1 to 3, {}", experiments.machine.name),
        "Mean transfer time. Bars are 95 % intervals by Student’s t, and the paper’s margins; both are narrow.",
        curves,
    )
}

/// Both protocols on hosts that cost nothing.
pub(super) fn protocols(reproduction: &Reproduction) -> Block {
    let course = reproduction.ideal().measured.iter().map(|one| (one.paper, one.interval()));
    let curves = [of_protocol("course", course), todays(reproduction)].concat();
    over_loss("Transfer time, hosts that cost nothing", REPETITIONS, curves)
}

/// Today's protocol alone, which the course's would press to the ground.
pub(super) fn today(reproduction: &Reproduction) -> Block {
    over_loss("acklab alone", REPETITIONS, todays(reproduction))
}

fn todays(reproduction: &Reproduction) -> Vec<Curve> {
    let today = reproduction.today.iter().map(|one| (one.paper, one.interval()));
    of_protocol("acklab", today)
}

/// A curve for one path and one for two; what did not end is left out.
fn of_protocol(
    protocol: &str,
    measured: impl Iterator<Item = (Row, Option<MeanInterval>)>,
) -> Vec<Curve> {
    let measured: Vec<_> = measured.collect();
    let curve = |measured: &[(Row, Option<MeanInterval>)]| {
        let known = measured.iter().filter_map(|(row, interval)| Some((row, (*interval)?)));
        let point = |(row, interval): (&Row, MeanInterval)| Point {
            loss: row.loss,
            mean: interval.mean,
            ends: Some((interval.low, interval.high)),
        };
        let name = format!("{protocol}, {}", path_name(measured[0].0));
        Curve { name, points: known.map(point).collect() }
    };
    measured.chunks(LOSSES.len()).map(curve).collect()
}

const fn path_name(row: Row) -> &'static str {
    if row.paths == 1 { "one path" } else { "two paths" }
}

#[derive(Clone)]
struct Curve {
    name: String,
    points: Vec<Point>,
}

/// A mean time in seconds with the ends of its interval.
#[derive(Clone)]
struct Point {
    loss: f64,
    mean: f64,
    ends: Option<(f64, f64)>,
}

fn over_loss(
    title: impl Into<String>,
    caption: &str,
    curves: impl IntoIterator<Item = Curve>,
) -> Block {
    let mut lines = Lines {
        x_title: "loss on each interface (%)".into(),
        y_title: "transfer time (s)".into(),
        ..Lines::default()
    };
    for Curve { name, points } in curves {
        lines.intervals.extend(points.iter().filter_map(|point| {
            let (low, high) = point.ends?;
            Some(ErrorBar { series: name.clone(), x: 100.0 * point.loss, low, high })
        }));
        let points = points.iter().map(|point| (100.0 * point.loss, point.mean)).collect();
        lines.series.push(LineSeries { name, points });
    }
    Block::plot(title, caption, lines)
}

/// How to read the graphs of the repetitions.
const REPETITIONS: &str = "Mean of the repetitions with 95 % intervals by Student’s t.";
