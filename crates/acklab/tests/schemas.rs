//! Goal: whoever reads the command's JSON finds in docs/schema what stands in it.
//! Method: print it with every verb that does, and hold each object to the schema that its `schema` names.

#[path = "../../acklab-lab/tests/schema/mod.rs"]
mod schema;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file of the schema that an object names.
fn file_of(name: &str) -> PathBuf {
    let name = name.strip_prefix("acklab.").and_then(|name| name.strip_suffix("/1"));
    let name = name.expect("acklab.NAME/1");
    let file = match name {
        "transfer" => name,
        _ if name.starts_with("transfer-") => "transfer-lines",
        _ if name.starts_with("dataset") => "dataset",
        _ => name,
    };
    root().join(format!("docs/schema/{file}.schema.json"))
}

/// Holds every object of `output` to its schema; which schemas they were.
fn hold(output: &str, what: &str) -> BTreeSet<String> {
    let objects = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    let mut seen = BTreeSet::new();
    for object in objects {
        let object = object.unwrap_or_else(|error| panic!("{what}: {error}\n{output}"));
        // The results of scripts do not name theirs.
        let name = object["schema"].as_str().unwrap_or("acklab.packetdrill/1").to_owned();
        let text =
            fs::read_to_string(file_of(&name)).unwrap_or_else(|_| panic!("{name} has no file"));
        schema::check(&serde_json::from_str(&text).expect("a schema"), &object);
        seen.insert(name);
    }
    seen
}

/// What needs neither root nor a kernel of its own.
const COMMANDS: [&str; 22] = [
    "diagnose demo/nagle-linux.pcapng",
    "diagnose demo/modbus-nodelay.pcapng --flow 0",
    "whatif demo/nagle-linux.pcapng",
    "whatif demo/nagle-linux.pcapng --set sender.nodelay=true",
    "run nagle-delack --set messages=50",
    "run motor-loop --set loop_delay=0ms,14ms loss=2% --replications 2",
    "run scenarios/two-flows.toml --set duration=6s",
    "run scenarios/two-flows.toml --set duration=6s --watch 'r1 -> r2'",
    "verify motor-loop 'Pr[<=30](<> overshoot > 0.3)' --set loss=5%",
    "verify motor-loop 'Pr[<=30](<> overshoot > 0.3) >= 0.5' --set loss=5%",
    "verify motor-loop 'Pr[<=9](<> overshoot > 0.3) >= Pr[<=9](<> overshoot > 0.4)' --set loss=5%",
    "verify motor-loop 'E[<=9; 5](max: overshoot)' --set loss=5%",
    "verify motor-loop 'quantile[<=9; 50](0.9, max: overshoot)' --set loss=5%",
    "verify motor-loop 'S[<=30](avg: position)'",
    "verify motor-loop 'simulate [<=1; 1] {position}'",
    "verify motor-loop 'Pr[<=30](<> overshoot > 0.3) >= 0.5' --set loss=5%,6%",
    "scenarios",
    "scenarios motor-loop",
    "scenarios --list acks",
    "scenarios --list systems",
    "packetdrill crates/acklab-packetdrill/tests/scripts/eor",
    "compare scenarios/two-flows.toml --worlds sim --set duration=6s",
];

#[test]
fn what_is_printed_keeps_to_its_schema() {
    let binary = env!("CARGO_BIN_EXE_acklab");
    let mut seen = BTreeSet::new();
    for command in COMMANDS {
        let line = format!("'{binary}' {command} --format json");
        let output = Command::new("sh").args(["-c", &line]).current_dir(root()).output();
        let output = output.expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        let kinds = hold(&text, command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!kinds.is_empty(), "{command} printed nothing: {errors}");
        seen.extend(kinds);
    }
    assert!(seen.len() >= 9, "{seen:?}");
}

