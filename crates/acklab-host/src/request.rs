//! A SYN that was answered: the connection to be, its SYN-ACK, and what later segments mean for it.

use crate::accurate::{self, failed};
use crate::cc::Congestion;
use crate::mib::Mib;
use crate::open::add_syn_options;
use crate::segment::{Segment, TcpOption, after, before, ecn as mark, flag};
use crate::settings::{Env, SECOND, Us};
use crate::tcp::{EcnMode, Options, State, Tcp};

/// A SYN that a listener answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// The connection to be.
    pub tcp: Tcp,
    /// When the SYN-ACK leaves again.
    pub deadline: u64,
    /// How often it did.
    pub timeouts: u32,
    /// It was answered by a cookie: nothing is kept.
    pub cookie: bool,
    /// Timestamps of the first SYN-ACK and of the last.
    pub stamps: Option<(u32, u32)>,
}

impl Request {
    /// A listener with `options` answers `syn`.
    pub fn new(env: &Env<'_>, listener: &Tcp, syn: &Segment, isn: u32, cookie: bool) -> Self {
        let mut tcp = Tcp::fresh(env);
        tcp.opt = Options { ..listener.opt.clone() };
        tcp.rcv.buffer = listener.rcv.buffer;
        let routed = env.route.congestion.and_then(Congestion::named);
        tcp.cc = routed.unwrap_or_else(|| listener.cc.again());
        tcp.ack.pingpong = listener.ack.pingpong;
        tcp.ack.policy.clone_from(&listener.ack.policy);
        tcp.ack.asking.clone_from(&listener.ack.asking);
        (tcp.local, tcp.remote) = (syn.dst, syn.src);
        tcp.state = State::SynRecv;
        tcp.open.passive = true;
        tcp.open.sent = env.now;
        tcp.terms.stamps = env.sysctls.is_on("tcp_timestamps");
        tcp.terms.scaling = env.sysctls.is_on("tcp_window_scaling");
        tcp.terms.advmss = tcp.own_mss(env);
        tcp.snd.isn = isn;
        tcp.agree(env, syn);
        let mss = tcp.own_mss(env);
        let plain = mss - if tcp.terms.stamps { 12 } else { 0 };
        let first = tcp.first_window(env, plain, tcp.terms.scaling);
        (tcp.rcv.wnd, tcp.rcv.clamp) = (first.wnd, first.clamp);
        tcp.rcv.ssthresh = first.wnd;
        tcp.terms.receive_scale = first.scale;
        (tcp.snd.una, tcp.snd.nxt) = (isn.wrapping_add(1), isn.wrapping_add(1));
        tcp.snd.write_seq = tcp.snd.nxt;
        (tcp.snd.pushed_seq, tcp.snd.small_end, tcp.snd.urgent) =
            (tcp.snd.nxt, tcp.snd.nxt, tcp.snd.nxt);
        tcp.choose_ecn(env, syn);
        tcp.sync_mss(env);
        let deadline = env.now + tcp.initial_rto();
        Self { tcp, deadline, timeouts: 0, cookie, stamps: None }
    }

    /// The SYN-ACK waits for its answer from now on, as long as its time-outs ask for; what is kept in a cookie does not.
    pub(crate) fn wait(&mut self, now: Us) {
        if !self.cookie {
            self.deadline =
                now + (self.tcp.initial_rto() << self.timeouts.min(20)).min(120 * SECOND);
        }
    }

    /// The SYN-ACK once more.
    pub(crate) fn answer_again(&mut self, env: &Env<'_>) -> Segment {
        self.tcp.tally(Mib::RetransSegs);
        self.tcp.tally(Mib::TCPSynRetrans);
        self.answer(env)
    }

