//! The retransmission time-out of RFC 6298.
//!
//! Measured from the send time of the newest segment an ACK covers, and only where nothing below it
//! was sent twice (Karn's algorithm, section 3); with timestamps an echo serves where Karn forbids.

use super::config::Config;
use acklab_core::time::Span;

/// SRTT, RTTVAR and the time-out with its back-off.
#[derive(Clone, Copy, Debug)]
pub struct RtoEstimator {
    initial: Span,
    min: Span,
    max: Span,
    granularity: Span,
    slop: Span,
    min_on_variance: bool,
    measured: Option<Measured>,
    backoffs: u32,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    srtt: Span,
    rttvar: Span,
}

impl RtoEstimator {
    /// Nothing measured yet: the initial time-out holds (section 2.1).
    pub const fn new(config: &Config) -> Self {
        Self {
            initial: config.initial_rto,
            min: config.min_rto,
            max: config.max_rto,
            granularity: config.rto_granularity,
            slop: config.rto_slop,
            min_on_variance: config.min_rto_on_variance,
            measured: None,
            backoffs: 0,
        }
    }

    /// A round trip was measured (sections 2.2 and 2.3); it ends the back-off.
    pub fn on_sample(&mut self, rtt: Span) {
        self.backoffs = 0;
        let r = rtt.as_nanos();
        self.measured = Some(match self.measured {
            None => Measured { srtt: rtt, rttvar: rtt / 2 },
            Some(m) => {
                let (srtt, rttvar) = (m.srtt.as_nanos(), m.rttvar.as_nanos());
                // alpha = 1/8, beta = 1/4; RTTVAR first, with the old SRTT.
                let rttvar = rttvar - rttvar / 4 + srtt.abs_diff(r) / 4;
                let srtt = srtt - srtt / 8 + r / 8;
                Measured { srtt: Span::from_nanos(srtt), rttvar: Span::from_nanos(rttvar) }
            }
        });
    }

    /// The timer expired: twice the time-out from now on (section 5.5).
    pub fn on_timeout(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
    }

    /// The SYN had to be sent again: the initial time-out is 3 s once data flows (section 5.7).
    pub fn on_syn_timeout(&mut self) {
        self.initial = self.initial.max(Span::from_secs(3));
        self.backoffs = 0;
    }

    /// The smoothed round trip.
    pub fn srtt(&self) -> Option<Span> {
        self.measured.map(|m| m.srtt)
    }

    /// The round trip's mean deviation.
    pub fn rttvar(&self) -> Option<Span> {
        self.measured.map(|m| m.rttvar)
    }

    /// Consecutive expiries so far.
    pub const fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// The time-out in force.
    pub fn rto(&self) -> Span {
        let base = match self.measured {
            None => self.initial,
            Some(m) => {
                let mut variance = self.granularity.max(m.rttvar * 4);
                if self.min_on_variance {
                    variance = variance.max(self.min);
                }
                (m.srtt + variance + self.slop).max(self.min)
            }
        };
        let factor = 1_u64 << self.backoffs.min(40);
        (base * factor).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(config: &Config) -> RtoEstimator {
        RtoEstimator::new(config)
    }

    fn plain() -> Config {
        Config {
            min_rto: Span::from_millis(1),
            min_rto_on_variance: false,
            rto_granularity: Span::from_millis(1),
            ..Config::default()
        }
    }

    #[test]
    fn the_time_out_is_one_second_before_the_first_measurement() {
        // RFC 6298 (2.1)
        assert_eq!(estimator(&plain()).rto(), Span::from_secs(1));
    }

    #[test]
    fn measurements_move_srtt_by_an_eighth_and_rttvar_by_a_quarter() {
        let mut rto = estimator(&plain());
        // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        rto.on_sample(Span::from_millis(80));
        assert_eq!((rto.srtt(), rto.rto()), (Some(Span::from_millis(80)), Span::from_millis(240)));
        // RFC 6298 (2.3): RTTVAR = 3/4 * 40 + 1/4 * |80 - 160|, SRTT = 7/8 * 80 + 1/8 * 160.
        rto.on_sample(Span::from_millis(160));
        assert_eq!(rto.rttvar(), Some(Span::from_millis(50)));
        assert_eq!((rto.srtt(), rto.rto()), (Some(Span::from_millis(90)), Span::from_millis(290)));
    }

    #[test]
    fn the_lower_bound_is_on_the_sum_or_on_the_variance() {
        let mut sum = estimator(&Config { min_rto: Span::from_millis(200), ..plain() });
        let mut variance = estimator(&Config { min_rto_on_variance: true, ..Config::default() });
        for _ in 0..200 {
            sum.on_sample(Span::from_millis(30));
            variance.on_sample(Span::from_millis(30));
        }
        // RFC 6298 (2.4), and Linux.
        assert_eq!(sum.rto(), Span::from_millis(200));
        assert_eq!(variance.rto().as_micros() / 1000, 230);
    }

    #[test]
    fn bsd_leaves_the_peers_delayed_ack_its_time() {
        let mut rto = estimator(&crate::System::FreeBsd122.config());
        for _ in 0..200 {
            rto.on_sample(Span::from_millis(30));
        }
        assert_eq!(rto.rto().as_micros() / 1000, 231);
    }

    #[test]
    fn every_expiry_doubles_up_to_the_ceiling_and_a_sample_ends_it() {
        // RFC 6298 (5.5) and (2.5)
        let mut rto = estimator(&Config { max_rto: Span::from_secs(5), ..plain() });
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(rto.rto().as_micros() / 1000);
            rto.on_timeout();
        }
        assert_eq!(seen, [1000, 2000, 4000, 5000]);
        rto.on_sample(Span::from_millis(10));
        assert_eq!((rto.backoffs(), rto.rto()), (0, Span::from_millis(30)));
    }

    #[test]
    fn a_lost_syn_makes_the_first_time_out_three_seconds() {
        // RFC 6298 (5.7)
        let mut rto = estimator(&plain());
        rto.on_timeout();
        rto.on_syn_timeout();
        assert_eq!(rto.rto(), Span::from_secs(3));
    }
}
