//! A stretch of a stream whose bytes exist: TCP in virtual time knows their places alone.

use std::collections::VecDeque;
use std::ops::Range;

/// The bytes of a stream from `start` on, as far as they are kept. Places count from the stream's first
/// byte.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    start: u64,
    ring: VecDeque<u8>,
}

impl Bytes {
    /// After the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.ring.len() as u64
    }

    /// Adds bytes behind the last.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.ring.extend(bytes);
    }

    /// Puts bytes at a place, beyond a gap or into one. What was released is left out.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) {
        if at == self.end() {
            return self.append(bytes);
        }
        let released = self.start.saturating_sub(at).min(bytes.len() as u64) as usize;
        let bytes = &bytes[released..];
        let from = at.max(self.start).saturating_sub(self.start) as usize;
        if self.ring.len() < from + bytes.len() {
            self.ring.resize(from + bytes.len(), 0);
        }
        let (first, second) = self.ring.as_mut_slices();
        let middle = first.len();
        let (head, tail) = bytes.split_at(middle.saturating_sub(from).min(bytes.len()));
        first[from.min(middle)..][..head.len()].copy_from_slice(head);
        if !tail.is_empty() {
            second[from.saturating_sub(middle)..][..tail.len()].copy_from_slice(tail);
        }
    }

    /// The bytes at these places, as far as they are here, as the two halves of a ring.
    pub(super) fn at(&self, places: Range<u64>) -> [&[u8]; 2] {
        let index = |place: u64| (place.clamp(self.start, self.end()) - self.start) as usize;
        let (from, to) = (index(places.start), index(places.end));
        let (first, second) = self.ring.as_slices();
        let middle = first.len();
        let cut = |at: usize| (at.min(middle), at.saturating_sub(middle));
        let ((from_first, from_second), (to_first, to_second)) = (cut(from), cut(to.max(from)));
        [&first[from_first..to_first], &second[from_second..to_second]]
    }

    /// Keeps nothing below `until` any more.
    pub(super) fn release(&mut self, until: u64) {
        let released = until.saturating_sub(self.start).min(self.ring.len() as u64);
        self.ring.drain(..released as usize);
        self.start += released;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(place: u64) -> u8 {
        (place * 7 % 251) as u8
    }

    fn stretch(places: Range<u64>) -> Vec<u8> {
        places.map(byte).collect()
    }

    #[test]
    fn bytes_are_where_they_were_put_whatever_the_order() {
        let mut kept = Bytes::default();
        let (mut low, mut round) = (0, 0_u64);
        // Blocks of 100 in an order that changes, released as they are read: the ring wraps often.
        while low < 100_000 {
            let blocks: Vec<u64> = (0..5).map(|n| (n * 3 + round) % 5).collect();
            for block in blocks {
                let at = low + block * 100;
                kept.put(at, &stretch(at..at + 100));
                // Twice, and across what is there already.
                kept.put(at + 50, &stretch(at + 50..at + 100));
            }
            assert_eq!(kept.at(low..low + 500).concat(), stretch(low..low + 500));
            assert_eq!(kept.at(low + 130..low + 377).concat(), stretch(low + 130..low + 377));
            low += 450;
            kept.release(low);
            // What was released is not wanted any more.
            kept.put(low - 20, &stretch(low - 20..low + 10));
            assert_eq!(kept.at(low..low + 50).concat(), stretch(low..low + 50));
            round += 1;
        }
        assert_eq!(kept.end(), low + 50);
        assert!(kept.at(low + 50..low + 60).concat().is_empty());
    }

    #[test]
    fn what_is_appended_follows() {
        let mut kept = Bytes::default();
        kept.append(b"abc");
        kept.append(b"def");
        kept.release(2);
        assert_eq!(kept.at(2..5).concat(), b"cde");
        assert_eq!(kept.at(0..u64::MAX).concat(), b"cdef");
    }
}
