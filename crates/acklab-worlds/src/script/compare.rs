//! A script's stimuli on the running kernel and on the simulated host, and where the two part.

use std::path::Path;

use acklab_packetdrill::run::{Outcome, Seen, Settings, Verdict, run_in};
use acklab_packetdrill::world::Virtual;

/// What both hosts did, beside each other.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The kernel's and the simulated host's.
    pub rows: Vec<(Option<Seen>, Option<Seen>)>,
    /// The first row that differs.
    pub parts_at: Option<usize>,
    /// The simulated host acts otherwise where its timers are as late as a kernel's may be: what the script does then
    /// and when the timers fire is a race, which decides nothing.
    pub races: bool,
    /// Counters that differ although nothing else does: names, the kernel's and the simulated host's.
    pub counters: Vec<(&'static str, u64, u64)>,
    /// Why a run ended before the script did.
    pub stopped: Option<String>,
}

/// How much later than the simulated host's a kernel's timer may fire: an eighth of what it waited (its timer
/// wheel), and what delayed ACKs, jiffies and the machine's load add, microseconds.
fn allowance(waited: u64) -> u64 {
    waited / 8 + 70_000
}

/// Plays what a script does to a host, without judging, to the kernel and to the simulated host.
pub fn compare(text: &str, folder: &Path, settings: &Settings) -> Beside {
    let settings = Settings { observe: true, ..settings.clone() };
    let kernel = super::run(text, folder, &settings);
    let simulated = acklab_packetdrill::run::run(text, folder, &settings);
    let beside = pair_up(&kernel, &simulated);
    if beside.parts_at.is_none() || beside.stopped.is_some() {
        return beside;
    }
    let late = run_in(&mut Virtual::late(), text, folder, &settings);
    let as_late = pair_up(&kernel, &late);
    if as_late.parts_at.is_none() {
        return as_late;
    }
    let races = pair_up(&late, &simulated).parts_at.is_some();
    Beside { races, ..beside }
}

fn pair_up(kernel: &Outcome, simulated: &Outcome) -> Beside {
    let stopped = [("kernel", kernel), ("simulated host", simulated)]
        .into_iter()
        .find(|(_, outcome)| outcome.verdict != Verdict::Pass)
        .map(|(name, Outcome { line, message, .. })| format!("{name}, line {line}: {message}"));
    // A timer's packet and an event of the script may change places in real time; packets among themselves may not.
    let is_packet = |seen: &&Seen| seen.what.starts_with('>');
    let (kernel_packets, kernel_rest): (Vec<_>, Vec<_>) = kernel.seen.iter().partition(is_packet);
    let (host_packets, host_rest): (Vec<_>, Vec<_>) = simulated.seen.iter().partition(is_packet);
    let mut rows = pair(&kernel_packets, &host_packets);
    let packets = rows.len();
    rows.extend(pair(&kernel_rest, &host_rest));
    let mut before = 0;
    let parts_at = rows.iter().enumerate().position(|(index, row)| match row {
        (Some(kernel), Some(host)) => {
            before = if index == packets { 0 } else { before };
            let late = allowance(host.at.saturating_sub(before));
            before = host.at;
            kernel.what != host.what || kernel.at.abs_diff(host.at) > late
        }
        _ => true,
    });
    let both = kernel.counters.iter().zip(&simulated.counters);
    let counters = if parts_at.is_none() {
        both.filter(|(kernel, host)| kernel.1 != host.1).map(|(k, h)| (k.0, k.1, h.1)).collect()
    } else {
        Vec::new()
    };
    Beside { rows, parts_at, races: false, counters, stopped }
}

fn pair(kernel: &[&Seen], host: &[&Seen]) -> Vec<(Option<Seen>, Option<Seen>)> {
    let length = kernel.len().max(host.len());
    let at = |all: &[&Seen], index: usize| all.get(index).map(|&seen| seen.clone());
    (0..length).map(|index| (at(kernel, index), at(host, index))).collect()
}

impl Beside {
    /// Rows around where the two part, as text.
    pub fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let at = self.parts_at.unwrap_or(self.rows.len());
        let show = |seen: &Option<Seen>| {
            seen.as_ref().map_or_else(
                || "nothing".to_owned(),
                |seen| format!("{:.6} {}", seen.at as f64 / 1e6, seen.what),
            )
        };
        let shown = self
            .rows
            .iter()
            .enumerate()
            .skip(at.saturating_sub(6))
            .take(if at < self.rows.len() { 40 } else { 0 });
        for (index, (kernel, host)) in shown {
            if index < at {
                let _ = writeln!(text, "      both {}", show(kernel));
            } else {
                let _ = writeln!(text, "    kernel {}", show(kernel));
                let _ = writeln!(text, "      host {}", show(host));
            }
        }
        text
    }
}
