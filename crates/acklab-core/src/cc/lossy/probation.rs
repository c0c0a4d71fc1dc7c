//! Whether what is lost while others fill the queue is the path's own loss.
//!
//! Beside others nothing is learned of p0, and a share that was overflow explains the overflow that it brings: who sends
//! 1 / (1 - p0) times as much loses so much. Only sending less can tell: a path loses the same share of less, a queue
//! does not. Now and then a probation sends for two rounds what was delivered of one, and what was lost of its packets
//! stands for p0 where it is far less.

use super::losses::Losses;

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

    /// A round of competition ends, of which so many packets were lost and so many bytes delivered.
    pub(super) fn end_round(&mut self, losses: &mut Losses, packets: [f64; 2], delivered: f64) {
        let [sent, lost] = packets;
        if self.left == 0 {
            self.since += 1;
            if self.since >= EVERY && losses.share() > WORTH {
                *self = Self { since: 0, left: ROUNDS, window: delivered / 2.0 };
            }
            return;
        }
        self.left -= 1;
        // Its packets are those of its last round: what came before had left already.
        if self.left == 0 && losses.is_fewer(sent, lost) {
            losses.relearn(sent, lost);
        }
    }
}

/// Rounds from one trial to the next. Ours: at most 2 in 34 rounds, and no more than a thirtieth of what is sent.
const EVERY: u32 = 32;
/// Packets of the first of them are acknowledged in the second.
const ROUNDS: u32 = 2;
/// Less is not worth it: it explains little overflow. Ours.
const WORTH: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Rounds of 60 packets, 30 in a probation, of which `lost` of the two is lost; p0 at the end, learned as 0.4.
    fn believed(rounds: u32, lost: [f64; 2]) -> f64 {
        let (mut losses, mut probation) = (Losses::default(), Probation::default());
        let mut rng = Rng::named(1, "probation");
        losses.relearn(1000.0, 400.0);
        let mut before = false;
        for _ in 0..rounds {
            let (sent, share) = if before { (30, lost[1]) } else { (60, lost[0]) };
            before = probation.window().is_some();
            let gone = (0..sent).filter(|_| rng.chance(share)).count();
            let packets = [f64::from(sent), gone as f64];
            probation.end_round(&mut losses, packets, 1000.0);
        }
        losses.share()
    }

    #[test]
    fn what_a_path_loses_of_less_it_loses_of_more() {
        for share in [0.35, 0.4, 0.45] {
            let kept = believed(1000, [share; 2]);
            assert!((kept - 0.4).abs() < 0.05, "{share}: {kept}");
        }
    }

    #[test]
    fn overflow_ends_where_less_is_sent() {
        assert!(believed(EVERY, [0.4, 0.0]) > 0.35, "not tried yet");
        assert!(believed(EVERY + ROUNDS, [0.4, 0.0]) < 0.02);
        assert!(believed(EVERY + ROUNDS, [0.4, 0.05]) < 0.2);
    }
}
