//! What arrived on one path: the replay window, which is also what ACKs report, and the decision when
//! to acknowledge (docs/rudp.md sections 2 and 5).
//!
//! Which packet is acknowledged when is the business of the core's ACK policies ([`acklab_core::ack`]). By
//! default it is [`Delayed`] with the numbers that the sender asks for (ACK_FREQUENCY); any other profile
//! may stand in its place, which is how a bad ACK timer is put into this protocol on purpose.

use std::ops::RangeInclusive;

use crate::wire::{EcnCounts, Writer, ack};
use acklab_core::ack::delayed::Delayed;
use acklab_core::ack::{AckPolicy, DataSample, Decision, Disorder, Policy, Profile};
use acklab_core::event::AckReason;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// Numbers below the largest that are remembered.
const WINDOW: u64 = 8192;
const WORDS: usize = (WINDOW / 64) as usize;
/// Packets per ACK and delay before the sender has asked for anything (docs/rudp.md section 5).
const FIRST_PACKETS: u32 = 2;
pub(super) const FIRST_DELAY: Span = Span::from_millis(8);
const FIRST_REORDERING: u64 = 3;
/// A packet after so long a pause is acknowledged at once.
const PAUSE: Span = Span::from_secs(1);

/// Which policy decides.
#[derive(Debug)]
enum Timing {
    /// As the sender asks.
    Asked(Delayed),
    /// As this end was told, whatever the sender asks.
    Profile(Policy),
}

/// A packet as the ACK policy must know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) number: u64,
    /// It asks for an acknowledgment.
    pub(super) eliciting: bool,
    /// It asks for one at once.
    pub(super) at_once: bool,
    /// It ends a stream or parcel: what PSH is to TCP.
    pub(super) last: bool,
    /// Length of its frames, bytes.
    pub(super) len: u32,
    /// Bytes that the peer may begin without another grant: what the free receive window is to TCP.
    pub(super) window: u32,
    pub(super) ecn: Ecn,
    pub(super) srtt: Option<Span>,
    pub(super) pto: Span,
}

impl Arrival {
    /// A packet of which only number and mark are known yet.
    pub(super) const fn new(number: u64, ecn: Ecn) -> Self {
        Self {
            number,
            eliciting: false,
            at_once: false,
            last: false,
            len: 0,
            window: u32::MAX,
            ecn,
            srtt: None,
            pto: Span::ZERO,
        }
    }
}

/// The receiving side of a path.
#[derive(Debug)]
pub(super) struct Received {
    /// One bit per number, at number modulo the window.
    window: Box<[u64; WORDS]>,
    largest: Option<u64>,
    largest_at: Time,
    ecn: EcnCounts,
    /// The latest packet was marked.
    marked: bool,
    timing: Timing,
    asked: Span,
    asked_sequence: Option<u64>,
    reordering: u64,
    /// Length of the frames of a full packet, bytes: the most that came so far.
    full: u32,
    unacknowledged: u32,
    unacknowledged_bytes: u32,
    /// When the oldest of them arrived.
    waiting_since: Option<Time>,
    /// An ACK should leave by itself, and why.
    due: Option<AckReason>,
}

impl Received {
    pub(super) fn new(profile: Option<&Profile>) -> Self {
        let timing = match profile {
            Some(profile) => Timing::Profile(profile.policy(0.0)),
            None => Timing::Asked(Delayed::every(FIRST_PACKETS, FIRST_DELAY)),
        };
        Self {
            window: Box::new([0; WORDS]),
            largest: None,
            largest_at: Time::ZERO,
            ecn: EcnCounts::default(),
            marked: false,
            timing,
            asked: FIRST_DELAY,
            asked_sequence: None,
            reordering: FIRST_REORDERING,
            full: 1,
            unacknowledged: 0,
            unacknowledged_bytes: 0,
            waiting_since: None,
            due: None,
        }
    }

    /// The number that the next packet most likely has.
    pub(super) fn expected(&self) -> u64 {
        self.largest.map_or(0, |largest| largest + 1)
    }

    /// Whether a packet of that number may be opened: not seen, not too old.
    pub(super) fn is_fresh(&self, number: u64) -> bool {
        match self.largest {
            Some(largest) if number <= largest => largest - number < WINDOW && !self.holds(number),
            _ => true,
        }
    }

