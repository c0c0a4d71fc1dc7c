//! Segment arrival, in the order of RFC 9293 section 3.10.7: in CLOSED, LISTEN and SYN-SENT, and then
//! sequence number, RST, SYN, ACK, payload, FIN; with the checks of RFC 5961 (challenge ACKs) and PAWS (RFC
//! 7323 section 5).
//!
//! Security and precedence, the third check, went with RFC 9293; the URG bit is ignored.
//! RFC 9293 returns SYN-RECEIVED to LISTEN on a SYN in the window; we challenge it as in the
//! synchronised states, because RFC 5961 section 4 closes just that hole.

use crate::config::Config;
use crate::life::Life;
use crate::options::Terms;
use crate::receive::{Receiver, Timing};
use crate::send::Sender;
use crate::state::{Cause, State};
use acklab_core::ack::Disorder;
use acklab_core::event::{AckReason, EventKind, FlowKey, Interest, Sink};
use acklab_core::notices::AppEvent;
use acklab_core::packet::Ecn;
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use std::ops::Range;

/// A segment that arrived, and whom it concerns.
pub(super) struct Arrival<'a> {
    pub(super) now: Time,
    pub(super) flow: FlowKey,
    pub(super) config: &'a Config,
    /// The state in which it finds the connection.
    pub(super) state: State,
    pub(super) mark: Ecn,
    pub(super) segment: &'a TcpRepr,
    pub(super) life: &'a mut Life,
    pub(super) tx: &'a mut Sender,
    pub(super) rx: &'a mut Receiver,
    pub(super) sink: &'a mut Sink,
    /// The segment that answers it at once.
    pub(super) reply: &'a mut Option<TcpRepr>,
}

/// The states before the SYNs are exchanged.
impl Arrival<'_> {
    /// Takes the segment; returns which bytes of the stream, from 0, are kept of it.
    pub(super) fn take(&mut self) -> Range<u64> {
        if matches!(self.state, State::Closed | State::Listen | State::SynSent) {
            self.take_first();
            return 0..0;
        }
        self.in_order_of_checks()
    }

    #[cold]
    fn take_first(&mut self) {
        match self.state {
            State::Listen => self.in_listen(),
            State::SynSent => self.in_syn_sent(),
            _ => self.in_closed(),
        }
    }

    fn has(&self, flag: Flags) -> bool {
        self.segment.flags.has(flag)
    }

    /// No connection: anything but an RST is answered with one (section 3.10.7.1).
    fn in_closed(&mut self) {
        *self.reply = reset_for(self.segment);
    }

    /// Section 3.10.7.2.
    fn in_listen(&mut self) {
        if self.has(Flags::RST) {
            return;
        }
        if self.has(Flags::ACK) {
            *self.reply = reset_for(self.segment);
        } else if self.has(Flags::SYN) {
            self.answer_syn();
        }
    }

    /// Section 3.10.7.3.
    fn in_syn_sent(&mut self) {
        let acks = self.has(Flags::ACK);
        // Only our SYN can be acknowledged here.
        if acks && self.segment.ack != self.tx.seq(1) {
            return self.in_closed();
        }
        if self.has(Flags::RST) {
            if acks {
                self.life.on_reset();
            }
            return;
        }
        if !self.has(Flags::SYN) || !self.tx.is_opened() {
            return;
        }
        if acks {
            self.take_syn();
            self.establish(Cause::SynAck);
            self.rx.demand(AckReason::Control);
        } else {
            self.answer_syn();
        }
    }

    fn answer_syn(&mut self) {
        self.take_syn();
        self.life.go(Cause::Syn);
        self.tx.open();
    }

    /// The peer's SYN: its sequence number, options and window.
    fn take_syn(&mut self) {
        let terms = Terms::agree(self.config, self.segment);
        self.tx.on_syn(self.flow, terms, self.segment);
        self.rx.on_syn(self.now, terms, self.segment);
    }

    #[cold]
    fn establish(&mut self, cause: Cause) {
        self.tx.establish(self.now, self.config, self.segment);
        self.life.establish(self.now, cause, self.tx.is_closed());
    }
}

