//! The queue as round trips show it: the least of a round above the least of the path.

use super::noise::Noise;
use crate::time::{Span, Time};

/// Round trips of a path, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// The least round trip, and when it was last met.
    least: f64,
    met: Time,
    /// The least round trip behind what is known of the path's losses.
    judged: f64,
    /// The least of the quarter of a round trip under way, since when, and of the one before.
    quarter: f64,
    quarter_since: Time,
    quarter_before: f64,
    /// Samples in both.
    samples: [u32; 2],
    /// Of the round under way.
    round_least: f64,
    round_most: f64,
    /// Of the last round with a sample.
    queue: f64,
    queue_most: f64,
    /// The longest queue of late.
    peak: f64,
    peak_at: Time,
    noise: Noise,
}

impl Delay {
    pub(super) const fn new() -> Self {
        Self {
            least: f64::INFINITY,
            met: Time::ZERO,
            judged: f64::INFINITY,
            quarter: f64::INFINITY,
            quarter_since: Time::ZERO,
            quarter_before: f64::INFINITY,
            samples: [0; 2],
            round_least: f64::INFINITY,
            round_most: 0.0,
            queue: 0.0,
            queue_most: 0.0,
            peak: 0.0,
            peak_at: Time::ZERO,
            noise: Noise::new(),
        }
    }

    /// A round trip was measured.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Span) {
        let rtt = rtt.as_secs_f64();
        self.noise.on_rtt(now, rtt);
        if rtt <= self.least + SAME {
            self.met = now;
        }
        self.least = self.least.min(rtt);
        if now.since(self.quarter_since).as_secs_f64() > self.least / 4.0 {
            (self.quarter_before, self.quarter, self.quarter_since) =
                (self.quarter, f64::INFINITY, now);
            self.samples = [0, self.samples[0]];
        }
        self.samples[0] += 1;
        self.quarter = self.quarter.min(rtt);
        self.round_least = self.round_least.min(rtt);
        self.round_most = self.round_most.max(rtt);
        // One packet alone may wait for its ACK instead.
        let queue =
            if self.samples.iter().sum::<u32>() < PEAK_SAMPLES { 0.0 } else { self.lately() };
        if queue >= self.peak || now.since(self.peak_at) > PEAK_LIFE {
            (self.peak, self.peak_at) = (queue, now);
        }
    }

    /// A round ends; false if it brought no round trip, and the old figures hold on.
    pub(super) fn end_round(&mut self) -> bool {
        if self.round_least.is_infinite() {
            return false;
        }
        self.queue = self.round_least - self.least;
        self.queue_most = self.round_most - self.least;
        (self.round_least, self.round_most) = (f64::INFINITY, 0.0);
        true
    }

    /// From now on the least round trip is the one with that much of a queue now.
    pub(super) fn renew(&mut self, now: Time) {
        if self.least.is_finite() {
            self.least += self.queue;
            self.judged = self.least;
            self.queue_most = (self.queue_most - self.queue).max(0.0);
            self.queue = 0.0;
        }
        self.met = now;
    }

    /// Whether the round trip has fallen, so that a queue stood in all of it till now. Says so once.
    pub(super) fn reveals_queue(&mut self) -> bool {
        if !self.noise.is_known() {
            self.judged = self.least;
        }
        let fell = self.judged - self.least;
        if fell > REVEALED.max(self.least * REVEALED_SHARE).max(4.0 * self.noise.size()) {
            self.judged = self.least;
            return true;
        }
        false
    }

    /// Whether the least round trip was not met for too long.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        now.since(self.met) > LEAST_LIFE
    }

    /// The round trip without a queue, seconds; `None` before the first sample.
    pub(super) fn least(&self) -> Option<f64> {
        self.least.is_finite().then_some(self.least)
    }

    /// What every packet of the last round waited, seconds.
    pub(super) const fn queue(&self) -> f64 {
        self.queue
    }

    /// What every packet waited lately, seconds: of a quarter to half of a round trip.
    pub(super) fn lately(&self) -> f64 {
        let least = self.quarter.min(self.quarter_before);
        if least.is_finite() { least - self.least } else { 0.0 }
    }

    /// How much it varies by itself.
    pub(super) const fn noise(&self) -> &Noise {
        &self.noise
    }

    pub(super) const fn noise_mut(&mut self) -> &mut Noise {
        &mut self.noise
    }

    /// The longest wait of late, seconds.
    pub(super) const fn peak(&self) -> f64 {
        self.peak
    }

    /// A queue shorter than this cannot be told from none, seconds; 0 where none was ever much longer.
    pub(super) fn nothing(&self) -> f64 {
        let nothing = NONE + 4.0 * self.noise.size();
        if self.peak > 4.0 * nothing { nothing } else { 0.0 }
    }

    /// The longest wait in the round under way and the last, seconds.
    pub(super) fn queue_now(&self) -> f64 {
        self.queue_most.max(self.round_most - self.least)
    }

    /// The longest wait in the last round, seconds.
    pub(super) const fn queue_most(&self) -> f64 {
        self.queue_most
    }
}

/// Round trips that differ by less are the same, seconds. Ours.
const SAME: f64 = 0.000_5;
/// BBR's MinRTTFilterLen (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.1.2.3).
const LEAST_LIFE: Span = Span::from_secs(10);
/// Of the longest queue of late: a loss at such a queue is an overflow. Ours.
pub(super) const FULL: f64 = 0.7;
/// Seconds: less than a packet of 1500 bytes takes at 10 Mbit/s.
const NONE: f64 = 0.001;
/// Ours.
const PEAK_SAMPLES: u32 = 3;
/// Ours: several epochs of CUBIC on a path of 20 Mbit/s and 140 ms.
const PEAK_LIFE: Span = Span::from_secs(30);
/// Seconds: more than hosts vary. Ours.
const REVEALED: f64 = 0.001;
/// Of the least round trip. Ours.
const REVEALED_SHARE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_that_falls_reveals_a_queue_once_and_a_hosts_jitter_does_not() {
        let mut delay = Delay::new();
        let mut at = Time::ZERO;
        let mut reveals = |delay: &mut Delay, micros: u64| {
            at += Span::from_millis(1);
            delay.on_rtt(at, Span::from_micros(micros));
            delay.reveals_queue()
        };
        assert!(!reveals(&mut delay, 29_000), "nothing is known yet");
        for micros in [20_400, 19_700, 20_100, 19_500, 25_000, 20_000, 20_200, 19_900].repeat(3) {
            assert!(!reveals(&mut delay, micros), "{micros}");
        }
        // Piece by piece, too.
        assert!(!reveals(&mut delay, 18_900));
        assert!(reveals(&mut delay, 17_000));
        assert!(!reveals(&mut delay, 17_000));
    }
}
