//! What may leave now: retransmissions, new data under the peer's window, the congestion window, Nagle
//! and sender SWS avoidance (RFC 9293 section 3.8.6.2.1), in that order; and window probes.
//!
//! Payload is paced, bare ACKs are not. New data leaves as ECT(0) where ECN was agreed on;
//! retransmissions, window probes and segments without data do not (RFC 3168 section 6.1.5).

use super::holding::CORK_CEILING;
use super::recovery::{Again, Phase};
use super::{Expiry, Limit, Sender, Timer};
use acklab_core::cc::{EcnFeedback, RtoSample, Snapshot};
use acklab_core::congestion::Departure;
use acklab_core::delivery_rate::Stamp;
use acklab_core::event::{EventKind, Sink};
use acklab_core::packet::Ecn;
use acklab_core::segment::{AckRequest, Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// A stretch [start, end) of our sequence space that leaves as one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// It left before.
    pub(crate) again: bool,
    /// It counts as sent now for the first time.
    pub(crate) fresh: bool,
}

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

/// `GSO_LEGACY_MAX_SIZE`, bytes.
const MOST_OFFLOAD: u64 = 65_536;

/// The application's calls.
impl Sender {
    /// Takes up to `bytes` of a message; returns how many.
    pub(crate) fn write(&mut self, now: Time, bytes: u32) -> u32 {
        let taken = self.buffer.write(now, bytes, self.queue.una());
        self.waits.write |= taken < bytes;
        taken
    }

    /// A FIN follows what was written.
    pub(crate) const fn close(&mut self) {
        self.buffer.close();
    }

    /// Whether the application closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.buffer.is_closed()
    }

    /// TCP_NODELAY; turning Nagle's algorithm off releases what is held. Returns whether it does.
    pub(crate) const fn set_nodelay(&mut self, on: bool) -> bool {
        self.holding.set_nodelay(on);
        if on {
            self.holding.flush(self.buffer.end(), false);
        }
        on
    }

    /// TCP_CORK; clearing it releases what is held. Returns whether it does.
    pub(crate) fn set_cork(&mut self, on: bool) -> bool {
        self.holding.set_cork(on);
        if !on {
            self.timers.stop(Timer::Cork);
            self.holding.flush(self.buffer.end(), false);
        }
        !on
    }

    /// Bytes written so far.
    pub(crate) const fn total_written(&self) -> u64 {
        self.buffer.end() - 1
    }

    /// Bytes of those that are acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.queue.una().clamp(1, self.buffer.end()) - 1
    }

    /// Bytes that a write would take now.
    pub(crate) fn room(&self) -> u64 {
        self.buffer.room(self.queue.una())
    }

    /// Bytes written and not sent for the first time.
    pub(crate) fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.queue.nxt().max(1))
    }
}

/// What leaves.
impl Sender {
    /// An output pass begins or goes on: tells what was written since.
    pub(crate) fn begin_pass(&mut self, sink: &mut Sink) {
        self.holding.on_pass(self.is_waited_for());
        while let Some(message) = self.buffer.announce() {
            let (flow, id, bytes) = (self.flow, message.id, message.bytes);
            sink.record(message.written_at, EventKind::MessageWritten { flow, id, bytes });
        }
    }

    /// Our SYN or SYN-ACK leaves, if it must; returns whether it left before. The retransmission timer runs
    /// from here.
    pub(crate) fn next_syn(&mut self, now: Time) -> Option<bool> {
        if !std::mem::take(&mut self.syn_due) {
            return None;
        }
        let again = self.rto.attempts() > 0;
        if self.space.max == 0 {
            self.space.max = 1;
            self.queue.push(now, 1, None);
        } else if again {
            self.recovery.on_sent_twice(1);
        }
        self.arm_retransmission(now);
        Some(again)
    }

