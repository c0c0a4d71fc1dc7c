//! What time brings: time-outs, probes, keep-alive, the end of states that wait.

use crate::errno;
use crate::mib::Mib;
use crate::segment::flag;
use crate::settings::{Env, MS, SECOND, Us};
use crate::tcp::{CaState, State, Tcp, Wait};

impl Tcp {
    /// Acts on every deadline that has come.
    pub fn on_time(&mut self, env: &Env<'_>) {
        let due = |at: Option<Us>| at.is_some_and(|at| at <= env.now);
        if due(self.timers.delack) {
            self.on_delayed_ack(env);
        }
        if due(self.timers.compressed) {
            self.timers.compressed = None;
            if self.ack.compressed > 0 {
                // The timer's ACK stands for one of those that it holds.
                self.ack.compressed -= 1;
                self.send_ack(env);
            }
        }
        if due(self.timers.pace) {
            self.timers.pace = None;
            if self.rec.lost > self.rec.retrans && self.in_flight() < self.window.cwnd {
                self.retransmit_lost(env);
            }
            self.push_more(env);
        }
        if due(self.timers.returned) {
            self.send_returned(env);
            self.push_more(env);
        }
        if let Some((wait, at)) = self.timers.transmit
            && at <= env.now
        {
            match wait {
                Wait::Reorder => self.on_reorder_timer(env),
                Wait::TailLoss => self.on_tail_loss_timer(env),
                Wait::Retransmit => {
                    self.timers.transmit = None;
                    self.on_retransmission_timer(env);
                }
                Wait::Probe => {
                    self.timers.transmit = None;
                    self.on_probe_timer(env);
                }
            }
        }
        if due(self.timers.keepalive) {
            self.timers.keepalive = None;
            self.on_keepalive(env);
        }
        if due(self.timers.time_wait) {
            self.timers.time_wait = None;
            self.state = State::Close;
            self.fate.gone = true;
        }
    }

    fn on_retransmission_timer(&mut self, env: &Env<'_>) {
        if self.snd.out.is_empty() {
            return;
        }
        if self.open.early {
            // Only the SYN-ACK leaves again before it is acknowledged.
            let at = env.now + self.rtt.rto;
            self.arm(Wait::Retransmit, at);
            return;
        }
        let opening = self.state == State::SynSent || self.state == State::SynRecv;
        if self.snd.wnd == 0 && !self.fate.orphan && !opening {
            // The peer closed its window over data in flight: it lives, as long as it answers.
            let silent = env.now.saturating_sub(self.rcv.heard);
            let limit =
                if self.opt.user_timeout > 0 { self.opt.user_timeout } else { 120 * SECOND };
            let stamp = self.rec.retrans_stamp.map_or(0, |s| env.tick().wrapping_sub(s));
            if Us::from(stamp) * MS > limit && silent > 2 * self.rto_max(env) {
                self.give_up();
                return;
            }
            self.enter_loss(env);
            self.retransmit(env, 0);
            self.detach(1);
            self.set_backed_off(env, opening);
            return;
        }
        self.tally(Mib::TCPTimeouts);
        if self.is_out_of_time(env) {
            return;
        }
        self.snd.paths += 1;
        self.rec.rehash += 1;
        self.tally(Mib::TimeoutRehash);
        self.tally_failure();
        self.enter_loss(env);
        if self.rec.retransmits == 0 {
            self.rec.rto_recoveries += 1;
        }
        self.rec.retransmits += 1;
        self.rec.total_rto += 1;
        if !self.retransmit(env, 0) {
            let at = env.now + 500 * MS;
            self.arm(Wait::Retransmit, at);
            return;
        }
        self.detach(1);
        self.set_backed_off(env, opening);
    }

    /// What a first time-out puts an end to.
    fn tally_failure(&mut self) {
        if self.rec.retransmits > 0 {
            return;
        }
        let sack = self.terms.sack;
        let mib = match self.rec.ca {
            CaState::Recovery if sack => Mib::TCPSackRecoveryFail,
            CaState::Recovery => Mib::TCPRenoRecoveryFail,
            CaState::Loss => Mib::TCPLossFailures,
            CaState::Disorder if sack => Mib::TCPSackFailures,
            CaState::Disorder => Mib::TCPRenoFailures,
            _ if self.rec.sacked == 0 => return,
            _ if sack => Mib::TCPSackFailures,
            _ => Mib::TCPRenoFailures,
        };
        self.tally(mib);
    }

    fn set_backed_off(&mut self, env: &Env<'_>, _opening: bool) {
        let linear = env.sysctls.of("tcp_syn_linear_timeouts") as u32;
        let thin = (self.opt.thin_linear || env.sysctls.is_on("tcp_thin_linear_timeouts"))
            && self.state == State::Established
            && self.packets_out() < 4
            && self.rec.retransmits <= 6;
        if thin {
            self.rtt.backoff = 0;
            let ceiling = self.rto_max(env);
            self.rtt.set_rto(ceiling);
        } else if self.state != State::SynSent || self.rec.total_rto > linear {
            let ceiling = self.rto_max(env);
            self.rtt.back_off(ceiling);
        }
        let wait = self.bound_rto_by_user(env);
        self.arm(Wait::Retransmit, env.now + wait);
    }

