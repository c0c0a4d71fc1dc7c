//! How a verb ends: what is printed, and the exit status.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

/// How a result is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: JSON, whose schemas are in docs/schema.
    Json,
}

/// Why a verb did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check that was asked for does not hold: exit 1. The output was already written.
    Check,
    /// What was asked for was not decided, not finished, ended early by Ctrl-C, or could not all be checked: exit 3.
    /// What is known was already written.
    Incomplete,
    /// Unusable input or arguments: exit 2 with this message.
    Unusable(String),
    /// The reader of our output went away: nothing is left to say.
    ReaderGone,
}

impl Failure {
    /// What was wrong with `what`, in the words of `error`.
    pub(crate) fn at(what: impl Display, error: impl Display) -> Self {
        Self::Unusable(format!("{what}: {error}"))
    }
}

/// Writes a verb's result to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::at("standard output", error)),
    }
}

/// Writes one JSON object as one line of standard output.
pub(crate) fn print_line(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// Becomes true with the first Ctrl-C or SIGTERM, so that what is known can be told; the second ends the program.
pub(crate) fn early_end() -> Result<Arc<AtomicBool>, Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(ENDED_BY_SIGINT);
        }
    })
    .map_err(|error| Failure::at("Ctrl-C", error))?;
    Ok(ended)
}

/// Becomes true with Ctrl-C or SIGTERM.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::at("Ctrl-C", error))?;
    Ok(interrupted)
}

/// What was typed, as a report shows it: without the folder of the program.
pub(crate) fn command_line() -> String {
    std::iter::once("acklab".to_owned())
        .chain(std::env::args().skip(1))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Writes one JSON object to standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Says something beside the result, on standard error. That it may be closed is no failure: results
/// and exit status do not depend on it.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Removes an output that is of no use; a device or a pipe is the user's and stays.
pub(crate) fn discard(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() { fs::remove_file(path) } else { Ok(()) }
}

/// Tells a failure on standard error and chooses the exit status.
pub(crate) fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Check) => ExitCode::from(1),
        Err(Failure::Unusable(message)) => {
            tell(&format!("acklab: {message}"));
            ExitCode::from(2)
        }
        Err(Failure::Incomplete) => ExitCode::from(3),
    }
}

/// 128 and the number of the signal, as shells have it.
const ENDED_BY_SIGINT: i32 = 130;