    /// Lost data first, then new data, then what is only perhaps lost (RFC 6675 `NextSeg`), in a segment
    /// that carries `sack_blocks`.
    pub(crate) fn next(&mut self, now: Time, sack_blocks: u32, sink: &mut Sink) -> Option<Stretch> {
        if self.in_flight() == 0 && !self.has_new() {
            self.waits.window = false;
            self.note_app_limited();
            return None;
        }
        let mss = self.terms.full_segment(sack_blocks, self.asks(sack_blocks));
        if let Some((start, end)) = self.queue.next_returned(now) {
            let again = Again::returned(start, end.min(start + u64::from(mss)));
            return self.resend_if_room(now, again);
        }
        if let Some(lost) = self.recovery.next_lost(mss, &self.queue) {
            return self.resend_if_room(now, lost);
        }
        let fresh = self.next_new(mss);
        self.waits.window = fresh == Next::Window;
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
        self.note_pass(fresh == Next::Congestion);
        let doubtful = self.recovery.next_doubtful(mss, &self.queue)?;
        self.resend_if_room(now, doubtful)
    }

    /// Whether data, or the FIN, waits to be sent for the first time.
    const fn has_new(&self) -> bool {
        let (nxt, data_end) = (self.queue.nxt(), self.buffer.end());
        nxt < data_end || (nxt == data_end && self.buffer.is_closed())
    }

    /// Decides about new data.
    fn next_new(&self, mss: u32) -> Next {
        let (una, nxt, data_end) = (self.queue.una(), self.queue.nxt(), self.buffer.end());
        if !self.has_new() {
            return Next::Nothing;
        }
        let pending = data_end - nxt;
        let usable = self.usable();
        let len = pending.min(u64::from(mss)).min(usable);
        let full = len >= u64::from(mss);
        let takes_all = len == pending;
        if len == 0 && (pending > 0 || (usable == 0 && nxt > una)) {
            return Next::Window;
        }
        if !full && !takes_all && 2 * len < self.space.max_wnd {
            return Next::Window;
        }
        let early = self.recovery.limited_transmit(mss);
        if len > 0 && !self.has_room(self.pipe().saturating_sub(early), self.queue.weigh_one(len)) {
            return Next::Congestion;
        }
        let fin = self.buffer.is_closed() && takes_all;
        let small = !full && !self.holding.is_as_good_as_full(len, self.space.max_wnd);
        if small && !fin && takes_all && self.holding.holds(nxt + len, una, nxt) {
            return Next::Held;
        }
        Next::Send { end: nxt + len + u64::from(fin), full }
    }

    /// Whether `weight` more may be on the way.
    fn has_room(&self, pipe: u64, weight: u64) -> bool {
        match self.recovery.window() {
            Some(window) => pipe + weight <= window,
            None => self.congestion.has_room(pipe, weight),
        }
    }

    const fn usable(&self) -> u64 {
        (self.queue.una() + self.space.wnd).saturating_sub(self.queue.nxt())
    }

    /// New data, or the FIN, leaves.
    fn send_new(&mut self, now: Time, end: u64, full: bool, sink: &mut Sink) -> Stretch {
        let (start, data_end) = (self.queue.nxt(), self.buffer.end());
        if start == self.queue.una() && self.departures.idle_restart {
            let silent = self.departures.last.is_some_and(|last| now.since(last) > self.rto.rto());
            if silent {
                self.congestion.on_idle(now);
            }
        }
        if let Some(since) = self.holding.release() {
            let by = self.holding.released_by(end, full, data_end);
            let (bytes, held) = ((end.min(data_end) - start) as u32, now.since(since));
            sink.record(now, EventKind::Released { flow: self.flow, bytes, held, by });
        }
        if !full && end > start {
            self.holding.on_small(end);
        }
        let stamp = self.stamp(now, end - start);
        self.queue.push(now, end, stamp);
        self.space.max = self.space.max.max(end);
        self.count_burst(now, full);
        self.departures.last = Some(now);
        self.tell_sent_messages(now, sink);
        Stretch { start, end, again: false, fresh: true }
    }

    /// A new segment leaves: with those before it as one, as far as segmentation offload goes (`tcp_tso_autosize`:
    /// what leaves in a millisecond, two segments at least). Where no further one follows it carries PSH.
    fn count_burst(&mut self, now: Time, full: bool) {
        if !self.departures.push_bursts {
            return;
        }
        let goes_on = self.departures.last == Some(now) && !self.departures.pushes;
        let burst = if goes_on { self.departures.burst + 1 } else { 1 };
        self.departures.burst = burst;
        let ends = !full
            || burst >= self.offload()
            || !matches!(self.next_new(self.terms.mss), Next::Send { full: true, .. });
        self.departures.pushes = ends && burst > 1;
    }

