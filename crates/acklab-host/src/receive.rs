//! What arrives: data in order and out of it, memory, the window to announce, and when an ACK leaves.

use crate::ecn;
use crate::segment::{Segment, after, before, flag};
use crate::settings::{Env, MS, Us};
use crate::tcp::{Chunk, State, Tcp, poll};

/// Least delay of an ACK, and the first.
const DELAY_MIN: Us = 40 * MS;
/// Most delay of an ACK.
const DELAY_MAX: Us = 200 * MS;
/// Segments acknowledged at once at the start, or after silence.
pub(crate) const QUICK: u32 = 16;
/// MSS of a peer that announced none.
pub(crate) const MSS_DEFAULT: u32 = 536;

/// Memory that a packet of `len` bytes and `header` bytes of headers takes, as it comes from a TUN device: its
/// linear buffer, rounded up as the allocator does, and the descriptor.
pub(crate) const fn truesize(len: u32, header: u32) -> u32 {
    let needed = 64 + header + len + 320;
    let buffer = if needed <= 704 {
        704
    } else if needed <= 1024 {
        1024
    } else if needed <= 2048 {
        2048
    } else if needed <= 4096 {
        4096
    } else {
        needed.next_multiple_of(4096)
    };
    buffer + 256
}

/// Memory and windows.
impl Tcp {
    /// Payload that `space` bytes of memory hold.
    pub fn window_of(&self, space: i64) -> u32 {
        if space <= 0 { 0 } else { ((space as u64 * u64::from(self.rcv.ratio)) >> 8) as u32 }
    }

    /// Free space for payload.
    pub fn space(&self) -> u32 {
        self.window_of(i64::from(self.rcv.buffer) - i64::from(self.rcv.memory))
    }

    /// Space for payload when nothing waits.
    pub fn full_space(&self) -> u32 {
        self.window_of(i64::from(self.rcv.buffer))
    }

    /// The window that the buffer allows (RFC 9293 section 3.8.6.2.2, Linux's rules).
    pub fn select_window(&mut self) -> u32 {
        let mut mss = self.ack.rcv_mss;
        let mut free = self.space();
        let allowed = self.full_space();
        let full = self.rcv.clamp.min(allowed);
        if mss > full {
            mss = full;
            if mss == 0 {
                return 0;
            }
        }
        let scale = self.terms.receive_scale;
        if free < full >> 1 {
            self.ack.quick = 0;
            free = free >> scale << scale;
            if free < allowed >> 4 || free < mss {
                return 0;
            }
        }
        free = free.min(self.rcv.ssthresh);
        if scale > 0 {
            return free.next_multiple_of(1 << scale);
        }
        let window = self.rcv.wnd;
        if window + mss <= free && mss > 0 || window > free {
            free / mss.max(1) * mss
        } else if mss == full && free > window + (full >> 1) {
            free
        } else {
            window
        }
    }

