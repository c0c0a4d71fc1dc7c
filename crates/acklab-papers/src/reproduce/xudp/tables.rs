//! The report's tables.

use super::{Reproduction, Run, paper, parameters as declared};
use acklab_lab::report::{Cell, Column, Row, Table};

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

pub(super) fn stream(reproduction: &Reproduction) -> Table {
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

pub(super) fn totals(reproduction: &Reproduction) -> Table {
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
pub(super) fn one_at_a_time() -> Table {
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

pub(super) fn frames(runs: &[Run]) -> Table {
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

pub(super) fn policies(reproduction: &Reproduction) -> Table {
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

pub(super) fn changes(reproduction: &Reproduction) -> Table {
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

pub(super) fn parameters(reproduction: &Reproduction) -> Table {
    let columns =
        vec![Column::text("Parameter"), Column::text("Value"), Column::text("What it is")];
    let rows = declared::PARAMETERS.iter().zip(reproduction.settings.values()).map(
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
/// Today's protocol on the same wire.
pub(super) fn today(runs: &[Run]) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Rate", "KB/s"),
        Column::number("Time", "s"),
        Column::number("Received", "parcels"),
        Column::number("of", "parcels"),
        Column::number("Round trip, mean", "ms"),
        Column::number("Window, mean", "packets"),
    ];
    let rows = runs.iter().map(|run| {
        let figures = &run.figures;
        let cells = vec![
            Cell::text(run.name),
            Cell::measure(figures.rate() / 1e3),
            Cell::measure(figures.seconds),
            Cell::count(run.parcels.0),
            Cell::count(run.parcels.1),
            Cell::measure(figures.rtt_ms),
            Cell::measure(figures.window),
        ];
        Row { cells, choice: None, flagged: false }
    });
    Table {
        caption: "The same parcels over reliable UDP as this program has it (docs/rudp.md), on computers that \
                  take no time; and the protocol of 1997 on such."
            .into(),
        columns,
        rows: rows.collect(),
        note: Some(
            "Today’s packets are 1472 bytes, and its round trip is smoothed and has the delay taken off that the \
             receiver reports for each ACK, so a timer shows in the rate more than in it."
                .into(),
        ),
    }
}
