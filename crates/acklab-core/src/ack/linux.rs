//! Linux's receiver, 4.15 to 6.x: the quick-ACK budget, ping-pong mode, the adaptive `ato`, the
//! estimate of the peer's MSS and the ACK on read, all of which decide together.
//!
//! Written from the documented behaviour of `tcp_event_data_recv`, `__tcp_ack_snd_check`,
//! `tcp_send_delayed_ack`, the delayed-ACK timer and `tcp_cleanup_rbuf` (net/ipv4, v6.12). In short:
//! - the first 16 ACKs (fewer with a small window) are quick, and again after a pause longer than the
//!   RTO; they stop as soon as the host answers within `ato` ("ping-pong": it hopes to piggyback);
//! - otherwise an ACK leaves when more than `rcv_mss` bytes wait for one, or when the application
//!   reads the last small segment and the host is not in ping-pong mode;
//! - otherwise after `ato`, which follows the gaps between segments from 40 ms and doubles when the
//!   timer fires; firing also ends ping-pong mode.
//!
//! Left out: SACK compression, the per-route quickack metric, low-watermark readers
//! (`SO_RCVLOWAT`), compressed and backlog-deferred ACKs (6.7).

use super::delayed::expire;
use super::tick::{next_tick, shifted};
use super::{AckPolicy, DataSample, Decision, Disorder, ReadSample};
use crate::time::{Span, Time};

crate::options! {
    /// What differs between versions and builds.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// The kernel's jiffy; timers then expire on this grid (4 ms where HZ is 250). 0: exact.
        jiffy: Option<Span> = "0",
        /// Replies within ato of data that make the conversation ping-pong: 1, but 3 in 5.1 to 5.18
        /// (commits 4a41f453, 4d8f24ee; a sysctl from 6.7).
        pingpong_threshold: u8 as count(1, 255) = "1",
        /// Before 6.6 (commit 4720852ed9af) a full-sized segment with PSH did not count as pushed, so
        /// that a write of exactly one MSS waited for the timer.
        full_segment_push: bool = "true",
    }
}

/// One connection's receiver state.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag in the kernel's state, too")]
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    options: Options,
    phase: Span,
    /// ACKs left to be sent at once.
    quick: u32,
    pingpong: u8,
    ato: Span,
    last_data: Option<Time>,
    rcv_mss: u32,
    last_segment: u32,
    ack_scheduled: bool,
    pushed: bool,
    pushed_twice: bool,
    deadline: Option<Time>,
    quickack_always: bool,
    /// Segments of `rcv_mss` beyond which an ACK leaves, on arrival and on reading; 1 but where ACKs are
    /// limited or asked for.
    stretch: [u32; 2],
}

impl Linux {
    /// A fresh connection; `phase`, in [0, 1), shifts the jiffy grid.
    pub fn new(phase: f64, options: Options) -> Self {
        Self {
            options,
            phase: options.jiffy.map_or(Span::ZERO, |jiffy| shifted(jiffy, phase)),
            quick: 0,
            pingpong: 0,
            ato: Span::ZERO,
            last_data: None,
            rcv_mss: MSS_DEFAULT,
            last_segment: 0,
            ack_scheduled: false,
            pushed: false,
            pushed_twice: false,
            deadline: None,
            quickack_always: false,
            stretch: [1, 1],
        }
    }

    /// Acknowledges beyond `segments` of the peer's segments from now on, and so on reading if `reads`.
    pub(super) const fn stretch(&mut self, segments: u32, reads: bool) {
        self.stretch = [segments, if reads { segments } else { 1 }];
    }

    /// Whether more than a stretch of segments waits, the first one's on arrival, the second one's on reading.
    const fn is_beyond(&self, unacked_bytes: u32, which: usize) -> bool {
        unacked_bytes > self.rcv_mss.saturating_mul(self.stretch[which])
    }

    /// Whether the host expects to answer and so holds ACKs back.
    pub const fn is_pingpong(&self) -> bool {
        self.pingpong >= self.options.pingpong_threshold
    }

    const fn is_quick(&self) -> bool {
        self.quickack_always || (self.quick > 0 && !self.is_pingpong())
    }

    /// Refills the quick-ACK budget: half the window in segments, 2 to 16.
    fn refill_quick(&mut self, window: u32) {
        let fits = match window / (2 * self.rcv_mss) {
            0 => 2,
            n => n,
        };
        self.quick = self.quick.max(fits.min(MAX_QUICKACKS));
    }