    /// Sets the largest window; a smaller one holds at once.
    pub fn clamp_window(&mut self, value: u32) {
        let value = value.max(2304 / 2);
        if value < self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.min(value);
        } else if value > self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.max(self.rcv.wnd.min(value));
        }
        self.rcv.clamp = value;
        self.rcv.space = self.rcv.space.min(value);
    }

    /// The window's threshold grows with what arrives in well-filled buffers.
    fn grow_window(&mut self, env: &Env<'_>, len: u32, size: u32) {
        let room = i64::from(self.rcv.clamp.min(self.space())) - i64::from(self.rcv.ssthresh);
        if room <= 0 {
            return;
        }
        let step = if self.window_of(i64::from(size)) <= len {
            2 * self.terms.advmss
        } else {
            let most = env.sysctls.nth("tcp_rmem", 2);
            let (mut size, mut window) = (size >> 1, self.window_of(most) >> 1);
            let mut step = 0;
            while self.rcv.ssthresh <= window {
                if size <= len {
                    step = 2 * self.ack.rcv_mss;
                    break;
                }
                size >>= 1;
                window >>= 1;
            }
            step
        };
        if step > 0 {
            self.rcv.ssthresh += step.max(2 * len).min(room as u32);
            self.ack.quick |= 1;
        }
    }

    /// The buffer's first split between window and overhead.
    pub fn init_buffers(&mut self, env: &Env<'_>) {
        if !self.opt.sndbuf_locked {
            self.expand_sndbuf(env);
        }
        let advmss = self.terms.advmss;
        self.rcv.space = self.rcv.ssthresh.min(self.rcv.wnd).min(10 * advmss);
        self.rcv.space_at = env.now;
        self.rcv.space_seq = self.rcv.copied;
        let most = self.full_space();
        if self.rcv.clamp >= most {
            self.rcv.clamp = most;
            let app = env.sysctls.of("tcp_app_win");
            if app > 0 && most > 4 * advmss {
                let share = if app < 32 { most >> app } else { 0 };
                self.rcv.clamp = (most - share).max(4 * advmss);
            }
        }
        if env.sysctls.of("tcp_app_win") > 0
            && self.rcv.clamp > 2 * advmss
            && self.rcv.clamp + advmss > most
        {
            self.rcv.clamp = (most.saturating_sub(advmss)).max(2 * advmss);
        }
        self.rcv.ssthresh = self.rcv.ssthresh.min(self.rcv.clamp);
    }

    /// Room for twice the congestion window.
    pub fn expand_sndbuf(&mut self, env: &Env<'_>) {
        let per = (self.terms.mss_clamp.max(self.snd.mss) + 320 + 320).next_power_of_two() + 256;
        let packets = env.route.initial_window().max(self.window.cwnd).max(self.rec.reordering + 1);
        let wanted = 2 * u64::from(packets) * u64::from(per);
        if u64::from(self.opt.sndbuf) < wanted {
            self.opt.sndbuf = wanted.min(env.sysctls.nth("tcp_wmem", 2) as u64) as u32;
        }
    }

    /// Where the estimate of the peer's segment size starts.
    pub fn init_rcv_mss(&mut self) {
        let hint = self.terms.advmss.min(self.snd.mss).min(self.rcv.wnd / 2);
        self.ack.rcv_mss = hint.clamp(88, MSS_DEFAULT);
    }
}

/// Data.
impl Tcp {
    /// Follows the size of the peer's segments.
    fn measure(&mut self, segment: &Segment, size: u32) {
        let before = std::mem::take(&mut self.ack.last_small);
        let len = segment.len;
        if len >= self.ack.rcv_mss {
            if len != self.ack.rcv_mss {
                let ratio = ((u64::from(len) << 8) / u64::from(size)).clamp(1, 255) as u32;
                if ratio != self.rcv.ratio {
                    self.rcv.ratio = ratio;
                    let most = self.full_space();
                    self.clamp_window(most);
                }
            }
            self.ack.rcv_mss = len.min(self.terms.advmss);
            self.ack.pushed |= segment.has(flag::PSH);
            return;
        }
        let with_header = len + segment.header();
        let plain = segment.flags & (flag::FIN | flag::URG | flag::SYN | flag::PSH) == 0;
        if with_header >= MSS_DEFAULT + 20 || (with_header >= 88 + 20 && plain) {
            let net = with_header - self.terms.header;
            self.ack.last_small = net;
            if net == before {
                self.ack.rcv_mss = net;
                return;
            }
        }
        self.ack.pushed_twice |= self.ack.pushed;
        self.ack.pushed = true;
    }

    fn add_quick(&mut self, most: u32) {
        let fits = self.rcv.wnd / (2 * self.ack.rcv_mss.max(1));
        let fits = if fits == 0 { 2 } else { fits };
        self.ack.quick = self.ack.quick.max(fits.min(most));
    }

    /// The sender needs every ACK for a while.
    pub fn enter_quick(&mut self, most: u32) {
        self.add_quick(most);
        self.ack.pingpong = 0;
        self.ack.ato = DELAY_MIN;
    }

