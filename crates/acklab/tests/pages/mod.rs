//! Pages whose commands are run as they stand: their steps, and a shell that does them.
//!
//! An indented block of a page is a file, if it begins with `# NAME.toml`, or commands behind `$ ` with what they
//! print: each line shown is among the lines printed, in this order, whatever the space between words; `...` stands
//! for anything, lines or a part of one. So a page cannot show what the program does not say.

#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a page asks its reader to do.
#[derive(Debug)]
pub(crate) enum Step {
    File { name: String, text: String },
    Command { line: String, shown: Vec<String> },
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The steps of a page.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let text = fs::read_to_string(root().join(page)).expect("a page");
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(&text) {
        let name = block.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) =
            name.filter(|name| Path::new(name).extension().is_some_and(|end| end == "toml"))
        {
            steps.push(Step::File { name: name.to_owned(), text: block });
            continue;
        }
        let joined = block.replace("\\\n", " ");
        assert!(joined.starts_with("$ "), "{page}: neither a file nor a command:\n{block}");
        for line in joined.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(line), _) => {
                    steps.push(Step::Command { line: line.to_owned(), shown: Vec::new() });
                }
                (None, Some(Step::Command { shown, .. })) => shown.push(line.to_owned()),
                (None, _) => panic!("{page}: {line}"),
            }
        }
    }
    steps
}

/// The indented blocks of a text in Markdown, without their indentation.
pub(crate) fn blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let (mut inside, mut fresh) = (false, true);
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(code) if inside || fresh => {
                if !inside {
                    blocks.push(String::new());
                }
                inside = true;
                let block = blocks.last_mut().expect("a block");
                block.push_str(code);
                block.push('\n');
            }
            // A blank line may stand inside of a block.
            _ if inside && line.is_empty() => {
                blocks.last_mut().expect("a block").push('\n');
            }
            _ => inside = false,
        }
        fresh = line.is_empty() || inside;
    }
    blocks.into_iter().map(|block| block.trim_end().to_owned() + "\n").collect()
}

/// A folder to work in, with the repository's examples beside.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["demo", "scenarios", "examples"] {
        let from = root().join(name).canonicalize().expect("a folder of the repository");
        symlink(from, folder.path().join(name)).expect("a link");
    }
    folder
}

/// Does a command line in `folder` with the program at `binary` in the path; what it printed.
pub(crate) fn perform(line: &str, folder: &Path, binary: &Path) -> String {
    let beside = binary.parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("a path");
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {line}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", format!("{beside}:{path}"))
        // Tables are shown whole.
        .env_remove("COLUMNS")
        .output()
        .expect("a shell");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether `printed` has all that was shown, in its order; else the first line that it has not.
pub(crate) fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = printed.lines().map(plain).collect();
    let mut rest = printed.iter();
    shown
        .iter()
        .filter(|line| !line.trim().is_empty() && line.trim() != "...")
        .find(|line| !rest.any(|printed| is_shown(printed, &plain(line))))
        .map(String::as_str)
}

/// Whether a line is the one shown, in which `...` stands for anything.
fn is_shown(printed: &str, shown: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        (rest, last) = (&rest[at + part.len()..], Some(part));
    }
    rest.is_empty() || last == Some("")
}
