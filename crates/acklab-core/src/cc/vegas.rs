//! Vegas (Brakmo and Peterson, JSAC 13(8), 1995): the window keeps two to four segments in the queue.
//!
//! Section 3.2: each round trip compares the expected throughput, window / base RTT, with the actual
//! one, window / RTT. Their difference times the base RTT is what waits in queues: below alpha
//! segments the window grows by one, above beta it shrinks by one. Section 3.3: slow start doubles
//! every other round trip, holding the window still in between for a valid comparison, and ends
//! when more than gamma segments wait. What left while the window stood still is acknowledged in the
//! round after, so that is when its round trips are compared, with that window.
//!
//! - The paper measures one distinguished segment per round trip / we take the least RTT of the
//!   round / because delayed ACKs and bursts add to the others.
//! - The paper does not say what window slow start leaves behind / we leave what the path carried
//!   without a queue, plus one segment.
//!
//! Loss, marks, time-outs and idleness are RFC 5681's. Left out: the paper's earlier
//! retransmission on fine-grained timers (section 3.1), which is loss recovery's business.

use super::reno::Reno;
use super::round::Rounds;
use super::{AckSample, CongestionControl, EcnSample, LossSample, RtoSample, Snapshot, Start};
use crate::time::{Span, Time};

crate::options! {
    /// Thresholds of what waits in queues: section 3.2 (Vegas-2,4) and section 3.3 (one buffer).
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Fewer: grow.
        alpha: f64 as number(0.0, 1e6, "segments") = "2",
        /// More: shrink.
        beta: f64 as number(0.0, 1e6, "segments") = "4",
        /// More: slow start ends.
        gamma: f64 as number(0.0, 1e6, "segments") = "1",
    }
}

/// Vegas' sender.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    options: Options,
    mss: u64,
    /// Reacts to loss, and holds the window.
    reno: Reno,
    rounds: Rounds,
    base_rtt: Option<Span>,
    round_min: Option<Span>,
    /// In slow start: this round doubles the window, the next holds it.
    doubling: bool,
    /// The window under which left what this round acknowledges, bytes.
    compared: u64,
    /// The window held the sender back at some time in this round.
    limited: bool,
}

