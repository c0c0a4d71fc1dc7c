//! The report: claims, the paper's tables beside ours, time against loss, stop rules, a router's death.

mod today;

use std::fmt::Write as _;

use super::claims::{self, Judged};
use super::emulated;
use super::experiment::{Experiments, FITTED, Machine};
use super::paper::{LOSSES, ROWS, Row as PaperRow, SIZE};
use super::stopping::Rule;
use super::{DeadPath, Reproduction, Stopping};
use crate::reproduce::ance::claims::Outcome;
use acklab_lab::report::{
    Block, Cell, Column, Figure, LineSeries, Lines, Page, Plot, ReportError, Row, Section, Table,
    Tone, Verdict,
};

/// The report as one HTML file.
pub fn html(reproduction: &Reproduction) -> Result<String, ReportError> {
    let plan = reproduction.plan;
    let mut command = format!(
        "acklab reproduce rdt --seed {} --repetitions {} --size {}",
        plan.seed, plan.repetitions, plan.size
    );
    if let Some(measured) = reproduction.emulated.first() {
        let _ = write!(command, " --emulate {}", measured.course.len());
    }
    let page = Page {
        title: "acklab reproduce rdt".into(),
        subject:
            "Sehlaver, Yalcinkaya: CENG 435 term project part II, a reliable transfer over UDP"
                .into(),
        verdict: verdict(reproduction),
        sections: vec![
            section("The paper’s claims", vec![Block::Table(claims(reproduction))]),
            section("Tables 1 and 2", tables(reproduction)),
            section("Time against loss", graphs(reproduction)),
            section("Today’s protocol in the same network", today::blocks(reproduction)),
            section("Real packets", real(reproduction)),
            section("When to stop repeating", stop_rules(&reproduction.stopping)),
            section("A router that dies", vec![Block::Table(dead(&reproduction.dead))]),
        ],
        terms: vec!["rtt"],
        conditions: vec![
            ("command".into(), command),
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            ("world".into(), "virtual time".into()),
        ],
    };
    page.to_html()
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { title: title.into(), choice: None, blocks }
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let claims = &reproduction.claims;
    let holds = |index: usize| {
        claims.iter().filter(|claim| claim.outcomes[index] == Outcome::Holds).count()
    };
    let counts: Vec<String> = reproduction
        .experiments
        .iter()
        .enumerate()
        .map(|(index, e)| format!("{} with {}", holds(index), e.machine.name))
        .collect();
    let mut explanation = vec![
        "The protocol is the authors’ own, odd parts included, in the network that they describe: 3 ms and the \
         same loss on each of four interfaces there and back, and half a millisecond per hop that is ours."
            .into(),
    ];
    if reproduction.plan.size == SIZE {
        explanation.extend(reproduction.experiments.iter().map(distance));
    } else {
        explanation.push(format!(
            "The file has {} bytes and not the paper’s {SIZE}: times cannot be compared with its tables.",
            reproduction.plan.size
        ));
    }
    Verdict {
        tone: Tone::Neutral,
        headline: format!("Of {} claims hold here: {}.", claims.len(), counts.join(", ")),
        explanation,
        fixes: vec![],
    }
}

/// How far a machine is from the paper, in a sentence.
fn distance(experiments: &Experiments) -> String {
    let off = |m: &super::experiment::Measured| 100.0 * (m.mean() / m.paper.mean - 1.0);
    let offs: Vec<f64> = experiments.measured.iter().map(off).collect();
    let low = offs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = offs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "With {}: our six means are {low:+.0} to {high:+.0} % from the paper’s, and two paths gain {} \
         (paper: {}).",
        experiments.machine.name,
        claims::times(&claims::ratios(experiments)),
        claims::times(&claims::paper_ratios()),
    )
}

fn claims(reproduction: &Reproduction) -> Table {
    let mut columns = vec![Column::text("Section"), Column::text("Claim, in our words")];
    columns.extend(reproduction.experiments.iter().map(|e| Column::text(e.machine.name)));
    columns.push(Column::text("Figures"));
    let row = |claim: &Judged| {
        let mut cells = vec![Cell::text(claim.place), Cell::text(claim.text)];
        cells.extend(claim.outcomes.iter().map(|outcome| Cell::text(outcome.word())));
        cells.push(Cell::text(claim.figures.clone()));
        let flagged = claim.outcomes.iter().any(|outcome| *outcome != Outcome::Holds);
        Row { cells, choice: None, flagged }
    };
    Table {
        caption: "Marked: does not hold, or is open, under one reading of the hosts’ costs.".into(),
        columns,
        rows: reproduction.claims.iter().map(row).collect(),
        note: Some(
            "Times are compared by 95 % intervals over repetitions with the same seeds. What does not depend \
             on the hosts has the same word in every column."
                .into(),
        ),
    }
}

