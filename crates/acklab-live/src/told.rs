//! What a watch tells, in the form that programs read: `acklab.watch/1`, one object per line. The schema in
//! docs/schema is that of these types, and a test holds it current.

use acklab_trace::check::Outcome;
use acklab_trace::diagnosis::{Mechanism, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "acklab.watch/1";

/// One line of a watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Told {
    /// Writes were held since this direction and mechanism were last told of.
    Stall {
        /// Always `acklab.watch/1`.
        schema: &'static str,
        /// When it was told, seconds since the epoch, by the time stamp of the last frame.
        time: f64,
        /// Who, and how often.
        #[serde(flatten)]
        held: Held,
    },
    /// The whole watch; the last line.
    Summary(Box<Summary>),
}

/// Held writes of one direction, by one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Held {
    /// Whose writes were held, `ip:port`.
    pub from: String,
    /// Who was waited for, `ip:port`.
    pub to: String,
    /// Name of the process whose writes were held; null if it is on another host or was gone too soon.
    pub process: Option<String>,
    /// Its number.
    pub pid: Option<u32>,
    /// Name of the process at the other end, likewise.
    pub peer_process: Option<String>,
    /// Its number.
    pub peer_pid: Option<u32>,
    /// What ended the holds.
    pub mechanism: Mechanism,
    /// Writes held 10 ms or longer.
    pub count: u64,
    /// How long they waited, summed, seconds.
    pub seconds: f64,
    /// The command that mends it on this host without touching the program; null if neither end is here.
    pub fix: Option<String>,
}

/// A watch from its beginning to its end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Summary {
    /// Always `acklab.watch/1`.
    pub schema: &'static str,
    /// False where it was ended before the time that was asked for.
    pub complete: bool,
    /// How long was watched, seconds.
    pub watched_s: f64,
    /// Frames of TCP.
    pub frames: u64,
    /// Frames that the kernel had no room for; above 0, stalls may be missing.
    pub dropped: u64,
    /// TCP connections seen.
    pub connections: u64,
    /// Writes held, over all directions.
    pub count: u64,
    /// How long they waited, summed, seconds.
    pub seconds: f64,
    /// Every stalled direction and mechanism, the longest held first.
    pub stalls: Vec<Held>,
    /// The answer in words, as `acklab diagnose` gives it.
    pub verdict: Verdict,
    /// What became of the checks that were asked for (`--check`).
    pub checks: Vec<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set `ACKLAB_WRITE_SCHEMA=1` to write the file anew after changing the types.
    #[test]
    fn the_schema_in_the_repository_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/watch.schema.json");
        let schema = schemars::schema_for!(Told);
        let now = serde_json::to_string_pretty(&schema).expect("a schema") + "\n";
        if std::env::var_os("ACKLAB_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &now).expect("write the schema");
        }
        let stored = std::fs::read_to_string(path).expect("docs/schema/watch.schema.json");
        assert_eq!(stored, now, "run this test with ACKLAB_WRITE_SCHEMA=1");
    }
}
