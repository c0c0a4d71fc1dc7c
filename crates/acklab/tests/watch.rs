//! Goal: `acklab watch` names a stall of the real kernel within a second, holds it to checks, draws it on a terminal and
//! ends with a summary on Ctrl-C; `acklab fix` changes nothing in a dry run, mends the running program, and what it did
//! can be undone after it was killed. What is not permitted is said.
//! Method: the built binary, beside a program that stalls over loopback in a network namespace made by the test (the
//! program is this test binary again). Skipped with a message where namespaces are not permitted.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the real kernel runs by the real clock")]

#[path = "../../acklab-live/tests/program/mod.rs"]
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use program::{Program, namespace};
use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
/// A delayed ACK of Linux takes 40 ms; a mended exchange a fraction of one.
const STALLED_MS: f64 = 20.0;
const TRIES: usize = 5;
/// The user `nobody`, who may nothing.
const NOBODY: u32 = 65534;

fn acklab(arguments: &[&str], records: &Path) -> Output {
    Command::new(ACKLAB)
        .args(arguments)
        .env("ACKLAB_RUN_DIR", records)
        .output()
        .expect("the binary runs")
}

fn started(arguments: &[&str], records: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(ACKLAB)
        .args(arguments)
        .env("ACKLAB_RUN_DIR", records)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    (child, output)
}

/// A program that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn line(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    line
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_stall_is_named_within_a_second_and_ctrl_c_brings_the_summary() {
    if !namespace() {
        return;
    }
    let program = Program::start(7_101);
    let records = tempfile::tempdir().expect("a folder");
    // A busy machine may take longer once, but not each time.
    let mut tries = (0..TRIES).map(|_| {
        let began = Instant::now();
        let (watch, mut output) = started(&["watch", "--format", "json"], records.path());
        let first = line(&mut output);
        (began.elapsed(), Running(watch), output, first)
    });
    let named = tries.find(|(after, ..)| *after < Duration::from_secs(1));
    let (_, mut watch, mut output, first) = named.expect("named within a second");
    let stall: Value = serde_json::from_str(&first).expect("one object per line");
    assert_eq!((&stall["schema"], &stall["kind"]), (&"acklab.watch/1".into(), &"stall".into()));
    assert_eq!(stall["mechanism"], "delayed_ack_timer");
    assert!(stall["to"].as_str().is_some_and(|to| to.ends_with(":7101")), "{stall}");
    assert_eq!(stall["pid"], program.pid());
    assert!(stall["process"].is_string() && stall["from"].is_string(), "{stall}");
    assert!(stall["count"].as_u64() > Some(0) && stall["seconds"].as_f64() > Some(0.0), "{stall}");
    assert_eq!(stall["fix"], format!("acklab fix --pid {} --nodelay", program.pid()));

    kill(Pid::from_raw(watch.0.id() as i32), Signal::SIGINT).expect("interrupted");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the rest");
    assert!(watch.0.wait().expect("it ends").success());
    let summary: Value =
        serde_json::from_str(rest.lines().last().expect("a summary")).expect("JSON");
    assert_eq!((&summary["kind"], &summary["dropped"]), (&"summary".into(), &0.into()));
    assert_eq!(summary["verdict"]["stalled"], true);
    assert_eq!(summary["stalls"][0]["mechanism"], "delayed_ack_timer");
    assert_eq!(summary["count"], summary["stalls"][0]["count"]);
}

