//! Balance fairness: the window that ANCE and ENCN share (Sup, Moraes and Bauchspiess, algorithm 1 and
//! table 1). Who says whether the path is congested is their business.
//!
//! In congestion avoidance the window W grows by one segment per W ACKs while the path is free, and
//! shrinks by one segment per BF ACKs while it is congested. BF is halved when W grows and grows by half
//! when W shrinks, so that a larger window shrinks more readily than a smaller one.
//!
//! Where the paper is silent:
//! - an ACK counts once, however much it covers (delayed ACKs halve the pace), if it advances and no
//!   fast recovery is under way; for growth the window must also have held the sender back (RFC 7661);
//! - either branch counts the ACKs that fell to it since W last changed;
//! - BF is kept as a fraction, with a floor, and rounded where it is compared;
//! - loss and time-out do as in RFC 5681, and avoidance begins with BF = W.

use super::{AckSample, RtoSample, Snapshot, Start};

crate::options! {
    /// What the paper leaves open about the window.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// When slow start ends.
        slow_start: SlowStart = "algorithm-1",
        /// BF never falls below it.
        bf_floor: f64 as number(0.0, 1000.0, "ACKs") = "1",
        /// W never shrinks below it, segments.
        min_window: u32 as count(1, 64) = "1",
        /// The receiver's advertised window in min(rwnd, Ssthr), segments.
        rwnd: u32 as count(1, 1_000_000) = "64",
    }
}

crate::words! {
    /// The paper contradicts itself about what ends slow start by setting W to min(rwnd, Ssthr).
    pub enum SlowStart {
        /// Algorithm 1: a congested path does; a free one goes on in slow start.
        Algorithm1 = "algorithm-1",
        /// The prose of its section 2: a free path does; a congested one goes on as Reno would.
        Prose = "prose",
    }
}

/// The window W and its balance BF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balance {
    options: Options,
    mss: u64,
    initial_window: u64,
    cwnd: u64,
    ssthresh: u64,
    avoiding: bool,
    bf: f64,
    /// ACKs on a free path since W last changed.
    free: u64,
    /// ACKs on a congested path since W last changed.
    congested: u64,
}

impl Balance {
    pub(super) fn new(start: &Start, options: Options) -> Self {
        let mss = u64::from(start.mss.max(1));
        let initial_window = start.initial_window.max(mss);
        Self {
            options,
            mss,
            initial_window,
            cwnd: initial_window,
            ssthresh: start.initial_ssthresh,
            avoiding: false,
            bf: options.bf_floor.max(1.0),
            free: 0,
            congested: 0,
        }
    }

    /// W in whole segments.
    pub(super) const fn segments(&self) -> u64 {
        self.cwnd / self.mss
    }

    /// BF, ACKs.
    pub(super) const fn bf(&self) -> f64 {
        self.bf
    }

    /// Algorithm 1, once the path is known to be congested or free.
    pub(super) fn on_ack(&mut self, sample: &AckSample, congested: bool) {
        if sample.acked == 0 || sample.in_fast_recovery {
            return;
        }
        if !self.avoiding {
            self.slow_start(sample, congested);
        }
        if !self.avoiding {
            return;
        }
        if congested {
            self.congested += 1;
            self.shrink();
        } else if sample.cwnd_limited {
            self.free += 1;
            self.grow();
        }
    }

    fn slow_start(&mut self, sample: &AckSample, congested: bool) {
        if congested == (self.options.slow_start == SlowStart::Algorithm1) {
            // The paper's threshold is always a number; an arbitrarily high one leaves W as it is.
            if self.ssthresh < u64::MAX {
                let rwnd = u64::from(self.options.rwnd).saturating_mul(self.mss);
                self.cwnd = self.ssthresh.min(rwnd).max(self.mss);
            }
            self.avoid();
            return;
        }
        if self.cwnd < self.ssthresh && sample.cwnd_limited {
            self.cwnd = self.cwnd.saturating_add(sample.acked.min(self.mss));
        }
        if self.cwnd >= self.ssthresh {
            self.avoid();
        }
    }

