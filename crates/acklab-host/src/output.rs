//! What leaves: options, the announced window, new data in bursts, retransmissions, control segments.

use crate::ecn;
use crate::errqueue::stamp;
use crate::segment::{Segment, TcpOption, after, before, flag};
use crate::settings::{Env, MS, Us};
use crate::skb::{Marks, RateStamp, Skb};
use crate::tcp::{CaState, State, Tcp, Wait};

/// Why small data may or may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// As Nagle's algorithm and CORK say.
    Normal,
    /// More is announced to follow: small data waits.
    Cork,
    /// Small data leaves, too.
    Off,
}

/// How many packets a pass may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// What the windows admit.
    All,
    /// One burst.
    One,
    /// One packet, whatever the congestion window.
    Probe,
}

/// Memory of a buffer beside its payload.
pub(crate) const SKB_OVERHEAD: u32 = 1280;

/// Segments.
impl Tcp {
    /// Bytes of the options that vary: SACK blocks.
    fn sack_bytes(&self) -> u32 {
        let blocks = self.rcv.sacks.len() as u32 + u32::from(self.rcv.dsack.is_some());
        if !self.terms.sack || blocks == 0 {
            return 0;
        }
        let room = 60 - self.terms.header;
        4 + 8 * blocks.min((room - 4) / 8)
    }

    /// Payload of a full packet with the options of now.
    pub fn current_mss(&self) -> u32 {
        self.snd.mss.saturating_sub(self.sack_bytes()).max(1)
    }

