//! What may leave now: retransmissions, new data under the peer's window, the congestion window,
//! Nagle and sender SWS avoidance (RFC 9293 section 3.8.6.2.1), probes and bare ACKs, in that order.

use super::connection::Connection;
use super::nagle::Nagle;
use super::recovery::Again;
use super::state::State;
use super::timers::Timer;
use acklab_core::ack::AckPolicy;
use acklab_core::cc::{CongestionControl, SentSample};
use acklab_core::event::{AckReason, EventKind, Interest, Release, Sink};
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{Flags, SackBlocks, TcpOptions, TcpRepr};
use acklab_core::time::Time;

/// What stands in the way of new data, or how much of it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing waits.
    Nothing,
    /// The peer's window, or sender SWS avoidance.
    Window,
    /// The congestion window.
    Congestion,
    /// Nagle or CORK.
    Held,
    /// A segment up to this offset, the FIN's own included.
    Send { end: u64, full: bool },
}

impl Connection {
    /// The next packet, if any may leave.
    pub(super) fn next_packet(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        while let Some(message) = self.send_buffer.announce() {
            sink.record(
                message.written_at,
                EventKind::MessageWritten { flow: self.flow, id: message.id, bytes: message.bytes },
            );
        }
        match self.state {
            State::SynSent | State::SynReceived if self.syn_due => {
                let syn = self.syn(now);
                self.tell_segment(now, &syn, self.attempts > 0, sink);
                Some(self.packet(syn))
            }
            State::Closed | State::Listen | State::SynSent => None,
            State::SynReceived => self.bare_ack(now, sink),
            _ => self.next_segment(now, sink),
        }
    }

    /// A packet of this connection.
    pub(super) fn packet(&self, segment: TcpRepr) -> Packet {
        Packet {
            src: self.flow.local,
            dst: self.flow.remote,
            ecn: Ecn::NotEct,
            returned: false,
            body: Body::Tcp(segment),
        }
    }

    fn next_segment(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        if self.state.may_send() {
            let blocks = self.sack_blocks().as_slice().len();
            let mss = self.terms.full_segment(blocks as u32);
            if let Some(packet) = self.next_of_stream(now, mss, sink) {
                return Some(packet);
            }
            if std::mem::take(&mut self.probe_due) {
                return Some(self.probe(now, mss, sink));
            }
        }
        if std::mem::take(&mut self.keep_alive_due) {
            let start = self.snd.nxt - 1;
            return Some(self.emit(now, start, start, false, sink));
        }
        self.bare_ack(now, sink)
    }

    /// Lost data first, then new data, then what is only perhaps lost (RFC 6675 `NextSeg`).
    fn next_of_stream(&mut self, now: Time, mss: u32, sink: &mut Sink) -> Option<Packet> {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        if !self.returned.is_empty()
            && let Some(again) = self.next_returned(now, mss)
        {
            let packet = self.resend_if_room(now, again, sink)?;
            self.on_returned_resent(now, again);
            return Some(packet);
        }
        while let Some(lost) = self.recovery.next_lost(una, nxt, mss, &self.flight) {
            match self.returned.covers(lost.start) {
                Some(end) => self.recovery.pass_over(end),
                None => return self.resend_if_room(now, lost, sink),
            }
        }
        let fresh = self.next_new(mss);
        self.window_blocked = fresh == Next::Window;
        match fresh {
            Next::Send { .. } if self.must_wait(now) => return None,
            Next::Send { end, full } => return Some(self.send_new(now, end, full, sink)),
            Next::Held => {
                self.note_app_limited();
                self.hold(now, sink);
            }
            Next::Nothing => self.note_app_limited(),
            Next::Congestion | Next::Window => {}
        }
        self.note_usage(fresh == Next::Congestion);
        loop {
            let doubtful = self.recovery.next_doubtful(una, nxt, mss)?;
            match self.returned.covers(doubtful.start) {
                Some(end) => self.recovery.pass_over(end),
                None => return self.resend_if_room(now, doubtful, sink),
            }
        }
    }

