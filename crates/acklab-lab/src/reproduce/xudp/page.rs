//! The report: the answer, tables 8.1 and 8.2, the three graphs of each run, frames, policies, sensitivity.

use super::experiment::Figures;
use super::{REMOVED, Reproduction, Run, TIMER, TIMER_TWEAKED, TWEAKED, paper, sensitivity};
use crate::report::{
    Block, Cell, Column, Figure, LineSeries, Lines, Page, Plot, ReportError, Row, Section, Table,
    Tone, Verdict,
};

/// The report as one HTML file.
pub fn html(reproduction: &Reproduction) -> Result<String, ReportError> {
    let stream = vec![
        Block::Table(stream_table(reproduction)),
        Block::Table(totals(reproduction)),
        Block::Figure(together(&reproduction.stream)),
    ];
    let mut sections = vec![section("Tables 8.1 and 8.2", stream)];
    for run in &reproduction.stream {
        if run.name != TIMER_TWEAKED {
            sections.push(section(&format!("The three graphs: {}", run.name), graphs(run)));
        }
    }
    sections.push(section("Other ACK policies", vec![Block::Table(policies(reproduction))]));
    let mut frames = vec![Block::Table(frames_table(&reproduction.frames))];
    frames.extend(reproduction.frames.iter().map(|run| Block::Figure(received(run))));
    sections.push(section("Frames: tables 8.5 and 8.7", frames));
    let open = [changes(reproduction), one_at_a_time(), parameters(reproduction)];
    let open = open.map(Block::Table).into();
    sections.push(section("What the thesis leaves open", open));
    let page = Page {
        title: "acklab reproduce xudp".into(),
        subject: "Andrews: XUDP, A Real-Time Multimedia Networking Protocol (1997), sections 8.1, 8.2, 8.5, \
                  8.6"
        .into(),
        verdict: verdict(reproduction),
        sections,
        terms: vec!["delayed-ack", "rtt"],
        conditions: vec![
            ("command".into(), command(reproduction)),
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            ("world".into(), "virtual time".into()),
        ],
    };
    page.to_html()
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { title: title.into(), choice: None, blocks }
}

fn command(reproduction: &Reproduction) -> String {
    let sets = reproduction.settings.chosen().map(|(name, value)| format!(" --set {name}={value}"));
    format!("acklab reproduce xudp --seed {}{}", reproduction.seed, sets.collect::<String>())
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let [timer, removed, tweaked, corner] =
        [TIMER, REMOVED, TWEAKED, TIMER_TWEAKED].map(|name| reproduction.stream_run(name).figures);
    let kilobytes = |figures: Figures| figures.rate() / 1e3;
    Verdict {
        tone: Tone::Neutral,
        headline: format!(
            "Removing the 100 ms acknowledgment timer, and nothing else, makes the stream {:.1} times as fast: \
             {:.2} becomes {:.1} KB/s.",
            reproduction.factor(REMOVED),
            kilobytes(timer),
            kilobytes(removed),
        ),
        explanation: vec![
            format!(
                "The thesis has {} and {} KB/s, a factor of {:.1}; but between its two runs it also tweaked the \
                 window. Here that alone takes {:.2} to {:.1} KB/s with the timer, and {:.1} to {:.1} without.",
                paper::TABLE_8_1.rate_kbps,
                paper::TABLE_8_2.rate_kbps,
                paper::FACTOR,
                kilobytes(timer),
                kilobytes(corner),
                kilobytes(removed),
                kilobytes(tweaked),
            ),
            "Two things that the thesis does not tell are fitted to its figures: how long the server takes for a \
             packet (`host`) and how many commands about a complete parcel pass before the next begins \
             (`exchange`). With the timer each of these commands waits for it. What every open point does \
             stands in the last section."
                .into(),
            format!(
                "The timer is dear because everything waits for acknowledgments: a small window that starts \
                 again with every parcel, and one parcel at a time. With 64 parcels under way it costs next to \
                 nothing: {}.",
                many_ahead(reproduction)
            ),
        ],
        fixes: vec![],
    }
}

/// What the stream does with many parcels under way.
fn many_ahead(reproduction: &Reproduction) -> String {
    let row = reproduction.sensitivity.iter().find(|row| row.change == sensitivity::MANY_AHEAD);
    row.map_or_else(String::new, |row| {
        let [timer, removed] = [row.timer, row.removed].map(|figures| figures.rate() / 1e3);
        format!("{timer:.0} KB/s with it and {removed:.0} without")
    })
}

fn rate_columns(columns: &mut Vec<Column>) {
    columns.extend([
        Column::number("Rate", "KB/s"),
        Column::number("thesis", "KB/s"),
        Column::number("Round trip, mean", "ms"),
        Column::number("thesis", "ms"),
        Column::number("Window, mean", "packets"),
        Column::number("thesis", "packets"),
    ]);
}

