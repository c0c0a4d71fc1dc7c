//! A host: its sockets, the segments that come and go, and time.

use std::collections::{BTreeMap, VecDeque};

use crate::datagram::{Datagram, PathError, Udp};
use crate::input::Answer;
use crate::mib::{Mib, Mibs};
use crate::request::{Judgment, Request};
use crate::segment::{Place, Segment, TcpOption, after, before, flag};
use crate::settings::{Env, MS, Route, SECOND, Sysctls, Us};
use crate::socket::{Descriptor, File, Socket};
use crate::tcp::{State, Tcp, poll};

/// From one initial sequence number to the next.
pub(crate) const ISN_STEP: u32 = 0x0100_0193;
/// Before the first port of the host's own choice.
const FIRST_PORT: u16 = 40_000;
/// The option of RFC 2385.
const MD5: u8 = 19;

/// A host with one route.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// System controls.
    pub sysctls: Sysctls,
    /// The route.
    pub route: Route,
    /// Sockets; an index is never used twice.
    pub sockets: Vec<Socket>,
    /// UDP sockets.
    pub datagrams: Vec<Udp>,
    /// Datagrams that left, with their times.
    pub datagrams_out: VecDeque<(Us, Datagram)>,
    /// Descriptors.
    pub files: BTreeMap<i32, Descriptor>,
    /// Bytes in each pipe.
    pub pipes: Vec<u64>,
    /// Segments that left, with their times.
    pub wire: VecDeque<(Us, Segment)>,
    /// Where the next initial sequence number comes from.
    pub next_isn: u32,
    /// The next port of an active open.
    pub next_port: u16,
    /// The cookie of fast open that this host gives to every peer: a test's addresses are one.
    pub fastopen_cookie: Vec<u8>,
    /// What fast open knows of peers.
    pub fastopen_known: crate::tcp::Cache,
    /// Signals that the program would have got: SIGPIPE.
    pub broken_pipes: u32,
    /// Counters.
    pub mibs: Mibs,
}

/// Runs `body` with the socket at `index` and its surroundings.
macro_rules! with {
    ($host:expr, $now:expr, $index:expr, |$socket:ident, $env:ident| $body:expr) => {{
        let $env = crate::settings::Env { now: $now, sysctls: &$host.sysctls, route: &$host.route };
        let $socket = &mut $host.sockets[$index];
        let result = $body;
        $host.settle($now, $index);
        result
    }};
}
pub(crate) use with;

impl Host {
    /// A host without sockets; its initial sequence numbers begin behind `isn`.
    pub fn new(isn: u32) -> Self {
        let fastopen_cookie = vec![0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb];
        Self { next_isn: isn, next_port: FIRST_PORT, fastopen_cookie, ..Self::default() }
    }

