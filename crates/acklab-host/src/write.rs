//! What a program writes: cut into pieces, pushed; and how it ends a connection.

use crate::errno;
use crate::mib::Mib;
use crate::output::{Pass, Push, SKB_OVERHEAD};
use crate::segment::{after, flag};
use crate::settings::{Env, SECOND};
use crate::skb::{Skb, Wishes};
use crate::tcp::{State, Tcp};

/// Parts of pages that one piece can hold (the kernel's `MAX_SKB_FRAGS`, 17 unless it was built otherwise).
const MOST_FRAGMENTS: u8 = 17;

/// Bytes of a page.
const PAGE: u32 = 4096;

/// Flags of one write.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the call")]
pub struct WriteFlags<'a> {
    /// MSG_MORE.
    pub more: bool,
    /// MSG_EOR.
    pub eor: bool,
    /// MSG_OOB.
    pub urgent: bool,
    /// MSG_ZEROCOPY.
    pub zero_copy: bool,
    /// What is left of each buffer of a vector that is sent without a copy; none: one buffer.
    pub buffers: &'a [u32],
    /// Stamps asked for, and the key of the last byte.
    pub stamps: u8,
    /// Key of the last byte.
    pub key: u32,
}

/// What is left of buffers of which `taken` bytes were sent.
pub fn rest_of(buffers: &[u32], taken: u32) -> Vec<u32> {
    let mut gone = taken;
    let left = buffers.iter().map(|len| {
        let used = gone.min(*len);
        gone -= used;
        len - used
    });
    left.filter(|len| *len > 0).collect()
}

impl<'a> WriteFlags<'a> {
    /// The pages of a write of `bytes` without a copy, one after the other.
    fn fragments(&self, bytes: u32) -> Option<Fragments<'a>> {
        self.zero_copy.then_some(match self.buffers {
            [] => Fragments { left: bytes, next: &[] },
            [first, next @ ..] => Fragments { left: *first, next },
        })
    }
}

/// Where a write without a copy is in its buffers: each lies in pages of its own.
struct Fragments<'a> {
    left: u32,
    next: &'a [u32],
}

impl Fragments<'_> {
    /// The next stretch within one page, at most `most` bytes.
    fn take(&mut self, most: u32) -> u32 {
        while let (0, [first, rest @ ..]) = (self.left, self.next) {
            (self.left, self.next) = (*first, rest);
        }
        // Buffers that hold less than was said: the rest lies in the last one.
        let here = if self.left == 0 { most } else { self.left };
        let take = here.min(PAGE).min(most);
        self.left = self.left.saturating_sub(take);
        take
    }
}

impl Tcp {
    /// Takes up to `bytes` of a message; returns how many found room. `done`: what of the message was taken
    /// before, by a call that then had to wait.
    pub fn write(&mut self, env: &Env<'_>, bytes: u32, flags: WriteFlags<'_>) -> u32 {
        let mss = self.current_mss();
        // Urgent data leaves packet by packet.
        let goal = if flags.urgent { mss } else { self.size_goal(env) };
        let mut copied = 0;
        let mut left = flags.fragments(bytes);
        self.note_app_limit();
        while copied < bytes {
            let is_full = left.is_some() && self.is_full_of_fragments();
            if is_full {
                self.mark_push();
            }
            if is_full || !self.has_open_tail(goal) {
                if !self.is_memory_free(env) {
                    self.wait_for_space(env, copied);
                    break;
                }
                self.begin_piece(env);
            }
            let tail_len = self.snd.queue.back().map_or(0, Skb::len);
            let mut take = goal.saturating_sub(tail_len).min(bytes - copied);
            if let Some(left) = &mut left {
                take = left.take(take);
            }
            // A page of the program's is held whole, whatever part of it is sent.
            let rest = if left.is_some() { PAGE - take } else { 0 };
            if let Some(tail) = self.snd.queue.back_mut() {
                tail.fragments += u8::from(left.is_some());
                tail.overhead += rest;
                if copied == 0 {
                    tail.flags &= !flag::PSH;
                }
                tail.end = tail.end.wrapping_add(take);
            }
            self.snd.write_seq = self.snd.write_seq.wrapping_add(take);
            self.snd.memory += take + rest;
            copied += take;
            if copied == bytes {
                if flags.eor
                    && let Some(tail) = self.snd.queue.back_mut()
                {
                    tail.eor = true;
                }
                break;
            }
            if flags.urgent || self.snd.queue.back().map_or(0, Skb::len) < goal {
                continue;
            }
            if self.is_push_due() {
                self.mark_push();
                self.push_pending(env, Push::Off);
            } else if self.snd.queue.len() == 1 {
                let push = self.usual_push();
                self.write_xmit(env, push, Pass::One);
            }
        }
        if copied > 0 {
            self.after_write(env, flags, mss);
        }
        copied
    }