fn rate_cells(run: &Run) -> Vec<Cell> {
    let printed =
        |value: fn(&paper::Printed) -> f64| Cell::measure_or_dash(run.printed.as_ref().map(value));
    vec![
        Cell::measure(run.figures.rate() / 1e3),
        printed(|table| table.rate_kbps),
        Cell::measure(run.figures.rtt_ms),
        printed(|table| table.rtt_ms),
        Cell::measure(run.figures.window),
        printed(|table| table.window),
    ]
}

fn stream_table(reproduction: &Reproduction) -> Table {
    let mut columns = vec![Column::text("Run"), Column::text("Table")];
    rate_columns(&mut columns);
    columns.push(Column::number("Factor", ""));
    let rows = reproduction.stream.iter().map(|run| {
        let table = run.printed.map_or("–", |table| table.table);
        let mut cells = vec![Cell::text(run.name), Cell::text(table)];
        cells.extend(rate_cells(run));
        cells.push(Cell::measure(reproduction.factor(run.name)));
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "A stream of 10,240-byte RELIABLE parcels in packets of 512 bytes over 10 Mbit/s; KB are 1000 \
                  bytes."
            .into(),
        columns,
        rows: rows.collect(),
        note: Some(format!("The thesis’s factor, from table 8.1 to table 8.2, is {:.1}.", paper::FACTOR)),
    }
}

fn totals(reproduction: &Reproduction) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Acknowledged", "KB"),
        Column::number("thesis", "KB"),
        Column::number("Time", "s"),
        Column::number("thesis", "s"),
        Column::number("Most in 100 ms", "KB/s"),
    ];
    let rows = reproduction.stream.iter().map(|run| {
        let printed = |value: fn(&paper::Printed) -> f64| {
            Cell::measure_or_dash(run.printed.as_ref().map(value))
        };
        let cells = vec![
            Cell::text(run.name),
            Cell::measure(run.figures.bytes / 1e3),
            printed(|table| table.kilobytes),
            Cell::measure(run.figures.seconds),
            printed(|table| table.seconds),
            Cell::measure(run.figures.peak / 1e3),
        ];
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "Totals of the same runs.".into(),
        columns,
        rows: rows.collect(),
        note: Some(
            "The thesis counts some bytes more than those of the parcels. It reads 750 KB/s off the steepest \
             part of its second run; with a fixed time per packet no part is that steep here."
                .into(),
        ),
    }
}

