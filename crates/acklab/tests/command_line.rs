//! Goal: the command line keeps its contract: one JSON object on standard output, everything else on
//! standard error, exit 0, 1 or 2, and messages that say what, where and how to mend.
//! Method: run the built binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn acklab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_acklab"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// The one JSON object on standard output; nothing may stand beside it.
fn json(arguments: &[&str]) -> Value {
    let output = acklab(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON object")
}

/// Exit status and standard error of a command that fails; standard output must be empty.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = acklab(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
    let code = output.status.code().expect("no signal");
    (code, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn demo_capture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo").join(name);
    path.to_str().expect("a plain path").to_owned()
}

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

const QUICK: [&str; 8] =
    ["run", "nagle-delack", "--set", "receiver=qnx-7.0", "messages=200", "--reps", "2", "--format"];

#[test]
fn a_run_as_json_has_the_contracts_keys() {
    let result = json(&[&QUICK[..], &["json"]].concat());
    assert_eq!(result["schema"], "acklab.run/1");
    assert_eq!(result["scenario"], "nagle-delack");
    assert_eq!(result["sets"], serde_json::json!({"receiver": "qnx-7.0", "messages": "200"}));
    assert_eq!(result["world"], "sim");
    assert!(result["seed"].is_u64());
    assert_eq!(result["hash"].as_str().map(str::len), Some(16));
    for key in ["mean", "p50", "p95", "max"] {
        assert!(result["metrics"]["buffering_delay_ms"][key].is_f64(), "{key}");
    }
    for metric in ["messages_per_segment", "segments", "pure_acks"] {
        assert!(result["metrics"][metric].is_number(), "{metric}");
    }
    assert_eq!(result["metrics"]["messages"], 400);
    assert!(result["flows"][0]["id"].is_string());
    assert!(result["flows"][0]["metrics"]["segments"].is_number());
    for key in ["cpu_s", "wall_s", "events", "peak_rss_mb"] {
        assert!(result["timing"][key].is_number(), "{key}");
    }
}

#[test]
fn the_same_seed_gives_the_same_hash_on_any_number_of_threads() {
    let hash = |threads: &str, seed: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_acklab"))
            .args([&QUICK[..], &["json", "--seed", seed, "--set", "jitter=2ms"]].concat())
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .expect("the binary runs");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        result["hash"].as_str().expect("a hash").to_owned()
    };
    assert_eq!(hash("1", "7"), hash("4", "7"));
    assert_ne!(hash("1", "7"), hash("1", "8"));
}

#[test]
fn every_case_of_the_grid_is_the_case_run_alone() {
    let set = ["--set", "messages=50", "rtt=30ms", "--replications", "2", "--format", "json"];
    let all = json(&[&["run", "nagle-delack", "--all"][..], &set].concat());
    let cases = all["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 8);
    let alone = ["run", "nagle-delack", "--set", "receiver=windows-7", "nagle=off"];
    let alone = json(&[&alone[..], &set].concat());
    let same = cases.iter().find(|case| case["hash"] == alone["hash"]).expect("the same hash");
    assert_eq!(same["sets"], alone["sets"]);
    assert_eq!(same["metrics"], alone["metrics"]);
}

#[test]
fn a_run_leaves_a_folder_with_which_it_can_be_repeated() {
    let scratch = scratch();
    let folder = scratch.path();
    let out = folder.to_str().expect("a plain path");
    let first = json(&[&QUICK[..], &["json", "--seed", "5", "--out", out]].concat());
    for file in
        ["result.json", "samples.parquet", "replications.parquet", "report.html", "scenario.toml"]
    {
        assert!(fs::metadata(folder.join(file)).expect(file).len() > 0, "{file} is empty");
    }
    let written = fs::read_to_string(folder.join("result.json")).expect("result.json");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written, first);
    let scenario = folder.join("scenario.toml");
    let again = json(&["run", scenario.to_str().expect("a plain path"), "--format", "json"]);
    assert_eq!((&again["hash"], &again["metrics"]), (&first["hash"], &first["metrics"]));
}

