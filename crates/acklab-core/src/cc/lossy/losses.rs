//! How much the path loses whatever we send, and when it loses more.
//!
//! A pool of packets that met no queue worth the name gives p0, the loss that does not depend on our
//! rate; old packets are forgotten by halves. More loss than that is told from chance by three standard
//! deviations: the binomial one, widened by the uncertainty of p0 and by how much more than a binomial
//! the path's own losses vary (bursts).

use super::probation::Probation;

/// What is known of the losses of a path; counts are packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    sent: f64,
    lost: f64,
    /// Mean square of the deviations from p0, in binomial variances; at least 1.
    dispersion: f64,
    /// How much of the share is believed while nothing can be learned.
    trust: f64,
    /// The block under way.
    block_sent: f64,
    block_lost: f64,
    probation: Probation,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            sent: 0.0,
            lost: 0.0,
            dispersion: 1.0,
            trust: 1.0,
            block_sent: 0.0,
            block_lost: 0.0,
            probation: Probation::default(),
        }
    }
}

impl Losses {
    /// The share that is lost without our doing.
    pub(super) fn share(&self) -> f64 {
        self.trust * ((self.lost + PRIOR_LOST) / (self.sent + PRIOR_SENT)).min(SHARE_MAX)
    }

    /// Of a round of so many packets, so many were lost, and the queue was not the reason.
    pub(super) fn learn(&mut self, sent: f64, lost: f64) {
        self.trust = 1.0;
        let variance = self.variance(sent);
        if variance > 0.0 {
            let square = (lost - self.share() * sent) * (lost - self.share() * sent) / variance;
            let moved = self.dispersion + DISPERSION_GAIN * (square - self.dispersion);
            self.dispersion = moved.clamp(1.0, DISPERSION_MAX);
        }
        self.end_block(sent, lost);
        (self.sent, self.lost) = (self.sent + sent, self.lost + lost);
        if self.sent > POOL {
            (self.sent, self.lost) = (self.sent / 2.0, self.lost / 2.0);
        }
    }

    /// Nothing is known any more. When the share is tried next does not change.
    pub(super) fn forget(&mut self) {
        *self = Self { probation: self.probation, ..Self::default() };
    }

    /// The path has changed: only these count.
    pub(super) fn relearn(&mut self, sent: f64, lost: f64) {
        (self.sent, self.lost, self.trust) = (sent, lost, 1.0);
    }

    /// A round with cross traffic in the queue, in which so many bytes were delivered: now and then the share is tried.
    pub(super) fn try_share(&mut self, sent: f64, lost: f64, delivered: f64) {
        if self.probation.end_round(self.share(), delivered) && self.is_fewer(sent, lost) {
            self.relearn(sent, lost);
        }
    }

    /// The window while the share is tried, bytes.
    pub(super) fn window_of_trial(&self) -> Option<f64> {
        self.probation.window()
    }

    /// A round with cross traffic in the queue: overflow may be among its losses, so nothing is learned; but
    /// where more than a tenth of the blocks lose less than the share, the share was overflow, too.
    pub(super) fn doubt(&mut self, sent: f64, lost: f64) {
        if let Some(fewer) = self.end_block(sent, lost) {
            self.trust = (self.trust * if fewer { TRUST_DOWN } else { TRUST_UP }).min(1.0);
        }
    }

    /// A round more. Where it fills a block: whether that lost less than the share. What a path loses by itself it loses whatever we
    /// send: where chance does not explain so few, overflow was taken for it, and what is known counts as no more than the block.
    fn end_block(&mut self, sent: f64, lost: f64) -> Option<bool> {
        (self.block_sent, self.block_lost) = (self.block_sent + sent, self.block_lost + lost);
        if self.block_sent < BLOCK {
            return None;
        }
        let (sent, lost) = (self.block_sent, self.block_lost);
        (self.block_sent, self.block_lost) = (0.0, 0.0);
        if self.is_dearth(sent, lost) && self.sent > sent {
            (self.sent, self.lost) = (sent, self.lost * sent / self.sent);
        }
        Some(lost < self.share() * sent)
    }

    /// However bursty: less than half is no chance.
    fn is_dearth(&self, sent: f64, lost: f64) -> bool {
        BURSTY * lost < self.share() * sent && self.is_fewer(sent, lost)
    }

    /// Whether so many of so many are fewer than chance explains.
    pub(super) fn is_fewer(&self, sent: f64, lost: f64) -> bool {
        self.share() * sent - lost > DEVIATIONS * self.variance(sent).sqrt()
    }

