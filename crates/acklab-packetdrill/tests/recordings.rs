//! Goal: the simulated host does what the running kernel did.
//! Method: each recording (`make recordings`) has the calls of a program over Linux 6.18 and the segments that came to
//! it; the host gets both at the times at which the kernel did (with its milliseconds beginning where the kernel's
//! did, as the peer's echoes tell), and what leaves it is compared with what left the
//! kernel: segment by segment in order, where nothing but arrivals and calls decides, by counts and data in
//! flight where timers and the machine's load do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use acklab_packetdrill::run::{Settings, Verdict, run};

/// A segment that left or came.
#[derive(Clone, Debug, PartialEq)]
struct Passed {
    at: f64,
    /// All but the window.
    what: String,
    window: u32,
    seq: u32,
    len: u32,
    ack: u32,
}

/// `P. 1:101(100) ack 1 win 510 <…>`.
fn passed(at: f64, text: &str) -> Passed {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|&word| word == name)?;
        words.get(at + 1)?.parse::<u32>().ok()
    };
    let range =
        words.iter().find(|word| word.contains(':') && word.contains('(')).expect("a range");
    let (seq, rest) = range.split_once(':').expect("two ends");
    let len = rest.split_once('(').expect("a length").1.trim_end_matches(')');
    let window = after("win").expect("a window");
    Passed {
        at,
        what: text.replace(&format!(" win {window}"), ""),
        window,
        seq: seq.parse().expect("a number"),
        len: len.parse().expect("a number"),
        ack: after("ack").unwrap_or(0),
    }
}

/// What left the kernel, and what left the host.
struct Recording {
    kernel: Vec<Passed>,
    host: Vec<Passed>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

/// Microseconds of a time in seconds.
fn micros(text: &str) -> u64 {
    (text.parse::<f64>().expect("a time") * 1e6).round() as u64
}

/// Where the kernel's millisecond began, which a recording does not say, microseconds: the peer echoes values of that
/// clock, and each must be one at which a segment left. In the middle of what all echoes allow.
fn phase(text: &str) -> u64 {
    let left: Vec<u64> =
        text.lines().filter_map(|l| Some(micros(l.split_once(" > ")?.0))).collect();
    let echoes: Vec<u64> = text
        .lines()
        .filter(|line| line.contains(" < "))
        .filter_map(|line| line.split_once(" ecr ")?.1.split([',', '>']).next()?.parse().ok())
        .filter(|&echo| echo > 0)
        .collect();
    let unexplained = |phase: u64| {
        let tick = |at: u64| (at + phase) / 1000;
        let values: BTreeSet<u64> = left.iter().map(|&at| tick(at) - tick(left[0]) + 1).collect();
        echoes.iter().filter(|echo| !values.contains(echo)).count()
    };
    let all: Vec<(usize, u64)> = (0..1000).step_by(10).map(|p| (unexplained(p), p)).collect();
    let least = all.iter().map(|(count, _)| *count).min().unwrap_or(0);
    let fits: Vec<u64> =
        all.into_iter().filter(|(count, _)| *count == least).map(|(_, p)| p).collect();
    fits[fits.len() / 2]
}

/// The same, `by` microseconds later: the host's clock begins a millisecond where the script's does.
fn later(text: &str, by: u64) -> String {
    let shifted = |time: &str| format!("{:.6}", (micros(time) + by) as f64 / 1e6);
    let line = |line: &str| {
        let Some((time, rest)) =
            line.split_once(' ').filter(|_| line.starts_with(|c: char| c.is_ascii_digit()))
        else {
            return format!("{line}\n");
        };
        let times: Vec<String> = time.split("...").map(shifted).collect();
        format!("{} {rest}\n", times.join("..."))
    };
    text.lines().map(line).collect()
}

fn play(name: &str) -> Recording {
    let path = folder().join(format!("{name}.pkt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = later(&text, phase(&text));
    let lines = text.lines().filter_map(|line| line.split_once(" > "));
    let kernel = lines.map(|(at, what)| passed(at.trim().parse().expect("a time"), what)).collect();
    let settings = Settings { observe: true, ..Settings::default() };
    let outcome = run(&text, &folder(), &settings);
    assert_eq!(outcome.verdict, Verdict::Pass, "{name}:{} {}", outcome.line, outcome.message);
    let seen = outcome.seen.iter().filter_map(|seen| Some((seen, seen.what.strip_prefix("> ")?)));
    let host = seen.map(|(seen, what)| passed(seen.at as f64 / 1e6, what)).collect();
    let recording = Recording { kernel, host };
    assert!(recording.kernel.len() > 20, "{name} is a recording");
    recording
}

/// Where every segment that left is the kernel's, in order, with its window.
const EXACT: [&str; 15] = [
    "application-limited-receiver",
    "application-limited-sender",
    "bulk-lossy-receiver",
    "bulk-lossy-reno-receiver",
    "bulk-lossy-reno-sender",
    "ecn-receiver",
    "idle-restart-receiver",
    "idle-restart-sender",
    "ping-pong-receiver",
    "ping-pong-sender",
    "reordering-receiver",
    "small-messages-lossy-receiver",
    "small-messages-lossy-sender",
    "small-messages-receiver",
    "small-messages-sender",
];

/// Where the host parts from the kernel, behind how many segments that are the same, and in what (docs/packetdrill.md).
const PARTS: [(&str, usize, &str); 3] = [
    ("bulk-lossy-sender", 110, "HyStart"),
    ("ecn-sender", 84, "HyStart"),
    ("reordering-sender", 91, "where a write waited for room"),
];

fn same(recording: &Recording) -> usize {
    let pairs = recording.kernel.iter().zip(&recording.host);
    pairs.take_while(|(kernel, host)| kernel.what == host.what).count()
}

fn sum(side: &[Passed]) -> u32 {
    side.iter().map(|segment| segment.len).sum()
}

#[test]
fn what_the_kernel_sent_is_what_the_host_sends() {
    for name in EXACT {
        let Recording { kernel, host } = play(name);
        for (kernel, host) in kernel.iter().zip(&host) {
            assert_eq!((&kernel.what, kernel.window), (&host.what, host.window), "{name}");
            // Timers of kernels are late by an eighth of their time and two jiffies; what arrivals and calls cause is not.
            assert!(
                (kernel.at - host.at).abs() < 0.035,
                "{name}: {kernel:?}, the host at {}",
                host.at
            );
        }
        assert_eq!(kernel.len(), host.len(), "{name}");
    }
}

#[test]
fn where_the_host_parts_from_the_kernel_counts_are_near() {
    for (name, least, why) in PARTS {
        let recording = play(name);
        let (kernel, host) = (&recording.kernel, &recording.host);
        assert!(same(&recording) >= least, "{name} ({why}): parts at {}", same(&recording));
        // In other order the same, retransmissions included.
        assert_eq!(kernel.len(), host.len(), "{name} ({why})");
        assert_eq!(sum(kernel), sum(host), "{name} ({why})");
        let last = |side: &[Passed]| side.iter().map(|s| (s.seq + s.len, s.ack)).max();
        assert_eq!(last(kernel), last(host), "{name} ({why}): where it ends");
    }
}

#[test]
fn every_recording_is_compared() {
    let known: Vec<&str> = EXACT.into_iter().chain(PARTS.map(|(name, _, _)| name)).collect();
    for entry in fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(known.contains(&name.as_str()), "{name} is compared with nothing");
    }
}
