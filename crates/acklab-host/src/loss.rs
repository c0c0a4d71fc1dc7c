//! Loss: what is taken for lost, how far the window falls, and whether it was an error.
//!
//! States of RFC 5681 and 6675 as Linux runs them. Detection is RACK-TLP (RFC 8985) with SACK, NewReno (RFC
//! 6582) without; the window falls by proportional rate reduction (RFC 6937, with the bound of its successor);
//! spurious reductions are found by DSACK (RFC 3708), timestamps (Eifel, RFC 3522) and F-RTO (RFC 5682).

use crate::output::{Pass, Push};
use crate::segment::{after, before};
use crate::settings::{Env, MS, SECOND, Us};
use crate::skb::Skb;
use crate::tcp::{CaState, Tcp, Wait};

/// What an ACK brought.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations about one ACK")]
pub struct Heard {
    /// It advanced.
    pub advanced: bool,
    /// The segment carries data, SYN or FIN.
    pub has_data: bool,
    /// It updated the window's sequence numbers.
    pub window: bool,
    /// It acknowledged data cumulatively.
    pub acked_data: bool,
    /// It acknowledged a SYN.
    pub acked_syn: bool,
    /// Of that something was retransmitted.
    pub retrans_acked: bool,
    /// It SACKed something new.
    pub sacked_data: bool,
    /// It echoed a mark.
    pub ece: bool,
    /// It carried a DSACK.
    pub dsack: bool,
    /// Of the tail loss probe.
    pub dsack_of_probe: bool,
    /// Data below the episode's end, sent once, was delivered.
    pub original_delivered: bool,
    /// A retransmission was taken for lost.
    pub lost_retrans: bool,
    /// The packet after the cumulative ACK was SACKed before.
    pub reneging: bool,
    /// The transmit timer begins anew.
    pub set_timer: bool,
    /// Duplicate ACKs that it stands for.
    pub duplicates: u32,
}

impl Heard {
    /// Whether it cannot be a duplicate ACK.
    pub const fn is_not_duplicate(&self) -> bool {
        self.has_data || self.window || self.acked_data || self.acked_syn
    }

    /// Notes that it is a duplicate ACK, if it is one.
    pub const fn count_duplicate(&mut self) {
        if !self.advanced && !self.is_not_duplicate() && !self.dsack {
            self.duplicates = 1;
        }
    }

    /// Whether it asks for a closer look.
    pub const fn alerts(&self) -> bool {
        self.sacked_data || self.ece || self.dsack
    }
}

/// What to send after an ACK in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Nothing special.
    Nothing,
    /// What is lost.
    Lost,
    /// New data, to find out whether a time-out was spurious.
    New,
}

/// The states.
impl Tcp {
    /// An ACK that is dubious, or comes while something is being mended.
    pub fn on_loss_news(&mut self, env: &Env<'_>, prior_una: u32, heard: &mut Heard) -> Again {
        if self.snd.out.is_empty() {
            self.rec.sacked = 0;
        }
        if heard.ece {
            self.window.prior_ssthresh = 0;
        }
        if self.check_reneging(env, heard) {
            return Again::Nothing;
        }
        if self.rec.ca == CaState::Open {
            self.rec.retrans_stamp = None;
        } else if !before(self.snd.una, self.rec.high_seq) && self.end_episode(env) {
            return Again::Nothing;
        }
        match self.rec.ca {
            CaState::Recovery => return self.in_recovery(env, prior_una, heard),
            CaState::Loss => {
                let again = self.in_loss(env, heard);
                self.identify_loss(env, heard);
                if !(self.rec.ca == CaState::Open || heard.lost_retrans) {
                    return again;
                }
                return self.in_order_or_disorder(env, heard, again);
            }
            _ => {}
        }
        self.in_order_or_disorder(env, heard, Again::Nothing)
    }

