//! Solaris and illumos: every n-th segment, where n begins at nothing and grows with the ACKs up to a
//! maximum that sinks again when delaying did harm.
//!
//! From the documented tunables (Solaris Tunable Parameters: `tcp_deferred_acks_max` 2 and
//! `tcp_deferred_ack_interval` 100 ms beyond a router, `tcp_local_dacks_max` 8 and
//! `tcp_local_dack_interval` 50 ms on the same subnet) and the behaviour of illumos' `tcp_input_data` and
//! `tcp_ack_timer`. In short:
//! - the first two segments are acknowledged at once, for n begins at 0 and each ACK for its count adds 1;
//! - a segment below one MSS is acknowledged at once where what waits already is no multiple of the MSS, so
//!   that it is the second small one, or the tail behind one; the first waits for the timer;
//! - where the timer finds more than one MSS, n is 2 from there on and its maximum one less, never below 2:
//!   the sender did not fill the count;
//! - a duplicate says that an ACK came too late: n is 1 again and its maximum one less, if an ACK was owed.
//!
//! We cannot tell duplicates from data out of order, which leave both alone in illumos. Left out: the maximum's
//! bound of half the window in segments (above 4 MSS of window it is 2 anyway).

use super::delayed::expire;
use super::{AckPolicy, DataSample, Decision, Disorder};
use crate::time::{Span, Time};

crate::options! {
    /// The tunables; defaults are those for peers beyond a router.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// tcp_deferred_acks_max: at most so many segments per ACK; 8 on the same subnet.
        segments: u32 as count(0, 16) = "2",
        /// tcp_deferred_ack_interval: how long a segment waits; 50 ms on the same subnet.
        delay: Span as positive_span() = "100ms",
    }
}

/// Every n-th segment, n adapted.
#[derive(Clone, Copy, Debug)]
pub struct Solaris {
    delay: Span,
    /// Segments per ACK now: `tcp_rack_cur_max`.
    current: u32,
    /// At most: `tcp_rack_abs_max`.
    most: u32,
    /// Segments that no ACK has covered: `tcp_rack_cnt`.
    waiting: u32,
    /// Their bytes.
    bytes: u32,
    mss: u32,
    deadline: Option<Time>,
}

impl Solaris {
    /// A fresh connection.
    pub const fn new(_phase: f64, Options { segments, delay }: Options) -> Self {
        Self { delay, current: 0, most: segments, waiting: 0, bytes: 0, mss: 1, deadline: None }
    }

    /// The maximum sinks where delaying did harm, but not below two.
    const fn sink(&mut self) {
        if self.most > 2 {
            self.most -= 1;
        }
    }
}

impl AckPolicy for Solaris {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        let before = sample.unacked_bytes.saturating_sub(sample.len);
        self.mss = sample.mss.max(1);
        (self.waiting, self.bytes) = (self.waiting + 1, sample.unacked_bytes);
        if self.waiting >= self.current {
            self.current = (self.current + 1).min(self.most);
            return Decision::Now;
        }
        if sample.len < self.mss && !before.is_multiple_of(self.mss) {
            return Decision::Now;
        }
        self.deadline.get_or_insert(now + self.delay);
        Decision::Wait
    }

    fn on_disorder(&mut self, _now: Time, _disorder: Disorder, _window: u32) {
        if self.waiting >= 1 {
            self.sink();
        }
        self.current = 1;
    }

    fn on_ack_sent(&mut self, _now: Time) {
        (self.waiting, self.bytes, self.deadline) = (0, 0, None);
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        let decision = expire(&mut self.deadline, now);
        if decision == Decision::Now && self.bytes > self.mss {
            self.sink();
            self.current = 2;
        }
        decision
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    struct Driver {
        policy: Solaris,
        now: Time,
        bytes: u32,
    }

    impl Driver {
        fn new(segments: u32) -> Self {
            let options = Options { segments, ..Options::default() };
            Self { policy: Solaris::new(0.0, options), now: Time::ZERO, bytes: 0 }
        }

        fn settle(&mut self, decision: Decision) -> bool {
            let acks = decision == Decision::Now;
            if acks {
                self.policy.on_ack_sent(self.now);
                self.bytes = 0;
            }
            acks
        }

        /// A segment of `len` bytes: whether it is acknowledged at once.
        fn data(&mut self, len: u32) -> bool {
            self.bytes += len;
            let sample =
                DataSample { len, mss: MSS, unacked_bytes: self.bytes, ..DataSample::default() };
            let decision = self.policy.on_data(self.now, &sample);
            self.settle(decision)
        }

        /// The timer, if one runs: how long it ran, ms.
        fn timer(&mut self) -> Option<f64> {
            let due = self.policy.poll_timeout()?;
            let waited = due.since(self.now).as_millis_f64();
            self.now = due;
            let decision = self.policy.handle_timeout(due, Span::from_secs(1));
            assert!(self.settle(decision));
            Some(waited)
        }

        fn stream(&mut self, count: usize) -> Vec<bool> {
            (0..count).map(|_| self.data(MSS)).collect()
        }
    }

    #[test]
    fn the_first_two_segments_are_acknowledged_and_then_every_second() {
        let mut driver = Driver::new(2);
        assert_eq!(driver.stream(8), [true, true, false, true, false, true, false, true]);
        assert_eq!(driver.timer(), None);
    }

    #[test]
    fn on_the_same_subnet_the_count_grows_to_eight() {
        let mut driver = Driver::new(8);
        let acks = driver.stream(60);
        let at: Vec<usize> =
            acks.iter().enumerate().filter(|(_, ack)| **ack).map(|(i, _)| i).collect();
        let gaps: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
    }

    #[test]
    fn a_lone_small_segment_waits_100_ms_and_the_next_one_ends_that() {
        let mut driver = Driver::new(2);
        driver.stream(2);
        assert!(!driver.data(100));
        assert_eq!(driver.timer(), Some(100.0));
        let mut driver = Driver::new(8);
        driver.stream(1 + 1 + 2 + 3);
        assert!(!driver.data(100), "nothing waited before it");
        assert!(driver.data(100), "what waited was no multiple of the MSS");
        assert!(!driver.data(MSS));
        assert!(!driver.data(100), "a whole segment waited: the tail may be answered");
    }

    #[test]
    fn a_timer_that_finds_more_than_one_segment_makes_the_count_two_and_the_maximum_less() {
        let mut driver = Driver::new(8);
        driver.stream(1 + 1 + 2 + 3 + 4);
        driver.stream(3);
        assert_eq!(driver.timer(), Some(100.0));
        assert_eq!((driver.policy.current, driver.policy.most), (2, 7));
        driver.stream(60);
        assert_eq!(driver.policy.current, 7);
    }

    #[test]
    fn disorder_begins_again_with_one() {
        let mut driver = Driver::new(8);
        driver.stream(60);
        driver.policy.on_disorder(driver.now, Disorder::Ahead, 0);
        driver.policy.on_ack_sent(driver.now);
        assert_eq!(driver.policy.current, 1);
        assert_eq!(driver.stream(4), [true, false, true, false]);
    }
}
