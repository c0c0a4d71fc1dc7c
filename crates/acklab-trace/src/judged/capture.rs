//! The capture file in the result.

use schemars::JsonSchema;
use serde::Serialize;

/// What the capture file held.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
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
    /// Its packets are not in the order in which they passed.
    #[serde(skip)]
    pub(crate) disordered: bool,
}