    /// The SYN-ACK.
    pub fn answer(&mut self, env: &Env<'_>) -> Segment {
        self.tcp.tally(Mib::OutSegs);
        let first = self.stamps.map_or(env.tick(), |(first, _)| first);
        self.stamps = Some((first, env.tick()));
        // Accurate ECN is answered twice (RFC 9768 section 3.1.4.2), its option too.
        let accurate = self.tcp.is_accurate();
        let offers = self.tcp.rec.total_retrans <= 1;
        if accurate && !offers {
            self.tcp.ecn.accurate.fail(failed::ACE_SENT);
        }
        let tcp = &self.tcp;
        let mut options = vec![TcpOption::Mss(tcp.own_mss(env) as u16)];
        let echo = tcp.rcv.recent.map_or(0, |(value, _)| value);
        add_syn_options(
            &mut options,
            tcp.terms.stamps.then(|| (env.tick(), echo)),
            tcp.terms.sack,
            tcp.terms.scaling.then_some(tcp.terms.receive_scale),
        );
        tcp.announce_requests(&mut options, true);
        if accurate && self.timeouts <= 1 && env.sysctls.is_on("tcp_ecn_option") {
            let behind = options.iter().position(|o| matches!(o, TcpOption::Stamp(..)));
            let at = behind.unwrap_or(0) + 1;
            options.splice(at..at, [TcpOption::AccEcn(accurate::first_option()), TcpOption::Nop]);
        }
        // The cookie is told once.
        if let Some(cookie) = self.tcp.open.cookie.take() {
            let option = TcpOption::FastOpen(cookie, self.tcp.open.experimental);
            let padding = option.len().next_multiple_of(4) - option.len();
            options.push(option);
            options.extend((0..padding).map(|_| TcpOption::Nop));
        }
        let tcp = &self.tcp;
        let ecn = match tcp.ecn.mode {
            EcnMode::Classic => flag::ECE,
            EcnMode::Accurate if offers => tcp.ecn.accurate.reflection(),
            _ => 0,
        };
        let reflected = env.sysctls.is_on("tcp_reflect_tos");
        Segment {
            src: tcp.local,
            dst: tcp.remote,
            seq: tcp.snd.isn,
            ack: tcp.rcv.nxt,
            flags: flag::SYN | flag::ACK | ecn,
            window: tcp.rcv.wnd.min(65_535) as u16,
            options,
            dscp: if reflected { self.tcp.open.syn_flags as u8 } else { tcp.opt.tos >> 2 },
            flow_label: tcp.flow_label(env),
            ttl: tcp.opt.ttl,
            ecn: if tcp.cc.is_dctcp() && tcp.ecn.mode != EcnMode::Off {
                mark::ECT0
            } else {
                mark::NOT_ECT
            },
            ..Segment::default()
        }
    }

    /// An ACK of what does not belong to the request; it shows no more of the window than the SYN-ACK did.
    pub fn acknowledge(&mut self, env: &Env<'_>) -> Segment {
        let tcp = &mut self.tcp;
        let shown = tcp.rcv.wnd;
        tcp.tally(Mib::OutSegs);
        let mut segment = tcp.make(env, tcp.snd.nxt, flag::ACK, 0);
        tcp.rcv.wnd = shown;
        segment.window = (shown.min(65_535) >> tcp.terms.receive_scale) as u16;
        if tcp.rcv.recent.is_some_and(|(value, _)| value == 0) {
            // An echo of 0 is none, and without one the kernel writes no timestamp here.
            segment.options.clear();
        }
        segment
    }

    /// Fast open: the connection before the handshake is over, with the data that the SYN brought.
    pub fn open_early(&mut self, env: &Env<'_>, syn: &Segment) -> Tcp {
        let mut tcp = self.tcp.clone();
        tcp.open.early = true;
        tcp.open.fast_child = true;
        tcp.count.segs_in = 1;
        tcp.init_rcv_mss();
        tcp.init_transfer(env, 0);
        tcp.take_syn_data(env, syn);
        self.tcp.rcv.nxt = tcp.rcv.nxt;
        tcp.rcv.wup = tcp.rcv.nxt;
        tcp
    }

