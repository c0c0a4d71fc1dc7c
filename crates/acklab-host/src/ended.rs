//! What arrives after the end: TIME-WAIT (RFC 9293 section 3.10.7.4, RFC 1337), and FIN-WAIT-2 without a descriptor.

use crate::input::Answer;
use crate::mib::Mib;
use crate::segment::{Segment, after, before, flag};
use crate::settings::{Env, SECOND, Us};
use crate::tcp::{State, Tcp};

/// How long TIME-WAIT lasts.
const LENGTH: Us = 60 * SECOND;

impl Tcp {
    /// PAWS after the end: without a tick of slack. An old RST counts where nothing was heard for a minute.
    pub(crate) fn is_stale_after_end(&self, env: &Env<'_>, segment: &Segment) -> bool {
        let stamps = segment.stamp().filter(|_| self.terms.stamps).zip(self.rcv.recent);
        let Some(((value, _), (recent, at))) = stamps else { return false };
        let age = env.now.saturating_sub(at);
        recent != 0
            && before(value, recent)
            && age < 24 * 86_400 * SECOND
            && !(segment.has(flag::RST) && age >= LENGTH)
    }

    fn note_stamp(&mut self, env: &Env<'_>, segment: &Segment) {
        if let Some((value, _)) = segment.stamp().filter(|_| self.terms.stamps) {
            self.rcv.recent = Some((value, env.now));
        }
    }

    fn vanish(&mut self) {
        self.state = State::Close;
        self.timers = crate::tcp::Timers::default();
        self.fate.gone = true;
    }

    fn answer_outside(&mut self, env: &Env<'_>, segment: &Segment, mib: Mib) {
        if !self.is_answered_lately(env, segment, mib) {
            self.send_ack(env);
        }
    }

    /// TIME-WAIT.
    pub(crate) fn take_in_time_wait(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        let stale = self.is_stale_after_end(env, segment);
        let reset = segment.has(flag::RST);
        let expected = segment.seq == self.rcv.nxt && (segment.end() == segment.seq || reset);
        if expected && !stale {
            if reset && !env.sysctls.is_on("tcp_rfc1337") {
                self.vanish();
                return Answer::None;
            }
            if !reset {
                self.timers.time_wait = Some(env.now + LENGTH);
            }
            self.note_stamp(env, segment);
            return Answer::None;
        }
        if reset {
            return Answer::None;
        }
        if stale || segment.has(flag::ACK) {
            self.timers.time_wait = Some(env.now + LENGTH);
        }
        if stale {
            self.tally(Mib::PAWSTimewait);
        }
        self.answer_outside(env, segment, Mib::TCPACKSkippedTimeWait);
        Answer::None
    }

    /// FIN-WAIT-2 without a descriptor waits for a FIN: acknowledgments tell it nothing, and nobody would read data.
    pub(crate) fn take_in_fin_wait_2(&mut self, env: &Env<'_>, segment: &Segment) -> Answer {
        let (seq, end, nxt) = (segment.seq, segment.end(), self.rcv.nxt);
        let edge = nxt.wrapping_add(self.receive_window());
        let inside =
            seq == nxt || (after(end, nxt) && before(seq, edge)) || (seq == edge && seq == end);
        if self.is_stale_after_end(env, segment) || !inside {
            self.answer_outside(env, segment, Mib::TCPACKSkippedFinWait2);
            return Answer::None;
        }
        if segment.has(flag::RST) {
            self.vanish();
            return Answer::None;
        }
        if segment.has(flag::SYN) && !before(seq, nxt) {
            self.vanish();
            return Answer::Reset;
        }
        if !segment.has(flag::ACK) || !after(end, nxt) || seq == end {
            return Answer::None;
        }
        if !segment.has(flag::FIN) || end != nxt.wrapping_add(1) {
            self.vanish();
            return Answer::Reset;
        }
        self.rcv.nxt = end;
        self.note_stamp(env, segment);
        self.enter_time_wait(env, LENGTH);
        self.send_ack(env);
        Answer::None
    }
}
