//! Goal: `acklab packetdrill` ends as its help says, and the scripts of acklab-packetdrill hold on the running kernel.
//! Method: run the built binary.

use std::fs;
use std::process::Command;

/// Exit status and standard output.
fn packetdrill(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_acklab"))
        .arg("packetdrill")
        .args(arguments)
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().expect("no signal"), text)
}

#[test]
fn the_exit_status_tells_passed_failed_unusable_and_unsupported_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path.to_str().expect("a plain path").to_owned()
    };
    let passes = file("passes.pkt", format!("{socket}+0 close(3) = 0\n").as_bytes());
    let fails = file("fails.pkt", format!("{socket}+0 close(4) = 0\n").as_bytes());
    let foreign = file("foreign.pkt", format!("{socket}+0 mmap(3) = 0\n").as_bytes());
    let noise = file("noise.pkt", &[0x93, 0x00, 0xff, 0x17, b'\n', 0x80]);
    let words = file("words.pkt", b"nothing of a script\n");
    let status = |arguments: &[&str]| packetdrill(arguments).0;
    assert_eq!(status(&[&passes]), 0);
    assert_eq!(status(&[&passes, &fails, &foreign]), 1);
    assert_eq!(status(&[&passes, &foreign]), 3);
    assert_eq!(status(&[&words]), 3);
    assert_eq!(status(&[&noise]), 1);
    assert_eq!(status(&["no/such/file.pkt"]), 2);
    assert_eq!(status(&[&passes, "--threads", "none"]), 2);
}

/// Timers and load are of no account here: `make oracle` runs all of them.
#[test]
fn scripts_hold_on_the_running_kernel() {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../acklab-packetdrill/tests/scripts");
    let of = |name: &str| format!("{scripts}/{name}.pkt");
    let names =
        ["syn/what-listeners-answer", "mss/user-mss-and-peer-mss", "close/unread-data-resets"];
    let paths = names.map(of);
    let mut arguments = vec!["--kernel", "--tolerance-usecs", "900000"];
    arguments.extend(paths.iter().map(String::as_str));
    let (code, text) = packetdrill(&arguments);
    if text.contains("needs root") {
        println!("skipped: a network namespace needs root");
        return;
    }
    assert_eq!(code, 0, "{text}");
    // The same script with another number fails there, too.
    let folder = tempfile::tempdir().expect("a folder");
    let script = fs::read_to_string(&paths[2]).expect("a script");
    let changed = script.replace("> R. 1:1(0)", "> R. 2:2(0)");
    assert_ne!(changed, script);
    let path = folder.path().join("changed.pkt");
    fs::write(&path, changed).expect("written");
    let (code, text) =
        packetdrill(&["--kernel", "--tolerance-usecs", "900000", path.to_str().expect("a path")]);
    assert_eq!(code, 1, "{text}");
}
