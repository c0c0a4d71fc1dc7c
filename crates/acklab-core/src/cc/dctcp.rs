//! DCTCP (RFC 8257): the window is cut in proportion to the share of bytes that met congestion.
//!
//! Section 3.3: over each window of data, M is the share of acknowledged bytes whose ACK bore ECE, and
//! alpha = (1 - g) alpha + g M. An ACK with ECE cuts the window to (1 - alpha / 2) of itself, once per
//! window of data, and lets it not grow (RFC 3168 section 6.1.2). Growth, loss (section 3.5), time-out
//! and idleness are Reno's.
//!
//! The sequence numbers of the RFC become counts: a window of data ends once the bytes that were on the
//! way at its beginning, and at least one more, are acknowledged. The cut comes with the first mark, with
//! the alpha of that moment, as in the systems that the RFC documents.

use super::reno::Reno;
use super::{
    AckSample, CongestionControl, EcnFeedback, LossSample, ReturnedSample, RtoSample, Start,
};
use crate::time::{Span, Time};

crate::options! {
    /// DCTCP's parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Weight g of the newest window in alpha (RFC 8257 section 4.2).
        gain: f64 as positive_share() = "0.0625",
        /// alpha before the first window (section 3.3).
        initial_alpha: f64 as share() = "1",
    }
}

/// RFC 8257.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    gain: f64,
    alpha: f64,
    reno: Reno,
    /// Bytes to acknowledge before the window under observation ends (`DCTCP.WindowEnd`).
    observed: u64,
    /// Bytes to acknowledge before the window may be cut again.
    cut: u64,
    bytes_acked: u64,
    bytes_marked: u64,
}

impl Dctcp {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            gain: options.gain.clamp(0.0, 1.0),
            alpha: options.initial_alpha.clamp(0.0, 1.0),
            reno: Reno::new(start),
            observed: 0,
            cut: 0,
            bytes_acked: 0,
            bytes_marked: 0,
        }
    }

    /// The estimated share of marked bytes.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Steps 1 to 8 of section 3.3.
    fn observe(&mut self, sample: &AckSample) {
        self.bytes_acked = self.bytes_acked.saturating_add(sample.acked);
        if sample.ece {
            self.bytes_marked = self.bytes_marked.saturating_add(sample.acked);
        }
        if sample.acked <= self.observed {
            self.observed -= sample.acked;
            return;
        }
        let marked = self.bytes_marked as f64 / self.bytes_acked as f64;
        self.alpha = self.alpha * (1.0 - self.gain) + self.gain * marked;
        self.observed = sample.in_flight.saturating_sub(sample.acked);
        (self.bytes_acked, self.bytes_marked) = (0, 0);
    }

    /// Step 9: once per window of data, of which `in_flight` bytes are on the way.
    pub(super) fn cut(&mut self, in_flight: u64) {
        if self.cut > 0 {
            return;
        }
        self.reno.reduce_to((self.cwnd() as f64 * (1.0 - self.alpha / 2.0)) as u64);
        self.cut = in_flight;
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        // Everything it covers left before the last cut: its mark has been heeded.
        let heeded = self.cut > 0 && sample.acked <= self.cut;
        self.cut = self.cut.saturating_sub(sample.acked);
        self.observe(sample);
        if !sample.ece {
            self.reno.on_ack(now, sample);
        } else if !heeded {
            self.cut(sample.in_flight.saturating_sub(sample.acked));
        }
    }

    /// The window is Reno's; marks of the same window of data do not cut it further.
    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.reno.on_loss(now, sample);
        self.cut = sample.in_flight;
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.reno.on_rto(now, sample);
        self.cut = sample.in_flight;
    }

    fn on_returned(&mut self, _now: Time, sample: &ReturnedSample) -> Span {
        self.cut(sample.in_flight);
        Span::ZERO
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    crate::forward! { reno: on_ecn on_idle cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Snapshot;

    const MSS: u64 = 1000;

    fn dctcp(initial_window: u64, ssthresh: u64, options: Options) -> Dctcp {
        let start = Start { mss: 1000, initial_window, initial_ssthresh: ssthresh, seed: 1 };
        Dctcp::new(&start, options)
    }

    /// One window of data: `segments` ACKs, the first `marked` of them with ECE; the flight stays.
    fn window(dctcp: &mut Dctcp, segments: u64, marked: u64) {
        for i in 0..segments {
            let ack = crate::cc::ack_of(1000);
            let in_flight = segments * MSS;
            dctcp.on_ack(Time::ZERO, &AckSample { ece: i < marked, in_flight, ..ack });
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in binary")]
    fn alpha_follows_the_share_of_marked_bytes() {
        // RFC 8257 section 3.3 with g = 1/16. The first ACK ends the window of none: alpha = 15/16.
        // Each further window ends with the first ACK beyond it and holds ten ACKs.
        let mut dctcp = dctcp(10 * MSS, 10 * MSS, Options::default());
        window(&mut dctcp, 10, 0);
        assert_eq!(dctcp.alpha(), 0.9375);
        window(&mut dctcp, 10, 5);
        // The ACKs 2 to 11: the eleventh bears a mark.
        let second = 0.9375 * 0.9375 + 0.1 / 16.0;
        assert!((dctcp.alpha() - second).abs() < 1e-12);
        window(&mut dctcp, 10, 0);
        // The ACKs 12 to 21: four marks.
        let third = second * 0.9375 + 0.4 / 16.0;
        assert!((dctcp.alpha() - third).abs() < 1e-12);
    }

    #[test]
    fn marks_cut_the_window_by_half_of_alpha_once_per_window_of_data() {
        // alpha stays 0.4 with g = 0: 20 segments become 16, once in 20 ACKs.
        let options = Options { gain: 0.0, initial_alpha: 0.4 };
        let mut dctcp = dctcp(20 * MSS, 10 * MSS, options);
        window(&mut dctcp, 20, 19);
        assert_eq!(dctcp.snapshot(), Snapshot { cwnd: 16_000, ssthresh: 16_000 });
        window(&mut dctcp, 16, 16);
        assert_eq!(dctcp.cwnd(), 12_800);
    }

    #[test]
    fn loss_halves_as_reno_does_and_marks_of_that_window_add_nothing() {
        let mut dctcp = dctcp(20 * MSS, 10 * MSS, Options { gain: 0.0, initial_alpha: 1.0 });
        dctcp.on_loss(Time::ZERO, &LossSample { in_flight: 20 * MSS, ece: true });
        window(&mut dctcp, 19, 19);
        assert_eq!(dctcp.cwnd(), 10 * MSS);
        dctcp.on_rto(Time::ZERO, &RtoSample { in_flight: 10 * MSS, ..RtoSample::default() });
        assert_eq!(dctcp.snapshot(), Snapshot { cwnd: MSS, ssthresh: 5 * MSS });
    }

    #[test]
    fn without_marks_the_window_is_that_of_reno() {
        let mut dctcp = dctcp(MSS, 8 * MSS, Options::default());
        let mut reno = Reno::new(&Start {
            mss: 1000,
            initial_window: MSS,
            initial_ssthresh: 8 * MSS,
            seed: 1,
        });
        for _ in 0..100 {
            dctcp.on_ack(Time::ZERO, &crate::cc::ack_of(1000));
            reno.on_ack(Time::ZERO, &crate::cc::ack_of(1000));
            assert_eq!(dctcp.snapshot(), reno.snapshot());
        }
    }
}
