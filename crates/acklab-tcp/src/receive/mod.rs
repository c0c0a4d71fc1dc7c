//! The receiving side: whether a segment is acceptable, what it brings, and the acknowledgment that is
//! owed for it.
//!
//! When an ACK leaves is the policy's decision ([`acklab_core::ack`]); disorder, a FIN and challenges are
//! answered at once whatever the policy. Marks come back as the congestion control wants them
//! ([`EcnFeedback`]), the same at both ends:
//! - per window: echoed from a mark until CWR (RFC 3168 section 6.1.3);
//! - per ACK: each ACK says whether what it covers was marked (RFC 8257 section 3.2). When marks begin or
//!   end, what was pending is acknowledged under the old state and the new segment at once under the
//!   new one.

mod buffer;
mod tuning;

use crate::ack_requests::AckRequests;
use crate::config::{Config, WindowUpdate};
use crate::options::{Terms, clock};
use acklab_core::ack::{AckPolicy, DataSample, Decision, Disorder, Policy, ReadSample};
use acklab_core::cc::EcnFeedback;
use acklab_core::event::AckReason;
use acklab_core::packet::Ecn;
use acklab_core::segment::{AckRequest, Flags, SackBlocks, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use buffer::ReceiveBuffer;
use std::ops::Range;

/// What the sending side measured, as the policy wants to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Smoothed round trip.
    pub(super) srtt: Option<Span>,
    /// Retransmission time-out.
    pub(super) rto: Span,
}

/// An ACK left that something waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSent {
    /// Why it left.
    pub(super) reason: AckReason,
    /// How long the oldest segment that it covers waited.
    pub(super) delay: Span,
}

/// When the peer was last heard, and how often so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    pub(super) at: Time,
    pub(super) count: u32,
}

/// What a segment brought.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// Bytes of the stream, from 0, that it is the first to bring and that are kept.
    pub(super) kept: Range<u64>,
    /// Bytes became readable.
    pub(super) readable: bool,
    /// The peer's FIN is the last of what arrived in order.
    pub(super) finished: bool,
}

/// The receiving side's state.
#[derive(Debug)]
pub(super) struct Receiver {
    buffer: ReceiveBuffer,
    policy: Policy,
    terms: Terms,
    feedback: EcnFeedback,
    update: WindowUpdate,
    /// The peer's last timestamp taken in order, and when.
    recent: Option<(u32, Time)>,
    /// ECE is set on what leaves: since a mark and until CWR, or DCTCP.CE of RFC 8257.
    echo: bool,
    /// An ACK must leave now, and why.
    due: Option<AckReason>,
    /// Offset last acknowledged.
    acked: u64,
    /// Segments in order since.
    segments: u32,
    /// When the oldest of them arrived.
    oldest: Option<Time>,
    /// The window last announced was zero.
    announced_zero: bool,
    /// Full segments per ACK that the peer asked for.
    requested: Option<u8>,
    /// When the last challenge or duplicate ACK without data left (RFC 5961 section 7).
    last_challenge: Option<Time>,
    contact: Contact,
}

