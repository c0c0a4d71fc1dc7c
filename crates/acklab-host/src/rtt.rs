//! Round trips and the retransmission time-out as Linux estimates them.
//!
//! RFC 6298's smoothed round trip with gain 1/8. The variation is kept as the largest mean deviation of one
//! window of data, bounded below by the least time-out; it rises at once, falls by a quarter per window, and a
//! sample below the mean raises the deviation with a gain of 1/32 only.

use crate::segment::after;
use crate::settings::{MS, SECOND, Us};

/// The estimator; `srtt` is eight times the mean, `mdev` and `rttvar` four times the deviation.
#[derive(Clone, Debug, Default)]
pub struct Rtt {
    /// Eight times the smoothed round trip; 0: none measured.
    pub srtt8: Us,
    /// Deviation.
    pub mdev: Us,
    /// Largest in this window of data.
    pub mdev_max: Us,
    /// The variation in force.
    pub rttvar: Us,
    /// End of this window of data.
    pub seq: u32,
    /// The time-out in force.
    pub rto: Us,
    /// Doublings of the time-out.
    pub backoff: u32,
    /// Least round trips of the last minutes, with their times.
    pub least: Vec<(Us, Us)>,
}

impl Rtt {
    /// Nothing measured: RFC 6298's second.
    pub fn new() -> Self {
        Self { mdev: SECOND, rto: SECOND, ..Self::default() }
    }

    /// The smoothed round trip; 0: none.
    pub const fn srtt(&self) -> Us {
        self.srtt8 >> 3
    }

    /// Takes a sample; `floor` is the least time-out.
    pub fn sample(&mut self, rtt: Us, una: u32, nxt: u32, floor: Us) {
        let rtt = rtt.max(1) as i64;
        if self.srtt8 == 0 {
            self.srtt8 = rtt as Us * 8;
            self.mdev = rtt as Us * 2;
            self.rttvar = self.mdev.max(floor);
            self.mdev_max = self.rttvar;
            self.seq = nxt;
            return;
        }
        let error = rtt - (self.srtt8 >> 3) as i64;
        self.srtt8 = (self.srtt8 as i64 + error).max(1) as Us;
        let mut deviation = error.abs() - (self.mdev >> 2) as i64;
        if error < 0 && deviation > 0 {
            deviation >>= 3;
        }
        self.mdev = (self.mdev as i64 + deviation).max(0) as Us;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if after(una, self.seq) {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
            }
            self.seq = nxt;
            self.mdev_max = floor;
        }
    }

    /// The time-out of what was measured, in whole milliseconds.
    pub fn set_rto(&mut self, ceiling: Us) {
        let exact = (self.srtt8 >> 3) + self.rttvar;
        self.rto = (exact.div_ceil(MS) * MS).min(ceiling);
    }

    /// The timer expired.
    pub fn back_off(&mut self, ceiling: Us) {
        self.backoff += 1;
        self.rto = (self.rto * 2).min(ceiling);
    }

    /// No round trip came of the handshake: RFC 6298 section 5.7.
    pub fn fall_back(&mut self) {
        self.rttvar = 3 * SECOND;
        self.mdev = self.rttvar;
        self.mdev_max = self.rttvar;
        self.rto = 3 * SECOND;
    }

    /// Notes a round trip for the windowed minimum over `window`.
    pub fn note_least(&mut self, now: Us, rtt: Us, window: Us) {
        self.least.retain(|&(at, _)| now.saturating_sub(at) <= window);
        self.least.retain(|&(_, value)| value < rtt);
        self.least.push((now, rtt));
        if self.least.len() > 3 {
            self.least.pop();
        }
    }

    /// The least round trip of the window; 0: none.
    pub fn least(&self) -> Us {
        self.least.first().map_or(0, |&(_, rtt)| rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_out_is_the_round_trip_and_the_least_time_out() {
        let mut rtt = Rtt::new();
        rtt.sample(100 * MS, 1, 2, 200 * MS);
        rtt.set_rto(120 * SECOND);
        assert_eq!((rtt.srtt(), rtt.rto), (100 * MS, 300 * MS));
        rtt.back_off(120 * SECOND);
        assert_eq!(rtt.rto, 600 * MS);
    }

    #[test]
    fn the_variation_falls_by_a_quarter_per_window() {
        let mut rtt = Rtt::new();
        rtt.sample(400 * MS, 1, 1, 200 * MS);
        assert_eq!(rtt.rttvar, 800 * MS);
        for una in 2..60 {
            rtt.sample(400 * MS, una, una, 200 * MS);
        }
        assert_eq!(rtt.rttvar / MS, 200);
    }
}
