//! Segment arrival, in the order of RFC 9293 section 3.10.7.4: sequence number, RST, SYN, ACK,
//! payload, FIN; with the checks of RFC 5961 (challenge ACKs) and PAWS (RFC 7323 section 5).
//!
//! Security and precedence, the third check, went with RFC 9293; the URG bit is ignored.
//! RFC 9293 returns SYN-RECEIVED to LISTEN on a SYN in the window; we challenge it as in the
//! synchronised states, because RFC 5961 section 4 closes just that hole.

use super::connection::{AppEvent, Connection};
use super::news::News;
use super::opening::reset_for;
use super::state::{Cause, State};
use super::timers::Timer;
use acklab_core::cc::CongestionControl;
use acklab_core::event::{AckReason, EventKind, Interest, Sink};
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::time::Time;

impl Connection {
    /// A packet arrived; one that is not of this connection is ignored.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, sink: &mut Sink) {
        let Body::Tcp(segment) = &packet.body else { return };
        if packet.returned {
            if (packet.src, packet.dst) == (self.flow.local, self.flow.remote) {
                self.on_returned(now, segment, sink);
            }
            return;
        }
        if packet.dst != self.flow.local {
            return;
        }
        if self.state == State::Listen {
            self.flow.remote = packet.src;
        } else if packet.src != self.flow.remote {
            return;
        }
        self.output_due = true;
        match self.state {
            State::Closed => self.on_segment_closed(segment),
            State::Listen => self.on_segment_listen(now, segment),
            State::SynSent => self.on_segment_syn_sent(now, segment),
            _ => self.on_segment(now, packet.ecn, segment, sink),
        }
    }

    fn on_segment(&mut self, now: Time, mark: Ecn, segment: &TcpRepr, sink: &mut Sink) {
        let rst = segment.flags.has(Flags::RST);
        let stamp = segment.options.timestamp.filter(|_| self.terms.timestamps);
        if !rst && stamp.is_some_and(|ts| self.terms.is_too_old(now, ts)) {
            self.acking.challenge(now);
            return;
        }
        let start = self.rcv.offset(segment.seq);
        if !self.is_acceptable(start, segment) {
            if !rst {
                self.on_unacceptable(now, segment);
            }
            return;
        }
        if rst {
            self.on_reset(now, start);
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.acking.challenge(now);
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.last_heard = now;
        self.probes = 0;
        if self.take_ack(now, segment, sink) {
            // RFC 7323 section 5.3 (R3) takes it before the ACK field is looked at / we after /
            // because RFC 5961 lets nothing count of a segment whose ACK field cannot be.
            if let Some(ts) = stamp.filter(|_| start <= self.acking.acked() as i64) {
                self.terms.on_timestamp(now, ts);
            }
            self.take_mark(now, mark, segment, sink);
            self.take_payload(now, start, segment);
            self.take_fin(now, start, segment);
        }
    }

    /// The four cases of RFC 9293 section 3.4, table 6. With a closed window a segment that begins
    /// at the next byte expected is let pass for its ACK, RST or FIN; its data finds no room.
    /// A bare ACK just beyond the window is let pass too, as in Linux: it says that data filled it.
    fn is_acceptable(&self, start: i64, segment: &TcpRepr) -> bool {
        let (nxt, window) = (self.rcv.nxt as i64, self.rcv.window() as i64);
        let len = i64::from(segment.seq_len());
        match (len, window) {
            (_, 0) => start == nxt,
            (0, _) => nxt <= start && start <= nxt + window,
            _ => start < nxt + window && start + len > nxt,
        }
    }

    /// An old duplicate, a probe, or a segment from elsewhere: acknowledge what we have.
    fn on_unacceptable(&mut self, now: Time, segment: &TcpRepr) {
        if segment.seq_len() == 0 {
            self.acking.challenge(now);
            return;
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        }
        self.acking.on_disorder(now, self.rcv.window());
    }

    /// RFC 5961 section 3.2: only an RST exactly at the next byte expected resets.
    fn on_reset(&mut self, now: Time, start: i64) {
        if start != self.rcv.nxt as i64 {
            self.acking.challenge(now);
            return;
        }
        if self.state == State::SynReceived && self.passive {
            self.go(Cause::ResetOfPassiveOpen);
            *self = Self::listen(self.config.clone(), self.flow.local, self.snd.isn);
            return;
        }
        self.go(Cause::Reset);
        self.end(AppEvent::Reset);
    }

    /// The ACK field; false where the segment must be dropped.
    fn take_ack(&mut self, now: Time, segment: &TcpRepr, sink: &mut Sink) -> bool {
        let ack = self.snd.offset(segment.ack);
        if self.state == State::SynReceived {
            if ack < 1 || ack > self.snd.max as i64 {
                self.reply = Some(reset_for(segment));
                return false;
            }
            self.go(Cause::AckOfSyn);
            self.establish(now, segment);
        }
        // RFC 5961 section 5.2.
        let oldest = self.snd.una as i64 - self.snd.max_wnd as i64;
        if ack < oldest || ack > self.snd.max as i64 {
            self.acking.challenge(now);
            return false;
        }
        let una = self.snd.una;
        let window_changed = self.take_window(ack, segment);
        let (sack_news, sacked) = self.take_sack(segment, ack);
        // RFC 5681 section 2; with SACK what counts is news (RFC 6675 section 2).
        let duplicate = if self.terms.sack {
            sack_news
        } else {
            ack == una as i64 && segment.seq_len() == 0 && !window_changed && self.snd.nxt > una
        };
        let ack = ack.max(una as i64) as u64;
        if ack > una || duplicate {
            self.take_news(now, News { ack, sacked, duplicate }, segment, sink);
        }
        self.take_echo(now, segment, sink);
        self.after_ack(now)
    }

    /// The send window; returns whether it changed (RFC 9293 section 3.10.7.4, fifth check).
    fn take_window(&mut self, ack: i64, segment: &TcpRepr) -> bool {
        let newer = segment.seq.after(self.snd.wl1)
            || (segment.seq == self.snd.wl1 && ack >= self.snd.wl2 as i64);
        if ack < self.snd.una as i64 || !(newer || ack > self.snd.una as i64) {
            return false;
        }
        let window = u64::from(segment.window) << self.terms.peer_scale;
        let changed = window != self.snd.wnd;
        self.snd.wnd = window;
        self.snd.max_wnd = self.snd.max_wnd.max(window);
        self.snd.wl1 = segment.seq;
        self.snd.wl2 = ack as u64;
        changed
    }

    /// SACK blocks; returns whether they bring news, and what it weighs. Blocks outside what was sent are
    /// ignored.
    fn take_sack(&mut self, segment: &TcpRepr, ack: i64) -> (bool, u64) {
        let (mut news, mut weight) = (false, 0);
        if !self.terms.sack || segment.options.sack.is_empty() {
            return (news, weight);
        }
        let floor = ack.max(self.snd.una as i64);
        for block in segment.options.sack.as_slice() {
            let (left, right) = (self.snd.offset(block.left), self.snd.offset(block.right));
            if left > floor && left < right && right <= self.snd.nxt as i64 {
                let (left, right) = (left as u64, right as u64);
                let (board, flight) = (&mut self.recovery.board, &self.flight);
                if !board.holds(left, right) {
                    let weigh = |left, right| flight.weigh(left, right);
                    weight += board.unmarked(left, right, weigh);
                    board.mark(left, right, weigh);
                    news = true;
                }
            }
        }
        (news, weight)
    }

    /// What an acknowledged FIN of ours means; false where nothing is left to process.
    fn after_ack(&mut self, now: Time) -> bool {
        if !self.snd.fin || self.snd.una <= self.send_buffer.end() {
            return true;
        }
        match self.state {
            State::FinWait1 => self.go(Cause::AckOfFin),
            State::Closing => {
                self.go(Cause::AckOfFin);
                self.timers.set(Timer::TimeWait, now + self.config.time_wait);
            }
            State::LastAck => {
                self.go(Cause::AckOfFin);
                self.end(AppEvent::Closed);
                return false;
            }
            _ => {}
        }
        true
    }

    fn take_payload(&mut self, now: Time, start: i64, segment: &TcpRepr) {
        if segment.payload_len == 0 || !self.state.may_receive() {
            return;
        }
        let end = start + i64::from(segment.payload_len);
        let limit = self.rcv.fin.map_or(i64::MAX, |fin| fin as i64);
        let (from, to) = (start.max(self.rcv.nxt as i64), end.min(limit));
        let arrival = self.rcv.insert(from as u64, to.max(from) as u64);
        if arrival.advanced > 0 {
            self.notices.add(AppEvent::Readable);
        }
        if arrival.gap || arrival.refused > 0 || arrival.advanced == 0 || from > start {
            self.acking.on_disorder(now, self.rcv.window());
        } else {
            let grew = self.rcv.grow(segment.payload_len, self.terms.full_segment(0));
            let at = self.surroundings();
            let push = segment.flags.has(Flags::PSH);
            self.acking.on_data(now, (segment.payload_len, push), grew, &at);
        }
    }

    fn take_fin(&mut self, now: Time, start: i64, segment: &TcpRepr) {
        if segment.flags.has(Flags::FIN) && self.rcv.fin.is_none() && self.state.may_receive() {
            let fin = start + i64::from(segment.payload_len);
            if fin >= self.rcv.highest() as i64 {
                self.rcv.fin = Some(fin as u64);
            }
        }
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        self.rcv.nxt += 1;
        self.notices.add(AppEvent::PeerClosed);
        self.acking.demand(AckReason::Control);
        self.go(Cause::Fin);
        if self.state == State::TimeWait {
            self.timers.set(Timer::TimeWait, now + self.config.time_wait);
        }
    }

    /// Tells the congestion state to whoever listens.
    pub(super) fn tell_congestion(&self, now: Time, sink: &mut Sink) {
        if sink.wants(Interest::CONGESTION) {
            let state = self.cc.snapshot();
            sink.record(
                now,
                EventKind::Congestion {
                    flow: self.flow,
                    cwnd: state.cwnd,
                    ssthresh: state.ssthresh,
                    in_flight: self.in_flight(),
                    acked: self.snd.una,
                },
            );
        }
    }
}
