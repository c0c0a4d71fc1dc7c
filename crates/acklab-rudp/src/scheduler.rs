//! Which path the next packet of content takes: ECF, earliest completion first (Lim, Nahum, Towsley and
//! Gibbens, CoNEXT 2017; docs/rudp.md section 6).
//!
//! In the middle of a transfer every path that may send does send, and nothing is decided here. Near its
//! end a slow path is left idle where the fast one would be done sooner even if it has to wait.

use acklab_core::time::Span;

/// A path that is in use, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its place in the connection's list.
    pub(super) index: usize,
    pub(super) srtt: Span,
    pub(super) variation: Span,
    /// What it carries in a round trip, bytes.
    pub(super) window: u64,
    /// Window and pacing let it send now.
    pub(super) open: bool,
}

/// The hysteresis of ECF.
const BETA: f64 = 0.25;

/// The scheduler's memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scheduler {
    waiting: bool,
}

impl Scheduler {
    /// The path for the next packet while `waiting` bytes wait to be sent; `None`: none is open, or it is
    /// better to wait for the fast one.
    pub(super) fn choose(&mut self, candidates: &[Candidate], waiting: u64) -> Option<usize> {
        let fast = candidates.iter().min_by_key(|path| (path.srtt, path.index))?;
        let open = candidates.iter().filter(|path| path.open);
        let slow = open.min_by_key(|path| (path.srtt, path.index))?;
        if slow.index == fast.index {
            return Some(slow.index);
        }
        let rounds = |path: &Candidate| (waiting as f64 / path.window.max(1) as f64).max(1.0);
        let (fast_rtt, slow_rtt) = (fast.srtt.as_secs_f64(), slow.srtt.as_secs_f64());
        let margin = fast.variation.max(slow.variation).as_secs_f64();
        let hysteresis = if self.waiting { 1.0 + BETA } else { 1.0 };
        if (1.0 + rounds(fast)) * fast_rtt < hysteresis * (slow_rtt + margin) {
            if rounds(slow) * slow_rtt >= 2.0 * fast_rtt + margin {
                self.waiting = true;
                return None;
            }
        } else {
            self.waiting = false;
        }
        Some(slow.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(index: usize, srtt_ms: u64, open: bool) -> Candidate {
        let variation = Span::from_millis(1);
        Candidate { index, srtt: Span::from_millis(srtt_ms), variation, window: 50_000, open }
    }

    #[test]
    fn equal_paths_are_both_used_and_a_slow_one_only_while_much_waits() {
        let mut scheduler = Scheduler::default();
        let alike = [path(0, 40, false), path(1, 40, true)];
        assert_eq!(scheduler.choose(&alike, 1000), Some(1));
        let unlike = [path(0, 20, false), path(1, 200, true)];
        assert_eq!(scheduler.choose(&unlike, 5_000_000), Some(1));
        assert_eq!(scheduler.choose(&unlike, 1000), None, "20 ms more on the fast path are sooner");
        assert_eq!(scheduler.choose(&[path(0, 20, true), path(1, 200, true)], 1000), Some(0));
        assert_eq!(scheduler.choose(&[], 1000), None);
    }
}
