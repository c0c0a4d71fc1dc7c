//! The sending side: what was written, what is out, what each ACK tells of it, and what may leave.
//!
//! An ACK is news if it advances, SACKs something new or, without SACK, is a duplicate by RFC 5681
//! section 2; [`Congestion`] gets one sample of it. Marks that the peer echoes are answered as the
//! congestion control wants: once per window of data (RFC 3168 section 6.1.2), or by each ACK (RFC 8257);
//! CWR goes out once per window in either case (its section 3.3).

mod buffer;
mod holding;
mod next;
mod queue;
mod recovery;
mod reduction;
mod requests;
mod resent;
mod returned;
mod scoreboard;
#[cfg(test)]
mod tests;

use crate::ack_requests::AckRequests;
use crate::config::Config;
use crate::options::Terms;
use acklab_core::cc::{EcnFeedback, LossSample, ReturnedSample, Snapshot, Start};
use acklab_core::congestion::{Acked, Congestion};
use acklab_core::event::{EventKind, FlowKey, Interest, Sink};
use acklab_core::packet::Ecn;
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::timer::{TimerKind, TimerTable};
use buffer::SendBuffer;
use holding::Holding;
use queue::Queue;
use recovery::{Phase, Recovery, RtoEstimator};
pub use requests::Requests;

pub(super) use next::Stretch;

/// The sending side's deadlines.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// RFC 6298.
    Retransmit,
    /// TCP_CORK's 200 ms.
    Cork,
    /// Pacing lets the next segment go.
    Pace,
    /// A segment that came back goes again.
    Returned,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

impl TimerKind for Timer {
    const COUNT: usize = 4;
}

/// Sequence numbers and the peer's window (RFC 9293 section 3.3.1); offsets count from the initial sequence
/// number.
#[derive(Debug)]
struct Space {
    isn: Seq,
    /// Of the congestion control's coins: from the initial sequence number, which no other connection has.
    seed: u64,
    /// Highest ever sent; above the queue's `nxt` only after a window probe was taken back.
    max: u64,
    /// Window the peer announced, bytes.
    wnd: u64,
    /// Largest window it ever announced.
    max_wnd: u64,
    /// Sequence and acknowledgment number of the segment that last updated the window.
    wl1: Seq,
    wl2: u64,
}

/// The sender's answer to marks.
#[derive(Debug)]
struct Reaction {
    feedback: EcnFeedback,
    /// With which mark new data leaves.
    codepoint: Ecn,
    /// No echo counts until data beyond this offset is acknowledged.
    reacted: u64,
    /// The next new segment says CWR.
    cwr_due: bool,
}

/// When data left last, and what follows from it.
#[derive(Debug)]
struct Departures {
    /// Idleness begins slow start anew (RFC 5681 section 4.1).
    idle_restart: bool,
    last: Option<Time>,
    /// The last of several segments that leave as one for segmentation offload carries PSH (Linux 5.4 and later).
    push_bursts: bool,
    /// New segments that left at that time as one.
    burst: u64,
    /// The last of them ends it.
    pushes: bool,
}

/// What an ACK did beyond the sending side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// There is room again for a write that found too little.
    pub(super) writable: bool,
}

/// What a deadline did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// None had come.
    Nothing,
    /// Something may leave.
    Output,
    /// The peer does not answer.
    GiveUp,
}

/// How often something is sent again before the connection is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// So often.
    pub(super) retries: u32,
    /// It is our SYN.
    pub(super) opening: bool,
}

/// The sending side's state.
#[derive(Debug)]
pub(super) struct Sender {
    flow: FlowKey,
    terms: Terms,
    space: Space,
    buffer: SendBuffer,
    queue: Queue,
    recovery: Recovery,
    rto: RtoEstimator,
    congestion: Congestion,
    reaction: Reaction,
    holding: Holding,
    timers: TimerTable<Timer, 4>,
    departures: Departures,
    waits: Waits,
    requests: Requests,
    syn_due: bool,
}

/// Who waits for the peer.
#[derive(Debug, Default)]
struct Waits {
    /// A write found no room, or not enough.
    write: bool,
    /// The peer's window, not ours, keeps data from leaving.
    window: bool,
}

