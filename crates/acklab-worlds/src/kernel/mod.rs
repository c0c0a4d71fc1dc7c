//! The running Linux kernel as a world: a sender of messages that is the kernel's TCP in every case, and a receiver
//! that is the kernel's, too, or acklab's with another system's profile behind a TUN device.
//!
//! [`Testbed::run`] makes two network namespaces with the emulator between them (acklab-net), the sender's process
//! (sender.rs) in the one and the receiver's (receiver.rs) in the other. As in the published experiment the sender
//! listens and the receiver connects. The sender stamps each message just before its write and listens to its own
//! wire. Nothing has a name that could stay: namespaces, devices and the files that the processes write their results
//! into end with the processes, and these with the program that called, however it ended.

mod process;
mod receiver;
mod sender;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use acklab_core::link::LinkConfig;
use acklab_core::time::Span;
use acklab_net::emulate::{
    self, EmulateError, Emulated, Emulation, Output, Path, Sysctls, vocabulary,
};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::receiver::Received;
use self::sender::Sent;
use crate::exchange::Exchange;
use crate::nagle::Experiment;

pub use self::receiver::run as receive;
pub use self::sender::run as send;

/// Where runs on the running kernel are made.
#[derive(Clone, Debug)]
pub struct Testbed {
    /// How this program is called again.
    pub verbs: Verbs,
    /// A run in which more than 1 % of the packets left the emulator later than this is not valid.
    pub max_lateness: Span,
    /// Ends it early.
    pub interrupted: Arc<AtomicBool>,
}

/// How this program is called again.
#[derive(Clone, Debug)]
pub struct Verbs {
    /// Its file.
    pub program: PathBuf,
    /// The verb that calls [`emulate::init::run`] with the process number and the words that follow.
    pub init: &'static str,
    /// The verb that calls [`send`] with the experiment that follows.
    pub sender: &'static str,
    /// The verb that calls [`receive`] with the experiment that follows.
    pub receiver: &'static str,
}

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The testbed could not be made, or broke.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// A file of the host failed.
    #[error("{doing}: {source}")]
    Host {
        /// What was being attempted.
        doing: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// One of the two processes gave no result.
    #[error("the {end} ended with status {status}{} and {what}", how(*status))]
    Process {
        /// `sender` or `receiver`.
        end: &'static str,
        /// 128 + the signal, if one ended it.
        status: i32,
        /// What is missing.
        what: String,
    },
    /// The run happened and cannot be trusted.
    #[error("not valid: {0}")]
    Invalid(String),
    /// The experiment asks for what the testbed does not do.
    #[error("{0}")]
    Cannot(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl KernelError {
    fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Host { doing, source }
    }

    /// Whether the next attempt can succeed where this one did not: the machine was too busy, or a process of the run
    /// was killed.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Invalid(_)
                | Self::Process { .. }
                | Self::Emulate(EmulateError::Relay { .. } | EmulateError::Gone)
        )
    }
}

/// A run and where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What the sender's wire showed.
    pub exchange: Exchange,
    /// Kernel, settings, clock source, load, lateness: `acklab.kernel-run/1`.
    pub environment: Value,
}

impl Testbed {
    /// Whether the testbed can do `experiment`.
    pub fn check(experiment: &Experiment) -> Result<(), KernelError> {
        if experiment.loss > 0.0 {
            return Err(KernelError::Cannot(
                "loss: the kernel's testbed has links without loss".into(),
            ));
        }
        Ok(())
    }

    /// One run, which takes the real time of the experiment.
    pub fn run(&self, experiment: &Experiment, seed: u64) -> Result<Done, KernelError> {
        Self::check(experiment)?;
        let unnamed = || tempfile::tempfile().map_err(KernelError::host("make a file for results"));
        let files = Arc::new([unnamed()?, unnamed()?]);
        let emulation = self.emulation(experiment, seed, Arc::clone(&files))?;
        let emulated = emulate::run(&emulation, &self.interrupted)?;
        if emulated.interrupted {
            return Err(KernelError::Interrupted);
        }
        let [mut received, mut sent] = Arc::try_unwrap(files)
            .or_else(|files| Ok::<_, io::Error>([files[0].try_clone()?, files[1].try_clone()?]))
            .map_err(KernelError::host("read the results"))?;
        let received: Received = result(&mut received, "receiver", emulated.status)?;
        let sent: Sent = result(&mut sent, "sender", emulated.server_status.unwrap_or(0))?;
        let doubts = self.doubts(experiment, &emulated, &sent, received.bytes);
        if !doubts.is_empty() {
            return Err(KernelError::Invalid(doubts.join("; ")));
        }
        let environment = environment(experiment, seed, &emulated, &sent, self.max_lateness);
        Ok(Done { exchange: Exchange { reads: received.reads, ..sent.exchange }, environment })
    }

    fn emulation(
        &self,
        experiment: &Experiment,
        seed: u64,
        files: Arc<[File; 2]>,
    ) -> Result<Emulation, KernelError> {
        let Verbs { program, init, sender, receiver } = &self.verbs;
        let words =
            serde_json::to_string(experiment).map_err(|e| KernelError::Cannot(e.to_string()))?;
        let command = |verb: &str| -> Vec<OsString> {
            vec![program.into(), verb.into(), words.clone().into()]
        };
        let link = link(experiment).map_err(KernelError::Cannot)?;
        Ok(Emulation {
            paths: vec![Path { forward: link.clone(), reverse: link }],
            seed,
            client: command(receiver),
            server: Some(command(sender)),
            output: Output::Files(files),
            init: vec![program.into(), (*init).into(), std::process::id().to_string().into()],
        })
    }

