//! New data: what the windows, Nagle's algorithm, CORK and bursts let leave.

use crate::asking::REQUEST;
use crate::errqueue::stamp;
use crate::mib::Mib;
use crate::output::{Pass, Push, SKB_OVERHEAD};
use crate::segment::{after, before, flag};
use crate::settings::{Env, MS, Us};
use crate::skb::{RateStamp, Skb};
use crate::tcp::{CaState, State, Tcp, Wait};

/// New data.
impl Tcp {
    /// The size of the largest piece of the send queue, bytes.
    pub fn size_goal(&self, env: &Env<'_>) -> u32 {
        let mss = self.current_mss();
        let limit = self.half_window(env.route.gso_max_size - 1 - env.route.header_room);
        let packets = (limit / mss).min(env.route.gso_max_segs);
        (packets * mss).max(mss)
    }

    /// At most half of the largest window that the peer announced.
    pub fn half_window(&self, bytes: u32) -> u32 {
        let cutoff =
            if self.snd.max_window > 536 { self.snd.max_window >> 1 } else { self.snd.max_window };
        if cutoff > 0 && bytes > cutoff {
            cutoff.max(68_u32.saturating_sub(self.terms.header))
        } else {
            bytes
        }
    }

    /// Most packets of a burst: about a millisecond's worth at the pacing rate, two at least.
    pub(crate) fn burst(&self, env: &Env<'_>) -> u32 {
        let log = env.sysctls.of("tcp_tso_rtt_log") as u32;
        let shift = self.rtt.least().checked_shr(log).unwrap_or(0).min(31);
        let near = u64::from(env.route.gso_max_size) >> shift;
        let bytes = ((self.count.pacing_rate >> 10) + near).min(u64::from(env.route.gso_max_size));
        let floor = env.sysctls.of("tcp_min_tso_segs").max(1) as u32;
        let packets = (bytes as u32 / self.current_mss()).max(floor);
        packets.min(env.route.gso_max_segs)
    }

    /// Whether Nagle's algorithm (Minshall's variant, or RFC 896's where it is asked for) or CORK keeps a partial packet
    /// back.
    pub(crate) fn is_held(&self, partial: bool, push: Push) -> bool {
        self.is_held_behind(self.packets_out() > 0, partial, push)
    }

    /// The same where something is out, or leaves before it.
    fn is_held_behind(&self, any: bool, partial: bool, push: Push) -> bool {
        if !partial || push == Push::Off || self.opt.push {
            return false;
        }
        let small_out =
            after(self.snd.small_end, self.snd.una) && !after(self.snd.small_end, self.snd.nxt);
        push == Push::Cork
            || self.opt.cork
            || (!self.opt.nodelay && any && (self.opt.classic_nagle || small_out))
    }

    /// Bytes that Nagle's algorithm or CORK keeps back though the windows would let them leave.
    pub fn held(&self) -> Option<u32> {
        let skb = self.snd.queue.front()?;
        let fits = self.quota() > 0 && !after(skb.end, self.window_end());
        let partial = self.snd.queue.len() == 1 && skb.len() < self.current_mss();
        let control = skb.flags & flag::FIN != 0;
        (fits && !control && self.is_held(partial, Push::Normal)).then(|| skb.len())
    }

    /// Whether a burst waits for the ACK that will let it be larger. Returns also which window is the limit.
    pub(crate) fn is_deferred(
        &self,
        env: &Env<'_>,
        skb: &Skb,
        is_last: bool,
    ) -> (bool, bool, bool) {
        const SEND: (bool, bool, bool) = (false, false, false);
        if self.rec.ca >= CaState::Recovery || env.now.saturating_sub(self.snd.last_wire) > MS {
            return SEND;
        }
        let mss = self.current_mss();
        let in_flight = self.in_flight();
        let send_win = self.window_end().wrapping_sub(skb.seq);
        let cong_win = self.window.cwnd.saturating_sub(in_flight).saturating_mul(mss);
        let limit = send_win.min(cong_win);
        if limit >= self.burst(env).saturating_mul(mss) || (!is_last && limit >= skb.len()) {
            return SEND;
        }
        let divisor = env.sysctls.of("tcp_tso_win_divisor") as u32;
        let window = self.snd.wnd.min(self.window.cwnd.saturating_mul(mss));
        if let Some(chunk) = window.checked_div(divisor) {
            if limit >= chunk {
                return SEND;
            }
        } else if limit > 3 * mss {
            return SEND;
        }
        let Some(head) = self.snd.out.front() else { return SEND };
        // The next ACK is expected in more than a millisecond, or half a round trip: too late to wait for it.
        let (srtt, expected) = (self.rtt.srtt(), head.sent + self.rtt.srtt());
        if expected > env.now + MS.min(srtt / 2) {
            return SEND;
        }
        if cong_win < send_win {
            if cong_win <= skb.len() {
                return (true, true, false);
            }
        } else if send_win <= skb.len() {
            return (true, false, true);
        }
        if skb.flags & flag::FIN != 0 || skb.eor {
            return SEND;
        }
        (true, false, false)
    }