    /// Segments that leave as one at most.
    fn offload(&self) -> u64 {
        let Snapshot { cwnd, ssthresh } = self.congestion.snapshot();
        let micros = self.rto.srtt().unwrap_or(Span::from_millis(1)).as_nanos() / 1000;
        // `tcp_update_pacing_rate`: twice the window a round trip in slow start, 1.2 times in avoidance.
        let gain = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let bytes = cwnd * gain / 100 * 1000 / micros.max(1);
        (bytes.min(MOST_OFFLOAD) / u64::from(self.terms.mss)).max(2)
    }

    /// Sends a stretch again, where the window lets it.
    fn resend_if_room(&mut self, now: Time, again: Again) -> Option<Stretch> {
        let (start, end) = (again.start, again.end);
        let weight = self.queue.weigh_one(end - start);
        if !again.is_forced() && !self.has_room(self.pipe(), weight) {
            self.note_pass(true);
            return None;
        }
        if self.must_wait(now) {
            return None;
        }
        let stamp = self.stamp(now, end - start);
        self.recovery.on_resent(again);
        self.queue.cut_again(now, start, end, stamp);
        // The timer watches the oldest segment: sent again, that has its time anew, as in 4.4BSD and Linux
        // (RFC 6675 section 6 leaves it to us).
        if start <= self.queue.una() || self.timers.deadline(Timer::Retransmit).is_none() {
            self.arm_retransmission(now);
        }
        self.departures.last = Some(now);
        Some(Stretch { start, end, again: true, fresh: false })
    }

    /// A window probe: what the window lets pass, else one byte (or the FIN) beyond it. The byte
    /// does not count as sent, so that it is sent again in its segment once the window opens; should
    /// the peer take it nonetheless, its ACK is below `max` and moves everything on.
    pub(crate) fn probe(&mut self, now: Time, sack_blocks: u32, sink: &mut Sink) -> Stretch {
        let mss = u64::from(self.terms.full_segment(sack_blocks, self.asks(sack_blocks)));
        let nxt = self.queue.nxt();
        let len = self.buffer.end().saturating_sub(nxt).min(mss).min(self.usable());
        if len > 0 {
            return self.send_new(now, nxt + len, false, sink);
        }
        let again = self.space.max > nxt;
        self.space.max = self.space.max.max(nxt + 1);
        self.recovery.on_sent_twice(nxt + 1);
        self.tell_sent_messages(now, sink);
        Stretch { start: nxt, end: nxt + 1, again, fresh: false }
    }

    /// Nothing, at the next sequence number, or at the one before for a keep-alive probe.
    pub(crate) const fn nothing(&self, before: bool) -> Stretch {
        let at = self.queue.nxt() - before as u64;
        Stretch { start: at, end: at, again: false, fresh: false }
    }

    /// Payload bytes of a stretch.
    pub(crate) fn payload(&self, stretch: Stretch) -> u32 {
        stretch.end.min(self.buffer.end()).saturating_sub(stretch.start) as u32
    }

    /// FIN and PSH of a stretch's segment. The FIN's place in the sequence space is the one after the data.
    pub(crate) fn flags(&self, stretch: Stretch) -> Flags {
        let Stretch { start, end, .. } = stretch;
        let data_end = self.buffer.end();
        let last = start < data_end && data_end <= end;
        let pushes = last || (stretch.fresh && self.departures.pushes);
        let push = if pushes { Flags::PSH } else { Flags(0) };
        let fin = self.buffer.is_closed() && start <= data_end && data_end < end;
        if fin { push.with(Flags::FIN) } else { push }
    }

    /// Whether the next segment with data and so many SACK blocks carries a request for ACKs.
    fn asks(&self, sack_blocks: u32) -> bool {
        self.requests.is_due() && self.terms.has_room_for_request(sack_blocks)
    }