    /// Whether it would be the largest so far.
    pub(super) fn is_newest(&self, number: u64) -> bool {
        self.largest.is_none_or(|largest| number > largest)
    }

    const fn holds(&self, number: u64) -> bool {
        let bit = number % WINDOW;
        self.window[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// An authentic packet whose frames were all taken.
    pub(super) fn on_packet(&mut self, now: Time, arrival: &Arrival) {
        let number = arrival.number;
        let paused = now.since(self.largest_at) > PAUSE;
        let gap = self.gap_opens(number, self.reordering);
        let disorder = gap || self.gap_opens(number, FIRST_REORDERING);
        if self.is_newest(number) {
            self.advance(number);
            self.largest_at = now;
        }
        let bit = number % WINDOW;
        self.window[(bit / 64) as usize] |= 1 << (bit % 64);
        match arrival.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ecn.ect0 += 1,
            Ecn::Ect1 => self.ecn.ect1 += 1,
            Ecn::Ce => self.ecn.ce += 1,
        }
        let marked =
            arrival.ecn == Ecn::Ce && !std::mem::replace(&mut self.marked, arrival.ecn == Ecn::Ce);
        if !arrival.eliciting {
            return;
        }
        self.unacknowledged += 1;
        self.waiting_since.get_or_insert(now);
        self.unacknowledged_bytes += arrival.len;
        self.full = self.full.max(arrival.len);
        let sample = DataSample {
            len: arrival.len,
            push: arrival.last,
            mss: self.full,
            unacked_segments: self.unacknowledged,
            unacked_bytes: self.unacknowledged_bytes,
            window: arrival.window,
            window_not_shrunk: true,
            was_zero_window: false,
            window_grew: false,
            srtt: arrival.srtt,
            rto: arrival.pto,
        };
        let (decision, urgent) = match &mut self.timing {
            // A policy that was put here on purpose alone decides, but for disorder, which the transport acknowledges
            // whatever the policy, and for what was asked for by name.
            Timing::Profile(policy) => {
                if disorder {
                    policy.on_disorder(now, Disorder::Ahead, arrival.window);
                }
                (policy.on_data(now, &sample), arrival.at_once || gap)
            }
            Timing::Asked(delayed) => {
                let asked = arrival.at_once || arrival.last;
                (delayed.on_data(now, &sample), asked || marked || paused || gap)
            }
        };
        if decision == Decision::Now || urgent {
            self.due.get_or_insert(if gap { AckReason::OutOfOrder } else { AckReason::Policy });
        }
    }

    /// Numbers from the present largest up to `number` exclusive did not arrive yet.
    fn advance(&mut self, number: u64) {
        let first = self.largest.map_or(0, |largest| largest + 1);
        if number - first >= WINDOW {
            self.window.fill(0);
        } else {
            for missing in first..=number {
                let bit = missing % WINDOW;
                self.window[(bit / 64) as usize] &= !(1 << (bit % 64));
            }
        }
        self.largest = Some(number);
    }

    /// Whether `number` is the first to leave a missing one `reordering` behind; none does so 0 behind.
    fn gap_opens(&self, number: u64, reordering: u64) -> bool {
        let Some(largest) = self.largest.filter(|_| reordering > 0) else { return false };
        if number <= largest || number < reordering {
            return false;
        }
        let last = number - reordering;
        let first = (largest + 1).saturating_sub(reordering);
        (first.max(number.saturating_sub(WINDOW / 2))..=last)
            .any(|candidate| candidate > largest || !self.holds(candidate))
    }

    /// The sender asks for an ACK each `packets` or after `delay`; a gap calls for one when `reordering`
    /// numbers have passed it, 0 for never.
    pub(super) fn on_asked(&mut self, sequence: u64, packets: u64, delay: Span, reordering: u8) {
        if self.asked_sequence.is_some_and(|last| sequence <= last) {
            return;
        }
        self.asked_sequence = Some(sequence);
        self.reordering = u64::from(reordering);
        self.asked = delay;
        if let Timing::Asked(delayed) = &mut self.timing {
            delayed.adjust(packets.clamp(1, 1 << 16) as u32, delay);
        }
    }

    /// Whether an ACK should leave by itself.
    pub(super) const fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// Why the ACK that leaves now does.
    pub(super) fn reason(&self) -> AckReason {
        self.due.unwrap_or(AckReason::Piggyback)
    }

    /// Since when something has waited to be acknowledged.
    pub(super) const fn waiting_since(&self) -> Option<Time> {
        self.waiting_since
    }

    /// Whether there is anything that an ACK would tell.
    pub(super) const fn has_news(&self) -> bool {
        self.unacknowledged > 0
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.timing {
            Timing::Asked(delayed) => delayed.poll_timeout(),
            Timing::Profile(policy) => policy.poll_timeout(),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, pto: Span) {
        let decision = match &mut self.timing {
            Timing::Asked(delayed) => delayed.handle_timeout(now, pto),
            Timing::Profile(policy) => policy.handle_timeout(now, pto),
        };
        if decision == Decision::Now && self.unacknowledged > 0 {
            self.due.get_or_insert(AckReason::Timer);
        }
    }

    /// Writes an ACK of what arrived, as that of path `id`, if there is room; whether it did.
    pub(super) fn write_ack(&mut self, now: Time, id: u8, writer: &mut Writer<'_>) -> bool {
        let ranges = self.ranges().map(|range| *range.start()..*range.end() + 1);
        let ecn = Some(self.ecn).filter(|&ecn| ecn != EcnCounts::default());
        // How long the largest packet has waited for it.
        let delay = now.since(self.largest_at).as_micros();
        let written = ack::emit(writer, id, ranges, delay, ecn);
        if written {
            self.on_ack_sent(now);
        }
        written
    }

    /// An ACK left.
    fn on_ack_sent(&mut self, now: Time) {
        self.due = None;
        self.waiting_since = None;
        self.unacknowledged = 0;
        self.unacknowledged_bytes = 0;
        match &mut self.timing {
            Timing::Asked(delayed) => delayed.on_ack_sent(now),
            Timing::Profile(policy) => policy.on_ack_sent(now),
        }
    }

    /// What arrived, from the largest number downwards, as far as the window remembers.
    fn ranges(&self) -> Ranges<'_> {
        let next = self.largest;
        let floor = next.map_or(0, |largest| (largest + 1).saturating_sub(WINDOW));
        Ranges { received: self, next, floor }
    }
}

/// Iterates over what arrived.
#[derive(Clone, Debug)]
struct Ranges<'a> {
    received: &'a Received,
    next: Option<u64>,
    floor: u64,
}

