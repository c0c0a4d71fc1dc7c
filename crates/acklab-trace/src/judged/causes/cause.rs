//! A cause in the result, and what is known of a connection where one is looked for.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::direction::Direction;
use crate::flow::Told;
use crate::noted::course::Spell;

/// A connection, as far as causes depend on it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Conversation<'a> {
    /// Its number.
    pub(in super::super) flow: u64,
    /// The client, where the handshake was captured, first.
    pub(in super::super) endpoints: &'a [String; 2],
    /// Whether the handshake was captured.
    pub(in super::super) opened: bool,
    /// Near which end the capture was taken.
    pub(in super::super) near: Option<&'a str>,
    /// Packets that the path said were too big, and those that it said came nowhere.
    pub(in super::super) too_big: Option<Told>,
    pub(in super::super) unreachable: Option<Told>,
}

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
    /// Packets came nowhere, and a router or host said so.
    Unreachable,
}

impl Cause {
    /// What happened and where, in a few words and without figures.
    fn words(&self) -> String {
        let host = &self.host;
        match self.kind {
            CauseKind::SlowServer => format!("the program at {host} answered late"),
            CauseKind::SlowClient => format!("the program at {host} asked late"),
            CauseKind::ClosedWindow => format!("the program at {host} did not read"),
            CauseKind::LossBefore | CauseKind::LossBehind => {
                format!("packets to {host} were lost and sent again")
            }
            CauseKind::Reset => format!("{host} reset a connection"),
            CauseKind::Refused => format!("{host} refused connections"),
            CauseKind::NoAnswer => format!("{host} did not answer"),
            CauseKind::PathMtu => format!("the path to {host} does not carry full packets"),
            CauseKind::Unreachable => format!("packets to {host} did not arrive"),
        }
    }

    /// The same with the time it took, where that is known.
    pub(in super::super) fn sentence(&self) -> String {
        let words = self.words();
        if self.seconds > 0.0 { format!("{words} ({:.2} s in all)", self.seconds) } else { words }
    }

    pub(super) fn of(kind: CauseKind, talk: &Conversation<'_>, host: &str, spell: Spell) -> Self {
        Self {
            kind,
            flow: Some(talk.flow),
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

/// Sender and receiver.
pub(super) fn hosts(direction: &Direction) -> [&str; 2] {
    [&direction.from, &direction.to]
}
