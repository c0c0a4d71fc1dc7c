//! The table of docs/linux-vt.md: one bulk flow, two and four, and small messages under Nagle's algorithm, in
//! virtual time on acklab's TCP and on the Linux kernel.
//!
//! `make compare` runs it: `compare_table ACKLAB` prints Markdown. Each case is a network's file that
//! `ACKLAB compare` runs, so that the table says what a user would see.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, exit};

use serde_json::Value;

fn main() {
    let Some(acklab) = std::env::args_os().nth(1) else {
        eprintln!("usage: compare_table ACKLAB");
        exit(2);
    };
    let acklab = Path::new(&acklab);
    let outcome =
        bulk_table(acklab).and_then(|()| shared_table(acklab)).and_then(|()| nagle_table(acklab));
    if let Err(reason) = outcome {
        eprintln!("compare_table: {reason}");
        exit(1);
    }
}

/// What two worlds gave for one flow.
struct Pair {
    sim: f64,
    linux: f64,
}

impl Pair {
    fn of(metrics: &Value, key: &str) -> Self {
        let value = |world: &str| metrics[key][world].as_f64().unwrap_or(f64::NAN);
        Self { sim: value("sim"), linux: value("linux-vt") }
    }

    /// How far sim is from the kernel, as a share of the kernel's.
    fn apart(&self) -> f64 {
        self.sim / self.linux - 1.0
    }
}

/// One flow over 4 buffers, 3 losses, 3 round trips, 2 congestion controls.
fn bulk_table(acklab: &Path) -> Result<(), String> {
    println!(
        "| control | RTT | buffer, BDP | loss | goodput, Mbit/s: sim | linux-vt | apart | ACKs apart | sent again: sim | linux-vt |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (mut goodputs, mut acks) = (Vec::new(), Vec::new());
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
                    let metrics = &flows[0]["metrics"];
                    let [goodput, ack, again] = ["goodput_bps", "acks", "retransmissions"]
                        .map(|key| Pair::of(metrics, key));
                    println!(
                        "| {cc} | {rtt_ms} ms | {share} | {loss} | {:.2} | {:.2} | {:+.1} % | {:+.1} % | {:.0} | {:.0} |",
                        goodput.sim / 1e6,
                        goodput.linux / 1e6,
                        100.0 * goodput.apart(),
                        100.0 * ack.apart(),
                        again.sim,
                        again.linux
                    );
                    goodputs.push(goodput.apart().abs());
                    acks.push(ack.apart().abs());
                }
            }
        }
    }
    tell("goodput", 0.05, 0.15, goodputs);
    tell("ACKs", 0.10, 0.10, acks);
    Ok(())
}

/// Two and four flows that share a bottleneck.
fn shared_table(acklab: &Path) -> Result<(), String> {
    println!("\n| flows | flow | goodput, Mbit/s: sim | linux-vt | apart |");
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
        for flow in compare(acklab, &text, SEEDS)?.as_array().into_iter().flatten() {
            let goodput = Pair::of(&flow["metrics"], "goodput_bps");
            println!(
                "| {} | {} | {:.2} | {:.2} | {:+.1} % |",
                controls.len(),
                flow["name"].as_str().unwrap_or_default(),
                goodput.sim / 1e6,
                goodput.linux / 1e6,
                100.0 * goodput.apart()
            );
        }
    }
    Ok(())
}

/// Small messages with Nagle's algorithm on and off.
fn nagle_table(acklab: &Path) -> Result<(), String> {
    println!(
        "\n| Nagle | RTT | buffering p50, ms: sim | linux-vt | p95: sim | linux-vt | KS distance |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut distances = Vec::new();
    for nagle in ["on", "off"] {
        for rtt in ["10ms", "30ms", "100ms", "500ms", "1000ms"] {
            let sets = [format!("nagle={nagle}"), format!("rtt={rtt}")];
            let output = Command::new(acklab)
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
            let [p50, p95] =
                ["buffering_p50_ms", "buffering_p95_ms"].map(|key| Pair::of(metrics, key));
            let ks = metrics["buffering_ks"]["sim,linux-vt"].as_f64().unwrap_or(f64::NAN);
            println!(
                "| {nagle} | {rtt} | {:.1} | {:.1} | {:.1} | {:.1} | {ks:.3} |",
                p50.sim, p50.linux, p95.sim, p95.linux
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

/// The flows that `acklab compare` tells of a file.
fn compare(acklab: &Path, text: &str, seeds: &str) -> Result<Value, String> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile();
    let mut file = file.map_err(|error| error.to_string())?;
    file.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    let output = Command::new(acklab)
        .arg("compare")
        .arg(file.path())
        .args(["--replications", seeds, "--format", "json"])
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
