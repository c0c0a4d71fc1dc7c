//! What comes to a listener: SYNs and their answers, cookies, fast open, requests until they are connections.

use crate::host::{Host, with};
use crate::input::Answer;
use crate::mib::Mib;
use crate::request::{Judgment, Request};
use crate::segment::{Segment, TcpOption, flag};
use crate::settings::{Env, SECOND, Us};
use crate::socket::Socket;
use crate::tcp::{State, poll};

impl Host {
    pub(crate) fn receive_as_listener(&mut self, now: Us, listener: usize, segment: &Segment) {
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
    pub(crate) fn receive_early(&mut self, now: Us, index: usize, segment: &Segment) -> bool {
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

    pub(crate) fn advance_requests(&mut self, now: Us, listener: usize) {
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
}
