//! One conversation on the running kernel: two namespaces with the emulator between them, a process at either end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use acklab_core::time::{Span, Time};
use acklab_net::emulate::{self, EmulateError, Emulation, Output, Path, vocabulary};
use acklab_trace::capture::CaptureReader;

pub use super::play::run as play;
use super::script::{Case, Logged};

/// How this program is called again.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Its file.
    pub program: PathBuf,
    /// The verb that calls [`emulate::init::run`] with the process number and the words that follow.
    pub init: &'static str,
    /// The verb that calls [`play`] with the case, the end's number and whether it connects, as they follow.
    pub play: &'static str,
    /// A run in which more than 1 % of the packets left the emulator later than this is not valid.
    pub max_lateness: Span,
    /// Ends it early.
    pub interrupted: Arc<AtomicBool>,
}

/// Why a conversation gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The testbed could not be made, or broke.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// A file of the host failed.
    #[error("the results: {0}")]
    Host(#[from] io::Error),
    /// The link's words.
    #[error("link: {0}")]
    Link(String),
    /// An end gave no result.
    #[error("end {end}: {reason}")]
    End {
        /// 0 is the client.
        end: usize,
        /// In words.
        reason: String,
    },
    /// The run happened and cannot be trusted.
    #[error("not valid: {0}")]
    Invalid(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// What one end logged and captured.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its calls.
    pub log: Vec<Logged>,
    /// Every frame that left it or came to it, raw IP.
    pub frames: Vec<(Time, Vec<u8>)>,
}

/// A conversation as both of its ends saw it.
#[derive(Clone, Debug)]
pub struct Done {
    /// Client, server.
    pub sides: [Side; 2],
    /// The kernel's release.
    pub kernel: String,
    /// How late the emulator was, p99, us.
    pub lateness_us: f64,
    /// Share of packets that the emulated link lost, by direction.
    pub lost: [u64; 2],
}

impl Lab {
    /// Plays `case`, which takes the real time of it.
    pub fn run(&self, case: &Case) -> Result<Done, LabError> {
        // acklab's TCP connects, for the emulator looks for a kernel's listening socket.
        let connector = case.ends.iter().position(|end| end.foreign.is_some()).unwrap_or(0);
        let files = Arc::new([tempfile::tempfile()?, tempfile::tempfile()?]);
        let emulation = self.emulation(case, connector, Arc::clone(&files))?;
        let emulated = emulate::run(&emulation, &self.interrupted)?;
        if emulated.interrupted {
            return Err(LabError::Interrupted);
        }
        let statuses = [emulated.status, emulated.server_status.unwrap_or(0)];
        let mut sides = [Side::default(), Side::default()];
        for (file, (status, end)) in
            files.iter().zip(statuses.into_iter().zip([connector, 1 - connector]))
        {
            sides[end] = side(file.try_clone()?).map_err(|reason| LabError::End {
                end,
                reason: format!("{reason} (status {status})"),
            })?;
        }
        let doubts = emulated.doubts(self.max_lateness);
        if !doubts.is_empty() {
            return Err(LabError::Invalid(doubts.join("; ")));
        }
        let tally = |direction: usize| emulated.paths[0][direction].lost;
        let lost = if connector == 0 { [tally(0), tally(1)] } else { [tally(1), tally(0)] };
        Ok(Done {
            sides,
            kernel: emulated.environment.kernel.clone(),
            lateness_us: emulated.lateness.quantile(0.99).as_micros_f64(),
            lost,
        })
    }

    fn emulation(
        &self,
        case: &Case,
        connector: usize,
        files: Arc<[File; 2]>,
    ) -> Result<Emulation, LabError> {
        let words = serde_json::to_string(case).map_err(io::Error::from)?;
        let command = |end: usize, connects: bool| -> Vec<OsString> {
            let verb = [self.program.clone().into(), self.play.into(), words.clone().into()];
            verb.into_iter().chain([end.to_string().into(), connects.to_string().into()]).collect()
        };
        let link = |direction: usize| {
            vocabulary::parse(&case.link[direction]).map_err(|e| LabError::Link(e.to_string()))
        };
        let init: Vec<OsString> = vec![
            self.program.clone().into(),
            self.init.into(),
            std::process::id().to_string().into(),
        ];
        Ok(Emulation {
            paths: vec![Path { forward: link(connector)?, reverse: link(1 - connector)? }],
            seed: case.seed,
            client: command(connector, true),
            server: Some(command(1 - connector, false)),
            output: Output::Files(files),
            init,
        })
    }
}

/// What a process wrote into its file: a line of JSON, and a capture.
fn side(mut file: File) -> Result<Side, String> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    let Some(line) = bytes.iter().position(|&byte| byte == b'\n') else {
        return Err("no result".to_owned());
    };
    let log: Result<Vec<Logged>, String> =
        serde_json::from_slice(&bytes[..line]).map_err(|error| error.to_string())?;
    let log = log?;
    let mut reader = CaptureReader::new(&bytes[line + 1..]).map_err(|error| error.to_string())?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().map_err(|error| error.to_string())? {
        frames.push((frame.time, frame.bytes.to_vec()));
    }
    Ok(Side { log, frames })
}
