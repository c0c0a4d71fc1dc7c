//! Round trips of one path (RFC 9002 sections 5.1 to 5.3) and what follows from them: the time
//! threshold of loss detection and the probe time-out.
//!
//! No two transmissions share a number, so a sample never mixes two departures.

use acklab_core::time::{Span, Time};

/// RFC 9002 section 6.1.2: kGranularity.
pub(super) const GRANULARITY: Span = Span::from_millis(1);
/// How long a least round trip counts before a new one is looked for.
const LEAST_AGE: Span = Span::from_secs(10);

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    latest: Span,
    smoothed: Span,
    variation: Span,
    least: Span,
    least_at: Time,
    measured: bool,
}

impl Rtt {
    /// Before the first sample: `initial` stands for it.
    pub(super) const fn new(initial: Span) -> Self {
        Self {
            latest: initial,
            smoothed: initial,
            variation: Span::from_nanos(initial.as_nanos() / 2),
            least: Span::MAX,
            least_at: Time::ZERO,
            measured: false,
        }
    }

    /// A sample; `ack_delay` is what the peer says it held the ACK back for. An `indirect` one came by
    /// another path and does not count for the least.
    pub(super) fn on_sample(&mut self, now: Time, sample: Span, ack_delay: Span, indirect: bool) {
        self.latest = sample;
        if !indirect && (sample <= self.least || now.since(self.least_at) > LEAST_AGE) {
            (self.least, self.least_at) = (sample, now);
        }
        let floor = if self.least == Span::MAX { Span::ZERO } else { self.least };
        let adjusted =
            if sample >= floor + ack_delay { sample.saturating_sub(ack_delay) } else { sample };
        if !self.measured {
            self.measured = true;
            self.smoothed = adjusted;
            self.variation = halved(adjusted);
            return;
        }
        let deviation = self.smoothed.max(adjusted).saturating_sub(self.smoothed.min(adjusted));
        self.variation = weighted(self.variation, deviation, 4);
        self.smoothed = weighted(self.smoothed, adjusted, 8);
    }

    /// The path may lead elsewhere now: the least round trip is forgotten.
    pub(super) const fn forget_least(&mut self) {
        self.least = Span::MAX;
    }

    /// Smoothed round trip; the initial value before the first sample.
    pub(super) const fn smoothed(&self) -> Span {
        self.smoothed
    }

    pub(super) const fn variation(&self) -> Span {
        self.variation
    }

    /// The least round trip of the last 10 s, if one was measured.
    pub(super) fn least(&self) -> Option<Span> {
        Some(self.least).filter(|&least| least != Span::MAX)
    }

    /// Smoothed round trip, once there was a sample.
    pub(super) fn measured(&self) -> Option<Span> {
        self.measured.then_some(self.smoothed)
    }

    /// The probe time-out without back-off (RFC 9002 section 6.2.1).
    pub(super) fn pto(&self, max_ack_delay: Span) -> Span {
        let variation = Span::from_nanos(4 * self.variation.as_nanos());
        self.smoothed + variation.max(GRANULARITY) + max_ack_delay
    }

    /// How long a packet may be overtaken before it counts as lost: `eighths`/8 of a round trip (RFC
    /// 9002 section 6.1.2 has nine).
    pub(super) fn loss_delay(&self, eighths: u64) -> Span {
        let rtt = self.smoothed.max(self.latest);
        Span::from_nanos(rtt.as_nanos() / 8 * eighths).max(GRANULARITY)
    }
}

const fn halved(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / 2)
}

/// (n-1)/n of the old value and 1/n of the new.
const fn weighted(old: Span, new: Span, n: u64) -> Span {
    Span::from_nanos(old.as_nanos() - old.as_nanos() / n + new.as_nanos() / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn the_first_sample_sets_everything_and_the_peers_delay_is_taken_off_afterwards() {
        let mut rtt = Rtt::new(ms(100));
        assert_eq!(rtt.pto(Span::ZERO), ms(300));
        rtt.on_sample(Time::ZERO, ms(40), Span::ZERO, false);
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.least()), (ms(40), ms(20), Some(ms(40))));
        rtt.on_sample(Time::ZERO, ms(48), ms(8), false);
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(40), ms(15)));
        // A delay that would bring the sample below the least round trip is not believed.
        rtt.on_sample(Time::ZERO, ms(44), ms(8), false);
        assert_eq!(rtt.smoothed().as_micros(), 40_500);
        assert_eq!(rtt.loss_delay(9).as_micros(), 49_500);
    }
}