impl Ranges<'_> {
    /// The largest number at or below `from` whose bit is `set`.
    fn nearest(&self, from: u64, set: bool) -> Option<u64> {
        let mut number = from;
        loop {
            let bit = number % WINDOW;
            let word = self.received.window[(bit / 64) as usize];
            let word = if set { word } else { !word };
            let below = word & (u64::MAX >> (63 - bit % 64));
            let floor_here = number - bit % 64;
            if below != 0 {
                let found = floor_here + u64::from(below.ilog2());
                return Some(found).filter(|&found| found >= self.floor);
            }
            if floor_here <= self.floor {
                return None;
            }
            number = floor_here - 1;
        }
    }
}

impl Iterator for Ranges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.nearest(self.next?, true)?;
        let gap = self.nearest(end, false);
        self.next = gap;
        Some(gap.map_or(self.floor, |gap| gap + 1)..=end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::ack::ack_rate_limit;
    use acklab_core::rng::Rng;

    fn arrival(number: u64) -> Arrival {
        Arrival {
            number,
            eliciting: true,
            at_once: false,
            last: false,
            len: 1000,
            window: 1 << 20,
            ecn: Ecn::NotEct,
            srtt: None,
            pto: Span::from_millis(100),
        }
    }

    #[test]
    fn the_ranges_are_what_arrived_within_the_window() {
        let mut rng = Rng::named(1, "test/received");
        for p in [0.0, 0.05, 0.5, 0.99] {
            let mut received = Received::new(None);
            let mut held = std::collections::BTreeSet::new();
            for number in 0..20_000 {
                if rng.chance(p) || !received.is_fresh(number) {
                    continue;
                }
                received.on_packet(Time::ZERO, &arrival(number));
                held.insert(number);
                if rng.chance(0.1) && number > 50 {
                    let late = number - rng.below(50);
                    assert_eq!(received.is_fresh(late), !held.contains(&late));
                    if received.is_fresh(late) {
                        received.on_packet(Time::ZERO, &arrival(late));
                        held.insert(late);
                    }
                }
            }
            let floor = held.last().map_or(0, |last| (last + 1).saturating_sub(WINDOW));
            let told: Vec<u64> = received.ranges().flat_map(RangeInclusive::rev).collect();
            let expected: Vec<u64> = held.range(floor..).rev().copied().collect();
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_replayed_or_outdated_number_is_not_fresh() {
        let mut received = Received::new(None);
        received.on_packet(Time::ZERO, &arrival(10_000));
        assert!(!received.is_fresh(10_000) && !received.is_fresh(10_000 - WINDOW));
        assert!(received.is_fresh(10_001 - WINDOW) && received.is_fresh(10_001));
    }

    #[test]
    fn every_second_packet_is_acknowledged_or_a_lone_one_after_the_delay() {
        let mut received = Received::new(None);
        let start = Time::ZERO + Span::from_millis(1);
        received.on_packet(start, &arrival(0));
        assert_eq!((received.is_due(), received.deadline()), (false, Some(start + FIRST_DELAY)));
        received.on_packet(start, &arrival(1));
        assert!(received.is_due());
        received.on_ack_sent(start);
        assert_eq!((received.is_due(), received.deadline()), (false, None));
        received.on_packet(start, &arrival(2));
        received.handle_timeout(start + FIRST_DELAY, Span::ZERO);
        assert!(received.is_due());
    }

    #[test]
    fn a_gap_calls_for_an_acknowledgment_once_it_is_three_numbers_old() {
        let mut received = Received::new(None);
        received.on_asked(1, 100, Span::from_millis(25), 3);
        let due = |received: &mut Received, number| {
            received.on_packet(Time::ZERO, &arrival(number));
            let due = received.is_due();
            if due {
                received.on_ack_sent(Time::ZERO);
            }
            due
        };
        let seen: Vec<bool> = [0, 1, 3, 4, 5, 6, 7].map(|n| due(&mut received, n)).to_vec();
        assert_eq!(seen, [false, false, false, false, true, false, false]);
        received.on_asked(2, 100, Span::from_millis(25), 0);
        assert!(![9, 12, 15, 18].into_iter().any(|number| due(&mut received, number)));
    }

    /// How many of these packets are acknowledged as they come.
    fn acks(received: &mut Received, numbers: std::ops::Range<u64>) -> usize {
        let due = |number: &u64| {
            received.on_packet(Time::ZERO, &arrival(*number));
            let due = received.is_due();
            if due {
                received.on_ack_sent(Time::ZERO);
            }
            due
        };
        numbers.filter(due).count()
    }

    #[test]
    fn a_policy_is_told_of_a_gap() {
        let options = ack_rate_limit::Options { start: 0, round: 10, ..Default::default() };
        let mut received = Received::new(Some(&Profile::AckRateLimit(options)));
        received.on_asked(1, 2, FIRST_DELAY, 0);
        acks(&mut received, 0..400);
        // More than 40 packets per ACK, less than a third of the window.
        assert_eq!(acks(&mut received, 400..480), 2, "limited");
        // 480 is missing, which 483 shows.
        assert_eq!(acks(&mut received, 481..483), 0);
        assert!(acks(&mut received, 483..493) >= 4, "it began anew");
    }

    #[test]
    fn a_gap_is_acknowledged_at_once_whatever_the_policy_unless_the_sender_does_not_want_it() {
        let policy = Profile::delayed(100, Span::from_millis(25));
        for (reordering, at_once) in [(3, 1), (0, 0)] {
            let mut received = Received::new(Some(&policy));
            received.on_asked(1, 2, FIRST_DELAY, reordering);
            assert_eq!(acks(&mut received, 0..10), 0);
            assert_eq!(acks(&mut received, 11..13), 0);
            assert_eq!(acks(&mut received, 13..14), at_once);
        }
    }
}
