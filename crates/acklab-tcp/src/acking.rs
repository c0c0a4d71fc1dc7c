//! What we owe the peer an acknowledgment for, and why one leaves: the policy's surroundings.

use acklab_core::ack::{AckPolicy, DataSample, Decision, Policy, ReadSample};
use acklab_core::event::AckReason;
use acklab_core::time::{Span, Time};

/// The receiving side's acknowledgment state.
#[derive(Debug)]
pub(super) struct Acking {
    pub(super) policy: Policy,
    /// An ACK must leave now, and why.
    pub(super) due: Option<AckReason>,
    /// Offset last acknowledged.
    acked: u64,
    /// Segments in order since.
    segments: u32,
    /// When the oldest of them arrived.
    oldest: Option<Time>,
    /// The window last announced was zero.
    pub(super) announced_zero: bool,
    /// When the last challenge or duplicate ACK without data left (RFC 5961 section 7).
    last_challenge: Option<Time>,
}

/// What the connection knows that the policy's samples need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    pub(super) mss: u32,
    pub(super) nxt: u64,
    pub(super) window: u64,
    pub(super) best_window: u64,
    pub(super) not_shrunk: bool,
    pub(super) srtt: Option<Span>,
    pub(super) rto: Span,
}

impl Acking {
    pub(super) const fn new(policy: Policy) -> Self {
        Self {
            policy,
            due: None,
            acked: 0,
            segments: 0,
            oldest: None,
            announced_zero: false,
            last_challenge: None,
        }
    }

    /// Bytes in order that no ACK of ours has covered.
    pub(super) const fn unacked(&self, nxt: u64) -> u64 {
        nxt.saturating_sub(self.acked)
    }

    /// The offset of the last ACK that left.
    pub(super) const fn acked(&self) -> u64 {
        self.acked
    }

    /// An ACK must leave now. The first reason of a batch stands.
    pub(super) fn demand(&mut self, reason: AckReason) {
        self.due.get_or_insert(reason);
    }

    /// A challenge or other reply to a segment that was not acceptable: limited in rate, lest two
    /// ends answer each other for ever (RFC 5961 section 7).
    pub(super) fn challenge(&mut self, now: Time) {
        if self.last_challenge.is_none_or(|last| now.since(last) >= CHALLENGE_INTERVAL) {
            self.last_challenge = Some(now);
            self.demand(AckReason::Control);
        }
    }

    /// Data arrived in order.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        (len, push): (u32, bool),
        window_grew: bool,
        at: &Surroundings,
    ) {
        self.segments += 1;
        self.oldest.get_or_insert(now);
        let sample = DataSample {
            len,
            push,
            mss: at.mss,
            unacked_segments: self.segments,
            unacked_bytes: self.unacked(at.nxt) as u32,
            window: at.best_window as u32,
            window_not_shrunk: at.not_shrunk,
            was_zero_window: self.announced_zero,
            window_grew,
            srtt: at.srtt,
            rto: at.rto,
        };
        if self.policy.on_data(now, &sample) == Decision::Now {
            self.demand(AckReason::Policy);
        }
    }

    /// Data arrived out of order, or twice, or filled a gap.
    pub(super) fn on_disorder(&mut self, now: Time, window: u64) {
        self.oldest.get_or_insert(now);
        self.policy.on_disorder(now, window as u32);
        self.demand(AckReason::OutOfOrder);
    }

    /// The application read.
    pub(super) fn on_read(&mut self, now: Time, copied: u32, unread: u64, at: &Surroundings) {
        let sample = ReadSample {
            copied,
            unacked_bytes: self.unacked(at.nxt) as u32,
            queue_empty: unread == 0,
            window: at.best_window as u32,
            advertised: at.window as u32,
        };
        if self.policy.on_read(now, &sample) == Decision::Now {
            self.demand(AckReason::Read);
        }
    }

    /// The policy's timer may be due.
    pub(super) fn handle_timeout(&mut self, now: Time, rto: Span) {
        if self.policy.poll_timeout().is_some_and(|at| at <= now)
            && self.policy.handle_timeout(now, rto) == Decision::Now
        {
            self.demand(AckReason::Timer);
        }
    }

    /// A segment with an ACK left; returns the wait of the oldest segment it covers, if any.
    pub(super) fn on_sent(&mut self, now: Time, nxt: u64, zero_window: bool) -> Option<Span> {
        self.due = None;
        self.acked = nxt;
        self.segments = 0;
        self.announced_zero = zero_window;
        self.policy.on_ack_sent(now);
        self.oldest.take().map(|oldest| now.since(oldest))
    }
}

/// Linux `tcp_invalid_ratelimit`; RFC 5961 section 7 leaves the figure open.
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);
