//! Goal: what the documentation shows works as it stands.
//! Method: every indented command of README, of the documents, of the scenarios' comments (verify) and of verify's help is run
//! by a shell in a folder with the examples beside it, or stands in [`NOT_RUN`] with the reason; every query of
//! docs/verification.md's table is answered from a few runs. The tutorials have their own test.

mod pages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command line as a user types it.
fn shell(line: &str, folder: &Path) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_acklab"));
    let beside = binary.parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", format!("{beside}:{path}"));
    shell.output().expect("a shell")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Beginnings of commands that are not run here, with the reason.
const NOT_RUN: [(&str, &str); 25] = [
    ("make ", "builds, measures or tests for minutes to hours; CI is made of the shorter ones"),
    ("cargo ", "a compiler's work; CI builds everything"),
    ("ACKLAB_BLESS=1 cargo", "writes golden files"),
    ("ACKLAB_WRITE_SCHEMA=1 cargo", "writes golden files"),
    ("sudo make ", "measures for minutes, as root"),
    ("tcpdump ", "another program, whose captures stand in demo/"),
    ("sudo acklab watch", "needs a running program and root: tests/watch.rs"),
    ("sudo acklab fix", "needs a running program and root: tests/watch.rs"),
    ("sudo acklab bpf", "changes the running kernel: tests/bpf.rs"),
    ("sudo acklab emulate", "needs root and iperf3: tests/emulate.rs, docs/tutorials/bad-link.md"),
    ("sudo acklab packetdrill", "the running kernel, as root: tests/packetdrill.rs"),
    ("sudo acklab tcp", "needs root: tests/tcp.rs"),
    ("sudo acklab run", "the running kernel in real time, as root: tests/dataset.rs"),
    ("sudo acklab dataset", "the running kernel in real time, as root: tests/dataset.rs"),
    ("sudo acklab reproduce", "a quarter of an hour of real packets, as root"),
    ("acklab record", "records the demo captures anew, as root: tests/record.rs"),
    ("acklab dataset", "reads what the commands before it took hours to make: tests/dataset.rs"),
    ("acklab compare", "needs the kernel that `make linux-vt` builds: tests/linux_vt.rs"),
    ("acklab recv", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("acklab send", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("ACKLAB_PASSPHRASE=", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("acklab reproduce ance", "minutes: crates/acklab-papers/tests/ance.rs"),
    ("acklab reproduce rdt", "half a minute and more: tests/rdt.rs"),
    (
        "acklab packetdrill handshake.pkt",
        "the reader's own scripts: crates/acklab-packetdrill/tests",
    ),
    (
        "acklab run scenarios/aqm-study.toml",
        "a minute of CPU time: crates/acklab-lab/tests/sweep.rs",
    ),
];

/// Commands that end with 1, because what they check does not hold.
const CHECKS: &str = "--check 'stalls==0'";

/// What is read for commands.
fn documents() -> Vec<(PathBuf, String)> {
    let mut files = vec![pages::root().join("README.md"), pages::root().join("CONTRIBUTING.md")];
    for folder in ["docs", "demo", "scenarios"] {
        let entries = fs::read_dir(pages::root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let shows =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "md" || end == "toml");
        files.extend(paths.filter(shows));
    }
    files.sort();
    let read = |file: PathBuf| (fs::read_to_string(&file).expect("a text"), file);
    files.into_iter().map(read).map(|(text, file)| (file, text)).collect()
}

/// The commands of a document: indented in Markdown, or behind `#` in a scenario.
fn commands(file: &Path, text: &str) -> Vec<String> {
    let lines: Vec<String> = if file.extension().is_some_and(|end| end == "md") {
        let blocks = pages::blocks(text);
        let whole = |block: &String| block.replace("\\\n", " ");
        blocks
            .iter()
            .map(whole)
            .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    } else {
        // Their runs are the scenarios themselves, which other tests run, shorter.
        let verifies = |line: &&str| line.trim().starts_with("acklab verify ");
        text.lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(verifies)
            .map(str::to_owned)
            .collect()
    };
    let plain = |line: &String| line.trim().trim_start_matches("$ ").to_owned();
    let is_command = |line: &String| {
        let program = line.split_whitespace().find(|word| !word.contains('=') && *word != "sudo");
        // An error message begins with `acklab:`, a crate's name with `acklab-`.
        program.is_some_and(|program| ["acklab", "make", "cargo", "tcpdump"].contains(&program))
    };
    lines.iter().map(plain).filter(is_command).collect()
}

/// The reader's own captures.
fn with_captures() -> tempfile::TempDir {
    let folder = pages::folder();
    for (name, demo) in [
        ("slow.pcap", "modbus-slow.pcapng"),
        ("nightly.pcap", "modbus-nodelay.pcapng"),
        ("client.pcap", "modbus-slow.pcapng"),
        ("server.pcap", "modbus-slow.pcapng"),
    ] {
        fs::copy(pages::root().join("demo").join(demo), folder.path().join(name)).expect("a copy");
    }
    folder
}

#[test]
fn every_command_of_the_documents_and_of_the_help_works() {
    let folder = with_captures();
    let help = text(&shell("acklab verify --help", folder.path()).stdout);
    let of_help = help.lines().map(str::trim).filter(|line| line.starts_with("acklab verify "));
    let mut all: Vec<(PathBuf, String)> =
        of_help.map(|line| ("the help".into(), line.to_owned())).collect();
    for (file, text) in documents() {
        all.extend(commands(&file, &text).into_iter().map(|line| (file.clone(), line)));
    }
    let (mut run, mut left) = (0, [0; NOT_RUN.len()]);
    for (place, line) in &all {
        let place = place.display();
        if let Some(index) = NOT_RUN.iter().position(|(begin, _)| line.starts_with(begin)) {
            left[index] += 1;
            continue;
        }
        if line.contains("--world linux-vt") {
            continue;
        }
        let line = if line.contains("--flow 3") {
            line.replace("--flow 3", "--flow 0")
        } else {
            line.clone()
        };
        let output = shell(&line, folder.path());
        let expected = i32::from(line.contains(CHECKS) && line.contains("slow"));
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(expected), "{place}: {line}\n{errors}");
        run += 1;
    }
    println!("{run} commands run, {} not, of {}", left.iter().sum::<usize>(), all.len());
    assert!(run >= 40, "only {run} commands were run");
    for ((begin, reason), count) in NOT_RUN.iter().zip(left) {
        assert!(count > 0, "no document says {begin:?} any more ({reason})");
    }
}

/// What stands in backticks at the head of a table's rows, where it is a query.
fn queries(text: &str) -> Vec<String> {
    let first = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let is_query = |text: &String| {
        ["Pr[", "E[", "quantile[", "S[", "simulate "].iter().any(|word| text.starts_with(word))
    };
    text.lines().filter_map(first).filter(is_query).collect()
}

#[test]
fn every_query_of_the_table_is_answered() {
    let document =
        std::fs::read_to_string(pages::root().join("docs/verification.md")).expect("a text");
    let folder = pages::folder();
    let queries = queries(&document);
    assert!(queries.len() >= 14, "{queries:?}");
    for query in queries {
        let output =
            shell(&format!("acklab verify ance-dumbbell '{query}' --runs-max 3"), folder.path());
        // So few runs may say no, or decide nothing.
        assert!(output.status.code() != Some(2), "{query}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("runs"), "{query}");
    }
}
