//! Goal: the scripts of this folder pass, each for what it says, and one number changed makes them fail.
//! Method: every `*.pkt` below `scripts/` is run as it is. Then one number of what a script expects is changed at a time:
//! of a packet, its time included; of a call's result, of the values and control messages that it brings, of when a
//! blocking call ends; of an assertion. A script that still passes did not check what it shows. Numbers that scripts do
//! not check (values of the host's clock, what an error says) are left alone. Times are held to 4 ms
//! here, however long was waited.

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
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
    assert!(found.len() >= 200, "only {} scripts were found", found.len());
    found
}

fn try_text(text: &str) -> Outcome {
    let options = [("all_packets", ""), ("tolerance_percent", "0")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
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

/// A place in a line and what is to stand there instead.
type Edit = (Range<usize>, String);

/// The number that begins at `at`, one larger.
fn raised(body: &str, at: usize) -> Option<Edit> {
    let digits = body[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len() - at);
    let number: u64 = body[at..at + digits].parse().ok()?;
    let hex = body[at + digits..].starts_with('x');
    (!hex).then(|| (at..at + digits, (number + 1).to_string()))
}

/// The number behind each `before`, one larger.
fn behind(body: &str, before: &str) -> Vec<Edit> {
    let places = body.match_indices(before).map(|(at, _)| at + before.len());
    places.filter_map(|at| raised(body, at)).collect()
}

/// A time in seconds that begins at `at`, 10 ms later.
fn later(body: &str, at: usize) -> Option<Edit> {
    let rest = &body[at..];
    let len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let len = rest.find("...").map_or(len, |dots| len.min(dots));
    let time: f64 = rest[..len].parse().ok()?;
    Some((at..at + len, format!("{:.6}", time + 0.01)))
}

/// Numbers of an expected packet, and its time.
fn edits_of_packet(body: &str, from: usize) -> Vec<Edit> {
    let bytes = body.as_bytes();
    let mut edits: Vec<Edit> = Vec::new();
    let mut at = from;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && !bytes[at - 1].is_ascii_digit();
        let within_name = bytes[at - 1].is_ascii_alphabetic();
        let clock = body[..at].ends_with("TS val ");
        if begins && !within_name && !clock {
            edits.extend(raised(body, at));
        }
        at += 1;
    }
    let time = body.trim_start_matches('+');
    if !time.contains('~') && !time.starts_with('*') {
        edits.extend(later(body, body.len() - time.len()));
    }
    edits
}

/// What a call returns, brings, and when it ends.
fn edits_of_call(body: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    if let Some(dots) = body.find("...").filter(|&at| body[at..].starts_with("...+")) {
        edits.extend(later(body, dots + 4));
    } else if let Some(dots) = body.find("...").filter(|&at| at < body.find('(').unwrap_or(0)) {
        edits.extend(later(body, dots + 3));
    }
    let Some(equals) = body.rfind(") = ").map(|at| at + 4) else { return edits };
    // A descriptor's number is the script's own.
    let makes = ["socket(", "accept(", "accept4(", "epoll_create(", "open(", "dup("];
    if body[equals..].starts_with('-') {
        edits.extend(raised(body, equals + 1));
        return edits;
    }
    if !makes.iter().any(|name| body.contains(name)) {
        edits.extend(raised(body, equals));
    }
    if body.contains("getsockopt(") || body.contains("ioctl(") {
        edits.extend(behind(body, "["));
    }
    if body.contains("recvmsg(") {
        for name in ["msg_flags=", "cmsg_data=", "scm_sec="] {
            edits.extend(behind(body, name));
        }
        for name in ["errno", "type", "code", "info", "data"] {
            edits.extend(behind(body, &format!("ee_{name}=")));
        }
    }
    if body.contains("epoll_wait(") && body.as_bytes()[equals] != b'0' {
        edits.extend(behind(body, "fd="));
    }
    if body.contains("poll([") {
        edits.extend(behind(body, "revents="));
    }
    edits
}

/// Every number of a line that the script expects, changed.
fn edits(line: &str) -> Vec<Edit> {
    let body = line.split("//").next().unwrap_or("");
    if !body.trim_start().starts_with(['0', '+', '*', '1', '2', '3', '4', '5', '.']) {
        return Vec::new();
    }
    if body.contains("%{") {
        return behind(body, "== ");
    }
    if body.contains(" < ") || body.contains('`') {
        return Vec::new();
    }
    match body.find(" > ") {
        Some(arrow) => edits_of_packet(body, arrow + 3),
        None => edits_of_call(body),
    }
}

#[test]
fn one_number_of_what_a_script_expects_changed_makes_it_fail() {
    let mut survivors = Vec::new();
    let mut tried = 0;
    for path in scripts() {
        let text = fs::read_to_string(&path).expect("a script");
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            for (place, number) in edits(line) {
                let mut changed = lines.clone();
                let with = format!("{}{number}{}", &line[..place.start], &line[place.end..]);
                changed[index] = &with;
                tried += 1;
                if try_text(&changed.join("\n")).verdict == Verdict::Pass {
                    survivors.push(format!("{}:{}: {with}", path.display(), index + 1));
                }
            }
        }
    }
    println!("{tried} numbers changed");
    assert!(tried > 10_000, "only {tried} mutants");
    assert!(survivors.is_empty(), "{} of {tried}:\n{}", survivors.len(), survivors.join("\n"));
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
        [("+0 `iptables -F`", "iptables"), ("+0 mmap(3) = 0", "mmap"), ("+0 < gre . 1:1(0)", "gre")]
    {
        let outcome = try_text(&format!("{start}{text}\n"));
        assert_eq!(outcome.verdict, Verdict::Unsupported, "{text}");
        assert!(outcome.message.contains(word) && outcome.line == 8, "{outcome:?}");
    }
    // A datagram for no socket, one that never leaves, one that nothing expected.
    let socket = "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3\n+0 connect(3, ..., ...) = 0\n";
    for rest in ["+0 < udp (100)", "+0 > udp (100)", "+0 write(3, ..., 100) = 100"] {
        assert_eq!(try_text(&format!("{socket}{rest}\n")).verdict, Verdict::Fail, "{rest}");
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
fn the_tolerance_is_four_milliseconds_and_an_eighth_of_the_wait_unless_the_script_says_otherwise() {
    let script = |head: &str, wait: &str| {
        format!(
            "{head}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
             {wait} > S. 0:0(0) ack 1 <mss 1460>\n"
        )
    };
    for (head, wait, verdict) in [
        ("--tolerance_percent=0\n", "+1", Verdict::Pass),
        ("--tolerance_percent=0\n", "+1.004", Verdict::Pass),
        ("--tolerance_percent=0\n", "+1.0041", Verdict::Fail),
        ("--tolerance_percent=0\n", "+0.9959", Verdict::Fail),
        ("--tolerance_percent=0\n--tolerance_usecs=10000\n", "+1.0041", Verdict::Pass),
        ("--tolerance_percent=0\n", "+.9~+1.1", Verdict::Pass),
        ("--tolerance_percent=0\n", "+.9~+.95", Verdict::Fail),
        // An eighth of what was waited, as scripts that were written on a kernel need it.
        ("", "+1.14", Verdict::Pass),
        ("", "+1.15", Verdict::Fail),
        ("", "+.89", Verdict::Pass),
        ("", "+.88", Verdict::Fail),
    ] {
        let outcome = run(&script(head, wait), &root(), &Settings::default());
        assert_eq!(outcome.verdict, verdict, "{head}{wait}: {}", outcome.message);
    }
}

#[test]
fn values_of_timestamps_are_checked_where_a_script_says_how_long_a_tick_is() {
    let script = |head: &str, second: u32, echo: u32| {
        format!(
            "{head}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +.1 < S 0:0(0) win 32792 <mss 1000,TS val 700 ecr 0>\n\
             +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,TS val 5000 ecr 700>\n\
             +.1 < . 1:1(0) ack 1 win 1000 <nop,nop,TS val 800 ecr 5000>\n+0 accept(3, ..., ...) = 4\n\
             +.1 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1 <nop,nop,TS val {second} ecr 800>\n\
             +.05 < . 1:1(0) ack 101 win 1000 <nop,nop,TS val 950 ecr {echo}>\n\
             +0 %{{ assert 40000 < tcpi_rtt < 95000, tcpi_rtt }}%\n"
        )
    };
    let tick = "--tcp_ts_tick_usecs=1000\n";
    for (head, second, echo, verdict) in [
        ("", 5200, 5200, Verdict::Pass),
        ("", 9, 9, Verdict::Pass),
        (tick, 5200, 5200, Verdict::Pass),
        (tick, 5204, 5204, Verdict::Pass),
        (tick, 5205, 5205, Verdict::Fail),
        (tick, 5195, 5195, Verdict::Fail),
        ("--tcp_ts_tick_usecs=2000000\n", 5200, 5200, Verdict::Unsupported),
    ] {
        let outcome = try_text(&script(head, second, echo));
        assert_eq!(outcome.verdict, verdict, "{head}{second}: {}", outcome.message);
    }
    // An echo that is no value of any packet: with scaling one of the same clock.
    let echoed = |head: &str, echo: u32| try_text(&script(head, 5200, echo)).seen;
    let scaled = "--tcp_ts_ecr_scaled\n";
    assert_eq!(echoed(scaled, 5199).len(), echoed(scaled, 5200).len());
    assert_eq!(try_text(&script(scaled, 5200, 5199)).verdict, Verdict::Pass);
}

#[test]
fn what_follows_a_command_counts_from_its_end() {
    let script = |next: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 `sleep 0.5`\n{next} bind(3, ..., ...) = 0\n"
        )
    };
    assert_eq!(try_text(&script("+0")).verdict, Verdict::Pass);
    assert_eq!(try_text(&script("0.5")).verdict, Verdict::Pass);
    assert_eq!(try_text(&script("0.4")).verdict, Verdict::Fail);
}