/// The opening.
impl Sender {
    pub(super) fn new(now: Time, config: &Config, flow: FlowKey, isn: Seq) -> Self {
        let terms = Terms::new(config);
        let seed = u64::from(isn.0);
        let start = start(config, terms.mss, config.window.initial.bytes(terms.mss), seed);
        let congestion = Congestion::new(now, config.congestion.controller(&start));
        Self {
            flow,
            terms,
            space: Space { isn, seed, max: 0, wnd: 0, max_wnd: 0, wl1: Seq(0), wl2: 0 },
            buffer: SendBuffer::new(config.send_buffer),
            queue: Queue::new(config.window.unit, terms.mss),
            recovery: Recovery::new(config.loss),
            rto: RtoEstimator::new(config.rto),
            reaction: Reaction {
                feedback: congestion.ecn_feedback(),
                codepoint: congestion.codepoint(),
                reacted: 0,
                cwr_due: false,
            },
            congestion,
            holding: Holding::new(config.nagle),
            timers: TimerTable::default(),
            departures: Departures {
                idle_restart: config.window.idle_restart,
                last: None,
                push_bursts: config.push_bursts,
                burst: 0,
                pushes: false,
            },
            waits: Waits::default(),
            requests: Requests::new(AckRequests::Off),
            syn_due: false,
        }
    }

    /// Our SYN, or SYN-ACK, must leave.
    pub(super) const fn open(&mut self) {
        self.syn_due = true;
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, flow: FlowKey, terms: Terms, segment: &TcpRepr) {
        (self.flow, self.terms) = (flow, terms);
        self.queue.set_mss(terms.mss);
        self.recovery.use_sack(terms.sack);
        self.requests = Requests::new(terms.ack_requests);
        // RFC 7323 section 2.2: the window of a SYN is never scaled.
        let wnd = u64::from(segment.window);
        self.space = Space { wnd, max_wnd: wnd, wl1: segment.seq, wl2: 0, ..self.space };
    }

    /// Whether our SYN left.
    pub(super) const fn is_opened(&self) -> bool {
        self.space.max > 0
    }

    /// Whether `segment` acknowledges our SYN, and nothing that was not sent.
    pub(super) const fn is_syn_acked(&self, segment: &TcpRepr) -> bool {
        let ack = self.offset(segment.ack);
        1 <= ack && ack <= self.space.max as i64
    }

    /// Our SYN is acknowledged by `segment`.
    pub(super) fn establish(&mut self, now: Time, config: &Config, segment: &TcpRepr) {
        let attempts = self.rto.attempts();
        self.take_rtt_sample(now, 1, segment);
        if attempts > 0 {
            self.rto.on_syn_timeout();
        }
        self.rto.on_progress();
        self.syn_due = false;
        self.timers.stop(Timer::Retransmit);
        let mss = self.terms.mss;
        // RFC 5681 section 3.1: one segment where the SYN or its answer was lost, or seems so.
        let forgiven = attempts <= config.window.forgiven_syns;
        let initial_window =
            if forgiven { config.window.initial.bytes(mss) } else { u64::from(mss) };
        let start = start(config, mss, initial_window, self.space.seed);
        self.congestion = Congestion::new(now, config.congestion.controller(&start));
        if self.congestion.wants_stamps() {
            self.queue.keep_stamps();
        }
        debug_assert!(self.congestion.cwnd() >= u64::from(mss));
    }

    /// From now on the congestion control's coins are those under `seed`, other ones for each connection.
    pub(super) fn reseed(&mut self, seed: u64) {
        self.space.seed = seed ^ u64::from(self.space.isn.0);
        self.congestion.reseed(self.space.seed);
    }
}

fn start(config: &Config, mss: u32, initial_window: u64, seed: u64) -> Start {
    let initial_ssthresh = config.window.ssthresh.unwrap_or(u64::MAX);
    Start { mss, initial_window, initial_ssthresh, seed }
}

