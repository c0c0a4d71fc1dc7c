//! The files of one case: made of runs, written, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acklab_core::segment::Flags;

use super::decimal::Decimal;
use super::layout::{CaseName, File};
use super::rows::{Delay, Fault, Left, Made, Point, Row, Sniffed, Table, Waited, letters, text};
use crate::exchange::Exchange;

/// One run as its two observers saw it; everything else follows from these.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRows {
    /// What the application made.
    pub made: Vec<Made>,
    /// What left.
    pub sniffed: Vec<Sniffed>,
    /// When each message left.
    pub left: Vec<Left>,
}

impl RunRows {
    /// Of a run; the reason where not every message left. Retransmissions are left out: the layout has no place for
    /// them, since its segments are told from each other by their lengths alone.
    pub fn of(exchange: &Exchange) -> Result<Self, String> {
        let (writes, left) = (&exchange.writes, exchange.left_at());
        if left.len() < writes.len() {
            return Err(format!("{} of {} messages left the sender", left.len(), writes.len()));
        }
        let seconds = |ns: u64| Decimal::new(i128::from(ns), 9);
        let made = writes.iter().zip(1..).map(|((at, _), id)| Made { id, at: seconds(*at) });
        let lengths = writes.iter().map(|(_, bytes)| u64::from(*bytes));
        let left = left.iter().zip(lengths).map(|(at, length)| Left { at: seconds(*at), length });
        let ends = exchange.ends.map(|end| format!("{}.{}", end.ip(), end.port()));
        let departures = exchange.departures();
        let first = departures.iter().filter(|one| one.new > 0 || one.segment.tcp.payload_len == 0);
        let sniffed = first.map(|one| Sniffed {
            at: seconds(one.segment.at),
            ends: ends.clone(),
            flags: letters(Flags(one.segment.tcp.flags.0)),
            length: u64::from(one.new),
        });
        let (made, sniffed, left) = (made.collect(), sniffed.collect(), left.collect());
        Ok(Self { made, sniffed, left })
    }

    /// Each message's way.
    pub fn waited(&self) -> impl Iterator<Item = Waited> {
        self.made.iter().zip(&self.left).map(|(made, left)| Waited::new(*made, *left))
    }
}

/// The distribution function of delays in us: a point for each value that occurs.
pub fn distribution(mut delays: Vec<Decimal>) -> Vec<Point> {
    delays.sort_unstable();
    let count = delays.len() as i128;
    let mut points: Vec<Point> = Vec::new();
    for (index, delay) in (1..).zip(delays) {
        // Rounded to the nearest, and exactly 1 at the end.
        let share = Decimal::new((index * SHARE_UNITS * 2 + count) / (2 * count), SHARE_DIGITS);
        let delay = delay.over_ten_to(3);
        match points.last_mut() {
            Some(last) if last.delay == delay => last.share = share,
            _ => points.push(Point { delay, share }),
        }
    }
    points
}

/// Writes the case into its folder below `data`: all of its files, or none.
pub fn write(data: &Path, name: &CaseName, runs: &[RunRows]) -> Result<(), Fault> {
    let folder = data.join(name.to_string());
    let unfinished = data.join(format!("{name}{UNFINISHED}"));
    let outcome = fill(&unfinished, runs).and_then(|()| {
        fs::rename(&unfinished, &folder).map_err(|error| Fault::in_file(&folder, error))
    });
    outcome.inspect_err(|_| {
        // What does not fit is not left lying about.
        let _ = fs::remove_dir_all(&unfinished);
    })
}

fn fill(folder: &Path, runs: &[RunRows]) -> Result<(), Fault> {
    fs::create_dir_all(folder).map_err(|error| Fault::in_file(folder, error))?;
    let put = |file: File, text: String| {
        let path = folder.join(file.name());
        let write = || -> io::Result<()> {
            let mut file = fs::File::create(&path)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| Fault::in_file(&path, error))
    };
    let mut delays = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        put(File::SenderOut(index), text(run.made.iter().copied()))?;
        put(File::Sniffer(index), text(run.sniffed.iter().cloned()))?;
        put(File::SnifferTimestamp(index), text(run.left.iter().copied()))?;
        put(File::AppNetDelay(index), text(run.waited()))?;
        delays.extend(run.waited().map(|waited| Delay { id: waited.made.id, delay: waited.delay }));
    }
    put(File::All, text(delays.iter().copied()))?;
    put(File::Cdf, text(distribution(delays.iter().map(|one| one.delay).collect())))
}

