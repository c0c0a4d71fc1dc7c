//! Goal: what `acklab diagnose --anonymise` writes can be handed on, and where it cannot, it says why and leaves nothing.
//! Method: run the binary over the demo captures; what is in the packets is tested in acklab-trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo").join(name)
}

fn acklab(folder: &Path, line: &str) -> Output {
    let line = format!("'{}' {line}", env!("CARGO_BIN_EXE_acklab"));
    Command::new("sh").args(["-c", &line]).current_dir(folder).output().expect("a shell")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn capture_report_and_json_name_no_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    fs::copy(demo("modbus-slow.pcapng"), here.join("plant-7.pcapng")).expect("a copy");
    let plain = acklab(here, "diagnose plant-7.pcapng");
    let ends: Vec<String> = text(&plain.stdout)
        .split_whitespace()
        .filter_map(|word| word.split_once(':'))
        .filter(|(address, _)| address.parse::<std::net::Ipv4Addr>().is_ok())
        .map(|(address, _)| address.to_owned())
        .collect();
    assert!(ends.len() >= 2, "{ends:?}");
    let shown = acklab(here, "diagnose plant-7.pcapng --anonymise shown.pcapng --out shown");
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(text(&shown.stderr).contains("left out: none"));
    // The protocol is found as before, though the payload is gone.
    assert!(text(&shown.stdout).contains("speaks Modbus/TCP"), "{}", text(&shown.stdout));
    for file in ["shown.pcapng", "shown/report.html", "shown/diagnosis.json", "shown/diagnosis.txt"]
    {
        let bytes = fs::read(here.join(file)).expect("written");
        let content = text(&bytes);
        assert!(!content.contains("plant-7"), "{file}");
        for end in &ends {
            assert!(!content.contains(end.as_str()), "{file}: {end}");
        }
    }
    // Handed on, it says the same.
    let again = acklab(here, "diagnose shown.pcapng");
    assert_eq!(text(&again.stdout), text(&shown.stdout));
}

#[test]
fn a_key_makes_two_captures_comparable_and_what_is_wrong_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    fs::copy(demo("modbus-slow.pcapng"), here.join("a.pcapng")).expect("a copy");
    fs::write(here.join("key"), format!("{}\n", "0f".repeat(32))).expect("a key");
    for out in ["one.pcapng", "two.pcapng"] {
        acklab(here, &format!("diagnose a.pcapng --anonymise {out} --key key"));
    }
    let [one, two] =
        ["one.pcapng", "two.pcapng"].map(|name| fs::read(here.join(name)).expect("it"));
    assert_eq!(one, two);
    acklab(here, "diagnose a.pcapng --anonymise three.pcapng");
    assert_ne!(one, fs::read(here.join("three.pcapng")).expect("it"), "a key by chance");
    fs::write(here.join("bad"), "secret").expect("no key");
    fs::write(here.join("text"), "no capture").expect("no capture");
    for (line, says) in [
        ("diagnose a.pcapng --anonymise out --key bad", "64 hexadecimal digits"),
        ("diagnose a.pcapng --anonymise ./a.pcapng", "the capture itself"),
        ("diagnose text --anonymise out", "text: "),
        ("diagnose - --anonymise out < a.pcapng", "give a file"),
        ("diagnose a.pcapng --anonymise none/out", "none/out"),
    ] {
        let refused = acklab(here, line);
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert!(text(&refused.stderr).contains(says), "{line}: {}", text(&refused.stderr));
        assert!(!here.join("out").exists(), "{line}");
    }
    assert_eq!(
        fs::read(here.join("a.pcapng")).expect("it"),
        fs::read(demo("modbus-slow.pcapng")).expect("it")
    );
}

#[test]
fn what_cannot_be_read_or_written_costs_neither_a_file_nor_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    fs::copy(demo("modbus-slow.pcapng"), here.join("a.pcapng")).expect("a copy");
    fs::write(here.join("text"), "no capture").expect("no capture");
    fs::write(here.join("earlier"), "precious").expect("a file");
    assert_eq!(acklab(here, "diagnose text --anonymise earlier").status.code(), Some(2));
    assert_eq!(fs::read(here.join("earlier")).expect("still there"), b"precious");
    let whole = fs::read(here.join("a.pcapng")).expect("a capture");
    fs::write(here.join("cut"), &whole[..whole.len() - 30]).expect("a file");
    let cut = acklab(here, "diagnose cut --anonymise shown");
    assert!(text(&cut.stderr).contains("the file ends within"), "{}", text(&cut.stderr));
    // By another name, so that the device of this machine is not at stake.
    std::os::unix::fs::symlink("/dev/full", here.join("full")).expect("a link");
    std::os::unix::fs::symlink("/dev/null", here.join("nothing")).expect("a link");
    for line in ["diagnose a.pcapng --anonymise full", "run motor-loop --capture nothing"] {
        assert_eq!(acklab(here, line).status.code(), Some(2), "{line}");
    }
    assert!(here.join("full").is_symlink() && here.join("nothing").is_symlink());
}