/// What the peer says.
impl Sender {
    /// The ACK field of a segment; `None` where it cannot be of this connection (RFC 5961 section 5.2).
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        segment: &TcpRepr,
        sink: &mut Sink,
    ) -> Option<Outcome> {
        let (ack, una) = (self.offset(segment.ack), self.queue.una());
        if ack < una as i64 - self.space.max_wnd as i64 || ack > self.space.max as i64 {
            return None;
        }
        if self.recovery.is_timed() {
            self.queue.believe(now - self.rto.least_rtt());
        }
        let window_changed = self.take_window(ack, segment);
        let sacked = self.take_sack(segment, ack);
        // RFC 5681 section 2; with SACK what counts is news (RFC 6675 section 2).
        let duplicate = if self.terms.sack {
            sacked.is_some()
        } else {
            let is_bare = segment.seq_len() == 0 && !window_changed;
            ack == una as i64 && is_bare && self.queue.nxt() > una
        };
        let ack = ack.max(una as i64) as u64;
        if ack > una || duplicate {
            self.take_news(
                now,
                News { ack, sacked: sacked.unwrap_or(0), duplicate },
                segment,
                sink,
            );
        }
        self.take_echo(now, segment, sink);
        let writable = self.waits.write && self.room() > 0;
        self.waits.write &= !writable;
        Some(Outcome { writable })
    }

    /// The send window; returns whether it changed (RFC 9293 section 3.10.7.4, fifth check).
    fn take_window(&mut self, ack: i64, segment: &TcpRepr) -> bool {
        let (una, space) = (self.queue.una() as i64, &mut self.space);
        let newer =
            segment.seq.after(space.wl1) || (segment.seq == space.wl1 && ack >= space.wl2 as i64);
        if ack < una || !(newer || ack > una) {
            return false;
        }
        let window = u64::from(segment.window) << self.terms.peer_scale;
        let changed = window != space.wnd;
        space.wnd = window;
        space.max_wnd = space.max_wnd.max(window);
        (space.wl1, space.wl2) = (segment.seq, ack as u64);
        changed
    }

    /// SACK blocks; returns what their news weighs, `None` where they bring none. Blocks outside of what
    /// was sent are ignored.
    fn take_sack(&mut self, segment: &TcpRepr, ack: i64) -> Option<u64> {
        if !self.terms.sack || segment.options.sack.is_empty() {
            return None;
        }
        let floor = ack.max(self.queue.una() as i64);
        let mut news = None;
        for block in segment.options.sack.as_slice() {
            let (left, right) = (self.offset(block.left), self.offset(block.right));
            if left > floor
                && left < right
                && right <= self.queue.nxt() as i64
                && let Some(weight) = self.queue.mark(left as u64, right as u64)
            {
                news = Some(news.unwrap_or(0) + weight);
            }
        }
        news
    }

    /// An ACK with news.
    fn take_news(&mut self, now: Time, news: News, segment: &TcpRepr, sink: &mut Sink) {
        let (una, in_flight) = (self.queue.una(), self.queue.flight_size());
        let advanced = news.ack > una;
        let acked = self.queue.weigh(una, news.ack);
        let before = (!advanced).then(|| self.congestion.snapshot());
        let in_fast_recovery = self.recovery.phase() == Phase::Fast;
        let delivered = self.recovery.newly_delivered(news.ack, acked, news.sacked, &self.queue);
        let mut rtt = self.take_selective_rtt(now);
        let mut recovered = false;
        if advanced {
            rtt = self.take_rtt_sample(now, news.ack, segment).or(rtt);
            self.rto.on_progress();
            recovered = self.recovery.on_advance(acked, &self.queue) && in_fast_recovery;
        }
        let duplicate = news.duplicate && self.queue.returned_until(self.queue.una()).is_none();
        let entered = duplicate && self.recovery.on_duplicate(&self.queue);
        let ece = self.is_echo(segment);
        let lost = self.recovery.take_lost(self.rto.least_rtt() / 4, &self.queue);
        if news.duplicate {
            self.queue.deliver_marked(|stamp| self.congestion.on_delivered(stamp));
        }
        let srtt = self.rto.srtt();
        let told = Acked {
            acked,
            delivered,
            lost,
            ece,
            // An ACK with the echo speaks for all that it covers.
            marked: if ece { delivered } else { 0 },
            in_flight,
            rtt,
            srtt,
            in_fast_recovery,
            recovered,
        };
        self.congestion.on_ack(now, &told);
        if in_fast_recovery {
            self.recovery.on_delivered(delivered, advanced && lost == 0, &self.queue);
        }
        if advanced {
            let mss = u64::from(self.terms.mss);
            // What fills a gap moves the ACK by more than the segments that the peer held back.
            let is_clean = self.recovery.phase() == Phase::Open && !recovered;
            let segments = if is_clean { acked.div_ceil(mss) } else { 0 };
            let window = self.congestion.cwnd() / mss;
            self.requests.on_ack(self.queue.una(), self.queue.nxt(), segments, window);
        }
        if advanced && self.in_flight() > 0 {
            self.arm_retransmission(now);
        } else if advanced {
            self.timers.stop(Timer::Retransmit);
        }
        if advanced || before != Some(self.congestion.snapshot()) {
            self.tell_congestion(now, sink);
        }
        if entered {
            self.on_reduction();
            let in_flight = self.queue.flight_size();
            let window = self.congestion.cwnd();
            self.congestion.on_loss(now, &LossSample { in_flight, ece });
            // Those that pace decide about recovery themselves.
            if self.congestion.pacing_rate().is_none() {
                let threshold = self.congestion.cwnd();
                self.recovery.reduce(window, threshold, &self.queue);
                self.recovery.on_delivered(delivered, false, &self.queue);
            }
            self.requests.on_loss();
            sink.record(now, EventKind::Loss { flow: self.flow, timeout: false });
            self.tell_congestion(now, sink);
        }
    }

    /// Everything below `ack` is acknowledged. Measures the round trip of the newest segment of it, where
    /// Karn's algorithm or a timestamp allows that.
    fn take_rtt_sample(&mut self, now: Time, ack: u64, segment: &TcpRepr) -> Option<Span> {
        let once = self.recovery.left_once(self.queue.una());
        let newest = self.queue.acknowledge(ack, |stamp| self.congestion.on_delivered(stamp));
        let rtt = if once {
            newest.map(|at| now.since(at))
        } else {
            segment.options.timestamp.and_then(|ts| self.terms.echoed_rtt(now, ts))
        };
        if let Some(rtt) = rtt {
            self.rto.on_sample(rtt);
        }
        rtt
    }

    /// The round trip of the highest segment that SACK was the first to report, where it left once
    /// (`tcp_ack_update_rtt` of Linux): without it a sender in recovery measures nothing.
    fn take_selective_rtt(&mut self, now: Time) -> Option<Span> {
        let (end, left) = self.queue.take_reported()?;
        let rtt = self.recovery.left_once(end - 1).then(|| now.since(left))?;
        self.rto.on_sample(rtt);
        Some(rtt)
    }

    /// Whether a segment of the peer's echoes congestion.
    const fn is_echo(&self, segment: &TcpRepr) -> bool {
        self.terms.ecn && segment.flags.has(Flags::ECE)
    }

    /// The peer's echo, after the congestion control was told of the ACK that carries it.
    fn take_echo(&mut self, now: Time, segment: &TcpRepr, sink: &mut Sink) {
        if !self.is_echo(segment) || self.queue.una() <= self.reaction.reacted {
            return;
        }
        self.on_reduction();
        if self.reaction.feedback == EcnFeedback::PerWindow {
            self.congestion.on_ecn(now, self.queue.flight_size());
            self.tell_congestion(now, sink);
        }
    }

    /// The window is reduced, for whatever reason.
    const fn on_reduction(&mut self) {
        if self.terms.ecn {
            self.reaction.reacted = self.queue.nxt();
            self.reaction.cwr_due = true;
        }
    }

    /// A segment of ours came back (E-DCTCP); returns whether something may leave for it. Returned SYNs,
    /// ACKs without data and window probes are left to the timers that stand behind them; so is a copy
    /// that is lost after all, for which the retransmission time-out begins anew.
    pub(super) fn on_returned(&mut self, now: Time, segment: &TcpRepr, sink: &mut Sink) -> bool {
        let start = self.offset(segment.seq).max(self.queue.una() as i64);
        let end = self.offset(segment.seq) + i64::from(segment.seq_len());
        if end <= start || end > self.queue.nxt() as i64 {
            return false;
        }
        let start = start as u64;
        let Some(times) = self.queue.take_back(now, start, end as u64) else { return false };
        let (in_flight, srtt) = (self.queue.flight_size(), self.rto.srtt());
        let wait = self.congestion.on_returned(now, &ReturnedSample { in_flight, times, srtt });
        self.queue.postpone(start, now + wait);
        self.timers.set(Timer::Retransmit, now + wait + self.rto.rto());
        self.tell_congestion(now, sink);
        true
    }
}

