//! `acklab emulate`: two commands talk over links that exist only here.

use std::ffi::OsString;
use std::process;

use acklab_core::link::Outage;
use acklab_core::time::Span;
use acklab_net::emulate::{
    self, EmulateError, Emulated, Emulation, Environment, MAX_PATHS, Output, Path, Sysctls, Tally,
    init,
    vocabulary::{self, VocabularyError},
};
use clap::Args;
use serde_json::{Value, json};

use crate::outcome::{Failure, Format, interruption, print_json, tell};

/// Run a command over an emulated link: delay, rate, loss, queues, real packets (Linux, root)
///
/// COMMAND runs in a private network whose only way out is the emulated link; at its other end is
/// the server's network, where the command of --server runs. On path P the client is 10.77.P.1 and
/// the server 10.77.P.2; both commands find these in ACKLAB_LOCAL and ACKLAB_REMOTE (separated by
/// spaces, path 0 first), and fd77:0:0:P::1 and ::2 in ACKLAB_LOCAL6 and ACKLAB_REMOTE6. The machine's
/// own network stays as it is, and nothing is left behind.
#[derive(Args)]
#[command(after_help = examples())]
pub(crate) struct Emulate {
    /// What the way from client to server is like
    #[arg(long, value_name = "LINK", default_value = "")]
    forward: String,
    /// What the way from server to client is like
    #[arg(long, value_name = "LINK", default_value = "")]
    reverse: String,
    /// Number of such paths, each with two separate directions
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_PATHS)))]
    paths: u8,
    /// Path P is dead in both directions FROM a time on, UNTIL another; may be given again
    #[arg(long, value_name = "P@FROM[-UNTIL]")]
    down_path: Vec<String>,
    /// The server's command, for sh; it is started first, and COMMAND when it listens or after 2 s
    #[arg(long, value_name = "COMMAND")]
    server: Option<OsString>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The run is invalid if more than 1 % of the packets leave later than this
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    max_lateness: String,
    /// How to say what was measured: text, to standard error, or json, to standard output, which sends the commands' own
    /// output to standard error
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// The client's command and its arguments, best behind `--`. Client and server see process ids of their own: neither can
    /// signal the other by number
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// Process 1 of an emulated host: `acklab emulate` alone starts it.
#[derive(Args)]
pub(crate) struct EmulateInit {
    parent: u32,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl EmulateInit {
    pub(crate) fn run(self) -> Result<(), Failure> {
        process::exit(init::run(self.parent, &self.command))
    }
}

impl Emulate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let max_lateness =
            self.max_lateness.parse().map_err(|error| Failure::at("--max-lateness", error))?;
        let emulation = self.emulation()?;
        let interrupted = interruption()?;
        let emulated = emulate::run(&emulation, &interrupted).map_err(|error| match error {
            EmulateError::Paths(_) => Failure::at("--paths", error),
            error => Failure::at("emulate", error),
        })?;
        let doubts = emulated.doubts(max_lateness);
        match self.format {
            // Standard output is the commands'.
            Format::Text => tell(text(&emulated, doubts.is_empty()).trim_end()),
            Format::Json => print_json(&to_json(&emulation, &emulated, max_lateness))?,
        }
        for doubt in &doubts {
            tell(&format!("acklab: emulate: not valid: {doubt}"));
        }
        match emulated.status {
            _ if emulated.interrupted => Err(Failure::Incomplete),
            init::NOT_STARTED => Err(Failure::Unusable(
                "emulate: a command was not found or could not be started (status 127)".to_owned(),
            )),
            0 if doubts.is_empty() => Ok(()),
            _ => Err(Failure::Check),
        }
    }

    fn emulation(&self) -> Result<Emulation, Failure> {
        let read = |option: &str, text: &str| {
            vocabulary::parse(text).map_err(|VocabularyError { column, what }| {
                Failure::Unusable(format!("{option}:{column}: {what}"))
            })
        };
        let forward = read("--forward", &self.forward)?;
        let reverse = read("--reverse", &self.reverse)?;
        let mut paths = vec![Path { forward, reverse }; usize::from(self.paths)];
        for text in &self.down_path {
            let (path, outage) =
                down_path(text, self.paths).map_err(|what| Failure::at("--down-path", what))?;
            let Path { forward, reverse } = &mut paths[path];
            for direction in [forward, reverse] {
                direction.impairments.outages.push(outage);
            }
        }
        let itself = std::env::current_exe()
            .map_err(|error| Failure::at("the program's own file", error))?;
        let shell = |command: &OsString| vec!["sh".into(), "-c".into(), command.clone()];
        Ok(Emulation {
            paths,
            seed: self.seed,
            client: self.command.clone(),
            server: self.server.as_ref().map(shell),
            output: if self.format == Format::Json { Output::Error } else { Output::Inherited },
            init: vec![itself.into(), "emulate-init".into(), process::id().to_string().into()],
        })
    }
}

/// Reads `P@FROM[-UNTIL]`.
fn down_path(text: &str, paths: u8) -> Result<(usize, Outage), String> {
    let example = "write for example 0@700ms or 0@0.7s-1.5s";
    let (path, times) =
        text.split_once('@').ok_or_else(|| format!("\"{text}\" has no @; {example}"))?;
    let path: usize = path.parse().map_err(|_| format!("\"{path}\" is no path; {example}"))?;
    if path >= usize::from(paths) {
        let last = paths - 1;
        return Err(format!("there is no path {path}; the last is {last}, see --paths"));
    }
    Ok((path, vocabulary::outage(times)?))
}