    /// Decides about new data.
    fn next_new(&self, mss: u32) -> Next {
        let (una, nxt, data_end) = (self.snd.una, self.snd.nxt, self.send_buffer.end());
        if nxt > data_end || (nxt == data_end && !self.snd.fin) {
            return Next::Nothing;
        }
        let pending = data_end - nxt;
        let usable = (una + self.snd.wnd).saturating_sub(nxt);
        let len = pending.min(u64::from(mss)).min(usable);
        let full = len >= u64::from(mss);
        let takes_all = len == pending;
        if len == 0 && (pending > 0 || (usable == 0 && nxt > una)) {
            return Next::Window;
        }
        if !full && !takes_all && 2 * len < self.snd.max_wnd {
            return Next::Window;
        }
        let early =
            if self.config.limited_transmit { self.recovery.limited_transmit(mss) } else { 0 };
        let limit = self.cc.cwnd() + early;
        if len > 0 && self.pipe() + self.flight.weigh_one(len) > limit {
            return Next::Congestion;
        }
        let fin = self.snd.fin && takes_all;
        // BSD, against RFC 9293's bracket: half the largest window ever seen is as good as an MSS.
        let as_good_as_full =
            full || (self.holding.nagle == Nagle::Bsd && 2 * len >= self.snd.max_wnd);
        if !as_good_as_full && !fin && takes_all && self.holding.holds(nxt + len, una, nxt) {
            return Next::Held;
        }
        Next::Send { end: nxt + len + u64::from(fin), full }
    }

    /// New data, or the FIN, leaves.
    fn send_new(&mut self, now: Time, end: u64, full: bool, sink: &mut Sink) -> Packet {
        let start = self.snd.nxt;
        let idle = start == self.snd.una;
        if idle && self.config.idle_restart {
            let silent = self.last_sent.is_some_and(|last| now.since(last) > self.rtt.rto());
            if silent {
                self.cc.on_idle(now);
            }
        }
        if let Some(since) = self.holding.since.take() {
            let by = if full {
                Release::Full
            } else if end <= self.holding.flush_below && self.holding.flushed_by_timer {
                Release::Timer
            } else if end <= self.holding.flush_below || end > self.send_buffer.end() {
                Release::Flush
            } else {
                Release::Ack
            };
            let bytes = (end.min(self.send_buffer.end()) - start) as u32;
            let held = now.since(since);
            sink.record(now, EventKind::Released { flow: self.flow, bytes, held, by });
        }
        if !full && end > start {
            self.holding.small_end = end;
        }
        self.note_departure(now, start, end);
        self.snd.nxt = end;
        self.snd.max = self.snd.max.max(end);
        self.flight.push(end, now);
        self.last_sent = Some(now);
        self.tell_sent_messages(now, sink);
        let mut packet = self.emit(now, start, end, false, sink);
        self.ecn.dress(&mut packet);
        packet
    }

    /// For the delivery rate, before the stretch counts as being on the way.
    fn note_departure(&mut self, now: Time, start: u64, end: u64) {
        if self.rate.is_some() {
            let (pipe, weight) = (self.pipe(), self.flight.weigh_one(end - start));
            if let Some(rate) = &mut self.rate {
                rate.on_sent(now, (start, end), weight, pipe);
            }
        }
    }

    /// Nothing more leaves now: `blocked` by the congestion window, or by something else.
    fn note_usage(&mut self, blocked: bool) {
        if self.snd.una == self.snd.nxt {
            return;
        }
        let limited = blocked || self.pipe() >= self.cc.cwnd();
        self.usage.note(limited, self.flight_size(), (self.snd.una, self.snd.nxt));
    }

    fn tell_sent_messages(&mut self, now: Time, sink: &mut Sink) {
        while let Some(message) = self.send_buffer.pop_sent(self.snd.max) {
            sink.record(
                now,
                EventKind::MessageSent {
                    flow: self.flow,
                    id: message.id,
                    written_at: message.written_at,
                },
            );
        }
    }

    /// Nagle or CORK holds the rest back.
    fn hold(&mut self, now: Time, sink: &mut Sink) {
        if self.holding.since.is_none() {
            self.holding.since = Some(now);
            self.holding.flushed_by_timer = false;
            let bytes = self.unsent() as u32;
            sink.record(now, EventKind::Held { flow: self.flow, bytes });
        }
        if self.holding.cork {
            self.arm_cork(now);
        }
    }

    fn resend_if_room(&mut self, now: Time, again: Again, sink: &mut Sink) -> Option<Packet> {
        let weight = self.flight.weigh_one(again.end - again.start);
        if !again.is_forced() && self.pipe() + weight > self.cc.cwnd() {
            self.note_usage(true);
            return None;
        }
        if self.must_wait(now) {
            return None;
        }
        self.note_departure(now, again.start, again.end);
        self.recovery.on_resent(again);
        self.flight.cut_again(now, again.start, again.end);
        let weigh = |left, right| self.flight.weigh(left, right);
        self.recovery.board.weigh_again(again.start, again.end, weigh);
        // The timer watches the oldest segment: sent again, that has its time anew, as in 4.4BSD and Linux
        // (RFC 6675 section 6 leaves it to us).
        if again.start <= self.snd.una || self.timers.deadline(Timer::Retransmit).is_none() {
            self.arm_retransmission(now);
        }
        self.last_sent = Some(now);
        Some(self.emit(now, again.start, again.end, true, sink))
    }