    fn options(&mut self, env: &Env<'_>) -> Vec<TcpOption> {
        let mut options = Vec::new();
        if self.terms.stamps {
            let echo = self.rcv.recent.map_or(0, |(value, _)| value);
            options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Stamp(env.tick(), echo)]);
        }
        let used: u32 = if self.terms.stamps { 12 } else { 0 };
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        if self.terms.sack {
            blocks.extend(self.rcv.dsack.take());
            blocks.extend(&self.rcv.sacks);
            blocks.truncate(((40 - used - 4) / 8) as usize);
        }
        if !blocks.is_empty() {
            options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(blocks)]);
        }
        options
    }

    /// The window that leaves with a segment, scaled (RFC 9293 section 3.8.6; it never shrinks).
    fn announce(&mut self, env: &Env<'_>) -> u16 {
        let current = self.receive_window();
        let mut window = self.select_window();
        let scale = self.terms.receive_scale;
        if window < current && !env.sysctls.is_on("tcp_shrink_window") {
            window = current.next_multiple_of(1 << scale);
        }
        self.rcv.wnd = window;
        self.rcv.wup = self.rcv.nxt;
        let ceiling = if scale == 0 && env.sysctls.is_on("tcp_workaround_signed_windows") {
            32_767
        } else {
            65_535 << scale
        };
        (window.min(ceiling) >> scale) as u16
    }

    /// A segment with what every one has; `seq` and flags are the caller's.
    fn make(&mut self, env: &Env<'_>, seq: u32, flags: u16, len: u32) -> Segment {
        let options = self.options(env);
        let window = self.announce(env);
        let mut segment = Segment {
            src: self.local,
            dst: self.remote,
            seq,
            ack: self.rcv.nxt,
            flags,
            window,
            options,
            len,
            dscp: self.opt.tos >> 2,
            ..Segment::default()
        };
        if self.snd.urgent != self.snd.una && before(seq, self.snd.urgent) {
            let distance = self.snd.urgent.wrapping_sub(seq);
            if distance < 0x1_0000 {
                segment.urgent = distance as u16;
                segment.flags |= flag::URG;
            }
        }
        let is_new = len > 0 && !before(seq, self.snd.nxt);
        ecn::mark_outgoing(self, &mut segment, is_new);
        segment
    }

    fn post(&mut self, env: &Env<'_>, segment: Segment) {
        let packets = if segment.gso > 0 { segment.len.div_ceil(segment.gso) } else { 1 };
        self.count.segs_out += packets;
        self.snd.last_wire = env.now;
        if segment.len > 0 {
            self.count.data_segs_out += packets;
            self.count.bytes_sent += u64::from(segment.len);
            self.on_data_sent(env);
        }
        if segment.has(flag::ACK) {
            self.on_ack_sent(env);
        }
        self.wire.push(segment);
    }

    /// An acknowledgment left: what was owed is paid.
    fn on_ack_sent(&mut self, _env: &Env<'_>) {
        self.ack.compressed = 0;
        self.timers.compressed = None;
        if self.ack.scheduled {
            if self.ack.quick == 1 {
                self.ack.ato = 40 * MS;
            }
            self.ack.quick = self.ack.quick.saturating_sub(1);
        }
        self.ack.scheduled = false;
        self.ack.now = false;
        self.ack.no_memory = false;
        self.ack.pushed = false;
        self.ack.pushed_twice = false;
        self.timers.delack = None;
    }

    fn on_data_sent(&mut self, env: &Env<'_>) {
        if self.in_flight() == 0 {
            let idle = env.now.saturating_sub(self.snd.last_sent);
            self.cc.on_restart(env.now, idle);
        }
        self.snd.last_sent = env.now;
        // A reply within the delay of what it answers: acknowledgments may wait for the next one.
        if env.now.saturating_sub(self.rcv.last_data) < self.ack.ato {
            self.ack.pingpong = (self.ack.pingpong + 1).min(255);
        }
    }

    /// Sends an acknowledgment without data.
    pub fn send_ack(&mut self, env: &Env<'_>) {
        if self.state == State::Close {
            return;
        }
        let seq = self.acceptable_seq();
        let segment = self.make(env, seq, flag::ACK, 0);
        self.post(env, segment);
    }

    /// A sequence number that the peer accepts of a segment without data.
    fn acceptable_seq(&self) -> u32 {
        let end = self.window_end();
        let beyond = self.snd.nxt.wrapping_sub(end);
        if !before(end, self.snd.nxt)
            || (self.terms.scaling && beyond < 1 << self.terms.receive_scale)
        {
            self.snd.nxt
        } else {
            end
        }
    }

    /// Resets the connection actively.
    pub fn send_reset(&mut self, env: &Env<'_>) {
        let seq = self.acceptable_seq();
        let segment = self.make(env, seq, flag::ACK | flag::RST, 0);
        self.wire.push(segment);
    }

    /// A window or keep-alive probe: one number before what is expected (`urgent`: at it).
    fn send_probe(&mut self, env: &Env<'_>, urgent: bool) {
        let seq = self.snd.una.wrapping_sub(u32::from(!urgent));
        let segment = self.make(env, seq, flag::ACK, 0);
        self.post(env, segment);
    }
}

