//! `acklab watch`: the running kernel's connections, judged while they run.

mod view;
pub(crate) mod words;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acklab_live::chosen::Chosen;
use acklab_live::told::{Summary, Told};
use acklab_live::watch;
use acklab_trace::Diagnosis;
use clap::Args;

use self::view::View;
use self::words::{failure, in_words};
use crate::diagnose::{judge, parse_checks};
use crate::outcome::{Failure, Format, interruption, print};

/// Watch this host's TCP for held writes as they happen, without a capture file (Linux, root)
///
/// Hears the headers of all TCP of this network namespace (with --pid, of that process's), judges them as `acklab
/// diagnose` judges a capture, and names each stall with the process behind it. The traffic is never slowed. Ctrl-C
/// ends it with a summary.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// Only connections of this process
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Only connections with this port at one end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only connections of the processes in this cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Exit with 1 unless this holds in the end, as with `acklab diagnose`; may be repeated
    #[arg(long = "check", value_name = "EXPR")]
    checks: Vec<String>,
    /// End after so many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// How to tell it: for people, or one JSON object per line, schema acklab.watch/1
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Watch {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let checks = parse_checks(&self.checks)?;
        let interrupted = interruption()?;
        let chosen = Chosen { pid: self.pid, port: self.port, cgroup: self.cgroup };
        let mut watch = watch::Watch::begin(&chosen).map_err(failure)?;
        let mut view = (self.format == Format::Text && io::stdout().is_terminal()).then(View::open);
        let end = self.seconds.map(Duration::from_secs);
        while !interrupted.load(Ordering::Relaxed) && end.is_none_or(|end| watch.watched() < end) {
            for told in watch.turn().map_err(failure)? {
                match (&mut view, self.format) {
                    (Some(view), _) => view.note(&told),
                    (None, Format::Json) => print_told(&told)?,
                    (None, Format::Text) => print(&line(&told))?,
                }
            }
            if let Some(view) = &mut view {
                view.refresh(&mut watch)?;
            }
        }
        drop(view);
        let (mut summary, mut diagnosis) = watch.finish();
        if diagnosis.capture.tcp_segments > 0 {
            diagnosis.hold_to(&checks);
            summary.checks.clone_from(&diagnosis.checks);
        }
        // Without a time, Ctrl-C is how a watch ends.
        let is_complete = end.is_none_or(|end| summary.watched_s >= end.as_secs_f64());
        summary.complete = is_complete;
        match self.format {
            Format::Json => print_told(&Told::Summary(Box::new(summary)))?,
            Format::Text => print(&text(&summary, &diagnosis))?,
        }
        judge(&checks, &diagnosis)?;
        if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }
}

fn print_told(told: &Told) -> Result<(), Failure> {
    let json =
        serde_json::to_string(told).map_err(|error| Failure::at("the watch as JSON", error))?;
    print(&(json + "\n"))
}

/// One stall in one line.
fn line(told: &Told) -> String {
    match told {
        Told::Stall { held, .. } => format!("{}\n", in_words(held)),
        _ => String::new(),
    }
}

/// The summary for people: the processes, then the diagnosis.
fn text(summary: &Summary, diagnosis: &Diagnosis) -> String {
    let Summary { complete, watched_s, frames, dropped, connections, stalls, .. } = summary;
    let mut text = format!(
        "\nWatched {watched_s:.1} s: {frames} frames of {connections} connections, {dropped} dropped{}\n",
        if *complete { "" } else { "; ended before the time that was asked for" }
    );
    for held in stalls {
        text.extend(["  ", &in_words(held), "\n"]);
        if let Some(fix) = &held.fix {
            text.extend(["    mend it on this host: ", fix, "\n"]);
        }
    }
    text + "\n" + &diagnosis.to_text()
}

const EXAMPLES: &str = "\
Examples:
  sudo acklab watch                                    everything, on a terminal
  sudo acklab watch --port 4712 --seconds 10 --check 'stalls==0'
  sudo acklab watch --pid $(pidof broker) --format json";
