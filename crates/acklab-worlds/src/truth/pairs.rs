//! Conversations of [`super::pattern`] as they are and with one change each, for predictions of what the change does.

use super::pattern::{PATTERNS, PEERS, RTTS_US, case};
use super::script::{Case, End, Step};

/// A conversation for [`pairs`]: pattern, receiver, round trip in us, and the round trip that it is changed to.
type Base = (&'static str, Option<&'static str>, u64, u64);

/// Conversations that are made as they are, and with each change.
const BASES: [Base; 12] = [
    ("write-write-read", None, 10_000, 30_000),
    ("write-write-read", Some("qnx-7.0"), 1_000, 20_000),
    ("write-write-read", Some("freebsd-12.1"), 30_000, 5_000),
    ("split-header-think", Some("windows-7"), 4_000, 40_000),
    ("split-header-think", None, 10_000, 2_000),
    ("three-writes", Some("windows-10"), 10_000, 30_000),
    ("pmu-20ms", Some("qnx-7.0"), 4_000, 50_000),
    ("pmu-20ms-jitter", Some("windows-10"), 10_000, 30_000),
    ("log-lines", Some("freebsd-12.1"), 10_000, 60_000),
    ("bursts", None, 30_000, 10_000),
    ("poll", Some("qnx-7.0"), 1_000, 10_000),
    ("above-half-mss", None, 10_000, 30_000),
];

/// Patterns of more conversations for [`pairs`]: those in which Nagle's algorithm holds what the client writes.
const MORE: [&str; 10] = [
    "write-write-read",
    "split-header-think",
    "pmu-20ms",
    "no-beat",
    "bursts",
    "three-writes",
    "log-lines",
    "above-half-mss",
    "poll",
    "scan-50ms",
];

/// `BASES` at a breadth of 1; with each more, as many conversations of other patterns, over other paths and to other
/// receivers in turn.
fn bases(breadth: usize) -> Vec<Base> {
    let mut bases = BASES.to_vec();
    for turn in 1..breadth {
        for (index, pattern) in MORE.into_iter().enumerate() {
            let rtt = RTTS_US[(2 * turn + index) % RTTS_US.len()];
            let other = RTTS_US[(3 * turn + index + 1) % RTTS_US.len()];
            let other = if other == rtt { 20_000 } else { other };
            let peer = PEERS[(3 * turn + 5 * index) % PEERS.len()];
            let same = |one: &Base| (one.0, one.1, one.2) == (pattern, peer, rtt);
            if !bases.iter().any(same) {
                bases.push((pattern, peer, rtt, other));
            }
        }
    }
    bases
}

/// Conversations as they are and with one change each: `NAME__as-is`, `NAME__nodelay`, `NAME__single-write`,
/// `NAME__quickack` (where the receiver is Linux) and `NAME__rtt-...us`.
pub fn pairs(breadth: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (pattern, peer, rtt, other) in bases(breadth) {
        let Some((_, programs)) = PATTERNS.iter().find(|(name, _)| *name == pattern) else {
            continue;
        };
        let base = format!("{pattern}_{}_{rtt}us", peer.unwrap_or("linux"));
        let made = case(*programs, base.clone(), pattern, format!("delay {}us", rtt / 2));
        let [client, server] = made.ends.clone();
        let server = End { foreign: peer.map(str::to_owned), ..server };
        let made = Case { ends: [client.clone(), server.clone()], ..made };
        let mut change = |word: &str, ends: [End; 2], link: &[String; 2]| {
            cases.push(Case {
                name: format!("{base}__{word}"),
                ends,
                link: link.clone(),
                ..made.clone()
            });
        };
        change("as-is", [client.clone(), server.clone()], &made.link);
        change("nodelay", [End { nodelay: true, ..client.clone() }, server.clone()], &made.link);
        let single = client.tracks.iter().map(|steps| in_one_piece(steps)).collect();
        let single = End { tracks: single, ..client.clone() };
        if single != client {
            change("single-write", [single, server.clone()], &made.link);
        }
        if peer.is_none() {
            change(
                "quickack",
                [client.clone(), End { quickack: true, ..server.clone() }],
                &made.link,
            );
        }
        let link = format!("delay {}us", other / 2);
        change(&format!("rtt-{other}us"), [client, server], &[link.clone(), link]);
    }
    cases
}

/// The same program where each message is written in one piece, at the place of its last write: writes that follow each
/// other at once, and, of a program that reads in between, those from one read to the next.
fn in_one_piece(steps: &[Step]) -> Vec<Step> {
    let reads = steps.iter().any(|step| matches!(step, Step::Read(_)));
    let mut joined: Vec<Step> = Vec::new();
    for &step in steps {
        match (&joined[..], step) {
            ([.., Step::Write(bytes)], Step::Write(more)) => {
                let whole = Step::Write(bytes + more);
                joined.pop();
                joined.push(whole);
            }
            ([.., Step::Write(bytes), pause @ Step::Sleep(_)], Step::Write(more)) if reads => {
                let whole = [*pause, Step::Write(bytes + more)];
                joined.truncate(joined.len() - 2);
                joined.extend(whole);
            }
            _ => joined.push(step),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_at_a_read_and_without_reads_at_a_pause() {
        use Step::{Read, Sleep, Write};
        let turns = [Write(12), Sleep(2), Write(12), Write(14), Read(90), Sleep(8), Write(12)];
        let one = [Sleep(2), Write(38), Read(90), Sleep(8), Write(12)];
        assert_eq!(in_one_piece(&turns), one);
        let lines = [Write(60), Write(70), Sleep(9), Write(80)];
        assert_eq!(in_one_piece(&lines), [Write(130), Sleep(9), Write(80)]);
    }
}