#[test]
fn a_simulated_capture_can_be_diagnosed() {
    let scratch = scratch();
    let folder = scratch.path();
    for at in ["sender", "middle", "receiver"] {
        let path = folder.join(format!("{at}.pcapng"));
        let file = path.to_str().expect("a plain path");
        acklab(&[&QUICK[..], &["json", "--capture", file, "--capture-at", at]].concat());
        let diagnosis = json(&["diagnose", file, "--format", "json"]);
        assert_eq!(diagnosis["schema"], "acklab.diagnose/1");
        assert_eq!(diagnosis["verdict"]["stalled"], true, "{at}");
    }
}

#[test]
fn a_check_decides_the_exit_status() {
    let slow = demo_capture("nagle-linux.pcapng");
    let quick = demo_capture("nodelay-linux.pcapng");
    let status = |file: &str, check: &str| {
        acklab(&["diagnose", file, "--check", check, "--format", "json"]).status.code()
    };
    assert_eq!(status(&slow, "stalls==0"), Some(1));
    assert_eq!(status(&slow, "stalls>30"), Some(0));
    assert_eq!(status(&quick, "stalls==0,p99_ms<50"), Some(0));
    assert_eq!(status(&quick, "stalls"), Some(2));
    assert_eq!(status(&quick, "pears==0"), Some(2));
}

#[test]
fn a_diagnosis_can_be_read_from_standard_input_and_written_to_a_folder() {
    let scratch = scratch();
    let folder = scratch.path();
    let capture = fs::File::open(demo_capture("nagle-linux.pcapng")).expect("the demo capture");
    let output = Command::new(env!("CARGO_BIN_EXE_acklab"))
        .args(["diagnose", "-", "--format", "json", "--out"])
        .arg(folder)
        .stdin(capture)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).expect("exactly one JSON object");
    let report = fs::read_to_string(folder.join("report.html")).expect("report.html");
    assert!(report.contains("<html") && report.contains("held back"), "no report");
}

