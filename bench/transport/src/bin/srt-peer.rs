//! SRT in file mode as a peer: `srt-file-transmit` of Debian's srt-tools, not encrypted.
//!
//!     srt-peer recv DIR ADDR:PORT          the file arrives in DIR
//!     srt-peer send FILE DIR ADDR:PORT BYTES
//!
//! Its sender ends when its buffer is empty, that is, when all was acknowledged; its time is the whole process's. Then the
//! file in DIR is compared in size.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use acklab_bench_transport::say;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = |from: &str, to: &str| {
        Command::new("srt-file-transmit").args(["-q", from, to]).stdout(Stdio::null()).status()
    };
    match words[..] {
        ["recv", folder, address] => {
            run(&format!("srt://{address}?mode=listener"), &format!("file://{folder}/"))?;
            Ok(())
        }
        ["send", file, folder, address, bytes] => {
            let start = Instant::now();
            let ended = run(&format!("file://{file}"), &format!("srt://{address}"))?;
            let took = start.elapsed();
            if !ended.success() {
                return Err(format!("srt-file-transmit: {ended}").into());
            }
            let arrived = Path::new(file).file_name().map(|name| Path::new(folder).join(name));
            let arrived = arrived.map(fs::metadata).ok_or("no name")??.len();
            say(arrived, bytes.parse()?, took)
        }
        _ => Err("usage: srt-peer recv DIR ADDR | send FILE DIR ADDR BYTES".into()),
    }
}
