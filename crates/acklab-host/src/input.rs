//! Segment arrival, in the order of RFC 9293 section 3.10.7 with RFC 5961's and RFC 7323's checks.

use crate::ack::Verdict;
use crate::errno;
use crate::mib::Mib;
use crate::receive::QUICK;
use crate::segment::{Segment, after, before, flag};
use crate::settings::{Env, MS, SECOND, Us};
use crate::tcp::{State, Tcp, Urgent, UrgentByte, poll};

/// What the host does about a segment that a connection refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    None,
    /// It resets the sender.
    Reset,
}

const fn is_pure_ack(segment: &Segment) -> bool {
    segment.has(flag::ACK) && segment.end() == segment.seq
}

impl Tcp {
    /// Takes a segment for this connection.
    pub fn take(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        let packets = if segment.gso > 0 { segment.len.div_ceil(segment.gso) } else { 1 };
        self.count.segs_in += packets;
        if segment.len > 0 {
            self.count.data_segs_in += packets;
        }
        self.rcv.echo = segment.stamp().filter(|_| self.terms.stamps).map(|(_, echo)| echo);
        match self.state {
            State::Close | State::Listen => Answer::None,
            State::SynSent => self.take_in_syn_sent(env, segment),
            State::TimeWait => self.take_in_time_wait(env, segment),
            State::FinWait2 if self.timers.time_wait.is_some() => {
                self.take_in_fin_wait_2(env, segment)
            }
            _ => self.take_synchronised(env, segment),
        }
    }

    fn take_synchronised(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        if !segment.has(flag::ACK) && !segment.has(flag::RST) && !segment.has(flag::SYN) {
            return Answer::None;
        }
        if !self.is_valid(env, segment) {
            return Answer::None;
        }
        if self.state == State::Close {
            return Answer::None;
        }
        if self.is_accurate() && self.state == State::Established {
            self.count_marks(segment);
        }
        match self.take_ack(env, segment) {
            Verdict::Good => {}
            Verdict::Old => {
                if self.state == State::SynRecv {
                    return Answer::Reset;
                }
            }
            Verdict::TooOld | Verdict::Unsent => {
                if self.state == State::SynRecv {
                    return Answer::Reset;
                }
                self.challenge(env);
                return Answer::None;
            }
        }
        if self.advance_state(env, segment) == Answer::Reset {
            return Answer::Reset;
        }
        if self.state == State::Close || self.state == State::TimeWait {
            return Answer::None;
        }
        self.measure_rtt_by_stamp(env, segment);
        self.take_urgent(env, segment);
        match self.take_payload(env, segment) {
            Answer::None => {}
            Answer::Reset => return Answer::Reset,
        }
        if self.state == State::Close || self.state == State::TimeWait {
            return Answer::None;
        }
        self.push_more(env);
        self.note_space(env);
        self.check_ack(env, true);
        Answer::None
    }

    /// Whether an urgent byte has come and was not read.
    pub(crate) fn has_urgent_byte(&self) -> bool {
        self.rcv.urgent.is_some_and(|urgent| urgent.byte == UrgentByte::Here)
    }

    /// An urgent pointer beyond all that was heard announces a byte; the segment that has it brings it.
    fn take_urgent(&mut self, env: &Env<'_>, segment: &Segment) {
        if segment.has(flag::URG) {
            self.announce_urgent(env, segment);
        }
        let Some(urgent) = &mut self.rcv.urgent else { return };
        let distance = urgent.at.wrapping_sub(segment.seq);
        if urgent.byte == UrgentByte::Announced && distance < segment.len {
            urgent.byte = UrgentByte::Here;
            self.wake(poll::PRI);
        }
    }

    fn announce_urgent(&mut self, env: &Env<'_>, segment: &Segment) {
        // The pointer of most stacks is one beyond the byte (RFC 6093 section 3.1).
        let beyond = !env.sysctls.is_on("tcp_stdurg");
        let pointer = u32::from(segment.urgent);
        let at = segment.seq.wrapping_add(pointer.saturating_sub(u32::from(beyond)));
        let known = self.rcv.urgent.is_some_and(|urgent| !after(at, urgent.at));
        if before(at, self.rcv.copied) || before(at, self.rcv.nxt) || known {
            return;
        }
        if self.rcv.urgent.is_some_and(|urgent| urgent.at == self.rcv.copied)
            && self.rcv.copied != self.rcv.nxt
        {
            // The byte before it was passed over.
            self.rcv.copied = self.rcv.copied.wrapping_add(1);
            let copied = self.rcv.copied;
            if let Some(chunk) = self.rcv.queue.pop_front_if(|chunk| !before(copied, chunk.end)) {
                self.rcv.memory = self.rcv.memory.saturating_sub(chunk.truesize);
            }
        }
        self.rcv.urgent = Some(Urgent { at, byte: UrgentByte::Announced });
    }

