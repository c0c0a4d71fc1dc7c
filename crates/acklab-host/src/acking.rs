//! When acknowledgments leave, and what reading does for that.

use crate::mib::Mib;
use crate::segment::after;
use crate::settings::{Env, MS, Us};
use crate::tcp::{State, Tcp};

/// Least delay of an ACK, and the first.
pub(crate) const DELAY_MIN: Us = 40 * MS;
/// Most delay of an ACK.
pub(crate) const DELAY_MAX: Us = 200 * MS;

/// Acknowledgments.
impl Tcp {
    pub(crate) fn is_pingpong(&self, env: &Env<'_>) -> bool {
        i64::from(self.ack.pingpong) >= env.sysctls.of("tcp_pingpong_thresh")
    }

    pub(crate) fn is_quick(&self, env: &Env<'_>) -> bool {
        env.route.quickack || (self.ack.quick > 0 && !self.is_pingpong(env))
    }

    /// Bytes that may wait for their ACK: a segment, or one less than the peer asked for.
    fn most_unacked(&self) -> u32 {
        let more = self.asked_of_us(self.receive_window()).map_or(1, |segments| segments - 1);
        self.ack.rcv_mss.saturating_mul(more)
    }

    /// Sends an ACK now, later or not at all, for what arrived; `disorder`: out-of-order data may be why.
    pub fn check_ack(&mut self, env: &Env<'_>, disorder: bool) {
        if !self.ack.scheduled {
            return;
        }
        if self.ack.policy.is_some() {
            if self.is_ack_ruled(env) {
                self.send_ack(env);
            }
            return;
        }
        let unacked = self.rcv.nxt.wrapping_sub(self.rcv.wup);
        let unread = self.rcv.nxt.wrapping_sub(self.rcv.copied);
        let beyond = unacked > self.most_unacked()
            && (unread < self.opt.rcvlowat || {
                let announced = self.rcv.wnd;
                let quick = self.ack.quick;
                let window = self.select_window(env);
                if window >= announced {
                    true
                } else {
                    self.ack.quick = self.ack.quick.min(quick);
                    false
                }
            });
        if beyond || self.is_quick(env) || self.ack.now {
            self.send_ack(env);
            return;
        }
        if !disorder || self.rcv.ooo.is_empty() {
            self.delay_ack(env);
            return;
        }
        if !self.terms.sack || i64::from(self.ack.compressed) >= env.sysctls.of("tcp_comp_sack_nr")
        {
            self.send_ack(env);
            return;
        }
        if self.ack.hole != self.rcv.nxt {
            self.ack.hole = self.rcv.nxt;
            self.ack.duplicates = 0;
        }
        if self.ack.duplicates < 3 {
            self.ack.duplicates += 1;
            self.send_ack(env);
            return;
        }
        self.ack.compressed += 1;
        if self.timers.compressed.is_some() {
            return;
        }
        // Five percent of the round trip, a millisecond at most.
        let mut rtt8 = self.rcv.rtt8;
        if self.rtt.srtt8 > 0 && self.rtt.srtt8 < rtt8 {
            rtt8 = self.rtt.srtt8;
        }
        let ceiling = env.sysctls.of("tcp_comp_sack_delay_ns") as Us / 1000;
        let delay = (rtt8 / 8 / 20).min(ceiling);
        // The kernel's timer may be late by that much, and is, unless another interrupt comes first.
        let slack = env.sysctls.of("tcp_comp_sack_slack_ns") as Us / 1000;
        self.timers.compressed = Some(env.now + delay + slack);
    }

    /// Starts the delayed-ACK timer, or keeps an earlier one.
    pub fn delay_ack(&mut self, env: &Env<'_>) {
        let mut ato = self.ack.ato;
        if ato > DELAY_MIN {
            let mut ceiling = 500 * MS;
            if self.is_pingpong(env) || self.ack.pushed {
                ceiling = DELAY_MAX;
            }
            if self.rtt.srtt8 > 0 {
                ceiling = ceiling.min(self.rtt.srtt().max(DELAY_MIN));
            }
            ato = ato.min(ceiling);
        }
        let most = if self.opt.delack_max > 0 { self.opt.delack_max } else { DELAY_MAX };
        // The delay never outlasts the peer's least time-out where a route or option lowered ours.
        ato = ato.min(most).min(self.rto_min(env).max(1));
        // Even without a delay (before any data came) the timer fires at the next tick.
        let mut at = env.now + ato.max(MS);
        if let Some(pending) = self.timers.delack {
            if pending <= env.now + (ato >> 2) {
                self.send_ack(env);
                return;
            }
            at = at.min(pending);
        }
        self.ack.scheduled = true;
        self.timers.delack = Some(at);
    }

    /// The delayed-ACK timer expired.
    pub fn on_delayed_ack(&mut self, env: &Env<'_>) {
        self.timers.delack = None;
        if self.state == State::Close || !self.ack.scheduled {
            return;
        }
        if self.ack.policy.is_some() {
            if self.is_timer_ruled(env) {
                self.send_ack(env);
            }
            return;
        }
        if self.is_pingpong(env) {
            self.ack.pingpong = 0;
            self.ack.ato = DELAY_MIN;
        } else {
            self.ack.ato = (self.ack.ato << 1).min(self.rtt.rto);
        }
        self.send_ack(env);
        self.tally(Mib::DelayedACKs);
    }