    /// Follows the peer's segment size and notes pushed small segments (`tcp_measure_rcv_mss`).
    fn measure(&mut self, sample: &DataSample) {
        let before = std::mem::take(&mut self.last_segment);
        if sample.len >= self.rcv_mss {
            self.rcv_mss = sample.len.min(sample.mss.max(MSS_MIN));
            // Senders push whenever their buffer was full; a limited rate of ACKs lets that be.
            let counts = self.options.full_segment_push && self.stretch[1] == 1;
            self.pushed |= sample.push && counts;
            return;
        }
        if sample.len >= MSS_DEFAULT || (sample.len >= MSS_MIN && !sample.push) {
            self.last_segment = sample.len;
            if sample.len == before {
                self.rcv_mss = sample.len;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// Adapts `ato` to the gap since the last data.
    fn adapt(&mut self, now: Time, sample: &DataSample) {
        let Some(last) = self.last_data.filter(|_| !self.ato.is_zero()) else {
            self.refill_quick(sample.window);
            self.ato = ATO_MIN;
            return;
        };
        let gap = self.floor(now).since(self.floor(last));
        if gap <= ATO_MIN / 2 {
            self.ato = self.ato / 2 + ATO_MIN / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(sample.rto);
        } else if gap > sample.rto {
            self.refill_quick(sample.window);
        }
    }

    /// Starts the timer or keeps an earlier deadline; `Now` where that is nearly due.
    fn delay(&mut self, now: Time, srtt: Option<Span>) -> Decision {
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let mut ceiling = ATO_CEILING;
            if self.is_pingpong() || self.pushed {
                ceiling = DELACK_MAX;
            }
            if let Some(srtt) = srtt {
                ceiling = ceiling.min(srtt.max(ATO_MIN));
            }
            ato = ato.min(ceiling);
        }
        ato = ato.min(DELACK_MAX);
        let mut deadline = self.floor(now) + ato;
        if let Some(pending) = self.deadline {
            if pending <= self.floor(now) + ato / 4 {
                return Decision::Now;
            }
            deadline = deadline.min(pending);
        }
        self.deadline = Some(deadline);
        Decision::Wait
    }

    /// How late timers expire: the timer wheel (4.8 and later, `calc_index` of kernel/time/timer.c)
    /// rounds up by one jiffy, so that 40 ms become 40 to 44 where HZ is 250.
    fn lateness(&self) -> Span {
        self.options.jiffy.unwrap_or(Span::ZERO)
    }

    /// The last jiffy boundary at or before `now`.
    fn floor(&self, now: Time) -> Time {
        match self.options.jiffy {
            None => now,
            Some(jiffy) => next_tick(now, jiffy, self.phase, 1) - jiffy,
        }
    }
}

impl AckPolicy for Linux {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        self.ack_scheduled = true;
        self.measure(sample);
        self.adapt(now, sample);
        self.last_data = Some(now);
        if sample.window_grew {
            // `tcp_grow_window`: the sender should learn of the larger window at once.
            self.quick |= 1;
        }
        let two_segments = self.is_beyond(sample.unacked_bytes, 0) && sample.window_not_shrunk;
        if two_segments || self.is_quick() {
            return Decision::Now;
        }
        self.delay(now, sample.srtt)
    }

    fn on_disorder(&mut self, _now: Time, disorder: Disorder, window: u32) {
        self.ack_scheduled = true;
        if disorder == Disorder::Repeated {
            // `tcp_enter_quickack_mode`: an ACK was lost or late, the sender needs every one. A gap costs one ACK
            // for each segment beyond it and one for what fills it (`tcp_data_queue_ofo`, `tcp_ofo_queue`).
            self.refill_quick(window);
            self.pingpong = 0;
            self.ato = ATO_MIN;
        }
    }

    fn on_read(&mut self, _now: Time, sample: &ReadSample) -> Decision {
        let small_and_done = sample.copied > 0
            && sample.queue_empty
            && (self.pushed_twice || (self.pushed && !self.is_pingpong()));
        if self.ack_scheduled && (self.is_beyond(sample.unacked_bytes, 1) || small_and_done) {
            Decision::Now
        } else {
            Decision::Wait
        }
    }

    fn on_data_sent(&mut self, now: Time) {
        let is_reply =
            self.last_data.is_some_and(|last| self.floor(now).since(self.floor(last)) < self.ato);
        if is_reply {
            self.pingpong = self.pingpong.saturating_add(1);
        }
    }

    fn on_request(&mut self, segments: u32) {
        self.stretch(segments.saturating_sub(1), true);
    }

    fn on_ack_sent(&mut self, _now: Time) {
        // `tcp_dec_quickack_mode`: a segment that answers nothing costs none of the budget.
        if self.ack_scheduled {
            if self.quick == 1 {
                self.ato = ATO_MIN;
            }
            self.quick = self.quick.saturating_sub(1);
        }
        self.ack_scheduled = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.deadline = None;
    }

    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision {
        let asked = now - self.lateness();
        let decision = expire(&mut self.deadline, asked);
        if decision == Decision::Now {
            if self.is_pingpong() {
                self.pingpong = 0;
                self.ato = ATO_MIN;
            } else {
                self.ato = (self.ato * 2).min(rto);
            }
        }
        decision
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline.map(|at| at + self.lateness())
    }

    fn on_quickack(&mut self, _now: Time, on: bool, always: bool) {
        // `TCP_QUICKACK` is a hint that ping-pong mode soon undoes; the route metric is for good.
        self.pingpong = if on { 0 } else { self.options.pingpong_threshold };
        self.quickack_always = on && always;
    }
}

/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`: HZ/25.
const ATO_MIN: Span = Span::from_millis(40);
/// `TCP_DELACK_MAX`: HZ/5.
const DELACK_MAX: Span = Span::from_millis(200);
/// `max_ato` of `tcp_send_delayed_ack`: HZ/2, the bound of RFC 9293 section 3.8.6.3.
const ATO_CEILING: Span = Span::from_millis(500);
/// `TCP_MAX_QUICKACKS`.
const MAX_QUICKACKS: u32 = 16;
/// `TCP_MSS_DEFAULT`: where the estimate starts.
const MSS_DEFAULT: u32 = 536;
/// `TCP_MIN_MSS`.
const MSS_MIN: u32 = 88;
