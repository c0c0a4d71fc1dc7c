//! The tables of docs/linux-vt.md: one bulk flow, two and four, and small messages under Nagle's algorithm, in
//! virtual time on acklab's TCP, of streams and of segments (`stack = "stream"` and `"segments"`), and on the Linux kernel.
//!
//! `make compare` runs it: `compare_table ACKLAB [RECORDING]` prints Markdown. Each case is a network's file that
//! `ACKLAB compare` runs, so that the table says what a user would see. What the kernel did comes of the recording where
//! there is one; small messages are left out then, since no recording has them.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, exit};

use serde_json::Value;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(program) = arguments.next() else {
        eprintln!("usage: compare_table ACKLAB [RECORDING]");
        exit(2);
    };
    let acklab = &Acklab { program, recording: arguments.next() };
    let mut outcome = bulk_table(acklab).and_then(|()| shared_table(acklab));
    if acklab.recording.is_none() {
        outcome = outcome.and_then(|()| nagle_table(acklab));
    }
    if let Err(reason) = outcome {
        eprintln!("compare_table: {reason}");
        exit(1);
    }
}

/// The program, and what it takes the kernel's side from where the kernel does not run.
struct Acklab {
    program: PathBuf,
    recording: Option<PathBuf>,
}

/// What acklab's two stacks and the kernel gave for one flow.
struct Three {
    stream: f64,
    segments: f64,
    linux: f64,
}

impl Three {
    fn of(flow: &Flow, key: &str) -> Self {
        let value = |metrics: &Value, world: &str| metrics[key][world].as_f64().unwrap_or(f64::NAN);
        Self {
            stream: value(&flow.both, "sim"),
            segments: value(&flow.segments, "sim"),
            linux: value(&flow.both, "linux-vt"),
        }
    }

    /// How far each of ours is from the kernel, as a share of the kernel's.
    fn apart(&self) -> [f64; 2] {
        [self.stream, self.segments].map(|own| own / self.linux - 1.0)
    }
}

/// Metrics of a flow: of streams and of the kernel, and of segments.
struct Flow {
    name: String,
    both: Value,
    segments: Value,
}