    /// The handshake is over: the connection, which is yet to take the segment that ended it.
    pub fn open(mut self, env: &Env<'_>, segment: &Segment) -> Tcp {
        if self.cookie {
            if segment.stamp().is_none() {
                // What was agreed stood in the timestamp.
                self.tcp.terms.stamps = false;
                self.forget_options();
            }
            // The window begins anew, in units of the size that the cookie kept.
            self.begin_window(env, self.tcp.terms.mss_clamp);
        }
        let tcp = &mut self.tcp;
        tcp.open.timed_out = self.timeouts > 0;
        tcp.count.segs_in = 1;
        tcp.rcv.oow_answered = None;
        if self.cookie && tcp.is_accurate() && accurate::ace(segment) <= 1 {
            tcp.ecn.mode = EcnMode::Classic;
        }
        if tcp.is_accurate() {
            tcp.ecn.accurate.see(segment);
            tcp.ecn.accurate.accept();
            tcp.count_marks(segment);
        }
        let measured = if tcp.rec.total_retrans == 0 && !self.cookie {
            Some((env.now - tcp.open.sent).max(1))
        } else {
            // RFC 7323 section 4: an echo tells which of several it answers.
            tcp.rtt_by_echo(env, segment)
        };
        if let Some(rtt) = measured {
            tcp.take_rtt(env, rtt, rtt);
        }
        self.tcp
    }
}

impl Tcp {
    /// Which ECN a listener agrees to.
    fn choose_ecn(&mut self, env: &Env<'_>, syn: &Segment) {
        let level = env.sysctls.of("tcp_ecn");
        let asked = syn.flags & accurate::ACE;
        self.ecn.mode = if accurate::is_asked(syn) && level >= 3 {
            self.ecn.accurate.hear_syn(syn.ecn);
            self.ecn.accurate.send_syn(self.opt.tos);
            EcnMode::Accurate
        } else if asked & (flag::ECE | flag::CWR) == flag::ECE | flag::CWR
            && (level > 0 || env.route.ecn || self.cc.is_dctcp())
            && (syn.ecn == mark::NOT_ECT || syn.has(flag::AE) || self.cc.is_dctcp())
        {
            EcnMode::Classic
        } else {
            EcnMode::Off
        };
        self.open.syn_flags = u16::from(syn.dscp);
    }
}

/// What a segment means for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgment {
    Ignore,
    AnswerAgain,
    Acknowledge,
    Drop,
    Reset,
    DropAndReset,
    Open,
}

