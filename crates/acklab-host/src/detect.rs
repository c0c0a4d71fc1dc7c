//! Which packets are lost: RACK (RFC 8985 section 6.2) with SACK, duplicate ACKs (RFC 6582) without.

use crate::loss::Heard;
use crate::mib::Mib;
use crate::segment::{after, before};
use crate::settings::{Env, MS, Us};
use crate::skb::Skb;
use crate::tcp::{CaState, Tcp, Wait};

/// Detection.
impl Tcp {
    pub(crate) fn is_rack(&self, env: &Env<'_>) -> bool {
        let _ = env;
        self.terms.sack
    }

    /// Marks a packet lost, or lost again.
    pub(crate) fn mark_lost(&mut self, index: usize) {
        let marks = &mut self.snd.out[index].marks;
        if marks.sacked {
            return;
        }
        if marks.lost {
            if marks.retrans {
                marks.retrans = false;
                self.rec.retrans -= 1;
                self.rec.lost_total += 1;
                self.tally(Mib::TCPLostRetransmit);
            }
        } else {
            marks.lost = true;
            self.rec.lost += 1;
            self.rec.lost_total += 1;
        }
    }

    pub(crate) fn identify_loss(&mut self, env: &Env<'_>, heard: &mut Heard) {
        if self.snd.out.is_empty() {
            return;
        }
        if !self.terms.sack {
            let dups = self.rec.sacked >= self.rec.reordering && self.rec.ca < CaState::Recovery;
            let partial = self.rec.ca == CaState::Recovery && heard.advanced;
            if (dups || partial) && !self.snd.out[0].marks.lost {
                self.mark_lost(0);
            }
        } else if self.is_rack(env) {
            let before = self.rec.retrans;
            if self.rack_mark_lost(env) {
                // The reordering window's timer stays.
                heard.set_timer = false;
            }
            heard.lost_retrans |= before > self.rec.retrans;
        }
    }

    /// Duplicate ACKs without SACK stand for packets that left the network.
    pub(crate) fn add_duplicates(&mut self, env: &Env<'_>, heard: &Heard) {
        if heard.duplicates == 0 {
            return;
        }
        let before = self.rec.sacked;
        self.rec.sacked += heard.duplicates;
        self.check_duplicates(env, 0);
        self.rec.delivered += self.rec.sacked.saturating_sub(before);
    }

    pub(crate) fn limit_duplicates(&mut self) -> bool {
        let out = self.packets_out();
        let holes = self.rec.lost.max(1).min(out);
        if self.rec.sacked + holes > out {
            self.rec.sacked = out - holes;
            return true;
        }
        false
    }

    pub(crate) fn check_duplicates(&mut self, env: &Env<'_>, add: u32) {
        if self.limit_duplicates() {
            let most = env.sysctls.of("tcp_max_reordering") as u32;
            self.rec.reordering = (self.packets_out() + add).min(most);
            self.rec.reord_seen += 1;
            self.tally(Mib::TCPRenoReorder);
        }
    }

    /// `acked` packets were acknowledged; some of them were counted by duplicates.
    pub fn remove_duplicates(&mut self, acked: u32, _ece: bool) {
        if acked > 0 {
            self.rec.delivered += acked.saturating_sub(self.rec.sacked).max(1);
            self.rec.sacked = self.rec.sacked.saturating_sub(acked - 1);
        }
        if self.limit_duplicates() {
            self.rec.reordering = (self.packets_out() + acked).min(300);
            self.rec.reord_seen += 1;
            self.tally(Mib::TCPRenoReorder);
        }
    }

    /// Data at `low` was delivered after data above it.
    pub fn note_reordering(&mut self, low: u32, mib: Mib) {
        let top = self.snd.out.iter().rposition(|skb| skb.marks.sacked);
        let top = top.map_or(self.snd.una, |at| self.snd.out[at].end);
        if !before(low, top) {
            return;
        }
        let metric = top.wrapping_sub(low);
        let mss = self.snd.mss;
        if mss > 0 && metric > self.rec.reordering.saturating_mul(mss) {
            self.rec.reordering = metric.div_ceil(mss).min(300);
        }
        self.rec.reord_seen += 1;
        self.tally(mib);
    }
}

