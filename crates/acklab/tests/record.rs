//! Goal: `acklab record` writes what the kernel did as a capture that `acklab diagnose` reads, and
//! a recording that is not permitted says so and costs no file.
//! Method: run the built binary, as root where possible (skipped with a message otherwise), and
//! as a user without privileges.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
/// The user `nobody`, who may nothing.
const NOBODY: u32 = 65534;

fn record(path: &Path, options: &[&str]) -> Output {
    Command::new(ACKLAB).arg("record").arg(path).args(options).output().expect("the binary runs")
}

/// Records and diagnoses; `None` with a message where recording is not permitted.
fn diagnosed(name: &str, options: &[&str]) -> Option<(Value, Value)> {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join(name);
    let recorded = record(&path, &[options, &["--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&recorded.stderr);
    if errors.contains("not permitted") {
        eprintln!("SKIPPED: recording the kernel: not permitted here");
        return None;
    }
    assert!(recorded.status.success(), "{errors}");
    let diagnosis = Command::new(ACKLAB)
        .args(["diagnose", "--format", "json"])
        .arg(&path)
        .output()
        .expect("the binary runs");
    let parse = |output: &Output| serde_json::from_slice(&output.stdout).expect("one JSON object");
    Some((parse(&recorded), parse(&diagnosis)))
}

#[test]
fn a_recorded_exchange_is_diagnosed_and_its_mending_too() {
    let exchanges = ["--exchanges", "12"];
    let Some((recording, slow)) = diagnosed("slow.pcapng", &exchanges) else { return };
    assert_eq!(recording["schema"], "acklab.record/1");
    assert_eq!(recording["frames"], slow["capture"]["packets"]);
    assert_eq!(slow["verdict"]["stalled"], true);
    let options = [&exchanges[..], &["--nodelay"]].concat();
    let Some((_, mended)) = diagnosed("mended.pcapng", &options) else { return };
    assert_eq!(mended["verdict"]["stalled"], false);
}

#[test]
fn a_recording_that_is_not_permitted_says_so_and_leaves_the_files_as_they_were() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    // Where the user may write and run, which the target folder need not be.
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let folder = scratch.path();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    };
    open(folder, 0o777);
    let (binary, kept, new) = (folder.join("acklab"), folder.join("kept"), folder.join("new"));
    fs::copy(ACKLAB, &binary).expect("room for a copy");
    open(&binary, 0o755);
    fs::write(&kept, "an earlier recording").expect("the folder is ours");
    open(&kept, 0o666);

    let attempt = |path: &Path| {
        let mut command = Command::new(&binary);
        // Refused where the test is not root, and then it has nothing to give up.
        let as_nobody = command.arg("record").arg(path).uid(NOBODY).output();
        as_nobody.or_else(|_| Command::new(&binary).arg("record").arg(path).output())
    };
    for path in [&kept, &new] {
        let output = attempt(path).expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("not permitted") && errors.contains("sudo"), "{errors}");
    }
    assert_eq!(fs::read_to_string(&kept).expect("still there"), "an earlier recording");
    assert!(!new.exists());
}