#[test]
fn a_check_decides_the_exit_status() {
    if !namespace() {
        return;
    }
    let _program = Program::start(7_102);
    let records = tempfile::tempdir().expect("a folder");
    let checked = |port: &str, check: &str| {
        let arguments = ["watch", "--port", port, "--seconds", "1", "--check", check];
        let output = acklab(&arguments, records.path());
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(checked("7102", "stalls>0").0, Some(0));
    let (code, said) = checked("7102", "stalls==0");
    assert!(code == Some(1) && said.contains("does not hold"), "{said}");
    let (code, said) = checked("7999", "stalls==0");
    assert!(code == Some(2) && said.contains("no TCP"), "{said}");
    let (code, said) = checked("7102", "stall==0");
    assert!(code == Some(2) && said.contains("is no metric"), "{said}");
}

#[test]
fn a_terminal_shows_the_sockets_and_is_given_back() {
    if !namespace() {
        return;
    }
    let _program = Program::start(7_103);
    let command = format!("{ACKLAB} watch --port 7103 --seconds 2");
    let drawn = Command::new("script").args(["-qec", &command, "/dev/null"]).output();
    let Ok(drawn) = drawn else {
        eprintln!("SKIPPED: the view on a terminal: the command `script` is not installed");
        return;
    };
    let shown = text(&drawn.stdout);
    let (begin, end) = (shown.find("\x1b[?1049h"), shown.find("\x1b[?1049l"));
    let screen = &shown[begin.expect("another screen")..end.expect("and back")];
    assert!(screen.contains("local > remote") && screen.contains(":7103"), "{screen}");
    assert!(screen.contains("delayed_ack_timer"), "{screen}");
    assert!(shown.contains("STALLED"), "{shown}");
}

#[test]
fn a_fix_is_shown_first_and_undone_after_it_was_killed() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_104);
    let records = tempfile::tempdir().expect("a folder");
    let fix = ["fix", "--port", "7104", "--nodelay"];
    let shown = acklab(&[&fix[..], &["--dry-run"]].concat(), records.path());
    let (steps, said) = (text(&shown.stdout), text(&shown.stderr));
    assert!(shown.status.success() && steps.starts_with("Would do:"), "{steps}{said}");
    assert!(steps.contains(":7104 of process") && steps.contains("new connections"), "{steps}");
    assert!(program.exchange_ms() > STALLED_MS, "a dry run changes nothing");

    let (mut fixing, mut output) =
        started(&[&fix[..], &["--seconds", "600"]].concat(), records.path());
    assert!(line(&mut output).starts_with("Does:"));
    fixing.kill().expect("killed");
    fixing.wait().expect("gone");
    assert!(program.exchange_ms() > STALLED_MS, "killed while it measured: nothing was changed");

    let (mut fixing, mut output) =
        started(&[&fix[..], &["--seconds", "1", "--format", "json"]].concat(), records.path());
    let mut told = String::new();
    output.read_to_string(&mut told).expect("its result");
    assert!(fixing.wait().expect("it ends").success());
    let told: Value = serde_json::from_str(&told).expect("one object");
    assert_eq!((&told["schema"], &told["applied"]), (&"acklab.fix/1".into(), &true.into()));
    assert!(told["before"]["count"].as_u64() > Some(5), "{told}");
    assert_eq!(told["after"]["count"], 0, "{told}");
    assert!(program.exchange_ms() < 5.0);
    program.connect_anew();
    let anew = program.exchange_ms();

    let listed = text(&acklab(&["fix", "--list"], records.path()).stdout);
    // As one whose program was killed while it wrote.
    fs::write(records.path().join("fix-9.json"), "{ \"words\": \"--nod").expect("written");
    let undone = acklab(&["fix", "--undo", "--port", "7104"], records.path());
    assert!(listed.contains("--nodelay --port 7104"), "{listed}");
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    assert!(anew < 5.0, "a new connection: {anew} ms");
    program.connect_anew();
    assert!(program.exchange_ms() > STALLED_MS, "{}", text(&undone.stdout));
    assert_eq!(fs::read_dir(records.path()).expect("the folder").count(), 0);
}

#[test]
fn a_fix_that_was_killed_in_the_middle_is_undone_by_the_next() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_105);
    let records = tempfile::tempdir().expect("a folder");
    let port = ["--port", "7105"];
    let arguments = [&["fix"], &port[..], &["--nodelay", "--seconds", "2"]].concat();
    let (mut fixing, _output) = started(&arguments, records.path());
    let end = Instant::now() + Duration::from_secs(20);
    while program.exchange_ms() > STALLED_MS {
        assert!(Instant::now() < end, "the fix was not felt");
    }
    // It measures now what it brought.
    fixing.kill().expect("killed");
    fixing.wait().expect("gone");
    assert!(program.exchange_ms() < 5.0, "what it did stays");
    let undone = acklab(&[&["fix", "--undo"], &port[..]].concat(), records.path());
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    let again = program.exchange_ms();
    assert!(again > STALLED_MS, "{again} ms: {}", text(&undone.stdout));
}

#[test]
fn what_is_not_permitted_or_not_there_is_said() {
    let records = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| {
        let output = acklab(arguments, records.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refused(&["fix", "--nodelay"]).contains("--pid N, --port N or --cgroup PATH"));
    assert!(refused(&["fix", "--port", "1"]).contains("--nodelay"));
    assert!(refused(&["watch", "--pid", "4194304"]).contains("process 4194304"));
    assert!(
        refused(&["fix", "--quickack", "--port", "7999"]).contains("no such connection is open")
    );

    // A binary where the user may run it, which the target folder need not be.
    let binary = records.path().join("acklab");
    fs::copy(ACKLAB, &binary).expect("copied");
    for path in [records.path(), &binary] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    let as_nobody = Command::new(&binary).args(["watch", "--seconds", "1"]).uid(NOBODY).output();
    let Ok(output) = as_nobody else {
        eprintln!("SKIPPED: watching without privilege: not permitted to become another user here");
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("CAP_NET_RAW"), "{}", text(&output.stderr));
}

/// Not a test of its own: what the others start as their program.
#[test]
fn the_program() {
    program::run();
}
