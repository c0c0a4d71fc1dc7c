//! Whether a path carries ECN marks and its receiver tells of them truly (RFC 9000 section 13.4.2 and
//! appendix A.4).
//!
//! The first packets of a path are marked, for a while, as a test; then nothing is until one of them was
//! acknowledged and the receiver's counters add up. Some networks drop what is marked: there the test
//! costs ten packets, and the connection goes on without marks. A long silence ends the marks as well,
//! since the network may have changed; a path that comes back is tested again.
//!
//! The RFC compares the increase of the counters between two ACKs with what the later one newly
//! acknowledges. We compare sums since the start: an ACK here may reach further down than the one before it
//! (docs/rudp.md section 2), and newly acknowledge a packet that was counted earlier.

use crate::wire::EcnCounts;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// Packets marked before anything is known (RFC 9000 appendix A.4).
const TEST_PACKETS: u64 = 10;
/// Probe time-outs that the test lasts at most (the same).
const TEST_PTOS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many packets may be marked, until then.
    Testing { left: u64, until: Time },
    /// The test is over, and nothing marked was acknowledged.
    Unknown,
    /// Marks arrive and are told of.
    Capable,
    /// Counters do not add up.
    Failed,
}

/// The state of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnCheck {
    /// What the packets bear: ECT(0), or ECT(1) for the L4S service (RFC 9331 section 4.1).
    codepoint: Ecn,
    state: State,
    /// Of the newest ACK.
    counts: EcnCounts,
    /// Packets sent marked, and those of them that were acknowledged.
    sent: u64,
    acknowledged: u64,
}

const TEST: State = State::Testing { left: TEST_PACKETS, until: Time::MAX };

impl EcnCheck {
    /// Packets that bear `codepoint`, on a path of which nothing is known.
    pub(super) fn new(codepoint: Ecn) -> Self {
        let counts = EcnCounts::default();
        Self { codepoint, state: TEST, counts, sent: 0, acknowledged: 0 }
    }

    /// What is told of packets that arrived as they left, and of those that turned into others.
    fn split(&self, counts: EcnCounts) -> (u64, u64) {
        let EcnCounts { ect0, ect1, .. } = counts;
        if self.codepoint == Ecn::Ect1 { (ect1, ect0) } else { (ect0, ect1) }
    }

    /// The mark of the next packets, and how many may bear it.
    pub(super) fn mark(&mut self, now: Time) -> (Ecn, usize) {
        match self.state {
            State::Testing { left, until } if left > 0 && now < until => {
                (self.codepoint, left as usize)
            }
            State::Testing { .. } => {
                self.state = State::Unknown;
                (Ecn::NotEct, usize::MAX)
            }
            State::Capable => (self.codepoint, usize::MAX),
            State::Unknown | State::Failed => (Ecn::NotEct, usize::MAX),
        }
    }

    /// A marked packet left.
    pub(super) fn on_sent(&mut self, now: Time, pto: Span) {
        self.sent += 1;
        if let State::Testing { left, until } = &mut self.state {
            *left = left.saturating_sub(1);
            *until = (*until).min(now + Span::from_nanos(TEST_PTOS * pto.as_nanos()));
        }
    }

    /// An ACK newly acknowledges `marked` packets that were marked; `newest`: its largest number is larger
    /// than before, as those of ACKs that were overtaken are not. How many new CE marks it tells of.
    pub(super) fn on_ack(&mut self, counts: Option<EcnCounts>, marked: u64, newest: bool) -> u64 {
        self.acknowledged += marked;
        if self.state == State::Failed || !newest {
            return 0;
        }
        let before = self.counts;
        let counts = counts.unwrap_or(before);
        let (kept, changed) = self.split(counts);
        let told = kept + counts.ce;
        let true_counts = kept >= self.split(before).0
            && counts.ce >= before.ce
            && changed == 0
            && (self.acknowledged..=self.sent).contains(&told);
        if !true_counts {
            self.state = State::Failed;
            return 0;
        }
        self.counts = counts;
        if marked > 0 {
            self.state = State::Capable;
        }
        counts.ce - before.ce
    }

    /// Nothing was heard for so long that it may be for the marks.
    pub(super) fn on_silence(&mut self) {
        if self.state != State::Failed {
            self.state = State::Unknown;
        }
    }

