//! What a diagnosis says of causes beside Nagle's algorithm, held against what happened.
//!
//! The truth of a turn: a host wrote 10 ms or more after the peer's data had come to it, with nothing of its own written in
//! between. Of a closed window: bytes that could have left, waited for the receiver's window for 10 ms. Of a loss: the link
//! lost a segment with data.

use acklab_trace::capture::CaptureReader;
use acklab_trace::diagnosis::{CauseKind, Diagnosis};
use acklab_trace::{Options, diagnose_reader};
use serde::Serialize;

use super::damage::Damage;
use super::hold::Cause;
use super::score::View;
use super::store::{Kept, VANTAGES};

/// One kind of cause at one host: what was said, and what was.
#[derive(Clone, Debug, Serialize)]
pub struct CauseOutcome {
    /// In a word.
    pub kind: &'static str,
    /// Times, as said and in truth.
    pub count: [u64; 2],
    /// Seconds, as said and in truth.
    pub seconds: [f64; 2],
}

/// Every kind at every host of every undamaged capture of a case.
pub fn judge(kept: &Kept) -> Result<Vec<CauseOutcome>, String> {
    let mut outcomes = Vec::new();
    for vantage in 0..VANTAGES.len() {
        let capture = View { vantage, damage: Damage::Clean }.capture(kept);
        let mut reader = CaptureReader::new(&capture[..]).map_err(|error| error.to_string())?;
        let diagnosis = diagnose_reader(&mut reader, &Options::default(), |_| ())
            .map_err(|error| error.to_string())?;
        for (kind, of) in KINDS {
            for end in [0, 1] {
                let (count, seconds) = of(kept, end);
                let (said, said_seconds) =
                    said(&diagnosis, kind, &kept.truth.directions[end].from.to_string());
                outcomes.push(CauseOutcome {
                    kind,
                    count: [said, count],
                    seconds: [said_seconds, seconds],
                });
            }
        }
    }
    Ok(outcomes)
}

/// What was said of `kind` at `host`; of losses, of what it sent.
fn said(diagnosis: &Diagnosis, kind: &str, host: &str) -> (u64, f64) {
    let its = diagnosis.flows.iter().flat_map(|flow| {
        let peer = flow.endpoints.iter().find(|end| *end != host).cloned().unwrap_or_default();
        flow.causes.iter().filter(move |cause| match (kind, cause.kind) {
            ("turns", CauseKind::SlowServer | CauseKind::SlowClient)
            | ("window", CauseKind::ClosedWindow) => cause.host == host,
            ("loss", CauseKind::LossBefore | CauseKind::LossBehind) => cause.host == peer,
            _ => false,
        })
    });
    its.fold((0, 0.0), |(count, seconds), cause| (count + cause.count, seconds + cause.seconds))
}

type Kind = (&'static str, fn(&Kept, usize) -> (u64, f64));

/// By kind: how often it happened at an end, and how long it took in all, s.
const KINDS: [Kind; 3] = [("turns", turns), ("window", window), ("loss", loss)];

fn turns(kept: &Kept, end: usize) -> (u64, f64) {
    let [own, peer] = [end, 1 - end].map(|end| &kept.truth.directions[end]);
    let mut came: Vec<u64> = peer.departures.iter().filter_map(|one| one.arrived).collect();
    came.sort_unstable();
    let mut before = 0;
    let (mut count, mut seconds) = (0, 0.0);
    for write in &own.writes {
        let last =
            came.partition_point(|at| *at <= write.at).checked_sub(1).map_or(0, |last| came[last]);
        if last > before && write.at - last >= COUNTED {
            count += 1;
            seconds += (write.at - last) as f64 / 1e9;
        }
        before = write.at;
    }
    (count, seconds)
}

fn window(kept: &Kept, end: usize) -> (u64, f64) {
    // It is the peer of the one who waits that has no room.
    let waited = kept.truth.directions[1 - end]
        .departures
        .iter()
        .filter(|one| one.cause == Cause::ReceiveWindow);
    let long = waited.map(|one| one.left - one.free).filter(|waited| *waited >= COUNTED);
    long.fold((0, 0.0), |(count, seconds), waited| (count + 1, seconds + waited as f64 / 1e9))
}

fn loss(kept: &Kept, end: usize) -> (u64, f64) {
    (kept.truth.directions[end].lost.len() as u64, 0.0)
}

/// What is shorter is not counted, ns.
const COUNTED: u64 = 10_000_000;
