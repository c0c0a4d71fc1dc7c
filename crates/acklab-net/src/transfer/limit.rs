//! A limit on the rate of what is handed to the connection: a token bucket.

use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

/// The bucket holds what flows in so long: short enough for a smooth rate, long enough that a block is
/// worth reading.
const DEPTH: Span = Span::from_millis(20);
/// The least that the bucket holds, bytes.
const LEAST: f64 = 16_384.0;

#[derive(Debug)]
pub struct Limiter {
    /// Bytes per second; `None`: as much as the connection takes.
    rate: Option<f64>,
    tokens: f64,
    filled: Time,
}

impl Limiter {
    /// With a full bucket at `now`.
    pub fn new(now: Time, rate: Option<BitRate>) -> Self {
        let rate = rate.map(|rate| rate.as_bps() as f64 / 8.0);
        let mut limiter = Self { rate, tokens: 0.0, filled: now };
        limiter.tokens = limiter.depth();
        limiter
    }

    /// What it holds when it is full, bytes.
    fn depth(&self) -> f64 {
        self.rate.map_or(0.0, |rate| (rate * DEPTH.as_secs_f64()).max(LEAST))
    }

    /// Bytes that are worth reading at once, at most `most`.
    pub fn block(&self, most: usize) -> usize {
        if self.rate.is_some() { most.min(self.depth() as usize) } else { most }
    }

    /// How many bytes may go now.
    pub fn room(&mut self, now: Time) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        self.tokens += rate * now.since(self.filled).as_secs_f64();
        self.tokens = self.tokens.min(self.depth());
        self.filled = self.filled.max(now);
        self.tokens.max(0.0) as usize
    }

    /// So many have gone; they may be more than there was room for, and are paid back then.
    pub fn take(&mut self, bytes: usize) {
        if self.rate.is_some() {
            self.tokens -= bytes as f64;
        }
    }

    /// When there is room for half a bucket again.
    pub fn due(&self) -> Time {
        let Some(rate) = self.rate else { return self.filled };
        let missing = (self.depth() / 2.0 - self.tokens).max(0.0);
        self.filled + Span::from_secs_f64(missing / rate)
    }

    /// Whether a block is worth reading now.
    pub fn is_open(&mut self, now: Time) -> bool {
        self.rate.is_none() || self.room(now) as f64 >= self.depth() / 2.0 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_second_carries_its_rate_and_no_more_than_a_bucket_beyond() {
        for text in ["100kbit", "480mbit", "10gbit"] {
            let rate: BitRate = text.parse().expect("a rate");
            let mut now = Time::ZERO;
            let mut limiter = Limiter::new(now, Some(rate));
            let (mut sent, end) = (0, Time::ZERO + Span::from_secs(4));
            while now < end {
                if limiter.is_open(now) {
                    let block = limiter.room(now).min(300_000);
                    limiter.take(block);
                    sent += block;
                }
                now = limiter.due().max(now + Span::from_micros(1));
            }
            let expected = rate.as_bps() as f64 / 8.0 * 4.0;
            let depth = (expected / 200.0).max(LEAST);
            assert!((sent as f64) < expected + 1.1 * depth, "{text}: {sent} B");
            assert!(sent as f64 > expected - 1.1 * depth, "{text}: {sent} B");
        }
    }

    #[test]
    fn without_a_rate_everything_may_go() {
        let mut limiter = Limiter::new(Time::ZERO, None);
        limiter.take(1 << 40);
        assert!(limiter.is_open(Time::ZERO));
        assert_eq!(limiter.room(Time::ZERO), usize::MAX);
    }
}
