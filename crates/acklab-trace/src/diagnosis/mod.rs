//! What a diagnosis says: the result types, their JSON, and the text that people read.
//!
//! The JSON is stable (`acklab.diagnose/1`); its schema is checked in as
//! `docs/schema/diagnose.schema.json` and a test holds it current. Times are milliseconds unless
//! the name says otherwise, frame numbers count from 1 as in Wireshark. The types carry no
//! judgement of their own: [`crate::infer`] fills policies, [`crate::stall`] fills stalls,
//! [`crate::verdict`] the words.

mod flow;
mod ladder;
mod schema;
mod text;

pub use flow::{
    AckFacts, AddedDelay, Direction, Flow, Handshake, Mechanism, Nagle, NagleState, Plots, Points,
    PolicyKind, Quantiles, ReceiverPolicy, Stall, Wait, WaitCause, Writes,
};
pub use ladder::{Ladder, Rung};
pub use schema::json_schema;

use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "acklab.diagnose/1";

/// The diagnosis of one capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// What the file held.
    pub capture: Capture,
    /// The answer.
    pub verdict: Verdict,
    /// Every connection with data that is kept in detail, the most stalled first.
    pub flows: Vec<Flow>,
    /// Connections counted but not kept in detail.
    pub flows_not_listed: u64,
}

/// What the capture file held.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Capture {
    /// Packets in the file.
    pub packets: u64,
    /// TCP segments among them.
    pub tcp_segments: u64,
    /// First to last packet, seconds.
    pub duration_s: f64,
    /// TCP connections seen.
    pub connections: u64,
    /// What was wrong with the file or limits what can be said, one sentence each.
    pub notes: Vec<String>,
}

/// The answer in words, with what stands behind it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Verdict {
    /// Whether writes were held in a sender by Nagle's algorithm.
    pub stalled: bool,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Two or three sentences for a reader who never heard of Nagle.
    pub summary: String,
    /// One finding per stalled direction, worst first.
    pub findings: Vec<Finding>,
    /// What the capture cannot tell, and why.
    pub limits: Vec<String>,
}

/// One stalled direction in words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// The flow's number.
    pub flow: u64,
    /// The host whose writes were held, `ip:port`.
    pub from: String,
    /// The host that was waited for, `ip:port`.
    pub to: String,
    /// The mechanism that held most.
    pub mechanism: Mechanism,
    /// One line.
    pub headline: String,
    /// What happens, step by step, in plain words.
    pub explanation: String,
    /// What to change on the sending host, best first.
    pub sender_fix: Vec<String>,
    /// What to change on the receiving host, best first.
    pub receiver_fix: Vec<String>,
}

impl Diagnosis {
    /// The diagnosis as one JSON object.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