    fn take_payload(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        match self.state {
            State::CloseWait | State::Closing | State::LastAck
                if !before(segment.seq, self.rcv.nxt) =>
            {
                Answer::None
            }
            State::CloseWait
            | State::Closing
            | State::LastAck
            | State::FinWait1
            | State::FinWait2
                if self.fate.orphan || self.fate.shut_read =>
            {
                let fin = u32::from(segment.has(flag::FIN));
                let data_end = segment.end().wrapping_sub(fin);
                // Nobody is left to read it.
                if segment.len > 0 && after(data_end, self.rcv.nxt) {
                    self.fail_on_data(env);
                    return Answer::Reset;
                }
                self.take_data(env, segment);
                Answer::None
            }
            _ => {
                self.take_data(env, segment);
                Answer::None
            }
        }
    }

    fn fail_on_data(&mut self, _env: &Env<'_>) {
        let closed = self.state == State::CloseWait;
        self.fate.error = if closed { errno::EPIPE } else { errno::ECONNRESET };
        self.drop_all();
        self.wake(poll::ERR);
        self.done();
        self.tally(Mib::TCPAbortOnData);
    }

    /// What the ACK means for the state.
    fn advance_state(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        let fin_acked = self.has_sent_fin() && self.snd.una == self.snd.write_seq;
        match self.state {
            State::SynRecv => {
                self.establish(env, segment);
                self.finish_shutdown(env);
            }
            State::FinWait1 if fin_acked => {
                self.state = State::FinWait2;
                self.fate.shut_write = true;
                if self.fate.orphan {
                    return self.after_fin_wait(env, segment);
                }
                self.wake(poll::OUT | poll::WRNORM);
            }
            State::Closing if fin_acked => {
                self.enter_time_wait(env, 60 * SECOND);
            }
            State::LastAck if fin_acked => {
                self.done();
                self.fate.gone = self.fate.orphan;
            }
            _ => {}
        }
        Answer::None
    }

    fn after_fin_wait(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        if self.opt.linger2.is_some_and(|set| set < 0) {
            self.done();
            self.tally(Mib::TCPAbortOnData);
            return Answer::None;
        }
        let fin = u32::from(segment.has(flag::FIN));
        if segment.end() != segment.seq && after(segment.end().wrapping_sub(fin), self.rcv.nxt) {
            self.done();
            self.tally(Mib::TCPAbortOnData);
            return Answer::Reset;
        }
        let span = self.fin_time(env);
        if span > 60 * SECOND {
            self.timers.keepalive = Some(env.now + span - 60 * SECOND);
        } else if fin == 0 {
            self.enter_fin_wait_2(env, span);
        }
        Answer::None
    }

    /// FIN-WAIT-2 without a descriptor: a stub that answers until its time is over.
    pub fn enter_fin_wait_2(&mut self, env: &Env<'_>, span: Us) {
        self.tally_wait(span);
        self.timers = crate::tcp::Timers::default();
        self.timers.time_wait = Some(env.now + span);
        self.open.early = false;
    }

    /// Whether our FIN left.
    pub fn has_sent_fin(&self) -> bool {
        matches!(
            self.state,
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
        ) && self.snd.queue.is_empty()
            && self.snd.nxt == self.snd.write_seq
    }

    /// The checks before the ACK field; answers what is refused.
    fn is_valid(&mut self, env: &Env<'_>, segment: &Segment) -> bool {
        let reset = segment.has(flag::RST);
        if self.is_too_old(env, segment) && !reset {
            if segment.has(flag::SYN) {
                self.tally(Mib::TCPSYNChallenge);
                self.challenge(env);
            } else if is_pure_ack(segment) && before(segment.seq, self.rcv.nxt) {
                // ACKs that data overtook are common; nobody has to know.
                self.tally(Mib::PAWSOldAck);
            } else {
                self.tally(Mib::PAWSEstab);
                if !self.is_answered_lately(env, segment, Mib::TCPACKSkippedPAWS) {
                    self.send_duplicate(env, segment);
                }
            }
            return false;
        }
        if !self.is_in_window(segment) {
            if !reset {
                if segment.has(flag::SYN) {
                    self.challenge_syn(env, segment);
                } else {
                    if !before(segment.end(), self.rcv.wup) {
                        self.tally(Mib::BeyondWindow);
                    }
                    if !self.is_answered_lately(env, segment, Mib::TCPACKSkippedSeq) {
                        self.send_duplicate(env, segment);
                    }
                }
            } else if self.is_reset_after_fin(segment) {
                self.on_reset();
            }
            return false;
        }
        if reset {
            self.take_reset(env, segment);
            return false;
        }
        if segment.has(flag::SYN) {
            let crossed = self.state == State::SynRecv
                && !self.open.passive
                && segment.has(flag::ACK)
                && segment.seq.wrapping_add(1) == self.rcv.nxt;
            if !crossed {
                self.challenge_syn(env, segment);
                return false;
            }
        }
        true
    }

