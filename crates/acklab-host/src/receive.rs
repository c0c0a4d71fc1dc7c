//! What arrives: data in order and out of it, memory, the window to announce, and when an ACK leaves.

use acklab_core::ack::Disorder;

use crate::acking::DELAY_MIN;
use crate::ecn;
use crate::mib::Mib;
use crate::segment::{Segment, after, before, flag};
use crate::settings::{Env, MS, Us};
use crate::tcp::{Chunk, State, Tcp, poll};
use crate::window::{MSS_DEFAULT, tail_room, truesize};

/// Segments acknowledged at once at the start, or after silence.
pub(crate) const QUICK: u32 = 16;

/// Data.
impl Tcp {
    /// Follows the size of the peer's segments.
    pub(crate) fn measure(&mut self, segment: &Segment, size: u32) {
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
            // Senders push whenever their buffer was empty; where they ask for a rate of ACKs, that is let be.
            let asked = self.ack.asking.as_ref().is_some_and(|asking| asking.is_asked());
            self.ack.pushed |= segment.has(flag::PSH) && !asked;
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

    pub(crate) fn add_quick(&mut self, most: u32) {
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
    pub(crate) fn on_data(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
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
        ecn::on_mark(self, env, segment);
        let threshold = self.rcv.ssthresh;
        if segment.len >= 128 {
            self.grow_window(env, segment.len, size);
        }
        let grew = self.rcv.ssthresh > threshold;
        if let Some(ruling) = &mut self.ack.policy {
            ruling.on_data(segment.len, segment.has(flag::PSH), grew);
        }
    }

    /// The receiver's round trip without timestamps: a window's worth of data takes one.
    pub(crate) fn measure_rtt_by_window(&mut self, env: &Env<'_>) {
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

    pub(crate) fn update_receiver_rtt(&mut self, rtt: Us, by_window: bool) {
        let old = self.rcv.rtt8;
        let sample = rtt << 3;
        if old == 0 || sample < old {
            self.rcv.rtt8 = sample;
        } else if !by_window && self.rcv.nxt == self.rcv.copied {
            self.rcv.rtt8 = old - (old >> 3) + rtt;
        }
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

    /// Takes the payload and FIN of an acceptable segment.
    pub fn take_data(&mut self, env: &Env<'_>, segment: &Segment) {
        let (seq, end) = (segment.seq, segment.end());
        ecn::on_cwr(self, segment);
        if seq == end {
            return;
        }
        let headers = env.route.ip_header + segment.header();
        let size = truesize(segment.len, headers);
        self.rcv.room = tail_room(segment.len, headers);
        self.rcv.dsack = None;
        self.hear_request(segment);
        if seq == self.rcv.nxt {
            if self.receive_window() == 0 && !(segment.len == 0 && segment.has(flag::FIN)) {
                self.tally(Mib::TCPZeroWindowDrop);
                self.refuse(env);
                return;
            }
            self.take_in_order(env, segment, size);
            return;
        }
        if !after(end, self.rcv.nxt) {
            self.suspect_option(seq);
            self.tally(Mib::DelayedACKLost);
            self.set_dsack(env, seq, end);
            self.refuse(env);
            return;
        }
        if !before(seq, self.rcv.nxt.wrapping_add(self.receive_window())) {
            self.refuse(env);
            return;
        }
        if before(seq, self.rcv.nxt) {
            self.set_dsack(env, seq, self.rcv.nxt);
            if self.receive_window() == 0 {
                self.tally(Mib::TCPZeroWindowDrop);
                self.refuse(env);
                return;
            }
            self.take_in_order(env, segment, size);
            return;
        }
        self.take_out_of_order(env, segment, size);
    }

    /// Old data, or beyond the window: the sender should learn at once.
    pub(crate) fn refuse(&mut self, env: &Env<'_>) {
        self.note_disorder(env, Disorder::Repeated);
        self.enter_quick(QUICK);
        self.ack.scheduled = true;
    }

    pub(crate) fn take_in_order(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
        if !self.has_memory(env, segment.seq) {
            self.ack.no_memory = true;
            self.ack.now = true;
            self.ack.scheduled = true;
            self.wake(poll::IN | poll::RDNORM);
            // A program that has read everything is not kept from more.
            if !self.rcv.queue.is_empty() && segment.len > 0 {
                self.tally(Mib::TCPRcvQDrop);
                return;
            }
        }
        let end = segment.end();
        let data_end = segment.seq.wrapping_add(segment.len);
        if segment.len > 0 {
            let (seq, room) = (segment.seq, self.rcv.room);
            self.queue(self.rcv.nxt, &Chunk { seq, end: data_end, truesize: size, room });
            self.rcv.nxt = data_end;
            self.on_data(env, segment, size);
        }
        let fin = segment.has(flag::FIN);
        if fin {
            if segment.len == 0 && !self.rcv.queue.is_empty() {
                self.tally(Mib::TCPRcvCoalesce);
            }
            if segment.len == 0 && self.rcv.queue.is_empty() {
                // Its buffer waits as data's would.
                self.rcv.memory += size;
                let room = self.rcv.room;
                self.rcv.queue.push_back(Chunk {
                    seq: data_end,
                    end: data_end,
                    truesize: size,
                    room,
                });
            }
            self.rcv.nxt = end;
            self.count.bytes_received += 1;
            self.take_fin(env);
        }
        if !self.rcv.ooo.is_empty() {
            self.note_disorder(env, Disorder::Filling);
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
            let headers = env.route.ip_header + syn.header();
            let size = truesize(syn.len, headers);
            let room = tail_room(syn.len, headers);
            let end = self.rcv.nxt.wrapping_add(syn.len);
            self.queue(self.rcv.nxt, &Chunk { seq: self.rcv.nxt, end, truesize: size, room });
            self.rcv.nxt = end;
            if self.open.passive {
                self.rcv.wup = end;
            }
            self.count.data_segs_in += 1;
            self.open.data_acked = true;
        }
    }

    /// Data in order from `seq` on; what begins there and fits behind the last packet in its buffer is copied there.
    pub(crate) fn queue(&mut self, seq: u32, data: &Chunk) {
        let len = data.end.wrapping_sub(seq);
        self.count.bytes_received += u64::from(len);
        let fits = |last: &&mut Chunk| last.end == data.seq && len <= last.room;
        if let Some(last) = self.rcv.queue.back_mut().filter(fits) {
            last.end = data.end;
            last.room -= len;
            self.tally(Mib::TCPRcvCoalesce);
            return;
        }
        self.rcv.memory += data.truesize;
        self.rcv.queue.push_back(Chunk { seq, ..*data });
    }

    pub(crate) fn drain_out_of_order(&mut self, env: &Env<'_>) {
        // Pieces that overlap each other were reported as they came.
        let known = self.rcv.nxt;
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
            if before(first.seq, known) {
                let dup_end = if before(first.end, known) { first.end } else { known };
                self.extend_dsack(env, first.seq, dup_end);
            }
            self.rcv.memory = self.rcv.memory.saturating_sub(first.truesize);
            if !after(first.end, self.rcv.nxt) {
                // All of it came otherwise, a FIN's number too.
                continue;
            }
            if after(end, self.rcv.nxt) {
                self.queue(self.rcv.nxt, &Chunk { end, ..first });
                self.rcv.nxt = end;
            }
            if fin_at.is_some() {
                if end == first.seq && !self.rcv.queue.is_empty() {
                    self.tally(Mib::TCPRcvCoalesce);
                }
                self.rcv.nxt = first.end;
                self.count.bytes_received += 1;
                self.take_fin(env);
            }
        }
    }

    pub(crate) fn out_of_order_fin(&self) -> Option<u32> {
        self.rcv.fin_at
    }

    pub(crate) fn take_out_of_order(&mut self, env: &Env<'_>, segment: &Segment, size: u32) {
        ecn::on_mark(self, env, segment);
        if !self.has_memory(env, segment.seq) {
            self.wake(poll::IN | poll::RDNORM);
            self.tally(Mib::TCPOFODrop);
            return;
        }
        self.tally(Mib::TCPOFOQueue);
        self.ack.scheduled = true;
        self.note_disorder(env, Disorder::Ahead);
        self.measure(segment, size);
        self.count.rcv_ooopack += 1;
        if segment.has(flag::FIN) {
            let at = segment.end().wrapping_sub(1);
            // What comes behind the first is never read.
            self.rcv.fin_at =
                Some(self.rcv.fin_at.filter(|&known| before(known, at)).unwrap_or(at));
        }
        let (seq, end) = (segment.seq, segment.end());
        let mut kept = true;
        let mut index = 0;
        while let Some(&other) = self.rcv.ooo.get(index) {
            if !before(other.seq, end) {
                break;
            }
            let begins_within = !before(seq, other.seq) && before(seq, other.end);
            if !before(seq, other.end) {
                index += 1;
            } else if begins_within && !after(end, other.end) {
                self.tally(Mib::TCPOFOMerge);
                self.set_dsack(env, seq, end);
                kept = false;
                break;
            } else if begins_within && seq != other.seq {
                // Both are kept whole.
                self.set_dsack(env, seq, other.end);
                index += 1;
            } else if before(end, other.end) {
                self.extend_dsack(env, other.seq, end);
                break;
            } else {
                self.tally(Mib::TCPOFOMerge);
                self.extend_dsack(env, other.seq, other.end);
                self.drop_out_of_order(index);
            }
        }
        if kept {
            let at = self.rcv.ooo.partition_point(|c| before(c.seq, seq));
            let (len, room) = (end.wrapping_sub(seq), self.rcv.room);
            let fits = |c: &Chunk| c.end == seq && len <= c.room;
            let before_it = at.checked_sub(1).filter(|&at| fits(&self.rcv.ooo[at]));
            // The window grows by what was free before this packet.
            if self.terms.sack {
                self.grow_window(env, segment.len, size);
            }
            if let Some(last) = before_it {
                self.tally(Mib::TCPRcvCoalesce);
                self.rcv.ooo[last].end = end;
                self.rcv.ooo[last].room -= len;
            } else {
                self.rcv.ooo.insert(at, Chunk { seq, end, truesize: size, room });
                self.rcv.memory += size;
            }
        }
        if !self.fate.orphan {
            self.grow_buffer(env, self.rcv.space);
        }
        if self.terms.sack {
            self.add_sack(segment.seq, end);
        }
    }

    pub(crate) fn drop_out_of_order(&mut self, index: usize) {
        let gone = self.rcv.ooo.remove(index);
        self.rcv.memory = self.rcv.memory.saturating_sub(gone.truesize);
    }

    /// RFC 2018 section 4: the most recent block first, at most four.
    pub(crate) fn add_sack(&mut self, seq: u32, end: u32) {
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

    pub(crate) fn forget_sacks(&mut self) {
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
            let old = before(seq, self.rcv.nxt);
            self.tally(if old { Mib::TCPDSACKOldSent } else { Mib::TCPDSACKOfoSent });
        }
    }

    pub(crate) fn extend_dsack(&mut self, env: &Env<'_>, seq: u32, end: u32) {
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
    pub(crate) fn take_fin(&mut self, env: &Env<'_>) {
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

    /// A stub that answers for `span` takes the connection's place.
    pub(crate) fn tally_wait(&mut self, span: Us) {
        self.tally(if span <= 4000 * MS { Mib::TWKilled } else { Mib::TW });
    }

    /// TIME-WAIT for `span`, or its stand-in for FIN-WAIT-2.
    pub fn enter_time_wait(&mut self, env: &Env<'_>, span: Us) {
        if self.timers.time_wait.is_none() {
            self.tally_wait(span);
        }
        self.state = State::TimeWait;
        self.timers = crate::tcp::Timers::default();
        self.timers.time_wait = Some(env.now + span);
        self.fate.shut_read = true;
        self.fate.shut_write = true;
        self.wake(poll::IN | poll::OUT | poll::RDHUP | poll::HUP);
    }
}