#[test]
fn unusable_arguments_exit_2_and_say_how_to_mend_them() {
    let check = |arguments: &[&str], message: &str| {
        let (code, errors) = failure(arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    };
    check(&["run", "nagle-delak"], "did you mean \"nagle-delack\"?");
    check(&["run", "nagle-delack", "--set", "rrt=1ms"], "did you mean \"rtt\"?");
    check(&["run", "nagle-delack", "--set", "rtt=1"], "the unit must be one of");
    check(&["run", "nagle-delack", "--set", "period=0"], "must be longer than 0");
    check(&["run", "nagle-delack", "--world", "mars"], "possible values: sim");
    check(&["run", "motor-loop", "--world", "kernel"], "nagle-delack alone");
    check(&["run", "nagle-delack", "--replications", "0"], "--replications");
    check(&["run", "nagle-delack", "--all", "--capture", "x.pcapng"], "leave out --all");
    check(&["run", "missing.toml"], "missing.toml");
    check(&["scenarios", "nope"], "no scenario is called");
    check(&["diagnose", "missing.pcap"], "missing.pcap");
    check(&["diagnose", env!("CARGO_MANIFEST_PATH")], "not a capture");
    check(&["frobnicate"], "frobnicate");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_any_work() {
    // A file stands where the folder should be; permissions would not stop root.
    let scratch = scratch();
    let blocked = scratch.path().join("file");
    fs::write(&blocked, "in the way").expect("the folder is ours");
    let out = blocked.to_str().expect("a plain path");
    // So many messages that computing them first would take many seconds.
    let long =
        ["run", "nagle-delack", "--set", "messages=10000000", "--replications", "1", "--out", out];
    for arguments in [&long[..], &["diagnose", &demo_capture("nagle-linux.pcapng"), "--out", out]] {
        let (code, errors) = failure(arguments);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(out), "{errors}");
    }
}

#[test]
fn scenarios_are_listed_with_parameters_defaults_units_and_metrics() {
    let list = json(&["scenarios", "--format", "json"]);
    let names: Vec<_> = list["scenarios"].as_array().expect("a list").iter().collect();
    assert!(names.iter().any(|scenario| scenario["name"] == "nagle-delack"));
    let one = json(&["scenarios", "nagle-delack", "--format", "json"]);
    let parameters = one["parameters"].as_array().expect("a list");
    let rtt = parameters.iter().find(|p| p["name"] == "rtt").expect("rtt");
    assert_eq!((&rtt["default"], &rtt["unit"]), (&"30ms".into(), &"time".into()));
    assert!(one["metrics"].as_array().expect("a list").iter().all(|m| m["unit"].is_string()));
    let text = acklab(&["scenarios", "nagle-delack"]).stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("rtt = 30ms") && text.contains("buffering_delay_ms"), "{text}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_acklab"))
        .args(["scenarios", "nagle-delack"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_demo_finds_in_virtual_time_what_it_finds_on_the_kernel() {
    let scratch = scratch();
    let folder = scratch.path();
    let out = folder.to_str().expect("a plain path");
    let output = acklab(&["demo", &demo_capture("nagle-linux.pcapng"), "--out", out]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("differs by +0 held writes"), "{text}");
    for file in ["report.html", "simulated/report.html", "simulated/packets.pcapng"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

#[test]
fn an_export_is_a_file_for_uppaal_and_what_has_no_automaton_is_refused() {
    let scratch = scratch();
    let file = scratch.path().join("ance.xml");
    let out = file.to_str().expect("a plain path");
    let output = acklab(&["export", "uppaal", "ance-dumbbell", "--set", "cc=ance", "--out", out]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let xml = fs::read_to_string(&file).expect("the file");
    assert!(xml.contains("<!DOCTYPE nta PUBLIC") && xml.contains("TRUE_BANDWIDTH"), "{xml}");
    let same = acklab(&["export", "uppaal", "ance-dumbbell", "--set", "cc=ance"]).stdout;
    assert_eq!(String::from_utf8(same).expect("text"), xml);

    let refused = |arguments: &[&str], message: &str| {
        let (code, errors) = failure(&[&["export", "uppaal"][..], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}");
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    };
    refused(&["nagle-delack"], "ance-dumbbell has");
    refused(&["ance-dumbbell", "--set", "queue=fq-codel"], "drop-tail, red, codel, pie and encn");
    refused(&["ance-dumbbell", "--set", "rate=-1"], "positive number");
}

#[test]
fn completions_are_written_for_common_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let output = acklab(&["completions", shell]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("diagnose"), "{shell}");
        assert!(output.status.success(), "{shell}");
    }
}

#[test]
fn several_links_of_a_network_are_looked_at_closer() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let file = file.to_str().expect("a plain path");
    let plain = ["run", file, "--set", "duration=6s"];
    let links = ["--watch", "r1 -> r2", "--watch", "r2->server"];
    let output = acklab(&[&plain[..], &links].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["a → server  bulk, cubic", "RTT p99", "r2 -> server  100.00", "wait max"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let closely = json(&[&plain[..], &links, &["--format", "json"]].concat());
    let names = |list: &str, key: &str| -> Vec<String> {
        let rows = closely["network"][list].as_array().expect("rows").iter();
        rows.map(|row| row[key].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names("flows", "flow"), ["A", "B"]);
    assert_eq!(names("links", "link"), ["r1 -> r2", "r2 -> server"]);
    let plain = json(&[&plain[..], &["--format", "json"]].concat());
    assert_eq!((&plain["hash"], &plain["metrics"]), (&closely["hash"], &closely["metrics"]));
    assert!(plain.get("network").is_none(), "looked at without being asked");

    let (code, errors) = failure(&["run", file, "--watch", "r1 -> r7"]);
    assert!(
        code == 2 && errors.contains("--watch: no link has that name; did you mean"),
        "{errors}"
    );
    let (code, errors) = failure(&["run", "rfc7928", "--watch", "r1 -> r2"]);
    assert!(code == 2 && errors.contains("rfc7928 is built in"), "{errors}");
}

#[test]
fn a_networks_file_is_run_asked_listed_and_its_mistakes_are_placed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let text = fs::read_to_string(&file).expect("the example is there");
    let file = file.to_str().expect("a plain path");
    let scratch = scratch();
    let folder = scratch.path();
    let out = folder.join("out");
    let out = out.to_str().expect("a plain path");
    let first = json(&["run", file, "--set", "duration=6s", "--out", out, "--format", "json"]);
    assert_eq!((&first["scenario"], &first["flows"][1]["id"]), (&"network".into(), &"B".into()));
    let again = json(&["run", &format!("{out}/scenario.toml"), "--format", "json"]);
    assert_eq!(first["hash"], again["hash"], "the folder's file repeats the run");
    let asked =
        ["verify", file, "Pr[<=6](<> flow[0].cwnd > 20)", "--epsilon", "0.4", "--format", "json"];
    assert_eq!(json(&asked)["schema"], "acklab.verify/1");
    let listed = acklab(&["scenarios", file]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("flow[1].cwnd"));

    let bad = folder.join("bad.toml");
    fs::write(&bad, text.replace("queue = \"codel\"", "queue = \"coddle\"")).expect("ours");
    let bad = bad.to_str().expect("a plain path");
    for arguments in [vec!["run", bad], vec!["verify", bad, "Pr[<=1](<> jain > 1)"]] {
        let (code, errors) = failure(&arguments);
        let place = format!("acklab: {bad}:30:9: queue = \"coddle\": did you mean \"codel\"?");
        assert!(code == 2 && errors.starts_with(&place), "{errors}");
    }
    let (code, errors) = failure(&["run", "network"]);
    assert!(code == 2 && errors.contains("described in a file"), "{errors}");
}

#[test]
fn a_capture_of_what_has_no_packets_is_refused_and_leaves_no_file() {
    let scratch = scratch();
    let path = scratch.path().join("loop.pcapng");
    let arguments = ["run", "motor-loop", "--capture", path.to_str().expect("a plain path")];
    let (code, message) = failure(&arguments);
    assert_eq!(code, 2);
    assert!(message.contains("motor-loop has no packets"), "{message}");
    assert!(!path.exists());
}

#[test]
fn a_loop_that_diverges_is_called_unstable() {
    let text = |delay: &str| {
        let output = acklab(&["run", "motor-loop", "--set", delay]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(text("loop_delay=100ms").contains("unstable: in 1 of 1 replications"));
    assert!(!text("loop_delay=56ms").contains("unstable:"));
    let constant = ["loop_delay=100ms", "reference_first=1", "reference_second=1"];
    let output = acklab(&[&["run", "motor-loop", "--set"][..], &constant].concat());
    assert!(String::from_utf8_lossy(&output.stdout).contains("unstable: in 1 of 1"));
}

#[test]
fn a_delay_that_acts_longer_than_it_was_set_is_told() {
    let run = ["run", "motor-loop", "--set", "loop_delay=40ms"];
    let text = String::from_utf8_lossy(&acklab(&run).stdout).into_owned();
    assert!(text.contains("note: loop_delay=40ms acts as 42 ms"), "{text}");
    let notes = &json(&[&run[..], &["--format", "json"]].concat())["notes"];
    assert_eq!(notes.as_array().map(Vec::len), Some(1), "{notes}");
    let exact = acklab(&["run", "motor-loop", "--set", "loop_delay=42ms"]);
    assert!(!String::from_utf8_lossy(&exact.stdout).contains("note:"));
}

#[test]
fn a_value_that_was_measured_once_stands_once_and_what_no_flow_has_not_at_all() {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows.toml");
    let network = network.to_str().expect("a plain path");
    let output = acklab(&["run", network, "--set", "duration=6s"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |name: &str| text.lines().find(|line| line.split(' ').next() == Some(name));
    assert_eq!(row("jain").expect("a row").split_whitespace().count(), 2, "{text}");
    assert_eq!(row("queue_packets").expect("a row").split_whitespace().count(), 5, "{text}");
    for name in ["datagram", "exchange", "transfer", "message"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let result = json(&["run", network, "--set", "duration=6s", "--format", "json"]);
    assert!(result["metrics"]["datagram_bps"].is_null(), "{result}");
}

#[test]
fn what_became_of_checks_stands_in_the_json() {
    let capture = demo_capture("modbus-slow.pcapng");
    let checks = ["--check", "stalls==0,p99_ms<1000", "--format", "json"];
    let output = acklab(&[&["diagnose", &capture][..], &checks].concat());
    assert_eq!(output.status.code(), Some(1));
    let diagnosis: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let told = |index: usize| {
        let one = &diagnosis["checks"][index];
        (one["check"].clone(), one["value"].as_f64(), one["holds"].as_bool())
    };
    assert_eq!(told(0), ("stalls==0".into(), Some(39.0), Some(false)));
    assert_eq!((told(1).0, told(1).2), ("p99_ms<1000".into(), Some(true)));
    let checks = &json(&["diagnose", &capture, "--format", "json"])["checks"];
    assert_eq!(checks.as_array().map(Vec::len), Some(0));
}

#[test]
fn a_diagnosis_is_as_wide_as_columns_say() {
    let widest = |columns: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acklab"));
        command.args(["diagnose", &demo_capture("modbus-slow.pcapng")]).env("COLUMNS", columns);
        let output = command.output().expect("the binary runs");
        let text = String::from_utf8(output.stdout).expect("text");
        // What is drawn between two hosts has its own width.
        let lines = text.lines().filter(|line| !line.contains("10.0.0.10:60035      "));
        lines.map(|line| line.chars().count()).max().expect("lines")
    };
    assert!(widest("70") <= 70, "{}", widest("70"));
    assert!((61..=80).contains(&widest("80")), "{}", widest("80"));
    assert!((140..=160).contains(&widest("160")), "{}", widest("160"));
}

#[test]
fn the_protocol_is_named_and_a_quiet_check_prints_nothing_else() {
    let capture = demo_capture("modbus-slow.pcapng");
    let text = acklab(&["diagnose", &capture]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("speaks Modbus/TCP and wrote 40 of its 40 messages of 12 bytes in pieces")
    );
    let said = "held back its writes to 10.0.0.20:502 39 times";
    assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" ").matches(said).count(), 1);
    let (code, message) = failure(&["diagnose", &capture, "--quiet", "--check", "stalls==0"]);
    assert_eq!((code, message.as_str()), (1, "check stalls==0: does not hold (39)\n"));
}

#[test]
fn manual_pages_and_completions_know_the_commands_and_the_scenarios() {
    let scratch = scratch();
    let folder = scratch.path().join("man1");
    let output = acklab(&["man", folder.to_str().expect("a plain path")]);
    assert!(output.status.success());
    for page in ["acklab.1", "acklab-run.1", "acklab-diagnose.1"] {
        let text = fs::read_to_string(folder.join(page)).expect(page);
        assert!(text.contains(".SH"), "{page}");
    }
    let script = acklab(&["completions", "bash"]).stdout;
    let script = String::from_utf8_lossy(&script);
    assert!(script.contains("nagle-delack") && script.contains("loop_delay"));
}

#[test]
fn examples_of_the_help_are_never_wrapped_and_its_text_is() {
    let help = |arguments: &[&str], columns: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acklab"));
        let output = command.args(arguments).arg("--help").env("COLUMNS", columns).output();
        String::from_utf8(output.expect("the binary runs").stdout).expect("text")
    };
    for arguments in [&["emulate"][..], &["reproduce", "rdt"], &["send"], &["recv"], &["fix"], &[]]
    {
        let [wide, narrow] = ["300", "60"].map(|columns| help(arguments, columns));
        let (_, examples) = wide.split_once("\nExamples").expect("examples");
        let indented: Vec<&str> = examples.lines().filter(|line| line.starts_with("  ")).collect();
        assert!(!indented.is_empty() && !narrow.contains('\u{a0}'), "{arguments:?}");
        for line in indented {
            assert!(narrow.lines().any(|one| one == line), "{arguments:?}: {line}");
        }
        // The usage is one line of syntax.
        let (options, _) = narrow.split_once("--version").expect("options");
        let mut text = options.lines().filter(|line| !line.starts_with("Usage:"));
        assert!(text.all(|line| line.chars().count() <= 60), "{options}");
    }
}

#[test]
fn a_parameter_that_is_set_twice_is_refused() {
    for arguments in [
        &["run", "motor-loop", "--set", "loss=5", "loss=6"][..],
        &["verify", "motor-loop", "E[<=1; 2](max: overshoot)", "--set", "kp=1", "--set", "kp=2"],
        &["reproduce", "xudp", "--set", "exchange=1", "--set", "exchange=2"],
    ] {
        let (code, errors) = failure(arguments);
        assert!(code == 2 && errors.contains("the same parameter twice"), "{errors}");
    }
}