/// What the path says.
impl Sender {
    /// A segment that began at `seq` was too large for the path, which carries `mss` bytes without options.
    /// What is out is cut anew and sent again as after a time-out, without a word to the congestion
    /// control. Returns whether something may leave for it.
    pub(super) fn on_too_big(&mut self, now: Time, seq: Seq, mss: u32) -> bool {
        let (at, una) = (self.offset(seq), self.queue.una());
        let mss = self.terms.with_options(mss);
        if at < una as i64 || at >= self.queue.nxt() as i64 || una == 0 || mss >= self.terms.mss {
            return false;
        }
        self.terms.mss = mss;
        self.queue.set_mss(mss);
        self.recovery.on_timeout(false, &mut self.queue);
        self.arm_retransmission(now);
        true
    }
}

/// An ACK with news.
#[derive(Clone, Copy, Debug)]
struct News {
    /// Its acknowledgment number, or our oldest unacknowledged offset where that is later.
    ack: u64,
    /// What it was the first to SACK, as the window counts it.
    sacked: u64,
    /// It counts towards the threshold of duplicates.
    duplicate: bool,
}

/// What both ways need.
impl Sender {
    /// Whether our FIN is acknowledged.
    pub(super) const fn is_finished(&self) -> bool {
        self.buffer.is_closed() && self.queue.una() > self.buffer.end()
    }

