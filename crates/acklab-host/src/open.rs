//! How connections begin: SYNs, their answers, and what both ends agree on.

use crate::accurate;
use crate::cc::Congestion;
use crate::input::Answer;
use crate::mib::Mib;
use crate::receive::QUICK;
use crate::segment::{Place, Segment, TcpOption, after, before, flag};
use crate::settings::{Env, MS};
use crate::skb::{RateStamp, Skb};
use crate::tcp::{CaState, EcnMode, State, Tcp, Wait, poll};
use crate::window::MSS_DEFAULT;

/// Payload of memory at the start: half.
const RATIO: u32 = 128;

/// The window of a SYN, the largest window and its scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstWindow {
    pub(crate) wnd: u32,
    pub(crate) clamp: u32,
    pub(crate) scale: u8,
}

impl Tcp {
    /// A socket's connection before anything happened.
    pub fn fresh(env: &Env<'_>) -> Self {
        let cc = Congestion::named(env.sysctls.congestion_control()).unwrap_or_default();
        let mut tcp = Self { rtt: crate::rtt::Rtt::new(), cc, ..Self::default() };
        tcp.rec.reordering = env.sysctls.of("tcp_reordering") as u32;
        tcp.rcv.buffer = env.sysctls.nth("tcp_rmem", 1) as u32;
        tcp.rcv.ratio = RATIO;
        tcp.opt.sndbuf = env.sysctls.nth("tcp_wmem", 1) as u32;
        tcp.snd.mss = 536;
        tcp.terms.mss_clamp = 1 << 16;
        tcp.terms.header = 20;
        tcp.window.clamp = u32::MAX;
        // Nothing is known of the path before the first ACK.
        tcp.count.app_limited = u32::MAX;
        tcp.count.rate_app_limited = true;
        tcp.ack.rcv_mss = 536;
        tcp
    }

    /// What to announce in a SYN's window field, and how it will be scaled.
    pub(crate) fn first_window(&self, env: &Env<'_>, mss: u32, scaling: bool) -> FirstWindow {
        let mut clamp = if self.opt.window_clamp > 0 {
            self.opt.window_clamp
        } else if env.route.window > 0 {
            env.route.window
        } else {
            65_535 << 14
        };
        if self.opt.rcvbuf_locked {
            clamp = clamp.min(self.full_space()).max(1);
        }
        let mut space = self.full_space().min(clamp);
        if space > mss && mss > 0 {
            space = space / mss * mss;
        }
        // A SYN shows 65535 of it at most (Linux 6.11 and later).
        let mut wnd = space;
        if env.sysctls.is_on("tcp_workaround_signed_windows") {
            wnd = wnd.min(32_767);
        }
        if env.route.initrwnd > 0 {
            wnd = wnd.min(env.route.initrwnd.saturating_mul(mss));
        }
        let mut scale = 0;
        if scaling {
            let most = (env.sysctls.nth("tcp_rmem", 2)).max(env.sysctls.of("rmem_max")) as u32;
            let top = space.max(most).min(clamp);
            scale = top.max(1).ilog2().saturating_sub(15).min(14) as u8;
        }
        FirstWindow { wnd, clamp: clamp.min(65_535 << scale), scale }
    }

    /// What we announce as MSS.
    pub(crate) fn own_mss(&self, env: &Env<'_>) -> u32 {
        let advmss = env.route.advmss(env.sysctls.of("min_adv_mss") as u32);
        if self.opt.user_mss > 0 { advmss.min(self.opt.user_mss) } else { advmss }
    }