    /// PAWS (RFC 7323 section 5.3). A pure ACK that was overtaken within a time-out is no old duplicate.
    fn is_too_old(&self, env: &Env<'_>, segment: &Segment) -> bool {
        let Some((value, _)) = segment.stamp().filter(|_| self.terms.stamps) else { return false };
        let Some((recent, at)) = self.rcv.recent else { return false };
        // One tick of slack: segments of one instant may overtake each other.
        if recent == 0
            || !after(recent, value.wrapping_add(1))
            || env.now.saturating_sub(at) >= 24 * 86_400 * SECOND
        {
            return false;
        }
        let window = u32::from(segment.window) << self.terms.send_scale;
        let updates = after(segment.ack, self.snd.una)
            || after(segment.seq, self.snd.wl1)
            || (segment.seq == self.snd.wl1 && window > self.snd.wnd);
        // How long ACKs may be overtaken: 1.2 time-outs.
        let replay = self.rtt.rto * 12 / 10;
        let disordered = segment.seq == self.rcv.nxt
            && is_pure_ack(segment)
            && segment.ack == self.snd.una
            && !updates
            && Us::from(recent.wrapping_sub(value)) * MS <= replay;
        !disordered
    }

    fn is_in_window(&self, segment: &Segment) -> bool {
        let edge = self.rcv.nxt.wrapping_add(self.receive_window());
        if before(segment.end(), self.rcv.wup) || after(segment.seq, edge) {
            return false;
        }
        // Data beyond the edge is taken only where nothing waits to be read.
        !(after(segment.end(), edge) && segment.end() != segment.seq && !self.rcv.queue.is_empty())
    }

    /// After the peer's FIN some stacks reset with the number of the FIN.
    fn is_reset_after_fin(&self, segment: &Segment) -> bool {
        segment.seq == self.rcv.nxt.wrapping_sub(1)
            && matches!(self.state, State::CloseWait | State::LastAck | State::Closing)
    }

    /// RFC 5961 section 3.2.
    fn take_reset(&mut self, env: &Env<'_>, segment: &Segment) {
        let exact = segment.seq == self.rcv.nxt || self.is_reset_after_fin(segment);
        let at_hole = self.terms.sack && {
            let mut top = None;
            for &(_, right) in &self.rcv.sacks {
                if top.is_none_or(|t| after(right, t)) {
                    top = Some(right);
                }
            }
            top == Some(segment.seq)
        };
        if exact || at_hole {
            self.on_reset();
        } else {
            self.challenge(env);
        }
    }

    /// The peer reset the connection.
    pub fn on_reset(&mut self) {
        if self.open.early {
            // The request ends, and the connection.
            self.tally(Mib::AttemptFails);
        }
        let error = match self.state {
            State::SynSent => errno::ECONNREFUSED,
            State::CloseWait => errno::EPIPE,
            State::Close => return,
            _ => errno::ECONNRESET,
        };
        self.fail(error);
    }

    /// Whether an answer to a segment without data left within the last half second (RFC 5961 section 7).
    pub fn is_answered_lately(&mut self, env: &Env<'_>, segment: &Segment, mib: Mib) -> bool {
        if segment.end() != segment.seq && !segment.has(flag::SYN) {
            return false;
        }
        self.is_limited(env, mib)
    }

    fn is_limited(&mut self, env: &Env<'_>, mib: Mib) -> bool {
        let interval = env.sysctls.of("tcp_invalid_ratelimit") as Us * MS;
        let limited = self.rcv.oow_answered.is_some_and(|at| env.now.saturating_sub(at) < interval);
        if limited {
            self.tally(mib);
        } else {
            self.rcv.oow_answered = Some(env.now);
        }
        limited
    }

    /// A challenge ACK (RFC 5961).
    pub fn challenge(&mut self, env: &Env<'_>) {
        if !self.is_limited(env, Mib::TCPACKSkippedChallenge) {
            self.tally(Mib::TCPChallengeACK);
            self.send_ack(env);
        }
    }

    /// A SYN where there is a connection: the challenge tells how it was marked.
    fn challenge_syn(&mut self, env: &Env<'_>, segment: &Segment) {
        self.ecn.accurate.hear_syn(segment.ecn);
        self.ecn.accurate.see(segment);
        self.tally(Mib::TCPSYNChallenge);
        if !self.is_limited(env, Mib::TCPACKSkippedChallenge) {
            self.tally(Mib::TCPChallengeACK);
            self.send_reflecting_ack(env);
        }
    }

    /// Answers what is outside of the window; data that came before is reported by DSACK.
    fn send_duplicate(&mut self, env: &Env<'_>, segment: &Segment) {
        if segment.end() != segment.seq && before(segment.seq, self.rcv.nxt) {
            self.suspect_option(segment.seq);
            self.tally(Mib::DelayedACKLost);
            self.enter_quick(QUICK);
            let end = segment.end();
            let end = if after(segment.end(), self.rcv.nxt) { self.rcv.nxt } else { end };
            self.set_dsack(env, segment.seq, end);
        }
        self.send_ack(env);
    }
}
