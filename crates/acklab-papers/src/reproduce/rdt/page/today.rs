//! Today's protocol in the report: its times beside the course's.

use acklab_stats::MeanInterval;

use super::percent;
use crate::reproduce::rdt::emulated::mean;
use crate::reproduce::rdt::paper::{LOSSES, Row as PaperRow};
use crate::reproduce::rdt::{Reproduction, today};
use acklab_lab::report::{Block, Cell, Column, Figure, LineSeries, Lines, Plot, Row, Table};

pub(super) fn blocks(reproduction: &Reproduction) -> Vec<Block> {
    let text = format!(
        "acklab’s reliable UDP over the same interfaces, in virtual time. It has no fixed window, so each path \
         has a rate here, {} Mbit/s with {:.0} ms of queue, of which the course protocol would use a twentieth. \
         Its time has the handshake in it.",
        today::RATE.as_bps() / 1_000_000,
        today::QUEUE.as_millis_f64(),
    );
    let columns = vec![
        Column::number("Loss", "%"),
        Column::number("Paths", ""),
        Column::number("Paper", "s"),
        Column::number("Course, no processor time", "s"),
        Column::number("acklab", "s"),
        Column::number("median", "s"),
        Column::number("longest", "s"),
        Column::number("Times as fast", "by the median"),
        Column::number("Course, sent", "packets per packet"),
        Column::number("acklab, on the wire", "of the file"),
    ];
    let ideal = &reproduction.experiments[0];
    let rows = reproduction.today.iter().zip(&ideal.measured).map(|(today, course)| {
        let ours = today.interval();
        let middle = today.median_and_longest();
        let cells = vec![
            percent(today.paper),
            Cell::count(today.paper.paths as u64),
            Cell::measure(today.paper.mean),
            mean(course.interval()),
            mean(ours),
            Cell::measure_or_dash(middle.map(|(median, _)| median)),
            Cell::measure_or_dash(middle.map(|(_, longest)| longest)),
            Cell::measure_or_dash(middle.map(|(median, _)| course.mean() / median)),
            Cell::measure(course.tries(ideal.chunks)),
            Cell::measure(today.wire_share(reproduction.plan.size)),
        ];
        Row { cells, choice: None, flagged: ours.is_none() }
    });
    let table = Table {
        caption: "The same file, the same losses".into(),
        columns,
        rows: rows.collect(),
        note: None,
    };
    let [both, alone] = today_graphs(reproduction);
    vec![Block::Text(text), both, alone, Block::Table(table)]
}

/// Both protocols, and today's alone, which the course's would press to the ground.
fn today_graphs(reproduction: &Reproduction) -> [Block; 2] {
    let ideal = &reproduction.experiments[0];
    let course = ideal.measured.iter().map(|m| ("course", m.paper, m.interval()));
    let today: Vec<_> =
        reproduction.today.iter().map(|m| ("acklab", m.paper, m.interval())).collect();
    let both: Vec<_> = course.chain(today.iter().copied()).collect();
    [
        Block::Figure(protocols("Transfer time, hosts that cost nothing", &both)),
        Block::Figure(protocols("acklab alone", &today)),
    ]
}

fn protocols(title: &str, rows: &[(&str, PaperRow, Option<MeanInterval>)]) -> Figure<Plot> {
    let (mut series, mut intervals) = (Vec::new(), Vec::new());
    for rows in rows.chunks(LOSSES.len()) {
        let Some((protocol, paper, _)) = rows.first() else { continue };
        let name =
            format!("{protocol}, {}", if paper.paths == 1 { "one path" } else { "two paths" });
        let known = rows.iter().filter_map(|(_, row, interval)| interval.map(|i| (row.loss, i)));
        let points = known.map(|(loss, interval)| {
            let percent = 100.0 * loss;
            intervals.push((name.clone(), percent, interval.low, interval.high));
            (percent, interval.mean)
        });
        let points = points.collect();
        series.push(LineSeries { name, points });
    }
    Figure {
        title: title.into(),
        caption: "Mean of the repetitions with 95 % intervals by Student’s t.".into(),
        drawing: Plot::Lines(Lines {
            x_title: "loss on each interface (%)".into(),
            y_title: "transfer time (s)".into(),
            series,
            intervals,
            ..Lines::default()
        }),
    }
}