    const fn usual_push(&self) -> Push {
        if self.opt.cork { Push::Cork } else { Push::Normal }
    }

    fn after_write(&mut self, env: &Env<'_>, flags: WriteFlags<'_>, _mss: u32) {
        if flags.stamps != 0
            && let Some(tail) = self.snd.queue.back_mut()
        {
            let seq = tail.end.wrapping_sub(1);
            tail.wishes = Some(Wishes { stamps: flags.stamps, key: flags.key, seq });
        }
        if flags.zero_copy {
            self.errors.begin_copyless(self.snd.write_seq);
        }
        if !flags.more || self.is_push_due() {
            self.mark_push();
        }
        if flags.urgent {
            self.snd.urgent = self.snd.write_seq;
        }
        let push = if flags.more { Push::Cork } else { self.usual_push() };
        self.push_pending(env, push);
    }

    fn is_full_of_fragments(&self) -> bool {
        self.snd.queue.back().is_some_and(|tail| tail.fragments >= MOST_FRAGMENTS)
    }

    /// The last piece can take more.
    fn has_open_tail(&self, goal: u32) -> bool {
        self.snd
            .queue
            .back()
            .is_some_and(|tail| !tail.eor && tail.flags & flag::FIN == 0 && tail.len() < goal)
    }

    fn begin_piece(&mut self, env: &Env<'_>) {
        let seq = self.snd.write_seq;
        let piece = Skb { seq, end: seq, overhead: SKB_OVERHEAD, ..Skb::default() };
        self.snd.memory += SKB_OVERHEAD;
        self.snd.queue.push_back(piece);
        self.opt.push = false;
        self.restart_after_idle(env);
    }

    /// Whether the send buffer has room for a piece.
    pub fn is_memory_free(&self, env: &Env<'_>) -> bool {
        self.snd.memory < self.opt.sndbuf && self.unsent_below(env, 0)
    }

    fn wait_for_space(&mut self, env: &Env<'_>, copied: u32) {
        self.snd.no_space = true;
        if copied > 0 {
            self.mark_push();
            let push = self.usual_push();
            self.push_pending(env, if push == Push::Cork { push } else { Push::Off });
        }
        // What ACKs bring may make room at once.
        if self.rec.ca == crate::tcp::CaState::Open && self.snd.queue.is_empty() {
            self.start_chrono(env, 2);
        }
    }

    /// Half of the largest window was written since the last push.
    fn is_push_due(&self) -> bool {
        let due = self.snd.pushed_seq.wrapping_add(self.snd.max_window >> 1);
        after(self.snd.write_seq, due)
    }

    fn mark_push(&mut self) {
        if let Some(tail) = self.snd.queue.back_mut() {
            tail.flags |= flag::PSH;
        }
        self.snd.pushed_seq = self.snd.write_seq;
    }