impl Vegas {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self {
            options,
            mss: u64::from(start.mss.max(1)),
            reno: Reno::new(start),
            rounds: Rounds::default(),
            base_rtt: None,
            round_min: None,
            doubling: true,
            compared: start.initial_window,
            limited: false,
        }
    }

    fn is_slow_start(&self) -> bool {
        let Snapshot { cwnd, ssthresh } = self.reno.snapshot();
        cwnd < ssthresh
    }

    /// What of `window` waits in queues, and what would be on the way without any, bytes.
    fn queued(&self, window: u64) -> Option<(f64, f64)> {
        let (base, rtt) = (self.base_rtt?, self.round_min?);
        let window = window as f64;
        let carried = window * base.as_nanos() as f64 / rtt.as_nanos().max(1) as f64;
        Some((window - carried, carried))
    }

    fn end_round(&mut self) {
        let limited = std::mem::take(&mut self.limited);
        let slow_start = self.is_slow_start();
        let window = if slow_start { self.compared } else { self.reno.cwnd() };
        let queued = self.queued(window);
        self.round_min = None;
        let doubled = self.doubling;
        if slow_start {
            self.doubling = !doubled;
            self.compared = self.reno.cwnd();
        }
        let Some((queued, carried)) = queued.filter(|_| limited) else { return };
        let queued = queued / self.mss as f64;
        if slow_start {
            if doubled && queued > self.options.gamma {
                self.reno.reduce_to(carried as u64 + self.mss);
            }
        } else if queued < self.options.alpha {
            self.reno.set_window(self.reno.cwnd().saturating_add(self.mss));
        } else if queued > self.options.beta {
            // The threshold comes down too: a window below it would be in slow start.
            self.reno.reduce_to(self.reno.cwnd().saturating_sub(self.mss));
        }
    }

    /// What was measured belongs to another window.
    fn restart_round(&mut self) {
        self.rounds.restart();
        self.round_min = None;
        self.doubling = true;
        self.compared = self.reno.cwnd();
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.limited |= sample.cwnd_limited;
        let round_ended = self.rounds.on_ack(sample);
        if sample.in_fast_recovery {
            return;
        }
        if round_ended {
            self.end_round();
        }
        if self.is_slow_start() && self.doubling {
            self.reno.on_ack(now, sample);
        }
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.reno.on_loss(now, sample);
        self.restart_round();
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        self.reno.on_ecn(now, sample);
        self.restart_round();
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.reno.on_rto(now, sample);
        self.restart_round();
    }

    fn on_idle(&mut self, now: Time) {
        self.reno.on_idle(now);
        self.restart_round();
    }

    crate::forward! { reno: cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    const MSS: u32 = 1000;

    fn vegas(initial_window: u64, initial_ssthresh: u64) -> Vegas {
        let start = Start { mss: MSS, initial_window, initial_ssthresh, seed: 0 };
        Vegas::new(&start, Options::default())
    }

    /// One round trip of a path that carries `capacity` bytes in 100 ms and queues the rest.
    fn round(vegas: &mut Vegas, capacity: u64) {
        let window = vegas.cwnd();
        let rtt = Some(Span::from_micros(100_000 * window.max(capacity) / capacity));
        for _ in 0..window / u64::from(MSS) {
            let ack = AckSample { in_flight: vegas.cwnd(), rtt, srtt: rtt, ..ack_of(MSS) };
            vegas.on_ack(Time::ZERO, &ack);
        }
    }

    #[test]
    fn the_window_settles_with_two_to_four_segments_queued() {
        for initial_window in [10_000, 60_000] {
            let mut vegas = vegas(initial_window, 1);
            // The least round trip: what the path takes without a queue.
            vegas.on_ack(
                Time::ZERO,
                &AckSample { rtt: Some(Span::from_millis(100)), acked: 0, ..ack_of(MSS) },
            );
            for _ in 0..60 {
                round(&mut vegas, 30_000);
            }
            let settled = vegas.cwnd();
            assert!((32_000..=34_000).contains(&settled), "{settled} bytes");
            round(&mut vegas, 30_000);
            assert_eq!(vegas.cwnd(), settled, "and there it stays");
        }
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_with_a_queue() {
        let mut vegas = vegas(4000, u64::MAX);
        let mut windows = Vec::new();
        for _ in 0..5 {
            round(&mut vegas, 100_000);
            windows.push(vegas.cwnd());
        }
        assert_eq!(windows, [8000, 8000, 16_000, 16_000, 32_000]);
        for _ in 0..6 {
            round(&mut vegas, 60_000);
        }
        assert!(!vegas.is_slow_start());
        for _ in 0..60 {
            round(&mut vegas, 60_000);
        }
        assert!(!vegas.is_slow_start());
        assert!((62_000..=64_000).contains(&vegas.cwnd()), "{} bytes", vegas.cwnd());
    }

    #[test]
    fn slow_start_leaves_what_the_path_carries_though_round_trips_tell_of_an_earlier_window() {
        let mut vegas = vegas(4000, u64::MAX);
        // What a round acknowledges left in the round before, whose window its round trips tell of.
        let mut window_before = 0;
        while vegas.is_slow_start() {
            let rtt = Some(Span::from_micros(100_000 * window_before.max(60_000) / 60_000));
            window_before = vegas.cwnd();
            for _ in 0..vegas.cwnd() / u64::from(MSS) {
                let ack = AckSample { in_flight: vegas.cwnd(), rtt, srtt: rtt, ..ack_of(MSS) };
                vegas.on_ack(Time::ZERO, &ack);
            }
            assert!(vegas.cwnd() <= 128_000, "{} bytes", vegas.cwnd());
        }
        assert!((60_000..=61_000).contains(&vegas.cwnd()), "{} bytes", vegas.cwnd());
    }

    #[test]
    fn a_window_that_nothing_fills_does_not_grow() {
        let mut vegas = vegas(10_000, 1);
        let rtt = Some(Span::from_millis(100));
        let ack = AckSample { rtt, cwnd_limited: false, ..ack_of(MSS) };
        for _ in 0..100 {
            vegas.on_ack(Time::ZERO, &ack);
        }
        assert_eq!(vegas.cwnd(), 10_000);
    }

    #[test]
    fn loss_halves_and_a_timeout_leaves_one_segment() {
        let mut vegas = vegas(40_000, 1);
        vegas.on_loss(Time::ZERO, &LossSample { in_flight: 40_000, ..LossSample::default() });
        assert_eq!(vegas.snapshot(), Snapshot { cwnd: 20_000, ssthresh: 20_000 });
        vegas.on_rto(Time::ZERO, &RtoSample { in_flight: 20_000, ..RtoSample::default() });
        assert_eq!(vegas.snapshot(), Snapshot { cwnd: 1000, ssthresh: 10_000 });
    }
}
