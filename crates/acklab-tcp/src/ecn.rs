//! Explicit congestion notification (RFC 3168), with either kind of feedback.
//!
//! The opening agrees on it: SYN with ECE and CWR, SYN-ACK with ECE (section 6.1.1). New data then
//! leaves as ECT(0); retransmissions, window probes and segments without data do not (section 6.1.5).
//! How marks come back is the congestion control's choice ([`EcnFeedback`]), the same at both ends:
//! - per window: the receiver echoes from a mark until CWR; the sender reacts once per window of data
//!   and says so with CWR on its next new segment (sections 6.1.2 and 6.1.3);
//! - per ACK: each ACK says whether what it covers was marked (RFC 8257 section 3.2). When marks begin or
//!   end, what was pending is acknowledged under the old state and the new segment at once under the
//!   new one. CWR is sent all the same, once per window, as RFC 8257 section 3.3 wants.
//!
//! Left out: ECT(1) and accurate ECN, falling back to a SYN without ECN, ECT on control packets.

use super::connection::Connection;
use acklab_core::cc::{CongestionControl, EcnFeedback, EcnSample};
use acklab_core::event::{AckReason, EventKind, Sink};
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::time::Time;

/// What one end knows about marks in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    /// Both ends agreed.
    on: bool,
    feedback: EcnFeedback,
    /// ECE is set on what leaves: since a mark and until CWR, or DCTCP.CE of RFC 8257.
    echo: bool,
    /// No echo counts until data beyond this offset is acknowledged.
    reacted: u64,
    /// The next new segment says CWR.
    cwr_due: bool,
}

impl EcnState {
    pub(super) const fn new(feedback: EcnFeedback) -> Self {
        Self { on: false, feedback, echo: false, reacted: 0, cwr_due: false }
    }

    /// What our SYN (or SYN-ACK where `answering`) says.
    pub(super) const fn offer(&self, enabled: bool, answering: bool) -> Flags {
        match (answering, enabled, self.on) {
            (false, true, _) => Flags::ECE.with(Flags::CWR),
            (true, _, true) => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// The peer's SYN or SYN-ACK arrived.
    pub(super) const fn on_syn(&mut self, enabled: bool, theirs: Flags) {
        let both = theirs.has(Flags::ECE) && theirs.has(Flags::CWR);
        let agrees = if theirs.has(Flags::ACK) { theirs.has(Flags::ECE) && !both } else { both };
        self.on = enabled && agrees;
    }

    /// ECE, where it is to be set.
    pub(super) const fn echo(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags(0) }
    }

    /// Whether a segment of the peer's echoes congestion.
    pub(super) const fn is_echo(&self, segment: &TcpRepr) -> bool {
        self.on && segment.flags.has(Flags::ECE)
    }

    /// The window was reduced, for whatever reason, when `nxt` was next to be sent.
    pub(super) const fn on_reduction(&mut self, nxt: u64) {
        if self.on {
            self.reacted = nxt;
            self.cwr_due = true;
        }
    }

    /// A segment of new data leaves.
    pub(super) fn dress(&mut self, packet: &mut Packet) {
        if let Body::Tcp(segment) = &mut packet.body
            && self.on
            && segment.payload_len > 0
        {
            packet.ecn = Ecn::Ect0;
            if std::mem::take(&mut self.cwr_due) {
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
    }
}

impl Connection {
    /// The peer's echo, after the congestion control was told of the ACK that carries it.
    pub(super) fn take_echo(&mut self, now: Time, segment: &TcpRepr, sink: &mut Sink) {
        if !self.ecn.is_echo(segment) || self.snd.una <= self.ecn.reacted {
            return;
        }
        self.ecn.on_reduction(self.snd.nxt);
        if self.ecn.feedback == EcnFeedback::PerWindow {
            let in_flight = self.flight_size();
            self.cc.on_ecn(now, &EcnSample { in_flight });
            self.tell_congestion(now, sink);
        }
    }

    /// A segment with data arrived, marked or not.
    pub(super) fn take_mark(&mut self, now: Time, mark: Ecn, segment: &TcpRepr, sink: &mut Sink) {
        if !self.ecn.on || segment.payload_len == 0 {
            return;
        }
        let marked = mark == Ecn::Ce;
        match self.ecn.feedback {
            EcnFeedback::PerWindow => {
                self.ecn.echo = marked || (self.ecn.echo && !segment.flags.has(Flags::CWR));
            }
            EcnFeedback::PerAck if self.ecn.echo != marked => {
                if self.acking.unacked(self.rcv.nxt) > 0 && self.reply.is_none() {
                    self.acknowledge_pending(now, sink);
                }
                self.ecn.echo = marked;
                self.acking.demand(AckReason::Policy);
            }
            EcnFeedback::PerAck => {}
        }
    }

    /// A bare ACK for what arrived before the present segment.
    fn acknowledge_pending(&mut self, now: Time, sink: &mut Sink) {
        let ack = self.segment(now, self.snd.nxt, self.snd.nxt);
        if let Some(delay) = self.acking.on_sent(now, self.rcv.nxt, ack.window == 0) {
            let reason = AckReason::Policy;
            sink.record(now, EventKind::AckSent { flow: self.flow, reason, delay });
        }
        self.reply = Some(ack);
    }
}
