//! Segments of ours: what the sender lets leave, with the receiver's acknowledgment, window and marks on
//! it; SYNs, probes and bare ACKs.

use crate::config::Config;
use crate::life::{Life, Probe};
use crate::receive::Receiver;
use crate::send::{Sender, Stretch};
use crate::state::State;
use acklab_core::event::{EventKind, FlowKey, Interest, Sink};
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::time::Time;

/// An output pass, and whom it asks.
pub(super) struct Output<'a> {
    pub(super) now: Time,
    pub(super) flow: FlowKey,
    pub(super) config: &'a Config,
    pub(super) state: State,
    pub(super) life: &'a mut Life,
    pub(super) tx: &'a mut Sender,
    pub(super) rx: &'a mut Receiver,
    pub(super) sink: &'a mut Sink,
}

impl Output<'_> {
    /// The next packet, if any may leave.
    pub(super) fn next(&mut self) -> Option<Packet> {
        self.tx.begin_pass(self.sink);
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent => self.next_syn(),
            State::SynReceived => self.next_syn().or_else(|| self.bare_ack()),
            _ => self.next_segment(),
        }
    }

    fn next_segment(&mut self) -> Option<Packet> {
        let blocks = self.rx.sack_count();
        if self.state.may_send()
            && let Some(stretch) = self.tx.next(self.now, blocks, self.sink)
        {
            return Some(self.emit(stretch));
        }
        let stretch = match self.life.take_probe() {
            Some(Probe::Window) => self.tx.probe(self.now, blocks, self.sink),
            Some(Probe::KeepAlive) => self.tx.nothing(true),
            None => return self.bare_ack(),
        };
        Some(self.emit(stretch))
    }

    fn bare_ack(&mut self) -> Option<Packet> {
        self.rx.is_ack_due().then(|| self.emit(self.tx.nothing(false)))
    }

    /// Our SYN or SYN-ACK.
    #[cold]
    fn next_syn(&mut self) -> Option<Packet> {
        let again = self.tx.next_syn(self.now)?;
        let answering = self.state == State::SynReceived;
        let terms = *self.rx.terms();
        // Not scaled here (RFC 7323 section 2.2), but the buffer is what it is.
        let window = self.rx.window_of_syn(self.config.mss);
        let mut syn = TcpRepr {
            seq: self.tx.seq(0),
            flags: Flags::SYN.with(terms.syn_flags(self.config, answering)),
            window: u16::try_from(self.config.receive_buffer).unwrap_or(u16::MAX),
            options: terms.syn_options(self.config, answering, self.rx.stamp(self.now)),
            ..TcpRepr::default()
        };
        if answering {
            (syn.ack, syn.window) = (self.rx.next_expected(), window);
            syn.flags = syn.flags.with(Flags::ACK);
            self.rx.on_sent(self.now, &syn);
        }
        tell(self.now, self.flow, &syn, again, self.sink);
        Some(packet(self.flow, syn))
    }

    /// The segment of a stretch leaves; the ACK policy, the congestion control and the listeners know.
    fn emit(&mut self, stretch: Stretch) -> Packet {
        let (now, flow) = (self.now, self.flow);
        let (start, flags, len) = (stretch.start, self.tx.flags(stretch), self.tx.payload(stretch));
        let mut segment = self.rx.segment(now, self.tx.seq(start), flags, len);
        segment.options.ack_request = self.tx.take_request(stretch, &segment);
        let sent = self.rx.on_sent(now, &segment);
        self.tx.on_sent(now, stretch, &segment);
        if self.sink.wants(Interest::TRANSPORT) {
            tell(now, flow, &segment, stretch.again, self.sink);
            if let Some(sent) = sent {
                let (reason, delay) = (sent.reason, sent.delay);
                self.sink.record(now, EventKind::AckSent { flow, reason, delay });
            }
        }
        match self.tx.take_cwr(stretch, &segment) {
            Some((ecn, cwr)) => {
                let segment = TcpRepr { flags: segment.flags.with(cwr), ..segment };
                Packet { ecn, ..packet(flow, segment) }
            }
            None => packet(flow, segment),
        }
    }
}

/// A packet of ours.
pub(super) fn packet(flow: FlowKey, segment: TcpRepr) -> Packet {
    let (src, dst) = (flow.local, flow.remote);
    Packet { src, dst, ecn: Ecn::NotEct, returned: false, body: Body::Tcp(segment) }
}

/// Tells the listeners of a segment of ours.
pub(super) fn tell(now: Time, flow: FlowKey, segment: &TcpRepr, again: bool, sink: &mut Sink) {
    let flags = segment.flags;
    let control = flags.has(Flags::SYN) || flags.has(Flags::FIN) || flags.has(Flags::RST);
    let (len, retransmission) = (segment.payload_len, again);
    sink.record(now, EventKind::SegmentSent { flow, len, control, retransmission });
}