    /// What was out when the episode began is acknowledged; returns whether nothing more is to do.
    fn end_episode(&mut self, env: &Env<'_>) -> bool {
        match self.rec.ca {
            CaState::Cwr if self.snd.una != self.rec.high_seq => {
                self.end_reduction(env);
                self.rec.ca = CaState::Open;
            }
            CaState::Recovery => {
                if !self.terms.sack {
                    self.rec.sacked = 0;
                }
                if self.try_undo_recovery(env) {
                    return true;
                }
                self.end_reduction(env);
            }
            _ => {}
        }
        false
    }

    fn in_recovery(&mut self, env: &Env<'_>, prior_una: u32, heard: &mut Heard) -> Again {
        if !heard.advanced {
            if !self.terms.sack {
                self.add_duplicates(env, heard);
            }
        } else if self.try_undo_partial(env, prior_una) {
            return Again::Nothing;
        }
        if self.rec.undo_marker.is_some() && self.rec.undo_retrans == 0 {
            self.undo_by_dsack(env);
            self.try_to_open(env, heard);
        }
        self.identify_loss(env, heard);
        if self.rec.ca != CaState::Recovery {
            if self.rec.lost == 0 {
                return Again::Nothing;
            }
            self.enter_recovery(env, heard.ece);
        }
        Again::Lost
    }

    fn in_order_or_disorder(&mut self, env: &Env<'_>, heard: &mut Heard, again: Again) -> Again {
        if !self.terms.sack {
            if heard.advanced {
                self.rec.sacked = 0;
            }
            self.add_duplicates(env, heard);
        }
        if self.rec.ca <= CaState::Disorder
            && self.rec.undo_marker.is_some()
            && self.rec.undo_retrans == 0
        {
            self.undo_by_dsack(env);
        }
        self.identify_loss(env, heard);
        if self.rec.lost == 0 {
            self.try_to_open(env, heard);
            return again;
        }
        if self.rec.ca < CaState::Cwr && self.is_mtu_probe_lost() {
            self.on_mtu_probe_lost(env);
            self.window.cwnd += 1;
            return Again::Lost;
        }
        self.enter_recovery(env, heard.ece);
        Again::Lost
    }

