//! Loss: what is taken for lost, how far the window falls, and whether it was an error.
//!
//! States of RFC 5681 and 6675 as Linux runs them. Detection is RACK-TLP (RFC 8985) with SACK, NewReno (RFC
//! 6582) without; the window falls by proportional rate reduction (RFC 6937, with the bound of its successor);
//! spurious reductions are found by DSACK (RFC 3708), timestamps (Eifel, RFC 3522) and F-RTO (RFC 5682).

use crate::mib::Mib;
use crate::model::Cut;
use crate::output::Push;
use crate::segment::{after, before};
use crate::settings::{Env, MS};
use crate::tcp::{CaState, Tcp, Wait};

/// What an ACK brought.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations about one ACK")]
pub struct Heard {
    /// It advanced.
    pub advanced: bool,
    /// By so many bytes.
    pub bytes: u32,
    /// Packets that were out before it.
    pub flight: u32,
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
    /// Packets that accurate ECN says were marked.
    pub marks: u32,
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
        match self.snd.out.front() {
            None => self.rec.sacked = 0,
            // Duplicates tell of what came back.
            Some(first) if self.came_back(first.end) => heard.duplicates = 0,
            Some(_) => {}
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
    pub(crate) fn end_episode(&mut self, env: &Env<'_>) -> bool {
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

    pub(crate) fn in_recovery(
        &mut self,
        env: &Env<'_>,
        prior_una: u32,
        heard: &mut Heard,
    ) -> Again {
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

    pub(crate) fn in_order_or_disorder(
        &mut self,
        env: &Env<'_>,
        heard: &mut Heard,
        again: Again,
    ) -> Again {
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

    pub(crate) fn enter_recovery(&mut self, env: &Env<'_>, ece: bool) {
        self.window.prior_ssthresh = 0;
        self.begin_undo();
        if !self.in_reduction() {
            if !ece {
                self.window.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction(env, Cut::Loss { ece });
        }
        self.rec.ca = CaState::Recovery;
        self.doubt_request();
        let sack = self.terms.sack;
        self.tally(if sack { Mib::TCPSackRecovery } else { Mib::TCPRenoRecovery });
    }

    pub(crate) fn begin_undo(&mut self) {
        self.rec.undo_marker = Some(self.snd.una);
        let probe = i32::from(self.rec.tlp_end.is_some() && self.rec.tlp_retrans);
        let retrans = self.rec.retrans as i32 + probe;
        self.rec.undo_retrans = if retrans == 0 { -1 } else { retrans };
    }

    pub(crate) fn begin_reduction(&mut self, env: &Env<'_>, cut: Cut) {
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_end = None;
        self.window.count = 0;
        self.window.prior_cwnd = self.window.cwnd;
        self.rec.prr_delivered = 0;
        self.rec.prr_out = 0;
        let flight = self.packets_out();
        self.window.ssthresh = self.cc.ssthresh(&self.window, env.now, flight, cut);
        self.ecn.queue_cwr = self.ecn.mode == crate::tcp::EcnMode::Classic;
    }

    /// The window falls for a mark (RFC 3168).
    pub fn enter_cwr(&mut self, env: &Env<'_>) {
        self.window.prior_ssthresh = 0;
        if self.rec.ca < CaState::Cwr {
            self.rec.undo_marker = None;
            self.begin_reduction(env, Cut::Mark);
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

    pub(crate) fn end_reduction(&mut self, env: &Env<'_>) {
        if !self.count.paces
            && self.window.ssthresh < crate::settings::INFINITE_SSTHRESH
            && (self.rec.ca == CaState::Cwr || self.rec.undo_marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
            self.window.stamp = env.now;
        }
    }

    pub(crate) fn is_any_retransmitted(&self) -> bool {
        self.rec.retrans > 0 || self.snd.out.front().is_some_and(|skb| skb.marks.ever_retrans)
    }

    pub(crate) fn try_keep_open(&mut self) {
        let disordered = self.rec.sacked + self.rec.lost > 0 || self.is_any_retransmitted();
        let state = if disordered { CaState::Disorder } else { CaState::Open };
        if self.rec.ca != state {
            self.rec.ca = state;
            self.rec.high_seq = self.snd.nxt;
        }
    }

    pub(crate) fn try_to_open(&mut self, env: &Env<'_>, heard: &Heard) {
        if !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        if heard.ece && self.cc.obeys_marks() {
            self.enter_cwr(env);
        }
        if self.rec.ca != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// A retransmission time-out.
    pub fn enter_loss(&mut self, env: &Env<'_>) {
        let is_new = self.rec.ca < CaState::Recovery;
        self.forget_returns();
        self.mark_all_lost(env);
        if self.rec.ca <= CaState::Disorder
            || !after(self.rec.high_seq, self.snd.una)
            || (self.rec.ca == CaState::Loss && self.rec.retransmits == 0)
        {
            self.window.prior_ssthresh = self.current_ssthresh();
            self.window.prior_cwnd = self.window.cwnd;
            let again = self.rec.retransmits > 0;
            let cut = Cut::Timeout { again };
            let flight = self.packets_out();
            self.window.ssthresh = self.cc.ssthresh(&self.window, env.now, flight, cut);
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
        self.doubt_request();
        self.rec.high_seq = self.snd.nxt;
        self.rec.tlp_end = None;
        self.ecn.queue_cwr = self.ecn.mode == crate::tcp::EcnMode::Classic;
        // RFC 5682 section 3.1, step 1.
        self.rec.frto = env.sysctls.is_on("tcp_frto")
            && (is_new || self.rec.retransmits > 0)
            && self.snd.mtu_probe == 0;
    }

    pub(crate) fn mark_all_lost(&mut self, env: &Env<'_>) {
        let reneged = self.snd.out.front().is_some_and(|skb| skb.marks.sacked);
        if reneged {
            self.rec.sacked = 0;
            self.rec.reneged = true;
            self.tally(Mib::TCPSACKReneging);
        } else if !self.terms.sack {
            self.rec.sacked = 0;
        }
        let timed = self.is_rack(env);
        // The oldest piece is lost whole, whenever it left.
        let more = self.snd.out.iter().skip(1).take_while(|skb| skb.joined).count();
        for index in 0..self.snd.out.len() {
            if reneged {
                self.snd.out[index].marks.sacked = false;
            } else if timed && index > more && self.rack_wait(env, &self.snd.out[index], 0) > 0 {
                // Sent too recently to be lost.
                continue;
            }
            self.mark_lost(index);
        }
    }

    pub(crate) fn in_loss(&mut self, env: &Env<'_>, heard: &mut Heard) -> Again {
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
        if self.state == crate::tcp::State::SynSent {
            return;
        }
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
    pub(crate) fn check_reneging(&mut self, env: &Env<'_>, heard: &mut Heard) -> bool {
        if !(heard.reneging && heard.advanced) {
            return false;
        }
        let delay = (self.rtt.srtt8 >> 4).max(10 * MS);
        self.arm(Wait::Retransmit, env.now + delay);
        heard.set_timer = false;
        true
    }
}
