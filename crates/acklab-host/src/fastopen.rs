//! Fast open at a client (RFC 7413): cookies that are kept, data with the SYN, and what happens where the peer does
//! not take it.

use crate::calls::{Called, Stop};
use crate::errno;
use crate::host::{Host, with};
use crate::mib::Mib;
use crate::segment::{Place, Segment, TcpOption, flag};
use crate::settings::{Env, Us};
use crate::skb::Skb;
use crate::tcp::{Ask, CaState, Known, State, Tcp};
use crate::write::WriteFlags;

/// Clients may use it.
const CLIENT: i64 = 0x1;
/// Clients send data without a cookie.
const NO_COOKIE: i64 = 0x4;
/// Bytes that options of a SYN take at most.
const OPTIONS: u32 = 40;

impl Host {
    /// What a SYN to a peer carries; `None`: no data, for no cookie is known.
    fn ask(&self, index: usize, remote: Place, bytes: u32) -> (Ask, bool) {
        let known = self.fastopen_known.get(&remote.host).cloned().unwrap_or_default();
        let flags = self.sysctls.of("tcp_fastopen");
        let open = &self.sockets[index].fast;
        if flags & NO_COOKIE != 0 || open.no_cookie {
            return (Ask { option: None, bytes, mss: known.mss }, true);
        }
        if known.cookie.is_empty() {
            let option = Some((Vec::new(), known.experiment == 1));
            return (Ask { option, bytes: 0, mss: known.mss }, false);
        }
        let option = Some((known.cookie, known.experimental));
        (Ask { option, bytes, mss: known.mss }, true)
    }

    /// connect(2) of a socket with TCP_FASTOPEN_CONNECT: returns whether the SYN waits for the first write.
    pub(crate) fn defer_connect(&mut self, index: usize, local: Place, remote: Place) -> bool {
        if !self.sockets[index].fast.on_connect {
            return false;
        }
        let (ask, may_send) = self.ask(index, remote, 0);
        if may_send {
            self.sockets[index].fast.deferred = Some((local, remote));
            return true;
        }
        self.sockets[index].tcp.open.ask = Some(ask);
        false
    }

    /// sendto(2) with MSG_FASTOPEN, or the first write of a deferred connect: opens with up to `bytes` of data.
    /// Returns how many left with the SYN; `EINPROGRESS`: none.
    pub fn write_opening(
        &mut self,
        now: Us,
        fd: i32,
        ends: (Place, Place),
        bytes: u32,
        flags: WriteFlags<'_>,
    ) -> Called {
        let index = self.index(fd)?;
        let fail = |error| Err(Stop::Errno(error));
        if self.sysctls.of("tcp_fastopen") & CLIENT == 0 {
            return fail(errno::EOPNOTSUPP);
        }
        let socket = &self.sockets[index];
        if socket.connecting {
            return fail(errno::EALREADY);
        }
        if socket.tcp.state != State::Close || socket.was_connected {
            return fail(errno::EISCONN);
        }
        let (mut local, remote) = socket.fast.deferred.unwrap_or(ends);
        local = self.sockets[index].bound.unwrap_or(local);
        if local.port == 0 {
            local.port = self.own_port();
        }
        let (ask, may_send) = self.ask(index, remote, bytes);
        let isn = self.isn();
        with!(self, now, index, |socket, env| {
            socket.bound = Some(local);
            socket.connecting = true;
            socket.fast.deferred = None;
            socket.tcp.open.ask = Some(ask);
            if !may_send {
                socket.tcp.open.client_fail = 1;
            }
            socket.tcp.connect(&env, local, remote, isn);
        });
        let sent = self.sockets[index].tcp.open.syn_data;
        if sent == 0 {
            return fail(errno::EINPROGRESS);
        }
        if flags.zero_copy {
            let end = self.sockets[index].tcp.snd.write_seq;
            self.sockets[index].tcp.errors.begin_copyless(end);
        }
        Ok(i64::from(sent))
    }

    /// What a SYN-ACK told of the peer.
    pub(crate) fn learn(&mut self, index: usize) {
        let tcp = &mut self.sockets[index].tcp;
        if let Some(known) = tcp.open.learned.take() {
            let old = self.fastopen_known.entry(tcp.remote.host).or_default();
            if known.cookie.is_empty() {
                old.mss = if known.mss > 0 { known.mss } else { old.mss };
                old.experiment = known.experiment;
            } else {
                *old = known;
            }
        }
    }
}