    /// Sends what the windows, Nagle's algorithm and pacing admit. Returns whether data waits and nothing is out
    /// that would bring it on its way.
    pub fn write_xmit(&mut self, env: &Env<'_>, push: Push, pass: Pass) -> bool {
        self.judge_option(env);
        let mut sent = 0;
        let (mut cwnd_limited, mut rwnd_limited) = (false, false);
        if pass == Pass::All && self.probe_mtu(env) {
            sent += 1;
        }
        let full = self.current_mss();
        while !self.snd.queue.is_empty() {
            if self.is_paced(env) {
                break;
            }
            // A request is on one packet, which has less room for it.
            let asks = self.asks_now(full);
            let mss = if asks { full - REQUEST } else { full };
            let mut quota = self.quota();
            if quota == 0 {
                if pass != Pass::Probe {
                    break;
                }
                quota = 1;
            }
            let quota = if asks { 1 } else { quota.min(self.burst(env)) };
            self.grow_first(quota.saturating_mul(mss));
            let Some(skb) = self.snd.queue.front().copied() else { break };
            let first_end = if skb.len() > mss { skb.seq.wrapping_add(mss) } else { skb.end };
            if after(first_end, self.window_end()) {
                rwnd_limited = true;
                break;
            }
            let is_last = self.snd.queue.len() == 1;
            let is_control = skb.flags & flag::FIN != 0 || self.snd.urgent != self.snd.una;
            let packets = skb.packets(mss);
            let mut limit = mss;
            if packets == 1 {
                let push = if is_last { push } else { Push::Off };
                if !is_control && self.is_held(skb.len() < mss, push) {
                    break;
                }
            } else {
                if pass == Pass::All {
                    let (waits, by_congestion, by_peer) = self.is_deferred(env, &skb, is_last);
                    if waits {
                        cwnd_limited |= by_congestion;
                        rwnd_limited |= by_peer;
                        break;
                    }
                }
                // Each packet of an urgent burst has its own pointer.
                if self.snd.urgent == self.snd.una {
                    limit = self.split_point(&skb, mss, quota, is_last, push);
                }
            }
            let mut piece = skb;
            if skb.len() > limit {
                let mut rest = piece.split(limit);
                rest.overhead = SKB_OVERHEAD;
                self.snd.queue[0] = rest;
                self.snd.memory += SKB_OVERHEAD;
            } else {
                self.snd.queue.pop_front();
            }
            if piece.len() < piece.packets(mss) * mss {
                // Minshall's variant counts what leaves here, probes of a window do not.
                self.snd.small_end = piece.end;
            }
            sent += self.send_new(env, piece, mss, asks);
            if pass != Pass::All {
                break;
            }
        }
        self.after_pass(env, pass, sent, cwnd_limited, rwnd_limited)
    }

    /// Fills the first piece of the queue up to `bytes` from the one behind it, for larger bursts (Linux 6.10 and
    /// later).
    fn grow_first(&mut self, bytes: u32) {
        let Some((&first, &next)) = self.snd.queue.front().zip(self.snd.queue.get(1)) else {
            return;
        };
        let take = bytes.saturating_sub(first.len()).min(next.len());
        // A program's pages (MSG_ZEROCOPY) stay with the piece that they were written to.
        if first.fragments > 0 || next.fragments > 0 {
            return;
        }
        if take == 0 || first.eor || first.flags & flag::FIN != 0 {
            return;
        }
        if take < next.len() {
            self.snd.queue[0].end = first.end.wrapping_add(take);
            self.snd.queue[1].seq = next.seq.wrapping_add(take);
            return;
        }
        let head = &mut self.snd.queue[0];
        head.end = next.end;
        head.eor = next.eor;
        head.flags |= next.flags;
        head.wishes = next.wishes.or(first.wishes);
        self.snd.memory = self.snd.memory.saturating_sub(next.overhead);
        self.snd.queue.remove(1);
    }

    /// Packets that the congestion window admits, at most half of it at once.
    pub(crate) fn quota(&self) -> u32 {
        let in_flight = self.in_flight();
        let cwnd = self.window.cwnd;
        if in_flight >= cwnd { 0 } else { (cwnd - in_flight).min((cwnd >> 1).max(1)) }
    }

