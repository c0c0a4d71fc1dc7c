//! [`LongestHold`]: the exchange in which a message waited longest for an ACK, for a report to draw.
//!
//! Built from the run's own events, so that every time in it is exact: a segment leaves, the
//! receiver acknowledges it late, and what was written meanwhile leaves with that ACK. Exchanges
//! with a loss in them are passed over.

use acklab_core::event::AckReason;
use acklab_core::time::{Span, Time};
use acklab_lab::held::HeldExchange;

/// Watches the events of one direction.
#[derive(Debug, Default)]
pub(super) struct LongestHold {
    last: Option<(Time, u32)>,
    ack: Option<(Time, Span, AckReason)>,
    written: Vec<Time>,
    longest: Option<HeldExchange>,
}

impl LongestHold {
    /// A message's last byte is about to leave.
    pub(super) fn on_message_sent(&mut self, written_at: Time) {
        self.written.push(written_at);
    }

    /// The receiver acknowledged what had waited for `delay`.
    pub(super) fn on_ack(&mut self, now: Time, delay: Span, reason: AckReason) {
        if self.last.is_some_and(|(sent, _)| now - delay >= sent) {
            self.ack.get_or_insert((now, delay, reason));
        }
    }

    /// A data segment left.
    pub(super) fn on_segment(&mut self, now: Time, bytes: u32, retransmission: bool) {
        let (last, ack) = (self.last.take(), self.ack.take());
        if let (Some((sent, sent_bytes)), Some((acked, delay, reason)), false) =
            (last, ack, retransmission)
        {
            let held = self.written.first().map_or(Span::ZERO, |first| now.since(*first));
            let longest = self.longest.as_ref().map_or(Span::ZERO, HeldExchange::wait);
            if acked <= now && held > longest {
                self.longest = Some(HeldExchange {
                    sent,
                    bytes: sent_bytes,
                    arrived: acked - delay,
                    acked,
                    reason,
                    released: now,
                    held_bytes: bytes,
                    written: self.written.clone(),
                });
            }
        }
        self.written.clear();
        if !retransmission {
            self.last = Some((now, bytes));
        }
    }

    /// The exchange with the longest wait, if anything waited.
    pub(super) fn into_longest(self) -> Option<HeldExchange> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_longest_of_two_waits_is_kept_with_its_times() {
        let mut hold = LongestHold::default();
        let ms = Span::from_millis;
        hold.on_segment(at(0), 100, false);
        hold.on_ack(at(215), ms(200), AckReason::Timer);
        hold.on_message_sent(at(100));
        hold.on_message_sent(at(200));
        hold.on_segment(at(230), 200, false);
        hold.on_ack(at(445), ms(200), AckReason::Timer);
        hold.on_message_sent(at(400));
        hold.on_segment(at(460), 100, false);
        let longest = hold.into_longest().expect("a wait");
        assert_eq!(longest.wait(), ms(130));
        assert_eq!((longest.arrived, longest.acked, longest.released), (at(15), at(215), at(230)));
        assert_eq!(longest.written, [at(100), at(200)]);
    }

    #[test]
    fn what_leaves_at_once_or_after_a_loss_is_no_hold() {
        let mut hold = LongestHold::default();
        hold.on_message_sent(at(0));
        hold.on_segment(at(0), 100, false);
        hold.on_ack(at(15), Span::ZERO, AckReason::Read);
        hold.on_message_sent(at(100));
        hold.on_segment(at(100), 100, false);
        hold.on_segment(at(300), 100, true);
        hold.on_ack(at(315), Span::ZERO, AckReason::OutOfOrder);
        hold.on_message_sent(at(200));
        hold.on_segment(at(330), 100, false);
        assert_eq!(hold.into_longest(), None);
    }
}