/// What arrives.
impl Receiver {
    pub(super) fn new(now: Time, config: &Config, feedback: EcnFeedback) -> Self {
        Self {
            buffer: ReceiveBuffer::new(config.receive_buffer, config.receive_tuning),
            policy: config.ack.policy(config.ack_phase),
            terms: Terms::new(config),
            feedback,
            update: config.window_update,
            recent: None,
            echo: false,
            due: None,
            acked: 0,
            segments: 0,
            oldest: None,
            announced_zero: false,
            requested: None,
            last_challenge: None,
            contact: Contact { at: now, count: 0 },
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, now: Time, terms: Terms, segment: &TcpRepr) {
        self.terms = terms;
        self.recent = self.stamp_of(segment).map(|ts| (ts.value, now));
        self.buffer.on_syn(segment.seq);
    }

    fn stamp_of(&self, segment: &TcpRepr) -> Option<Timestamp> {
        segment.options.timestamp.filter(|_| self.terms.timestamps)
    }

    /// Whether PAWS refuses a segment (RFC 7323 section 5.3, R1); after 24 days of silence it lets the
    /// next one pass (section 5.5).
    pub(super) fn is_too_old(&self, now: Time, segment: &TcpRepr) -> bool {
        let older = |ts: Timestamp| {
            self.recent.is_some_and(|(value, at)| {
                Seq(ts.value).before(Seq(value)) && now.since(at) < PAWS_IDLE
            })
        };
        self.stamp_of(segment).is_some_and(older)
    }

    /// The four cases of RFC 9293 section 3.4, table 6. With a closed window a segment that begins
    /// at the next byte expected is let pass for its ACK, RST or FIN; its data finds no room.
    /// A bare ACK just beyond the window is let pass too, as in Linux: it says that data filled it.
    pub(super) fn is_acceptable(&self, segment: &TcpRepr) -> bool {
        let (nxt, window) = (self.buffer.nxt() as i64, self.buffer.window() as i64);
        let start = self.buffer.offset(segment.seq);
        let len = i64::from(segment.seq_len());
        match (len, window) {
            (_, 0) => start == nxt,
            (0, _) => nxt <= start && start <= nxt + window,
            _ => start < nxt + window && start + len > nxt,
        }
    }

    /// An acceptable segment with an ACK field came: the peer lives.
    pub(super) const fn on_heard(&mut self, now: Time) {
        self.contact = Contact { at: now, count: self.contact.count.wrapping_add(1) };
    }

    /// When the peer was last heard.
    pub(super) const fn contact(&self) -> Contact {
        self.contact
    }

    /// A challenge or other reply to a segment that was not acceptable: limited in rate, lest two
    /// ends answer each other for ever (RFC 5961 section 7).
    pub(super) fn challenge(&mut self, now: Time) {
        if self.last_challenge.is_none_or(|last| now.since(last) >= CHALLENGE_INTERVAL) {
            self.last_challenge = Some(now);
            self.demand(AckReason::Control);
        }
    }

    /// Data arrived that is not simply the next.
    pub(super) fn on_disorder(&mut self, now: Time, disorder: Disorder) {
        self.oldest.get_or_insert(now);
        self.policy.on_disorder(now, disorder, self.buffer.window() as u32);
        self.demand(AckReason::OutOfOrder);
    }

    /// An acceptable segment's timestamp counts if it covers the last byte acknowledged (RFC 7323 section
    /// 4.3). Its section 5.3 (R3) takes it before the ACK field is looked at / we after / because RFC 5961
    /// lets nothing count of a segment whose ACK field cannot be.
    pub(super) fn take_timestamp(&mut self, now: Time, segment: &TcpRepr) {
        let covers = self.buffer.offset(segment.seq) <= self.acked as i64;
        if let Some(ts) = self.stamp_of(segment).filter(|_| covers) {
            self.recent = Some((ts.value, now));
        }
    }

    /// Whether what is pending must be acknowledged before a segment that arrived with `mark` counts.
    pub(super) fn is_turn_of_marks(&self, mark: Ecn, segment: &TcpRepr) -> bool {
        self.is_change(mark, segment) && self.unacked() > 0
    }

    fn is_change(&self, mark: Ecn, segment: &TcpRepr) -> bool {
        self.terms.ecn
            && self.feedback == EcnFeedback::PerAck
            && segment.payload_len > 0
            && self.echo != (mark == Ecn::Ce)
    }

    /// Takes the mark, the payload and the FIN of an acceptable segment.
    pub(super) fn take(
        &mut self,
        now: Time,
        mark: Ecn,
        segment: &TcpRepr,
        timing: Timing,
    ) -> Heard {
        let start = self.buffer.offset(segment.seq);
        if self.terms.ecn && segment.payload_len > 0 {
            self.take_mark(mark, segment);
        }
        if let Some(request) = segment.options.ack_request {
            self.take_request(request);
        }
        let (kept, readable) = self.take_payload(now, start, segment, timing);
        if segment.flags.has(Flags::FIN) && !self.buffer.is_finished() {
            self.buffer.note_fin(start + i64::from(segment.payload_len));
        }
        let finished = self.buffer.take_fin();
        if finished {
            self.demand(AckReason::Control);
        }
        Heard { kept, readable, finished }
    }

    /// The peer says how often it wants ACKs.
    fn take_request(&mut self, request: AckRequest) {
        match (self.terms.ack_requests, request) {
            (AckRequests::Tarr, AckRequest::Tarr(0)) => self.demand(AckReason::Policy),
            (AckRequests::Tarr, AckRequest::Tarr(segments))
            | (AckRequests::AckCc, AckRequest::AckCc(segments)) => {
                self.requested = Some(segments.max(1));
            }
            _ => {}
        }
    }

    /// A segment with data arrived, marked or not.
    fn take_mark(&mut self, mark: Ecn, segment: &TcpRepr) {
        let marked = mark == Ecn::Ce;
        match self.feedback {
            EcnFeedback::PerWindow => {
                self.echo = marked || (self.echo && !segment.flags.has(Flags::CWR));
            }
            EcnFeedback::PerAck if self.echo != marked => {
                self.echo = marked;
                self.demand(AckReason::Policy);
            }
            EcnFeedback::PerAck => {}
        }
    }

    /// Which bytes of the stream are kept, and whether any became readable.
    fn take_payload(
        &mut self,
        now: Time,
        start: i64,
        segment: &TcpRepr,
        timing: Timing,
    ) -> (Range<u64>, bool) {
        let len = segment.payload_len;
        if len == 0 || self.buffer.is_finished() {
            return (0..0, false);
        }
        let nxt = self.buffer.nxt();
        let arrival = self.buffer.take_in(start, len);
        if arrival.is_in_order() {
            self.on_data(now, segment, timing);
            return (nxt - 1..nxt - 1 + u64::from(len), true);
        }
        self.on_disorder(now, arrival.disorder());
        let is_kept = arrival.refused < u64::from(len);
        if is_kept && self.buffer.tuning().is_some() {
            // `tcp_data_queue_ofo`: what waits behind a gap opens the window as well.
            self.buffer.grow(len, self.terms.mss);
        }
        let kept = if is_kept { self.buffer.fitting(nxt, start, len) } else { 0..0 };
        (kept, arrival.advanced > 0)
    }

    /// The round trip, for the tuning of the window.
    fn measure(&mut self, now: Time, segment: &TcpRepr) {
        let (nxt, edge) = (self.buffer.nxt(), self.buffer.edge());
        let Some(tuning) = self.buffer.tuning() else { return };
        if !self.terms.timestamps {
            tuning.on_window(now, nxt, edge);
        } else if let Some(stamp) = segment.options.timestamp
            && segment.payload_len >= self.terms.mss
            && let Some(elapsed) = self.terms.echoed_rtt(now, stamp)
        {
            tuning.on_echo(stamp.echo, elapsed);
        }
    }

    /// Data arrived in order.
    fn on_data(&mut self, now: Time, segment: &TcpRepr, timing: Timing) {
        let (len, mss) = (segment.payload_len, self.terms.mss);
        self.measure(now, segment);
        let window_grew = self.buffer.grow(len, mss);
        self.segments += 1;
        self.oldest.get_or_insert(now);
        let sample = DataSample {
            len,
            push: segment.flags.has(Flags::PSH),
            mss,
            unacked_segments: self.segments,
            unacked_bytes: self.unacked() as u32,
            window: self.buffer.best_window(mss) as u32,
            window_not_shrunk: self.buffer.is_not_shrunk(self.acked),
            was_zero_window: self.announced_zero,
            window_grew,
            srtt: timing.srtt,
            rto: timing.rto,
        };
        if let Some(segments) = self.requested {
            // Two ACKs in a window of ours at least, whatever is asked for.
            let most = (sample.window / mss.saturating_mul(2)).max(1);
            self.policy.on_request(most.min(segments.into()));
        }
        if self.policy.on_data(now, &sample) == Decision::Now {
            self.demand(AckReason::Policy);
        }
    }
}

/// What is owed.
impl Receiver {
    /// An ACK must leave now. The first reason of a batch stands.
    pub(super) fn demand(&mut self, reason: AckReason) {
        self.due.get_or_insert(reason);
    }