/// The object that one command prints, held to its schema.
fn object(folder: &Path, command: &str) -> Value {
    let line = format!("'{}' {command} --format json", env!("CARGO_BIN_EXE_acklab"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder).output();
    let output = output.expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    hold(&text, command);
    serde_json::Deserializer::from_str(&text).into_iter().last().expect("an object").expect("JSON")
}

#[test]
fn what_writes_a_folder_keeps_to_its_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let xudp = object(folder.path(), "reproduce xudp --out xudp");
    assert_eq!(xudp["complete"], true);
    let written = Command::new(env!("CARGO_BIN_EXE_acklab"))
        .args(["dataset", "write", "set", "--set", "receiver=linux", "nagle=on", "rtt=10ms"])
        .args(["messages=20", "--runs", "2"])
        .current_dir(folder.path())
        .status();
    assert!(written.expect("the binary runs").success());
    for command in ["dataset read set", "dataset verify set", "dataset compare a=set b=set"] {
        object(folder.path(), command);
    }
}

/// What needs the running kernel and root; a schema that is wrong shows nowhere else.
#[test]
fn what_the_running_kernel_says_keeps_to_its_schema() {
    if !fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        eprintln!("SKIPPED: needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = object(folder.path(), "record slow.pcapng --exchanges 3");
    assert_eq!(recorded["complete"], true);
    assert_eq!(object(folder.path(), "watch --port 1 --seconds 1")["complete"], true);
    // A port where nothing is: the plan, what is in force, and nothing to undo.
    for command in ["fix --port 1 --nodelay --dry-run", "fix --list", "fix --undo --port 1"] {
        object(folder.path(), command);
    }
    if Command::new("bpftool").arg("version").output().is_ok() {
        object(folder.path(), "bpf status");
    } else {
        eprintln!("SKIPPED: `bpf status` needs bpftool");
    }
    // Nothing listens there: refused, and said so.
    let refused = object(folder.path(), "tcp connect 10.78.0.1:9 --discard");
    assert_eq!(refused["schema"], "acklab.tcp/1");
    let line = format!("'{}' emulate --format json -- true", env!("CARGO_BIN_EXE_acklab"));
    let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    let seen = hold(&String::from_utf8_lossy(&output.stdout), "emulate");
    assert!(seen.contains("acklab.emulate/1"), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_lines_of_a_transfer_keep_to_theirs() {
    let binary = env!("CARGO_BIN_EXE_acklab");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), vec![7; 300_000]).expect("a file");
    let mut receiver = Command::new(binary)
        .args(["recv", "inbox", "--listen", "127.0.0.1:0", "--once", "--insecure"])
        .args(["--format", "json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a receiver");
    let mut lines = BufReader::new(receiver.stdout.take().expect("its output")).lines();
    let first = lines.next().expect("a line").expect("a line");
    let listening: Value = serde_json::from_str(&first).expect("JSON");
    let address = listening["listen"][0].as_str().expect("an address");
    let sender = Command::new(binary)
        .args(["send", "file", address, "--insecure", "--format", "json"])
        .current_dir(folder.path())
        .output()
        .expect("a sender");
    assert!(sender.status.success(), "{}", String::from_utf8_lossy(&sender.stderr));
    let rest: Vec<String> = lines.map(|line| line.expect("a line")).collect();
    receiver.wait().expect("it ends");
    let mut seen = hold(&(first + "\n" + &rest.join("\n")), "recv");
    seen.extend(hold(&String::from_utf8_lossy(&sender.stdout), "send"));
    for name in ["acklab.transfer/1", "acklab.transfer-listening/1", "acklab.transfer-received/1"] {
        assert!(seen.contains(name), "{seen:?}");
    }
}

#[test]
fn every_schema_of_the_sources_has_its_file() {
    // Written for the program itself, which reads them again.
    const PRIVATE: [&str; 2] = ["acklab.kernel-run/1", "acklab.truth/1"];
    let mut folders = vec![root().join("crates")];
    let mut names = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let after =
                    text.split("\"acklab.").skip(1).filter_map(|rest| rest.split('"').next());
                let is_name = |word: &&str| word.ends_with("/1") && !word.contains(['{', ' ']);
                names.extend(after.filter(is_name).map(|word| format!("acklab.{word}")));
            }
        }
    }
    names.retain(|name| !PRIVATE.contains(&name.as_str()));
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(file_of(&name).exists(), "{name} has no file in docs/schema");
    }
}