fn text(emulated: &Emulated, is_valid: bool) -> String {
    let directions = emulated.paths.iter().enumerate().flat_map(|(index, [forward, reverse])| {
        let line = move |name, tally| format!("path {index} {name}: {}\n", direction(tally));
        [line("forward", forward), line("reverse", reverse)]
    });
    let lateness = &emulated.lateness;
    let summary = format!(
        "command: status {}, {:.3} s{}\n\
         lateness: p50 {:.1} us, p99 {:.1} us, max {:.1} us of {} packets ({}): {}\n",
        emulated.status,
        emulated.seconds,
        if emulated.interrupted { ", interrupted" } else { "" },
        lateness.quantile(0.5).as_micros_f64(),
        lateness.quantile(0.99).as_micros_f64(),
        lateness.max().as_micros_f64(),
        lateness.count(),
        if emulated.fifo { "SCHED_FIFO" } else { "no SCHED_FIFO" },
        if is_valid { "valid" } else { "not valid" },
    );
    directions.chain([summary]).collect()
}

fn direction(tally: &Tally) -> String {
    format!(
        "{} packets, {} B; dropped {}, lost {}, marked {}, corrupted {}, duplicated {}; \
         queue mean {:.3} ms, p95 {:.3} ms, max {:.3} ms",
        tally.packets,
        tally.bytes,
        tally.dropped,
        tally.lost,
        tally.marked,
        tally.corrupted,
        tally.duplicated,
        tally.queue.mean().as_millis_f64(),
        tally.queue.quantile(0.95).as_millis_f64(),
        tally.queue.max().as_millis_f64(),
    )
}

/// The result as one JSON object.
fn to_json(emulation: &Emulation, emulated: &Emulated, max_lateness: Span) -> Value {
    let path = |[forward, reverse]: &[Tally; 2]| json!({ "forward": tally_json(forward), "reverse": tally_json(reverse) });
    let doubts = emulated.doubts(max_lateness);
    let lateness = &emulated.lateness;
    json!({
        "schema": SCHEMA,
        "seed": emulation.seed,
        "paths": emulated.paths.iter().map(path).collect::<Vec<_>>(),
        "lateness_us": {
            "packets": lateness.count(),
            "p50": lateness.quantile(0.5).as_micros_f64(),
            "p99": lateness.quantile(0.99).as_micros_f64(),
            "max": lateness.max().as_micros_f64(),
        },
        "mishaps": emulated.mishaps,
        "complete": !emulated.interrupted,
        "valid": doubts.is_empty(),
        "doubts": doubts,
        "command": {
            "status": emulated.status,
            "seconds": emulated.seconds,
            "interrupted": emulated.interrupted,
        },
        "server": { "status": emulated.server_status },
        "environment": environment(&emulated.environment),
        "timing": {
            "scheduler": if emulated.fifo { "SCHED_FIFO" } else { "SCHED_OTHER" },
            "max_lateness_us": max_lateness.as_micros_f64(),
        },
    })
}

fn environment(environment: &Environment) -> Value {
    let Environment { kernel, clock, load, cpus, sysctls } = environment;
    let settings = |sysctls: &Sysctls| -> Value {
        sysctls.iter().map(|(name, value)| (format!("net.ipv4.{name}"), json!(value))).collect()
    };
    json!({
        "kernel": kernel,
        "clock_source": clock,
        "load": load,
        "cpus": cpus,
        // TUN devices without vnet headers have none.
        "offloads": "none",
        "client": settings(&sysctls[0]),
        "server": settings(&sysctls[1]),
    })
}

fn tally_json(tally: &Tally) -> Value {
    json!({
        "packets": tally.packets,
        "bytes": tally.bytes,
        "delivered": tally.delivered,
        "delivered_bytes": tally.delivered_bytes,
        "dropped": tally.dropped,
        "lost": tally.lost,
        "marked": tally.marked,
        "corrupted": tally.corrupted,
        "duplicated": tally.duplicated,
        "queue_ms": {
            "mean": tally.queue.mean().as_millis_f64(),
            "p95": tally.queue.quantile(0.95).as_millis_f64(),
            "max": tally.queue.max().as_millis_f64(),
        },
    })
}

/// Name of the result's form.
const SCHEMA: &str = "acklab.emulate/1";

/// What a LINK is, and examples.
fn examples() -> String {
    let mut queues = String::new();
    let mut column = 0;
    for name in vocabulary::queues() {
        if column + name.len() > 70 {
            queues.push_str(",\n                                      ");
            column = 0;
        } else if column > 0 {
            queues.push_str(", ");
        }
        queues.push_str(name);
        column += name.len() + 2;
    }
    EXAMPLES.replace("QUEUES", &queues)
}

const EXAMPLES: &str = "\
A LINK, in netem's words; every part may be left out:
  delay TIME [JITTER]                 one way; jitter keeps the order
  rate RATE                           of the transmitter: 20mbit
  queue NAME [OPTION VALUE]...        QUEUES;
                                      their options: acklab scenarios --list queues
  limit N | TIME | BYTES              what may wait (or: buffer): 100 packets, 100ms (at the rate), 250kbyte;
                                      1000 packets without it
  loss P% | loss gemodel P% R% [1-H% [1-K%]]
  reorder P%                          these leave out the delay
  duplicate P%   corrupt P%           corrupt flips one bit
  outage FROM[-UNTIL]                 from the start of COMMAND on; may stand more than once

Examples:
  sudo acklab emulate --forward 'delay 20ms loss 5% rate 20mbit limit 100ms' --reverse 'delay 20ms' \\
      --server 'iperf3 -s -1' -- iperf3 -c 10.77.0.2
  sudo acklab emulate --forward 'delay 50ms' --reverse 'delay 50ms' -- bash

Exit status: 0 fine, 1 the command failed or the run is not valid, 2 unusable arguments or no permission.";