    /// What a connection may ask.
    pub const fn env(&self, now: Us) -> Env<'_> {
        Env { now, sysctls: &self.sysctls, route: &self.route }
    }

    /// A new initial sequence number.
    pub const fn isn(&mut self) -> u32 {
        self.next_isn = self.next_isn.wrapping_add(ISN_STEP);
        self.next_isn
    }

    /// A port for who asked for none, the one after the last.
    pub(crate) const fn own_port(&mut self) -> u16 {
        self.next_port = if self.next_port == u16::MAX { FIRST_PORT } else { self.next_port + 1 };
        self.next_port
    }

    /// Takes a segment from the wire.
    pub fn receive(&mut self, now: Us, segment: &Segment) {
        self.mibs.count(Mib::InSegs);
        if self.is_signed_in_vain(segment) {
            return;
        }
        if let Some(index) = self.connection(segment.dst, segment.src) {
            let state = self.sockets[index].tcp.state;
            if state == State::TimeWait && self.is_new_syn(now, index, segment) {
                self.sockets[index].tcp.state = State::Close;
                self.sockets[index].tcp.timers = crate::tcp::Timers::default();
            } else {
                if self.receive_early(now, index, segment) {
                    return;
                }
                let answer = with!(self, now, index, |socket, env| socket.tcp.take(&env, segment));
                if !self.sockets[index].tcp.open.early && state != State::Listen {
                    self.sockets[index].requests.clear();
                }
                if answer == Answer::Reset {
                    self.reset_sender(now, segment);
                }
                return;
            }
        }
        match self.listener(segment.dst.port) {
            Some(listener) => self.receive_as_listener(now, listener, segment),
            None => self.reset_sender(now, segment),
        }
    }

    /// Whether a segment carries a digest (RFC 2385) that nobody here has a key for.
    fn is_signed_in_vain(&self, segment: &Segment) -> bool {
        let is_digest = |option: &TcpOption| matches!(option, TcpOption::Other(MD5, _));
        segment.options.iter().any(is_digest)
            && (self.listener(segment.dst.port).is_some()
                || self
                    .connection(segment.dst, segment.src)
                    .is_some_and(|index| self.sockets[index].tcp.state != State::TimeWait))
    }

    /// A SYN beyond what TIME-WAIT saw may open anew (RFC 9293 section 3.6.1).
    fn is_new_syn(&self, now: Us, index: usize, segment: &Segment) -> bool {
        let tcp = &self.sockets[index].tcp;
        let newer_stamp = match (segment.stamp(), tcp.rcv.recent) {
            (Some((value, _)), Some((recent, _))) => before(recent, value),
            _ => false,
        };
        segment.flags & (flag::SYN | flag::RST | flag::ACK) == flag::SYN
            && (after(segment.seq, tcp.rcv.nxt) || newer_stamp)
            && !tcp.is_stale_after_end(&self.env(now), segment)
            && self.listener(segment.dst.port).is_some()
    }

    /// The connection between two places.
    pub fn connection(&self, local: Place, remote: Place) -> Option<usize> {
        self.sockets.iter().position(|socket| {
            let tcp = &socket.tcp;
            !matches!(tcp.state, State::Close | State::Listen)
                && tcp.local.port == local.port
                && tcp.remote == remote
        })
    }

    fn listener(&self, port: u16) -> Option<usize> {
        self.sockets
            .iter()
            .position(|s| s.tcp.state == State::Listen && s.bound.is_some_and(|b| b.port == port))
    }

    /// Answers a segment that no connection wants (RFC 9293 section 3.10.7.1).
    pub fn reset_sender(&mut self, now: Us, segment: &Segment) {
        if segment.has(flag::RST) {
            return;
        }
        let mut reset =
            Segment { src: segment.dst, dst: segment.src, flags: flag::RST, ..Segment::default() };
        if segment.has(flag::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.ack = segment.end();
            reset.flags |= flag::ACK;
        }
        self.mibs.count(Mib::OutSegs);
        self.mibs.count(Mib::OutRsts);
        self.wire.push_back((now, reset));
    }

    fn receive_as_listener(&mut self, now: Us, listener: usize, segment: &Segment) {
        let known =
            self.sockets[listener].requests.iter().position(|r| r.tcp.remote == segment.src);
        let is_syn = segment.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN;
        match known {
            // Of a cookie nothing is kept: a SYN is always the first.
            Some(request) if is_syn && self.sockets[listener].requests[request].cookie => {
                self.sockets[listener].requests.remove(request);
            }
            Some(request) => {
                self.receive_as_request(now, listener, request, segment);
                return;
            }
            None => {}
        }
        if segment.has(flag::RST) {
            return;
        }
        if segment.has(flag::ACK) {
            let answered = self.sockets[listener].requests.iter().any(|request| request.cookie);
            if answered && !segment.has(flag::SYN) {
                self.mibs.count(Mib::SyncookiesFailed);
            }
            self.reset_sender(now, segment);
            return;
        }
        if !segment.has(flag::SYN) || segment.has(flag::FIN) {
            return;
        }
        self.answer_syn(now, listener, segment);
    }

    /// A new request, or a cookie where the queue of requests is full.
    fn answer_syn(&mut self, now: Us, listener: usize, segment: &Segment) {
        let socket = &self.sockets[listener];
        let backlog = socket.backlog.unwrap_or(0);
        let cookies = self.sysctls.of("tcp_syncookies");
        // Of a cookie nothing is kept.
        let kept = socket.requests.iter().filter(|request| !request.cookie).count();
        let crowded = kept as u32 > backlog;
        let full = socket.ready.len() as u32 > backlog;
        let cookie = cookies == 2 || crowded;
        if cookie {
            let drops = cookies == 0;
            self.mibs.count(if drops { Mib::TCPReqQFullDrop } else { Mib::TCPReqQFullDoCookies });
        }
        let refused = crowded && cookies == 0;
        if refused || full {
            if !refused {
                self.mibs.count(Mib::ListenOverflows);
            }
            self.mibs.count(Mib::ListenDrops);
            return;
        }
        let isn = self.isn();
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        let mut request = Request::new(&env, &self.sockets[listener].tcp, segment, isn, cookie);
        if cookie {
            request.limit_to_cookie(&env);
        } else if self.try_fast_open(now, listener, &mut request, segment) {
            return;
        }
        let answer = request.answer(&self.env(now));
        self.wire.push_back((now, answer));
        self.mibs.take(&mut request.tcp);
        if cookie {
            self.mibs.count(Mib::SyncookiesSent);
            self.sockets[listener].cookies = request.tcp.snd.isn;
            // A cookie holds what the request agreed on; it stands here for the bits that the number has.
            request.deadline = now + 120 * SECOND;
        }
        self.sockets[listener].requests.push(request);
    }

    /// Fast open (RFC 7413): a valid cookie, or none where none is required, opens the connection at once. A request
    /// for a cookie is answered with one. Returns whether the connection is there.
    fn try_fast_open(
        &mut self,
        now: Us,
        listener: usize,
        request: &mut Request,
        syn: &Segment,
    ) -> bool {
        let flags = self.sysctls.of("tcp_fastopen");
        let socket = &self.sockets[listener];
        let queue = socket.tcp.opt.fastopen;
        // A cookie of a length that none has is no cookie (RFC 7413 section 4.1.1).
        let is_cookie =
            |c: &[u8]| c.is_empty() || (4..=16).contains(&c.len()) && c.len().is_multiple_of(2);
        let asked = syn.options.iter().find_map(|option| match option {
            TcpOption::FastOpen(cookie, experimental) if is_cookie(cookie) => {
                Some((cookie.clone(), *experimental))
            }
            _ => None,
        });
        if asked.as_ref().is_some_and(|(cookie, _)| cookie.is_empty()) {
            self.mibs.count(Mib::TCPFastOpenCookieReqd);
        }
        if flags & 0x2 == 0 || (asked.is_none() && syn.len == 0) || queue == 0 {
            return false;
        }
        if self.fast_open_pending(listener) >= queue {
            self.mibs.count(Mib::TCPFastOpenListenOverflow);
            return false;
        }
        let free = flags & 0x200 != 0 || socket.fast.no_cookie;
        let valid = asked.as_ref().is_some_and(|(cookie, _)| *cookie == self.fastopen_cookie);
        if !free && !valid {
            if let Some((cookie, experimental)) = asked {
                if !cookie.is_empty() {
                    self.mibs.count(Mib::TCPFastOpenPassiveFail);
                }
                request.tcp.open.cookie = Some(self.fastopen_cookie.clone());
                request.tcp.open.experimental = experimental;
            }
            return false;
        }
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        let mut tcp = request.open_early(&env, syn);
        self.mibs.count(Mib::PassiveOpens);
        self.mibs.count(Mib::TCPFastOpenPassive);
        tcp.wake(poll::IN | poll::RDNORM);
        let answer = request.answer(&env);
        self.wire.push_back((now, answer));
        self.mibs.take(&mut request.tcp);
        let parent = &self.sockets[listener];
        let child = Socket {
            tcp,
            requests: vec![request.clone()],
            parent: Some(listener),
            was_connected: true,
            connecting: false,
            backlog: None,
            ready: std::collections::VecDeque::new(),
            descriptors: 0,
            ..parent.clone()
        };
        self.sockets.push(child);
        let child = self.sockets.len() - 1;
        self.sockets[listener].ready.push_back(child);
        self.sockets[listener].tcp.wake(poll::IN | poll::RDNORM);
        self.settle(now, listener);
        true
    }

    /// Connections of fast open whose handshake is not over, those that were reset before accept(2) included (RFC 7413
    /// section 5.1).
    fn fast_open_pending(&self, listener: usize) -> u32 {
        let port = self.sockets[listener].tcp.local.port;
        let pending = |socket: &&Socket| {
            socket.tcp.open.early
                && socket.tcp.local.port == port
                && (socket.parent.is_some() || socket.tcp.state != State::Close)
        };
        self.sockets.iter().filter(pending).count() as u32
    }

    /// A segment for a connection that fast open began: the SYN again, or the end of the handshake.
    fn receive_early(&mut self, now: Us, index: usize, segment: &Segment) -> bool {
        let socket = &mut self.sockets[index];
        let again = segment.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN
            && segment.seq == socket.tcp.rcv.isn;
        if !socket.tcp.open.early || !again {
            return false;
        }
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        let count = &mut socket.tcp.count;
        count.segs_in += 1;
        count.data_segs_in += u32::from(segment.len > 0);
        if let Some(request) = socket.requests.first_mut() {
            let limited = request.tcp.is_answered_lately(&env, segment, Mib::TCPACKSkippedSynRecv);
            if !limited {
                socket.tcp.rec.total_retrans += 1;
                let answer = request.answer_again(&env);
                self.wire.push_back((now, answer));
            }
            self.mibs.take(&mut request.tcp);
        }
        true
    }

    fn receive_as_request(&mut self, now: Us, listener: usize, index: usize, segment: &Segment) {
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        let request = &mut self.sockets[listener].requests[index];
        let judgment = request.judge(&env, segment);
        self.mibs.take(&mut request.tcp);
        match judgment {
            Judgment::Ignore => {}
            Judgment::AnswerAgain => {
                request.wait(now);
                let answer = request.answer_again(&env);
                self.mibs.take(&mut request.tcp);
                self.wire.push_back((now, answer));
            }
            Judgment::Acknowledge => {
                let answer = request.acknowledge(&env);
                self.mibs.take(&mut request.tcp);
                self.wire.push_back((now, answer));
            }
            Judgment::Drop => {
                self.mibs.count(Mib::AttemptFails);
                self.mibs.count(Mib::EmbryonicRsts);
                self.sockets[listener].requests.remove(index);
            }
            Judgment::Reset => {
                self.reset_sender(now, segment);
            }
            Judgment::DropAndReset => {
                self.mibs.count(Mib::AttemptFails);
                self.mibs.count(Mib::EmbryonicRsts);
                self.sockets[listener].requests.remove(index);
                self.reset_sender(now, segment);
            }
            Judgment::Open => self.open_child(now, listener, index, segment),
        }
    }

    fn open_child(&mut self, now: Us, listener: usize, index: usize, segment: &Segment) {
        let backlog = self.sockets[listener].backlog.unwrap_or(0);
        if self.sockets[listener].requests[index].cookie {
            self.mibs.count(Mib::SyncookiesRecv);
        }
        if self.sockets[listener].ready.len() as u32 > backlog {
            self.mibs.count(Mib::ListenOverflows);
            self.mibs.count(Mib::ListenDrops);
            // Of a cookie the peer hears nothing, whatever the setting.
            let is_kept = !self.sockets[listener].requests[index].cookie;
            if is_kept && self.sysctls.is_on("tcp_abort_on_overflow") {
                self.sockets[listener].requests.remove(index);
                self.mibs.count(Mib::EmbryonicRsts);
                self.reset_sender(now, segment);
            } else {
                self.sockets[listener].requests[index].tcp.open.acked = true;
            }
            return;
        }
        let request = self.sockets[listener].requests.remove(index);
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        let parent = &self.sockets[listener];
        let socket = Socket {
            tcp: request.open(&env, segment),
            family: parent.family,
            bound: parent.bound,
            was_connected: true,
            timestamping: parent.timestamping,
            zero_copy: parent.zero_copy,
            inq: parent.inq,
            kept: parent.kept.clone(),
            parent: Some(listener),
            ..Socket::default()
        };
        self.mibs.count(Mib::PassiveOpens);
        self.sockets.push(socket);
        let child = self.sockets.len() - 1;
        let answer = with!(self, now, child, |socket, env| socket.tcp.take(&env, segment));
        if answer == Answer::Reset {
            self.sockets[child].tcp.state = State::Close;
            self.reset_sender(now, segment);
            return;
        }
        self.sockets[listener].ready.push_back(child);
        self.sockets[listener].tcp.wake(poll::IN | poll::RDNORM);
        self.settle(now, listener);
    }

    /// After anything happened to a socket: what it sends leaves, and who waits for it is told.
    pub fn settle(&mut self, now: Us, index: usize) {
        self.learn(index);
        let tcp = &mut self.sockets[index].tcp;
        self.mibs.take(tcp);
        let wake = std::mem::take(&mut tcp.fate.wake);
        self.wire.extend(tcp.wire.drain(..).map(|segment| (now, segment)));
        if wake != 0 && self.files.values().any(|it| matches!(it.file, File::Epoll(_))) {
            self.tell_watches(&File::Socket(index), wake);
        }
    }

    /// Tells the epoll instances that watch a socket.
    pub(crate) fn tell_watches(&mut self, socket: &File, wake: u32) {
        let is_meant = |file: &File| match (file, socket) {
            (File::Socket(at), File::Socket(index))
            | (File::Datagrams(at), File::Datagrams(index)) => at == index,
            _ => false,
        };
        let told: Vec<i32> =
            self.files.iter().filter(|(_, d)| is_meant(&d.file)).map(|(&fd, _)| fd).collect();
        let all = wake & (poll::HUP | poll::RDHUP) != 0;
        for descriptor in self.files.values_mut() {
            if let File::Epoll(watches) = &mut descriptor.file {
                for watch in watches.iter_mut().filter(|w| told.contains(&w.fd)) {
                    let asked = watch.events | poll::ERR | poll::HUP;
                    watch.ready |= all || wake & asked != 0;
                }
            }
        }
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Us> {
        let requests = self.sockets.iter().flat_map(|s| s.requests.iter().map(|r| r.deadline));
        self.sockets.iter().filter_map(|s| s.tcp.deadline()).chain(requests).min()
    }

    /// Acts on every deadline up to `now`.
    pub fn advance(&mut self, now: Us) {
        for index in 0..self.sockets.len() {
            if self.sockets[index].tcp.deadline().is_some_and(|at| at <= now) {
                with!(self, now, index, |socket, env| socket.tcp.on_time(&env));
            }
            self.advance_requests(now, index);
        }
    }

    fn advance_requests(&mut self, now: Us, listener: usize) {
        let mut at = 0;
        while at < self.sockets[listener].requests.len() {
            let env = Env { now, sysctls: &self.sysctls, route: &self.route };
            let most = self.sysctls.of("tcp_synack_retries") as u32;
            let defer = self.sockets[listener].tcp.opt.defer_accept;
            let set = self.sockets[listener].tcp.opt.syn_retries;
            let request = &mut self.sockets[listener].requests[at];
            if request.deadline > now {
                at += 1;
                continue;
            }
            let most = if set > 0 { set } else { most };
            let most = if request.tcp.open.acked { most.max(defer) } else { most };
            if request.cookie || request.timeouts >= most {
                if !request.cookie {
                    self.mibs.count(Mib::TCPTimeouts);
                }
                self.sockets[listener].requests.remove(at);
                continue;
            }
            self.mibs.count(Mib::TCPTimeouts);
            request.timeouts += 1;
            request.wait(now);
            let silent = request.tcp.open.acked && request.timeouts < defer;
            if !silent {
                request.tcp.snd.paths += 1;
                request.tcp.rec.total_retrans += 1;
                let answer = request.answer_again(&env);
                self.mibs.take(&mut request.tcp);
                self.wire.push_back((now, answer));
                let tcp = &mut self.sockets[listener].tcp;
                if tcp.open.early {
                    tcp.rec.total_retrans += 1;
                    tcp.rec.retransmits += 1;
                }
            }
            at += 1;
        }
    }

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
        let Some(index) = self.connection(local, remote) else { return };
        if !self.sockets[index].tcp.is_out(seq) {
            self.mibs.count(Mib::OutOfWindowIcmps);
            return;
        }
        with!(self, now, index, |socket, env| socket.tcp.on_unreachable(&env, seq, error));
    }

    /// Drops what nothing can reach any more.
    pub fn is_quiet(&self) -> bool {
        self.wire.is_empty()
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
