//! Goal: ARCHITECTURE.md tells the truth.
//! Method: every test that its invariants name exists where they say, every dependency pinned in
//! the root manifest has its line of justification, and every relative link of the documents leads
//! somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The lines of the section under `heading`.
fn section<'a>(document: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = document.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).collect()
}

/// What stands between backticks.
fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Looks whether the tests that a row's last cell names are there: files, each with its tests.
fn assert_held(row: &str) {
    let (mut file, mut tests) = (String::new(), 0);
    for word in quoted(row.rsplit('|').nth(1).unwrap_or_default()) {
        if Path::new(word).extension().is_some_and(|extension| extension == "rs") {
            file = text(word);
        } else if !word.contains(' ') {
            assert!(file.contains(&format!("fn {word}(")), "no test {word} for: {row}");
            tests += 1;
        }
    }
    assert!(tests > 0, "no test holds: {row}");
}

/// The rows of a table whose first cell is a number.
fn numbered<'a>(rows: &[&'a str]) -> Vec<&'a str> {
    let is_numbered =
        |row: &&str| row.split('|').nth(1).is_some_and(|cell| cell.trim().parse::<u32>().is_ok());
    rows.iter().copied().filter(is_numbered).collect()
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let document = text("ARCHITECTURE.md");
    let rows = numbered(&section(&document, "## Invariants"));
    assert!(rows.len() >= 20, "only {} invariants were found", rows.len());
    rows.into_iter().for_each(assert_held);
}

#[test]
fn every_rule_of_the_protocol_names_tests_that_exist() {
    let document = text("docs/rudp.md");
    let rows = numbered(&section(&document, "## 12. What holds each rule"));
    let sections: BTreeSet<&str> = rows.iter().filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(sections.len(), 8, "sections 2 to 8 and 10");
    rows.into_iter().for_each(assert_held);
}

/// A road names a file by the end of its path.
#[test]
fn every_road_leads_through_files_that_are_there() {
    let document = text("ARCHITECTURE.md");
    let roads: Vec<&str> =
        document.split("\n\n").filter(|part| part.starts_with("*The road of ")).collect();
    assert_eq!(roads.len(), 5, "roads in ARCHITECTURE.md");
    for road in roads {
        let words = road.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        let crates: BTreeSet<&str> = words.filter(|word| word.starts_with("acklab")).collect();
        assert!(!crates.is_empty(), "no crate is named: {road}");
        let roots = crates.iter().copied().chain(["acklab-core"]);
        let mut files = Vec::new();
        for name in roots {
            let source = root().join("crates").join(name).join("src");
            list(&source, &source, &mut files);
        }
        let named: Vec<&str> = quoted(road).into_iter().filter(|word| is_source(word)).collect();
        assert!(named.len() >= 6, "{road}");
        for name in named {
            let end = format!("/{name}");
            assert!(files.iter().any(|file| file.ends_with(&end)), "no {name} in {crates:?}");
        }
    }
}

fn is_source(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

/// The source files below `folder`, by their paths from `root`.
fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list(root, &path, files);
        } else {
            files.push(format!("/{}", path.strip_prefix(root).expect("below it").display()));
        }
    }
}

#[test]
fn every_dependency_is_justified_and_every_justification_has_its_dependency() {
    let manifest = text("Cargo.toml");
    let mut pinned: Vec<&str> = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.trim()))
        .filter(|name| !name.starts_with("acklab"))
        .collect();
    let document = text("ARCHITECTURE.md");
    let rows = section(&document, "## Dependencies");
    let mut justified: Vec<&str> =
        rows.iter().filter(|row| row.starts_with("| `")).map(|row| quoted(row)[0]).collect();
    pinned.sort_unstable();
    justified.sort_unstable();
    assert_eq!(pinned, justified, "Cargo.toml (left) and ARCHITECTURE.md (right) differ");
}

#[test]
fn every_relative_link_of_the_documents_leads_somewhere() {
    let mut documents: Vec<String> = std::fs::read_dir(root().join("docs"))
        .expect("docs/ is there")
        .map(|entry| format!("docs/{}", entry.expect("a file").file_name().display()))
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        .collect();
    documents.sort_unstable();
    let front = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "ROADMAP.md"];
    documents.extend(front.map(str::to_owned));
    documents.push("demo/README.md".to_owned());
    for document in documents {
        // What is indented or between backticks is code, where `](` means something else.
        let whole = text(&document);
        let prose: Vec<&str> = whole.lines().filter(|line| !line.starts_with("    ")).collect();
        let content: String = prose.join("\n").split('`').step_by(2).collect();
        let folder = root().join(&document);
        for link in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let target = folder.parent().map(|folder| folder.join(file)).unwrap_or_default();
            assert!(target.exists(), "{document} links to {link}, which is not there");
        }
    }
}
