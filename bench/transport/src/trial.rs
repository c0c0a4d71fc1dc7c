//! One transfer through `acklab emulate`.

use std::error::Error;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::contender::{Contender, Workshop};
use crate::metered::{Reading, text};
use crate::setting::Setting;

/// What one transfer took.
#[derive(Clone, Debug)]
pub struct Trial {
    /// From connect to the application's last acknowledgment; none: not done within the limit.
    pub seconds: Option<f64>,
    /// Bytes with IP headers that entered the links forwards and backwards.
    pub wire: [u64; 2],
    /// The emulator kept its time and lost nothing of its own accord.
    pub valid: bool,
    /// Why it failed, where it did and not for want of time.
    pub trouble: Option<String>,
}

/// Addresses that the emulator gives to the two ends of paths 0 and 1.
const CLIENT: [&str; 2] = ["10.77.0.1", "10.77.1.1"];
const SERVER: [&str; 2] = ["10.77.0.2", "10.77.1.2"];

/// Sends `bytes` once; after `limit` seconds it has failed.
pub fn run(
    shop: &Workshop,
    contender: Contender,
    setting: &Setting,
    bytes: u64,
    seed: u64,
    limit: f64,
) -> Result<Trial, Box<dyn Error>> {
    shop.clear_inbox()?;
    let meter = shop.folder.join("sender.json");
    let server: Vec<String> =
        contender.receive(shop, &SERVER).iter().map(|word| quoted(word)).collect();
    let client = contender.send(shop, &CLIENT, &SERVER, bytes);
    let mut emulate = Command::new(&shop.acklab);
    emulate
        .args(["emulate", "--format", "json", "--forward", &setting.words()])
        .args(["--reverse", &setting.words(), "--seed", &seed.to_string()])
        .args(["--paths", &contender.paths().to_string()])
        .args(["--server", &server.join(" ")]);
    if let Some(at) = setting.dead {
        emulate.args(["--down-path", &format!("0@{at}s")]);
    }
    emulate.arg("--").args(Reading::wrap(&meter, limit, None, client));
    let output = emulate.stdin(Stdio::null()).output().map_err(|error| {
        format!("{}: {error}; build it with cargo build --release -p acklab", text(&shop.acklab))
    })?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let Ok(emulated) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Err(format!("acklab emulate: {complaint}").into());
    };
    let reading = Reading::take(&meter).unwrap_or_default();
    let seconds = reading.result().and_then(|result| result["seconds"].as_f64());
    let whole = seconds.is_some() && reading.fine && intact(shop, contender, bytes);
    let last = |text: &str| text.lines().last().unwrap_or("no word of why").to_owned();
    Ok(Trial {
        seconds: seconds.filter(|_| whole),
        wire: ["forward", "reverse"].map(|way| on_wire(&emulated, way)),
        valid: emulated["valid"].as_bool().unwrap_or(false),
        trouble: (!whole && !reading.overran).then(|| last(&complaint)),
    })
}

/// acklab's receiver leaves a file; the peers' count what arrives.
pub fn intact(shop: &Workshop, contender: Contender, bytes: u64) -> bool {
    match contender {
        Contender::Acklab | Contender::Acklab2 => shop.arrived(bytes),
        _ => true,
    }
}

fn on_wire(emulated: &Value, way: &str) -> u64 {
    let paths = emulated["paths"].as_array().map_or(&[][..], Vec::as_slice);
    paths.iter().filter_map(|path| path[way]["bytes"].as_u64()).sum()
}

/// A word for `sh`.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