    fn avoid(&mut self) {
        self.avoiding = true;
        self.bf = (self.segments() as f64).max(self.options.bf_floor);
        (self.free, self.congested) = (0, 0);
    }

    fn grow(&mut self) {
        if self.free < self.segments() {
            return;
        }
        self.cwnd = self.cwnd.saturating_add(self.mss);
        self.bf = (self.bf / 2.0).max(self.options.bf_floor);
        (self.free, self.congested) = (0, 0);
    }

    fn shrink(&mut self) {
        let smaller = self.cwnd.saturating_sub(self.mss);
        let floor = u64::from(self.options.min_window.max(1)).saturating_mul(self.mss);
        if self.congested < ((self.bf + 0.5) as u64).max(1) || smaller < floor {
            return;
        }
        self.cwnd = smaller;
        self.bf += self.bf / 2.0;
        (self.free, self.congested) = (0, 0);
    }

    /// RFC 5681 equation 4, as in [`super::reno`]; the window never rises by it.
    pub(super) fn on_loss(&mut self, in_flight: u64) {
        self.ssthresh = self.half(in_flight);
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.avoid();
    }

    /// RFC 5681 section 3.1.
    pub(super) fn on_rto(&mut self, sample: &RtoSample) {
        if !sample.keeps_threshold() {
            self.ssthresh = self.half(sample.in_flight);
        }
        self.cwnd = self.mss;
        self.avoiding = false;
    }

    fn half(&self, in_flight: u64) -> u64 {
        (in_flight.min(self.cwnd) / 2).max(2 * self.mss)
    }

    /// RFC 5681 section 4.1.
    pub(super) fn on_idle(&mut self) {
        if self.cwnd > self.initial_window {
            self.cwnd = self.initial_window;
            self.avoiding = false;
        }
    }

    pub(super) const fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 960;

    fn balance(ssthresh: u64, options: Options) -> Balance {
        let mss = u64::from(MSS);
        let initial_ssthresh = ssthresh.saturating_mul(mss);
        Balance::new(&Start { mss: MSS, initial_window: mss, initial_ssthresh, seed: 1 }, options)
    }

    fn acks(balance: &mut Balance, congested: bool, count: u32) {
        for _ in 0..count {
            balance.on_ack(&crate::cc::ack_of(MSS), congested);
        }
    }

    #[test]
    fn on_a_free_path_slow_start_ends_at_the_threshold_with_bf_equal_to_w() {
        let mut balance = balance(16, Options::default());
        acks(&mut balance, false, 14);
        assert_eq!((balance.segments(), balance.avoiding), (15, false));
        acks(&mut balance, false, 1);
        assert_eq!((balance.segments(), balance.bf()), (16, 16.0));
    }

    #[test]
    fn algorithm_1_leaves_slow_start_on_a_congested_path_and_the_prose_on_a_free_one() {
        let prose = Options { slow_start: SlowStart::Prose, ..Options::default() };
        for (options, congested) in [(Options::default(), true), (prose, false)] {
            let mut balance = balance(16, options);
            acks(&mut balance, !congested, 3);
            assert_eq!((balance.segments(), balance.avoiding), (4, false));
            acks(&mut balance, congested, 1);
            assert_eq!((balance.segments(), balance.bf()), (16, 16.0));
        }
        // min(rwnd, Ssthr); and an arbitrarily high threshold is no window to jump to.
        let mut balance = balance(100, Options::default());
        acks(&mut balance, true, 1);
        assert_eq!(balance.segments(), 64);
        let mut balance = self::balance(u64::MAX, Options::default());
        acks(&mut balance, false, 3);
        acks(&mut balance, true, 1);
        assert_eq!((balance.segments(), balance.avoiding), (4, true));
    }

