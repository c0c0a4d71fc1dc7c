//! What the Linux kernel did, kept as data, so that a comparison needs no kernel: one JSON object a line for each network
//! (docs/linux-vt.md). A run is known by what the guest was told to do and by its seed, so that a network that changed,
//! or is built in another way, is not taken for the one that was recorded.

use std::fs;
use std::path::Path;

use acklab_lab::blueprint::{Blueprint, Task};
use serde::{Deserialize, Serialize};

use crate::network::CannotBuild;
use crate::seen::{Fnv, Seen, quantile};
use crate::world;

/// Networks on the kernel.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// In the order in which they were recorded.
    pub cases: Vec<Case>,
}

/// A network and its runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    schema: String,
    /// Of the file.
    pub name: String,
    /// `uname -r`.
    pub kernel: String,
    /// The file's text.
    pub file: String,
    /// By seed.
    pub runs: Vec<Run>,
}

/// One replication.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Of the guest's randomness and the network's draws.
    pub seed: u64,
    /// [`job_key`] of its job.
    pub job: String,
    flows: Vec<Told>,
}

/// A bulk flow's figures: those of [`Seen`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    acknowledged: u64,
    segments: u64,
    retransmissions: u64,
    acks: u64,
    /// Median and 95th percentile of its round trips, where it had any.
    rtt_ms: Option<[f64; 2]>,
    hash: String,
}

impl Told {
    fn of(seen: &Seen) -> Self {
        Self {
            acknowledged: seen.acknowledged,
            segments: seen.segments,
            retransmissions: seen.retransmissions,
            acks: seen.acks,
            rtt_ms: (!seen.round_trips_ms.is_empty())
                .then(|| [0.5, 0.95].map(|p| quantile(&seen.round_trips_ms, p))),
            hash: format!("{:016x}", seen.hash),
        }
    }

    fn seen(&self) -> Result<Seen, String> {
        let Self { acknowledged, segments, retransmissions, acks, rtt_ms, hash } = self;
        let hash =
            u64::from_str_radix(hash, 16).map_err(|error| format!("hash {hash:?}: {error}"))?;
        // Of 21 round trips the eleventh is the median and the twentieth the 95th percentile.
        let trips =
            rtt_ms.iter().flat_map(|[p50, p95]| [[*p50; 15].as_slice(), &[*p95; 6]].concat());
        let round_trips_ms = trips.collect();
        Ok(Seen {
            acknowledged: *acknowledged,
            segments: *segments,
            retransmissions: *retransmissions,
            acks: *acks,
            round_trips_ms,
            hash,
            ..Seen::default()
        })
    }
}

impl Recording {
    /// The recording in the file `path`; what is wrong with it and where.
    pub fn read(path: &Path) -> Result<Self, String> {
        Self::parse(&fs::read_to_string(path).map_err(|error| error.to_string())?)
    }

    /// The recording in `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let cases = text.lines().enumerate().map(|(index, line)| {
            let case: Case = serde_json::from_str(line)
                .map_err(|error| format!("line {}: {error}; record it again", index + 1))?;
            if case.schema != SCHEMA {
                return Err(format!("line {}: {:?} is not {SCHEMA}", index + 1, case.schema));
            }
            Ok(case)
        });
        Ok(Self { cases: cases.collect::<Result<_, _>>()? })
    }

    /// The file that [`Self::read`] reads.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let mut text = String::new();
        for case in &self.cases {
            text += &serde_json::to_string(case).map_err(|error| error.to_string())?;
            text.push('\n');
        }
        fs::write(path, text).map_err(|error| error.to_string())
    }

    /// What the kernel showed when it did `job` with `seed`; `None` where it was not recorded.
    pub fn find(&self, job: &str, seed: u64) -> Option<Result<Vec<Seen>, String>> {
        let runs = self.cases.iter().flat_map(|case| &case.runs);
        let run = runs.into_iter().find(|run| run.job == job && run.seed == seed)?;
        Some(run.seen())
    }

    /// Adds what the kernel `kernel` showed of the network in the file `name`, whose text is `file`; a run of
    /// the same name and seed gives way.
    pub fn add(&mut self, [name, file, kernel]: [&str; 3], seed: u64, job: String, flows: &[Seen]) {
        let same = |case: &Case| case.name == name && case.file == file && case.kernel == kernel;
        let at = self.cases.iter().position(same).unwrap_or_else(|| {
            self.cases.retain(|case| case.name != name);
            let [name, file, kernel] = [name, file, kernel].map(str::to_owned);
            self.cases.push(Case {
                schema: SCHEMA.to_owned(),
                name,
                kernel,
                file,
                runs: Vec::new(),
            });
            self.cases.len() - 1
        });
        let runs = &mut self.cases[at].runs;
        runs.retain(|run| run.seed != seed);
        runs.push(Run { seed, job, flows: flows.iter().map(Told::of).collect() });
        runs.sort_by_key(|run| run.seed);
    }
}

