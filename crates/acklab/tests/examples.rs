//! Goal: what the documentation shows works as it stands.
//! Method: every indented command of README, of the documents, of the scenarios' comments (verify) and every example of
//! every verb's help is run by a shell in a folder with the examples beside it, or stands in [`NOT_RUN`] with the reason; every
//! query of docs/verification.md's table is answered from a few runs. The tutorials have their own test.

mod pages;

use std::collections::BTreeSet;
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
    // Manual pages and completions go there.
    shell.env("HOME", folder);
    shell.output().expect("a shell")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Parts of commands that are not run here, with the reason.
const NOT_RUN: [(&str, &str); 34] = [
    ("make ", "builds, measures or tests for minutes to hours; CI is made of the shorter ones"),
    ("cargo ", "a compiler's work; CI builds everything"),
    ("ACKLAB_BLESS=1 cargo", "writes golden files"),
    ("ACKLAB_WRITE_SCHEMA=1 cargo", "writes golden files"),
    ("sudo make ", "measures for minutes, as root"),
    ("tcpdump ", "until Ctrl-C, as root: tests/early_end.rs"),
    ("truth ", "what the program's subcommands take; `make truth` runs them for an hour"),
    ("nc ", "talks to the command before it: tests/tcp.rs"),
    ("unshare ", "needs namespaces of users, and nc: tests/tcp.rs"),
    ("iperf3 ", "a host at the other end, through a loaded program: tests/bpf.rs"),
    ("tar ", "two machines: tests/transfer.rs"),
    ("--world linux-vt", "needs the kernel that `make linux-vt` builds: tests/linux_vt.rs"),
    ("sudo acklab watch", "needs a running program and root: tests/watch.rs"),
    ("sudo acklab fix", "needs a running program and root: tests/watch.rs"),
    ("sudo acklab bpf", "changes the running kernel: tests/bpf.rs"),
    ("sudo acklab emulate", "needs root and iperf3: tests/emulate.rs, docs/tutorials/bad-link.md"),
    ("sudo acklab packetdrill", "the running kernel, as root: tests/packetdrill.rs"),
    ("sudo acklab tcp", "needs root: tests/tcp.rs"),
    ("sudo acklab run", "the running kernel in real time, as root: tests/dataset.rs"),
    ("sudo acklab record", "needs root: tests/record.rs"),
    ("sudo acklab dataset", "the running kernel in real time, as root: tests/dataset.rs"),
    ("sudo acklab compare", "the running kernel in real time, as root: tests/dataset.rs"),
    ("sudo acklab reproduce", "a quarter of an hour of real packets, as root"),
    ("acklab record", "records the demo captures anew, as root: tests/record.rs"),
    ("acklab dataset", "reads what the commands before it took hours to make: tests/dataset.rs"),
    ("acklab compare", "needs the kernel that `make linux-vt` builds: tests/linux_vt.rs"),
    ("acklab recv", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("acklab send", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("ACKLAB_PASSPHRASE=", "two machines: tests/transfer.rs, docs/tutorials/bad-link.md"),
    ("acklab reproduce ance", "minutes: crates/acklab-papers/tests/ance.rs"),
    ("acklab reproduce ack-rate", "minutes: tests/early_end.rs interrupts it"),
    ("acklab reproduce rdt", "half a minute and more: tests/rdt.rs"),
    ("acklab packetdrill ", "the reader's own scripts: crates/acklab-packetdrill/tests"),
    (
        "acklab run scenarios/aqm-study.toml",
        "a minute of CPU time: crates/acklab-lab/tests/sweep.rs",
    ),
];

/// Why a command is not run: its place in [`NOT_RUN`]. A part that begins with `-` may stand anywhere in it.
fn not_run(line: &str) -> Option<usize> {
    let applies = |part: &str| {
        if part.starts_with('-') { line.contains(part) } else { line.starts_with(part) }
    };
    NOT_RUN.iter().position(|(part, _)| applies(part))
}

/// Programs that the documents call.
const PROGRAMS: [&str; 8] = ["acklab", "make", "cargo", "tcpdump", "truth", "nc", "unshare", "tar"];

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
    if file.extension().is_none_or(|end| end != "md") {
        // Their runs are the scenarios themselves, which other tests run, shorter.
        let verifies = |line: &&str| line.starts_with("acklab verify ");
        let lines = text.lines().filter_map(|line| line.strip_prefix('#')).map(str::trim);
        return lines.filter(verifies).map(str::to_owned).collect();
    }
    let mut commands = Vec::new();
    for block in pages::blocks(text) {
        let block = block.replace("\\\n", " ");
        let mut lines = block.lines().filter(|line| !line.is_empty());
        let prompted: Vec<&str> =
            lines.clone().filter_map(|line| line.strip_prefix("$ ")).collect();
        if !prompted.is_empty() {
            // The other lines are what these print.
            commands.extend(prompted.into_iter().map(str::to_owned));
        } else if lines.clone().next().is_some_and(is_command) {
            let place = file.display();
            let other = lines.find(|line| !is_command(line));
            assert!(
                other.is_none(),
                "{place}: among commands, and no program of PROGRAMS: {other:?}"
            );
            commands.extend(block.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    commands
}

/// An error message begins with `acklab:`, a crate's name with `acklab-`.
fn is_command(line: &str) -> bool {
    let program = line.split_whitespace().find(|word| !word.contains('=') && *word != "sudo");
    program.is_some_and(|program| PROGRAMS.contains(&program))
}

/// The examples in the help of a verb and its own verbs: what stands at the first indentation below "Examples".
fn examples_of_help(verb: &str, folder: &Path) -> Vec<(PathBuf, String)> {
    let help = text(&shell(&format!("acklab {verb} --help"), folder).stdout);
    let mut examples: Vec<(PathBuf, String)> = Vec::new();
    let (mut inside, mut open) = (false, false);
    for line in help.lines() {
        inside = if inside { !line.is_empty() } else { line.starts_with("Example") };
        let Some(line) = line.strip_prefix("  ").filter(|_| inside) else { continue };
        let (command, goes_on) = match line.strip_suffix('\\') {
            Some(command) => (command, true),
            None => (line, false),
        };
        match examples.last_mut() {
            Some((_, example)) if open => example.push_str(command.trim()),
            _ if line.starts_with(' ') => {}
            _ => examples.push((format!("acklab {verb} --help").into(), without_words(command))),
        }
        open = goes_on;
    }
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let below = below.take_while(|line| !line.is_empty());
    // The name stands at the first indentation, too; what it does may take more lines.
    let names = below.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        examples.extend(examples_of_help(format!("{verb} {name}").trim(), folder));
    }
    examples
}

/// A command without the words about it, which stand behind two blanks.
fn without_words(line: &str) -> String {
    line.split("  ").next().unwrap_or_default().to_owned() + " "
}

/// The reader's own captures.
fn with_captures() -> tempfile::TempDir {
    let folder = pages::folder();
    for (name, demo) in [
        ("slow.pcap", "modbus-slow.pcapng"),
        ("slow.pcapng", "modbus-slow.pcapng"),
        // What it is shows in its bytes, gzipped or not.
        ("slow.pcap.gz", "modbus-slow.pcapng"),
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
    let mut all = examples_of_help("", folder.path());
    let verbs: BTreeSet<&PathBuf> = all.iter().map(|(place, _)| place).collect();
    assert!(verbs.len() >= 15, "help with examples: {verbs:?}");
    for (file, text) in documents() {
        all.extend(commands(&file, &text).into_iter().map(|line| (file.clone(), line)));
    }
    let (mut done, mut left) = (BTreeSet::new(), [0; NOT_RUN.len()]);
    for (place, line) in &all {
        let (place, line) = (place.display(), line.trim());
        if let Some(index) = not_run(line) {
            left[index] += 1;
            continue;
        }
        // The connection of the demo capture is its first; a command that stands twice is done once.
        let line = line.replace("--flow 3", "--flow 0");
        if !done.insert(line.clone()) {
            continue;
        }
        let output = shell(&line, folder.path());
        let expected = i32::from(line.contains(CHECKS) && line.contains("slow"));
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(expected), "{place}: {line}\n{errors}");
    }
    println!("{} commands run, {} not, of {}", done.len(), left.iter().sum::<usize>(), all.len());
    for ((part, reason), count) in NOT_RUN.iter().zip(left) {
        assert!(count > 0, "no document says {part:?} any more ({reason})");
        println!("  {count} not run: {part}... {reason}");
    }
    assert!(done.len() >= 60, "only {} commands were run", done.len());
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