    /// TCP_USER_TIMEOUT cuts the last wait short.
    fn bound_rto_by_user(&self, env: &Env<'_>) -> Us {
        if self.opt.user_timeout == 0 {
            return self.rtt.rto;
        }
        let elapsed =
            self.rec.retrans_stamp.map_or(0, |s| Us::from(env.tick().wrapping_sub(s)) * MS);
        if elapsed >= self.opt.user_timeout {
            return MS;
        }
        self.rtt.rto.min(self.opt.user_timeout - elapsed)
    }

    /// The same for window probes.
    pub fn bound_by_user(&mut self, env: &Env<'_>, when: Us) -> Us {
        let Some(since) = self.rec.probes_since.filter(|_| self.opt.user_timeout > 0) else {
            return when;
        };
        let elapsed = env.now.saturating_sub(since);
        let left = self.opt.user_timeout.saturating_sub(elapsed).max(2 * MS);
        when.min(left)
    }

    fn give_up(&mut self) {
        let error = if self.fate.soft_error != 0 { self.fate.soft_error } else { errno::ETIMEDOUT };
        self.fail(error);
        self.tally(Mib::TCPAbortOnTimeout);
    }

    /// Whether retransmission has gone on for as long as it may; then the connection is over.
    fn is_out_of_time(&mut self, env: &Env<'_>) -> bool {
        let expired = if self.state == State::SynSent || self.state == State::SynRecv {
            let set = self.opt.syn_retries;
            let retries = if set > 0 { set } else { env.sysctls.of("tcp_syn_retries") as u32 };
            let linear = if self.state == State::SynSent {
                env.sysctls.of("tcp_syn_linear_timeouts") as u32
            } else {
                0
            };
            self.rec.retransmits >= retries + linear
                || (self.opt.user_timeout > 0
                    && self.is_timed_out(env, retries, self.opt.user_timeout))
        } else {
            if self.is_timed_out(env, env.sysctls.of("tcp_retries1") as u32, 0) {
                self.suspect_black_hole(env);
            }
            let mut retries = env.sysctls.of("tcp_retries2") as u32;
            if self.fate.orphan {
                let alive = self.rtt.rto < self.rto_max(env);
                retries = self.orphan_retries(env, alive);
            }
            self.is_timed_out(env, retries, self.opt.user_timeout)
        };
        if expired {
            self.give_up();
        }
        expired
    }

    fn orphan_retries(&self, env: &Env<'_>, alive: bool) -> u32 {
        let set = env.sysctls.of("tcp_orphan_retries") as u32;
        if self.fate.soft_error != 0 && !alive {
            return 0;
        }
        if set == 0 && alive { 8 } else { set }
    }

    /// Whether `retries` time-outs' time passed since the first retransmission, or `timeout` where that is set.
    fn is_timed_out(&self, env: &Env<'_>, retries: u32, timeout: Us) -> bool {
        if self.rec.retransmits == 0 {
            return false;
        }
        let Some(start) = self.rec.retrans_stamp else { return false };
        let limit = if timeout > 0 {
            timeout
        } else {
            let opening = self.state == State::SynSent || self.state == State::SynRecv;
            let base = if opening { self.initial_rto() } else { 200 * MS };
            let ceiling = self.rto_max(env);
            let threshold = (ceiling / base).max(1).ilog2();
            if retries <= threshold {
                ((2_u64 << retries) - 1) * base
            } else {
                ((2_u64 << threshold) - 1) * base + Us::from(retries - threshold) * ceiling
            }
        };
        Us::from(env.tick().wrapping_sub(start)) * MS >= limit
    }

    fn on_probe_timer(&mut self, env: &Env<'_>) {
        if !self.snd.out.is_empty() || self.snd.queue.is_empty() {
            self.rec.probes_out = 0;
            self.rec.probes_since = None;
            return;
        }
        let since = *self.rec.probes_since.get_or_insert(env.now);
        if self.opt.user_timeout > 0
            && env.now.saturating_sub(since) >= self.opt.user_timeout
            && self.rec.probes_out > 0
        {
            self.give_up();
            return;
        }
        let mut most = env.sysctls.of("tcp_retries2") as u32;
        if self.fate.orphan {
            let wait = self.probe_base(env) << self.rtt.backoff.min(30);
            let alive = wait < self.rto_max(env);
            most = self.orphan_retries(env, alive);
            if !alive && self.rtt.backoff >= most {
                self.give_up();
                return;
            }
        }
        if self.rec.probes_out >= most {
            self.give_up();
            return;
        }
        self.wake_peer(env, Mib::TCPWinProbe);
        if !self.snd.out.is_empty() || self.snd.queue.is_empty() {
            self.rec.probes_out = 0;
            self.rec.probes_since = None;
            self.rtt.backoff = 0;
            return;
        }
        self.rec.probes_out += 1;
        if i64::from(self.rtt.backoff) < env.sysctls.of("tcp_retries2") {
            self.rtt.backoff += 1;
        }
        let base = self.probe_base(env);
        let when = (base << self.rtt.backoff.min(30)).min(self.rto_max(env));
        let when = self.bound_by_user(env, when);
        self.arm(Wait::Probe, env.now + when);
    }