    /// The connection is over: no deadline, nothing to send.
    pub(super) fn end(&mut self) {
        self.timers = TimerTable::default();
        self.holding.release();
        self.buffer.clear();
        self.syn_due = false;
    }

    /// The sequence number of `offset`.
    pub(super) const fn seq(&self, offset: u64) -> Seq {
        Seq(self.space.isn.0.wrapping_add(offset as u32))
    }

    /// The offset of `seq`, which lies near the oldest unacknowledged.
    pub(super) const fn offset(&self, seq: Seq) -> i64 {
        self.queue.una() as i64 + seq.distance(self.seq(self.queue.una())) as i64
    }

    /// Sequence space sent and not acknowledged, bytes.
    pub(super) const fn in_flight(&self) -> u64 {
        self.queue.nxt() - self.queue.una()
    }

    /// Smoothed round trip.
    pub(super) fn srtt(&self) -> Option<Span> {
        self.rto.srtt()
    }

    /// Retransmission time-out in force.
    pub(super) fn rto(&self) -> Span {
        self.rto.rto()
    }

    /// RFC 6298 sections 5.1 and 5.3.
    fn arm_retransmission(&mut self, now: Time) {
        self.timers.set(Timer::Retransmit, now + self.rto.rto());
    }

    /// What came back and is due, but may not leave yet, is left to pacing.
    fn arm_returned(&mut self, now: Time) {
        match self.queue.earliest_return().filter(|&at| at > now) {
            Some(at) => self.timers.set(Timer::Returned, at),
            None => self.timers.stop(Timer::Returned),
        }
    }

    /// Tells the congestion state to whoever listens.
    fn tell_congestion(&self, now: Time, sink: &mut Sink) {
        if !sink.wants(Interest::CONGESTION) {
            return;
        }
        let Snapshot { cwnd, ssthresh } = self.congestion.snapshot();
        let (flow, in_flight, acked) = (self.flow, self.in_flight(), self.queue.una());
        sink.record(now, EventKind::Congestion { flow, cwnd, ssthresh, in_flight, acked });
    }

    /// The next deadline.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }
}
