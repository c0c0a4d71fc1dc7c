//! Predictions held against what happened: a conversation as it is and with one change, each recorded.
//!
//! Folders are named `NAME__CHANGE.RUN`; of `NAME__as-is.RUN` each of the three captures is asked what the change
//! would do, and the answer is compared with the delays of `NAME__CHANGE.RUN`.

use std::fmt;
use std::path::{Path, PathBuf};

use acklab_core::time::{Span, Time};
use acklab_lab::whatif::{Change, Sum, WhatIf, ask, message_ends};
use acklab_trace::Options;

use super::hold::Direction;
use super::store::{Kept, VANTAGES, is_kept_out};

/// One prediction beside the truth.
#[derive(Clone, Debug)]
pub struct Told {
    /// Name of the conversation, its run, and where the capture was made.
    pub of: String,
    /// Kept out of tuning.
    pub kept_out: bool,
    /// The change, as the folder has it.
    pub change: String,
    /// What was predicted, or why nothing was.
    pub predicted: Result<WhatIf, String>,
    /// The true delays with the change.
    pub truth: Sum,
}

impl Told {
    /// Whether median and 95th percentile are within 10 % or 2 ms.
    pub fn is_right(&self) -> bool {
        self.predicted.as_ref().is_ok_and(|told| {
            let sum = told.predicted.delay;
            near(sum.p50_ms, self.truth.p50_ms) && near(sum.p95_ms, self.truth.p95_ms)
        })
    }

    /// Whether both true ones lie in the interval, give or take what counts as right.
    pub fn is_inside(&self) -> bool {
        let within = |[least, most]: [f64; 2], truth: f64| {
            (least..=most).contains(&truth) || near(least, truth) || near(most, truth)
        };
        self.predicted.as_ref().is_ok_and(|told| {
            let interval = told.predicted.interval;
            within(interval.p50_ms, self.truth.p50_ms) && within(interval.p95_ms, self.truth.p95_ms)
        })
    }
}

impl Told {
    /// Whether it says that it does not know: nothing, or an interval wider than what counts as right.
    pub fn is_open(&self) -> bool {
        let wide = |[least, most]: [f64; 2]| most - least > NEAR_MS.max(NEAR_SHARE * most);
        self.predicted.as_ref().map_or(true, |told| {
            let interval = told.predicted.interval;
            wide(interval.p50_ms) || wide(interval.p95_ms)
        })
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sum { messages, p50_ms, p95_ms, .. } = self.truth;
        write!(
            f,
            "{} {} {}: true {messages} {p50_ms:.1} {p95_ms:.1}; ",
            if self.is_right() { "right" } else { "WRONG" },
            self.of,
            self.change
        )?;
        match &self.predicted {
            Ok(told) => {
                let sum = told.predicted.delay;
                let interval = told.predicted.interval;
                write!(
                    f,
                    "said {} {:.1} {:.1}, p50 in {:.1?}, p95 in {:.1?}, ks {:.2}",
                    sum.messages,
                    sum.p50_ms,
                    sum.p95_ms,
                    interval.p50_ms,
                    interval.p95_ms,
                    told.replay.ks
                )
            }
            Err(why) => f.write_str(why),
        }
    }
}

/// Judges each change of each conversation in `folders`.
pub fn judge(folders: &[PathBuf]) -> Result<Vec<Told>, String> {
    let mut all = Vec::new();
    for folder in folders {
        let Some((name, change, run)) = parts(folder) else { continue };
        let as_is = folder.with_file_name(format!("{name}__as-is.{run}"));
        if !as_is.is_dir() {
            continue;
        }
        let truth = Kept::read(folder).map_err(|error| error.to_string())?.truth;
        let kept_out = is_kept_out(&truth.case.name);
        // With the change nothing waits, so which direction it is about follows from the same place as it was.
        let was = Kept::read(&as_is).map_err(|error| error.to_string())?.truth;
        let held = |at: &usize| delays(&was.directions, *at).seconds;
        let at = (0..2).max_by(|a, b| held(a).total_cmp(&held(b))).unwrap_or(0);
        let truth = delays(&truth.directions, at);
        for vantage in VANTAGES {
            let predicted = predict(&as_is.join(format!("{vantage}.pcap")), &change);
            let of = format!("{name}.{run} {vantage}");
            all.push(Told { of, kept_out, change: kind(&change), predicted, truth });
        }
    }
    Ok(all)
}

fn parts(folder: &Path) -> Option<(String, String, String)> {
    let (name, run) = folder.file_name()?.to_str()?.rsplit_once('.')?;
    let (name, change) = name.split_once("__")?;
    Some((name.into(), change.into(), run.into()))
}

fn kind(change: &str) -> String {
    if change.starts_with("rtt-") { "rtt".into() } else { change.into() }
}

fn predict(capture: &Path, change: &str) -> Result<WhatIf, String> {
    let changes = match change {
        // Played as it was.
        "as-is" => vec![Change::NoDelay(false)],
        "nodelay" => vec![Change::NoDelay(true)],
        "single-write" => vec![Change::SingleWrite(true)],
        "quickack" => vec![Change::QuickAck(true)],
        other => {
            let rtt = other.strip_prefix("rtt-").and_then(|rtt| rtt.parse::<Span>().ok());
            vec![Change::Rtt(rtt.ok_or_else(|| format!("no change is called {other:?}"))?)]
        }
    };
    let diagnosis = acklab_trace::explain(capture, &Options::default(), |_| {})
        .map_err(|error| error.to_string())?;
    ask(&diagnosis, None, &changes).map_err(|refusal| refusal.to_string())
}

/// What the messages of one of both directions waited, each from its last write on.
fn delays(both: &[Direction], at: usize) -> Sum {
    let [own, peer] = [at, 1 - at].map(|at| &both[at]);
    let times: Vec<Time> = own.writes.iter().map(|one| Time::from_nanos(one.at)).collect();
    let heard = own.writes.iter().map(|write| {
        let had = peer.departures.iter().filter(|one| one.arrived.is_some_and(|at| at <= write.at));
        had.map(|one| u64::from(one.bytes)).sum()
    });
    let ends = message_ends(&times, &heard.collect::<Vec<u64>>());
    let last = own.writes.iter().zip(ends).filter(|(_, ends)| *ends);
    let left = last.filter_map(|(write, _)| Some((write.at, write.left?[1])));
    let delay = |(at, left): (u64, u64)| left.saturating_sub(at) as f64 / 1e6;
    Sum::of(&left.map(delay).collect::<Vec<_>>())
}

fn near(told: f64, truth: f64) -> bool {
    (told - truth).abs() <= NEAR_MS.max(NEAR_SHARE * truth)
}

/// So close counts as right, milliseconds.
const NEAR_MS: f64 = 2.0;
/// The same as a share.
const NEAR_SHARE: f64 = 0.1;