/// New data.
impl Tcp {
    /// The size of the largest piece of the send queue, bytes.
    pub fn size_goal(&self, env: &Env<'_>) -> u32 {
        let mss = self.current_mss();
        let limit = self.half_window(env.route.gso_max_size - 1 - 320);
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
    fn burst(&self, env: &Env<'_>) -> u32 {
        let shift = (self.rtt.least() >> env.sysctls.of("tcp_tso_rtt_log")).min(31);
        let near = u64::from(env.route.gso_max_size) >> shift;
        let bytes = ((self.count.pacing_rate >> 10) + near).min(u64::from(env.route.gso_max_size));
        let floor = env.sysctls.of("tcp_min_tso_segs").max(1) as u32;
        let packets = (bytes as u32 / self.current_mss()).max(floor);
        packets.min(env.route.gso_max_segs)
    }

    /// Whether Nagle's algorithm (Minshall's variant) or CORK keeps a partial packet back.
    fn is_held(&self, partial: bool, push: Push) -> bool {
        if !partial || push == Push::Off || self.opt.push {
            return false;
        }
        let small_out =
            after(self.snd.small_end, self.snd.una) && !after(self.snd.small_end, self.snd.nxt);
        push == Push::Cork
            || self.opt.cork
            || (!self.opt.nodelay && self.packets_out() > 0 && small_out)
    }

    /// Whether a burst waits for the ACK that will let it be larger. Returns also which window is the limit.
    fn is_deferred(&self, env: &Env<'_>, skb: &Skb, is_last: bool) -> (bool, bool, bool) {
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
        if env.now.saturating_sub(head.sent) < self.rtt.srtt() / 2 {
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
        let mut sent = 0;
        let (mut cwnd_limited, mut rwnd_limited) = (false, false);
        if pass == Pass::All && self.probe_mtu(env) {
            sent += 1;
        }
        while let Some(skb) = self.snd.queue.front().copied() {
            if self.is_paced(env) {
                break;
            }
            let mss = self.current_mss();
            let mut quota = self.quota();
            if quota == 0 {
                if pass != Pass::Probe {
                    break;
                }
                quota = 1;
            }
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
                limit = self.split_point(&skb, mss, quota.min(self.burst(env)), is_last, push);
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
            sent += self.send_new(env, piece, mss);
            if pass != Pass::All {
                break;
            }
        }
        self.after_pass(env, pass, sent, cwnd_limited, rwnd_limited)
    }

    /// Packets that the congestion window admits, at most half of it at once.
    fn quota(&self) -> u32 {
        let in_flight = self.in_flight();
        let cwnd = self.window.cwnd;
        if in_flight >= cwnd { 0 } else { (cwnd - in_flight).min((cwnd >> 1).max(1)) }
    }

    /// Where a piece larger than one packet is cut.
    fn split_point(&self, skb: &Skb, mss: u32, packets: u32, is_last: bool, push: Push) -> u32 {
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
        if skb.flags & flag::FIN == 0 && self.is_held(partial != 0, push) && needed > partial {
            needed - partial
        } else {
            needed
        }
    }

    fn after_pass(
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

    /// Sends one piece for the first time; returns its packets.
    fn send_new(&mut self, env: &Env<'_>, piece: Skb, mss: u32) -> u32 {
        let len = piece.len();
        let packets = piece.packets(mss);
        // The receiver is to hand a burst on at its end.
        let push = if packets > 1 { flag::PSH } else { 0 };
        let mut segment = self.make(env, piece.seq, piece.flags | flag::ACK | push, len);
        if packets > 1 {
            segment.gso = mss;
        }
        let none_out = self.snd.out.is_empty();
        let was_limited = self.count.app_limited > 0;
        if none_out {
            self.count.first_sent = env.now;
            self.count.delivered_at = env.now;
        }
        self.post(env, segment);
        if let Some(wishes) = piece.wishes {
            for (wish, kind) in [(stamp::SCHEDULED, 1), (stamp::SENT, 0)] {
                if wishes.stamps & wish != 0 {
                    self.errors.stamp(kind, wishes.key, env.now);
                    self.wake(crate::tcp::poll::ERR);
                }
            }
        }
        let mut rest = piece;
        rest.sent = env.now;
        rest.rate = RateStamp {
            delivered: self.rec.delivered,
            delivered_at: self.count.delivered_at,
            first_sent: self.count.first_sent,
            app_limited: was_limited,
        };
        while rest.len() > mss {
            let mut tail = rest.split(mss);
            tail.joined = true;
            self.snd.out.push_back(rest);
            rest = tail;
        }
        self.snd.out.push_back(rest);
        if len < packets * mss {
            self.snd.small_end = piece.end;
        }
        self.snd.nxt = piece.end;
        if none_out || self.waits_for(Wait::TailLoss) {
            self.rearm_retransmission(env);
        }
        self.run_busy(env);
        packets
    }

    /// RFC 7661 as Linux has it: a window that is not used does not last.
    fn validate_window(&mut self, env: &Env<'_>, limited: bool) {
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

    fn shrink_unused(&mut self, env: &Env<'_>) {
        if self.rec.ca == CaState::Open && !self.snd.no_space {
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

    fn check_probe_timer(&mut self, env: &Env<'_>) {
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
    fn is_paced(&mut self, env: &Env<'_>) -> bool {
        self.timers.pace.is_some_and(|at| at > env.now)
    }

    /// A window probe or keep-alive: data where the window has room for it, else an old number.
    pub fn wake_peer(&mut self, env: &Env<'_>) {
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
            self.send_new(env, piece, mss);
            return;
        }
        let distance = self.snd.urgent.wrapping_sub(self.snd.una);
        if (1..=0xffff).contains(&distance) {
            self.send_probe(env, true);
        }
        self.send_probe(env, false);
    }
}

/// Retransmissions.
impl Tcp {
    /// Sends the packet at `index` of those that are out again; returns whether it left.
    pub fn retransmit(&mut self, env: &Env<'_>, index: usize) -> bool {
        if !self.send_copy(env, index) {
            return false;
        }
        let rec = &mut self.rec;
        let marks = &mut self.snd.out[index].marks;
        if !marks.retrans {
            rec.retrans += 1;
        }
        marks.retrans = true;
        rec.retrans_stamp.get_or_insert(env.tick());
        rec.undo_retrans = rec.undo_retrans.max(0) + 1;
        true
    }

    /// Sends a packet again that stays what it was for recovery: a tail loss probe.
    pub fn send_copy(&mut self, env: &Env<'_>, index: usize) -> bool {
        let end = self.window_end();
        let Some(skb) = self.snd.out.get(index).copied() else { return false };
        if before(skb.seq, self.snd.una) {
            let cut = self.snd.una.wrapping_sub(skb.seq);
            let rest = self.snd.out[index].split(cut);
            self.snd.out[index] = rest;
        }
        let seq = self.snd.out[index].seq;
        if !before(seq, end) && seq != self.snd.una && self.state != State::SynSent {
            return false;
        }
        let mss = self.current_mss();
        let room = end.wrapping_sub(seq);
        let room = if before(seq, end) { room } else { mss };
        let limit = mss.min(room.max(1));
        if self.snd.out[index].len() > limit {
            self.split_out(index, limit);
        } else if self.snd.out[index].len() < mss {
            self.collapse(env, index, room);
        }
        let skb = self.snd.out[index];
        let flags = if skb.flags & flag::SYN == 0 { skb.flags | flag::ACK } else { skb.flags };
        if skb.flags & flag::SYN != 0 {
            self.resend_syn(env);
        } else {
            let segment = self.make(env, skb.seq, flags, skb.len());
            self.post(env, segment);
        }
        let stamp = RateStamp {
            delivered: self.rec.delivered,
            delivered_at: self.count.delivered_at,
            first_sent: self.count.first_sent,
            app_limited: self.count.app_limited > 0,
        };
        let rec = &mut self.rec;
        let out = &mut self.snd.out[index];
        out.sent = env.now;
        out.retries += 1;
        out.rate = stamp;
        out.marks = Marks { ever_retrans: true, ..out.marks };
        rec.total_retrans += 1;
        self.count.bytes_retrans += u64::from(skb.len());
        true
    }

    /// Cuts the packet at `index` after `len` bytes; both parts keep their marks.
    pub fn split_out(&mut self, index: usize, len: u32) {
        let rest = self.snd.out[index].split(len);
        let marks = rest.marks;
        self.snd.out.insert(index + 1, rest);
        self.rec.sacked += u32::from(marks.sacked);
        self.rec.lost += u32::from(marks.lost);
        self.rec.retrans += u32::from(marks.retrans);
    }

    /// Joins packets that follow with one that is sent again, as long as all fit into one (RFC 9293 section
    /// 3.8.1 lets a retransmission repacketise).
    fn collapse(&mut self, env: &Env<'_>, index: usize, room: u32) {
        if !env.sysctls.is_on("tcp_retrans_collapse")
            || self.snd.out[index].flags & (flag::SYN | flag::FIN) != 0
            || self.snd.out[index].marks.sacked
        {
            return;
        }
        let mss = self.current_mss();
        let mut first = true;
        while let Some(next) = self.snd.out.get(index + 1).copied() {
            let head = self.snd.out[index];
            let len = head.len() + next.len();
            let fits = len <= mss && (!after(next.end, self.window_end()) || first);
            if next.marks.sacked
                || head.eor
                || next.flags & flag::SYN != 0
                || !fits
                || (len > room && !first)
            {
                break;
            }
            first = false;
            self.snd.out.remove(index + 1);
            let head = &mut self.snd.out[index];
            head.end = next.end;
            head.flags |= next.flags;
            head.eor = next.eor;
            head.marks.ever_retrans |= next.marks.ever_retrans;
            if head.wishes.is_none() {
                head.wishes = next.wishes;
            }
            self.rec.lost -= u32::from(next.marks.lost);
            self.rec.retrans -= u32::from(next.marks.retrans);
        }
    }

    /// Sends a lost packet again, and with it those that were cut from the same piece, up to `quota` in one burst;
    /// returns how many left.
    fn retransmit_burst(&mut self, env: &Env<'_>, index: usize, quota: u32) -> u32 {
        let before = self.wire.len();
        if !self.retransmit(env, index) {
            return 0;
        }
        let mut sent = 1;
        while sent < quota {
            let Some(next) = self.snd.out.get(index + sent as usize) else { break };
            let marks = next.marks;
            if !next.joined || !marks.lost || marks.sacked || marks.retrans {
                break;
            }
            if !self.retransmit(env, index + sent as usize) {
                break;
            }
            sent += 1;
        }
        // What is left of the piece is a piece of its own from now on.
        if let Some(next) = self.snd.out.get_mut(index + sent as usize) {
            next.joined = false;
        }
        self.join(before);
        sent
    }

    /// Segments from `first` on, which follow each other, leave as one burst.
    fn join(&mut self, first: usize) {
        let burst: Vec<Segment> = self.wire.drain(first..).collect();
        let Some(mut whole) = burst.first().cloned() else { return };
        for next in &burst[1..] {
            whole.gso = whole.gso.max(whole.len);
            whole.len += next.len;
            whole.flags |= next.flags | flag::PSH;
        }
        self.wire.push(whole);
    }

    /// Sends lost packets again as the congestion window admits.
    pub fn retransmit_lost(&mut self, env: &Env<'_>) {
        let mut rearm = false;
        let mut index = 0;
        while index < self.snd.out.len() {
            if self.window.cwnd <= self.in_flight() || self.rec.retrans >= self.rec.lost {
                break;
            }
            let marks = self.snd.out[index].marks;
            if !marks.lost || marks.sacked || marks.retrans {
                index += 1;
                continue;
            }
            let quota = (self.window.cwnd - self.in_flight()).min(self.burst(env));
            let sent = self.retransmit_burst(env, index, quota);
            if sent == 0 {
                break;
            }
            if self.in_reduction() {
                self.rec.prr_out += sent;
            }
            rearm |= index == 0 && !self.waits_for(Wait::Reorder);
            index += sent as usize;
        }
        if rearm {
            let at = env.now + self.rtt.rto;
            self.arm(Wait::Retransmit, at);
        }
    }
}

impl Tcp {
    /// Sends a probe of the path's MTU as one packet.
    pub fn send_probe_packet(&mut self, env: &Env<'_>, piece: Skb) {
        let mss = piece.len();
        self.send_new(env, piece, mss);
    }
}
