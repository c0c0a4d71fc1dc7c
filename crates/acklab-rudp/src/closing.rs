//! The end of a connection (docs/rudp.md section 3, "Close, idle, reset"; RFC 9000 section 10.2).

use super::code::Code;
use super::paths::Paths;
use crate::wire::TEXT_MAX;
use acklab_core::time::{Span, Time};

/// CLOSE leaves so often at once on each path.
const COPIES: usize = 3;
/// Answers with CLOSE are at least so far apart.
const ANSWER_GAP: Span = Span::from_millis(100);
/// PTOs that an end waits for stragglers.
const WAIT_PTOS: u64 = 3;

/// Waiting for the last packets.
#[derive(Debug)]
pub(super) struct Ending {
    until: Time,
    /// Ours to say; `None` where the peer closed and nothing is sent any more.
    close: Option<(Code, String)>,
    /// Indices of the paths on which CLOSE is to leave.
    owed: Vec<usize>,
    answered_at: Time,
}

impl Ending {
    fn new(now: Time, close: Option<(Code, String)>, owed: Vec<usize>, paths: &Paths) -> Self {
        let until = now + Span::from_nanos(WAIT_PTOS * paths.slowest_pto().as_nanos());
        Self { until, close, owed, answered_at: now }
    }

    pub(super) fn ours(now: Time, code: Code, text: String, paths: &Paths) -> Self {
        let mut owed = Vec::new();
        for _ in 0..COPIES {
            owed.extend((0..paths.len()).filter(|&index| paths[index].life().is_heard()));
        }
        if owed.is_empty() {
            owed.extend((0..paths.len()).flat_map(|index| [index; COPIES]));
        }
        Self::new(now, Some((code, text)), owed, paths)
    }

    /// The peer has closed.
    pub(super) fn theirs(now: Time, paths: &Paths) -> Self {
        Self::new(now, None, Vec::new(), paths)
    }

    pub(super) const fn deadline(&self) -> Time {
        self.until
    }

    /// CLOSE arrived: nothing more is sent.
    pub(super) fn on_close(&mut self) {
        self.close = None;
        self.owed.clear();
    }

    /// The peer has not heard our CLOSE: it gets another one.
    pub(super) fn on_packet(&mut self, now: Time, index: usize) {
        if self.close.is_some() && now.since(self.answered_at) >= ANSWER_GAP {
            self.answered_at = now;
            self.owed.push(index);
        }
    }

    /// The CLOSE that is owed next, with the path on which it leaves.
    pub(super) fn poll(&mut self) -> Option<(usize, Code, String)> {
        let index = self.owed.pop()?;
        let (code, text) = self.close.clone()?;
        Some((index, code, text))
    }
}

/// What of `text` CLOSE can say: 80 bytes of printable ASCII.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c)).take(TEXT_MAX).collect()
}
