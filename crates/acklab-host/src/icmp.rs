//! What ICMP says of a segment that left: its path is narrower (RFC 1191), or nothing arrives there (RFC 5461, RFC 6069).

use crate::datagram::PathError;
use crate::host::{Host, with};
use crate::mib::Mib;
use crate::segment::{Place, after, before};
use crate::settings::{Env, MS, Us};
use crate::tcp::{State, Tcp, poll};

impl Host {
    /// ICMP said that packets to `remote` must not be larger than `mtu`, quoting the segment at `seq`.
    pub fn fragmentation_needed(
        &mut self,
        now: Us,
        local: Place,
        remote: Place,
        seq: u32,
        mtu: u32,
    ) {
        let Some(index) = self.connection(local, remote) else { return };
        let tcp = &self.sockets[index].tcp;
        // DONT is IPv4's; INTERFACE and OMIT hear nothing of it.
        let v4 = self.route.ip_header == 20;
        let deaf = matches!((tcp.opt.pmtu_discover, v4), (4 | 5, _) | (0, true));
        if !tcp.is_out(seq) {
            self.mibs.count(Mib::OutOfWindowIcmps);
            return;
        }
        if deaf {
            return;
        }
        let floor = self.sysctls.of("min_pmtu") as u32;
        let floor = if self.route.ip_header == 40 { 1280 } else { floor };
        let mtu = if mtu < 68 { floor } else { mtu.max(floor) };
        if self.route.mtu_locked {
            return;
        }
        self.route.path_mtu = mtu;
        with!(self, now, index, |socket, env| {
            let tcp = &mut socket.tcp;
            // IPv6 looks at nothing where packets are small enough as they are.
            let v6 = env.route.ip_header == 40;
            let fits = v6 && tcp.mss_for(&env, mtu) >= tcp.snd.mss;
            if tcp.snd.pmtu > env.route.mtu() && !fits {
                tcp.sync_mss(&env);
                tcp.resend_smaller(&env);
            }
        });
    }

    /// ICMP said that the segment at `seq` from `local` to `remote` does not arrive.
    pub fn unreachable(
        &mut self,
        now: Us,
        (local, remote): (Place, Place),
        seq: u32,
        error: PathError,
    ) {
        let Some(index) = self.connection(local, remote) else {
            return self.forget_request((local, remote), seq, error);
        };
        if !self.sockets[index].tcp.is_out(seq) {
            self.mibs.count(Mib::OutOfWindowIcmps);
            return;
        }
        with!(self, now, index, |socket, env| socket.tcp.on_unreachable(&env, seq, error));
    }
}

impl Host {
    /// A SYN-ACK does not arrive: where network or host cannot be reached the request goes, and nobody is told; what else
    /// ICMP says is not heard.
    fn forget_request(&mut self, (local, remote): (Place, Place), seq: u32, error: PathError) {
        let Some(listener) = self.listener(local.port) else { return };
        let requests = &mut self.sockets[listener].requests;
        let known =
            |request: &crate::request::Request| !request.cookie && request.tcp.remote == remote;
        let Some(index) = requests.iter().position(known) else { return };
        if seq != requests[index].tcp.snd.isn {
            self.mibs.count(Mib::OutOfWindowIcmps);
            return;
        }
        let aborts = match (self.route.ip_header, error.kind) {
            (40, 1) => error.code == 0 || error.code == 3,
            (40, kind) => kind == 4,
            (_, 3) => error.code <= 1,
            (_, kind) => kind == 12,
        };
        if aborts {
            requests.remove(index);
            self.mibs.count(Mib::ListenDrops);
        }
    }
}

impl Tcp {
    /// Whether ICMP may quote `seq`: it is on its way, a SYN-ACK included that is not acknowledged.
    const fn is_out(&self, seq: u32) -> bool {
        let first = if self.open.early { self.snd.isn } else { self.snd.una };
        !before(seq, first) && !after(seq, self.snd.nxt)
    }

    /// The network says that the segment at `seq` cannot arrive (RFC 5461: soft once established; RFC 6069).
    fn on_unreachable(&mut self, env: &Env<'_>, seq: u32, path: PathError) {
        let PathError { errno: error, hard, .. } = path;
        if matches!(self.state, State::SynSent | State::SynRecv) {
            self.errors.push(path.entry(env.route));
            let opening = self.state == State::SynSent || !self.open.fast_child;
            if opening && (hard || self.opt.recverr || self.state == State::SynSent) {
                self.fail(error);
            } else {
                self.fate.soft_error = error;
            }
            return;
        }
        if seq == self.snd.una
            && self.rec.retransmits > 0
            && self.rtt.backoff > 0
            && !hard
            && self.waits_for(crate::tcp::Wait::Retransmit)
        {
            // One doubling of the time-out is taken back.
            self.rtt.backoff -= 1;
            let base = if self.rtt.srtt8 > 0 {
                ((self.rtt.srtt8 >> 3) + self.rtt.rttvar).div_ceil(MS) * MS
            } else {
                self.initial_rto()
            };
            self.rtt.rto = (base << self.rtt.backoff).min(self.rto_max(env));
            let sent = self.snd.out.front().map_or(env.now, |skb| skb.sent);
            self.arm(crate::tcp::Wait::Retransmit, (sent + self.rtt.rto).max(env.now + 1));
        }
        if self.opt.recverr {
            self.fate.error = error;
            self.wake(poll::ERR);
        } else {
            self.fate.soft_error = error;
        }
    }
}