/// Removes what a writer that was killed left below `data`.
pub fn remove_unfinished(data: &Path) -> Result<(), Fault> {
    let entries = fs::read_dir(data).map_err(|error| Fault::in_file(data, error))?;
    for entry in entries {
        let path = entry.map_err(|error| Fault::in_file(data, error))?.path();
        if path.to_string_lossy().ends_with(UNFINISHED) {
            fs::remove_dir_all(&path).map_err(|error| Fault::in_file(&path, error))?;
        }
    }
    Ok(())
}

/// The files of a case as they are.
#[derive(Clone, Debug)]
pub struct CaseFiles {
    /// Its folder.
    pub path: PathBuf,
    /// What the folder says.
    pub name: CaseName,
    /// Run by run.
    pub runs: Vec<RunFiles>,
    /// `App-Net-Delay-ALL.txt`.
    pub all: Table<Delay>,
    /// `CDF.txt`.
    pub cdf: Table<Point>,
}

/// The files of a run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// `Sender-out-i.txt`.
    pub made: Table<Made>,
    /// `Sniffer-i.txt`.
    pub sniffed: Table<Sniffed>,
    /// `SnifferTimestamp-i.txt`.
    pub left: Table<Left>,
    /// `App-Net-Delay-Sniffer-i.txt`.
    pub waited: Table<Waited>,
}

impl RunFiles {
    /// What is written again.
    pub fn rows(&self) -> RunRows {
        RunRows {
            made: self.made.values().copied().collect(),
            sniffed: self.sniffed.values().cloned().collect(),
            left: self.left.values().copied().collect(),
        }
    }
}

impl CaseFiles {
    /// Reads the folder `path`; what is missing or cannot be read goes to `faults`. There are as many runs as there are
    /// `Sender-out-i.txt`.
    pub fn read(path: &Path, name: CaseName, faults: &mut Vec<Fault>) -> Self {
        let mut runs = 0;
        while path.join(File::SenderOut(runs).name()).exists() {
            runs += 1;
        }
        let run = |index, faults: &mut Vec<Fault>| RunFiles {
            made: table(path, File::SenderOut(index), faults),
            sniffed: table(path, File::Sniffer(index), faults),
            left: table(path, File::SnifferTimestamp(index), faults),
            waited: table(path, File::AppNetDelay(index), faults),
        };
        Self {
            path: path.to_owned(),
            name,
            runs: (0..runs).map(|index| run(index, faults)).collect(),
            all: table(path, File::All, faults),
            cdf: table(path, File::Cdf, faults),
        }
    }

    /// Delays of all runs, ms, in order.
    pub fn delays_ms(&self) -> Vec<f64> {
        let rows = self.runs.iter().flat_map(|run| run.waited.values());
        rows.map(|waited| waited.delay.over_ten_to(3).value()).collect()
    }

    /// Messages for each segment with payload.
    pub fn messages_per_segment(&self) -> f64 {
        let segments = self.runs.iter().flat_map(|run| run.sniffed.values());
        let segments = segments.filter(|segment| segment.length > 0).count();
        self.runs.iter().map(|run| run.made.rows.len()).sum::<usize>() as f64 / segments as f64
    }
}

fn table<R: Row>(folder: &Path, file: File, faults: &mut Vec<Fault>) -> Table<R> {
    Table::read(&folder.join(file.name()), faults)
}

/// Ends the names of folders that are being written.
const UNFINISHED: &str = ".unfinished";
/// Of the distribution function's values.
const SHARE_DIGITS: u32 = 9;
const SHARE_UNITS: i128 = 1_000_000_000;