    /// The request for ACKs that a stretch's segment carries, if any.
    pub(crate) fn take_request(
        &mut self,
        stretch: Stretch,
        segment: &TcpRepr,
    ) -> Option<AckRequest> {
        let blocks = segment.options.sack.as_slice().len() as u32;
        let rides = segment.payload_len > 0 && self.asks(blocks);
        if rides { self.requests.take(stretch.end) } else { None }
    }

    /// A segment left.
    pub(crate) fn on_sent(&mut self, now: Time, stretch: Stretch, segment: &TcpRepr) {
        let bytes = segment.payload_len;
        if bytes > 0 {
            let departure = Departure {
                bytes,
                weight: self.queue.weigh_one(bytes.into()) as u32,
                mss: self.terms.mss,
                in_flight: self.queue.flight_size(),
                retransmission: stretch.again,
            };
            self.recovery.on_sent(departure.weight.into());
            self.congestion.on_sent(now, &departure);
        }
    }

    /// The mark with which new data leaves, and what it says about our window.
    pub(crate) fn take_cwr(&mut self, stretch: Stretch, segment: &TcpRepr) -> Option<(Ecn, Flags)> {
        let marked = stretch.fresh && self.terms.ecn && segment.payload_len > 0;
        let cwr = marked && std::mem::take(&mut self.reaction.cwr_due);
        let flags = if cwr { Flags::CWR } else { Flags(0) };
        marked.then_some((self.reaction.codepoint, flags))
    }

    /// For the delivery rate, before the stretch counts as being on the way.
    fn stamp(&mut self, now: Time, bytes: u64) -> Option<Stamp> {
        if !self.congestion.wants_stamps() {
            return None;
        }
        let (pipe, weight) = (self.pipe(), self.queue.weigh_one(bytes));
        self.congestion.stamp(now, weight, pipe)
    }

    /// Whether pacing holds the next segment back; its timer runs then.
    fn must_wait(&mut self, now: Time) -> bool {
        let at = self.congestion.pace_at(now);
        if let Some(at) = at {
            self.timers.set(Timer::Pace, at);
        }
        at.is_some()
    }

    /// Nothing waits to be sent: delivery rates of what leaves next tell of the application.
    fn note_app_limited(&mut self) {
        if self.congestion.wants_stamps() {
            let pipe = self.pipe();
            if pipe < self.congestion.cwnd() {
                self.congestion.on_app_limited(pipe);
            }
        }
    }

    /// Nothing more leaves now: `blocked` by the congestion window, or by something else.
    fn note_pass(&mut self, blocked: bool) {
        if self.in_flight() > 0 {
            let limited = blocked || self.pipe() >= self.congestion.cwnd();
            let data = self.queue.una()..self.queue.nxt();
            self.congestion.on_pass(limited, self.queue.flight_size(), &data);
        }
    }

    fn tell_sent_messages(&mut self, now: Time, sink: &mut Sink) {
        while let Some(message) = self.buffer.pop_sent(self.space.max) {
            let (flow, id, written_at) = (self.flow, message.id, message.written_at);
            sink.record(now, EventKind::MessageSent { flow, id, written_at });
        }
    }

    /// Nagle or CORK holds the rest back.
    fn hold(&mut self, now: Time, sink: &mut Sink) {
        if self.holding.begin(now) {
            let bytes = self.unsent() as u32;
            sink.record(now, EventKind::Held { flow: self.flow, bytes });
        }
        if self.holding.is_corked() && self.timers.deadline(Timer::Cork).is_none() {
            self.timers.set(Timer::Cork, now + CORK_CEILING);
        }
    }
}

/// What can be asked.
impl Sender {
    /// Whether anything that left, probes included, is not acknowledged.
    pub(crate) const fn is_waited_for(&self) -> bool {
        self.space.max > self.queue.una()
    }

