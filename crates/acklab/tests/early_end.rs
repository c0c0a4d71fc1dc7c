//! Goal: what was not decided or not finished is never green, and Ctrl-C keeps what is known.
//! Method: run the binary; send SIGINT once it handles that signal, and for runs once it has worked for a while.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_acklab"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// Sends SIGINT once the program handles it and has used `ticks` of 10 ms of CPU time.
fn interrupt(child: &Child, ticks: u64) {
    let proc = Path::new("/proc").join(child.id().to_string());
    let handles = || {
        let status = fs::read_to_string(proc.join("status")).expect("the program lives");
        assert!(!status.contains("State:\tZ"), "it ended before it could be interrupted");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(caught.trim(), 16).expect("a mask") & 1 << (Signal::SIGINT as i32 - 1)
            != 0
    };
    let used = || {
        let stat = fs::read_to_string(proc.join("stat")).expect("the program lives");
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let field = |number: usize| fields.split(' ').nth(number).expect("a field");
        field(11).parse::<u64>().expect("ticks") + field(12).parse::<u64>().expect("ticks")
    };
    while !handles() || used() < ticks {
        thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("a signal");
}

fn json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[test]
fn ctrl_c_is_the_end_of_a_capture_that_is_still_being_written() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/nagle-linux.pcapng");
    let mut child = start(&["diagnose", "-", "--format", "json"]);
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(&fs::read(capture).expect("a capture")).expect("the program reads");
    pipe.flush().expect("the program reads");
    interrupt(&child, 0);
    // The writer is still there.
    let output = child.wait_with_output().expect("it ends");
    drop(pipe);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["verdict"]["stalled"], true);
}

#[test]
fn a_run_that_is_interrupted_tells_what_is_done() {
    let long = ["run", "ance-dumbbell", "--replications", "5000", "--format", "json"];
    let child = start(&long);
    interrupt(&child, 150);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let result = json(&output);
    assert_eq!(result["complete"], false);
    let done = result["replications_done"].as_u64().expect("a count");
    assert!((1..5000).contains(&done), "{done}");
    assert!(result["metrics"]["throughput_bps"]["mean"].as_f64().expect("a mean") > 1e6);
}

#[test]
fn a_query_that_is_not_decided_or_not_precise_is_not_green() {
    let verify = |query: &str, more: &[&str]| {
        let arguments = [&["verify", "motor-loop", query, "--format", "json"], more].concat();
        let output = start(&arguments).wait_with_output().expect("it ends");
        (output.status.code(), json(&output)["complete"].as_bool())
    };
    let test = "Pr[<=30](<> position > 2.5) >= 0.02";
    let lossy = ["--set", "kp=8", "loss=5%", "--runs-max"];
    assert_eq!(verify(test, &[&lossy[..], &["5"]].concat()), (Some(3), Some(false)));
    let estimate = "Pr[<=30](<> position > 2.5)";
    assert_eq!(verify(estimate, &[&lossy[..], &["5"]].concat()), (Some(3), Some(false)));
    assert_eq!(verify(estimate, &["--set", "kp=8"]), (Some(0), Some(true)));
    let cases = ["--set", "kp=8", "loss=4%,5%", "--runs-max", "5"];
    assert_eq!(verify(test, &cases), (Some(3), Some(false)));
}

#[test]
fn a_query_that_is_interrupted_is_not_green() {
    let child = start(&["verify", "ance-dumbbell", "E[<=30; 100000](max: queue.length)"]);
    interrupt(&child, 100);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not complete"));
}

/// What a verb says that was interrupted: exit status 3, and one JSON object that is not complete.
#[track_caller]
fn interrupted(arguments: &[&str], ticks: u64) -> Value {
    let child = start(arguments);
    interrupt(&child, ticks);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let result = json(&output);
    assert_eq!(result["complete"], false);
    result
}

#[test]
fn a_paper_that_is_interrupted_tells_the_parts_that_are_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let papers: [(&str, &[&str], u64); 4] = [
        ("ance", &["--replications", "2", "--table4-runs", "1000000"], 400),
        ("xudp", &[], 2),
        ("rdt", &["--replications", "10000"], 50),
        ("ack-rate", &["--replications", "1000"], 50),
    ];
    for (paper, more, ticks) in papers {
        let out = folder.path().join(paper);
        let out = out.to_str().expect("a name");
        let all = [&["reproduce", paper, "--format", "json", "--out", out], more].concat();
        let result = interrupted(&all, ticks);
        let parts = result["parts"].as_array().expect("parts");
        assert!(paper != "ance" || !parts.is_empty(), "{result}");
        let stored = fs::read_to_string(Path::new(out).join("result.json")).expect("a result");
        assert_eq!(serde_json::from_str::<Value>(&stored).expect("JSON"), result);
        let page = fs::read_to_string(Path::new(out).join("report.html")).expect("a report");
        assert!(page.contains("Not complete: ended") && page.contains("</html>"), "{paper}");
    }
}