    /// Whether an ACK must leave now.
    pub(super) const fn is_ack_due(&self) -> bool {
        self.due.is_some()
    }

    /// Bytes in order that no ACK of ours has covered.
    const fn unacked(&self) -> u64 {
        self.buffer.nxt().saturating_sub(self.acked)
    }

    /// The application reads up to `max` bytes; returns how many.
    pub(super) fn read(&mut self, max: u32) -> u32 {
        self.buffer.take(max)
    }

    /// The application read `copied` bytes while more may come.
    pub(super) fn on_read(&mut self, now: Time, copied: u32) {
        let (mss, read) = (self.terms.mss, self.buffer.total_read() + 1);
        if let Some(tuning) = self.buffer.tuning() {
            tuning.on_read(now, read, mss);
        }
        let sample = ReadSample {
            copied,
            unacked_bytes: self.unacked() as u32,
            queue_empty: self.buffer.unread() == 0,
            window: self.buffer.best_window(mss) as u32,
            advertised: self.buffer.window() as u32,
        };
        if self.policy.on_read(now, &sample) == Decision::Now {
            self.demand(AckReason::Read);
        }
        if self.due.is_none() && self.buffer.is_update_worthwhile(self.update, mss) {
            self.demand(AckReason::Window);
        }
    }

    /// TCP_QUICKACK; what is pending leaves at once where it may (`synchronised`). Returns
    /// whether it does.
    pub(super) fn set_quickack(
        &mut self,
        now: Time,
        on: bool,
        always: bool,
        synchronised: bool,
    ) -> bool {
        self.policy.on_quickack(now, on, always);
        let at_once = on && synchronised && self.unacked() > 0;
        if at_once {
            self.demand(AckReason::Policy);
        }
        at_once
    }