    /// Whether only the peer's window keeps data from leaving, and nothing is out that would tell of it.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.waits.window && self.in_flight() == 0
    }

    /// Whether Nagle's algorithm or CORK holds data back now.
    pub(crate) const fn is_holding(&self) -> bool {
        self.holding.is_holding()
    }

    /// Payload of a full segment, bytes.
    pub(crate) const fn mss(&self) -> u32 {
        self.terms.mss
    }

    /// Window the peer announced, bytes.
    pub(crate) const fn peer_window(&self) -> u64 {
        self.space.wnd
    }

    /// Whether loss recovery is under way.
    pub(crate) fn is_recovering(&self) -> bool {
        self.recovery.phase() != Phase::Open
    }

    /// State of the congestion control.
    pub(crate) fn congestion(&self) -> Snapshot {
        self.congestion.snapshot()
    }

    /// The sequence number of the oldest byte unacknowledged.
    pub(crate) const fn oldest(&self) -> Seq {
        self.seq(self.queue.una())
    }

    /// The sequence number of the next byte to send for the first time.
    pub(crate) const fn next_to_send(&self) -> Seq {
        self.seq(self.queue.nxt())
    }

    /// The sequence number after all that ever left.
    pub(crate) const fn highest(&self) -> Seq {
        self.seq(self.space.max)
    }

    /// How marks are to come back.
    pub(crate) const fn ecn_feedback(&self) -> EcnFeedback {
        self.reaction.feedback
    }

    /// What is on the way, as the congestion window counts it.
    fn pipe(&self) -> u64 {
        self.recovery.pipe(&self.queue)
    }

    /// What must hold between any two calls, when it is `synchronised`, and when data may leave and has
    /// (`settled`).
    pub(crate) fn check(&self, synchronised: bool, settled: bool) -> Result<(), &'static str> {
        let max = self.space.max;
        let fin_end = self.buffer.end() + u64::from(self.buffer.is_closed());
        let watched = self.timers.deadline(Timer::Retransmit).is_some();
        let rules = [
            (max <= fin_end || max <= 1, "nothing beyond the FIN was sent"),
            (
                !synchronised || self.congestion.cwnd() >= self.queue.mss(),
                "cwnd of one MSS at least",
            ),
            (self.pipe() <= 2 * self.queue.flight_size(), "pipe within flight"),
            (
                self.in_flight() == 0 || !settled || watched,
                "the retransmission timer runs while data is out",
            ),
        ];
        let broken = rules.iter().find(|(holds, _)| !holds);
        broken.map_or(self.queue.check(max), |&(_, rule)| Err(rule))
    }
}

/// What time brings.
impl Sender {
    /// Acts on every deadline that has come.
    pub(crate) fn on_timeout(&mut self, now: Time, limit: Limit, sink: &mut Sink) -> Expiry {
        let mut output = false;
        if self.timers.take_expired(Timer::Retransmit, now) {
            if self.rto.attempts() >= limit.retries {
                return Expiry::GiveUp;
            }
            self.on_retransmission_timeout(now, limit.opening, sink);
            output = true;
        }
        if self.timers.take_expired(Timer::Cork, now) {
            self.holding.flush(self.buffer.end(), true);
            output = true;
        }
        output |= self.timers.take_expired(Timer::Pace, now);
        output |= self.timers.take_expired(Timer::Returned, now);
        if output { Expiry::Output } else { Expiry::Nothing }
    }

    /// RFC 6298 sections 5.4 to 5.7 and RFC 5681 section 3.1.
    fn on_retransmission_timeout(&mut self, now: Time, opening: bool, sink: &mut Sink) {
        let again = self.rto.attempts() > 0;
        self.rto.on_timeout();
        if opening {
            self.syn_due = true;
            return;
        }
        let in_flight = self.queue.flight_size();
        let recovering = self.recovery.phase() == Phase::Fast;
        let lost = self.recovery.on_timeout(again, &mut self.queue);
        self.requests.on_loss();
        self.queue.forget_returns();
        self.on_reduction();
        self.congestion.on_rto(now, &RtoSample { in_flight, again, recovering }, lost);
        sink.record(now, EventKind::Loss { flow: self.flow, timeout: true });
        self.tell_congestion(now, sink);
    }

    /// Output found nothing more to send: the retransmission timer watches what is out, and another what
    /// came back and must wait, whatever became of what it watched before.
    pub(crate) fn settle(&mut self, now: Time) {
        self.holding.end_pass();
        self.arm_returned(now);
        if self.in_flight() > 0 && self.timers.deadline(Timer::Retransmit).is_none() {
            self.arm_retransmission(now);
        }
    }
}