    #[test]
    fn w_grows_per_w_acks_and_halves_bf_and_shrinks_per_bf_acks_and_raises_bf_by_half() {
        // Table 1 by hand, from W = BF = 4 (the ACK that ends slow start counts as the first).
        let mut balance = balance(4, Options::default());
        acks(&mut balance, false, 3 + 3);
        assert_eq!((balance.segments(), balance.bf()), (5, 2.0));
        acks(&mut balance, false, 4);
        assert_eq!((balance.segments(), balance.bf()), (5, 2.0));
        acks(&mut balance, false, 1);
        assert_eq!((balance.segments(), balance.bf()), (6, 1.0));
        acks(&mut balance, true, 1);
        assert_eq!((balance.segments(), balance.bf()), (5, 1.5));
        // 1.5 rounds to two ACKs, 2.25 to two, 3.375 to three.
        acks(&mut balance, true, 1);
        assert_eq!((balance.segments(), balance.bf()), (5, 1.5));
        acks(&mut balance, true, 1);
        assert_eq!((balance.segments(), balance.bf()), (4, 2.25));
        acks(&mut balance, true, 2);
        assert_eq!((balance.segments(), balance.bf()), (3, 3.375));
        acks(&mut balance, true, 3);
        assert_eq!((balance.segments(), balance.bf()), (2, 5.0625));
    }

    #[test]
    fn the_branches_count_apart_and_afresh_after_every_change_of_w() {
        let mut balance = balance(4, Options::default());
        acks(&mut balance, false, 3 + 2);
        assert_eq!((balance.segments(), balance.bf()), (4, 4.0));
        acks(&mut balance, true, 3);
        assert_eq!(balance.segments(), 4);
        acks(&mut balance, false, 1);
        assert_eq!(balance.segments(), 5);
        // BF = 2: the three congested ACKs from before do not count.
        acks(&mut balance, true, 1);
        assert_eq!(balance.segments(), 5);
        acks(&mut balance, true, 1);
        assert_eq!((balance.segments(), balance.bf()), (4, 3.0));
    }

    #[test]
    fn neither_w_nor_bf_falls_below_its_floor() {
        let options = Options { bf_floor: 3.0, min_window: 2, ..Options::default() };
        let mut balance = balance(4, options);
        acks(&mut balance, false, 3 + 3 + 5 + 6);
        assert_eq!((balance.segments(), balance.bf()), (7, 3.0));
        acks(&mut balance, true, 1000);
        assert_eq!(balance.segments(), 2);
    }

    #[test]
    fn loss_halves_and_a_time_out_leaves_one_segment() {
        let mut balance = balance(16, Options::default());
        acks(&mut balance, false, 15);
        balance.on_loss(16 * u64::from(MSS));
        assert_eq!((balance.segments(), balance.bf()), (8, 8.0));
        balance.on_rto(&RtoSample { in_flight: 8 * u64::from(MSS), ..RtoSample::default() });
        assert_eq!(balance.snapshot(), Snapshot { cwnd: 960, ssthresh: 4 * 960 });
        assert!(!balance.avoiding);
        let in_flight = u64::from(MSS);
        balance.on_rto(&RtoSample { in_flight, again: true, ..RtoSample::default() });
        assert_eq!(balance.snapshot().ssthresh, 4 * 960);
        // A flight above the window, and a recovery that has answered for it.
        acks(&mut balance, false, 7);
        balance.on_rto(&RtoSample { in_flight: 90 * 960, recovering: true, again: false });
        assert_eq!(balance.snapshot().ssthresh, 4 * 960);
        acks(&mut balance, false, 6);
        assert_eq!(balance.segments(), 5);
        balance.on_rto(&RtoSample { in_flight: 90 * 960, ..RtoSample::default() });
        assert_eq!(balance.snapshot().ssthresh, 5 * 960 / 2);
    }
}
