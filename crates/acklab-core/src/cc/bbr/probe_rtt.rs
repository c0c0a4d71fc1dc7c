//! How long ProbeRTT lasts: 200 ms and a round, from when little enough is on the way
//! (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.5; draft-ietf-ccwg-bbr-06 section 5.3.4).

use crate::time::{Span, Time};

/// The state of one ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// When it may end; `None` until little enough is on the way.
    done: Option<Time>,
    round_done: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Waits,
    /// Little enough is on the way: its round begins.
    Begun,
    Done,
}

impl Stay {
    /// HandleProbeRTT, with little enough on the way or not yet, at a round's start or not.
    pub(super) fn step(&mut self, now: Time, is_little: bool, round_started: bool) -> Step {
        let Some(done) = self.done else {
            if !is_little {
                return Step::Waits;
            }
            *self = Self { done: Some(now + DURATION), round_done: false };
            return Step::Begun;
        };
        self.round_done |= round_started;
        if self.round_done && now > done { Step::Done } else { Step::Waits }
    }
}

/// Both drafts, sections as above.
const DURATION: Span = Span::from_millis(200);