    /// Data came that counts for the delay of ACKs.
    fn on_data(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
        self.ack.scheduled = true;
        self.measure(segment, size);
        self.measure_rtt_by_window(env);
        if self.ack.ato == 0 {
            self.add_quick(QUICK);
            self.ack.ato = DELAY_MIN;
        } else {
            let gap = env.now.saturating_sub(self.rcv.last_data);
            if gap <= DELAY_MIN / 2 {
                self.ack.ato = (self.ack.ato >> 1) + DELAY_MIN / 2;
            } else if gap < self.ack.ato {
                self.ack.ato = ((self.ack.ato >> 1) + gap).min(self.rtt.rto);
            } else if gap > self.rtt.rto {
                self.add_quick(QUICK);
            }
        }
        self.rcv.last_data = env.now;
        ecn::on_mark(self, segment);
        if segment.len >= 128 {
            self.grow_window(env, segment.len, size);
        }
    }

    /// The receiver's round trip without timestamps: a window's worth of data takes one.
    fn measure_rtt_by_window(&mut self, env: &Env<'_>) {
        if self.rcv.rtt_at != 0 {
            if before(self.rcv.nxt, self.rcv.rtt_seq) {
                return;
            }
            let rtt = env.now.saturating_sub(self.rcv.rtt_at).max(1);
            self.update_receiver_rtt(rtt, true);
        }
        self.rcv.rtt_seq = self.rcv.nxt.wrapping_add(self.rcv.wnd);
        self.rcv.rtt_at = env.now;
    }

    fn update_receiver_rtt(&mut self, rtt: Us, by_window: bool) {
        let old = self.rcv.rtt8;
        let mut next = rtt << 3;
        if old != 0 {
            if by_window {
                next = next.min(old);
            } else {
                next = old - (old >> 3) + rtt;
            }
        }
        self.rcv.rtt8 = next;
    }

    /// The receiver's round trip by timestamps: the peer echoes ours with full segments.
    pub fn measure_rtt_by_stamp(&mut self, env: &Env<'_>, segment: &Segment) {
        let Some((_, echo)) = segment.stamp().filter(|_| self.terms.stamps) else { return };
        if echo == self.rcv.rtt_echo || echo == 0 {
            return;
        }
        self.rcv.rtt_echo = echo;
        if segment.len >= self.ack.rcv_mss {
            let ticks = env.tick().wrapping_sub(echo);
            if ticks < u32::MAX / 2 {
                self.update_receiver_rtt(Us::from(ticks.max(1)) * MS, false);
            }
        }
    }

    /// Whether memory is left for a packet; collapses and prunes where it is not.
    fn has_memory(&mut self, size: u32) -> bool {
        if self.rcv.memory <= self.rcv.buffer {
            return true;
        }
        // What was received out of order goes first.
        while self.rcv.memory + size > self.rcv.buffer && !self.rcv.ooo.is_empty() {
            if let Some(last) = self.rcv.ooo.pop() {
                self.rcv.memory = self.rcv.memory.saturating_sub(last.truesize);
            }
            if self.terms.sack {
                self.rcv.sacks.clear();
            }
        }
        self.rcv.memory <= self.rcv.buffer
    }

    /// Takes the payload and FIN of an acceptable segment.
    pub fn take_data(&mut self, env: &Env<'_>, segment: &Segment) {
        let (seq, end) = (segment.seq, segment.end());
        if seq == end {
            return;
        }
        let size = truesize(segment.len, env.route.ip_header + segment.header());
        self.rcv.dsack = None;
        ecn::on_cwr(self, segment);
        if seq == self.rcv.nxt {
            if self.receive_window() == 0 && !(segment.len == 0 && segment.has(flag::FIN)) {
                self.refuse();
                return;
            }
            self.take_in_order(env, segment, size);
            return;
        }
        if !after(end, self.rcv.nxt) {
            self.set_dsack(env, seq, end);
            self.refuse();
            return;
        }
        if !before(seq, self.rcv.nxt.wrapping_add(self.receive_window())) {
            self.refuse();
            return;
        }
        if before(seq, self.rcv.nxt) {
            self.set_dsack(env, seq, self.rcv.nxt);
            if self.receive_window() == 0 {
                self.refuse();
                return;
            }
            self.take_in_order(env, segment, size);
            return;
        }
        self.take_out_of_order(env, segment, size);
    }

    /// Old data, or beyond the window: the sender should learn at once.
    fn refuse(&mut self) {
        self.enter_quick(QUICK);
        self.ack.scheduled = true;
    }

