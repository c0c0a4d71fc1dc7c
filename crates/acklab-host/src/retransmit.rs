//! What leaves again.

use crate::mib::Mib;
use crate::output::SKB_OVERHEAD;
use crate::segment::{Segment, after, before, flag};
use crate::settings::Env;
use crate::skb::{Marks, RateStamp, Skb};
use crate::tcp::{CaState, State, Tcp, Wait};

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
        // What leaves again is cut at the size of now.
        self.recut(index);
        if self.snd.out[index].len() > limit {
            self.split_out(index, limit);
        } else if self.snd.out[index].len() < mss.min(room) {
            self.collapse(env, index, mss.min(room));
        }
        let skb = self.snd.out[index];
        let flags = if skb.flags & flag::SYN == 0 { skb.flags | flag::ACK } else { skb.flags };
        if skb.flags & flag::SYN != 0 {
            self.resend_syn(env);
        } else {
            let segment = self.make(env, skb.seq, flags, skb.len());
            self.post(env, segment);
            self.stamp_departure(env, &skb);
        }
        let stamp = RateStamp {
            delivered: self.rec.delivered,
            delivered_at: self.count.delivered_at,
            first_sent: self.count.first_sent,
            app_limited: self.count.app_limited > 0,
            in_flight: self.in_flight() + 1,
            lost: self.rec.lost_total,
        };
        let rec = &mut self.rec;
        let out = &mut self.snd.out[index];
        out.sent = env.now;
        out.retries += 1;
        out.rate = stamp;
        out.marks = Marks { ever_retrans: true, judged: false, ..out.marks };
        rec.total_retrans += 1;
        self.count.bytes_retrans += u64::from(skb.len());
        self.tally(Mib::RetransSegs);
        if skb.flags & flag::SYN != 0 {
            self.tally(Mib::TCPSynRetrans);
        }
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
        self.recut(index + 1);
    }

    /// What is left of a piece whose packets were cut anew: the packet at `index` and those that continue it are cut
    /// at their size again. Returns how many packets fewer there are.
    pub(crate) fn recut(&mut self, index: usize) -> u32 {
        let Some(first) = self.snd.out.get(index).copied() else { return 0 };
        let marks = first.marks;
        let more = self.snd.out.iter().skip(index + 1);
        let more = more.take_while(|skb| skb.joined && skb.marks == marks).count();
        let mss = self.current_mss();
        if more == 0 && first.len() <= mss {
            return 0;
        }
        let last = self.snd.out[index + more];
        let mut whole = Skb { joined: first.joined, overhead: first.overhead, ..last };
        whole.seq = first.seq;
        let mut pieces = Vec::new();
        while whole.len() > mss {
            let mut rest = whole.split(mss);
            rest.joined = true;
            pieces.push(whole);
            whole = rest;
        }
        pieces.push(whole);
        let (old, new) = (more as u32 + 1, pieces.len() as u32);
        let tail = self.snd.out.split_off(index + more + 1);
        self.snd.out.truncate(index);
        self.snd.out.extend(pieces);
        self.snd.out.extend(tail);
        let rec = &mut self.rec;
        for (has, count) in [
            (marks.sacked, &mut rec.sacked),
            (marks.lost, &mut rec.lost),
            (marks.retrans, &mut rec.retrans),
        ] {
            if has {
                *count = *count + new - old;
            }
        }
        old.saturating_sub(new)
    }

    /// The packet that a tail loss probe sends of the last piece, which is cut at the size of now: what is behind all of
    /// its packets but one, as they were counted before, or all where that leaves nothing.
    pub(crate) fn cut_last(&mut self) -> usize {
        let end = self.snd.out.len() - 1;
        let marks = self.snd.out[end].marks;
        let alike = |at: &usize| self.snd.out[*at].joined && self.snd.out[*at - 1].marks == marks;
        let more = (1..=end).rev().take_while(alike).count();
        let first = end - more;
        self.recut(first);
        let index = if first + more < self.snd.out.len() { first + more } else { first };
        self.detach(index);
        index
    }

    /// Joins packets that follow with one that is sent again, as long as all fit into one (RFC 9293 section
    /// 3.8.1 lets a retransmission repacketise).
    pub(crate) fn collapse(&mut self, env: &Env<'_>, index: usize, room: u32) {
        if !env.sysctls.is_on("tcp_retrans_collapse")
            || self.snd.out[index].joined
            || self.snd.out[index].flags & (flag::SYN | flag::FIN) != 0
            || self.snd.out[index].marks.sacked
        {
            return;
        }
        while let Some(next) = self.snd.out.get(index + 1).copied() {
            let head = self.snd.out[index];
            let fits = head.len() + next.len() <= room && !after(next.end, self.window_end());
            // A piece of several packets stays one.
            let of_several = next.joined || self.snd.out.get(index + 2).is_some_and(|n| n.joined);
            if next.marks.sacked || head.eor || next.flags & flag::SYN != 0 || of_several || !fits {
                break;
            }
            self.snd.memory = self.snd.memory.saturating_sub(next.overhead);
            self.snd.out.remove(index + 1);
            let head = &mut self.snd.out[index];
            head.end = next.end;
            head.flags |= next.flags;
            head.eor = next.eor;
            head.marks.ever_retrans |= next.marks.ever_retrans;
            if head.wishes.is_none() {
                head.wishes = next.wishes;
            }
            if !self.terms.sack {
                // Duplicates stand for packets, of which there is one less.
                self.rec.sacked = self.rec.sacked.saturating_sub(1);
            }
            self.rec.lost -= u32::from(next.marks.lost);
            self.rec.retrans -= u32::from(next.marks.retrans);
        }
    }

    /// Sends a lost packet again, and with it those that were cut from the same piece, up to `quota` in one burst;
    /// returns how many left.
    pub(crate) fn retransmit_burst(&mut self, env: &Env<'_>, index: usize, quota: u32) -> u32 {
        let before = self.wire.len();
        if !self.retransmit(env, index) {
            return 0;
        }
        let mut sent = 1;
        while sent < quota {
            let Some(next) = self.snd.out.get(index + sent as usize) else { break };
            let marks = next.marks;
            // What the peer's window cuts leaves by itself.
            if after(next.end, self.window_end())
                || !next.joined
                || !marks.lost
                || marks.sacked
                || marks.retrans
            {
                break;
            }
            if !self.retransmit(env, index + sent as usize) {
                break;
            }
            sent += 1;
        }
        self.detach(index + sent as usize);
        self.join(before);
        sent
    }

    /// The packet at `index` and those that continue it are a piece of their own from now on.
    pub(crate) fn detach(&mut self, index: usize) {
        if let Some(first) = self.snd.out.get_mut(index)
            && std::mem::take(&mut first.joined)
        {
            first.overhead += SKB_OVERHEAD;
            self.snd.memory += SKB_OVERHEAD;
        }
    }

    /// Segments from `first` on, which follow each other, leave as one burst.
    pub(crate) fn join(&mut self, first: usize) {
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
            if self.window.cwnd <= self.in_flight()
                || self.rec.retrans >= self.rec.lost
                || self.is_paced(env)
            {
                break;
            }
            let marks = self.snd.out[index].marks;
            let waits = self.waits_after_return(self.snd.out[index].end);
            if !marks.lost || marks.sacked || marks.retrans || waits {
                index += 1;
                continue;
            }
            let quota = (self.window.cwnd - self.in_flight()).min(self.burst(env));
            let sent = self.retransmit_burst(env, index, quota);
            if sent == 0 {
                break;
            }
            let slow = self.rec.ca == CaState::Loss;
            let mib = if slow { Mib::TCPSlowStartRetrans } else { Mib::TCPFastRetrans };
            self.tally_all(mib, sent);
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
        self.send_new(env, piece, mss, false);
    }
}
