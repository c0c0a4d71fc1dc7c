//! `acklab diagnose`: why are small messages late, on which host, and what to change.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use acklab_lab::report::diagnose::diagnose_html;
use acklab_lab::whatif;
use acklab_trace::capture::{CaptureError, CaptureReader};
use acklab_trace::check::{Check, METRICS};
use acklab_trace::{Diagnosis, Options};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::anonymous;
use crate::outcome::{Failure, print, tell};
use crate::piped::Piped;

/// Find out from a capture whether and why writes were held back in a sender
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(crate) struct Diagnose {
    /// The capture: pcap or pcapng, also gzipped; `-` reads standard input
    file: PathBuf,
    /// A second capture of the same connections, taken at the servers, where FILE was taken at the clients
    #[arg(value_name = "SERVER")]
    server: Option<PathBuf>,
    /// How to write the diagnosis to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: DiagnosisFormat,
    /// Write report.html, diagnosis.json and diagnosis.txt into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Exit with 1 unless this holds, for example 'stalls==0' or 'p99_ms<50'; may be repeated
    #[arg(long = "check", value_name = "EXPR")]
    checks: Vec<String>,
    /// Write nothing to standard output, only what --check finds to standard error
    #[arg(long, short, requires = "checks")]
    quiet: bool,
    /// Write the capture without addresses, payload and names to OUT, and diagnose that: both can be handed on
    #[arg(long, value_name = "OUT", conflicts_with_all = ["server", "flow"])]
    anonymise: Option<PathBuf>,
    /// The file with the 64 hexadecimal digits that decide --anonymise's mappings: with the same ones two captures stay
    /// comparable [default: random, and forgotten]
    #[arg(long, value_name = "FILE", requires = "anonymise")]
    key: Option<PathBuf>,
    /// Only this connection, numbered from 0 as Wireshark's tcp.stream
    #[arg(long, value_name = "N")]
    flow: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiagnosisFormat {
    /// For people
    Text,
    /// Exactly one JSON object, schema acklab.diagnose/1
    Json,
    /// The report, one self-contained page
    Html,
}

impl Diagnose {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let checks = parse_checks(&self.checks)?;
        if let Some(dir) = &self.out {
            make_folder(dir)?;
        }
        if let Some(out) = self.anonymise.take() {
            anonymous::write(&self.file, &out, self.key.as_deref())?;
            self.file = out;
        }
        let options = Options { flow: self.flow, ..Options::default() };
        let mut diagnosis = match &self.server {
            Some(server) => read_pair(&self.file, server, &options)?,
            None => read(&self.file, &options)?,
        };
        if let Some(flow) = self.flow
            && diagnosis.flows.is_empty()
        {
            let connections = diagnosis.capture.connections;
            return Err(Failure::Unusable(format!(
                "{}: there is no connection {flow}; the capture holds {connections}, numbered from 0",
                self.file.display()
            )));
        }
        let mut name = self.file.display().to_string();
        if let Some(server) = &self.server {
            name = format!("{name} {}", server.display());
        }
        if diagnosis.capture.tcp_segments > 0 {
            diagnosis.hold_to(&checks);
        }
        if let Some(dir) = &self.out {
            write_files(dir, &diagnosis, &name)?;
        }
        match self.format {
            _ if self.quiet => {}
            DiagnosisFormat::Text => print(&diagnosis.to_text())?,
            DiagnosisFormat::Json => print(&(json(&diagnosis)? + "\n"))?,
            DiagnosisFormat::Html => print(&html(&diagnosis, &name)?)?,
        }
        if let Some(dir) = &self.out {
            tell(&format!("report: {}", dir.join("report.html").display()));
        }
        judge(&checks, &diagnosis)
    }
}

/// Reads what `--check` says.
pub(crate) fn parse_checks(texts: &[String]) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for text in texts {
        checks.extend(Check::parse(text).map_err(|e| Failure::at("--check", e))?);
    }
    Ok(checks)
}