#[test]
fn a_comparison_that_is_interrupted_tells_of_whole_replications() {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let network = network.to_str().expect("a name");
    let long = ["compare", network, "--worlds", "sim", "--replications", "10000"];
    let result = interrupted(&[&long[..], &["--format", "json"]].concat(), 300);
    assert!(result["replications"]["sim"].as_u64().expect("a count") >= 1, "{result}");
}

#[test]
fn a_data_set_that_is_interrupted_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("set");
    let write =
        ["dataset", "write", out.to_str().expect("a name"), "--set", "rtt=10ms", "runs=1000"];
    let child = start(&write);
    interrupt(&child, 100);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let verified = start(&["dataset", "verify", out.to_str().expect("a name")]);
    let verified = verified.wait_with_output().expect("it ends");
    let said = [&verified.stdout[..], &verified.stderr[..]].concat();
    let text = String::from_utf8_lossy(&said);
    // A case that ended in time is whole: nothing is wrong with it but that it has more runs than the published ones.
    let whole = text.lines().all(|line| {
        line.contains("1000 runs (Sender-out-i.txt); the layout has 10")
            || line.contains(" cases, ")
    });
    assert!(whole || text.contains("no folder is called"), "{text}");
}

/// Whether the kernel's doors are open to this test; where not, says so.
fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if !is_root {
        eprintln!("SKIPPED: an interruption of what talks to the running kernel: needs root");
    }
    is_root
}

#[test]
fn a_recording_that_is_interrupted_is_whole() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("slow.pcapng");
    let name = file.to_str().expect("a name");
    let result = interrupted(&["record", name, "--exchanges", "1000000", "--format", "json"], 5);
    let output = start(&["diagnose", name, "--format", "json"]).wait_with_output();
    let diagnosis = json(&output.expect("it ends"));
    assert_eq!(diagnosis["capture"]["packets"], result["frames"]);
    assert_eq!(diagnosis["capture"]["connections"], 1);
}

#[test]
fn runs_on_the_running_kernel_that_ended_before_ctrl_c_are_told() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let arguments = [
        "run",
        "nagle-delack",
        "--world",
        "kernel",
        "--replications",
        "200",
        "--parallel",
        "2",
        "--max-lateness",
        "1s",
        "--set",
        "messages=5",
        "--format",
        "json",
        "--out",
    ];
    let child = start(&[&arguments[..], &[out.to_str().expect("a name")]].concat());
    let made = || fs::read_dir(out.join("runs")).is_ok_and(|mut runs| runs.next().is_some());
    while !made() {
        thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let result = json(&output);
    assert_eq!(result["complete"], false);
    let done = result["replications_done"].as_u64().expect("a count");
    assert!((1..200).contains(&done), "{done}");
    assert_eq!(result["metrics"]["messages"].as_u64().expect("a count"), 5 * done);
    assert!(fs::read_to_string(out.join("report.html")).expect("a report").contains("</html>"));
}

/// The processes that `child` started and that live.
fn children(child: &Child) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten();
    let of_thread = |thread: io::Result<fs::DirEntry>| {
        let children = thread.ok()?.path().join("children");
        fs::read_to_string(children).ok()
    };
    let all: String = threads.filter_map(of_thread).collect();
    all.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn replications_on_the_kernel_in_virtual_time_that_ended_before_ctrl_c_are_told() {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let network = network.to_str().expect("a name");
    let arguments = ["run", network, "--world", "linux-vt", "--replications", "1000", "--set"];
    let mut child = start(&[&arguments[..], &["duration=6s", "--format", "json"]].concat());
    // Each replication has a guest of its own, and so many live at once.
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let mut guests = BTreeSet::new();
    while guests.len() <= at_once && child.try_wait().expect("ours").is_none() {
        guests.extend(children(&child));
        thread::yield_now();
    }
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("make linux-vt") {
        eprintln!("SKIPPED: an interruption of the kernel in virtual time: make linux-vt");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let result = json(&output);
    assert_eq!(result["complete"], false);
    let done = result["replications_done"].as_u64().expect("a count");
    assert!((1..1000).contains(&done), "{done}");
}

#[test]
fn what_watches_or_emulates_and_is_interrupted_says_so() {
    if !is_root() {
        return;
    }
    interrupted(&["watch", "--port", "1", "--seconds", "1000", "--format", "json"], 0);
    let emulated = interrupted(&["emulate", "--format", "json", "--", "sleep", "1000"], 0);
    assert_eq!(emulated["command"]["interrupted"], true);
}
