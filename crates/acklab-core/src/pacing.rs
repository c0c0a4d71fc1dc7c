//! Pacing: packets leave spaced by their size over the rate that the congestion control asks for
//! ([`crate::cc::CongestionControl::pacing_rate`]).
//!
//! What could have left earlier, but for the window or the application, is caught up with by at most
//! one send quantum: what the rate carries in 1 ms, no less than two packets and no more than 64 kB
//! (draft-ietf-ccwg-bbr section 4.6.3). So a sender that was idle begins with a burst of that size.

use crate::time::Time;
use crate::units::BitRate;

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    next: Time,
}

impl Pacer {
    /// When the next packet may leave, at the earliest.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// A packet of `bytes` leaves at `now`; a full one has `mss`.
    pub fn on_sent(&mut self, now: Time, bytes: u32, rate: BitRate, mss: u32) {
        let allowance = rate.serialisation(quantum(rate, mss));
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(allowance.as_nanos()));
        self.next = self.next.max(earliest) + rate.serialisation(u64::from(bytes));
    }
}

/// The send quantum, bytes.
pub fn quantum(rate: BitRate, mss: u32) -> u64 {
    let least = 2 * u64::from(mss);
    (rate.as_bps() / 8000).min(QUANTUM_MAX).max(least)
}

/// draft-ietf-ccwg-bbr section 4.6.3: 64 KBytes.
const QUANTUM_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn after_a_burst_of_one_quantum_departures_are_spaced_by_the_rate() {
        // 8 Mbit/s carry 1000 bytes in 1 ms: the quantum is two segments of 1000.
        let rate: BitRate = "8mbit".parse().expect("a rate");
        let mut pacer = Pacer::default();
        let mut now = Time::ZERO + Span::from_secs(1);
        let mut gaps = Vec::new();
        for _ in 0..6 {
            gaps.push(pacer.next.since(now).as_micros());
            now = now.max(pacer.next);
            pacer.on_sent(now, 1000, rate, 1000);
        }
        assert_eq!(gaps, [0, 0, 0, 1000, 1000, 1000]);
    }

    #[test]
    fn the_quantum_is_a_millisecond_of_the_rate_within_its_bounds() {
        let of = |text: &str| quantum(text.parse().expect("a rate"), 1000);
        assert_eq!([of("1mbit"), of("80mbit"), of("10gbit")], [2000, 10_000, 65_536]);
    }
}
