//! Goal: what the documentation shows of `acklab verify` works as it stands.
//! Method: every such command of the documents, of the scenarios' comments and of the help is run by a
//! shell in the repository; every query of docs/verification.md's table is answered from a few runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command line as a user types it, in the repository.
fn shell(line: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_acklab"));
    let folder = binary.parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(root()).env("PATH", format!("{folder}:{path}"));
    shell.output().expect("a shell")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// The files whose examples are run.
fn documents() -> Vec<PathBuf> {
    let mut files = vec![root().join("README.md")];
    for folder in ["docs", "scenarios"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let shows =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "md" || end == "toml");
        files.extend(paths.filter(shows));
    }
    files.sort();
    files
}

/// The lines that are a call of `acklab verify`.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['#', ' ', '$']);
        line.starts_with("acklab verify ").then_some(line)
    })
}

#[test]
fn every_command_of_the_documents_and_of_the_help_works() {
    let help = text(&shell("acklab verify --help").stdout);
    let mut texts = vec![("the help".to_owned(), help)];
    texts.extend(documents().into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).expect("a text");
        (file.display().to_string(), text)
    }));
    let mut run = 0;
    for (place, text_of) in &texts {
        for line in commands(text_of) {
            let output = shell(line);
            let errors = text(&output.stderr);
            assert!(output.status.code() == Some(0), "{place}: {line}\n{errors}");
            run += 1;
        }
    }
    assert!(run >= 8, "only {run} commands were found");
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
    let document = std::fs::read_to_string(root().join("docs/verification.md")).expect("a text");
    let queries = queries(&document);
    assert!(queries.len() >= 14, "{queries:?}");
    for query in queries {
        let output = shell(&format!("acklab verify ance-dumbbell '{query}' --runs-max 3"));
        // A test of so few runs may say no.
        assert!(output.status.code() < Some(2), "{query}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("runs"), "{query}");
    }
}