/// RACK (RFC 8985 section 6.2).
impl Tcp {
    /// A packet was delivered.
    pub fn advance_rack(&mut self, env: &Env<'_>, skb: &Skb) {
        let rtt = env.now - skb.sent;
        if rtt < self.rtt.least() && skb.marks.ever_retrans {
            return;
        }
        let rack = &mut self.rec.rack;
        rack.advanced = true;
        rack.rtt = rtt;
        if is_sent_after(skb.sent, skb.end, rack.sent, rack.end) {
            rack.sent = skb.sent;
            rack.end = skb.end;
        }
    }

    pub(crate) fn reorder_window(&self, env: &Env<'_>) -> Us {
        if self.rec.reord_seen == 0 {
            if self.rec.ca >= CaState::Recovery {
                return 0;
            }
            if self.rec.sacked >= self.rec.reordering && env.sysctls.of("tcp_recovery") & 4 == 0 {
                return 0;
            }
        }
        let steps = Us::from(self.rec.rack.steps.max(1));
        ((self.rtt.least() >> 2) * steps).min(self.rtt.srtt8 >> 3)
    }

    /// How long to wait for `skb` before it is lost; at most 0: it is.
    pub(crate) fn rack_wait(&self, env: &Env<'_>, skb: &Skb, window: Us) -> i64 {
        self.rec.rack.rtt as i64 + window as i64 - (env.now as i64 - skb.sent as i64)
    }

    /// Marks what was sent before what was delivered; returns how long to wait for the rest.
    pub(crate) fn rack_detect(&mut self, env: &Env<'_>) -> Us {
        let window = self.reorder_window(env);
        let (sent, end) = (self.rec.rack.sent, self.rec.rack.end);
        let mut wait = 0;
        for index in 0..self.snd.out.len() {
            let skb = &self.snd.out[index];
            let known = skb.marks.lost && !skb.marks.retrans;
            if skb.marks.judged || known || !is_sent_after(sent, end, skb.sent, skb.end) {
                continue;
            }
            let left = self.rack_wait(env, skb, window);
            if left <= 0 {
                self.mark_lost(index);
                self.snd.out[index].marks.judged = true;
            } else {
                wait = wait.max(left as Us);
            }
        }
        wait
    }

    /// Returns whether it waits for the rest.
    pub(crate) fn rack_mark_lost(&mut self, env: &Env<'_>) -> bool {
        if !self.rec.rack.advanced {
            return false;
        }
        self.rec.rack.advanced = false;
        let wait = self.rack_detect(env);
        if wait > 0 {
            self.arm(Wait::Reorder, env.now + wait.div_ceil(MS) * MS + 2 * MS);
        }
        wait > 0
    }

    /// The reordering window is over.
    pub fn on_reorder_timer(&mut self, env: &Env<'_>) {
        let before = self.in_flight();
        let lost = self.rec.lost_total;
        let _ = self.rack_detect(env);
        if before != self.in_flight() {
            if self.rec.ca != CaState::Recovery {
                self.enter_recovery(env, false);
                self.reduce_window(1, self.rec.lost_total - lost, false);
            }
            self.retransmit_lost(env);
        }
        if !self.waits_for(Wait::Retransmit) {
            self.rearm_retransmission(env);
        }
    }

    /// RFC 8985 section 6.2, step 4: the window follows DSACKs.
    pub fn update_reorder_window(&mut self, prior_delivered: &u32) {
        let delivered = self.rec.delivered;
        let rack = &mut self.rec.rack;
        if *prior_delivered == 0 {
            return;
        }
        if before(*prior_delivered, rack.last_delivered) {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = (rack.steps.max(1) + 1).min(255);
            rack.dsack_seen = false;
            rack.last_delivered = delivered;
            rack.persist = 16;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }
}

/// Whether one packet left after another; what left at once counts in its order.
fn is_sent_after(sent: Us, end: u32, other: Us, other_end: u32) -> bool {
    sent > other || (sent == other && after(end, other_end))
}