#[test]
fn one_packet_is_what_one_packet_brings_where_a_script_is_strict() {
    let script = |head: &str, expected: &str| {
        format!(
            "{head}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
             +.1 < . 1:1(0) ack 1 win 9000\n+0 accept(3, ..., ...) = 4\n\
             +0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n\
             +0 write(4, ..., 500) = 500\n+0 write(4, ..., 500) = 500\n{expected}"
        )
    };
    let (joined, apart) =
        ("+0 > P. 1:1001(1000) ack 1\n", "+0 > P. 1:501(500) ack 1\n+0 > P. 501:1001(500) ack 1\n");
    for (head, expected, verdict) in [
        ("", joined, Verdict::Pass),
        ("", apart, Verdict::Pass),
        ("--strict_segments\n", joined, Verdict::Fail),
        ("--strict_segments\n", apart, Verdict::Pass),
    ] {
        let outcome = try_text(&script(head, expected));
        assert_eq!(outcome.verdict, verdict, "{head}{expected}: {}", outcome.message);
    }
    // No urgent pointer is one of 0.
    let urgent = "+0 send(4, ..., 10, MSG_OOB) = 10\n";
    for (said, verdict) in [(" urg 10", Verdict::Pass), ("", Verdict::Fail)] {
        let text = format!("{apart}{urgent}+0 > PU. 1001:1011(10) ack 1{said}\n");
        let outcome = try_text(&script("", &text));
        assert_eq!(outcome.verdict, verdict, "{said}: {}", outcome.message);
    }
}