    /// Why the run cannot be trusted.
    fn doubts(
        &self,
        experiment: &Experiment,
        emulated: &Emulated,
        sent: &Sent,
        received: u64,
    ) -> Vec<String> {
        let mut doubts = emulated.doubts(self.max_lateness);
        let messages = experiment.messages;
        let bytes = messages * u64::from(experiment.message);
        let writes = sent.exchange.writes.len() as u64;
        if writes != messages || received != bytes {
            doubts.push(format!(
                "{writes} of {messages} messages were written, {received} of {bytes} B were read"
            ));
        }
        let late = Span::from_nanos(sent.late[1]);
        if late > self.max_lateness {
            let (late, most) = (late.as_micros_f64(), self.max_lateness.as_micros_f64());
            doubts.push(format!(
                "1 % of the messages were written more than {late:.0} us late, and {most:.0} us are allowed"
            ));
        }
        if sent.lost_frames > 0 {
            doubts.push(format!("{} frames are missing in the capture", sent.lost_frames));
        }
        if sent.clock_moved > MOST_CLOCK_STEP {
            let moved = sent.clock_moved / 1000;
            doubts.push(format!("the time of day was set by {moved} us during the run"));
        }
        doubts
    }
}

/// Half of the round trip, with the rate, in netem's words.
fn link(experiment: &Experiment) -> Result<LinkConfig, String> {
    let mut words = format!("delay {}us", (experiment.rtt / 2) as f64 / 1e3);
    if let Some(rate) = experiment.rate {
        let _ = write!(words, " rate {rate}bit");
    }
    vocabulary::parse(&words).map_err(|error| error.to_string())
}

/// What a process wrote into its file.
fn result<T: DeserializeOwned>(
    file: &mut File,
    end: &'static str,
    status: i32,
) -> Result<T, KernelError> {
    let mut text = String::new();
    file.rewind()
        .and_then(|()| file.read_to_string(&mut text))
        .map_err(KernelError::host("read the results"))?;
    let outcome: Result<Result<T, String>, _> = serde_json::from_str(&text);
    let missing = |what| KernelError::Process { end, status, what };
    outcome.map_err(|_| missing("without a result".to_owned()))?.map_err(missing)
}

/// 128 + SIGKILL or SIGXCPU, in words.
fn how(status: i32) -> &'static str {
    match status - 128 {
        signal if signal == Signal::SIGKILL as i32 => " (killed)",
        signal if signal == Signal::SIGXCPU as i32 => " (held the processor for too long)",
        _ => "",
    }
}

/// Where a run happened and how far it can be trusted: `acklab.kernel-run/1`.
fn environment(
    experiment: &Experiment,
    seed: u64,
    emulated: &Emulated,
    sent: &Sent,
    max_lateness: Span,
) -> Value {
    let settings = |sysctls: &Sysctls| -> Value {
        sysctls.iter().map(|(name, value)| (format!("net.ipv4.{name}"), json!(value))).collect()
    };
    let of = &emulated.environment;
    let lateness = &emulated.lateness;
    json!({
        "schema": "acklab.kernel-run/1",
        "receiver": experiment.receiver,
        "nagle": if experiment.nagle { "on" } else { "off" },
        "rtt_ms": experiment.rtt as f64 / 1e6,
        "period_ms": experiment.period as f64 / 1e6,
        "messages": experiment.messages,
        "message_bytes": experiment.message,
        "seed": seed,
        "kernel": of.kernel,
        "clock_source": of.clock,
        "load": of.load,
        "cpus": of.cpus,
        // TUN devices without vnet headers have none.
        "offloads": "none",
        "congestion_control": sent.congestion,
        "sender": settings(&of.sysctls[1]),
        "receiver_host": settings(&of.sysctls[0]),
        "emulator": {
            "packets": lateness.count(),
            "lateness_p50_us": lateness.quantile(0.5).as_micros_f64(),
            "lateness_p99_us": lateness.quantile(0.99).as_micros_f64(),
            "lateness_max_us": lateness.max().as_micros_f64(),
            "max_lateness_us": max_lateness.as_micros_f64(),
            "scheduler": if emulated.fifo { "SCHED_FIFO" } else { "SCHED_OTHER" },
        },
        "writes": {
            "late_p50_us": sent.late[0] as f64 / 1e3,
            "late_p99_us": sent.late[1] as f64 / 1e3,
            "late_max_us": sent.late[2] as f64 / 1e3,
            "scheduler": if sent.fifo { "SCHED_FIFO" } else { "SCHED_OTHER" },
        },
        "clock_moved_us": sent.clock_moved as f64 / 1e3,
        "seconds": emulated.seconds,
    })
}

/// Beyond this the time of day was set, ns: steering moves it by at most 500 ppm (adjtimex(2)), 50 us in 100 ms, and a sender
/// that lost its processor between its two looks at a clock is late by less than the lateness that is allowed.
const MOST_CLOCK_STEP: u64 = 1_000_000;
