//! Whether what is lost while others fill the queue is the path's own loss.
//!
//! Beside others nothing is learned of p0, and a share that was overflow explains the overflow that it brings: who sends
//! 1 / (1 - p0) times as much loses so much. Only sending less can tell: a path loses the same share of less, a queue
//! does not. Now and then a probation sends for two rounds half of what was delivered in one, and what was lost of its
//! packets stands for p0 where that is less by three deviations.

/// When p0 is tried, and what is sent then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probation {
    /// Rounds of competition since the last one.
    since: u32,
    /// Rounds that are left of one under way.
    left: u32,
    /// The window of that, bytes.
    window: f64,
}

impl Probation {
    /// The window while p0 is tried, bytes.
    pub(super) fn window(&self) -> Option<f64> {
        (self.left > 0).then_some(self.window)
    }

    /// A round of competition ends in which so many bytes were delivered, with that p0; whether its packets are those
    /// that try it.
    pub(super) fn end_round(&mut self, share: f64, delivered: f64) -> bool {
        if self.left == 0 {
            self.since += 1;
            if self.since >= EVERY && share > WORTH {
                *self = Self { since: 0, left: ROUNDS, window: delivered / 2.0 };
            }
            return false;
        }
        // Its packets are those of its last round: what came before had left already.
        self.left -= 1;
        self.left == 0
    }
}

/// Rounds from one trial to the next. Ours: at most 2 in 34 rounds, and no more than a thirtieth of what is sent.
pub(super) const EVERY: u32 = 32;
/// Packets of the first of them are acknowledged in the second.
pub(super) const ROUNDS: u32 = 2;
/// Less is not worth it: it explains little overflow. Ours.
const WORTH: f64 = 0.1;
