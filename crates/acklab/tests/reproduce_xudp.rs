//! `acklab reproduce xudp` as a user meets it: its output, its files, its refusals.

use std::fs;
use std::process::{Command, Output};

fn acklab(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_acklab")).args(arguments).output();
    command.expect("the program starts")
}

#[test]
fn the_table_is_printed_beside_the_theses_and_the_report_is_one_file_with_its_graphs() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("out");
    let out = folder.to_str().expect("a plain path");
    let output = acklab(&["reproduce", "xudp", "--out", out]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in ["9.52", "206.53", "291 of 291", "448 of 581", "the thesis, which changed both"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let html = fs::read_to_string(folder.join("report.html")).expect("the report");
    for graph in [
        "Bytes acknowledged: with the timer",
        "Round trip times: with the timer",
        "Packets in network: with the timer",
    ] {
        assert!(html.contains(graph), "{graph}");
    }
    let json = fs::read_to_string(folder.join("result.json")).expect("the result");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "acklab.reproduce/1");
    assert_eq!(json["stream"][0]["paper"]["rate_kbps"], 9.52);
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_is_written() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("out");
    let out = folder.to_str().expect("a plain path");
    for (set, words) in [
        ("foo=1", "acklab reproduce xudp --parameters"),
        ("order=both", "send-first, read-first"),
        ("packet=1", "from 64 to 1400"),
    ] {
        let output = acklab(&["reproduce", "xudp", "--set", set, "--out", out]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {output:?}");
        assert!(errors.starts_with("acklab: --set: ") && errors.contains(words), "{set}: {errors}");
    }
    assert!(!folder.exists(), "nothing was made");
}

#[test]
fn every_parameter_is_listed_with_its_default() {
    let output = acklab(&["reproduce", "xudp", "--parameters"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    for words in ["ack_timer", "100ms", "exchange", "send-first | read-first"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
