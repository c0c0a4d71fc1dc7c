//! Goal: `acklab bpf` loads what it says into the running kernel, which then does it to real connections; what is
//! loaded is told, found again by its name and gone when it is unloaded; and it refuses plainly.
//! Method: run the built binary over its own emulated links; skipped with a message without root, clang or bpftool.
//! The commands that talk over the link are this test program again, in a role ([`ROLE`]).

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "how long real programs talk")]

use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
const ROLE: &str = "ACKLAB_TEST_ROLE";
const PORT: u16 = 7000;

/// Congestion controls are the whole kernel's: one test at a time.
static KERNEL: Mutex<()> = Mutex::new(());

fn bpf(arguments: &[&str]) -> Output {
    Command::new(ACKLAB).arg("bpf").args(arguments).output().expect("the binary runs")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// ANCE in the kernel; gone with this value.
struct Ance<'a>(#[expect(dead_code, reason = "held")] MutexGuard<'a, ()>);

impl Ance<'_> {
    fn load() -> Option<Self> {
        let guard = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        let output = bpf(&["load", "ance"]);
        if output.status.success() {
            return Some(Self(guard));
        }
        let words = words(&output);
        let known = ["not installed", "not permitted", "does not tell its types", "it is loaded"];
        assert!(known.iter().any(|reason| words.contains(reason)), "{words}");
        eprintln!("SKIPPED: programs for the running kernel: {words}");
        None
    }
}

impl Drop for Ance<'_> {
    fn drop(&mut self) {
        bpf(&["unload", "ance"]);
    }
}

/// A command line for sh that runs this program in `role` after `first`.
fn role(role: &str, first: &str) -> String {
    let itself = env::current_exe().expect("this program's file");
    let itself = itself.display();
    format!("{first} {ROLE}={role} exec '{itself}' --ignored --exact the_commands_that_talk")
}

#[test]
#[ignore = "what emulations run"]
fn the_commands_that_talk() {
    let mut buffer = vec![0; 1 << 16];
    match env::var(ROLE).as_deref() {
        Ok("server") => {
            let (mut stream, _) = TcpListener::bind(("10.77.0.2", PORT)).unwrap().accept().unwrap();
            while stream.read(&mut buffer).unwrap() > 0 {}
        }
        Ok("client") => {
            let end = Instant::now() + Duration::from_secs(4);
            let mut stream = TcpStream::connect(("10.77.0.2", PORT)).unwrap();
            while Instant::now() < end {
                stream.write_all(&buffer).unwrap();
            }
        }
        _ => {}
    }
}

/// Four seconds of data over 40 ms, with what the client and the server do first; `None` without permission.
fn transfer(rate: &str, client: &str, server: &str) -> Option<Value> {
    let forward = format!("delay 20ms rate {rate} limit 200");
    let output = Command::new(ACKLAB)
        .args(["emulate", "--forward", &forward, "--reverse", "delay 20ms", "--format", "json"])
        // How late frames are is not what is tested.
        .args(["--max-lateness", "10s", "--server", &role("server", server), "--", "sh", "-c"])
        .arg(role("client", client))
        .output()
        .expect("the binary runs");
    let errors = words(&output);
    if errors.contains("permi") {
        eprintln!("SKIPPED: emulating a link: not permitted here");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.find("{\n").expect("JSON");
    Some(serde_json::from_str::<Value>(&text[json..]).expect("JSON")["paths"][0].clone())
}

#[test]
fn ance_keeps_the_queue_short_where_reno_fills_it() {
    let Some(ance) = Ance::load() else { return };
    let status = bpf(&["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["congestion_controls"][0]["name"], "ance");
    let twice = bpf(&["load", "ance"]);
    assert!(words(&twice).contains("it is loaded"), "{}", words(&twice));
    let flow = |cc: &str| {
        let choose = format!("echo {cc} > /proc/sys/net/ipv4/tcp_congestion_control;");
        let path = transfer("10mbit", &choose, "")?;
        let number = |value: &Value| value.as_f64().expect("a number");
        let forward = &path["forward"];
        Some((number(&forward["delivered"]), number(&forward["queue_ms"]["mean"])))
    };
    let (Some((delivered, queue)), Some((renos, filled))) = (flow("ance"), flow("reno")) else {
        return;
    };
    assert!(queue < filled / 3.0, "{queue} ms, reno {filled} ms");
    assert!(delivered > 0.3 * renos, "{delivered} packets, reno {renos}");
    drop(ance);
    let again = bpf(&["unload", "ance"]);
    assert!(words(&again).contains("it is not loaded"), "{}", words(&again));
}

#[test]
fn the_filter_leaves_fewer_acks_and_all_the_data() {
    let Some(ance) = Ance::load() else { return };
    drop(ance);
    let load = format!("'{ACKLAB}' bpf load ack-filter --interface path0 >&2;");
    let wait = "sleep 4;"; // Until the server has compiled the filter.
    let per_ack = |server: &str, client: &str| {
        let path = transfer("20mbit", client, server)?;
        let number = |way: &str| path[way]["packets"].as_f64().expect("a number");
        assert!(number("forward") > 1000.0, "{path}");
        Some(number("forward") / number("reverse"))
    };
    let (Some(without), Some(with)) = (per_ack("", ""), per_ack(&load, wait)) else { return };
    assert!(with > 1.5 * without, "{without} packets per ACK, {with} with the filter");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], says: &str| {
        let output = bpf(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(words(&output).contains(says), "{}", words(&output));
    };
    refused(&["load", "ance", "--set", "spacing=odd"], "there are smallest, second");
    refused(&["load", "ance", "--set", "queue_min=-1"], "a whole number is wanted");
    refused(&["load", "ance", "--interface", "lo"], "a congestion control has none");
    refused(&["load", "ack-filter"], "--interface");
}

#[test]
fn without_root_it_says_what_it_needs() {
    let Some(ance) = Ance::load() else { return };
    drop(ance);
    let mut command = Command::new(ACKLAB);
    command.args(["bpf", "load", "ance"]);
    // `nobody`, who may nothing; where this program's folder is closed to it, the binary does not start.
    let Ok(output) = command.uid(65534).output() else {
        eprintln!("SKIPPED: the binary cannot be run by another user here");
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("needs root"), "{}", words(&output));
}
