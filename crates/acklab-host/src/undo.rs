//! Reductions that were needless, found by DSACK, timestamps (Eifel) and F-RTO, and taken back.

use crate::mib::Mib;
use crate::segment::before;
use crate::settings::Env;
use crate::tcp::{CaState, State, Tcp};

/// Undoing.
impl Tcp {
    /// Whether an ACK shows that the original arrived before its retransmission could.
    pub(crate) fn was_delayed(&self) -> bool {
        match self.rec.retrans_stamp {
            Some(stamp) => {
                self.terms.stamps && self.rcv.echo.is_some_and(|echo| before(echo, stamp))
            }
            // An ACK of our SYN forgets the stamp, also that of a retransmission.
            None if self.state == State::SynSent => false,
            None => self.terms.sack || before(self.snd.una, self.rec.high_seq),
        }
    }

    pub(crate) fn may_undo(&self) -> bool {
        self.rec.undo_marker.is_some() && (self.rec.undo_retrans == 0 || self.was_delayed())
    }

    pub(crate) fn undo(&mut self, env: &Env<'_>, unmark: bool) {
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

    pub(crate) fn undo_by_dsack(&mut self, env: &Env<'_>) {
        self.rec.rack.persist = (self.rec.rack.persist + 1).min(16);
        self.undo(env, false);
        self.tally(Mib::TCPDSACKUndo);
    }

    /// Without SACK a late duplicate must not begin another episode at once.
    pub(crate) fn is_held_in_episode(&mut self) -> bool {
        let held = !self.terms.sack && self.snd.una == self.rec.high_seq;
        if held && !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        held
    }

    pub(crate) fn try_undo_recovery(&mut self, env: &Env<'_>) -> bool {
        if self.may_undo() {
            self.undo(env, false);
            let timed_out = self.rec.ca == CaState::Loss;
            self.tally(if timed_out { Mib::TCPLossUndo } else { Mib::TCPFullUndo });
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

    pub(crate) fn try_undo_partial(&mut self, env: &Env<'_>, prior_una: u32) -> bool {
        if self.rec.undo_marker.is_none() || !self.was_delayed() {
            return false;
        }
        self.note_reordering(prior_una, Mib::TCPTSReorder);
        if self.rec.retrans > 0 {
            return true;
        }
        if !self.is_any_retransmitted() {
            self.rec.retrans_stamp = None;
        }
        self.undo(env, true);
        self.tally(Mib::TCPPartialUndo);
        self.try_keep_open();
        false
    }

    pub(crate) fn try_undo_loss(&mut self, env: &Env<'_>, spurious: bool) -> bool {
        if !spurious && !self.may_undo() {
            return false;
        }
        self.undo(env, true);
        self.tally(Mib::TCPLossUndo);
        if spurious {
            self.tally(Mib::TCPSpuriousRTOs);
        }
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
