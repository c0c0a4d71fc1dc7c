//! SRT in file mode as a peer: `srt-file-transmit` of Debian's srt-tools, not encrypted.
//!
//!     srt-peer recv DIR ADDR:PORT          the file arrives in DIR, under the sender's name
//!     srt-peer send FILE DIR ADDR:PORT BYTES
//!
//! Its sender ends when its buffer is empty, that is, when all was acknowledged; its time is the whole process's. Then the
//! file in DIR is compared in size; that takes no part of the time.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use acklab_bench_transport::say;

/// How long its receiver may take to write what it has.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = |from: &str, to: &str| {
        Command::new("srt-file-transmit").args(["-q", from, to]).stdout(Stdio::null()).status()
    };
    match words[..] {
        ["recv", folder, address] => {
            run(
                &format!("srt://{address}?mode=listener"),
                &format!("file://{folder}/named-by-the-sender"),
            )?;
            Ok(())
        }
        ["send", file, folder, address, bytes] => {
            let start = Instant::now();
            let ended = run(&format!("file://{file}"), &format!("srt://{address}"))?;
            let took = start.elapsed();
            if !ended.success() {
                return Err(format!("srt-file-transmit: {ended}").into());
            }
            let name = Path::new(file).file_name().ok_or("no name")?;
            say(written(&Path::new(folder).join(name), bytes.parse()?), bytes.parse()?, took)
        }
        _ => Err("usage: srt-peer recv DIR ADDR | send FILE DIR ADDR BYTES".into()),
    }
}

/// Bytes of the file once the receiver, which writes the last of them as it ends, has written so many, or after [`PATIENCE`].
fn written(path: &Path, all: u64) -> u64 {
    let since = Instant::now();
    loop {
        let length = fs::metadata(path).map_or(0, |file| file.len());
        if length >= all || since.elapsed() > PATIENCE {
            return length;
        }
        sleep(Duration::from_millis(5));
    }
}
