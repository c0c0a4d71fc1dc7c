//! SACK blocks (RFC 2018) and DSACK (RFC 2883): what the peer holds, and what it got twice.

use crate::ack::Ages;
use crate::loss::Heard;
use crate::mib::Mib;
use crate::segment::{Segment, after, before};
use crate::settings::Env;
use crate::tcp::{CaState, Tcp};

impl Tcp {
    /// SACK blocks (RFC 2018, RFC 2883).
    pub(crate) fn take_sack(
        &mut self,
        env: &Env<'_>,
        segment: &Segment,
        prior_una: u32,
        heard: &mut Heard,
        ages: &mut Ages,
    ) {
        let blocks = segment.sack().to_vec();
        let ack = segment.ack;
        let highest = self.highest_sacked();
        let first = blocks[0];
        let is_dsack = (before(first.0, ack)
            || blocks.get(1).is_some_and(|b| !after(b.0, first.0) && !before(b.1, first.1)))
            && self.take_dsack(first, before(first.0, ack), prior_una, heard);
        if before(ack, prior_una.wrapping_sub(self.snd.max_window)) || self.snd.out.is_empty() {
            return;
        }
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let dup = index == 0 && is_dsack;
            if !self.is_sack_valid(dup, left, right) {
                self.tally_discarded(ack, dup, right);
                continue;
            }
            if !after(right, self.snd.una) && !dup {
                continue;
            }
            self.mark_sacked(env, (left, right), dup, highest, heard, ages);
        }
        if let Some(low) = ages.late()
            && (self.rec.ca != CaState::Loss || self.rec.undo_marker.is_some())
        {
            self.note_reordering(low, Mib::TCPSACKReorder);
        }
    }

    fn tally_discarded(&mut self, ack: u32, dup: bool, right: u32) {
        let mib = match (dup, self.rec.undo_marker) {
            (true, None) => Mib::TCPDSACKIgnoredNoUndo,
            (true, Some(_)) => Mib::TCPDSACKIgnoredOld,
            // ACKs that overtook each other bring old blocks.
            (false, _) if ack != self.snd.una && !after(right, self.snd.una) => return,
            (false, _) => Mib::TCPSACKDiscard,
        };
        self.tally(mib);
    }

    /// A block that reports a duplicate; returns whether it is to be believed: there are no more of them than
    /// retransmissions.
    fn take_dsack(
        &mut self,
        block: (u32, u32),
        old: bool,
        prior_una: u32,
        heard: &mut Heard,
    ) -> bool {
        self.tally(if old { Mib::TCPDSACKRecv } else { Mib::TCPDSACKOfoRecv });
        let bytes = block.1.wrapping_sub(block.0);
        if !before(block.0, block.1) || bytes > self.snd.max_window.max(1) {
            self.tally(Mib::TCPDSACKIgnoredDubious);
            return false;
        }
        let packets = if bytes > self.snd.mss { bytes.div_ceil(self.snd.mss) } else { 1 };
        if self.rec.tlp_end == Some(block.1) && self.rec.tlp_retrans {
            heard.dsack_of_probe = true;
        }
        self.rec.dsack_dups += packets;
        if self.rec.dsack_dups > self.rec.total_retrans {
            self.tally(Mib::TCPDSACKIgnoredDubious);
            return false;
        }
        heard.dsack = true;
        self.tally_all(Mib::TCPDSACKRecvSegs, packets);
        // A needless retransmission was delivered, too.
        self.rec.delivered += packets;
        if self.rec.reord_seen > 0 && !heard.dsack_of_probe {
            self.rec.rack.dsack_seen = true;
        }
        // Of data that is no longer in the queue.
        if let Some(marker) = self.rec.undo_marker
            && self.rec.undo_retrans > 0
            && !after(block.1, prior_una)
            && after(block.1, marker)
        {
            self.rec.undo_retrans = (self.rec.undo_retrans - packets as i32).max(0);
        }
        true
    }

    /// Whether a block can be of what was sent.
    pub(crate) fn is_sack_valid(&self, dup: bool, left: u32, right: u32) -> bool {
        if after(right, self.snd.nxt) || !before(left, right) || !before(left, self.snd.nxt) {
            return false;
        }
        if after(left, self.snd.una) {
            return true;
        }
        let Some(marker) = self.rec.undo_marker.filter(|_| dup) else { return false };
        if after(right, self.snd.una) {
            return false;
        }
        !before(left, marker)
            || (after(right, marker) && !before(left, right.wrapping_sub(self.snd.max_window)))
    }

    /// After the highest packet SACKed; the oldest unacknowledged where none is.
    pub(crate) fn highest_sacked(&self) -> u32 {
        if self.rec.sacked == 0 {
            return self.snd.una;
        }
        let last = self.snd.out.iter().rposition(|skb| skb.marks.sacked);
        last.map_or(self.snd.una, |at| self.snd.out[at].end)
    }

    pub(crate) fn mark_sacked(
        &mut self,
        env: &Env<'_>,
        (left, right): (u32, u32),
        dup: bool,
        highest: u32,
        heard: &mut Heard,
        ages: &mut Ages,
    ) {
        let mut index = self.snd.out.partition_point(|skb| !after(skb.end, left));
        while index < self.snd.out.len() && before(self.snd.out[index].seq, right) {
            let skb = self.snd.out[index];
            // A block that ends within a packet says nothing of it.
            if before(skb.seq, left) || after(skb.end, right) {
                index += 1;
                continue;
            }
            if dup {
                if skb.marks.ever_retrans
                    && self.rec.undo_retrans > 0
                    && self.rec.undo_marker.is_some_and(|marker| after(skb.end, marker))
                {
                    self.rec.undo_retrans -= 1;
                }
                if skb.marks.sacked {
                    ages.note_reorder(skb.seq);
                }
            }
            if after(skb.end, self.snd.una) {
                self.mark_one(env, index, highest, heard, ages);
            }
            if dup && self.snd.out[index].marks.retrans {
                self.snd.out[index].marks.retrans = false;
                self.rec.retrans -= 1;
            }
            index += 1;
        }
    }

    pub(crate) fn mark_one(
        &mut self,
        env: &Env<'_>,
        index: usize,
        highest: u32,
        heard: &mut Heard,
        ages: &mut Ages,
    ) {
        let skb = self.snd.out[index];
        if skb.marks.sacked {
            return;
        }
        self.advance_rack(env, &skb);
        ages.note_rate(&skb);
        let marks = &mut self.snd.out[index].marks;
        if skb.marks.retrans {
            if skb.marks.lost {
                marks.lost = false;
                marks.retrans = false;
                self.rec.lost -= 1;
                self.rec.retrans -= 1;
            }
        } else {
            if !skb.marks.ever_retrans {
                if before(skb.seq, highest) {
                    ages.note_reorder(skb.seq);
                }
                if !after(skb.end, self.rec.high_seq) {
                    heard.original_delivered = true;
                }
                ages.note_sacked(skb.sent);
            }
            if skb.marks.lost {
                marks.lost = false;
                self.rec.lost -= 1;
            }
        }
        (marks.sacked, marks.judged) = (true, true);
        if skb.wishes.is_some() {
            // Packets in a row that the peer holds become one buffer, whose stamp is the last one's.
            let held =
                self.snd.out.range_mut(..index).rev().take_while(|before| before.marks.sacked);
            if let Some(earlier) = held.into_iter().find(|before| before.wishes.is_some()) {
                earlier.wishes = None;
            }
        }
        heard.sacked_data = true;
        self.rec.sacked += 1;
        self.rec.delivered += 1;
    }
}
