//! The causes of waiting beside Nagle's algorithm, each by its proof and none by default; one cause = one file.
//!
//! A connection without any has no list: what cannot be proved is not said.

mod closed_window;
mod loss;
mod opening;
mod path_mtu;
mod turns;

use schemars::JsonSchema;
use serde::Serialize;

use super::direction::Direction;
use super::flow::Flow;
use crate::noted::course::Spell;

pub(super) use opening::cut_off;
pub(crate) use opening::unopened;

/// Something beside Nagle's algorithm that took time, or ended a connection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Cause {
    /// What.
    pub kind: CauseKind,
    /// The connection's number; `None`: several.
    pub flow: Option<u64>,
    /// The host to look at, `ip:port` or `ip`.
    pub host: String,
    /// How many times.
    pub count: u64,
    /// What it took, summed, seconds.
    pub seconds: f64,
    /// The longest, milliseconds.
    pub longest_ms: f64,
    /// A frame that shows it.
    pub frame: u64,
    /// The proof, in a sentence with numbers.
    pub proof: String,
    /// What to do.
    pub remedy: String,
}

/// The kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CauseKind {
    /// The server's program answered late.
    SlowServer,
    /// The client's program asked late.
    SlowClient,
    /// The receiver's program did not read, and its window closed.
    ClosedWindow,
    /// Segments were lost before the capture point.
    LossBefore,
    /// Segments were lost behind the capture point.
    LossBehind,
    /// A connection was reset.
    Reset,
    /// A connection was refused.
    Refused,
    /// Nothing answered.
    NoAnswer,
    /// The path does not carry full segments.
    PathMtu,
}

impl Cause {
    fn of(kind: CauseKind, flow: &Flow, host: &str, spell: Spell) -> Self {
        Self {
            kind,
            flow: Some(flow.id),
            host: host.to_owned(),
            count: spell.count,
            seconds: spell.sum.as_secs_f64(),
            longest_ms: spell.longest.as_millis_f64(),
            frame: spell.frame,
            proof: String::new(),
            remedy: String::new(),
        }
    }
}

/// What can be proved of one connection.
pub(super) fn of(flow: &Flow) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, direction) in flow.directions.iter().enumerate() {
        causes.extend(turns::of(flow, index, direction));
        causes.extend(closed_window::of(flow, direction));
        causes.extend(loss::of(flow, direction));
        causes.extend(path_mtu::of(flow, direction));
    }
    causes
}

/// The greatest of all connections and of those that never came about, the longest first.
pub(crate) fn ranked(flows: &[Flow], mut causes: Vec<Cause>) -> Vec<Cause> {
    causes.extend(flows.iter().flat_map(|flow| &flow.causes).cloned());
    causes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(b.count.cmp(&a.count)));
    causes.truncate(LISTED);
    causes
}

fn hosts(direction: &Direction) -> [&str; 2] {
    [&direction.from, &direction.to]
}

/// Causes that the verdict lists; each connection has its own.
const LISTED: usize = 10;
