//! The experiments on real packets: both protocols over `acklab emulate`'s links (Linux, root).
//!
//! A path is a link in each direction, with the loss and delay of its two interfaces together. The course
//! protocol's ends are this program again, in a hidden verb that calls [`super::sockets`]; today's are
//! `acklab recv` and `acklab send`, encrypted. Real time passes: a course transfer takes as long as it
//! says.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::AtomicBool;

use acklab_core::link::LinkConfig;
use acklab_core::rng::replication_seed;
use acklab_core::time::Span;
use serde_json::Value;

use super::emulated::{Real, Transfer};
use super::paper::{ROWS, Row};
use super::reproduction::Plan;
use super::simulated::Network;
use super::{tables, today};
use crate::reproduce::{self, Stop};
use acklab_net::emulate::{self, EmulateError, Emulated, Emulation, Output};

/// What is needed to emulate.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The program: it is its own hosts.
    pub program: PathBuf,
    /// A folder for files on the way; made, and removed at the end.
    pub scratch: PathBuf,
}

/// Why an experiment could not be emulated.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{what}: it ended with status {status}; what it wrote: {wrote:?}")]
    Host {
        what: &'static str,
        status: i32,
        /// Its result, as far as it got.
        wrote: String,
    },
    #[error("interrupted")]
    Interrupted,
}

/// A course transfer that is to be emulated.
#[derive(Clone, Debug)]
pub struct Course {
    /// Each direction of each path.
    pub links: Vec<[LinkConfig; 2]>,
    /// Bytes of the file.
    pub size: usize,
    /// The sender's time for a transmission.
    pub cpu: Span,
    /// Time-out before the first sample.
    pub initial_timeout: Span,
    /// Seed of the links.
    pub seed: u64,
}

/// Emulates the six experiments as often as `plan` says, a part of the paper each.
pub fn run(
    bench: &Bench,
    plan: Plan,
    parts: &mut reproduce::Course<'_>,
) -> Result<Vec<Real>, Stop> {
    let emulate = |paper: Row| {
        let title = format!("Real packets, {:.0} % on {} path(s)", 100.0 * paper.loss, paper.paths);
        let run = |ended: &AtomicBool| bench.experiment(paper, plan, ended);
        let tables = |real: &Result<Real, _>| real.iter().map(tables::real).collect();
        Ok(parts.part(title, run, tables)??)
    };
    let all = ROWS.into_iter().map(emulate).collect();
    if bench.scratch.exists() {
        bench.remove_scratch()?;
    }
    all
}

impl Bench {
    /// One experiment by both protocols.
    fn experiment(
        &self,
        paper: Row,
        plan: Plan,
        interrupted: &AtomicBool,
    ) -> Result<Real, BenchError> {
        let mut measured = Real { paper, course: Vec::new(), today: Vec::new() };
        for index in 0..plan.repetitions {
            let (size, seed) = (plan.size, replication_seed(plan.seed, index));
            let link = Network::new(paper.loss).one_way();
            let course = Course {
                links: vec![[link.clone(), link]; paper.paths],
                size,
                cpu: Span::ZERO,
                initial_timeout: Span::from_millis(50),
                seed,
            };
            measured.course.push(self.course(&course, interrupted)?);
            measured.today.push(self.today(paper, size, seed, interrupted)?);
        }
        Ok(measured)
    }

    /// One transfer by the course protocol.
    pub fn course(
        &self,
        course: &Course,
        interrupted: &AtomicBool,
    ) -> Result<Transfer, BenchError> {
        self.make_scratch()?;
        let [sent, received] = ["sent.json", "received.json"].map(|name| self.scratch.join(name));
        let hosts = Hosts {
            client: self.host("send", course, &sent),
            server: self.host("receive", course, &received),
        };
        let emulated = self.emulate(&course.links, course.seed, hosts, interrupted)?;
        let (wrote, took) = (result(&sent), result(&received));
        let failed = |what, wrote: &Value| BenchError::Host {
            what,
            status: emulated.status,
            wrote: wrote.to_string(),
        };
        let seconds = wrote["seconds"].as_f64().ok_or_else(|| failed("the sender", &wrote))?;
        if wrote["end_answered"] == true && took["whole"] != true {
            return Err(failed("the receiver", &took));
        }
        let log = serde_json::from_value(wrote["log"].clone()).unwrap_or_default();
        self.remove_scratch()?;
        let mut transfer = Transfer { log, ..account(seconds, &emulated) };
        transfer.wake_us = wrote["woke_late_p99_us"].as_f64();
        let late = transfer.wake_us.filter(|late| *late > MAX_LATENESS.as_micros_f64());
        transfer.doubts.extend(late.map(|late| {
            format!("the sender woke {late:.0} us late with 1 % of its time-outs: a quieter machine is needed")
        }));
        Ok(transfer)
    }