    /// Whether so many of so many are more than chance explains.
    pub(super) fn is_excess(&self, sent: f64, lost: f64) -> bool {
        let (expected, deviation) = (self.share() * sent, self.variance(sent).sqrt());
        // However bursty: that much more is no chance.
        lost - expected > DEVIATIONS * deviation * self.dispersion.sqrt()
            || lost - BURSTY * expected > BURSTY * DEVIATIONS * deviation
    }

    /// Whether enough was sent to tell.
    pub(super) const fn is_known(&self) -> bool {
        self.sent >= KNOWN
    }

    /// Whether the path loses next to nothing by itself.
    pub(super) fn is_clean(&self) -> bool {
        self.share() < CLEAN
    }

    fn variance(&self, sent: f64) -> f64 {
        let share = self.share();
        let uncertainty = 1.0 + sent / (self.sent + PRIOR_SENT);
        share * (1.0 - share) * sent * uncertainty
    }
}

/// Beyond this a path is as good as dead. Ours.
const SHARE_MAX: f64 = 0.5;
/// Packets; ours: at 28 % the deviation of p0 is then 1.4 to 2 %.
const POOL: f64 = 1000.0;
/// What is believed before anything was sent: half a percent, on the word of four packets. Ours.
const PRIOR_LOST: f64 = 0.02;
const PRIOR_SENT: f64 = 4.0;
/// Packets; ours: about two rounds at 20 Mbit/s and 40 ms.
const KNOWN: f64 = 100.0;
/// Packets. Ours.
const BLOCK: f64 = 50.0;
/// Ours: they balance where nine blocks of ten lose more.
const TRUST_DOWN: f64 = 0.9;
const TRUST_UP: f64 = 1.012;
/// Less loss than this is none. Ours.
const CLEAN: f64 = 0.01;
/// One in 740 rounds by chance. Ours.
const DEVIATIONS: f64 = 3.0;
/// Times as much as is expected. Ours.
const BURSTY: f64 = 2.0;
const DISPERSION_GAIN: f64 = 1.0 / 16.0;
const DISPERSION_MAX: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::super::probation::{EVERY, ROUNDS};
    use super::*;
    use crate::rng::Rng;

    /// Rounds of 69 packets at that loss; how many of them are called excess.
    fn alarms(losses: &mut Losses, rng: &mut Rng, share: f64, rounds: u32) -> u32 {
        let mut alarms = 0;
        for _ in 0..rounds {
            let lost = (0..69).filter(|_| rng.chance(share)).count() as f64;
            alarms += u32::from(losses.is_excess(69.0, lost));
            losses.learn(69.0, lost);
        }
        alarms
    }

    #[test]
    fn independent_loss_is_learned_and_raises_no_alarm() {
        let mut rng = Rng::named(1, "losses");
        for share in [0.0, 0.05, 0.15, 0.28] {
            let mut losses = Losses::default();
            let alarms = alarms(&mut losses, &mut rng, share, 1000);
            assert!(alarms <= 12, "{share}: {alarms} of 1000 rounds");
            assert!((losses.share() - share).abs() < 0.04, "{share}: {}", losses.share());
        }
    }

    #[test]
    fn an_overflow_that_was_taken_for_the_paths_loss_is_soon_forgotten() {
        let mut losses = Losses::default();
        for _ in 0..10 {
            losses.learn(69.0, 33.0);
        }
        assert!(losses.share() > 0.45, "{}", losses.share());
        for _ in 0..4 {
            losses.learn(69.0, 0.0);
        }
        assert!(losses.share() < 0.1, "{}", losses.share());
    }

    #[test]
    fn one_loss_on_a_clean_path_and_a_third_more_on_a_bad_one_are_excess() {
        let mut rng = Rng::named(2, "losses");
        let mut clean = Losses::default();
        alarms(&mut clean, &mut rng, 0.0, 100);
        assert!(clean.is_excess(69.0, 1.0) && !clean.is_excess(69.0, 0.0));
        let mut bad = Losses::default();
        alarms(&mut bad, &mut rng, 0.05, 100);
        assert!(!bad.is_excess(69.0, 6.0) && bad.is_excess(69.0, 14.0));
    }

    /// Rounds of 60 packets, 30 where the share is tried, of which `lost` of the two is lost; p0 at the end, learned as 0.4.
    fn believed(rounds: u32, lost: [f64; 2]) -> f64 {
        let mut losses = Losses::default();
        let mut rng = Rng::named(1, "probation");
        losses.relearn(1000.0, 400.0);
        let mut before = false;
        for _ in 0..rounds {
            let (sent, share) = if before { (30, lost[1]) } else { (60, lost[0]) };
            before = losses.window_of_trial().is_some();
            let gone = (0..sent).filter(|_| rng.chance(share)).count();
            losses.try_share(f64::from(sent), gone as f64, 1000.0);
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