    fn take_in_order(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
        if !self.has_memory(size) {
            self.ack.no_memory = true;
            self.ack.now = true;
            self.ack.scheduled = true;
            self.wake(poll::IN | poll::RDNORM);
            return;
        }
        let end = segment.end();
        let data_end = segment.seq.wrapping_add(segment.len);
        if segment.len > 0 {
            self.queue(self.rcv.nxt, data_end, size);
            self.rcv.nxt = data_end;
            self.on_data(env, segment, size);
        }
        let fin = segment.has(flag::FIN);
        if fin {
            self.rcv.nxt = end;
            self.take_fin(env);
        }
        if !self.rcv.ooo.is_empty() {
            self.drain_out_of_order(env);
            if self.rcv.ooo.is_empty() {
                // RFC 5681 section 4.2: a gap was filled.
                self.ack.now = true;
            }
        }
        self.forget_sacks();
        if segment.len > 0 {
            self.wake(poll::IN | poll::RDNORM);
        }
    }

    /// Data that a SYN brought.
    pub fn take_syn_data(&mut self, env: &Env<'_>, syn: &Segment) {
        if syn.len > 0 {
            let size = truesize(syn.len, env.route.ip_header + syn.header());
            let end = self.rcv.nxt.wrapping_add(syn.len);
            self.queue(self.rcv.nxt, end, size);
            self.rcv.nxt = end;
            self.count.data_segs_in += 1;
        }
    }

    fn queue(&mut self, seq: u32, end: u32, truesize: u32) {
        self.count.bytes_received += u64::from(end.wrapping_sub(seq));
        self.rcv.memory += truesize;
        self.rcv.queue.push_back(Chunk { seq, end, truesize });
    }

    fn drain_out_of_order(&mut self, env: &Env<'_>) {
        while let Some(first) = self.rcv.ooo.first().copied() {
            if after(first.seq, self.rcv.nxt) {
                break;
            }
            self.rcv.ooo.remove(0);
            let fin_at = self.out_of_order_fin().filter(|&at| at == first.end.wrapping_sub(1));
            let mut end = first.end;
            if fin_at.is_some() {
                end = end.wrapping_sub(1);
            }
            if before(first.seq, self.rcv.nxt) {
                let dup_end =
                    if before(first.end, self.rcv.nxt) { first.end } else { self.rcv.nxt };
                self.extend_dsack(env, first.seq, dup_end);
            }
            self.rcv.memory = self.rcv.memory.saturating_sub(first.truesize);
            if after(end, self.rcv.nxt) {
                let from = self.rcv.nxt;
                self.queue(from, end, first.truesize);
                self.rcv.nxt = end;
            }
            if fin_at.is_some() {
                self.rcv.nxt = first.end;
                self.take_fin(env);
            }
        }
    }

    fn out_of_order_fin(&self) -> Option<u32> {
        self.rcv.fin_at
    }

    fn take_out_of_order(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
        ecn::on_mark(self, segment);
        if !self.has_memory(size) {
            self.ack.scheduled = true;
            return;
        }
        self.ack.scheduled = true;
        self.count.rcv_ooopack += 1;
        if segment.has(flag::FIN) {
            self.rcv.fin_at = Some(segment.end().wrapping_sub(1));
        }
        let (mut seq, end) = (segment.seq, segment.end());
        let mut kept = true;
        let mut index = 0;
        while index < self.rcv.ooo.len() {
            let other = self.rcv.ooo[index];
            if !after(other.end, seq) {
                index += 1;
                continue;
            }
            if !before(other.seq, end) {
                break;
            }
            if !before(seq, other.seq) {
                // It begins within another.
                if !after(end, other.end) {
                    self.set_dsack(env, seq, end);
                    kept = false;
                    break;
                }
                if seq == other.seq {
                    self.extend_dsack(env, other.seq, other.end);
                    self.drop_out_of_order(index);
                    continue;
                }
                self.set_dsack(env, seq, other.end);
                seq = other.end;
                index += 1;
                continue;
            }
            if before(end, other.end) {
                self.extend_dsack(env, other.seq, end);
                self.rcv.ooo[index].seq = end;
                break;
            }
            self.extend_dsack(env, other.seq, other.end);
            self.drop_out_of_order(index);
        }
        if kept {
            let at = self.rcv.ooo.partition_point(|c| before(c.seq, seq));
            self.rcv.ooo.insert(at, Chunk { seq, end, truesize: size });
            self.rcv.memory += size;
            if self.terms.sack {
                self.grow_window(env, segment.len, size);
            }
        }
        if self.terms.sack {
            self.add_sack(segment.seq, end);
        }
    }