/// One flow over 4 buffers, 3 losses, 3 round trips, 2 congestion controls.
fn bulk_table(acklab: &Acklab) -> Result<(), String> {
    println!(
        "| control | RTT | buffer, BDP | loss | goodput, Mbit/s: linux-vt | streams | segments | ACKs: streams | segments | \
         sent again: linux-vt | streams | segments |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut apart = [const { [const { Vec::new() }; 2] }; 2];
    for cc in ["reno", "cubic"] {
        for rtt_ms in [10, 40, 160] {
            for share in [0.25, 0.5, 1.0, 2.0] {
                for loss in ["0", "0.1%", "1%"] {
                    let product = RATE * f64::from(rtt_ms) / 1e3 / (8.0 * 1500.0);
                    let buffer = ((product * share).round() as u32).max(2);
                    let link = link(rtt_ms, buffer, loss);
                    let flow = format!(
                        "[[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\ncc = \"{cc}\"\n"
                    );
                    let seeds = if loss == "0" { SEEDS } else { SEEDS_WITH_LOSS };
                    let flows = compare(acklab, &format!("{link}{flow}"), seeds)?;
                    let [goodput, acks, again] = ["goodput_bps", "acks", "retransmissions"]
                        .map(|key| Three::of(&flows[0], key));
                    let [goodputs, ratios] = [&goodput, &acks].map(Three::apart);
                    println!(
                        "| {cc} | {rtt_ms} ms | {share} | {loss} | {:.2} | {:+.1} % | {:+.1} % | {:+.1} % | {:+.1} % | {:.0} | {:.0} | {:.0} |",
                        goodput.linux / 1e6,
                        100.0 * goodputs[0],
                        100.0 * goodputs[1],
                        100.0 * ratios[0],
                        100.0 * ratios[1],
                        again.linux,
                        again.stream,
                        again.segments
                    );
                    for (all, one) in apart.iter_mut().zip([goodputs, ratios]) {
                        for (stack, share) in all.iter_mut().zip(one) {
                            stack.push(share.abs());
                        }
                    }
                }
            }
        }
    }
    let [goodputs, acks] = apart;
    for (stack, values) in STACKS.iter().zip(goodputs) {
        tell(&format!("goodput, {stack}"), 0.03, 0.10, values);
    }
    for (stack, values) in STACKS.iter().zip(acks) {
        tell(&format!("ACKs, {stack}"), 0.05, 0.05, values);
    }
    Ok(())
}

/// Two and four flows that share a bottleneck.
fn shared_table(acklab: &Acklab) -> Result<(), String> {
    println!("\n| flows | flow | goodput, Mbit/s: linux-vt | streams | segments |");
    println!("|---|---|---|---|---|");
    for controls in [&["reno", "reno"][..], &["cubic", "reno"], &["cubic", "cubic", "reno", "reno"]]
    {
        let mut text = link(40, 33, "0");
        for (index, cc) in controls.iter().enumerate() {
            let _ = write!(
                text,
                "[[link]]\nbetween = [\"h{index}\", \"a\"]\nrate = \"1gbit\"\ndelay = \"{}us\"\n\
                 [[flow]]\nname = \"{cc} {index}\"\nfrom = \"h{index}\"\nto = \"b\"\nkind = \"bulk\"\ncc = \"{cc}\"\n\
                 start = \"{}ms\"\n",
                100 + 50 * index,
                300 * index
            );
        }
        for flow in compare(acklab, &text, SEEDS)? {
            let goodput = Three::of(&flow, "goodput_bps");
            let [stream, segments] = goodput.apart();
            println!(
                "| {} | {} | {:.2} | {:+.1} % | {:+.1} % |",
                controls.len(),
                flow.name,
                goodput.linux / 1e6,
                100.0 * stream,
                100.0 * segments
            );
        }
    }
    Ok(())
}

/// Small messages with Nagle's algorithm on and off.
fn nagle_table(acklab: &Acklab) -> Result<(), String> {
    println!(
        "\n| Nagle | RTT | buffering p50, ms: sim | linux-vt | p95: sim | linux-vt | KS distance |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut distances = Vec::new();
    for nagle in ["on", "off"] {
        for rtt in ["10ms", "30ms", "100ms", "500ms", "1000ms"] {
            let sets = [format!("nagle={nagle}"), format!("rtt={rtt}")];
            let output = Command::new(&acklab.program)
                .args([
                    "compare",
                    "nagle-delack",
                    "--replications",
                    SEEDS,
                    "--format",
                    "json",
                    "--set",
                ])
                .args(sets)
                .output();
            let flows = flows_of(output)?;
            let metrics = &flows[0]["metrics"];
            let [p50, p95] = ["buffering_p50_ms", "buffering_p95_ms"].map(|key| {
                let value = |world: &str| metrics[key][world].as_f64().unwrap_or(f64::NAN);
                (value("sim"), value("linux-vt"))
            });
            let ks = metrics["buffering_ks"]["sim,linux-vt"].as_f64().unwrap_or(f64::NAN);
            println!(
                "| {nagle} | {rtt} | {:.1} | {:.1} | {:.1} | {:.1} | {ks:.3} |",
                p50.0, p50.1, p95.0, p95.1
            );
            distances.push(ks);
        }
    }
    tell("KS distance", 0.05, 0.05, distances);
    Ok(())
}

fn link(rtt_ms: u32, buffer: u32, loss: &str) -> String {
    format!(
        "scenario = \"network\"\nduration = \"{DURATION}s\"\nwatch = \"a -> b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{RATE}bit\"\ndelay = \"{}ms\"\n\
         [link.forward]\nbuffer = {buffer}\nloss = \"{}\"\n[link.reverse]\nbuffer = 1000\njitter = \"{JITTER}\"\n",
        rtt_ms / 2,
        if loss == "0" { "0%" } else { loss },
    )
}

/// The flows of a file on the kernel and on both stacks of acklab's.
fn compare(acklab: &Acklab, text: &str, seeds: &str) -> Result<Vec<Flow>, String> {
    let streams = text.replace("[[flow]]\n", "[[flow]]\nstack = \"stream\"\n");
    let both = compare_in(acklab, &streams, "sim,linux-vt", seeds)?;
    let segments = compare_in(acklab, text, "sim", seeds)?;
    let flows =
        both.as_array().into_iter().flatten().zip(segments.as_array().into_iter().flatten());
    let flows = flows.map(|(both, segments)| Flow {
        name: both["name"].as_str().unwrap_or_default().to_owned(),
        both: both["metrics"].clone(),
        segments: segments["metrics"].clone(),
    });
    Ok(flows.collect())
}

/// The flows that `acklab compare` tells of a file.
fn compare_in(acklab: &Acklab, text: &str, worlds: &str, seeds: &str) -> Result<Value, String> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile();
    let mut file = file.map_err(|error| error.to_string())?;
    file.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    let output = Command::new(&acklab.program)
        .arg("compare")
        .arg(file.path())
        .args(["--worlds", worlds, "--replications", seeds, "--format", "json"])
        .args(acklab.recording.iter().flat_map(|file| [OsStr::new("--recorded"), file.as_os_str()]))
        .output();
    flows_of(output)
}

fn flows_of(output: std::io::Result<std::process::Output>) -> Result<Value, String> {
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let result: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(result["flows"].clone())
}

/// Median and worst beside the margins that were declared before the first run.
fn tell(what: &str, median_margin: f64, worst_margin: f64, mut values: Vec<f64>) {
    values.sort_unstable_by(f64::total_cmp);
    let (median, worst) = (values[values.len() / 2], values[values.len() - 1]);
    let within = values.iter().filter(|value| **value <= worst_margin).count();
    println!(
        "\n{what}: median {median:.3} (margin {median_margin}), worst {worst:.3} (margin {worst_margin}); {within} of {} \
         within the margin of the worst",
        values.len()
    );
}

/// acklab-tcp and acklab-host.
const STACKS: [&str; 2] = ["streams", "segments"];
/// bit/s of the bottleneck.
const RATE: f64 = 10e6;
/// Seconds of a run.
const DURATION: u32 = 30;
const SEEDS: &str = "3";
/// Which segments are lost is each world's own draw: it takes more to tell what differs.
const SEEDS_WITH_LOSS: &str = "12";
/// Of ACKs: without it segments and departures fall on the same instant, and an order among them that no real path has
/// decides what a short queue drops.
const JITTER: &str = "100us";