/// Reads and diagnoses a capture, with a progress bar on a terminal, and asks what the best remedy would have done.
pub(crate) fn read(file: &Path, options: &Options) -> Result<Diagnosis, Failure> {
    let bar = match fs::metadata(file) {
        Ok(meta) if meta.len() >= BAR_FROM_BYTES && io::stderr().is_terminal() => {
            let style =
                ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(meta.len()).with_style(style)
        }
        _ => ProgressBar::hidden(),
    };
    let diagnosis = if file == Path::new("-") {
        let mut piped = Piped::open()?;
        CaptureReader::new(&mut piped)
            .and_then(|mut reader| acklab_trace::explain_worst_reader(&mut reader, options, |_| ()))
    } else {
        acklab_trace::explain_worst(file, options, |bytes| bar.set_position(bytes))
    };
    bar.finish_and_clear();
    let mut diagnosis = diagnosis.map_err(|error| unreadable(file, error))?;
    diagnosis.cure = whatif::cure(&diagnosis);
    Ok(diagnosis)
}

/// Reads and diagnoses two captures of the same connections.
fn read_pair(client: &Path, server: &Path, options: &Options) -> Result<Diagnosis, Failure> {
    if [client, server].contains(&Path::new("-")) {
        return Err(Failure::Unusable(
            "two captures are read more than once each: give files, not standard input".into(),
        ));
    }
    acklab_trace::diagnose_pair(client, server, options)
        .map_err(|(file, error)| unreadable(&file, error))
}

pub(crate) fn unreadable(file: &Path, error: CaptureError) -> Failure {
    match error {
        // Names the file already.
        CaptureError::Open { .. } => Failure::Unusable(error.to_string()),
        error => Failure::at(file.display(), error),
    }
}

/// Makes the folder and makes sure that files can be written there, before the work begins.
pub(crate) fn make_folder(dir: &Path) -> Result<(), Failure> {
    let probe = dir.join("report.html");
    fs::create_dir_all(dir)
        .and_then(|()| fs::OpenOptions::new().append(true).create(true).open(&probe))
        .map(drop)
        .map_err(|error| Failure::at(format!("--out {}", dir.display()), error))
}

/// Writes the diagnosis in its three forms.
pub(crate) fn write_files(dir: &Path, diagnosis: &Diagnosis, name: &str) -> Result<(), Failure> {
    let files = [
        ("report.html", html(diagnosis, name)?),
        ("diagnosis.json", json(diagnosis)? + "\n"),
        ("diagnosis.txt", diagnosis.to_text()),
    ];
    for (file, text) in files {
        let path = dir.join(file);
        fs::write(&path, text).map_err(|error| Failure::at(path.display(), error))?;
    }
    Ok(())
}

fn json(diagnosis: &Diagnosis) -> Result<String, Failure> {
    diagnosis.to_json().map_err(|error| Failure::at("the diagnosis as JSON", error))
}

fn html(diagnosis: &Diagnosis, name: &str) -> Result<String, Failure> {
    let conditions = vec![
        ("command".to_owned(), format!("acklab diagnose {name}")),
        ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    diagnose_html(diagnosis, name, conditions).map_err(|error| Failure::at("the report", error))
}

/// Tells on standard error what became of each check that the diagnosis was held to.
pub(crate) fn judge(checks: &[Check], diagnosis: &Diagnosis) -> Result<(), Failure> {
    if checks.is_empty() {
        return Ok(());
    }
    if diagnosis.capture.tcp_segments == 0 {
        return Err(Failure::Unusable(
            "--check: there was no TCP at all, so no check says anything".into(),
        ));
    }
    let mut holds = true;
    for outcome in &diagnosis.checks {
        let verdict = if outcome.holds { "holds" } else { "does not hold" };
        tell(&format!("check {}: {verdict} ({})", outcome.check, outcome.value));
        holds &= outcome.holds;
    }
    if holds { Ok(()) } else { Err(Failure::Check) }
}

fn long_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nMetrics for --check:\n");
    for (name, meaning) in METRICS {
        text.extend(["  ", name, ": ", meaning, "\n"]);
    }
    text
}

/// Smaller files are read before a bar could be seen.
const BAR_FROM_BYTES: u64 = 32 << 20;
const BAR: &str = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

const EXAMPLES: &str = "\
Examples:
  acklab diagnose slow.pcapng
  acklab diagnose slow.pcap.gz --out out/slow          with a report to open in a browser
  tcpdump -w - port 4712 | acklab diagnose -           until Ctrl-C
  acklab diagnose slow.pcapng --anonymise shown.pcapng --out shown   both can be handed on
  acklab diagnose client.pcap server.pcap              two captures of the same connections: clocks, losses,
                                                       which host waited
  acklab diagnose nightly.pcap --quiet --check 'stalls==0'
                                                       exit 0 if it holds, 1 if not";