/// Section 3.10.7.4.
impl Arrival<'_> {
    fn in_order_of_checks(&mut self) -> Range<u64> {
        let (now, segment) = (self.now, self.segment);
        let rst = self.has(Flags::RST);
        if !rst && self.rx.is_too_old(now, segment) {
            self.rx.challenge(now);
        } else if !self.rx.is_acceptable(segment) {
            if !rst {
                self.on_unacceptable();
            }
        } else if rst {
            self.on_reset();
        } else if self.has(Flags::SYN) {
            self.rx.challenge(now);
        } else if self.has(Flags::ACK) {
            self.rx.on_heard(now);
            if self.take_ack() {
                return self.take_payload();
            }
        }
        0..0
    }

    /// An old duplicate, a probe, or a segment from elsewhere: acknowledge what we have.
    #[cold]
    fn on_unacceptable(&mut self) {
        if self.segment.seq_len() == 0 {
            return self.rx.challenge(self.now);
        }
        if self.has(Flags::FIN) {
            self.life.wait_if_over(self.now);
        }
        self.rx.on_disorder(self.now, Disorder::Repeated);
    }

    /// RFC 5961 section 3.2: only an RST exactly at the next byte expected resets.
    #[cold]
    fn on_reset(&mut self) {
        if self.segment.seq != self.rx.next_expected() {
            return self.rx.challenge(self.now);
        }
        self.life.on_reset();
    }

    /// The ACK field; false where the segment must be dropped.
    fn take_ack(&mut self) -> bool {
        let (now, segment) = (self.now, self.segment);
        if self.state == State::SynReceived {
            if !self.tx.is_syn_acked(segment) {
                *self.reply = reset_for(segment);
                return false;
            }
            self.establish(Cause::AckOfSyn);
        }
        let Some(outcome) = self.tx.on_ack(now, segment, self.sink) else {
            self.rx.challenge(now);
            return false;
        };
        if outcome.writable {
            self.life.notify(AppEvent::Writable);
        }
        let closing = matches!(self.state, State::FinWait1 | State::Closing | State::LastAck);
        !closing || !self.tx.is_finished() || self.life.on_fin_acked(now)
    }

    /// Timestamp, mark, payload and FIN; returns which bytes of the stream are kept.
    #[inline]
    fn take_payload(&mut self) -> Range<u64> {
        let (now, segment) = (self.now, self.segment);
        self.rx.take_timestamp(now, segment);
        if self.reply.is_none() && self.rx.is_turn_of_marks(self.mark, segment) {
            self.acknowledge_pending();
        }
        let timing = Timing { srtt: self.tx.srtt(), rto: self.tx.rto() };
        let heard = self.rx.take(now, self.mark, segment, timing);
        if self.sink.wants(Interest::CONGESTION)
            && let Some([segments, most]) = self.rx.poll_rate()
        {
            self.sink.record(now, EventKind::AckRate { flow: self.flow, segments, most });
        }
        if heard.readable {
            self.life.notify(AppEvent::Readable);
        }
        if heard.finished {
            self.life.on_fin(now);
        }
        heard.kept
    }

    /// A bare ACK for what arrived before the present segment.
    fn acknowledge_pending(&mut self) {
        let ack = self.rx.segment(self.now, self.tx.next_to_send(), Flags(0), 0);
        if let Some(sent) = self.rx.on_sent(self.now, &ack) {
            let (flow, reason, delay) = (self.flow, AckReason::Policy, sent.delay);
            self.sink.record(self.now, EventKind::AckSent { flow, reason, delay });
        }
        *self.reply = Some(ack);
    }
}

/// The RST that answers a segment which belongs to no connection; an RST has no answer (RFC 9293 section
/// 3.10.7.1).
pub fn reset_for(segment: &TcpRepr) -> Option<TcpRepr> {
    let reset = if segment.flags.has(Flags::ACK) {
        TcpRepr { seq: segment.ack, flags: Flags::RST, ..TcpRepr::default() }
    } else {
        TcpRepr {
            seq: Seq(0),
            ack: segment.seq + segment.seq_len(),
            flags: Flags::RST.with(Flags::ACK),
            ..TcpRepr::default()
        }
    };
    (!segment.flags.has(Flags::RST)).then_some(reset)
}
