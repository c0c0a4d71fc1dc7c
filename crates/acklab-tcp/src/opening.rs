//! The opening of a connection: segment arrival in CLOSED, LISTEN and SYN-SENT (RFC 9293 sections
//! 3.10.7.1 to 3.10.7.3), our SYN, and what begins when it is acknowledged.

use super::connection::{AppEvent, Connection};
use super::rate::RateSampler;
use super::state::{Cause, State};
use acklab_core::cc::{CongestionControl as _, Start};
use acklab_core::event::AckReason;
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;

impl Connection {
    /// No connection: anything but an RST is answered with one (section 3.10.7.1).
    pub(super) fn on_segment_closed(&mut self, segment: &TcpRepr) {
        if !segment.flags.has(Flags::RST) {
            self.reply = Some(reset_for(segment));
        }
    }

    /// Section 3.10.7.2.
    pub(super) fn on_segment_listen(&mut self, now: Time, segment: &TcpRepr) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            self.reply = Some(reset_for(segment));
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.take_syn(now, segment);
            self.go(Cause::Syn);
            self.syn_due = true;
        }
    }

    /// Section 3.10.7.3.
    pub(super) fn on_segment_syn_sent(&mut self, now: Time, segment: &TcpRepr) {
        let acks = segment.flags.has(Flags::ACK);
        // Only our SYN can be acknowledged here.
        if acks && segment.ack != self.snd.seq(1) {
            if !segment.flags.has(Flags::RST) {
                self.reply = Some(reset_for(segment));
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks {
                self.go(Cause::Reset);
                self.end(AppEvent::Reset);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) || self.snd.max == 0 {
            return;
        }
        self.take_syn(now, segment);
        if acks {
            self.go(Cause::SynAck);
            self.establish(now, segment);
            self.acking.demand(AckReason::Control);
        } else {
            self.go(Cause::Syn);
            self.syn_due = true;
        }
    }

    /// The peer's SYN: its sequence number, options and window.
    fn take_syn(&mut self, now: Time, segment: &TcpRepr) {
        self.terms.on_syn(now, &self.config, &segment.options);
        self.flight.mss = u64::from(self.terms.full_segment(0));
        self.recovery.use_sack(self.terms.sack);
        self.ecn.on_syn(self.config.ecn, segment.flags);
        self.rcv.on_syn(segment.seq);
        // RFC 7323 section 2.2: the window of a SYN is never scaled.
        self.snd.wnd = u64::from(segment.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = segment.seq;
        self.snd.wl2 = 0;
    }

    /// Our SYN is acknowledged by `segment`; the state is ESTABLISHED already.
    pub(super) fn establish(&mut self, now: Time, segment: &TcpRepr) {
        let syn_was_lost = self.attempts > 0;
        self.take_rtt_sample(now, 1, segment);
        if syn_was_lost {
            self.rtt.on_syn_timeout();
        }
        self.syn_due = false;
        self.snd.una = 1;
        self.timers.stop(super::timers::Timer::Retransmit);
        let mss = self.terms.full_segment(0);
        // RFC 5681 section 3.1: one segment where the SYN or its answer was lost, or seems so.
        let forgiven = self.attempts <= self.config.forgiven_syns;
        let initial_window =
            if forgiven { self.config.initial_window.bytes(mss) } else { u64::from(mss) };
        let initial_ssthresh = self.config.initial_ssthresh.unwrap_or(u64::MAX);
        self.attempts = 0;
        self.cc = self.config.congestion.controller(&Start {
            mss,
            initial_window,
            initial_ssthresh,
            seed: u64::from(self.snd.isn.0),
        });
        self.rate = self.cc.wants_rate().then(|| Box::new(RateSampler::new(now)));
        debug_assert!(self.cc.cwnd() >= u64::from(mss));
        self.arm_keep_alive(now);
        self.notices.add(AppEvent::Connected);
        if self.snd.fin {
            self.go(Cause::Close);
        }
    }

    /// Our SYN or SYN-ACK; the retransmission timer runs from here.
    pub(super) fn syn(&mut self, now: Time) -> TcpRepr {
        self.syn_due = false;
        let answering = self.state == State::SynReceived;
        if self.snd.max == 0 {
            (self.snd.nxt, self.snd.max) = (1, 1);
            self.flight.push(1, now);
        } else if self.attempts > 0 {
            self.recovery.karn_below = 1;
        }
        self.arm_retransmission(now);
        let options = self.terms.syn_options(now, &self.config, answering);
        // Not scaled here (RFC 7323 section 2.2), but the buffer is what it is.
        let window = self.rcv.announce(u32::from(self.config.mss), 0);
        let ecn = self.ecn.offer(self.config.ecn, answering);
        if !answering {
            return TcpRepr {
                seq: self.snd.isn,
                flags: Flags::SYN.with(ecn),
                window: u16::try_from(self.config.receive_buffer).unwrap_or(u16::MAX),
                options,
                ..TcpRepr::default()
            };
        }
        self.acking.on_sent(now, self.rcv.nxt, window == 0);
        TcpRepr {
            seq: self.snd.isn,
            ack: self.rcv.seq(self.rcv.nxt),
            flags: Flags::SYN.with(Flags::ACK).with(ecn),
            window,
            options,
            payload_len: 0,
        }
    }

    /// An RST in order, for an abort of ours.
    pub(super) fn reset_of_ours(&self) -> TcpRepr {
        TcpRepr {
            seq: self.snd.seq(self.snd.max),
            ack: self.rcv.seq(self.rcv.nxt),
            flags: Flags::RST.with(Flags::ACK),
            ..TcpRepr::default()
        }
    }
}

/// The RST that answers a segment which belongs to no connection (RFC 9293 section 3.10.7.1).
pub(super) fn reset_for(segment: &TcpRepr) -> TcpRepr {
    if segment.flags.has(Flags::ACK) {
        TcpRepr { seq: segment.ack, flags: Flags::RST, ..TcpRepr::default() }
    } else {
        TcpRepr {
            seq: Seq(0),
            ack: segment.seq + segment.seq_len(),
            flags: Flags::RST.with(Flags::ACK),
            ..TcpRepr::default()
        }
    }
}
