//! What arrived and what was lost, in all and in the round under way.

use super::super::bbr::rounds::PacketRounds;
use super::super::{AckSample, RateSample};
use crate::time::{Span, Time};

/// The counts; bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    mss: f64,
    delivered: f64,
    /// What of it came while the window was the limit.
    validated: f64,
    lost: f64,
    rounds: PacketRounds,
    /// Delivered and lost before the round, and when it began.
    before: (f64, f64),
    began: Time,
    /// Packets of the rounds since the last congestion, of late: one round of a small window says little.
    since: Packets,
    /// Rounds in a row of the delay-based law in which more was lost than a path loses that is of use, and until
    /// when that is borne.
    ruinous: u32,
    borne_until: Time,
}

/// A round that is over, or the one under way as far as is known; packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packets {
    /// Delivered or lost.
    pub(super) sent: f64,
    pub(super) lost: f64,
}

impl Packets {
    /// These and others.
    pub(super) fn plus(self, others: Self) -> Self {
        Self { sent: self.sent + others.sent, lost: self.lost + others.lost }
    }
}

/// Packets. Ours.
const MANY: f64 = 100.0;
/// Of a round: more than a path loses that is of use. Ours, as are the next two.
const RUIN: f64 = 0.4;
/// In a row: an overflow of the start is over by then, and so is a test for overflow without a queue.
const RUINED_ROUNDS: u32 = 6;
const BORNE: Span = Span::from_secs(2);

impl Tally {
    pub(super) fn new(mss: f64) -> Self {
        let rounds = PacketRounds::default();
        Self {
            mss,
            delivered: 0.0,
            validated: 0.0,
            lost: 0.0,
            rounds,
            before: (0.0, 0.0),
            began: Time::ZERO,
            since: Packets::default(),
            ruinous: 0,
            borne_until: Time::ZERO,
        }
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        self.delivered += sample.delivered as f64;
        if sample.cwnd_limited {
            self.validated += sample.delivered as f64;
        }
        self.lost += sample.lost as f64;
    }

    /// Whether the ACK with that rate ends the round.
    pub(super) fn ends_round(&mut self, rate: &RateSample) -> bool {
        self.rounds.on_ack(rate)
    }

    /// The next round begins; what the last one brought, and what it was served, bytes per second. `None`
    /// where it brought nothing.
    pub(super) fn next_round(&mut self, now: Time) -> Option<(Packets, f64)> {
        let packets = self.round();
        let seconds = now.since(self.began).as_secs_f64();
        (self.before, self.began) = ((self.delivered, self.lost), now);
        let tells = seconds > 0.0 && packets.sent > 0.0;
        tells.then(|| (packets, packets.sent * self.mss / seconds))
    }

    /// Packets of the rounds since the last congestion.
    pub(super) const fn since(&self) -> Packets {
        self.since
    }

    /// A round was looked at; where they become many, half of them is forgotten.
    pub(super) fn judged(&mut self, round: Packets, congested: bool) {
        let all = if congested { Packets::default() } else { self.since.plus(round) };
        let kept = if all.sent > MANY { 0.5 } else { 1.0 };
        self.since = Packets { sent: kept * all.sent, lost: kept * all.lost };
    }

    /// A round ends; `follows_delay`: the delay-based law governed it. Whether too much has been lost for
    /// too long. Says so once, and then is silent for a while.
    pub(super) fn is_ruined(&mut self, now: Time, round: Packets, follows_delay: bool) -> bool {
        let ruinous = follows_delay && round.lost > RUIN * round.sent;
        self.ruinous = if ruinous { self.ruinous + 1 } else { 0 };
        let ruined = self.ruinous >= RUINED_ROUNDS && now >= self.borne_until;
        if ruined {
            (self.ruinous, self.borne_until) = (0, now + BORNE);
        }
        ruined
    }

    /// The round under way.
    pub(super) fn round(&self) -> Packets {
        let lost = (self.lost - self.before.1) / self.mss;
        let delivered = (self.delivered - self.before.0) / self.mss;
        Packets { sent: delivered + lost, lost }
    }

    /// Rounds so far.
    pub(super) const fn rounds(&self) -> u64 {
        self.rounds.count()
    }

    /// What arrived.
    pub(super) const fn delivered(&self) -> f64 {
        self.delivered
    }

    /// What arrived while the window was the limit: what the application did not fill shows nothing of what
    /// the path carries (RFC 7661).
    pub(super) const fn validated(&self) -> f64 {
        self.validated
    }

    /// What arrived or was lost.
    pub(super) fn served(&self) -> f64 {
        self.delivered + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_rounds_of_ruin_in_a_row_are_told_once_in_two_seconds() {
        let mut tally = Tally::new(1500.0);
        let at = |round: u64| Time::from_nanos(100_000_000 * round);
        let ruin = Packets { sent: 100.0, lost: 41.0 };
        let told: Vec<u64> =
            (1..=40).filter(|&round| tally.is_ruined(at(round), ruin, true)).collect();
        assert_eq!(told, [6, 26]);
        // A round that loses less, or that another law governs, begins the count anew.
        let (mut lucky, mut other) = (Tally::new(1500.0), Tally::new(1500.0));
        for round in 1..=40 {
            let borne = Packets { sent: 100.0, lost: if round % 6 == 0 { 40.0 } else { 41.0 } };
            assert!(!lucky.is_ruined(at(round), borne, true));
            assert!(!other.is_ruined(at(round), ruin, round % 6 != 0));
        }
    }
}