fn tables(reproduction: &Reproduction) -> Vec<Block> {
    let text = "A margin of the paper is in seconds: its program compares seconds with 0.1, and its tables print \
                them times a hundred as percent. Ours are 95 % intervals by Student’s t.";
    let mut blocks = vec![Block::Text(text.into())];
    blocks.extend([1, 2].map(|paths| Block::Table(table(reproduction, paths))));
    blocks.push(Block::Table(costs(reproduction)));
    blocks
}

fn table(reproduction: &Reproduction, paths: usize) -> Table {
    let mut columns = vec![Column::number("Loss", "%"), Column::number("Paper", "s")];
    for experiments in &reproduction.experiments {
        columns.push(Column::number(experiments.machine.name, "s"));
        columns.push(Column::number("of the paper’s", "%"));
    }
    let rows = (0..LOSSES.len()).map(|loss| {
        let paper = reproduction.experiments[0].at(loss, paths).paper;
        let mut cells = vec![percent(paper), plus_minus(paper.mean, paper.margin_seconds())];
        for experiments in &reproduction.experiments {
            let measured = experiments.at(loss, paths);
            cells.push(match measured.interval() {
                Some(interval) => plus_minus(interval.mean, interval.half_width),
                None => Cell::text("not all ended"),
            });
            cells.push(Cell::measure(100.0 * measured.mean() / paper.mean));
        }
        Row { cells, choice: None, flagged: false }
    });
    let through = if paths == 1 { "one router" } else { "two routers" };
    Table {
        caption: format!("Table {paths}: transfer time through {through}"),
        columns,
        rows: rows.collect(),
        note: None,
    }
}

pub(super) fn percent(row: PaperRow) -> Cell {
    Cell { text: format!("{:.0}", 100.0 * row.loss), value: Some(row.loss) }
}

pub(super) fn plus_minus(mean: f64, half_width: f64) -> Cell {
    Cell { text: format!("{mean:.2} ± {half_width:.2}"), value: Some(mean) }
}