    /// Where a piece larger than one packet is cut.
    pub(crate) fn split_point(
        &self,
        skb: &Skb,
        mss: u32,
        packets: u32,
        is_last: bool,
        push: Push,
    ) -> u32 {
        let window = self.window_end().wrapping_sub(skb.seq);
        let most = mss.saturating_mul(packets);
        if most <= window && !is_last {
            return most.min(skb.len());
        }
        let needed = skb.len().min(window);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if skb.flags & flag::FIN == 0
            && needed > partial
            && self.is_held_behind(true, partial != 0, push)
        {
            needed - partial
        } else {
            needed
        }
    }

    pub(crate) fn after_pass(
        &mut self,
        env: &Env<'_>,
        pass: Pass,
        sent: u32,
        cwnd_limited: bool,
        rwnd_limited: bool,
    ) -> bool {
        self.note_limit(env, rwnd_limited);
        let cwnd_limited = cwnd_limited || self.in_flight() >= self.window.cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_window(env, cwnd_limited);
        }
        if sent == 0 {
            return self.packets_out() == 0 && !self.snd.queue.is_empty();
        }
        if self.in_reduction() {
            self.rec.prr_out += sent;
        }
        if pass != Pass::Probe {
            self.schedule_tail_loss_probe(env, false);
        }
        false
    }

    /// Sends one piece for the first time, and on it a request for ACKs where it `asks`; returns its packets.
    pub(crate) fn send_new(&mut self, env: &Env<'_>, piece: Skb, mss: u32, asks: bool) -> u32 {
        let len = piece.len();
        let packets = piece.packets(mss);
        // The receiver is to hand a burst on at its end.
        let push = if packets > 1 { flag::PSH } else { 0 };
        let mut segment = self.make(env, piece.seq, piece.flags | flag::ACK | push, len);
        if packets > 1 {
            segment.gso = mss;
        }
        if asks && len > 0 {
            self.add_own_request(&mut segment);
        }
        let none_out = self.snd.out.is_empty();
        let was_limited = self.count.app_limited > 0;
        if none_out {
            self.count.first_sent = env.now;
            self.count.delivered_at = env.now;
        }
        self.post(env, segment);
        self.stamp_departure(env, &piece);
        let mut rest = piece;
        rest.sent = env.now;
        rest.rate = RateStamp {
            delivered: self.rec.delivered,
            delivered_at: self.count.delivered_at,
            first_sent: self.count.first_sent,
            app_limited: was_limited,
            in_flight: self.in_flight() + packets,
            lost: self.rec.lost_total,
        };
        while rest.len() > mss {
            let mut tail = rest.split(mss);
            tail.joined = true;
            self.snd.out.push_back(rest);
            rest = tail;
        }
        self.snd.out.push_back(rest);
        self.snd.nxt = piece.end;
        self.tally_all(Mib::TCPOrigDataSent, packets);
        if none_out || self.waits_for(Wait::TailLoss) {
            self.rearm_retransmission(env);
        }
        self.run_busy(env);
        // Between the pieces of a pass the window is not full, so that the buffer may grow.
        self.note_space(env);
        packets
    }

    /// Tells that the byte whose passage is asked for leaves.
    pub(crate) fn stamp_departure(&mut self, env: &Env<'_>, piece: &Skb) {
        let Some(wishes) = piece.wishes else { return };
        for (wish, kind) in [(stamp::SCHEDULED, 1), (stamp::SENT, 0)] {
            if wishes.stamps & wish != 0 {
                self.errors.stamp(kind, wishes.key, wishes.bytes(piece.len()), env.now);
                self.wake(crate::tcp::poll::ERR);
            }
        }
    }

    /// RFC 7661 as Linux has it: a window that is not used does not last.
    pub(crate) fn validate_window(&mut self, env: &Env<'_>, limited: bool) {
        let packets_out = self.packets_out();
        let window = &mut self.window;
        if !before(self.snd.una, window.usage_seq)
            || limited
            || (!window.limited && packets_out > window.max_packets_out)
        {
            window.limited = limited;
            window.max_packets_out = packets_out;
            window.usage_seq = self.snd.nxt;
        }
        if window.was_limit() {
            window.used = 0;
            window.stamp = env.now;
            return;
        }
        window.used = window.used.max(packets_out);
        let unused_for = env.now.saturating_sub(window.stamp);
        if env.sysctls.is_on("tcp_slow_start_after_idle") && unused_for >= self.rtt.rto {
            self.shrink_unused(env);
        }
        // The application is the limit where nothing waits although the window is open.
        if self.snd.queue.is_empty() && self.snd.no_space && self.rec.ca == CaState::Open {
            self.start_chrono(env, 2);
        }
    }

    pub(crate) fn shrink_unused(&mut self, env: &Env<'_>) {
        if self.rec.ca == CaState::Open && !self.snd.no_space && self.cc.model().is_none() {
            let used = self.window.used.max(env.route.initial_window());
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
            self.window.used = 0;
        }
        self.window.stamp = env.now;
    }

    /// After an idle time the window halves for each time-out that passed (RFC 5681 section 4.1).
    pub fn restart_after_idle(&mut self, env: &Env<'_>) {
        if !env.sysctls.is_on("tcp_slow_start_after_idle") || self.packets_out() > 0 {
            return;
        }
        let idle = env.now.saturating_sub(self.snd.last_sent);
        if idle <= self.rtt.rto || self.snd.last_sent == 0 {
            return;
        }
        if let Some(model) = self.cc.model() {
            model.on_idle(env.now);
            return self.follow_model();
        }
        let mut left = idle as i64;
        let rto = self.rtt.rto as i64;
        let floor = env.route.initial_window().min(self.window.cwnd);
        self.window.ssthresh = self.current_ssthresh();
        left -= rto;
        while left > 0 && self.window.cwnd > floor {
            self.window.cwnd >>= 1;
            left -= rto;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.window.stamp = env.now;
        self.window.used = 0;
    }

    /// Sends what waits, or sees to it that the peer's window is asked for.
    pub fn push_pending(&mut self, env: &Env<'_>, push: Push) {
        if self.state == State::Close || self.snd.queue.is_empty() {
            return;
        }
        if self.write_xmit(env, push, Pass::All) {
            self.check_probe_timer(env);
        }
    }

    pub(crate) fn check_probe_timer(&mut self, env: &Env<'_>) {
        if self.packets_out() == 0 && self.timers.transmit.is_none() {
            let wait = self.probe_base(env);
            self.arm(Wait::Probe, env.now + wait);
        }
    }

    /// The first interval of window probes.
    pub fn probe_base(&self, env: &Env<'_>) -> Us {
        self.rtt.rto.max(self.rto_min(env).min(200 * MS))
    }

    /// Something arrived or time passed: sends what may leave now.
    pub fn push_more(&mut self, env: &Env<'_>) {
        let push = if self.opt.cork { Push::Cork } else { Push::Normal };
        self.push_pending(env, push);
    }

    /// Whether pacing keeps data back until later.
    pub(crate) fn is_paced(&mut self, env: &Env<'_>) -> bool {
        let waits = self.is_pacing() && self.snd.last_wire > env.now;
        if waits {
            self.timers.pace = Some(self.snd.last_wire);
            if let Some(model) = self.cc.model() {
                model.on_held(env.now);
            }
        }
        waits
    }

    /// SO_MAX_PACING_RATE is set, or the congestion control paces.
    pub(crate) const fn is_pacing(&self) -> bool {
        (self.opt.pacing > 0 || self.count.paces) && self.count.pacing_rate > 0
    }

    /// How long pacing keeps the next packet back.
    pub(crate) const fn pacing_delay(&self, env: &Env<'_>) -> Us {
        if self.is_pacing() { self.snd.last_wire.saturating_sub(env.now) } else { 0 }
    }

    /// A window probe or keep-alive: data where the window has room for it, else an old number.
    pub fn wake_peer(&mut self, env: &Env<'_>, probe: Mib) {
        if self.state == State::Close {
            return;
        }
        if let Some(skb) = self.snd.queue.front().copied()
            && before(skb.seq, self.window_end())
        {
            let mss = self.current_mss();
            let room = self.window_end().wrapping_sub(skb.seq);
            if before(self.snd.pushed_seq, skb.end) {
                self.snd.pushed_seq = skb.end;
            }
            let mut piece = skb;
            piece.flags |= flag::PSH;
            if room < skb.end.wrapping_sub(skb.seq) || skb.len() > mss {
                let mut rest = piece.split(room.min(mss));
                rest.overhead = SKB_OVERHEAD;
                piece.flags |= flag::PSH;
                self.snd.queue[0] = rest;
                self.snd.memory += SKB_OVERHEAD;
            } else {
                self.snd.queue.pop_front();
            }
            self.send_new(env, piece, mss, false);
            return;
        }
        let distance = self.snd.urgent.wrapping_sub(self.snd.una);
        if (1..=0xffff).contains(&distance) {
            self.tally(probe);
            self.send_probe(env, true);
        }
        self.tally(probe);
        self.send_probe(env, false);
    }
}