    /// TCP_KEEPIDLE or the system's.
    pub fn keep_idle(&self, env: &Env<'_>) -> Us {
        let set = self.opt.keep_idle;
        if set > 0 { set } else { env.sysctls.of("tcp_keepalive_time") as Us * SECOND }
    }

    fn on_keepalive(&mut self, env: &Env<'_>) {
        if self.state == State::FinWait2 && self.fate.orphan {
            if self.opt.linger2.is_none_or(|set| set >= 0) {
                let left = self.fin_time(env).saturating_sub(60 * SECOND);
                if left > 0 {
                    self.enter_time_wait(env, left);
                    return;
                }
            }
            self.send_reset(env);
            self.done();
            return;
        }
        if !self.opt.keepalive || matches!(self.state, State::Close | State::SynSent) {
            return;
        }
        let idle = self.keep_idle(env);
        if !self.snd.out.is_empty() || !self.snd.queue.is_empty() {
            self.timers.keepalive = Some(env.now + idle);
            return;
        }
        let elapsed = env.now.saturating_sub(self.rcv.last_data.max(self.rcv.heard));
        if elapsed < idle {
            self.timers.keepalive = Some(env.now + (idle - elapsed));
            return;
        }
        let count = if self.opt.keep_count > 0 {
            self.opt.keep_count
        } else {
            env.sysctls.of("tcp_keepalive_probes") as u32
        };
        let over = if self.opt.user_timeout > 0 {
            elapsed >= self.opt.user_timeout && self.rec.probes_out > 0
        } else {
            self.rec.probes_out >= count
        };
        if over {
            self.send_reset(env);
            self.give_up();
            return;
        }
        self.wake_peer(env, Mib::TCPKeepAlive);
        self.rec.probes_out += 1;
        let interval = if self.opt.keep_interval > 0 {
            self.opt.keep_interval
        } else {
            env.sysctls.of("tcp_keepalive_intvl") as Us * SECOND
        };
        self.timers.keepalive = Some(env.now + interval);
    }

    /// How long FIN-WAIT-2 lasts without a descriptor.
    pub fn fin_time(&self, env: &Env<'_>) -> Us {
        let set = match self.opt.linger2 {
            Some(seconds) if seconds > 0 => seconds as Us * SECOND,
            _ => env.sysctls.of("tcp_fin_timeout") as Us * SECOND,
        };
        // At least 3.5 time-outs.
        set.max((self.rtt.rto << 2) - (self.rtt.rto >> 1))
    }

    /// Time busy, limited by the peer's window (1) or by the send buffer (2).
    pub fn start_chrono(&mut self, env: &Env<'_>, kind: usize) {
        match self.count.chrono_runs {
            Some((running, _)) if running >= kind => {}
            _ => {
                self.switch_chrono(env, Some(kind));
            }
        }
    }

    fn switch_chrono(&mut self, env: &Env<'_>, next: Option<usize>) {
        if let Some((running, since)) = self.count.chrono_runs.take() {
            self.count.chrono[running] += env.now.saturating_sub(since);
        }
        self.count.chrono_runs = next.map(|kind| (kind, env.now));
    }

    /// That limit is gone; something may still be out.
    pub fn stop_chrono(&mut self, env: &Env<'_>, kind: usize) {
        if self.snd.out.is_empty() && self.snd.queue.is_empty() {
            self.switch_chrono(env, None);
        } else if self.count.chrono_runs.is_some_and(|(running, _)| running == kind) {
            self.switch_chrono(env, Some(0));
        }
    }

    /// Data is out: the connection is busy.
    pub fn run_busy(&mut self, env: &Env<'_>) {
        if self.count.chrono_runs.is_none() {
            self.switch_chrono(env, Some(0));
        }
    }

    /// Whether the peer's window is the limit from now on.
    pub fn note_limit(&mut self, env: &Env<'_>, by_window: bool) {
        if by_window {
            self.start_chrono(env, 1);
        } else {
            self.stop_chrono(env, 1);
        }
    }

    /// Whether our FIN is among what is out or waits.
    pub fn has_fin(&self) -> bool {
        let fin = |skb: Option<&crate::skb::Skb>| skb.is_some_and(|s| s.flags & flag::FIN != 0);
        fin(self.snd.out.back()) || fin(self.snd.queue.back())
    }
}