    /// A window probe: what the window lets pass, else one byte (or the FIN) beyond it. The byte
    /// does not count as sent, so that it is sent again in its segment once the window opens; should
    /// the peer take it nonetheless, its ACK is below `max` and moves everything on.
    fn probe(&mut self, now: Time, mss: u32, sink: &mut Sink) -> Packet {
        let (nxt, data_end) = (self.snd.nxt, self.send_buffer.end());
        let usable = (self.snd.una + self.snd.wnd).saturating_sub(nxt);
        let len = data_end.saturating_sub(nxt).min(u64::from(mss)).min(usable);
        if len > 0 {
            return self.send_new(now, nxt + len, false, sink);
        }
        let retransmission = self.snd.max > nxt;
        self.snd.max = self.snd.max.max(nxt + 1);
        self.recovery.karn_below = self.recovery.karn_below.max(nxt + 1);
        self.tell_sent_messages(now, sink);
        self.emit(now, nxt, nxt + 1, retransmission, sink)
    }

    fn bare_ack(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        self.acking.due?;
        let start = self.snd.nxt;
        Some(self.emit(now, start, start, false, sink))
    }

    fn sack_blocks(&self) -> SackBlocks {
        if self.terms.sack && self.rcv.has_gap() {
            self.rcv.sack_blocks(self.terms.max_sack_blocks())
        } else {
            SackBlocks::default()
        }
    }

    /// The segment of the stretch [start, end) of our sequence space, with everything that rides on
    /// it, leaves.
    fn emit(&mut self, now: Time, start: u64, end: u64, again: bool, sink: &mut Sink) -> Packet {
        let segment = self.segment(now, start, end);
        self.after_emit(now, &segment, again, sink);
        self.packet(segment)
    }

    /// The segment of the stretch [start, end).
    pub(super) fn segment(&mut self, now: Time, start: u64, end: u64) -> TcpRepr {
        let data_end = self.send_buffer.end();
        let len = end.min(data_end).saturating_sub(start) as u32;
        let mut flags = Flags::ACK.with(self.ecn.echo());
        // The FIN's place in the sequence space is the one after the data.
        if self.snd.fin && (start..end).contains(&data_end) {
            flags = flags.with(Flags::FIN);
        }
        if len > 0 && start + u64::from(len) == data_end {
            flags = flags.with(Flags::PSH);
        }
        let mss = self.terms.full_segment(0);
        TcpRepr {
            seq: self.snd.seq(start),
            ack: self.rcv.seq(self.rcv.nxt),
            flags,
            window: self.rcv.announce(mss, self.terms.our_scale),
            options: TcpOptions {
                sack: self.sack_blocks(),
                timestamp: self.terms.timestamps.then(|| self.terms.stamp(now)),
                ..TcpOptions::default()
            },
            payload_len: len,
        }
    }

    /// Tells the listeners of a segment of ours.
    pub(super) fn tell_segment(&self, now: Time, segment: &TcpRepr, again: bool, sink: &mut Sink) {
        let flags = segment.flags;
        let control = flags.has(Flags::SYN) || flags.has(Flags::FIN) || flags.has(Flags::RST);
        let (flow, len) = (self.flow, segment.payload_len);
        sink.record(now, EventKind::SegmentSent { flow, len, control, retransmission: again });
    }

    /// Tells the ACK policy, the congestion control and the listeners what left.
    fn after_emit(&mut self, now: Time, segment: &TcpRepr, again: bool, sink: &mut Sink) {
        let reason = self.acking.due;
        let waited = self.acking.on_sent(now, self.rcv.nxt, segment.window == 0);
        let len = segment.payload_len;
        if len > 0 {
            self.acking.policy.on_data_sent(now);
            self.pace(now, len);
            let (bytes, in_flight) = (self.flight.weigh_one(len.into()) as u32, self.flight_size());
            self.cc.on_sent(now, &SentSample { bytes, in_flight, retransmission: again });
        }
        if !sink.wants(Interest::TRANSPORT) {
            return;
        }
        self.tell_segment(now, segment, again, sink);
        if let Some(delay) = waited {
            let reason =
                if len > 0 { AckReason::Piggyback } else { reason.unwrap_or(AckReason::Control) };
            sink.record(now, EventKind::AckSent { flow: self.flow, reason, delay });
        }
    }
}
