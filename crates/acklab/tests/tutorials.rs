//! Goal: who follows a tutorial word by word gets to its answer.
//! Method: do every step of each page in an empty folder, and find every line that it shows in what is printed.

mod pages;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use pages::Step;

/// Does all steps of a page but those that `skipped` is for; `instead` changes a line before it is done.
fn follow(page: &str, instead: impl Fn(&str) -> String, skipped: impl Fn(&str) -> bool) {
    let folder = pages::folder();
    let binary = Path::new(env!("CARGO_BIN_EXE_acklab"));
    let (mut commands, mut lines) = (0, 0);
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a page takes is told and decides nothing"
    )]
    let start = Instant::now();
    for step in pages::steps(page) {
        match step {
            Step::File { name, text } => {
                std::fs::write(folder.path().join(name), text).expect("a file");
            }
            Step::Command { line, shown } => {
                commands += 1;
                if skipped(&line) {
                    continue;
                }
                let printed = pages::perform(&instead(&line), folder.path(), binary);
                let missing = pages::missing(&shown, &printed);
                assert!(
                    missing.is_none(),
                    "{page}: {line}\nshows {missing:?}, but printed\n{printed}"
                );
                if lines == 0 && !shown.is_empty() {
                    let seconds = start.elapsed().as_secs_f64();
                    println!("{page}: the first answer after {seconds:.1} s");
                }
                lines += shown.len();
            }
        }
    }
    println!("{page}: {commands} commands, {:.1} s", start.elapsed().as_secs_f64());
    assert!((1..=10).contains(&commands), "{page}: {commands} commands");
    assert!(lines >= 5, "{page}: it shows only {lines} lines");
}

fn word_by_word(page: &str) {
    follow(page, str::to_owned, |_| false);
}

#[test]
fn a_slow_modbus_master() {
    word_by_word("docs/tutorials/modbus-master.md");
}

#[test]
fn codel_against_pie() {
    word_by_word("docs/tutorials/codel-and-pie.md");
}

#[test]
fn what_a_control_loop_bears() {
    word_by_word("docs/tutorials/control-loop.md");
}

#[test]
fn a_large_file_over_a_bad_link() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !Path::new("/dev/net/tun").exists() || !is_root {
        eprintln!(
            "SKIPPED: the tutorial about transfers: the emulator needs root and /dev/net/tun"
        );
        return;
    }
    // The same with 20 MB in place of 2 GB, stopped after 5 s in place of a minute: the link carries 12.5 MB by then.
    let small =
        |line: &str| line.replace("2000M", "20M").replace("sudo ", "").replace("INT 60", "INT 5");
    follow("docs/tutorials/bad-link.md", small, |_| false);
}

#[test]
fn an_ack_policy_of_ones_own() {
    // What needs a compiler is run by examples/own-ack-policy/tests.
    follow("docs/tutorials/own-ack-policy.md", str::to_owned, |line| line.starts_with("cargo "));
}
