//! A script's stimuli on the running kernel and on the simulated host, and where the two part.

use std::path::Path;

use acklab_packetdrill::run::{Outcome, Seen, Settings, Verdict};

/// What both hosts did, beside each other.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The kernel's and the simulated host's.
    pub rows: Vec<(Option<Seen>, Option<Seen>)>,
    /// The first row that differs.
    pub parts_at: Option<usize>,
    /// Why a run ended before the script did.
    pub stopped: Option<String>,
}

/// How much later than the simulated host's a kernel's timer may fire: an eighth of what it waited (its timer
/// wheel), a jiffy and the machine's load, microseconds.
fn allowance(waited: u64) -> u64 {
    waited / 8 + 12_000
}

/// Plays what a script does to a host, without judging, to the kernel and to the simulated host.
pub fn compare(text: &str, folder: &Path, settings: &Settings) -> Beside {
    let settings = Settings { observe: true, ..settings.clone() };
    let kernel = super::run(text, folder, &settings);
    let simulated = acklab_packetdrill::run::run(text, folder, &settings);
    let stopped = [("kernel", &kernel), ("simulated host", &simulated)]
        .into_iter()
        .find(|(_, outcome)| outcome.verdict != Verdict::Pass)
        .map(|(name, Outcome { line, message, .. })| format!("{name}, line {line}: {message}"));
    let length = kernel.seen.len().max(simulated.seen.len());
    let rows: Vec<_> = (0..length)
        .map(|at| (kernel.seen.get(at).cloned(), simulated.seen.get(at).cloned()))
        .collect();
    let mut before = 0;
    let parts_at = rows.iter().position(|row| match row {
        (Some(kernel), Some(host)) => {
            let late = allowance(host.at.saturating_sub(before));
            before = host.at;
            kernel.what != host.what || kernel.at.abs_diff(host.at) > late
        }
        _ => true,
    });
    Beside { rows, parts_at, stopped }
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
        let shown = self.rows.iter().enumerate().skip(at.saturating_sub(6)).take(12);
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