    fn enter_recovery(&mut self, env: &Env<'_>, ece: bool) {
        self.window.prior_ssthresh = 0;
        self.begin_undo();
        if !self.in_reduction() {
            if !ece {
                self.window.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction(env);
        }
        self.rec.ca = CaState::Recovery;
    }

    fn begin_undo(&mut self) {
        self.rec.undo_marker = Some(self.snd.una);
        let probe = i32::from(self.rec.tlp_end.is_some() && self.rec.tlp_retrans);
        let retrans = self.rec.retrans as i32 + probe;
        self.rec.undo_retrans = if retrans == 0 { -1 } else { retrans };
    }

    fn begin_reduction(&mut self, env: &Env<'_>) {
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_end = None;
        self.window.count = 0;
        self.window.prior_cwnd = self.window.cwnd;
        self.rec.prr_delivered = 0;
        self.rec.prr_out = 0;
        self.window.ssthresh = self.cc.ssthresh(&self.window);
        let _ = env;
        self.ecn.queue_cwr = self.ecn.mode == crate::tcp::EcnMode::Classic;
    }

    /// The window falls for a mark (RFC 3168).
    pub fn enter_cwr(&mut self, env: &Env<'_>) {
        self.window.prior_ssthresh = 0;
        if self.rec.ca < CaState::Cwr {
            self.rec.undo_marker = None;
            self.begin_reduction(env);
            self.rec.ca = CaState::Cwr;
        }
    }

    /// Proportional rate reduction: what may be out after `delivered` packets arrived and `lost` were found lost.
    pub fn reduce_window(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.window.prior_cwnd == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let room = i64::from(self.window.ssthresh) - i64::from(in_flight);
        self.rec.prr_delivered += delivered;
        let out = i64::from(self.rec.prr_out);
        let mut send = if room < 0 {
            let due = (u64::from(self.window.ssthresh) * u64::from(self.rec.prr_delivered))
                .div_ceil(u64::from(self.window.prior_cwnd));
            due as i64 - out
        } else {
            let mut send = (i64::from(self.rec.prr_delivered) - out).max(i64::from(delivered));
            if advanced && lost == 0 {
                send += 1;
            }
            send.min(room)
        };
        send = send.max(i64::from(self.rec.prr_out == 0));
        self.window.cwnd = (i64::from(in_flight) + send).max(0) as u32;
    }

    fn end_reduction(&mut self, env: &Env<'_>) {
        if self.window.ssthresh < crate::cc::INFINITE_SSTHRESH
            && (self.rec.ca == CaState::Cwr || self.rec.undo_marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
            self.window.stamp = env.now;
        }
    }

    fn is_any_retransmitted(&self) -> bool {
        self.rec.retrans > 0 || self.snd.out.front().is_some_and(|skb| skb.marks.ever_retrans)
    }

    fn try_keep_open(&mut self) {
        let disordered = self.rec.sacked + self.rec.lost > 0 || self.is_any_retransmitted();
        let state = if disordered { CaState::Disorder } else { CaState::Open };
        if self.rec.ca != state {
            self.rec.ca = state;
            self.rec.high_seq = self.snd.nxt;
        }
    }

    fn try_to_open(&mut self, env: &Env<'_>, heard: &Heard) {
        if !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        if heard.ece {
            self.enter_cwr(env);
        }
        if self.rec.ca != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// A retransmission time-out.
    pub fn enter_loss(&mut self, env: &Env<'_>) {
        let is_new = self.rec.ca < CaState::Recovery;
        self.mark_all_lost(env);
        if self.rec.ca <= CaState::Disorder
            || !after(self.rec.high_seq, self.snd.una)
            || (self.rec.ca == CaState::Loss && self.rec.retransmits == 0)
        {
            self.window.prior_ssthresh = self.current_ssthresh();
            self.window.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.window);
            self.cc.on_timeout(env.now, self.snd.nxt);
            self.begin_undo();
        }
        self.window.cwnd = self.in_flight() + 1;
        self.window.count = 0;
        self.window.stamp = env.now;
        let reordering = env.sysctls.of("tcp_reordering") as u32;
        if self.rec.ca <= CaState::Disorder && self.rec.sacked >= reordering {
            self.rec.reordering = self.rec.reordering.min(reordering);
        }
        self.rec.ca = CaState::Loss;
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_end = None;
        self.ecn.queue_cwr = self.ecn.mode == crate::tcp::EcnMode::Classic;
        // RFC 5682 section 3.1, step 1.
        self.rec.frto = env.sysctls.is_on("tcp_frto")
            && (is_new || self.rec.retransmits > 0)
            && self.snd.mtu_probe == 0;
    }

    fn mark_all_lost(&mut self, env: &Env<'_>) {
        let reneged = self.snd.out.front().is_some_and(|skb| skb.marks.sacked);
        if reneged {
            self.rec.sacked = 0;
            self.rec.reneged = true;
        } else if !self.terms.sack {
            self.rec.sacked = 0;
        }
        let timed = self.is_rack(env);
        for index in 0..self.snd.out.len() {
            if reneged {
                self.snd.out[index].marks.sacked = false;
            } else if timed && index > 0 && self.rack_wait(env, &self.snd.out[index], 0) > 0 {
                // Sent too recently to be lost.
                continue;
            }
            self.mark_lost(index);
        }
    }

    fn in_loss(&mut self, env: &Env<'_>, heard: &mut Heard) -> Again {
        let recovered = !before(self.snd.una, self.rec.high_seq);
        if heard.advanced && self.try_undo_loss(env, false) {
            return Again::Nothing;
        }
        if self.rec.frto {
            // Step 3.b: never retransmitted data arrived.
            if heard.original_delivered && self.try_undo_loss(env, true) {
                return Again::Nothing;
            }
            if after(self.snd.nxt, self.rec.high_seq) {
                if heard.sacked_data || heard.duplicates > 0 {
                    // Step 3.a: the loss was real.
                    self.rec.frto = false;
                }
            } else if heard.advanced && !recovered {
                self.rec.high_seq = self.snd.nxt;
                // Step 2.b: try new data.
                if !self.snd.queue.is_empty() && after(self.window_end(), self.snd.nxt) {
                    return Again::New;
                }
                self.rec.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(env);
            return Again::Nothing;
        }
        if !self.terms.sack {
            if after(self.snd.nxt, self.rec.high_seq) && heard.duplicates > 0 {
                self.add_duplicates(env, heard);
            } else if heard.advanced {
                self.rec.sacked = 0;
            }
        }
        Again::Lost
    }

    /// Sends what an ACK asked for.
    pub fn send_again(&mut self, env: &Env<'_>, again: Again) {
        match again {
            Again::Nothing => {}
            Again::New => {
                self.push_pending(env, Push::Off);
                if after(self.snd.nxt, self.rec.high_seq) {
                    return;
                }
                self.rec.frto = false;
                self.retransmit_lost(env);
            }
            Again::Lost => self.retransmit_lost(env),
        }
    }

    /// The peer dropped what it had SACKed: a short time-out.
    fn check_reneging(&mut self, env: &Env<'_>, heard: &mut Heard) -> bool {
        if !(heard.reneging && heard.advanced) {
            return false;
        }
        let delay = (self.rtt.srtt8 >> 4).max(10 * MS);
        self.arm(Wait::Retransmit, env.now + delay);
        heard.set_timer = false;
        true
    }
}

/// Undoing.
impl Tcp {
    /// Whether an ACK shows that the original arrived before its retransmission could.
    fn was_delayed(&self) -> bool {
        match self.rec.retrans_stamp {
            Some(stamp) => {
                self.terms.stamps && self.rcv.echo.is_some_and(|echo| before(echo, stamp))
            }
            None => self.terms.sack || before(self.snd.una, self.rec.high_seq),
        }
    }

    fn may_undo(&self) -> bool {
        self.rec.undo_marker.is_some() && (self.rec.undo_retrans == 0 || self.was_delayed())
    }

    fn undo(&mut self, env: &Env<'_>, unmark: bool) {
        if unmark {
            for skb in &mut self.snd.out {
                skb.marks.lost = false;
            }
            self.rec.lost = 0;
        }
        if self.window.prior_ssthresh > 0 {
            self.window.cwnd = self.cc.undo(&self.window);
            if self.window.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.window.prior_ssthresh;
                self.ecn.queue_cwr = false;
            }
        }
        self.window.stamp = env.now;
        self.rec.undo_marker = None;
        self.rec.rack.advanced = true;
    }

    fn undo_by_dsack(&mut self, env: &Env<'_>) {
        self.rec.rack.persist = (self.rec.rack.persist + 1).min(16);
        self.undo(env, false);
    }

    /// Without SACK a late duplicate must not begin another episode at once.
    fn is_held_in_episode(&mut self) -> bool {
        let held = !self.terms.sack && self.snd.una == self.rec.high_seq;
        if held && !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        held
    }

    fn try_undo_recovery(&mut self, env: &Env<'_>) -> bool {
        if self.may_undo() {
            self.undo(env, false);
        } else if self.rec.rack.persist > 0 {
            self.rec.rack.persist -= 1;
        }
        if self.is_held_in_episode() {
            return true;
        }
        self.rec.ca = CaState::Open;
        self.rec.reneged = false;
        false
    }

    fn try_undo_partial(&mut self, env: &Env<'_>, prior_una: u32) -> bool {
        if self.rec.undo_marker.is_none() || !self.was_delayed() {
            return false;
        }
        self.note_reordering(prior_una);
        if self.rec.retrans > 0 {
            return true;
        }
        if !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        self.undo(env, true);
        self.try_keep_open();
        false
    }

    fn try_undo_loss(&mut self, env: &Env<'_>, spurious: bool) -> bool {
        if !spurious && !self.may_undo() {
            return false;
        }
        self.undo(env, true);
        self.rec.retransmits = 0;
        if self.is_held_in_episode() {
            return true;
        }
        if spurious || self.terms.sack {
            self.rec.ca = CaState::Open;
            self.rec.reneged = false;
        }
        true
    }
}

/// Detection.
impl Tcp {
    fn is_rack(&self, env: &Env<'_>) -> bool {
        self.terms.sack && env.sysctls.of("tcp_recovery") & 1 != 0
    }

