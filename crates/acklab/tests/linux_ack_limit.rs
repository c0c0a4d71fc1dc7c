//! Goal: ACK rate limiting in the Linux kernel (kernel/ack-rate-limit.patch) changes nothing while it is off, makes
//! ACKs rarer round by round while it is on, and starts anew after loss without making recovery slower.
//! Method: the patched and the unpatched kernel in virtual time, by the built binary; skipped with a message where
//! `make linux-vt` or `make linux-vt-ack-limit` was not run.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use acklab_core::packet::{Body, NodeId};
use acklab_core::wire::parse_ipv4;
use acklab_trace::capture::CaptureReader;
use serde_json::Value;

/// A bulk transfer at 20 Mbit/s and 20 ms, where 100 segments are 60 ms.
fn file(duration: &str, link: &str, ack: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        r#"
scenario = "network"
duration = "{duration}"
watch = "a -> b"
[[link]]
between = ["a", "b"]
rate = "20mbit"
delay = "10ms"
buffer = 60
{link}
[[flow]]
name = "bulk"
from = "a"
to = "b"
kind = "bulk"
cc = "cubic"
{ack}
"#
    );
    fs::write(folder.path().join("net.toml"), text).expect("it is written");
    folder
}

const ON: &str =
    "ack = { kind = \"ack-rate-limit\", start = 500, round = 500, step = 1, acks = 3 }";

/// Where tools/linux-vt puts the kernel `name`; `None` with a message where it was not built.
fn image(name: &str) -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let path = cache.unwrap_or_else(home).join("acklab/linux-vt").join(name);
    if !path.is_file() {
        eprintln!("SKIPPED: no {} (make linux-vt linux-vt-ack-limit)", path.display());
        return None;
    }
    Some(path)
}

fn compare(folder: &tempfile::TempDir, kernel: Option<&PathBuf>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acklab"));
    command.arg("compare").arg(folder.path().join("net.toml")).args(arguments);
    command.args(["--format", "json", "--out"]).arg(folder.path().join("out"));
    match kernel {
        Some(kernel) => command.env("ACKLAB_LINUX_VT", kernel),
        None => command.env_remove("ACKLAB_LINUX_VT"),
    };
    command.output().expect("the binary runs")
}

