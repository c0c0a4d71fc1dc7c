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

/// A congestion control in the kernel; gone with this value.
struct Control<'a>(&'static str, #[expect(dead_code, reason = "held")] MutexGuard<'a, ()>);

impl Control<'_> {
    fn load(name: &'static str) -> Option<Self> {
        let guard = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        let output = bpf(&["load", name]);
        if output.status.success() {
            return Some(Self(name, guard));
        }
        let words = words(&output);
        let known = ["not installed", "not permitted", "does not tell its types", "it is loaded"];
        assert!(known.iter().any(|reason| words.contains(reason)), "{words}");
        eprintln!("SKIPPED: programs for the running kernel: {words}");
        None
    }
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        bpf(&["unload", self.0]);
    }
}

/// What the status says is loaded.
fn loaded() -> Vec<String> {
    let status = bpf(&["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let list = status["congestion_controls"].as_array().expect("a list");
    list.iter().map(|control| control["name"].as_str().expect("a name").to_owned()).collect()
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

/// Four seconds of data over 40 ms, with what the client and the server do first; `None` without permission, and where the
/// machine is too busy three times for the link to be the link.
fn transfer(link: &str, client: &str, server: &str) -> Option<Value> {
    for _ in 0..3 {
        let mut result = emulated(link, client, server)?;
        if result["lateness_us"]["p99"].as_f64().expect("a number") < LATEST_US {
            return Some(result["paths"][0].take());
        }
    }
    eprintln!(
        "SKIPPED: frames came later than {LATEST_US} us in three emulations: the machine is busy"
    );
    None
}

/// Of a hundredth of the frames: a tenth of the round trip.
const LATEST_US: f64 = 4000.0;

/// What one emulation says.
fn emulated(link: &str, client: &str, server: &str) -> Option<Value> {
    let forward = format!("delay 20ms limit 200 {link}");
    let output = Command::new(ACKLAB)
        .args(["emulate", "--forward", &forward, "--reverse", "delay 20ms", "--format", "json"])
        // It is looked at by the caller.
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
    Some(serde_json::from_str(&text[json..]).expect("JSON"))
}

/// Packets delivered and the queue's mean, ms, of four seconds at 10 Mbit/s with `cc` at both ends.
fn flow(cc: &str, queue: &str) -> Option<[f64; 2]> {
    let choose = format!("echo {cc} > /proc/sys/net/ipv4/tcp_congestion_control || exit 1;");
    let path = transfer(&format!("rate 10mbit queue {queue}"), &choose, &choose)?;
    let number = |value: &Value| value.as_f64().expect("a number");
    let forward = &path["forward"];
    Some([number(&forward["delivered"]), number(&forward["queue_ms"]["mean"])])
}

#[test]
fn ance_keeps_the_queue_short_where_reno_fills_it() {
    let Some(ance) = Control::load("ance") else { return };
    assert_eq!(loaded(), ["ance"]);
    let twice = bpf(&["load", "ance"]);
    assert!(words(&twice).contains("it is loaded"), "{}", words(&twice));
    let (Some([delivered, queue]), Some([renos, filled])) =
        (flow("ance", "drop-tail"), flow("reno", "drop-tail"))
    else {
        return;
    };
    assert!(queue < filled / 20.0, "{queue} ms, reno {filled} ms");
    // Over four seconds its window is still growing by a segment per round trip: 0.63 to 0.72 on a busy machine.
    assert!(delivered > 0.5 * renos, "{delivered} packets, reno {renos}");
    drop(ance);
    let again = bpf(&["unload", "ance"]);
    assert!(words(&again).contains("it is not loaded"), "{}", words(&again));
}

#[test]
fn encn_keeps_the_queue_at_the_routers_threshold_and_jersey_near_its_warning() {
    // ENCN's router marks below three packets of 1.2 ms, Jersey's warns above 67 of 200 on average. In virtual time the
    // first carries 0.86 of the link in 4 s, as its window grows by a segment per round trip from the start.
    for (name, least, most) in [("encn", 0.3, 6.0), ("jersey", 0.5, 60.0)] {
        let Some(control) = Control::load(name) else { return };
        let (Some([delivered, queue]), Some([renos, filled])) =
            (flow(name, name), flow("reno", "drop-tail"))
        else {
            return;
        };
        assert!((least..most).contains(&queue), "{name}: {queue} ms, reno {filled} ms");
        assert!(delivered > 0.6 * renos, "{name}: {delivered} packets, reno {renos}");
        drop(control);
    }
}

#[test]
fn a_control_that_namespaces_chose_leaves_the_kernel_when_it_is_unloaded() {
    let Some(control) = Control::load("ance") else { return };
    let number = |after: u64| {
        let output = Command::new("bpftool").args(["-j", "struct_ops", "show"]).output().unwrap();
        let maps: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let maps = maps.as_array().expect("a list").iter();
        let maps = maps.filter(|map| map["name"] == "ance").filter_map(|map| map["id"].as_u64());
        maps.filter(|id| *id > after).max()
    };
    let own = number(0).expect("it is loaded");
    let choose = "echo ance > /proc/sys/net/ipv4/tcp_congestion_control";
    let chosen = Command::new("unshare").args(["--net", "sh", "-ec", choose]).output().unwrap();
    assert!(chosen.status.success(), "{}", words(&chosen));
    drop(control);
    // Namespaces go in the background.
    let end = Instant::now() + Duration::from_secs(10);
    while number(own - 1).is_some() {
        assert!(Instant::now() < end, "map {own} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn half_of_a_filter_has_a_name_too() {
    let Some(control) = Control::load("ance") else { return };
    let run = |line: &str| {
        let output = Command::new("unshare").args(["--net", "sh", "-ec", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", words(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for gone in ["egress", "ingress"] {
        let told = run(&format!(
            "ip link add v0 type veth peer name v1
             '{ACKLAB}' bpf load ack-filter --interface v0
             tc filter del dev v0 {gone} pref 4933
             '{ACKLAB}' bpf status
             ! '{ACKLAB}' bpf load ack-filter --interface v0
             '{ACKLAB}' bpf unload ack-filter --interface v0
             '{ACKLAB}' bpf status
             tc qdisc show dev v0 clsact"
        ));
        assert!(told.contains("ack-filter: at v0"), "{told}");
        let left = told.split("unloaded\n").nth(1).expect("it was unloaded");
        assert!(!left.contains("ack-filter") && !left.contains("clsact"), "{told}");
    }
    drop(control);
}

#[test]
fn the_filter_leaves_fewer_acks_and_all_the_data() {
    let Some(ance) = Control::load("ance") else { return };
    drop(ance);
    let load = format!("'{ACKLAB}' bpf load ack-filter --interface path0 >&2;");
    let wait = "sleep 4;"; // Until the server has compiled the filter.
    let per_ack = |server: &str, client: &str| {
        let path = transfer("rate 20mbit", client, server)?;
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
    refused(&["load", "jersey", "--set", "rtt=mean"], "there are smallest, latest");
    refused(&["load", "encn", "--set", "queue_min=1"], "there are bf_floor, rwnd");
    refused(&["load", "ance", "--set", "queue_min=-1"], "a whole number is wanted");
    refused(&["load", "ance", "--interface", "lo"], "a congestion control has none");
    refused(&["load", "ack-filter"], "--interface");
}

#[test]
fn without_root_it_says_what_it_needs() {
    let Some(ance) = Control::load("ance") else { return };
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