impl Run {
    /// What each flow showed.
    pub fn seen(&self) -> Result<Vec<Seen>, String> {
        self.flows.iter().map(Told::seen).collect()
    }
}

/// What tells the job of `network` from others: a hash of all that the guest is told to do.
pub fn job_key(network: &Blueprint<'_>) -> Result<String, CannotBuild> {
    let mut hash = Fnv::default();
    // A job is text, numbers and lists: it always becomes JSON.
    hash.add(&serde_json::to_vec(&world::job(network)?).unwrap_or_default());
    Ok(format!("{:016x}", hash.0))
}

/// Whether all of `network` can be kept: of messages and requests every delay would have to be.
pub fn can_keep(network: &Blueprint<'_>) -> bool {
    network.flows.iter().all(|flow| matches!(flow.task, Task::Bulk(_)))
}

const SCHEMA: &str = "acklab.recording/1";

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        let round_trips_ms = (1..=100).map(f64::from).collect();
        Seen {
            acknowledged: 1 << 40,
            segments: 3,
            acks: 2,
            hash: u64::MAX - 1,
            round_trips_ms,
            ..Seen::default()
        }
    }

    #[test]
    fn what_was_kept_has_the_same_figures() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut recording = Recording::default();
        recording.add(["a", "text", "6.12"], 2, "job".into(), &[Seen::default()]);
        recording.add(["a", "text", "6.12"], 1, "job".into(), &[seen()]);
        recording.add(["a", "text", "6.12"], 2, "job".into(), &[seen()]);
        recording.write(file.path()).unwrap();
        let read = Recording::read(file.path()).unwrap();
        assert_eq!(read.cases[0].runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2]);
        let back = &read.find("job", 2).unwrap().unwrap()[0];
        let figures = |seen: &Seen| {
            let quantiles = [0.5, 0.95].map(|p| quantile(&seen.round_trips_ms, p));
            (
                seen.acknowledged,
                seen.segments,
                seen.retransmissions,
                seen.acks,
                seen.hash,
                quantiles,
            )
        };
        assert_eq!(figures(back), figures(&seen()));
        assert!(read.find("job", 3).is_none() && read.find("other", 2).is_none());
        // A file that changed is another network; the old one goes.
        recording.add(["a", "other text", "6.12"], 1, "other".into(), &[seen()]);
        assert_eq!((recording.cases.len(), recording.find("job", 1).is_none()), (1, true));
    }

    #[test]
    fn what_is_written_is_what_the_schema_says() {
        let schema = include_str!("../../../docs/schema/recording.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let mut recording = Recording::default();
        recording.add(["a", "text", "6.12"], 1, "job".into(), &[seen()]);
        let case = serde_json::to_value(&recording.cases[0]).unwrap();
        let keys = |value: &serde_json::Value| {
            let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let run = &case["runs"][0];
        for (told, of) in [
            (&case, &schema["properties"]),
            (run, &schema["$defs"]["run"]["properties"]),
            (&run["flows"][0], &schema["$defs"]["flow"]["properties"]),
        ] {
            assert_eq!(keys(told), keys(of));
        }
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let told = |text: &str| Recording::parse(text).unwrap_err();
        assert!(told("{}").contains("line 1: missing field"), "{}", told("{}"));
        let other = r#"{"schema":"x/1","name":"","kernel":"","file":"","runs":[]}"#;
        assert!(told(other).contains("is not acklab.recording/1"), "{}", told(other));
    }
}