    /// Marks a packet lost, or lost again.
    fn mark_lost(&mut self, index: usize) {
        let marks = &mut self.snd.out[index].marks;
        if marks.sacked {
            return;
        }
        if marks.lost {
            if marks.retrans {
                marks.retrans = false;
                self.rec.retrans -= 1;
                self.rec.lost_total += 1;
            }
        } else {
            marks.lost = true;
            self.rec.lost += 1;
            self.rec.lost_total += 1;
        }
    }

    fn identify_loss(&mut self, env: &Env<'_>, heard: &mut Heard) {
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
            self.rack_mark_lost(env);
            heard.lost_retrans |= before > self.rec.retrans;
        }
    }

    /// Duplicate ACKs without SACK stand for packets that left the network.
    fn add_duplicates(&mut self, env: &Env<'_>, heard: &Heard) {
        if heard.duplicates == 0 {
            return;
        }
        let before = self.rec.sacked;
        self.rec.sacked += heard.duplicates;
        self.check_duplicates(env, 0);
        self.rec.delivered += self.rec.sacked.saturating_sub(before);
    }

    fn limit_duplicates(&mut self) -> bool {
        let out = self.packets_out();
        let holes = self.rec.lost.max(1).min(out);
        if self.rec.sacked + holes > out {
            self.rec.sacked = out - holes;
            return true;
        }
        false
    }

