//! [`ResultHash`]: one number that says whether two runs did the same.
//!
//! Every event that an observer chose to hash goes in as 64-bit words, its time first, so that a
//! packet that leaves a nanosecond later or a draw that came out otherwise changes the hash. The
//! function is FNV-1a widened to words with a final avalanche (SplitMix64's): ours, so that no
//! library's next version changes every golden value. It guards against accidents, not attacks.

use acklab_core::event::{Event, EventKind, FlowKey};

/// A hash over a sequence of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultHash(u64);

impl Default for ResultHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl ResultHash {
    /// Takes in one word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// Takes in what an event of the message or transport class says; queues and congestion
    /// samples are consequences of those, and are left out for speed.
    #[inline]
    pub fn event(&mut self, event: &Event) {
        let (tag, flow, value) = match event.kind {
            EventKind::MessageWritten { flow, id, bytes } => (1, flow, id << 32 | u64::from(bytes)),
            EventKind::MessageSent { flow, id, .. } => (2, flow, id),
            EventKind::MessageDelivered { flow, id } => (3, flow, id),
            EventKind::Held { flow, bytes } => (4, flow, u64::from(bytes)),
            EventKind::Released { flow, bytes, by, .. } => {
                (5, flow, u64::from(bytes) << 8 | by as u64)
            }
            EventKind::SegmentSent { flow, len, control, retransmission } => {
                let flags = u64::from(control) << 1 | u64::from(retransmission);
                (6, flow, u64::from(len) << 2 | flags)
            }
            EventKind::AckSent { flow, reason, delay } => {
                (7, flow, delay.as_nanos() << 8 | reason as u64)
            }
            EventKind::Loss { flow, timeout } => (8, flow, u64::from(timeout)),
            EventKind::App { node, code, value } => {
                self.word(event.time.as_nanos());
                self.word(9 << 56 | u64::from(node.0) << 32 | u64::from(code));
                self.word(value.to_bits());
                return;
            }
            EventKind::Congestion { .. }
            | EventKind::AckRate { .. }
            | EventKind::Queue { .. }
            | EventKind::Worked { .. }
            | EventKind::Dropped { .. }
            | EventKind::Copied { .. }
            | EventKind::Offered { .. }
            | EventKind::Served { .. }
            | EventKind::Marked { .. } => return,
        };
        self.word(event.time.as_nanos());
        self.word(tag << 56 ^ flow_word(flow));
        self.word(value);
    }

    /// The hash of what went in so far.
    pub fn finish(self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn flow_word(flow: FlowKey) -> u64 {
    u64::from(flow.local.node.0) << 40
        | u64::from(flow.local.port) << 24
        | u64::from(flow.remote.port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::time::Time;

    fn hash(words: &[u64]) -> u64 {
        let mut hash = ResultHash::default();
        for &word in words {
            hash.word(word);
        }
        hash.finish()
    }

    #[test]
    fn the_hash_matches_its_golden_vectors() {
        // Computed by an independent implementation (Python integers).
        assert_eq!(hash(&[]), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash(&[1, 2, 3]), 0x2598_c310_a7ce_49f7);
    }

    #[test]
    fn order_and_content_both_count() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[0]), hash(&[0, 0]));
    }

    #[test]
    fn an_event_a_nanosecond_later_hashes_otherwise() {
        let at = |nanos| {
            let kind = EventKind::MessageDelivered { flow: FlowKey::default(), id: 7 };
            let mut hash = ResultHash::default();
            hash.event(&Event { time: Time::from_nanos(nanos), kind });
            hash.finish()
        };
        assert_ne!(at(1), at(2));
        assert_eq!(at(1), at(1));
    }
}