    /// The policy's timer may be due.
    pub(super) fn handle_timeout(&mut self, now: Time, rto: Span) {
        if self.policy.poll_timeout().is_some_and(|at| at <= now)
            && self.policy.handle_timeout(now, rto) == Decision::Now
        {
            self.demand(AckReason::Timer);
        }
    }

    /// The policy's segments per ACK and the most that they may become, where they changed.
    pub(super) fn poll_rate(&mut self) -> Option<[u32; 2]> {
        self.policy.poll_rate()
    }

    /// When the policy's timer is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.policy.poll_timeout()
    }

    /// How many SACK blocks the next segment of ours carries.
    pub(super) fn sack_count(&self) -> u32 {
        if self.terms.sack {
            self.buffer.sack_count(self.terms.max_sack_blocks()) as u32
        } else {
            0
        }
    }

    /// SACK blocks that the next segment of ours carries.
    fn sack_blocks(&self) -> SackBlocks {
        if self.terms.sack && self.buffer.has_gap() {
            self.buffer.sack_blocks(self.terms.max_sack_blocks())
        } else {
            SackBlocks::default()
        }
    }

    /// The segment that leaves now with `payload_len` bytes from `seq` on, and what rides on it: the window
    /// that it announces is announced.
    pub(super) fn segment(
        &mut self,
        now: Time,
        seq: Seq,
        flags: Flags,
        payload_len: u32,
    ) -> TcpRepr {
        TcpRepr {
            seq,
            ack: self.next_expected(),
            flags: flags.with(if self.echo { Flags::ACK.with(Flags::ECE) } else { Flags::ACK }),
            window: self.buffer.announce(self.terms.mss, self.terms.our_scale),
            options: TcpOptions {
                sack: self.sack_blocks(),
                timestamp: self.terms.timestamps.then(|| self.stamp(now)),
                ..TcpOptions::default()
            },
            payload_len,
        }
    }

    /// The timestamp of a segment that leaves now.
    pub(super) fn stamp(&self, now: Time) -> Timestamp {
        Timestamp { value: clock(now), echo: self.recent.map_or(0, |(value, _)| value) }
    }

    /// The window of a SYN, which is never scaled (RFC 7323 section 2.2); `mss` is what we accept.
    pub(super) fn window_of_syn(&mut self, mss: u16) -> u16 {
        self.buffer.announce(u32::from(mss), 0)
    }

    /// A segment with an ACK left, and with data or not.
    pub(super) fn on_sent(&mut self, now: Time, segment: &TcpRepr) -> Option<AckSent> {
        let with_data = segment.payload_len > 0;
        let reason = match self.due.take() {
            _ if with_data => AckReason::Piggyback,
            reason => reason.unwrap_or(AckReason::Control),
        };
        self.acked = self.buffer.nxt();
        self.segments = 0;
        self.announced_zero = segment.window == 0;
        self.policy.on_ack_sent(now);
        if with_data {
            self.policy.on_data_sent(now);
        }
        self.oldest.take().map(|oldest| AckSent { reason, delay: now.since(oldest) })
    }

    /// The connection is over: nothing is owed any more.
    pub(super) fn end(&mut self) {
        self.due = None;
        self.policy.on_ack_sent(Time::ZERO);
    }
}

/// What can be asked.
impl Receiver {
    /// What the SYNs agreed on.
    pub(super) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Bytes that the application may read.
    pub(super) fn unread(&self) -> u64 {
        self.buffer.unread()
    }

    /// Bytes read so far.
    pub(super) const fn total_read(&self) -> u64 {
        self.buffer.total_read()
    }

    /// The sequence number that the peer should use next.
    pub(super) const fn next_expected(&self) -> Seq {
        self.buffer.seq(self.buffer.nxt())
    }

    /// The offset of `seq`, which lies near the next byte expected; negative before the SYN.
    pub(super) const fn offset(&self, seq: Seq) -> i64 {
        self.buffer.offset(seq)
    }

    /// What must hold between any two calls.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let sane = self.buffer.total_read() <= self.buffer.nxt();
        if sane { Ok(()) } else { Err("read no more than arrived") }
    }
}

/// Linux `tcp_invalid_ratelimit`; RFC 5961 section 7 leaves the figure open.
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);
/// RFC 7323 section 5.5.
const PAWS_IDLE: Span = Span::from_secs(24 * 24 * 3600);
