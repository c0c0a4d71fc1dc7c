//! The report: claims first, then table 4, then the numbers, then every figure in the paper's order.

use super::claims::Outcome;
use super::configuration::{Measured, TABLE_4};
use super::{PRESETS, Preset, Reproduction, figures};
use acklab_lab::report::{
    Block, Cell, Column, Page, ReportError, Row, Section, Table, Tone, Verdict,
};

/// The report as one HTML file.
pub fn html(reproduction: &Reproduction) -> Result<String, ReportError> {
    let first = &reproduction.presets[0];
    let mut sections = vec![
        section("The paper’s claims", vec![Block::Table(claims(&reproduction.presets))]),
        section("Table 4", reproduction.presets.iter().map(table4).map(Block::Table).collect()),
    ];
    for preset in &reproduction.presets {
        let title = format!("What was measured: {}", preset.name);
        let tables = vec![
            Block::Table(numbers("Dumbbell (section 4)", &preset.dumbbell, true)),
            Block::Table(numbers("Daisy chain (section 3)", &preset.daisy, false)),
        ];
        sections.push(section(&title, tables));
    }
    let title = format!("Figures 2 to 5 and 10 to 35, preset {}", first.name);
    sections.push(section(&title, figures::blocks(&reproduction.traces, &first.table4)));
    let command = format!(
        "acklab reproduce ance --seed {} --reps {}",
        reproduction.seed, reproduction.replications
    );
    let page = Page {
        title: "acklab reproduce ance".into(),
        subject: "Sup, de Moraes, Bauchspiess: Acknowledge-Based Non-Congestion Estimation (2020)"
            .into(),
        verdict: verdict(reproduction),
        sections,
        terms: vec!["rtt", "cdf"],
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
    let total = reproduction.presets[0].claims.len();
    let counts: Vec<String> = reproduction
        .presets
        .iter()
        .map(|preset| format!("{} under {}", preset.count(Outcome::Holds), preset.name))
        .collect();
    let overlaps: Vec<String> = reproduction
        .presets
        .iter()
        .map(|preset| {
            let rows = preset.table4.iter().filter(|row| row.overlaps()).count();
            format!("{rows} under `{}`", preset.name)
        })
        .collect();
    Verdict {
        tone: Tone::Neutral,
        headline: format!("Of the paper’s {total} claims hold here: {}.", counts.join(", ")),
        explanation: vec![
            format!(
                "Of the {} intervals of its table 4, ours overlap: {}.",
                TABLE_4.len(),
                overlaps.join(", ")
            ),
            "The paper leaves open what decides much of this; `plain` and `paper-fit` are two readings of \
             it, `literal` takes its words and today’s RFCs as they stand. What each open point does \
             stands in docs/ance-sensitivity.md."
                .into(),
            format!(
                "{} replications of each configuration. A claim of more or less holds if the 95 % interval \
                 of the mean difference, over the same seeds, lies on its side for every technique named; \
                 it fails if one lies on the other side, and is open otherwise.",
                reproduction.replications
            ),
        ],
        fixes: vec![],
    }
}

fn claims(presets: &[Preset]) -> Table {
    let mut columns = vec![Column::text("Section"), Column::text("Claim, in our words")];
    for name in PRESETS {
        columns.push(Column::text(name));
    }
    columns.push(Column::text("Figures under the first"));
    let rows = (0..presets[0].claims.len()).map(|index| {
        let first = &presets[0].claims[index];
        let mut cells = vec![Cell::text(first.claim.place), Cell::text(first.claim.text)];
        cells.extend(presets.iter().map(|preset| Cell::text(preset.claims[index].outcome.word())));
        cells.push(Cell::text(first.figures.clone()));
        let flagged = presets[..2].iter().any(|p| p.claims[index].outcome != Outcome::Holds);
        Row { cells, choice: None, flagged }
    });
    Table {
        caption: "Marked: does not hold, or is open, under one of the first two readings.".into(),
        columns,
        rows: rows.collect(),
        note: None,
    }
}

fn table4(preset: &Preset) -> Table {
    let columns = vec![
        Column::text("Technique"),
        Column::text("Paper’s interval"),
        Column::text("from"),
        Column::text("Ours"),
        Column::text("from"),
        Column::text("Overlap"),
    ];
    let rows = preset.table4.iter().map(|row| {
        let (low, high) = row.interval();
        let report = &row.ours.report;
        let cells = vec![
            Cell::text(row.paper.technique.name),
            Cell::text(format!("{} to {}", row.paper.interval.0, row.paper.interval.1)),
            Cell::text(format!("{} of {}", row.paper.counts.0, row.paper.counts.1)),
            Cell::text(format!("{low:.3} to {high:.3}")),
            Cell::text(format!("{} of {}", report.successes.unwrap_or(0), report.runs)),
            Cell::text(if row.overlaps() { "yes" } else { "no" }),
        ];
        Row { cells, choice: None, flagged: !row.overlaps() }
    });
    Table {
        caption: format!("Preset {}: probability that the ITAE passes 8727 rad s within 30 s", preset.name),
        columns,
        rows: rows.collect(),
        note: Some(
            "Sequential Clopper-Pearson, 95 % confidence, stopped when the interval is at most 0.1 wide. The \
             paper prints intervals only; the counts are those that give them, truncated."
                .into(),
        ),
    }
}

fn numbers(caption: &str, measured: &[Measured], control: bool) -> Table {
    let mut columns = vec![
        Column::text("Technique"),
        Column::number("Throughput", "Mbit/s"),
        Column::number("Queue, mean", "packets"),
        Column::number("Queue, p95", "packets"),
        Column::number("Queue empty", "%"),
        Column::number("Link idle", "%"),
        Column::number("Drops", "packets"),
        Column::number("Marks", "packets"),
    ];
    if control {
        columns.push(Column::number("Jain’s index", ""));
        columns.push(Column::number("ITAE, mean", "rad s"));
        columns.push(Column::number("ITAE over 8727", "% of runs"));
        columns.push(Column::number("Loop delay, mean", "ms"));
    }
    let rows = measured.iter().map(|one| {
        let mut cells = vec![
            Cell::text(one.technique.name),
            Cell::measure(one.mean("throughput_bps") / 1e6),
            Cell::measure(one.mean("queue_packets")),
            Cell::measure(one.p95("queue_packets")),
            Cell::measure(100.0 * one.mean("queue_empty_share")),
            Cell::measure(100.0 * one.mean("idle_share")),
            Cell::measure(one.mean("drops")),
            Cell::measure(one.mean("marks")),
        ];
        if control {
            cells.push(Cell::measure(one.mean("jain")));
            cells.push(Cell::measure(one.mean("itae_rad_s")));
            cells.push(Cell::measure(100.0 * one.exceedance().share()));
            cells.push(Cell::measure(one.mean("loop_delay_ms")));
        }
        Row { cells, choice: None, flagged: false }
    });
    Table { caption: caption.into(), columns, rows: rows.collect(), note: None }
}