impl Request {
    pub(crate) fn judge(&mut self, env: &Env<'_>, segment: &Segment) -> Judgment {
        let tcp = &mut self.tcp;
        let stale = match (segment.stamp().filter(|_| tcp.terms.stamps), tcp.rcv.recent) {
            (Some((value, _)), Some((recent, _))) => before(value, recent),
            _ => false,
        };
        let plain_syn = segment.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN;
        if self.cookie {
            return if segment.has(flag::ACK)
                && segment.ack == tcp.snd.nxt
                && segment.seq == tcp.rcv.nxt
                && !segment.has(flag::RST)
            {
                Judgment::Open
            } else if segment.has(flag::RST) {
                Judgment::Ignore
            } else {
                tcp.tally(Mib::SyncookiesFailed);
                Judgment::Reset
            };
        }
        if segment.seq == tcp.rcv.isn && plain_syn && !stale {
            if tcp.is_answered_lately(env, segment, Mib::TCPACKSkippedSynRecv) {
                return Judgment::Ignore;
            }
            if tcp.is_accurate() {
                tcp.ecn.accurate.hear_syn(segment.ecn);
                if accurate::ace(segment) == 0 {
                    tcp.ecn.accurate.fail(failed::ACE_HEARD);
                }
            }
            self.tcp.rec.total_retrans += 1;
            return Judgment::AnswerAgain;
        }
        if segment.has(flag::ACK) && segment.ack != tcp.snd.nxt && !segment.has(flag::RST) {
            return Judgment::Reset;
        }
        let edge = tcp.rcv.nxt.wrapping_add(tcp.rcv.wnd);
        let inside = segment.seq == tcp.rcv.nxt
            || (after(segment.end(), tcp.rcv.nxt) && before(segment.seq, edge))
            || (segment.seq == edge && segment.end() == edge);
        // An echo of what was never sent (Linux 6.14 and later).
        let foreign = segment.stamp().zip(self.stamps).is_some_and(|((_, echo), (first, last))| {
            tcp.terms.stamps && echo != 0 && (before(echo, first) || after(echo, last))
        });
        if stale || foreign || !inside {
            if stale || foreign {
                tcp.tally(if stale { Mib::PAWSEstab } else { Mib::TSEcrRejected });
            }
            if segment.has(flag::RST)
                || tcp.is_answered_lately(env, segment, Mib::TCPACKSkippedSynRecv)
            {
                return Judgment::Ignore;
            }
            return Judgment::Acknowledge;
        }
        if let Some((value, _)) = segment.stamp().filter(|_| tcp.terms.stamps)
            && !after(segment.seq, tcp.rcv.nxt)
        {
            tcp.rcv.recent = Some((value, env.now));
        }
        if segment.has(flag::RST) {
            // RFC 5961 section 3.2 (Linux 6.14 and later).
            return if segment.seq == tcp.rcv.nxt {
                Judgment::Drop
            } else if tcp.is_answered_lately(env, segment, Mib::TCPACKSkippedChallenge) {
                Judgment::Ignore
            } else {
                tcp.tally(Mib::TCPChallengeACK);
                Judgment::Acknowledge
            };
        }
        if segment.has(flag::SYN) {
            return Judgment::DropAndReset;
        }
        if !segment.has(flag::ACK) {
            return Judgment::Ignore;
        }
        let bare = segment.end() == tcp.rcv.nxt && segment.len == 0;
        if tcp.opt.defer_accept > self.timeouts && bare {
            self.tcp.open.acked = true;
            self.tcp.tally(Mib::TCPDeferAcceptDrop);
            return Judgment::Ignore;
        }
        Judgment::Open
    }

    /// What a cookie can carry: no scale and no SACK without timestamps, and one of four sizes.
    pub(crate) fn limit_to_cookie(&mut self, env: &Env<'_>) {
        let tcp = &mut self.tcp;
        if !tcp.terms.stamps {
            self.forget_options();
        }
        let tcp = &mut self.tcp;
        let v6 = env.route.ip_header == 40;
        let sizes = if v6 { [1220, 1420, 1440, 8940] } else { [536, 1300, 1440, 1460] };
        let peer = tcp.terms.mss_clamp;
        let kept = sizes.into_iter().rev().find(|&size| size <= peer).unwrap_or(sizes[0]);
        tcp.terms.mss_clamp = kept;
        let plain = tcp.own_mss(env) - if tcp.terms.stamps { 12 } else { 0 };
        self.begin_window(env, plain);
    }

    fn forget_options(&mut self) {
        let tcp = &mut self.tcp;
        tcp.terms.sack = false;
        tcp.terms.scaling = false;
        (tcp.terms.send_scale, tcp.terms.receive_scale) = (0, 0);
        tcp.terms.header = if tcp.terms.stamps { 32 } else { 20 };
        tcp.ecn.mode = EcnMode::Off;
    }

    fn begin_window(&mut self, env: &Env<'_>, mss: u32) {
        let tcp = &mut self.tcp;
        let first = tcp.first_window(env, mss, tcp.terms.scaling);
        (tcp.rcv.wnd, tcp.rcv.clamp, tcp.rcv.ssthresh) = (first.wnd, first.clamp, first.wnd);
    }
}
