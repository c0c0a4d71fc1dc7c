//! A receive buffer that is full: what is copied together, what goes, what is refused.

use std::collections::VecDeque;

use crate::mib::Mib;
use crate::segment::{after, before};
use crate::settings::Env;
use crate::tcp::{Chunk, Tcp};
use crate::window::{PAGE_DATA, copied_size};

impl Tcp {
    /// Whether memory is left for a packet that begins at `seq`; where it is not, a buffer without a limit of the
    /// program's grows, the window stays small, and what came out of order behind the packet goes.
    pub(crate) fn has_memory(&mut self, env: &Env<'_>, seq: u32) -> bool {
        if self.allocated() <= self.rcv.buffer {
            return true;
        }
        self.tally(Mib::PruneCalled);
        self.ack.quick = 0;
        let most = env.sysctls.nth("tcp_rmem", 2) as u32;
        if self.rcv.buffer < most && !self.opt.rcvbuf_locked {
            self.rcv.buffer = self.allocated().min(most);
        }
        if self.allocated() <= self.rcv.buffer {
            return true;
        }
        self.rcv.ssthresh = self.rcv.clamp.min(2 * self.terms.advmss);
        self.copy_small_ones();
        if self.allocated() > self.rcv.buffer {
            self.prune(seq);
        }
        let fits = self.allocated() <= self.rcv.buffer;
        if !fits {
            self.tally(Mib::RcvPruned);
        }
        fits
    }

    /// What came out of order last goes, an eighth of the buffer at a time, unless the packet at `seq` would be the last.
    fn prune(&mut self, seq: u32) {
        let part = i64::from(self.rcv.buffer >> 3);
        let (mut goal, mut pruned) = (part, false);
        while let Some(last) = self.rcv.ooo.last().copied() {
            if after(seq, last.seq) {
                break;
            }
            pruned = true;
            self.rcv.ooo.pop();
            self.rcv.memory = self.rcv.memory.saturating_sub(last.truesize);
            goal -= i64::from(last.truesize);
            if goal <= 0 {
                if self.allocated() <= self.rcv.buffer {
                    break;
                }
                goal = part;
            }
        }
        if pruned {
            self.tally(Mib::OfoPruned);
            self.rcv.sacks.clear();
        }
    }

    /// Packets that take much more memory than they hold are copied together: those in order, and each run of those
    /// behind gaps that is worth a page.
    fn copy_small_ones(&mut self) {
        let ratio = self.rcv.ratio;
        let mut runs: Vec<Vec<Chunk>> = Vec::new();
        for chunk in std::mem::take(&mut self.rcv.ooo) {
            match runs.last_mut().filter(|run| run.last().is_some_and(|l| !after(chunk.seq, l.end)))
            {
                Some(run) => run.push(chunk),
                None => runs.push(vec![chunk]),
            }
        }
        for run in runs {
            let bytes = run.last().map_or(0, |l| l.end).wrapping_sub(run[0].seq);
            let worth = bytes >= PAGE_DATA;
            let start = run[0].seq;
            let run = if worth { self.copy_together(run, start, ratio) } else { run };
            self.rcv.ooo.extend(run);
        }
        let queue = std::mem::take(&mut self.rcv.queue);
        self.rcv.queue = self.copy_together(queue.into(), self.rcv.copied, ratio).into();
    }

    /// The same bytes from `start` on in buffers of a page, from the first one on that takes too much.
    fn copy_together(&mut self, mut chunks: Vec<Chunk>, start: u32, ratio: u32) -> Vec<Chunk> {
        let is_bloated = |chunk: &Chunk| {
            let worth = (u64::from(chunk.truesize) * u64::from(ratio)) >> 8;
            worth > u64::from(chunk.end.wrapping_sub(chunk.seq)) || before(chunk.seq, start)
        };
        let Some(first) = chunks.iter().position(is_bloated) else { return chunks };
        let rest: VecDeque<Chunk> = chunks.split_off(first).into();
        let (Some(head), Some(last)) = (rest.front(), rest.back()) else { return chunks };
        let mut at = if before(head.seq, start) { start } else { head.seq };
        let end = last.end;
        for chunk in &rest {
            self.rcv.memory = self.rcv.memory.saturating_sub(chunk.truesize);
        }
        while before(at, end) {
            let bytes = end.wrapping_sub(at).min(PAGE_DATA);
            let (truesize, room) = copied_size(bytes);
            chunks.push(Chunk { seq: at, end: at.wrapping_add(bytes), truesize, room });
            self.rcv.memory += truesize;
            at = at.wrapping_add(bytes);
        }
        chunks
    }
}
