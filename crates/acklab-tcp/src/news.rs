//! What each ACK tells: round trip, delivered and lost bytes, the start of recovery; and the one
//! [`AckSample`] that the congestion control gets of it.
//!
//! An ACK is news if it advances, SACKs something new or, without SACK, is a duplicate by RFC 5681
//! section 2. What arrived is counted once, in what the window counts ([`super::flight`]): with SACK when they are first reported; without, a
//! duplicate counts as one segment on account, which the next cumulative ACKs settle (of each of them
//! one segment, the hole it filled, cannot have been on account). After the peer's SACKs were thrown
//! away (second time-out in a row) bytes may count twice.

use super::connection::{AppEvent, Connection};
use super::recovery::Phase;
use super::timers::Timer;
use acklab_core::cc::{AckSample, CongestionControl, LossSample};
use acklab_core::event::{EventKind, Sink};
use acklab_core::segment::TcpRepr;
use acklab_core::time::{Span, Time};

/// What an ACK said of our data.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    /// Its acknowledgment number, or our oldest unacknowledged offset where that is later.
    pub(super) ack: u64,
    /// What it was the first to SACK, as the window counts it.
    pub(super) sacked: u64,
    /// It counts towards the threshold of duplicates.
    pub(super) duplicate: bool,
}

/// Deliveries that duplicate ACKs showed and no cumulative ACK has confirmed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account(u64);

impl Account {
    /// A duplicate ACK with `in_flight` unacknowledged; returns what it delivered.
    fn on_duplicate(&mut self, in_flight: u64, mss: u64) -> u64 {
        // The segment that is missing is not among them.
        let delivered = in_flight.saturating_sub(mss + self.0).min(mss);
        self.0 += delivered;
        delivered
    }

    /// `acked` is acknowledged; returns what of it had not been counted.
    fn on_advance(&mut self, acked: u64, mss: u64) -> u64 {
        let delivered = acked.saturating_sub(self.0).max(acked.min(mss));
        self.0 = self.0.saturating_sub(acked - delivered);
        delivered
    }
}

impl Connection {
    /// An ACK with news.
    pub(super) fn take_news(&mut self, now: Time, news: News, segment: &TcpRepr, sink: &mut Sink) {
        let (before, in_flight) = (self.snd.una, self.flight_size());
        let advanced = news.ack > before;
        let acked = self.flight.weigh(before, news.ack);
        let state = self.cc.snapshot();
        let cwnd_limited = self.usage.is_limited(state);
        let in_fast_recovery = self.recovery.phase == Phase::Fast;
        let delivered = self.newly_delivered(news, acked);
        let rtt = if advanced { self.take_rtt_sample(now, news.ack, segment) } else { None };
        if advanced {
            self.advance(now, news.ack, acked, in_fast_recovery);
        }
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let duplicate = news.duplicate && self.returned.covers(una).is_none();
        let entered = duplicate && self.recovery.on_duplicate(una, nxt, &self.flight).entered;
        let ece = self.ecn.is_echo(segment);
        let lost = self.recovery.take_lost(una, nxt, &self.flight);
        let rate = self.rate.as_mut().and_then(|rate| {
            rate.on_ack(una, &self.recovery.board, news.duplicate);
            rate.sample(now, (delivered, lost), rtt)
        });
        let sample = AckSample {
            acked,
            delivered,
            lost,
            ece,
            rate,
            in_flight,
            rtt,
            srtt: self.rtt.srtt(),
            cwnd_limited,
            in_fast_recovery,
        };
        self.cc.on_ack(now, &sample);
        if advanced {
            self.after_advance(now, news.ack);
        }
        if advanced || self.cc.snapshot() != state {
            self.tell_congestion(now, sink);
        }
        if entered {
            self.ecn.on_reduction(nxt);
            self.cc.on_loss(now, &LossSample { in_flight: self.flight_size(), ece });
            sink.record(now, EventKind::Loss { flow: self.flow, timeout: false });
            self.tell_congestion(now, sink);
        }
    }

    /// What `news` is the first to report, cumulatively `acked` of it; the scoreboard knows the SACKed
    /// part already and the cumulative one not yet.
    fn newly_delivered(&mut self, news: News, acked: u64) -> u64 {
        let (una, flight, board) = (self.snd.una, &self.flight, &self.recovery.board);
        if self.terms.sack && board.is_empty() {
            acked
        } else if self.terms.sack {
            let weigh = |left, right| flight.weigh(left, right);
            news.sacked + board.unmarked(una, news.ack, weigh)
        } else if news.ack > una {
            self.account.on_advance(acked, flight.mss)
        } else {
            self.account.on_duplicate(self.flight_size(), self.flight.mss)
        }
    }

    /// The cumulative acknowledgment moves.
    fn advance(&mut self, now: Time, ack: u64, acked: u64, in_fast_recovery: bool) {
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.max(ack);
        self.attempts = 0;
        self.returned.advance(ack);
        if self.recovery.on_advance(ack, acked, &self.flight).left && in_fast_recovery {
            self.cc.on_recovered(now);
        }
    }

    /// The congestion control knows of the advance: the timer (RFC 6298 sections 5.2 and 5.3) and the
    /// application follow.
    fn after_advance(&mut self, now: Time, ack: u64) {
        if self.in_flight() > 0 {
            self.arm_retransmission(now);
        } else {
            self.timers.stop(Timer::Retransmit);
        }
        if self.send_buffer.was_full && self.send_buffer.room(ack) > 0 {
            self.send_buffer.was_full = false;
            self.notices.add(AppEvent::Writable);
        }
    }

    /// Measures the round trip of the newest segment that `ack` covers, where Karn's algorithm or a
    /// timestamp allows it.
    pub(super) fn take_rtt_sample(
        &mut self,
        now: Time,
        ack: u64,
        segment: &TcpRepr,
    ) -> Option<Span> {
        let newest = self.flight.acknowledge(ack);
        let once = self.snd.una >= self.recovery.karn_below;
        let rtt = if once {
            newest.map(|at| now.since(at))
        } else {
            segment.options.timestamp.and_then(|ts| self.terms.echoed_rtt(now, ts))
        };
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
        }
        rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_and_partial_acks_count_every_delivery_once() {
        // Ten segments of 100, of which the first and the sixth are lost.
        let mut account = Account::default();
        let duplicates: u64 = (0..8).map(|_| account.on_duplicate(1000, 100)).sum();
        assert_eq!(duplicates, 800);
        assert_eq!(account.on_advance(500, 100), 100, "the hole it filled");
        assert_eq!(account.on_advance(500, 100), 100, "the rest was on account");
        assert_eq!(account.on_advance(100, 100), 100, "settled");
    }

    #[test]
    fn duplicates_deliver_no_more_than_is_out_but_the_missing_segment() {
        let mut account = Account::default();
        let delivered: u64 = (0..50).map(|_| account.on_duplicate(1000, 100)).sum();
        assert_eq!(delivered, 900);
    }
}
