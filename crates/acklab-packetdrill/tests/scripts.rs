//! Goal: the scripts of this folder pass, each for what it says, and one number changed makes them fail.
//! Method: every `*.pkt` below `scripts/` is run as it is. Then one number of an expected packet or an assertion is
//! changed at a time; a script that still passes did not check what it shows. Numbers that scripts do not check
//! (values of the host's clock, what an error says) are left alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use acklab_packetdrill::run::{Outcome, Settings, Verdict, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn scripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "pkt") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 40, "only {} scripts were found", found.len());
    found
}

fn try_text(text: &str) -> Outcome {
    let options = vec![("all_packets".to_owned(), String::new())];
    run(text, &root(), &Settings { options, ..Settings::default() })
}

#[test]
fn every_script_passes() {
    let mut failed = Vec::new();
    for path in scripts() {
        let outcome = try_text(&fs::read_to_string(&path).expect("a script"));
        if outcome.verdict != Verdict::Pass {
            failed.push(format!("{}:{}: {}", path.display(), outcome.line, outcome.message));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Lines with the `n`-th number of line `index` one larger; `None`: it has none, or one that is not checked.
fn mutant(lines: &[&str], index: usize, n: usize) -> Option<String> {
    let line = lines[index];
    let body = line.split("//").next()?;
    let from = body.find('>').map(|at| at + 1).filter(|_| !body.contains("->"))?;
    let mut count = 0;
    let bytes = body.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = (at..bytes.len()).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
        let within_name = bytes[at - 1].is_ascii_alphabetic();
        let clock = body[..at].ends_with("TS val ");
        if !within_name && !clock {
            if count == n {
                let number: u64 = body[at..end].parse().ok()?;
                let mut changed: Vec<String> = lines.iter().map(|&l| l.to_owned()).collect();
                changed[index] = format!("{}{}{}", &body[..at], number + 1, &body[end..]);
                return Some(changed.join("\n"));
            }
            count += 1;
        }
        at = end;
    }
    None
}

#[test]
fn one_number_of_an_expected_packet_changed_makes_every_script_fail() {
    let mut survivors = Vec::new();
    let mut tried = 0;
    for path in scripts() {
        let text = fs::read_to_string(&path).expect("a script");
        let lines: Vec<&str> = text.lines().collect();
        for index in 0..lines.len() {
            let is_packet = lines[index].trim_start().starts_with(['0', '+', '*', '1', '.'])
                && lines[index].contains(" > ")
                && !lines[index].contains(" < ");
            let mut n = 0;
            while is_packet && let Some(changed) = mutant(&lines, index, n) {
                tried += 1;
                if try_text(&changed).verdict == Verdict::Pass {
                    survivors.push(format!("{}:{}: number {n}", path.display(), index + 1));
                }
                n += 1;
            }
        }
    }
    assert!(tried > 300, "only {tried} mutants");
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

#[test]
fn a_process_has_so_many_descriptors_and_no_more() {
    let mut text = String::new();
    for fd in 3..1024 {
        let _ = writeln!(text, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = {fd}");
    }
    text.push_str("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = -1 EMFILE (Too many open files)\n");
    assert_eq!(try_text(&text).verdict, Verdict::Pass);
}

#[test]
fn what_leaves_behind_the_last_packet_expected_counts_only_where_that_is_asked_for() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                +.1 < S 0:0(0) win 32792 <mss 1000>\n";
    assert_eq!(try_text(text).verdict, Verdict::Fail);
    assert_eq!(run(text, &root(), &Settings::default()).verdict, Verdict::Pass);
}

#[test]
fn what_was_not_checked_does_not_pass() {
    let start = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                 +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
                 +.1 < . 1:1(0) ack 1 win 1000\n+0 accept(3, ..., ...) = 4\n";
    let verdict = |rest: &str| try_text(&format!("{start}{rest}")).verdict;
    assert_eq!(verdict(""), Verdict::Pass);
    // A packet that nothing expected, and then time goes on.
    assert_eq!(
        verdict("+0 write(4, ..., 100) = 100\n+.1 read(4, ..., 10) = -1 EAGAIN (x)\n"),
        Verdict::Fail
    );
    // One that the last event itself provokes, be it a call or a packet.
    assert_eq!(verdict("+0 write(4, ..., 100) = 100\n"), Verdict::Fail);
    assert_eq!(verdict("+.1 < P. 1:11(10) ack 1 win 1000\n"), Verdict::Fail);
    // A packet that belongs to no socket of the script.
    assert_eq!(try_text("0 < S 0:0(0) win 1000\n").verdict, Verdict::Fail);
    // A packet that never leaves.
    assert_eq!(verdict("+.1 > . 1:1(0) ack 1\n"), Verdict::Fail);
    // Data outside of the window is refused, not taken silently.
    assert_eq!(
        verdict("+.1 < . 900001:900101(100) ack 1 win 1000\n+0 read(4, ..., 10) = 10\n"),
        Verdict::Fail
    );
    // A call that does not return, and one that returns too early.
    assert_eq!(verdict("+0...+1 read(4, ..., 10) = 10\n"), Verdict::Fail);
    let early =
        "+0...+.5 read(4, ..., 10) = 10\n+.1 < P. 1:11(10) ack 1 win 1000\n+0 > . 1:1(0) ack 11\n";
    assert_eq!(verdict(early), Verdict::Fail);
    // An assertion that is not understood, and one about a packet of the same instant.
    assert_eq!(verdict("+0 %{ assert something.else_() }%\n"), Verdict::Unsupported);
    let same = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n+0 %{ assert tcpi_unacked == 1 }%\n";
    assert_eq!(verdict(same), Verdict::Pass);
    // Commands and calls that are not understood are named.
    for (text, word) in
        [("+0 `iptables -F`", "iptables"), ("+0 mmap(3) = 0", "mmap"), ("+0 < udp (100)", "udp")]
    {
        let outcome = try_text(&format!("{start}{text}\n"));
        assert_eq!(outcome.verdict, Verdict::Unsupported, "{text}");
        assert!(outcome.message.contains(word) && outcome.line == 8, "{outcome:?}");
    }
    // The timestamp's echo is strict, its value is the host's.
    let stamps = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                  +.1 < S 0:0(0) win 32792 <mss 1000,TS val 700 ecr 0>\n";
    let with = |echo: u32| {
        format!("{stamps}+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,TS val 5 ecr {echo}>\n")
    };
    assert_eq!(try_text(&with(700)).verdict, Verdict::Pass);
    assert_eq!(try_text(&with(701)).verdict, Verdict::Fail);
    // `--mss` is of the program that runs scripts on a kernel; the host announces its device's.
    assert_eq!(try_text(&format!("--mss=500\n{}", with(700))).verdict, Verdict::Pass);
}

#[test]
fn the_tolerance_is_four_milliseconds_unless_the_script_says_otherwise() {
    let script = |head: &str, wait: &str| {
        format!(
            "{head}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
             {wait} > S. 0:0(0) ack 1 <mss 1460>\n"
        )
    };
    for (head, wait, verdict) in [
        ("", "+1", Verdict::Pass),
        ("", "+1.004", Verdict::Pass),
        ("", "+1.0041", Verdict::Fail),
        ("", "+0.9959", Verdict::Fail),
        ("--tolerance_usecs=10000\n", "+1.0041", Verdict::Pass),
        ("", "+.9~+1.1", Verdict::Pass),
        ("", "+.9~+.95", Verdict::Fail),
    ] {
        assert_eq!(try_text(&script(head, wait)).verdict, verdict, "{head}{wait}");
    }
}
