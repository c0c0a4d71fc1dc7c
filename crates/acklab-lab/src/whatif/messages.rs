//! What of an end's writes is one message.
//!
//! A message is done when its last write is: writes of which the peer's data is heard between no two are one message where the
//! program takes turns with its peer; elsewhere those that follow each other at once are. Delays are counted by message, that of
//! its last write: a capture does not show how many writes left in one segment.

use acklab_core::time::{Span, Time};

/// Of each write, whether it is the last of its message: by its time, and by how many bytes of the peer its
/// program had by then.
pub fn message_ends(times: &[Time], heard: &[u64]) -> Vec<bool> {
    let taken = takes_turns(times, heard);
    let one = |i: usize| {
        let at_once = times[i + 1].since(times[i]) <= AT_ONCE;
        heard[i + 1] == heard[i] && (taken || at_once)
    };
    (0..times.len()).map(|i| i + 1 == times.len() || !one(i)).collect()
}

/// Whether it is silent most of the time until data of its peer comes.
pub(super) fn takes_turns(times: &[Time], heard: &[u64]) -> bool {
    let (mut inside, mut between) = (Span::ZERO, Span::ZERO);
    for i in 0..heard.len() {
        let gap = i.checked_sub(1).map_or(Span::ZERO, |before| times[i].since(times[before]));
        if is_new(heard, i) {
            between += gap;
        } else {
            inside += gap;
        }
    }
    (0..heard.len()).any(|i| is_new(heard, i)) && inside <= between
}

/// Whether the `i`-th write has more of the peer's data before it than the one before.
pub(super) fn is_new(heard: &[u64], i: usize) -> bool {
    heard[i] > i.checked_sub(1).map_or(0, |before| heard[before])
}

/// What a program writes one right behind the other.
const AT_ONCE: Span = Span::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(writes: &[(u64, u64)]) -> Vec<bool> {
        let times: Vec<Time> = writes.iter().map(|one| Time::from_nanos(one.0 * 100_000)).collect();
        let heard: Vec<u64> = writes.iter().map(|one| one.1).collect();
        message_ends(&times, &heard)
    }

    #[test]
    fn what_is_written_between_two_answers_is_one_message() {
        // Times in 0.1 ms; a header, and its body 8 ms later.
        let turns = [(0, 0), (80, 0), (500, 120), (580, 120), (1100, 240), (1101, 240)];
        assert_eq!(ends(&turns), [false, true, false, true, false, true]);
    }

    #[test]
    fn without_turns_only_what_is_written_at_once_is() {
        let lines = [(0, 0), (1, 0), (300, 0), (600, 0), (601, 0), (602, 0)];
        assert_eq!(ends(&lines), [false, true, true, false, false, true]);
        // One answer in a stream makes no turns, and parts what comes around it.
        let stream = [(0, 0), (300, 0), (301, 40), (700, 40), (1100, 40)];
        assert_eq!(ends(&stream), [true; 5]);
        assert_eq!(ends(&[]), [false; 0]);
    }
}
