//! What can be asked of a connection: its state and counters, which bytes of the stream a segment
//! stands for, and whether its block is consistent.

use std::ops::Range;

use super::connection::Connection;
use super::recovery::Phase;
use super::state::State;
use super::timers::Timer;
use acklab_core::cc::CongestionControl;
use acklab_core::event::FlowKey;
use acklab_core::segment::TcpRepr;
use acklab_core::seq::Seq;
use acklab_core::time::Span;

/// State for reports; bytes where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// State of the connection.
    pub state: State,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Sent and not acknowledged.
    pub in_flight: u64,
    /// Written and not sent.
    pub unsent: u64,
    /// Window the peer announced.
    pub peer_window: u64,
    /// Received and not read.
    pub unread: u64,
    /// Smoothed round trip.
    pub srtt: Option<Span>,
    /// Retransmission time-out in force.
    pub rto: Span,
    /// Loss recovery is under way.
    pub recovering: bool,
}

/// What can be asked.
impl Connection {
    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Both ends.
    pub const fn flow(&self) -> FlowKey {
        self.flow
    }

    /// Bytes received in order and not read.
    pub fn unread(&self) -> u64 {
        self.rcv.unread()
    }

    /// Bytes read so far.
    pub const fn total_read(&self) -> u64 {
        self.rcv.total_read()
    }

    /// Bytes written so far.
    pub const fn total_written(&self) -> u64 {
        self.send_buffer.end() - 1
    }

    /// Bytes that a write would take now.
    pub fn room(&self) -> u64 {
        self.send_buffer.room(self.snd.una)
    }

    /// Bytes written and not sent for the first time.
    pub fn unsent(&self) -> u64 {
        self.send_buffer.end().saturating_sub(self.snd.nxt.max(1))
    }

    /// Sequence space sent and not acknowledged, bytes.
    pub const fn in_flight(&self) -> u64 {
        self.snd.nxt - self.snd.una
    }

    /// Smoothed round trip.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// Payload of a full segment now, bytes.
    pub const fn mss(&self) -> u32 {
        self.terms.full_segment(0)
    }

    /// Whether Nagle's algorithm or CORK holds data back now.
    pub const fn is_holding(&self) -> bool {
        self.holding.since.is_some()
    }

    /// The sequence number that the peer should use next.
    pub const fn next_expected(&self) -> Seq {
        self.rcv.seq(self.rcv.nxt)
    }

    /// The sequence numbers of the oldest byte unacknowledged and of the next to send.
    pub const fn send_sequence(&self) -> (Seq, Seq) {
        (self.snd.seq(self.snd.una), self.snd.seq(self.snd.nxt))
    }

    /// What must hold of the block between any two calls; the contract's tests ask.
    pub fn check(&self) -> Result<(), &'static str> {
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let fin_end = self.send_buffer.end() + u64::from(self.snd.fin);
        let mss = u64::from(self.terms.full_segment(0));
        let rules = [
            (una <= nxt && nxt <= max, "una <= nxt <= max"),
            (max <= fin_end || max <= 1, "nothing beyond the FIN was sent"),
            (
                self.recovery.board.highest().is_none_or(|top| top <= max),
                "SACK within what was sent",
            ),
            (self.recovery.board.total() <= nxt - una, "SACK below flight"),
            (!self.state.is_synchronised() || self.cc.cwnd() >= mss, "cwnd of one MSS at least"),
            (self.pipe() <= 2 * self.flight_size(), "pipe within flight"),
            (
                self.recovery.board.is_weighed(|left, right| self.flight.weigh(left, right)),
                "what is SACKed weighs what its segments do",
            ),
            (self.returned.is_within(una, nxt), "what came back is in flight"),
            (self.rcv.total_read() <= self.rcv.nxt, "read no more than arrived"),
            (self.flight.is_within(una, max), "segments in flight"),
            (
                una == nxt
                    || !self.state.may_send()
                    || self.output_due
                    || self.timers.deadline(Timer::Retransmit).is_some(),
                "the retransmission timer runs while data is out",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |&(_, rule)| Err(rule))
    }

    /// State for reports.
    pub fn snapshot(&self) -> Snapshot {
        let cc = self.cc.snapshot();
        Snapshot {
            state: self.state,
            cwnd: cc.cwnd,
            ssthresh: cc.ssthresh,
            in_flight: self.in_flight(),
            unsent: self.unsent(),
            peer_window: self.snd.wnd,
            unread: self.unread(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            recovering: self.recovery.phase != Phase::Open,
        }
    }

    /// Which bytes of the stream we write a segment of ours carries, counted from 0.
    pub fn outbound_range(&self, segment: &TcpRepr) -> Range<u64> {
        let start = self.snd.offset(segment.seq).max(1) as u64 - 1;
        start..start + u64::from(segment.payload_len)
    }

    /// Which bytes of the stream we read a segment of the peer's carries, counted from 0; ask before
    /// handing it to `handle_packet`. Bytes below zero (of a hostile segment) are left out.
    pub fn inbound_range(&self, segment: &TcpRepr) -> Range<u64> {
        let start = self.rcv.offset(segment.seq) - 1;
        let end = (start + i64::from(segment.payload_len)).max(0) as u64;
        (start.max(0) as u64)..end
    }
}