    /// The application is the limit where less than a packet waits and the window is open.
    fn note_app_limit(&mut self) {
        let waits = self.snd.write_seq.wrapping_sub(self.snd.nxt);
        if waits < self.snd.mss
            && self.in_flight() < self.window.cwnd
            && self.rec.lost <= self.rec.retrans
        {
            self.count.app_limited = (self.rec.delivered + self.in_flight()).max(1);
        }
    }

    /// A FIN follows what was written.
    pub fn send_fin(&mut self, env: &Env<'_>) {
        if let Some(tail) = self.snd.queue.back_mut() {
            tail.flags |= flag::FIN;
            tail.end = tail.end.wrapping_add(1);
        } else {
            let seq = self.snd.write_seq;
            let piece = Skb {
                seq,
                end: seq.wrapping_add(1),
                flags: flag::FIN,
                overhead: SKB_OVERHEAD,
                ..Skb::default()
            };
            self.snd.memory += SKB_OVERHEAD;
            self.snd.queue.push_back(piece);
        }
        self.snd.write_seq = self.snd.write_seq.wrapping_add(1);
        self.push_pending(env, Push::Off);
    }

    /// The state after our close; whether a FIN is due.
    fn close_state(&mut self) -> bool {
        let (next, fin) = match self.state {
            State::Established | State::SynRecv => (State::FinWait1, true),
            State::CloseWait => (State::LastAck, true),
            State::SynSent | State::Listen => (State::Close, false),
            other => (other, false),
        };
        self.state = next;
        fin
    }

    /// shutdown(2).
    pub fn shutdown(&mut self, env: &Env<'_>, read: bool, write: bool) -> Result<(), i32> {
        match self.state {
            State::Close | State::TimeWait | State::Listen => return Err(errno::ENOTCONN),
            _ => {}
        }
        self.fate.shut_read |= read;
        if write && !self.fate.shut_write {
            self.fate.shut_write = true;
            // Before the handshake is over the FIN waits for its end.
            if self.state != State::SynRecv && self.close_state() {
                self.send_fin(env);
            }
        }
        self.wake(crate::tcp::poll::IN | crate::tcp::poll::OUT);
        Ok(())
    }

    /// The handshake is over: a FIN that a shutdown asked for before leaves now.
    pub(crate) fn finish_shutdown(&mut self, env: &Env<'_>) {
        if self.fate.shut_write && self.close_state() {
            self.send_fin(env);
        }
    }

    /// The last descriptor was closed.
    pub fn close(&mut self, env: &Env<'_>) {
        self.fate.shut_read = true;
        self.fate.shut_write = true;
        let unread = self.unread();
        self.rcv.queue.clear();
        self.rcv.memory = 0;
        if self.state == State::Close {
            self.fate.gone = true;
            return;
        }
        self.fate.orphan = true;
        if unread > 0 {
            // RFC 2525 section 2.17: the peer is to know that its data was not read.
            if self.state != State::TimeWait {
                self.send_reset(env);
                self.tally(Mib::TCPAbortOnClose);
            }
            self.drop_all();
            self.done();
            return;
        }
        if self.opt.linger == Some(0) {
            self.abort(env);
            self.tally(Mib::TCPAbortOnData);
            return;
        }
        if self.close_state() {
            self.send_fin(env);
        }
        if self.state == State::Close {
            self.done();
            return;
        }
        if self.state == State::FinWait2 {
            if self.opt.linger2.is_some_and(|set| set < 0) {
                self.send_reset(env);
                self.done();
                self.tally(Mib::TCPAbortOnLinger);
                return;
            }
            let span = self.fin_time(env);
            if span > 60 * SECOND {
                self.timers.keepalive = Some(env.now + span - 60 * SECOND);
            } else {
                self.enter_fin_wait_2(env, span);
            }
        }
    }

    /// Ends the connection with an RST where the peer knows of it.
    pub fn abort(&mut self, env: &Env<'_>) {
        let known = matches!(
            self.state,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::FinWait2
                | State::SynRecv
        );
        if known {
            self.send_reset(env);
        }
        self.drop_all();
        self.done();
    }
}
