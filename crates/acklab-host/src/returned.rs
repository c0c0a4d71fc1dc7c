//! Packets that a switch sent back in place of dropping them (E-DCTCP), which Linux does not know: each goes again after a
//! wait that the congestion control names, and is not lost as long as it waits.
//!
//! While it waits a packet is not in flight. Its next departure is no retransmission to recovery, which did not miss it.

use crate::segment::after;
use crate::settings::{Env, Us};
use crate::skb::Return;
use crate::tcp::{Tcp, Wait};

impl Tcp {
    /// A packet of ours from `seq` to `end` came back. What carries no data, and what was cut anew since, is left to the
    /// timers.
    pub fn take_back(&mut self, env: &Env<'_>, seq: u32, end: u32) {
        let Some(index) = self.snd.out.iter().position(|skb| skb.end == end) else { return };
        let skb = &mut self.snd.out[index];
        if skb.seq != seq || skb.is_empty() || skb.marks.sacked || self.cc.model().is_none() {
            return;
        }
        // RACK has nothing to say of it before it leaves again.
        skb.marks.judged = true;
        if std::mem::take(&mut skb.marks.retrans) {
            self.rec.retrans -= 1;
        }
        let list = &mut self.rec.returned;
        let known = list.iter().position(|one| one.end == end);
        let at = known.unwrap_or_else(|| {
            list.push(Return { end, times: 0, due: None });
            list.len() - 1
        });
        if list[at].due.is_some() {
            return;
        }
        list[at].times += 1;
        let (times, flight, srtt) = (list[at].times, self.packets_out(), self.rtt.srtt());
        let wait =
            self.cc.model().map_or(0, |model| model.on_returned(env.now, flight, times, srtt));
        self.rec.returned[at].due = Some(env.now + wait);
        self.settle_returns();
        if !self.in_reduction() {
            self.follow_model();
        }
        self.arm(Wait::Retransmit, env.now + wait + self.rtt.rto);
    }

    /// What came back goes again, where its wait is over; the congestion window does not ask.
    pub(crate) fn send_returned(&mut self, env: &Env<'_>) {
        loop {
            let due = |one: &&mut Return| one.due.is_some_and(|at| at <= env.now);
            let Some(one) = self.rec.returned.iter_mut().find(due) else { break };
            one.due = None;
            let end = one.end;
            let Some(index) = self.snd.out.iter().position(|skb| skb.end == end) else { continue };
            let left = if self.snd.out[index].marks.lost {
                self.retransmit(env, index)
            } else {
                self.send_copy(env, index)
            };
            if left {
                self.rearm_retransmission(env);
            }
        }
        self.settle_returns();
    }

    /// Of what came back, what arrived or was cut anew waits no longer.
    pub(crate) fn settle_returns(&mut self) {
        let (una, out) = (self.snd.una, &self.snd.out);
        let (mut waiting, mut next) = (0, None);
        self.rec.returned.retain_mut(|one| {
            let skb = out.iter().find(|skb| skb.end == one.end);
            let Some(skb) = skb.filter(|_| after(one.end, una)) else { return false };
            if skb.marks.sacked {
                one.due = None;
            }
            if let Some(at) = one.due {
                waiting += u32::from(!skb.marks.lost);
                next = Some(next.map_or(at, |first: Us| first.min(at)));
            }
            true
        });
        self.rec.waiting = waiting;
        self.timers.returned = next;
    }

    /// A time-out sends everything again.
    pub(crate) fn forget_returns(&mut self) {
        self.rec.returned.clear();
        self.settle_returns();
    }

    /// Whether the packet up to `end` came back, and so is not missed.
    pub(crate) fn came_back(&self, end: u32) -> bool {
        self.rec.returned.iter().any(|one| one.end == end)
    }

    /// Whether it waits.
    pub(crate) fn waits_after_return(&self, end: u32) -> bool {
        self.rec.returned.iter().any(|one| one.end == end && one.due.is_some())
    }
}