    fn drop_out_of_order(&mut self, index: usize) {
        let gone = self.rcv.ooo.remove(index);
        self.rcv.memory = self.rcv.memory.saturating_sub(gone.truesize);
    }

    /// RFC 2018 section 4: the most recent block first, at most four.
    fn add_sack(&mut self, seq: u32, end: u32) {
        let (mut left, mut right) = (seq, end);
        let touched = self.rcv.sacks.iter().position(|&(l, r)| !after(seq, r) && !after(l, end));
        if touched.is_none() {
            if self.rcv.sacks.len() >= 4 {
                self.rcv.sacks.pop();
            }
            self.rcv.sacks.insert(0, (seq, end));
            return;
        }
        self.rcv.sacks.retain(|&(l, r)| {
            let joins = !after(left, r) && !after(l, right);
            if joins {
                left = if before(l, left) { l } else { left };
                right = if after(r, right) { r } else { right };
            }
            !joins
        });
        self.rcv.sacks.insert(0, (left, right));
    }

    fn forget_sacks(&mut self) {
        let nxt = self.rcv.nxt;
        if self.rcv.ooo.is_empty() {
            self.rcv.sacks.clear();
        } else {
            self.rcv.sacks.retain(|&(left, _)| after(left, nxt));
        }
    }

    /// RFC 2883: the first block reports what arrived twice.
    pub fn set_dsack(&mut self, env: &Env<'_>, seq: u32, end: u32) {
        if self.terms.sack && env.sysctls.is_on("tcp_dsack") {
            self.rcv.dsack = Some((seq, end));
        }
    }

    fn extend_dsack(&mut self, env: &Env<'_>, seq: u32, end: u32) {
        match &mut self.rcv.dsack {
            Some((left, right)) if !after(seq, *right) && !after(*left, end) => {
                *left = if before(seq, *left) { seq } else { *left };
                *right = if after(end, *right) { end } else { *right };
            }
            Some(_) => {}
            None => self.set_dsack(env, seq, end),
        }
    }

    /// The peer closed its direction.
    fn take_fin(&mut self, env: &Env<'_>) {
        self.rcv.fin = true;
        self.ack.scheduled = true;
        match self.state {
            State::SynRecv | State::Established => {
                self.state = State::CloseWait;
                self.ack.pingpong = env.sysctls.of("tcp_pingpong_thresh") as u32;
            }
            State::FinWait1 => {
                self.send_ack(env);
                self.state = State::Closing;
            }
            State::FinWait2 => {
                self.send_ack(env);
                self.enter_time_wait(env, 60_000 * MS);
            }
            _ => {}
        }
        self.fate.shut_read = true;
        for chunk in self.rcv.ooo.drain(..) {
            self.rcv.memory = self.rcv.memory.saturating_sub(chunk.truesize);
        }
        self.rcv.sacks.clear();
        if !self.fate.orphan {
            self.wake(poll::IN | poll::RDNORM | poll::RDHUP);
            if self.fate.shut_write || self.state == State::Close {
                self.wake(poll::HUP);
            }
        }
    }

    /// TIME-WAIT for `span`, or its stand-in for FIN-WAIT-2.
    pub fn enter_time_wait(&mut self, env: &Env<'_>, span: Us) {
        self.state = State::TimeWait;
        self.timers = crate::tcp::Timers::default();
        self.timers.time_wait = Some(env.now + span);
        self.fate.shut_read = true;
        self.fate.shut_write = true;
        self.wake(poll::IN | poll::OUT | poll::RDHUP | poll::HUP);
    }
}

/// Acknowledgments.
impl Tcp {
    fn is_pingpong(&self, env: &Env<'_>) -> bool {
        i64::from(self.ack.pingpong) >= env.sysctls.of("tcp_pingpong_thresh")
    }

