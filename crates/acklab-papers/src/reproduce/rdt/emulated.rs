//! What the experiments came to on real packets: as data, and as a section of the report.

use acklab_stats::MeanInterval;
use serde_json::{Value, json};

use super::experiment::Experiments;
use super::page::{percent, plus_minus};
use super::paper::Row;
use super::today;
use acklab_lab::report::{Block, Cell, Column, Row as TableRow, Table};

/// One emulated transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// As the protocol measures it, seconds.
    pub seconds: f64,
    /// Bytes that left the sender, IP headers included.
    pub wire_bytes: u64,
    /// Packets that left it.
    pub packets: u64,
    /// The first packets as they left the source, path and sequence number; of the course protocol.
    pub log: Vec<(usize, u16)>,
    /// 99th percentile of the emulator's lateness, us.
    pub lateness_us: f64,
    /// 99th percentile of how late the course's sender woke, us: time that its processor was not there.
    pub wake_us: Option<f64>,
    /// Why it cannot be trusted; empty if it can.
    pub doubts: Vec<String>,
}

/// Repetitions of one experiment with both protocols.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The paper's row.
    pub paper: Row,
    /// The course protocol.
    pub course: Vec<Transfer>,
    /// Today's.
    pub today: Vec<Transfer>,
}

/// The mean time with its 95 % interval; `None` below two transfers.
pub fn interval(transfers: &[Transfer]) -> Option<MeanInterval> {
    let seconds: Vec<f64> = transfers.iter().map(|transfer| transfer.seconds).collect();
    MeanInterval::from_replications(&seconds, 0.95)
}

/// As JSON.
pub fn to_json(measured: &[Measured]) -> Value {
    let list = |transfers: &[Transfer]| -> Value {
        let one = |transfer: &Transfer| {
            json!({
                "seconds": transfer.seconds,
                "wire_bytes": transfer.wire_bytes,
                "packets": transfer.packets,
                "lateness_p99_us": transfer.lateness_us,
                "sender_woke_late_p99_us": transfer.wake_us,
                "doubts": transfer.doubts,
            })
        };
        transfers.iter().map(one).collect()
    };
    let row = |measured: &Measured| {
        json!({
            "loss": measured.paper.loss,
            "paths": measured.paper.paths,
            "course": list(&measured.course),
            "today": list(&measured.today),
        })
    };
    measured.iter().map(row).collect()
}

/// Real packets beside virtual time.
pub(super) fn blocks(
    measured: &[Measured],
    ideal: &Experiments,
    today: &[today::Measured],
    size: usize,
) -> Vec<Block> {
    if measured.is_empty() {
        let text = "Not run. `acklab reproduce rdt --emulate 3`, as root on Linux, sends real packets; that \
                    takes as long as the transfers do, about five minutes for each repetition.";
        return vec![Block::Text(text.into())];
    }
    let columns = vec![
        Column::number("Loss", "%"),
        Column::number("Paths", ""),
        Column::number("Course, virtual time", "s"),
        Column::number("Course, emulated", "s"),
        Column::number("acklab, virtual time", "s"),
        Column::number("acklab send, emulated", "s"),
        Column::number("Course, on the wire", "of the file"),
        Column::number("acklab send, on the wire", "of the file"),
        Column::number("Lateness, p99 at most", "us"),
        Column::number("Runs", "in doubt"),
    ];
    let rows = measured.iter().zip(&ideal.measured).zip(today).map(|((measured, ideal), today)| {
        let both = || measured.course.iter().chain(&measured.today);
        let doubtful = both().filter(|transfer| !transfer.doubts.is_empty()).count();
        let cells = vec![
            percent(measured.paper),
            Cell::count(measured.paper.paths as u64),
            mean(ideal.interval()),
            mean(interval(&measured.course)),
            mean(today.interval()),
            mean(interval(&measured.today)),
            Cell::measure(wire_share(&measured.course, size)),
            Cell::measure(wire_share(&measured.today, size)),
            Cell::measure(both().map(|transfer| transfer.lateness_us).fold(0.0, f64::max)),
            Cell::text(format!("{doubtful} of {}", both().count())),
        ];
        TableRow { cells, choice: None, flagged: doubtful > 0 }
    });
    let runs = measured.first().map_or(0, |measured| measured.course.len());
    vec![Block::Table(Table {
        caption: format!("Both protocols over emulated links, {runs} repetitions each"),
        columns,
        rows: rows.collect(),
        note: Some(
            "The course protocol’s sender is not slowed down here. acklab send is encrypted, hashes the file, and \
             is timed until the receiver has said that everything is stored. A run is in doubt where the \
             emulator was more than 1 ms late with 1 % of the packets, or the course’s sender with 1 % of its \
             time-outs: then a busy machine makes it slower than it is."
                .into(),
        ),
    })]
}

/// A mean with its interval, or a dash where there is none.
pub(super) fn mean(interval: Option<MeanInterval>) -> Cell {
    interval.map_or_else(|| Cell::text("–"), |i| plus_minus(i.mean, i.half_width))
}

fn wire_share(transfers: &[Transfer], size: usize) -> f64 {
    let bytes: u64 = transfers.iter().map(|transfer| transfer.wire_bytes).sum();
    bytes as f64 / (transfers.len() as f64 * size as f64)
}
