//! The diagnosis of a capture.

use schemars::JsonSchema;
use serde::Serialize;

use super::capture::Capture;
use super::causes::Cause;
use super::cure::Cure;
use super::flow::Flow;
use super::outcome::Outcome;
use super::pair::Pair;
use super::verdict::Verdict;

/// Name and version of the JSON form.
pub(crate) const SCHEMA: &str = "acklab.diagnose/1";

/// The diagnosis of one capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Always `acklab.diagnose/1`.
    pub schema: &'static str,
    /// What the file held.
    pub capture: Capture,
    /// The answer.
    pub verdict: Verdict,
    /// Every connection with data that is kept in detail, the most stalled first.
    pub flows: Vec<Flow>,
    /// What else took time or ended connections, beside Nagle's algorithm: each with its proof, the longest first, at most 10.
    pub causes: Vec<Cause>,
    /// Connections counted but not kept in detail.
    pub flows_not_listed: u64,
    /// What two captures say together, where two were given; frames of the direction from the server are then those of the
    /// server's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<Pair>,
    /// What the best remedy would have done to the direction that was held longest, where one capture was given and
    /// writes were held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<Cure>,
    /// What became of the checks that were asked for (`--check`).
    pub checks: Vec<Outcome>,
}

impl Diagnosis {
    /// Where to look when no write is known to be held, as a clause: a reader who waits wants to know why.
    pub fn instead(&self) -> Option<String> {
        let cause = self.causes.first().filter(|_| self.verdict.stalled != Some(true))?;
        Some(cause.sentence())
    }

    /// The diagnosis as one JSON object.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