    /// The command of one of the course protocol's hosts.
    fn host(&self, role: &str, course: &Course, result: &Path) -> Vec<OsString> {
        let words = [
            "rdt-host".to_owned(),
            role.to_owned(),
            format!("--size={}", course.size),
            format!("--cpu={}", course.cpu),
            format!("--initial-timeout={}", course.initial_timeout),
        ];
        let mut command = vec![self.program.clone().into_os_string()];
        command.extend(words.map(OsString::from));
        command.extend(["--result".into(), result.into()]);
        command
    }

    /// One transfer by `acklab send`.
    fn today(
        &self,
        row: Row,
        size: usize,
        seed: u64,
        interrupted: &AtomicBool,
    ) -> Result<Transfer, BenchError> {
        self.make_scratch()?;
        let at = |name: &str| self.scratch.join(name);
        let file = at("file");
        let bytes: Vec<u8> = (0..size).map(today::byte).collect();
        fs::write(&file, &bytes).map_err(|source| BenchError::File { path: file, source })?;
        let link = today::link(&Network::new(row.loss));
        let links = vec![[link.clone(), link]; row.paths];
        let emulated = self.emulate(&links, seed, self.send_and_receive(row.paths), interrupted)?;
        let text = fs::read_to_string(at("sent.json")).unwrap_or_default();
        let last: Value = text
            .lines()
            .last()
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        let arrived = fs::read(at("in/file")).is_ok_and(|arrived| arrived == bytes);
        let seconds = last["seconds"].as_f64().filter(|_| arrived && emulated.status == 0);
        let seconds = seconds.ok_or(BenchError::Host {
            what: "acklab send",
            status: emulated.status,
            wrote: text,
        })?;
        self.remove_scratch()?;
        Ok(account(seconds, &emulated))
    }

    /// `acklab send` and `acklab recv` over so many paths.
    fn send_and_receive(&self, paths: usize) -> Hosts {
        let (program, scratch) = (self.program.display(), self.scratch.display());
        let each =
            |word: &dyn Fn(usize) -> String| (0..paths).map(word).collect::<Vec<_>>().join(" ");
        let listen = each(&|path| format!("--listen 10.77.{path}.2:7000"));
        let ways = each(&|path| format!("--path 10.77.{path}.1,10.77.{path}.2:7000"));
        let shell = |words: String| -> Vec<OsString> {
            let line =
                format!("cd '{scratch}' && ACKLAB_PASSPHRASE={PASSPHRASE} '{program}' {words}");
            vec!["sh".into(), "-c".into(), line.into()]
        };
        Hosts {
            client: shell(format!("send file 10.77.0.2:7000 {ways} --format json > sent.json")),
            server: shell(format!("recv in {listen} --once --format json > received.json")),
        }
    }

    fn emulate(
        &self,
        links: &[[LinkConfig; 2]],
        seed: u64,
        hosts: Hosts,
        interrupted: &AtomicBool,
    ) -> Result<Emulated, BenchError> {
        let path = |[forward, reverse]: &[LinkConfig; 2]| emulate::Path {
            forward: forward.clone(),
            reverse: reverse.clone(),
        };
        let program = self.program.clone().into_os_string();
        let emulation = Emulation {
            paths: links.iter().map(path).collect(),
            seed,
            client: hosts.client,
            server: Some(hosts.server),
            output: Output::Error,
            init: vec![program, "emulate-init".into(), process::id().to_string().into()],
        };
        let emulated = emulate::run(&emulation, interrupted)?;
        if emulated.interrupted { Err(BenchError::Interrupted) } else { Ok(emulated) }
    }

    fn make_scratch(&self) -> Result<(), BenchError> {
        if self.scratch.exists() {
            self.remove_scratch()?;
        }
        let path = || self.scratch.clone();
        fs::create_dir_all(&self.scratch)
            .map_err(|source| BenchError::File { path: path(), source })
    }

    fn remove_scratch(&self) -> Result<(), BenchError> {
        let path = || self.scratch.clone();
        fs::remove_dir_all(&self.scratch)
            .map_err(|source| BenchError::File { path: path(), source })
    }
}

/// The commands of both hosts.
struct Hosts {
    client: Vec<OsString>,
    server: Vec<OsString>,
}

/// What a host wrote; null if it wrote nothing.
fn result(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn account(seconds: f64, emulated: &Emulated) -> Transfer {
    let forward = || emulated.paths.iter().map(|[forward, _]| forward);
    Transfer {
        seconds,
        wire_bytes: forward().map(|tally| tally.bytes).sum(),
        packets: forward().map(|tally| tally.packets).sum(),
        log: Vec::new(),
        wake_us: None,
        lateness_us: emulated.lateness.quantile(0.99).as_micros_f64(),
        doubts: emulated.doubts(MAX_LATENESS),
    }
}

/// `acklab emulate`'s own bound.
const MAX_LATENESS: Span = Span::from_millis(1);
/// Both ends are ours.
const PASSPHRASE: &str = "course-slice-of-2018";