/// The only flow of the result, and the receiver's counters.
fn flow(
    folder: &tempfile::TempDir,
    kernel: Option<&PathBuf>,
    arguments: &[&str],
) -> (Value, BTreeMap<String, u64>) {
    let output = compare(folder, kernel, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let log = fs::read(folder.path().join("out/linux-vt-log.json")).expect("the guest's log");
    let log: Value = serde_json::from_slice(&log).expect("JSON");
    let counters = serde_json::from_value(log["counters"]["n1"].clone()).expect("counters");
    (result["flows"][0].clone(), counters)
}

fn metric(flow: &Value, name: &str, world: &str) -> f64 {
    flow["metrics"][name][world].as_f64().expect("a number")
}

const KERNEL: [&str; 2] = ["--worlds", "linux-vt"];

/// What the sender's capture has of each segment: ns after the first one, and all but the numbers that connections
/// begin with, which differ from kernel to kernel.
fn segments(folder: &tempfile::TempDir) -> Vec<(u64, [u32; 5])> {
    let file = File::open(folder.path().join("out/linux-vt-a.pcapng")).expect("a capture");
    let mut reader = CaptureReader::new(BufReader::new(file)).expect("a capture");
    let mut first = BTreeMap::new();
    let mut begin = None;
    let mut segments = Vec::new();
    while let Some(frame) = reader.next_frame().expect("frames") {
        let ip = frame.bytes.get(14..).unwrap_or_default();
        let Ok(packet) = parse_ipv4(ip, |address| NodeId::of(address.into())) else { continue };
        let Body::Tcp(tcp) = &packet.body else { continue };
        let at = frame.time.as_nanos();
        first.entry(packet.src).or_insert(tcp.seq.0);
        let from = |place| first.get(&place).copied().unwrap_or(0);
        let seq = tcp.seq.0.wrapping_sub(from(packet.src));
        let ack = tcp.ack.0.wrapping_sub(from(packet.dst));
        let numbers = [seq, ack, tcp.window.into(), ip.len() as u32, packet.src.port.into()];
        segments.push((at - *begin.get_or_insert(at), numbers));
    }
    segments
}

#[test]
fn while_it_is_off_every_packet_leaves_when_the_unpatched_kernel_sends_it() {
    let (Some(plain), Some(patched)) = (image("linux"), image("linux-ack-limit")) else { return };
    let folder = file("10s", "", "");
    let of = |kernel| {
        let (_, counters) = flow(&folder, Some(kernel), &KERNEL);
        assert!(!counters.keys().any(|name| name.starts_with("TCPAckLimit")), "{counters:?}");
        segments(&folder)
    };
    let [left, right] = [&plain, &patched].map(of);
    assert!(left.len() > 10_000 && left.len() == right.len(), "{} {}", left.len(), right.len());
    for ((time, segment), (same_time, same)) in left.into_iter().zip(right) {
        // The kernels take differently long to start, by which clocks are rounded.
        assert!(
            time.abs_diff(same_time) <= 1000 && segment == same,
            "{time} ns: {segment:?} {same:?}"
        );
    }
}

#[test]
fn one_ack_covers_more_segments_round_by_round() {
    if image("linux-ack-limit").is_none() {
        return;
    }
    let mut before = 0.0;
    for (duration, raised) in [("1s", 1), ("4s", 8), ("16s", 30)] {
        let folder = file(duration, "", ON);
        let (flow, counters) = flow(&folder, None, &KERNEL);
        let each = metric(&flow, "segments_per_ack", "linux-vt");
        assert!(each > 1.2 * before, "{duration}: {each} segments per ACK after {before}");
        assert!(counters["TCPAckLimitRaised"] >= raised, "{duration}: {counters:?}");
        assert!(duration == "1s" || counters["TCPAckLimitHeld"] > 100, "{duration}: {counters:?}");
        before = each;
    }
}

#[test]
fn loss_starts_anew_and_recovery_is_as_fast_as_without() {
    if image("linux-ack-limit").is_none() {
        return;
    }
    let link = "loss = \"0.03%\"";
    let seeds = ["--worlds", "linux-vt", "--replications", "5"];
    let (with, counters) = flow(&file("20s", link, ON), None, &seeds);
    let (without, _) = flow(&file("20s", link, ""), None, &seeds);
    assert!(counters["TCPAckLimitReset"] >= 5, "{counters:?}");
    let goodput = |flow| metric(flow, "goodput_bps", "linux-vt");
    assert!(goodput(&with) > 0.95 * goodput(&without), "{with} {without}");
    let acks = |flow| metric(flow, "segments_per_ack", "linux-vt");
    assert!(acks(&with) > 1.2 * acks(&without), "{with} {without}");
}

#[test]
fn the_simulation_acknowledges_as_rarely_as_the_kernel_within_a_tenth() {
    if image("linux-ack-limit").is_none() {
        return;
    }
    // Rounds of equal length, where only the margin tells jitter from slowness; then a loss every 2.8 s.
    let held = file("20s", "", &format!("receive_buffer = 200000\n{ON}"));
    let path = held.path().join("net.toml");
    let text =
        fs::read_to_string(&path).expect("it is there").replace("buffer = 60", "buffer = 600");
    fs::write(&path, text).expect("it is written");
    let lossy = file("20s", "", &format!("receive_buffer = 400000\n{ON}"));
    for (folder, lowered) in [(held, 0), (lossy, 3)] {
        let (flow, counters) = flow(&folder, None, &["--worlds", "sim,linux-vt"]);
        let [sim, kernel] = ["sim", "linux-vt"].map(|world| metric(&flow, "acks", world));
        assert!((sim / kernel - 1.0).abs() < 0.1, "{sim} ACKs in virtual time, {kernel}");
        let lowered_there = counters.get("TCPAckLimitLowered").copied().unwrap_or(0);
        assert!(lowered_there <= lowered, "{counters:?}");
        assert!(counters["TCPAckLimitRaised"] >= 30, "{counters:?}");
    }
}

#[test]
fn the_patchs_own_tests_pass_in_the_kernel() {
    let Some(kernel) = image("linux-ack-limit") else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(kernel)
        .args(["mem=64M", "con=null", "con0=null,fd:1", "time-travel=inf-cpu", "panic=-1"])
        .args(["uml_dir=.", "umid=guest", "kunit.enable=1", "kunit_shutdown=poweroff"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = log.lines().filter(|line| line.contains("    ok ")).count();
    assert!(log.contains("ok 1 tcp_ack_limit") && !log.contains("not ok"), "{log}");
    assert!(passed >= 5, "{log}");
}

#[test]
fn a_kernel_without_it_is_refused_and_so_is_what_it_has_not() {
    let Some(plain) = image("linux") else { return };
    let output = compare(&file("1s", "", ON), Some(&plain), &KERNEL);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("make linux-vt-ack-limit"), "{errors}");
    let judged = "ack = { kind = \"ack-rate-limit\", judge = \"rtt\" }";
    let output = compare(&file("1s", "", judged), Some(&plain), &KERNEL);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("leave judge, fallback"), "{errors}");
}
