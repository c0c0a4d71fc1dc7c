//! `acklab record`: the real Linux kernel's TCP, talking to itself.

use std::path::PathBuf;

use acklab_net::record::RecordOptions;

use crate::recording::{self, RecordingError};
use clap::Args;
use serde_json::json;

use crate::outcome::{Failure, Format, early_end, print, print_json};

/// Record how this machine's kernel handles a write-write-read exchange (Linux, root)
///
/// A client writes a header, then a body, in two calls, and waits for the reply, over and over,
/// through the kernel's TCP in a private network namespace; nothing of it touches the machine's
/// network. `acklab run write-write-read` is the same in virtual time.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Record {
    /// The pcapng file to write
    file: PathBuf,
    /// How often the client asks and the server answers
    #[arg(long, value_name = "N", default_value_t = DEFAULT.exchanges,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    exchanges: u32,
    /// The client's first write per exchange, bytes; 0 leaves one write
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT.header_bytes as u32,
          value_parser = clap::value_parser!(u32).range(0..=MAX_WRITE))]
    header: u32,
    /// The client's second write per exchange, bytes
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT.body_bytes as u32,
          value_parser = clap::value_parser!(u32).range(1..=MAX_WRITE))]
    body: u32,
    /// The server's answer, bytes
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT.reply_bytes as u32,
          value_parser = clap::value_parser!(u32).range(1..=MAX_WRITE))]
    reply: u32,
    /// Set TCP_NODELAY on the client: the exchange with its fault mended
    #[arg(long)]
    nodelay: bool,
    /// How to say what was recorded
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Record {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let options = RecordOptions {
            exchanges: self.exchanges,
            header_bytes: self.header as usize,
            body_bytes: self.body as usize,
            reply_bytes: self.reply as usize,
            nodelay: self.nodelay,
        };
        let file = self.file.display();
        let recording = recording::record(&self.file, &options, &*early_end()?).map_err(
            |error| match error {
                RecordingError::Record(error) => Failure::at("record", error),
                RecordingError::File(error) => Failure::at(&file, error),
            },
        )?;
        let is_complete = recording.exchanges == self.exchanges;
        let seconds = recording.duration.as_secs_f64();
        match self.format {
            Format::Text => print(&format!(
                "{file}: {} frames of {} exchanges in {seconds:.3} s\n",
                recording.frames, recording.exchanges
            ))?,
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "file": file.to_string(),
                "frames": recording.frames,
                "duration_s": seconds,
                "exchanges": recording.exchanges,
                "complete": is_complete,
                "header_bytes": self.header,
                "body_bytes": self.body,
                "reply_bytes": self.reply,
                "nodelay": self.nodelay,
            }))?,
        }
        if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }
}

const DEFAULT: RecordOptions = RecordOptions::BDAT;
/// More would say nothing new about small writes.
const MAX_WRITE: i64 = 1 << 20;
/// The JSON's schema name.
const SCHEMA: &str = "acklab.record/1";

const EXAMPLES: &str = "\
Examples:
  sudo acklab record slow.pcapng               then: acklab diagnose slow.pcapng
  sudo acklab record mended.pcapng --nodelay
  sudo acklab record one-write.pcapng --header 0 --body 139";
