//! What keeps a connection's bytes asks of it, for the connection itself knows places alone: which bytes of the streams a
//! packet carries, which are kept, and which are done with. Places count from a stream's first byte.

use std::ops::Range;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{Body, Packet};
use acklab_core::segment::TcpRepr;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_tcp::{AckRequests, Snapshot, State, Terms};

use crate::connection::{Connection, us};
use crate::host::with;
use crate::settings::INFINITE_SSTHRESH;
use crate::tcp::{CaState, State as Own};

impl Connection {
    /// State of the connection.
    pub fn state(&self) -> State {
        match self.tcp().state {
            Own::Listen if self.is_asked() => State::SynReceived,
            Own::Listen => State::Listen,
            Own::SynSent => State::SynSent,
            Own::SynRecv => State::SynReceived,
            Own::Established => State::Established,
            Own::FinWait1 => State::FinWait1,
            Own::FinWait2 => State::FinWait2,
            Own::CloseWait => State::CloseWait,
            Own::Closing => State::Closing,
            Own::LastAck => State::LastAck,
            Own::TimeWait => State::TimeWait,
            Own::Close => State::Closed,
        }
    }

    /// Bytes that a write may be given; it takes as many as there is room for.
    pub fn room(&self) -> u64 {
        let tcp = self.tcp();
        u64::from(tcp.opt.sndbuf.saturating_sub(tcp.snd.memory))
    }

    /// Bytes that may be read.
    pub fn unread(&self) -> u64 {
        u64::from(self.tcp().unread())
    }

    /// Bytes of our stream that the peer has.
    pub fn acknowledged(&self) -> u64 {
        // Before the first byte stands the SYN, behind the last the FIN.
        self.acknowledged_numbers().saturating_sub(1).min(self.total_written())
    }

    /// Which bytes of our stream a packet of ours carries.
    pub fn outbound_range(&self, segment: &TcpRepr) -> Range<u64> {
        let start = self.outbound_place(segment.seq.0).max(1) as u64 - 1;
        start..start + u64::from(segment.payload_len)
    }

    /// The place of a packet's first byte in the peer's stream; negative where it is older than that, or a SYN.
    pub fn inbound_offset(&self, segment: &TcpRepr) -> i64 {
        self.inbound_place(segment.seq.0) - 1
    }

    /// Takes a packet; returns which bytes of the peer's stream it is the first to bring, of those that are kept.
    pub fn take_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) -> Range<u64> {
        let Body::Tcp(segment) = packet.body else { return 0..0 };
        let before = self.in_order();
        self.handle_packet(now, packet, sink);
        let start = self.inbound_offset(&segment);
        let end = start + i64::from(segment.payload_len);
        let start = start.max(before as i64);
        if segment.payload_len == 0 || end <= start {
            return 0..0;
        }
        let (start, end) = (start as u64, end as u64);
        start..self.kept_from(start).min(end)
    }

    /// After the last byte of the peer's stream that arrived in order.
    fn in_order(&self) -> u64 {
        self.expected_numbers().saturating_sub(1 + u64::from(self.tcp().rcv.fin))
    }

    /// After the last byte that is kept without a gap behind `place`, itself included.
    fn kept_from(&self, place: u64) -> u64 {
        let mut at = place.max(self.in_order());
        for chunk in &self.tcp().rcv.ooo {
            let [from, to] = [chunk.seq, chunk.end].map(|seq| self.inbound_place(seq) - 1);
            if from <= at as i64 && to > at as i64 {
                at = to as u64;
            }
        }
        at
    }

    /// Gives the connection up; the peer is told.
    pub fn abort(&mut self, now: Time) {
        let (fd, now) = (self.descriptor(), us(now));
        let host = self.host();
        let Ok(index) = host.index(fd) else { return };
        with!(host, now, index, |socket, env| socket.tcp.abort(&env));
    }

    /// A router says that the packet which began at `seq` was too large for it, and `mss` bytes of payload are not.
    pub fn on_too_big(&mut self, now: Time, seq: Seq, mss: u16) {
        let (local, remote) = (self.tcp().local, self.tcp().remote);
        let host = self.host();
        let mtu = u32::from(mss) + host.route.ip_header + TCP_HEADER;
        host.fragmentation_needed(us(now), local, remote, seq.0, mtu);
    }

    /// The sequence numbers of the oldest byte unacknowledged and of the next to send.
    pub fn send_sequence(&self) -> (Seq, Seq) {
        let snd = &self.tcp().snd;
        (Seq(snd.una), Seq(snd.nxt))
    }

    /// What both ends agreed on.
    pub fn terms(&self) -> Terms {
        let tcp = self.tcp();
        Terms {
            mss: tcp.terms.advmss,
            sack: tcp.terms.sack,
            our_scale: tcp.terms.receive_scale,
            peer_scale: tcp.terms.send_scale,
            timestamps: tcp.terms.stamps,
            ecn: tcp.ecn.mode != crate::tcp::EcnMode::Off,
            ack_requests: tcp.ack.asking.as_ref().map_or(AckRequests::Off, |it| it.agreed()),
        }
    }

    /// State for reports.
    pub fn snapshot(&self) -> Snapshot {
        let tcp = self.tcp();
        let mss = u64::from(tcp.snd.mss);
        let ssthresh = match tcp.window.ssthresh {
            INFINITE_SSTHRESH => u64::MAX,
            packets => u64::from(packets) * mss,
        };
        Snapshot {
            state: self.state(),
            cwnd: u64::from(tcp.window.cwnd) * mss,
            ssthresh,
            in_flight: u64::from(tcp.snd.nxt.wrapping_sub(tcp.snd.una)),
            unsent: u64::from(tcp.snd.write_seq.wrapping_sub(tcp.snd.nxt)),
            peer_window: u64::from(tcp.snd.wnd),
            unread: self.unread(),
            srtt: (tcp.rtt.srtt8 > 0).then(|| Span::from_micros(tcp.rtt.srtt())),
            rto: Span::from_micros(tcp.rtt.rto),
            recovering: tcp.rec.ca >= CaState::Recovery,
        }
    }
}

/// TCP header without options, bytes.
const TCP_HEADER: u32 = 20;
