//! The transmit timer, tail loss probes (RFC 8985 section 7), and packets that were too large.

use crate::loss::Heard;
use crate::mib::Mib;
use crate::model::Cut;
use crate::output::{Pass, Push};
use crate::segment::{after, before};
use crate::settings::{Env, MS, SECOND, Us};
use crate::tcp::{CaState, State, Tcp, Wait};

/// The transmit timer and tail loss probes (RFC 8985 section 7).
impl Tcp {
    /// How long until the oldest packet's time-out.
    pub(crate) fn until_timeout(&self, env: &Env<'_>) -> i64 {
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
        self.arm(Wait::Retransmit, env.now + rto as Us + self.pacing_delay(env));
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
            || self.rec.waiting > 0
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
        self.arm(Wait::TailLoss, env.now + wait + self.pacing_delay(env));
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
                self.write_xmit(env, Push::Off, Pass::Probe);
                if self.packets_out() > before {
                    self.rec.tlp_end = Some(self.snd.nxt);
                    self.timers.transmit = None;
                    self.tally(Mib::TCPLossProbes);
                }
                self.rearm_retransmission(env);
                return;
            }
        }
        if self.snd.out.is_empty() {
            self.timers.transmit = None;
            return;
        }
        let last = self.cut_last();
        if self.send_copy(env, last) {
            self.rec.tlp_retrans = true;
            self.tally(Mib::TCPLossProbes);
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
            self.tally(Mib::TCPLossProbeRecovery);
            // The window falls as if the loss had been found otherwise.
            self.begin_reduction(env, Cut::Loss { ece: false });
            self.rec.ca = CaState::Cwr;
            self.end_reduction(env);
            self.try_keep_open();
        } else if !(heard.advanced || heard.is_not_duplicate() || heard.sacked_data) {
            self.rec.tlp_end = None;
        }
    }

    /// Segments were too large for the path: all that is out leaves again, without a sign of congestion.
    pub fn resend_smaller(&mut self, env: &Env<'_>) {
        if self.state == State::SynSent {
            if self.open.syn_data > 0 {
                // Of a SYN with data it is the whole that was too large.
                self.terms.advmss = self.own_mss(env);
                self.retransmit(env, 0);
                self.tally(Mib::TCPSlowStartRetrans);
            }
            return;
        }
        let mss = self.current_mss();
        let mut index = 0;
        let mut too_large = false;
        while let Some(skb) = self.snd.out.get(index) {
            // A piece of several packets is lost as a whole.
            too_large = skb.len() > mss || (too_large && skb.joined);
            if too_large {
                self.mark_lost(index);
            }
            index += 1;
        }
        if !self.terms.sack {
            self.limit_duplicates();
        }
        if self.rec.lost == 0 {
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
