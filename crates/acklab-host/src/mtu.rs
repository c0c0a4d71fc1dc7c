//! The path's MTU: probes of larger packets (RFC 4821), black holes, and what ICMP tells (RFC 1191).

use crate::mib::Mib;
use crate::segment::{after, flag};
use crate::settings::{Env, SECOND};
use crate::skb::Skb;
use crate::tcp::{CaState, Tcp};

impl Tcp {
    /// Where the search begins.
    pub fn init_mtu_search(&mut self, env: &Env<'_>) {
        let headers = env.route.ip_header + 20;
        self.snd.mtu_high = self.terms.mss_clamp + headers;
        self.snd.mtu_low = env.sysctls.of("tcp_base_mss") as u32 + headers;
        self.snd.mtu_probe = 0;
        self.snd.mtu_probing = env.sysctls.of("tcp_mtu_probing") > 1;
        if self.snd.mtu_probing {
            self.snd.mtu_probed_at = env.now;
        }
    }

    /// Sends a larger packet where the search is on; returns whether one left.
    pub fn probe_mtu(&mut self, env: &Env<'_>) -> bool {
        if !self.snd.mtu_probing
            || self.snd.mtu_probe > 0
            || self.rec.ca != CaState::Open
            || self.window.cwnd < 11
            || !self.rcv.sacks.is_empty()
            || self.rcv.dsack.is_some()
        {
            return false;
        }
        let size = self.mss_for(env, (self.snd.mtu_high + self.snd.mtu_low) >> 1);
        let needed = size + (self.rec.reordering + 1) * self.snd.mss;
        let interval = self.snd.mtu_high.saturating_sub(self.snd.mtu_low);
        if size > self.mss_for(env, self.snd.mtu_high)
            || i64::from(interval) < env.sysctls.of("tcp_probe_threshold")
        {
            self.check_reprobe(env);
            return false;
        }
        let unsent = self.snd.write_seq.wrapping_sub(self.snd.nxt);
        if unsent < needed
            || self.snd.wnd < needed
            || after(self.snd.nxt.wrapping_add(needed), self.window_end())
            || self.in_flight() + 2 > self.window.cwnd
            || self.snd.queue.iter().any(|skb| skb.eor)
        {
            return false;
        }
        let Some(piece) = self.take_unsent(size) else { return false };
        self.window.cwnd -= 1;
        self.snd.mtu_probe = size + env.route.ip_header + 20 + self.terms.header - 20;
        self.snd.mtu_probe_seq = (piece.seq, piece.end);
        self.send_probe_packet(env, piece);
        true
    }

    /// The first `size` bytes of what waits, as one piece.
    fn take_unsent(&mut self, size: u32) -> Option<Skb> {
        let mut piece = self.snd.queue.pop_front()?;
        while piece.len() < size {
            let next = self.snd.queue.pop_front()?;
            piece.end = next.end;
            piece.flags = (piece.flags | next.flags) & !flag::PSH | next.flags & flag::PSH;
            piece.overhead += next.overhead;
            piece.wishes = piece.wishes.or(next.wishes);
        }
        if piece.len() > size {
            let rest = piece.split(size);
            self.snd.queue.push_front(rest);
        }
        Some(piece)
    }

    /// A probe arrived: the search goes on above it.
    pub fn on_mtu_probe_acked(&mut self, env: &Env<'_>) {
        if self.snd.mtu_probe == 0 || after(self.snd.mtu_probe_seq.1, self.snd.una) {
            return;
        }
        let headers = env.route.ip_header + self.terms.header;
        let now = self.snd.mss + headers;
        let cwnd = u64::from(self.window.cwnd) * u64::from(now) / u64::from(self.snd.mtu_probe);
        self.window.cwnd = (cwnd as u32).max(1);
        self.window.count = 0;
        self.window.stamp = env.now;
        self.window.ssthresh = self.current_ssthresh();
        self.snd.mtu_low = self.snd.mtu_probe;
        self.snd.mtu_probe = 0;
        self.sync_mss(env);
        self.tally(Mib::TCPMTUPSuccess);
    }

    /// Whether what is lost is the probe.
    pub fn is_mtu_probe_lost(&self) -> bool {
        self.snd.mtu_probe > 0 && self.snd.una == self.snd.mtu_probe_seq.0
    }

    /// The probe was too large.
    pub fn on_mtu_probe_lost(&mut self, env: &Env<'_>) {
        self.snd.mtu_high = self.snd.mtu_probe - 1;
        self.tally(Mib::TCPMTUPFail);
        self.snd.mtu_probe = 0;
        self.resend_smaller(env);
    }

    fn check_reprobe(&mut self, env: &Env<'_>) {
        let interval = env.sysctls.of("tcp_probe_interval") as u64 * SECOND;
        if env.now.saturating_sub(self.snd.mtu_probed_at) >= interval {
            self.snd.mtu_probe = 0;
            self.snd.mtu_high = self.terms.mss_clamp + env.route.ip_header + 20;
            self.snd.mtu_low = self.snd.mss + env.route.ip_header + 20;
            self.snd.mtu_probed_at = env.now;
        }
    }

    /// Nothing comes through: the packets may be too large.
    pub fn suspect_black_hole(&mut self, env: &Env<'_>) {
        if !env.sysctls.is_on("tcp_mtu_probing") {
            return;
        }
        let headers = env.route.ip_header + 20;
        if self.snd.mtu_probing {
            let mss = (self.snd.mtu_low - headers) >> 1;
            let mss = mss.min(env.sysctls.of("tcp_base_mss") as u32);
            let floor = (env.sysctls.of("tcp_mtu_probe_floor").max(48)) as u32;
            let mss = mss.max(floor).max(env.sysctls.of("tcp_min_snd_mss") as u32);
            self.snd.mtu_low = mss + headers;
        } else {
            self.snd.mtu_probing = true;
            self.snd.mtu_probed_at = env.now;
        }
        self.sync_mss(env);
    }
}