    /// The program read `copied` bytes: whether the peer is told.
    pub fn after_read(&mut self, env: &Env<'_>, copied: u32) {
        let mut due = self.is_read_ruled(env, copied);
        if self.ack.scheduled && self.ack.policy.is_none() {
            let unacked = self.rcv.nxt.wrapping_sub(self.rcv.wup);
            due = unacked > self.most_unacked()
                || (copied > 0
                    && (self.ack.pushed_twice || (self.ack.pushed && !self.is_pingpong(env)))
                    && self.allocated() == 0);
        }
        if copied > 0 && !due && !self.fate.shut_read {
            let now = self.receive_window();
            if 2 * now <= self.rcv.clamp {
                let new = self.select_window(env);
                due = new > 0 && new >= 2 * now;
            }
        }
        if due {
            self.send_ack(env);
        }
    }

    /// The program reads: how many bytes it gets of `max`. `peek`: they stay.
    pub fn read(&mut self, env: &Env<'_>, max: u32, peek: bool) -> u32 {
        let copied = self.readable().min(max);
        if peek || copied == 0 {
            return copied;
        }
        if self.rcv.urgent.is_some_and(|urgent| urgent.at == self.rcv.copied) {
            // The urgent byte is not of the stream.
            self.rcv.copied = self.rcv.copied.wrapping_add(1);
            self.rcv.urgent = None;
        }
        let end = self.rcv.copied.wrapping_add(copied);
        while let Some(front) = self.rcv.queue.front().copied() {
            if after(front.end, end) {
                break;
            }
            // What the program gets of each buffer is looked at by itself.
            self.rcv.copied = front.end;
            self.tune_buffer(env);
            self.rcv.memory = self.rcv.memory.saturating_sub(front.truesize);
            self.rcv.queue.pop_front();
        }
        if self.rcv.copied != end {
            self.rcv.copied = end;
            self.tune_buffer(env);
        }
        self.after_read(env, copied);
        copied
    }

    /// The program read the end: the buffer of a FIN that came alone goes.
    pub fn read_fin(&mut self) {
        if let Some(alone) = self.rcv.queue.pop_front_if(|chunk| chunk.seq == chunk.end) {
            self.rcv.memory = self.rcv.memory.saturating_sub(alone.truesize);
        }
    }

    /// Bytes received in order and not read.
    pub fn unread(&self) -> u32 {
        self.rcv.queue.back().map_or(0, |last| last.end.wrapping_sub(self.rcv.copied))
    }

    /// Bytes that one read may bring: up to the urgent byte, or behind it.
    pub fn readable(&self) -> u32 {
        let unread = self.unread();
        match self.rcv.urgent.map(|urgent| urgent.at.wrapping_sub(self.rcv.copied)) {
            Some(0) => unread.saturating_sub(1),
            Some(before) if before < unread => before,
            _ => unread,
        }
    }

    /// Dynamic right-sizing: the buffer follows what is read in a round trip.
    pub(crate) fn tune_buffer(&mut self, env: &Env<'_>) {
        let rtt = self.rcv.rtt8 >> 3;
        let elapsed = env.now.saturating_sub(self.rcv.space_at);
        if rtt == 0 || elapsed < rtt {
            return;
        }
        // What still waits came faster than it is read.
        let copied = self.rcv.copied.wrapping_sub(self.rcv.space_seq);
        let copied = copied.saturating_sub(self.rcv.nxt.wrapping_sub(self.rcv.copied));
        if copied > self.rcv.space {
            self.grow_buffer(env, copied);
        }
        self.rcv.space_seq = self.rcv.copied;
        self.rcv.space_at = env.now;
    }
    /// The buffer has room for twice what is read in a round trip, more while that grows, and for what waits behind
    /// a hole.
    pub(crate) fn grow_buffer(&mut self, env: &Env<'_>, copied: u32) {
        let before = std::mem::replace(&mut self.rcv.space, copied);
        if !env.sysctls.is_on("tcp_moderate_rcvbuf") || self.opt.rcvbuf_locked {
            return;
        }
        let window = 2 * u64::from(copied);
        let grow = window * u64::from(copied.saturating_sub(before)) / u64::from(before.max(1));
        let beyond = self.rcv.ooo.last().map_or(0, |last| last.end.wrapping_sub(self.rcv.nxt));
        let window = window + 2 * grow + u64::from(beyond);
        let memory = (window << 8) / u64::from(self.rcv.ratio.max(1));
        let memory = memory.min(env.sysctls.nth("tcp_rmem", 2) as u64) as u32;
        if memory > self.rcv.buffer {
            self.rcv.buffer = memory;
            // What may be announced follows as data comes.
            self.rcv.clamp = self.full_space();
        }
    }
}
