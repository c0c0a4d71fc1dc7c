//! A recording of the kernel (`make recordings`), played to the simulated host: what left the one and the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use acklab_packetdrill::run::{Settings, Verdict, run_in};
use acklab_packetdrill::world::Virtual;

/// A segment that left or came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Passed {
    pub(crate) at: f64,
    /// All but the window.
    pub(crate) what: String,
    pub(crate) window: u32,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: u32,
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
pub(crate) struct Recording {
    pub(crate) kernel: Vec<Passed>,
    pub(crate) host: Vec<Passed>,
}

/// Microseconds of a time in seconds.
fn micros(text: &str) -> u64 {
    (text.parse::<f64>().expect("a time") * 1e6).round() as u64
}

/// Where the kernel's millisecond began, which a recording does not say, microseconds: the peer echoes values of that
/// clock, and each must be one at which a segment left. In the middle of what all echoes allow.
fn phase(text: &str) -> u64 {
    let left = departures(text);
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

/// When segments left, as the host's would: with the arrival or call that let them go, if one was just before.
fn departures(text: &str) -> Vec<u64> {
    let mut cause = 0;
    let mut left = Vec::new();
    for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let time = line.split_once(' ').map_or(line, |(time, _)| time);
        let at = micros(time.split("...").next().unwrap_or(time));
        if line.contains(" > ") {
            left.push(if at < cause + 1000 { cause } else { at });
        } else {
            cause = at;
        }
    }
    left
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

/// Plays a file, or says what of it the interpreter does not take.
pub(crate) fn play(path: &Path) -> Result<Recording, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = later(&text, phase(&text));
    let lines = text.lines().filter_map(|line| line.split_once(" > "));
    let kernel: Vec<Passed> =
        lines.map(|(at, what)| passed(at.trim().parse().expect("a time"), what)).collect();
    // Of the kernel that was recorded, as its send buffers show.
    let room = ("header_room".to_owned(), "192".to_owned());
    let settings = Settings { observe: true, options: vec![room], ..Settings::default() };
    // Where the kernel's jiffies of 4 ms began a recording does not say: the one of some that fits best.
    let played = (0..4).map(|phase| {
        let mut world = Virtual::ticking(phase * 1000);
        let outcome = run_in(&mut world, &text, path.parent().unwrap_or(path), &settings);
        if outcome.verdict != Verdict::Pass {
            return Err(format!("line {}: {}", outcome.line, outcome.message));
        }
        let seen = outcome.seen.iter();
        let seen = seen.filter_map(|seen| Some((seen, seen.what.strip_prefix("> ")?)));
        let host = seen.map(|(seen, what)| passed(seen.at as f64 / 1e6, what)).collect();
        Ok(Recording { kernel: kernel.clone(), host })
    });
    let mut played = played.collect::<Result<Vec<_>, _>>()?;
    played.sort_by_key(same);
    played.pop().ok_or_else(|| "no phase".to_owned())
}

/// How many segments are the same before the two part.
pub(crate) fn same(recording: &Recording) -> usize {
    let pairs = recording.kernel.iter().zip(&recording.host);
    pairs.take_while(|(kernel, host)| kernel.what == host.what).count()
}

/// Bytes that left.
pub(crate) fn sum(side: &[Passed]) -> u32 {
    side.iter().map(|segment| segment.len).sum()
}