    fn is_quick(&self, env: &Env<'_>) -> bool {
        env.route.quickack || (self.ack.quick > 0 && !self.is_pingpong(env))
    }

    /// Sends an ACK now, later or not at all, for what arrived; `disorder`: out-of-order data may be why.
    pub fn check_ack(&mut self, env: &Env<'_>, disorder: bool) {
        if !self.ack.scheduled && !self.ack.now {
            return;
        }
        let unacked = self.rcv.nxt.wrapping_sub(self.rcv.wup);
        let unread = self.rcv.nxt.wrapping_sub(self.rcv.copied);
        let beyond = unacked > self.ack.rcv_mss
            && (unread < self.opt.rcvlowat || {
                let announced = self.rcv.wnd;
                let quick = self.ack.quick;
                let window = self.select_window();
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
        self.timers.compressed = Some(env.now + delay);
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
        let mut at = env.now + ato;
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
        if self.is_pingpong(env) {
            self.ack.pingpong = 0;
            self.ack.ato = DELAY_MIN;
        } else {
            self.ack.ato = (self.ack.ato << 1).min(self.rtt.rto);
        }
        self.send_ack(env);
    }

    /// The program read `copied` bytes: whether the peer is told.
    pub fn after_read(&mut self, env: &Env<'_>, copied: u32) {
        let mut due = false;
        if self.ack.scheduled {
            let unacked = self.rcv.nxt.wrapping_sub(self.rcv.wup);
            due = unacked > self.ack.rcv_mss
                || (copied > 0
                    && (self.ack.pushed_twice || (self.ack.pushed && !self.is_pingpong(env)))
                    && self.rcv.memory == 0);
        }
        if copied > 0 && !due && !self.fate.shut_read {
            let now = self.receive_window();
            if 2 * now <= self.rcv.clamp {
                let new = self.select_window();
                due = new > 0 && new >= 2 * now;
            }
        }
        if due {
            self.send_ack(env);
        }
    }

    /// The program reads: how many bytes it gets of `max`. `peek`: they stay.
    pub fn read(&mut self, env: &Env<'_>, max: u32, peek: bool) -> u32 {
        let unread = self.unread();
        let copied = unread.min(max);
        if peek || copied == 0 {
            return copied;
        }
        self.rcv.copied = self.rcv.copied.wrapping_add(copied);
        while let Some(front) = self.rcv.queue.front().copied() {
            if after(front.end, self.rcv.copied) {
                break;
            }
            self.rcv.memory = self.rcv.memory.saturating_sub(front.truesize);
            self.rcv.queue.pop_front();
        }
        self.tune_buffer(env);
        self.after_read(env, copied);
        copied
    }

    /// Bytes received in order and not read.
    pub fn unread(&self) -> u32 {
        self.rcv.queue.back().map_or(0, |last| last.end.wrapping_sub(self.rcv.copied))
    }

    /// Dynamic right-sizing: the buffer follows what is read in a round trip.
    fn tune_buffer(&mut self, env: &Env<'_>) {
        let rtt = self.rcv.rtt8 >> 3;
        let elapsed = env.now.saturating_sub(self.rcv.space_at);
        if rtt == 0 || elapsed < rtt {
            return;
        }
        let copied = self.rcv.copied.wrapping_sub(self.rcv.space_seq);
        if copied > self.rcv.space {
            if env.sysctls.is_on("tcp_moderate_rcvbuf") && !self.opt.rcvbuf_locked {
                let window = u64::from(copied) * 2 + 16 * u64::from(self.terms.advmss);
                let grow =
                    window * u64::from(copied - self.rcv.space) / u64::from(self.rcv.space.max(1));
                let window = window + 2 * grow;
                let memory = (window << 8) / u64::from(self.rcv.ratio.max(1));
                let memory = memory.min(env.sysctls.nth("tcp_rmem", 2) as u64) as u32;
                if memory > self.rcv.buffer {
                    self.rcv.buffer = memory;
                    let most = self.full_space();
                    self.clamp_window(most);
                }
            }
            self.rcv.space = copied;
        }
        self.rcv.space_seq = self.rcv.copied;
        self.rcv.space_at = env.now;
    }
}