impl Tcp {
    /// Puts the option and the data of fast open into our first SYN, whose packet is the last that is out.
    pub(crate) fn add_fast_open(&mut self, env: &Env<'_>, syn: &mut Segment) {
        let Some(ask) = self.open.ask.take() else { return };
        if let Some((cookie, experimental)) = ask.option {
            let option = TcpOption::FastOpen(cookie, experimental);
            let used: u32 = syn.options.iter().map(TcpOption::len).sum::<usize>() as u32;
            let padded = option.len().next_multiple_of(4);
            if used + padded as u32 > OPTIONS {
                return;
            }
            self.open.asked = Some(experimental);
            let padding = padded - option.len();
            syn.options.push(option);
            syn.options.extend((0..padding).map(|_| TcpOption::Nop));
        }
        let peer = if ask.mss > 0 { ask.mss } else { self.terms.advmss };
        self.terms.mss_clamp = self.terms.mss_clamp.min(peer);
        self.sync_mss(env);
        let own = if self.opt.user_mss > 0 { self.opt.user_mss } else { u32::MAX };
        let path = env.route.mtu().saturating_sub(env.route.ip_header + 20);
        let room = path.min(peer).min(own).saturating_sub(OPTIONS);
        let bytes = ask.bytes.min(room);
        if bytes == 0 {
            return;
        }
        let seq = self.snd.nxt;
        let overhead = crate::output::SKB_OVERHEAD;
        let end = seq.wrapping_add(bytes);
        let flags = flag::PSH;
        let rate = self.snd.out.back().map(|syn| syn.rate).unwrap_or_default();
        self.snd.out.push_back(Skb {
            seq,
            end,
            flags,
            sent: env.now,
            overhead,
            rate,
            ..Skb::default()
        });
        self.snd.memory += bytes + overhead;
        (self.snd.nxt, self.snd.write_seq, self.snd.pushed_seq) = (end, end, end);
        self.open.syn_data = bytes;
        self.tally(Mib::TCPOrigDataSent);
        self.count.data_segs_out += 1;
        self.count.bytes_sent += u64::from(bytes);
        syn.len = bytes;
    }

    /// A SYN-ACK for a SYN with fast open: its cookie is kept, data that it did not take leaves again. Returns
    /// whether data left, which acknowledges the SYN-ACK.
    pub(crate) fn take_fast_open_answer(&mut self, env: &Env<'_>, answer: &Segment) -> bool {
        if self.open.asked.is_none() && self.open.syn_data == 0 {
            return false;
        }
        let cookie = answer.options.iter().find_map(|option| match option {
            TcpOption::FastOpen(cookie, experimental) if self.open.asked.is_some() => {
                Some((cookie.clone(), *experimental))
            }
            _ => None,
        });
        let again = self.rec.total_retrans > 0;
        let asks_again = cookie.is_none() && self.open.syn_data == 0 && !again;
        let experiment = match self.open.asked {
            Some(experimental) if asks_again => 1 + u8::from(experimental),
            _ => 0,
        };
        let mss = answer.mss().map_or(536, u32::from);
        let (cookie, experimental) = cookie.unwrap_or_default();
        let valid = (4..=16).contains(&cookie.len()) && cookie.len() % 2 == 0;
        let cookie = if valid { cookie } else { Vec::new() };
        self.open.learned = Some(Known { cookie, mss, experiment, experimental });
        if self.snd.out.is_empty() {
            self.open.data_acked = self.open.syn_data > 0;
            if self.open.data_acked {
                self.tally(Mib::TCPFastOpenActive);
            }
            if self.open.data_acked && self.rec.delivered > 1 {
                // The SYN and its data count as one.
                self.rec.delivered -= 1;
            }
            self.take_syn_data(env, answer);
            return false;
        }
        self.open.client_fail = if again { 3 } else { 2 };
        self.tally(Mib::TCPFastOpenActiveFail);
        for index in 0..self.snd.out.len() {
            self.mark_lost(index);
        }
        self.rec.high_seq = self.snd.nxt;
        self.window.ssthresh = self.current_ssthresh();
        self.window.prior_ssthresh = 0;
        self.rec.undo_marker = None;
        self.rec.ca = CaState::Loss;
        self.retransmit_lost(env);
        true
    }
}
