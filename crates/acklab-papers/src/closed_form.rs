//! The closed form of Nagle against delayed ACKs: what the simulation must agree with.
//!
//! A sender writes a small message every `period`; Nagle's algorithm (RFC 896) lets one segment be
//! outstanding at a time, and the receiver acknowledges each a time D after it arrived. So segments
//! leave every cycle C = RTT + D, and a message waits for the end of the cycle it was written in.
//! With C no longer than the period nothing waits. Otherwise message i waits (-i * period) mod C:
//!
//! - clocks without drift: the delays are the lattice {0, g, 2g, .., C-g} with g = gcd(period, C),
//!   each equally often: mean (C-g)/2, maximum C-g;
//! - with any drift or jitter the phase wanders over the whole cycle: uniform on [0, C), mean C/2.
//!
//! Either way a segment carries C/period messages. Left out: segments that fill an MSS before the
//! cycle ends (C/period messages of at most an MSS together), and timers that are not a constant D.

use acklab_core::time::Span;

/// The law of one sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleLaw {
    cycle: Span,
    period: Span,
}

impl CycleLaw {
    /// The law for a round trip of `rtt`, an ACK delayed by `delay`, and a message per `period`.
    pub fn new(rtt: Span, delay: Span, period: Span) -> Self {
        Self { cycle: rtt + delay, period }
    }

    /// Time from one segment to the next, C.
    pub const fn cycle(self) -> Span {
        self.cycle
    }

    /// Whether messages wait at all.
    pub fn holds(self) -> bool {
        self.cycle > self.period
    }

    /// The delay of message `index`, counted from 0, on clocks without drift.
    pub fn lattice_delay(self, index: u64) -> Span {
        if !self.holds() {
            return Span::ZERO;
        }
        let cycle = self.cycle.as_nanos();
        let phase =
            (u128::from(index) * u128::from(self.period.as_nanos()) % u128::from(cycle)) as u64;
        Span::from_nanos((cycle - phase) % cycle)
    }

    /// Distance between neighbouring delays on clocks without drift, g.
    pub fn lattice_step(self) -> Span {
        let (mut a, mut b) = (self.cycle.as_nanos(), self.period.as_nanos());
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Span::from_nanos(a)
    }

    /// Mean delay on clocks without drift, ms.
    pub fn lattice_mean_ms(self) -> f64 {
        if self.holds() {
            self.cycle.saturating_sub(self.lattice_step()).as_millis_f64() / 2.0
        } else {
            0.0
        }
    }

    /// Greatest delay on clocks without drift.
    pub fn lattice_max(self) -> Span {
        if self.holds() { self.cycle.saturating_sub(self.lattice_step()) } else { Span::ZERO }
    }

    /// Mean delay with drift or jitter, ms.
    pub fn uniform_mean_ms(self) -> f64 {
        if self.holds() { self.cycle.as_millis_f64() / 2.0 } else { 0.0 }
    }

    /// Share of messages that wait `delay_ms` or less, with drift or jitter.
    pub fn uniform_cdf(self, delay_ms: f64) -> f64 {
        if self.holds() { (delay_ms / self.cycle.as_millis_f64()).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Messages per segment, in the long run.
    pub fn messages_per_segment(self) -> f64 {
        if self.holds() { self.cycle.as_secs_f64() / self.period.as_secs_f64() } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(rtt_ms: u64, delay_ms: u64) -> CycleLaw {
        CycleLaw::new(
            Span::from_millis(rtt_ms),
            Span::from_millis(delay_ms),
            Span::from_millis(100),
        )
    }

    #[test]
    fn the_law_gives_the_published_table() {
        // (RTT, D, lattice mean, lattice max, uniform mean, messages per segment)
        for (rtt, delay, mean, max, drifting, per_segment) in [
            (10, 100, 50.0, 100, 55.0, 1.1),
            (30, 100, 60.0, 120, 65.0, 1.3),
            (30, 200, 110.0, 220, 115.0, 2.3),
            (100, 40, 60.0, 120, 70.0, 1.4),
            (500, 0, 200.0, 400, 250.0, 5.0),
            (1000, 200, 550.0, 1100, 600.0, 12.0),
        ] {
            let law = law(rtt, delay);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{law:?}: {a} {b}");
            close(law.lattice_mean_ms(), mean);
            close(law.uniform_mean_ms(), drifting);
            close(law.messages_per_segment(), per_segment);
            assert_eq!(law.lattice_max(), Span::from_millis(max), "{law:?}");
        }
    }

    #[test]
    fn nothing_waits_while_the_cycle_fits_into_the_period() {
        for (rtt, delay) in [(10, 0), (10, 40), (100, 0), (30, 70)] {
            let law = law(rtt, delay);
            assert!(!law.holds());
            assert_eq!((law.lattice_max(), law.lattice_delay(7)), (Span::ZERO, Span::ZERO));
            assert_eq!((law.uniform_cdf(0.0), law.messages_per_segment()), (1.0, 1.0));
        }
    }

    #[test]
    fn the_lattice_visits_each_of_its_delays_equally_often() {
        let law = law(30, 200);
        let mut delays: Vec<_> = (0..23).map(|i| law.lattice_delay(i)).collect();
        delays.sort_unstable();
        let expect: Vec<_> = (0..23).map(|k| Span::from_millis(10 * k)).collect();
        assert_eq!(delays, expect);
    }
}