    /// Opens towards `remote`.
    pub fn connect(&mut self, env: &Env<'_>, local: Place, remote: Place, isn: u32) {
        (self.local, self.remote) = (local, remote);
        self.state = State::SynSent;
        if let Some(control) = env.route.congestion {
            self.cc = Congestion::named(control).unwrap_or_default();
        }
        let stamps = env.sysctls.is_on("tcp_timestamps");
        self.terms.stamps = stamps;
        self.terms.header = if stamps { 32 } else { 20 };
        self.terms.advmss = self.own_mss(env);
        // RFC 9293 section 3.7.1: as long as the peer's is not known.
        self.terms.mss_clamp = if self.opt.user_mss > 0 { self.opt.user_mss } else { MSS_DEFAULT };
        self.snd.isn = isn;
        (self.snd.una, self.snd.nxt, self.snd.write_seq) = (isn, isn, isn);
        (self.snd.urgent, self.snd.small_end, self.snd.pushed_seq) = (isn, isn, isn);
        self.snd.max_window = 0;
        self.init_mtu_search(env);
        self.sync_mss(env);
        // Before a window is chosen.
        self.rcv.wnd = 0;
        self.init_rcv_mss();
        let mss = self.terms.advmss;
        let scaling = env.sysctls.is_on("tcp_window_scaling");
        let first = self.first_window(env, mss, scaling);
        (self.rcv.wnd, self.rcv.clamp) = (first.wnd, first.clamp);
        self.rcv.ssthresh = first.wnd;
        self.terms.receive_scale = first.scale;
        self.terms.scaling = scaling;
        self.open.offered_scale = scaling.then_some(first.scale);
        self.rtt.rto = self.initial_rto();
        self.rec.retrans_stamp = None;
        self.rec.retransmits = 0;
        self.window.cwnd = 10;
        let asks = env.sysctls.of("tcp_ecn");
        (self.open.syn_flags, self.ecn.mode) = match asks {
            3 => (accurate::ACE, EcnMode::Asked),
            1 | 4 => (flag::ECE | flag::CWR, EcnMode::Classic),
            _ if env.route.ecn || self.cc.is_dctcp() => (flag::ECE | flag::CWR, EcnMode::Classic),
            _ => (0, EcnMode::Off),
        };
        self.ecn.accurate.send_syn(self.opt.tos);
        self.snd.nxt = isn.wrapping_add(1);
        self.snd.write_seq = self.snd.nxt;
        self.snd.pushed_seq = self.snd.nxt;
        self.open.sent = env.now;
        (self.count.first_sent, self.count.delivered_at) = (env.now, env.now);
        let rate = RateStamp {
            delivered_at: env.now,
            first_sent: env.now,
            app_limited: true,
            ..RateStamp::default()
        };
        let (seq, end) = (isn, self.snd.nxt);
        let syn = Skb { seq, end, flags: flag::SYN, sent: env.now, rate, ..Skb::default() };
        self.snd.out.push_back(syn);
        let mut segment = self.syn(env);
        self.add_fast_open(env, &mut segment);
        self.count.segs_out += 1;
        self.tally(Mib::ActiveOpens);
        self.tally(Mib::OutSegs);
        self.wire.push(segment);
        self.arm(Wait::Retransmit, env.now + self.rtt.rto);
    }

    /// Our SYN, or SYN-ACK where SYNs crossed.
    fn syn(&mut self, env: &Env<'_>) -> Segment {
        let crossed = self.state == State::SynRecv;
        let mut options = vec![TcpOption::Mss(self.own_mss(env) as u16)];
        // Where SYNs crossed the offer is repeated whole, whatever the peer's SYN left of it.
        let echo = self.rcv.recent.map_or(0, |(value, _)| value);
        add_syn_options(
            &mut options,
            env.sysctls.is_on("tcp_timestamps").then(|| (env.tick(), echo)),
            env.sysctls.is_on("tcp_sack"),
            self.open.offered_scale,
        );
        self.announce_requests(&mut options, false);
        let window = self.rcv.wnd.min(65_535) as u16;
        let ack = if crossed { flag::ACK } else { 0 };
        let ecn = match self.ecn.mode {
            _ if !crossed => self.open.syn_flags,
            EcnMode::Classic => flag::ECE,
            EcnMode::Accurate => self.ecn.accurate.reflection(),
            EcnMode::Off | EcnMode::Asked => 0,
        };
        Segment {
            src: self.local,
            dst: self.remote,
            seq: self.snd.isn,
            ack: if crossed { self.rcv.nxt } else { 0 },
            flags: flag::SYN | ack | ecn,
            window,
            options,
            dscp: self.opt.tos >> 2,
            flow_label: self.flow_label(env),
            ttl: self.opt.ttl,
            ..Segment::default()
        }
    }

    /// The SYN leaves again; after the first time without ECN, which may be why it was lost.
    pub fn resend_syn(&mut self, env: &Env<'_>) {
        let again = self.ecn.mode == EcnMode::Asked && self.rec.retransmits <= 1;
        if env.sysctls.is_on("tcp_ecn_fallback") && self.state == State::SynSent && !again {
            // RFC 3168 section 6.1.1.1; accurate ECN is offered twice (RFC 9768 section 3.1.4.1).
            self.open.syn_flags = 0;
        }
        let segment = self.syn(env);
        self.count.segs_out += 1;
        self.wire.push(segment);
    }