/// What the thesis's tables say about how parcels follow each other.
fn one_at_a_time() -> Table {
    let columns = vec![
        Column::text("Table"),
        Column::number("Round trip", "ms"),
        Column::number("Window", "packets"),
        Column::number("Window always full", "KB/s"),
        Column::number("One parcel at a time", "KB/s"),
        Column::number("Printed", "KB/s"),
    ];
    let rows = paper::TABLES.iter().map(|(table, bytes)| {
        let mut cells = vec![Cell::text(table.table)];
        cells.extend(
            [
                table.rtt_ms,
                table.window,
                table.window_full_kbps(),
                table.one_at_a_time_kbps(*bytes),
                table.rate_kbps,
            ]
            .map(Cell::measure),
        );
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "Why we let parcels follow one at a time: the thesis’s own means, put together.".into(),
        columns,
        rows: rows.collect(),
        note: Some(
            "One parcel at a time: its packets in rounds of the mean window, and one round trip more. That \
             comes within 17 % of tables 8.2, 8.7, 8.9 and 8.11. In 8.5 there was nothing to send for half of \
             the time; in 8.1 something else took nearly as long again, which we take for the exchange of \
             commands."
                .into(),
        ),
    }
}

fn figure(
    title: String,
    caption: &str,
    y_title: &str,
    series: Vec<LineSeries>,
    scatter: bool,
) -> Figure<Plot> {
    let x_title = "time (ms)".into();
    let lines = Lines { x_title, y_title: y_title.into(), series, scatter, ..Lines::default() };
    Figure { title, caption: caption.into(), drawing: Plot::Lines(lines) }
}

fn kilobytes(run: &Run) -> LineSeries {
    let points = run.log.progress().into_iter().map(|(at, bytes)| (at, bytes / 1e3)).collect();
    LineSeries { name: run.name.into(), points }
}

fn together(runs: &[Run]) -> Figure<Plot> {
    figure(
        "Acknowledged bytes of all runs".into(),
        "The steeper, the faster. Without the timer the stream is over when the others have hardly begun.",
        "acknowledged (KB)",
        runs.iter().map(kilobytes).collect(),
        false,
    )
}

fn graphs(run: &Run) -> Vec<Block> {
    let one = |points| vec![LineSeries { name: run.name.into(), points }];
    let of = |what: &str| format!("{what}: {}", run.name);
    vec![
        Block::Figure(figure(
            of("Bytes acknowledged"),
            "Sum of the parcels’ bytes acknowledged, each 20 ms, as in figures 8.1 and 8.4.",
            "acknowledged (KB)",
            vec![kilobytes(run)],
            false,
        )),
        Block::Figure(figure(
            of("Round trip times"),
            "Each packet: from its departure to its acknowledgment, over the 20 ms step in which that came, as in \
             figures 8.2 and 8.5.",
            "round trip (ms)",
            one(run.log.scatter()),
            true,
        )),
        Block::Figure(figure(
            of("Packets in network"),
            "The window, each 20 ms, as in figures 8.3 and 8.6.",
            "window (packets)",
            one(run.log.windows()),
            false,
        )),
    ]
}

fn received(run: &Run) -> Figure<Plot> {
    let points =
        run.log.received.iter().map(|(at, id)| (at.as_secs_f64() * 1e3, *id as f64)).collect();
    figure(
        format!("Parcels received: {}", run.name),
        "Number of each parcel over the time at which the receiver had all of it; gaps are parcels whose two \
         seconds ran out.",
        "parcel number",
        vec![LineSeries { name: run.name.into(), points }],
        true,
    )
}

fn frames_table(runs: &[Run]) -> Table {
    let mut columns = vec![
        Column::text("Run"),
        Column::number("Received", "parcels"),
        Column::number("thesis", "parcels"),
        Column::number("of", "parcels"),
    ];
    rate_columns(&mut columns);
    let rows = runs.iter().map(|run| {
        let printed = run.printed.and_then(|table| table.parcels);
        let mut cells = vec![
            Cell::text(run.name),
            Cell::count(run.parcels.0),
            printed.map_or_else(|| Cell::text("–"), |(received, _)| Cell::count(received)),
            Cell::count(run.parcels.1),
        ];
        cells.extend(rate_cells(run));
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "Bursts of 14,400-byte parcels at the start of each second; all but the first of each are \
                  obsolete after 2 s."
            .into(),
        columns,
        rows: rows.collect(),
        note: Some(
            "What limits twenty frames a second is the server’s time per packet: without it (host=0) every \
             parcel arrives. The thesis says the same of its unoptimised architecture (section 8.6). Loaded: \
             the time per packet is fitted to the rate, and the round trip follows; the thesis’s run went on \
             for eight seconds more."
                .into(),
        ),
    }
}

fn policies(reproduction: &Reproduction) -> Table {
    let columns = vec![
        Column::text("Acknowledges"),
        Column::number("Rate", "KB/s"),
        Column::number("Round trip, mean", "ms"),
        Column::number("Window, mean", "packets"),
    ];
    let rows = reproduction.policies.iter().map(|row| {
        let figures = &row.figures;
        let mut cells = vec![Cell::text(row.name)];
        cells.extend([figures.rate() / 1e3, figures.rtt_ms, figures.window].map(Cell::measure));
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "The stream under the first day’s window, with other policies at both servers."
            .into(),
        columns,
        rows: rows.collect(),
        note: None,
    }
}

fn changes(reproduction: &Reproduction) -> Table {
    let columns = vec![
        Column::text("Changed"),
        Column::number("Rate, timer", "KB/s"),
        Column::number("Round trip", "ms"),
        Column::number("Window", "packets"),
        Column::number("Rate, removed", "KB/s"),
        Column::number("Round trip", "ms"),
        Column::number("Window", "packets"),
        Column::number("Factor", ""),
    ];
    let rows = reproduction.sensitivity.iter().map(|row| {
        let change = if row.change.is_empty() { "nothing" } else { &row.change };
        let mut cells = vec![Cell::text(change)];
        for figures in [&row.timer, &row.removed] {
            cells.extend([figures.rate() / 1e3, figures.rtt_ms, figures.window].map(Cell::measure));
        }
        cells.push(Cell::measure(row.factor()));
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "The stream with one parameter changed, under the first day’s window.".into(),
        columns,
        rows: rows.collect(),
        note: None,
    }
}

fn parameters(reproduction: &Reproduction) -> Table {
    let columns =
        vec![Column::text("Parameter"), Column::text("Value"), Column::text("What it is")];
    let rows = super::parameters::PARAMETERS.iter().zip(reproduction.settings.values()).map(
        |(parameter, (name, value))| {
            let cells = [name, &value.to_string(), parameter.doc].map(Cell::text).into();
            let flagged = reproduction.settings.is_chosen(name);
            Row { cells, choice: None, flagged }
        },
    );
    Table {
        caption: "Every parameter, as run; --set name=value changes one.".into(),
        columns,
        rows: rows.collect(),
        note: None,
    }
}