    fn check_duplicates(&mut self, env: &Env<'_>, add: u32) {
        if self.limit_duplicates() {
            let most = env.sysctls.of("tcp_max_reordering") as u32;
            self.rec.reordering = (self.packets_out() + add).min(most);
            self.rec.reord_seen += 1;
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
        }
    }

    /// Data at `low` was delivered after data above it.
    pub fn note_reordering(&mut self, low: u32) {
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

    fn reorder_window(&self, env: &Env<'_>) -> Us {
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
    fn rack_wait(&self, env: &Env<'_>, skb: &Skb, window: Us) -> i64 {
        self.rec.rack.rtt as i64 + window as i64 - (env.now as i64 - skb.sent as i64)
    }

    /// Marks what was sent before what was delivered; returns how long to wait for the rest.
    fn rack_detect(&mut self, env: &Env<'_>) -> Us {
        let window = self.reorder_window(env);
        let (sent, end) = (self.rec.rack.sent, self.rec.rack.end);
        let mut wait = 0;
        for index in 0..self.snd.out.len() {
            let skb = self.snd.out[index];
            let known = skb.marks.lost && !skb.marks.retrans;
            if skb.marks.sacked || known || !is_sent_after(sent, end, skb.sent, skb.end) {
                continue;
            }
            let left = self.rack_wait(env, &skb, window);
            if left <= 0 {
                self.mark_lost(index);
            } else {
                wait = wait.max(left as Us);
            }
        }
        wait
    }

    fn rack_mark_lost(&mut self, env: &Env<'_>) {
        if !self.rec.rack.advanced {
            return;
        }
        self.rec.rack.advanced = false;
        let wait = self.rack_detect(env);
        if wait > 0 {
            self.arm(Wait::Reorder, env.now + wait.div_ceil(MS) * MS + 2 * MS);
        }
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

/// The transmit timer and tail loss probes (RFC 8985 section 7).
impl Tcp {
    /// How long until the oldest packet's time-out.
    fn until_timeout(&self, env: &Env<'_>) -> i64 {
        let sent = self.snd.out.front().map_or(env.now, |skb| skb.sent);
        (sent + self.rtt.rto) as i64 - env.now as i64
    }

    /// The retransmission timer begins anew, or stops where nothing is out.
    pub fn rearm_retransmission(&mut self, env: &Env<'_>) {
        if self.snd.out.is_empty() {
            if !self.waits_for(Wait::Probe) {
                self.timers.transmit = None;
            }
            return;
        }
        let mut rto = self.rtt.rto as i64;
        if self.waits_for(Wait::Reorder) || self.waits_for(Wait::TailLoss) {
            let left = self.until_timeout(env);
            if left > 0 {
                rto = left;
            } else {
                rto = 1000;
            }
        }
        self.arm(Wait::Retransmit, env.now + rto as Us);
    }

    /// After an ACK: a tail loss probe, or the time-out.
    pub fn set_transmit_timer(&mut self, env: &Env<'_>) {
        if !self.schedule_tail_loss_probe(env, true) {
            self.rearm_retransmission(env);
        }
    }

    /// Arms a probe after two round trips where it applies.
    pub fn schedule_tail_loss_probe(&mut self, env: &Env<'_>, advancing: bool) -> bool {
        let early = env.sysctls.of("tcp_early_retrans");
        let fit = self.rec.ca == CaState::Open || self.rec.ca == CaState::Cwr;
        if !(early == 3 || early == 4)
            || self.snd.out.is_empty()
            || !self.terms.sack
            || !fit
            || self.open.early
        {
            return false;
        }
        let mut wait = if self.rtt.srtt8 > 0 {
            let slack = if self.packets_out() == 1 { self.rto_min(env) } else { 2 * MS };
            ((self.rtt.srtt8 >> 2) + slack).div_ceil(MS) * MS
        } else {
            SECOND
        };
        let left = if advancing { self.rtt.rto as i64 } else { self.until_timeout(env) };
        if left > 0 {
            wait = wait.min(left as Us);
        }
        self.arm(Wait::TailLoss, env.now + wait);
        true
    }

    /// The probe's time: new data if there is, else the last packet again.
    pub fn on_tail_loss_timer(&mut self, env: &Env<'_>) {
        if self.rec.tlp_end.is_some() {
            self.rearm_retransmission(env);
            return;
        }
        self.rec.tlp_retrans = false;
        let mss = self.current_mss();
        if let Some(head) = self.snd.queue.front() {
            let first = if head.len() > mss { head.seq.wrapping_add(mss) } else { head.end };
            if !after(first, self.window_end()) {
                let before = self.packets_out();
                self.write_xmit(env, Push::Normal, Pass::Probe);
                if self.packets_out() > before {
                    self.rec.tlp_end = Some(self.snd.nxt);
                    self.timers.transmit = None;
                }
                self.rearm_retransmission(env);
                return;
            }
        }
        if self.snd.out.is_empty() {
            self.timers.transmit = None;
            return;
        }
        let last = self.snd.out.len() - 1;
        if self.send_copy(env, last) {
            self.rec.tlp_retrans = true;
            self.rec.tlp_end = Some(self.snd.nxt);
            self.timers.transmit = None;
        }
        self.rearm_retransmission(env);
    }

    /// Whether the probe mended a loss.
    pub fn on_tail_loss_ack(&mut self, env: &Env<'_>, ack: u32, heard: &Heard) {
        let Some(end) = self.rec.tlp_end else { return };
        if before(ack, end) {
            return;
        }
        if !self.rec.tlp_retrans || heard.dsack_of_probe {
            self.rec.tlp_end = None;
        } else if after(ack, end) {
            // The window falls as if the loss had been found otherwise.
            self.begin_reduction(env);
            self.rec.ca = CaState::Cwr;
            self.end_reduction(env);
            self.try_keep_open();
        } else if !(heard.advanced || heard.is_not_duplicate() || heard.sacked_data) {
            self.rec.tlp_end = None;
        }
    }

    /// Segments were too large for the path: all that is out leaves again, without a sign of congestion.
    pub fn resend_smaller(&mut self, env: &Env<'_>) {
        let mss = self.current_mss();
        let mut index = 0;
        let lost = self.rec.lost;
        while index < self.snd.out.len() {
            if self.snd.out[index].len() > mss {
                self.mark_lost(index);
            }
            index += 1;
        }
        if !self.terms.sack {
            self.limit_duplicates();
        }
        if self.rec.lost == lost {
            return;
        }
        if self.rec.ca != CaState::Loss {
            self.rec.high_seq = self.snd.nxt;
            self.window.ssthresh = self.current_ssthresh();
            self.window.prior_ssthresh = 0;
            self.rec.undo_marker = None;
            self.rec.ca = CaState::Loss;
        }
        self.retransmit_lost(env);
    }
}