    /// A segment for a connection whose SYN is out.
    pub fn take_in_syn_sent(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        let acks = segment.has(flag::ACK);
        if acks {
            if !after(segment.ack, self.snd.una) || after(segment.ack, self.snd.nxt) {
                if self.rec.retransmits == 0 {
                    // The peer has an old connection, which our RST ends: the SYN goes again at once.
                    self.arm(Wait::Retransmit, env.now + 2 * MS);
                }
                return if segment.has(flag::RST) { Answer::None } else { Answer::Reset };
            }
            if let Some((_, echo)) = segment.stamp().filter(|_| self.terms.stamps)
                && echo != 0
            {
                // Of the first SYN or of one that was sent again.
                let first = (self.open.sent / MS) as u32;
                if before(echo, first) || after(echo, env.tick()) {
                    self.tally(Mib::PAWSActive);
                    return if segment.has(flag::RST) { Answer::None } else { Answer::Reset };
                }
            }
            if segment.has(flag::RST) {
                self.on_reset();
                return Answer::None;
            }
        } else if segment.has(flag::RST) {
            return Answer::None;
        }
        if !segment.has(flag::SYN) {
            return Answer::None;
        }
        let scale = self.terms.receive_scale;
        self.agree(env, segment);
        if !acks {
            // 6.18 scales its own windows even where the peer's SYN had no scale.
            self.terms.receive_scale = scale;
            self.cross(env, segment);
            return Answer::None;
        }
        self.take_syn_ack(env, segment);
        Answer::None
    }

    /// What the peer's SYN or SYN-ACK leaves of our offer.
    pub(crate) fn agree(&mut self, env: &Env<'_>, segment: &Segment) {
        // RFC 9293 section 3.7.1.
        let unsaid = if env.route.ip_header == 40 { 1220 } else { 536 };
        let peer = segment.mss().map_or(unsaid, u32::from);
        let peer = if peer == 0 { 536 } else { peer };
        let own = if self.opt.user_mss > 0 { self.opt.user_mss } else { u32::MAX };
        self.terms.mss_clamp = peer.min(own);
        self.agree_on_requests(segment);
        self.terms.stamps &= segment.stamp().is_some();
        self.terms.header = if self.terms.stamps { 32 } else { 20 };
        if self.terms.stamps {
            self.terms.advmss = self.own_mss(env).saturating_sub(12);
            self.rcv.recent = segment.stamp().map(|(value, _)| (value, env.now));
        }
        self.terms.sack = env.sysctls.is_on("tcp_sack") && segment.sack_ok();
        if let Some(scale) = segment.scale().filter(|_| self.terms.scaling) {
            self.terms.send_scale = scale;
        } else {
            self.terms.scaling = false;
            self.terms.receive_scale = 0;
            self.terms.send_scale = 0;
            self.rcv.clamp = self.rcv.clamp.min(65_535);
        }
        self.rcv.isn = segment.seq;
        self.rcv.nxt = segment.seq.wrapping_add(1);
        self.rcv.wup = self.rcv.nxt;
        self.rcv.copied = self.rcv.nxt;
        self.snd.wnd = u32::from(segment.window);
        self.snd.max_window = self.snd.wnd;
        self.snd.wl1 = segment.seq;
    }

    fn take_syn_ack(&mut self, env: &Env<'_>, segment: &Segment) {
        // Also where a SYN without the offer was the last (RFC 3168 section 6.1.1.1).
        self.agree_on_ecn(env, segment);
        let retried = self.rec.total_retrans;
        self.rcv.last_data = env.now;
        self.take_ack(env, segment);
        self.init_mtu_search(env);
        self.sync_mss(env);
        self.init_rcv_mss();
        self.state = State::Established;
        self.init_transfer(env, retried);
        let answered = self.take_fast_open_answer(env, segment);
        self.wake(poll::OUT | poll::WRNORM);
        if self.opt.keepalive {
            self.timers.keepalive = Some(env.now + self.keep_idle(env));
        }
        if answered {
            return;
        }
        let wants_delay = self.write_waits()
            || self.opt.defer_accept > 0
            || i64::from(self.ack.pingpong) >= env.sysctls.of("tcp_pingpong_thresh");
        if wants_delay {
            self.ack.scheduled = true;
            self.enter_quick(QUICK);
            self.timers.delack = Some(env.now + 200 * MS);
        } else {
            self.send_reflecting_ack(env);
        }
    }

    fn write_waits(&self) -> bool {
        !self.snd.queue.is_empty()
    }