    /// The path came back, perhaps another way.
    pub(super) fn restart(&mut self) {
        self.state = TEST;
        self.acknowledged = self.acknowledged.min(self.split(self.counts).0 + self.counts.ce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Span = Span::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> EcnCounts {
        EcnCounts { ect0, ect1, ce }
    }

    /// After `count` marked packets at 0 ms.
    fn sent(count: u64) -> EcnCheck {
        let mut check = EcnCheck::new(Ecn::Ect0);
        for _ in 0..count {
            assert_eq!(check.mark(at(0)).0, Ecn::Ect0);
            check.on_sent(at(0), PTO);
        }
        check
    }

    #[test]
    fn ten_packets_or_three_probe_time_outs_are_the_test() {
        assert_eq!(EcnCheck::new(Ecn::Ect0).mark(at(0)), (Ecn::Ect0, 10));
        assert_eq!(sent(7).mark(at(299)), (Ecn::Ect0, 3));
        assert_eq!(sent(10).mark(at(0)).0, Ecn::NotEct);
        assert_eq!(sent(1).mark(at(300)).0, Ecn::NotEct);
        // Neither end has spoken yet: nothing is over.
        assert_eq!(EcnCheck::new(Ecn::Ect0).mark(at(10_000)).0, Ecn::Ect0);
    }

    #[test]
    fn marks_go_on_when_one_was_acknowledged_and_counted() {
        for (told, marked, goes_on) in [
            (Some(counts(10, 0, 0)), 10, true),
            (Some(counts(3, 0, 7)), 10, true),
            (Some(counts(10, 0, 0)), 1, true),
            // Cleared on the way, all or some of them.
            (None, 1, false),
            (Some(counts(0, 0, 0)), 1, false),
            (Some(counts(9, 0, 0)), 10, false),
            // Made up, or turned into another mark.
            (Some(counts(11, 0, 0)), 1, false),
            (Some(counts(9, 1, 0)), 9, false),
            // Nothing that was marked arrived.
            (None, 0, false),
        ] {
            let mut check = sent(10);
            check.on_ack(told, marked, true);
            assert_eq!(check.mark(at(0)).0 == Ecn::Ect0, goes_on, "{told:?} for {marked}");
        }
    }

    #[test]
    fn counters_that_shrink_or_stay_behind_end_the_marks_for_good() {
        for later in [Some(counts(9, 0, 1)), Some(counts(10, 0, 0)), Some(counts(10, 0, 4)), None] {
            let mut check = sent(10);
            assert_eq!(check.on_ack(Some(counts(9, 0, 1)), 10, true), 1, "a new CE mark");
            for _ in 0..5 {
                check.on_sent(at(1), PTO);
            }
            let truly = later == Some(counts(10, 0, 4));
            assert_eq!(check.on_ack(later, 4, true), if truly { 3 } else { 0 });
            assert_eq!(check.mark(at(1)).0 == Ecn::Ect0, truly, "{later:?}");
            check.on_ack(Some(counts(15, 0, 0)), 0, true);
            assert_eq!(check.mark(at(1)).0, Ecn::NotEct, "{later:?}");
        }
    }

    #[test]
    fn an_ack_that_was_overtaken_is_not_held_against_its_path() {
        let mut check = sent(10);
        check.on_ack(Some(counts(10, 0, 0)), 6, true);
        assert_eq!(check.on_ack(Some(counts(4, 0, 0)), 4, false), 0);
        check.on_ack(Some(counts(10, 0, 0)), 0, true);
        assert_eq!(check.mark(at(0)).0, Ecn::Ect0);
    }

    #[test]
    fn packets_for_low_latency_are_counted_as_such_and_what_was_bleached_to_the_other_mark_ends_them()
     {
        let test = |told, goes_on| {
            let mut check = EcnCheck::new(Ecn::Ect1);
            for _ in 0..10 {
                assert_eq!(check.mark(at(0)).0, Ecn::Ect1);
                check.on_sent(at(0), PTO);
            }
            check.on_ack(Some(told), 10, true);
            assert_eq!(check.mark(at(0)).0 == Ecn::Ect1, goes_on, "{told:?}");
        };
        test(counts(0, 7, 3), true);
        test(counts(1, 7, 2), false);
        test(counts(10, 0, 0), false);
    }

    #[test]
    fn silence_ends_the_marks_and_a_path_that_is_back_is_tested_again() {
        let mut check = sent(10);
        check.on_ack(Some(counts(10, 0, 0)), 10, true);
        check.on_silence();
        assert_eq!(check.mark(at(1)).0, Ecn::NotEct);
        check.restart();
        assert_eq!(check.mark(at(1)), (Ecn::Ect0, 10));
    }
}
