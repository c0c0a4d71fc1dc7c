//! The queue as round trips show it: the least of a round above the least of the path.

use crate::time::{Span, Time};

/// Round trips of a path, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// The least round trip, and when it was last met.
    least: f64,
    met: Time,
    /// The least of the half round trip under way, since when, and of the one before.
    half: f64,
    half_since: Time,
    half_before: f64,
    /// Of the round under way.
    round_least: f64,
    round_most: f64,
    /// Of the last round with a sample.
    queue: f64,
    queue_most: f64,
    /// The longest queue of late.
    peak: f64,
    peak_at: Time,
}

impl Delay {
    pub(super) const fn new() -> Self {
        Self {
            least: f64::INFINITY,
            met: Time::ZERO,
            half: f64::INFINITY,
            half_since: Time::ZERO,
            half_before: f64::INFINITY,
            round_least: f64::INFINITY,
            round_most: 0.0,
            queue: 0.0,
            queue_most: 0.0,
            peak: 0.0,
            peak_at: Time::ZERO,
        }
    }

    /// A round trip was measured.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Span) {
        let rtt = rtt.as_secs_f64();
        if rtt <= self.least + SAME {
            self.met = now;
        }
        self.least = self.least.min(rtt);
        if now.since(self.half_since).as_secs_f64() > self.least / 2.0 {
            (self.half_before, self.half, self.half_since) = (self.half, f64::INFINITY, now);
        }
        self.half = self.half.min(rtt);
        self.round_least = self.round_least.min(rtt);
        self.round_most = self.round_most.max(rtt);
        let queue = rtt - self.least;
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
            self.queue_most = (self.queue_most - self.queue).max(0.0);
            self.queue = 0.0;
        }
        self.met = now;
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

    /// What every packet waited lately, seconds: of the last round trip, or half of it.
    pub(super) fn lately(&self) -> f64 {
        let least = self.half.min(self.half_before);
        if least.is_finite() { least - self.least } else { 0.0 }
    }

    /// The longest wait of late, seconds.
    pub(super) const fn peak(&self) -> f64 {
        self.peak
    }

    /// The longest wait in the last round, seconds.
    pub(super) const fn queue_most(&self) -> f64 {
        self.queue_most
    }

    /// What the newest packets wait: of the round under way, or of the last.
    pub(super) fn present(&self) -> f64 {
        if self.round_least.is_infinite() { self.queue_most } else { self.round_most - self.least }
    }
}

/// Round trips that differ by less are the same, seconds. Ours.
const SAME: f64 = 0.000_5;
/// BBR's MinRTTFilterLen (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.1.2.3).
const LEAST_LIFE: Span = Span::from_secs(10);
/// Ours: several epochs of CUBIC on a path of 20 Mbit/s and 140 ms.
const PEAK_LIFE: Span = Span::from_secs(30);