    /// SYNs crossed.
    fn cross(&mut self, env: &Env<'_>, segment: &Segment) {
        self.state = State::SynRecv;
        self.cross_ecn(segment);
        self.init_mtu_search(env);
        self.sync_mss(env);
        self.init_rcv_mss();
        let segment = self.syn(env);
        self.count.segs_out += 1;
        self.wire.push(segment);
    }

    /// The handshake of a passive or crossed open is over.
    pub fn establish(&mut self, env: &Env<'_>, segment: &Segment) {
        self.state = State::Established;
        if self.is_accurate() {
            self.take_third_ack(env, segment);
        }
        let early = std::mem::take(&mut self.open.early);
        let scale = self.terms.send_scale;
        self.snd.wnd = u32::from(segment.window) << scale;
        if self.open.passive && !early {
            // The SYN's own window, which is not scaled, is forgotten.
            self.snd.max_window = self.snd.wnd;
        }
        self.snd.max_window = self.snd.max_window.max(self.snd.wnd);
        self.snd.wl1 = segment.seq;
        self.rcv.last_data = env.now;
        // The SYN-ACK arrived.
        self.rec.delivered += 1;
        let retried = self.rec.total_retrans;
        self.sync_mss(env);
        if early {
            if retried == 0 {
                let rtt = env.now - self.open.sent;
                self.take_rtt(env, rtt, rtt);
            } else if let Some(rtt) = self.rtt_by_echo(env, segment) {
                self.take_rtt(env, rtt, rtt);
            }
            self.rec.retransmits = 0;
            self.rearm_retransmission(env);
        } else {
            self.init_transfer(env, retried);
            self.init_rcv_mss();
        }
        self.wake(poll::OUT | poll::WRNORM | poll::IN | poll::RDNORM);
        if self.opt.keepalive {
            self.timers.keepalive = Some(env.now + self.keep_idle(env));
        }
    }

    /// Windows and estimates as data begins to flow.
    pub fn init_transfer(&mut self, env: &Env<'_>, retried: u32) {
        if self.rtt.srtt8 == 0 {
            self.rtt.fall_back();
        }
        if env.route.reordering > 0 {
            self.rec.reordering = env.route.reordering;
        }
        // Time-outs, not what ICMP asked for.
        let timed_out = self.open.timed_out || self.rec.undo_marker.is_some();
        let cuts = retried > 1 && timed_out && !self.is_syn_retransmission_spurious();
        self.window.cwnd = if cuts { 1 } else { env.route.initial_window() };
        if env.route.cwnd > 0 {
            self.window.clamp = env.route.cwnd;
            self.window.cwnd = self.window.cwnd.min(self.window.clamp);
        }
        self.window.ssthresh = if env.route.ssthresh > 0 {
            env.route.ssthresh
        } else {
            crate::settings::INFINITE_SSTHRESH
        };
        self.window.stamp = env.now;
        self.rec.ca = CaState::Open;
        self.rec.undo_marker = None;
        self.rec.retrans_stamp = None;
        self.rec.retransmits = 0;
        self.rec.frto = false;
        self.window.count = 0;
        self.rec.high_seq = self.snd.nxt;
        self.snd.last_sent = env.now;
        if self.open.passive {
            // A listener's connection begins the search without a look at its first size.
            self.init_mtu_search(env);
        }
        let hystart = env.sysctls.is_on("hystart");
        self.cc.set_hystart(if hystart { env.sysctls.of("hystart_detect") } else { 0 });
        self.cc.init(env.now, self.snd.nxt);
        if let Some(model) = self.cc.model() {
            model.begin(self.snd.mss, self.window.cwnd, self.window.ssthresh);
        }
        self.init_buffers(env);
        self.update_pacing(env);
    }

    fn is_syn_retransmission_spurious(&self) -> bool {
        self.terms.stamps && self.rcv.echo.is_some_and(|echo| echo == (self.open.sent / MS) as u32)
    }
}

/// SYN options behind the MSS, in Linux's order.
pub(crate) fn add_syn_options(
    options: &mut Vec<TcpOption>,
    stamp: Option<(u32, u32)>,
    sack: bool,
    scale: Option<u8>,
) {
    if let Some((value, echo)) = stamp {
        if sack {
            options.push(TcpOption::SackOk);
        } else {
            options.extend([TcpOption::Nop, TcpOption::Nop]);
        }
        options.push(TcpOption::Stamp(value, echo));
    } else if sack {
        options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::SackOk]);
    }
    if let Some(scale) = scale {
        options.extend([TcpOption::Nop, TcpOption::Scale(scale)]);
    }
}