fn costs(reproduction: &Reproduction) -> Table {
    let mut columns = vec![
        Column::number("Loss", "%"),
        Column::number("Paths", ""),
        Column::number("1/(1-p)^4", "transmissions"),
    ];
    for experiments in &reproduction.experiments {
        columns.push(Column::number(experiments.machine.name, "transmissions"));
    }
    columns.push(Column::number("Ends unanswered", "% of transfers"));
    columns.push(Column::number("tried for", "s"));
    let rows = ROWS.iter().enumerate().map(|(index, row)| {
        let passes = (1.0 - row.loss) * (1.0 - row.loss);
        let mut cells = vec![
            percent(*row),
            Cell::count(row.paths as u64),
            Cell::measure(1.0 / (passes * passes)),
        ];
        for experiments in &reproduction.experiments {
            cells.push(Cell::measure(experiments.measured[index].tries(experiments.chunks)));
        }
        let fitted = reproduction.experiments.iter().find(|e| e.machine == FITTED);
        let (share, tried) = fitted.map_or((f64::NAN, f64::NAN), |e| e.measured[index].vain_ends());
        cells.extend([Cell::measure(100.0 * share), Cell::measure(tried)]);
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "What a packet costs, and what becomes of the end".into(),
        columns,
        rows: rows.collect(),
        note: Some(format!(
            "Transmissions per packet of the file. The receiver answers the end packet once and is gone; where \
             that answer is lost, the sender repeats the end a thousand times, after the time that it reports \
             (with {}).",
            FITTED.name
        )),
    }
}

fn graphs(reproduction: &Reproduction) -> Vec<Block> {
    reproduction.experiments.iter().map(|e| Block::Figure(graph(e))).collect()
}

fn graph(experiments: &Experiments) -> Figure<Plot> {
    let Machine { name, .. } = experiments.machine;
    let (mut series, mut intervals) = (Vec::new(), Vec::new());
    for (paths, here, theirs) in
        [(1, "one path", "one path, paper"), (2, "two paths", "two paths, paper")]
    {
        let percent = |loss: usize| 100.0 * LOSSES[loss];
        let ours = |loss| (percent(loss), experiments.at(loss, paths).mean());
        let paper = |loss| (percent(loss), experiments.at(loss, paths).paper.mean);
        series.push(LineSeries { name: here.into(), points: [0, 1, 2].map(ours).into() });
        series.push(LineSeries { name: theirs.into(), points: [0, 1, 2].map(paper).into() });
        for loss in 0..LOSSES.len() {
            let measured = experiments.at(loss, paths);
            if let Some(interval) = measured.interval() {
                intervals.push((here.into(), percent(loss), interval.low, interval.high));
            }
            let (mean, margin) = (measured.paper.mean, measured.paper.margin_seconds());
            intervals.push((theirs.into(), percent(loss), mean - margin, mean + margin));
        }
    }
    Figure {
        title: format!("Figures 1 to 3, {name}"),
        caption: "Mean transfer time. Bars are 95 % intervals by Student’s t, and the paper’s margins; both are \
                  narrow."
            .into(),
        drawing: Plot::Lines(Lines {
            x_title: "loss on each interface (%)".into(),
            y_title: "transfer time (s)".into(),
            series,
            intervals,
            ..Lines::default()
        }),
    }
}

fn real(reproduction: &Reproduction) -> Vec<Block> {
    let Reproduction { emulated, experiments, today, plan, .. } = reproduction;
    emulated::blocks(emulated, &experiments[0], today, plan.size)
}

fn stop_rules(stopping: &[Stopping]) -> Vec<Block> {
    let formulas = Rule::ALL.map(|rule| (rule.name().to_owned(), rule.formula().to_owned()));
    let columns = vec![
        Column::number("Loss", "%"),
        Column::number("Paths", ""),
        Column::text("Rule"),
        Column::number("Runs", ""),
        Column::number("Mean", "s"),
        Column::number("Interval", "s"),
        Column::number("Time of the runs", "h"),
        Column::number("Runs, median", "of campaigns"),
        Column::number("Stops at once", "% of campaigns"),
        Column::number("Holds the mean", "% of campaigns"),
    ];
    let rows = stopping.iter().map(|stopping| {
        let Stopping { row, rule, campaign, campaigns } = stopping;
        let runs = if campaign.stopped { "" } else { " (no end)" };
        let cells = vec![
            percent(*row),
            Cell::count(row.paths as u64),
            Cell::text(rule.name()),
            Cell { text: format!("{}{runs}", campaign.runs), value: Some(campaign.runs as f64) },
            Cell::measure(campaign.mean),
            plus_minus(campaign.mean, campaign.margin),
            Cell::measure(campaign.mean * campaign.runs as f64 / 3600.0),
            Cell::count(campaigns.median_runs as u64),
            Cell::measure(100.0 * campaigns.at_once),
            Cell::measure(100.0 * campaigns.coverage),
        ];
        Row { cells, choice: None, flagged: campaigns.coverage < 0.93 }
    });
    let campaigns = stopping.first().map_or(0, |stopping| stopping.campaigns.campaigns);
    let table = Table {
        caption: format!("Each rule on each experiment, {}", FITTED.name),
        columns,
        rows: rows.collect(),
        note: Some(format!(
            "Runs, mean and interval: one campaign, runs in the order of the seeds. The last three columns: \
             {campaigns} campaigns each, of runs drawn from the repetitions, whose mean is the truth then. An \
             interval of 95 % should hold it in 95 % of campaigns; marked: in less than 93 %."
        )),
    };
    vec![Block::Facts(formulas.into()), Block::Table(table)]
}

fn dead(dead: &[DeadPath]) -> Table {
    let columns = vec![
        Column::text("Hosts"),
        Column::number("Both alive", "s"),
        Column::number("Second dies", "s"),
        Column::number("Longest time without an ACK", "s"),
    ];
    let rows = dead.iter().map(|dead| {
        let cells = vec![
            Cell::text(dead.machine.name),
            Cell::measure(dead.seconds[0]),
            Cell::measure(dead.seconds[1]),
            Cell::measure(dead.wait),
        ];
        Row { cells, choice: None, flagged: dead.wait >= 1.0 }
    });
    Table {
        caption: "5 % loss, two paths; the second router is dead from 5 s on".into(),
        columns,
        rows: rows.collect(),
        note: Some(
            "The window is shared: packets of the dead path fill it, and nothing moves until one of them has \
             had a thousand time-outs."
                .into(),
        ),
    }
}
