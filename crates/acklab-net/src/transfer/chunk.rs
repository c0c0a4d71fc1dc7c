//! Chunks of a file and their BLAKE3 values.
//!
//! A chunk is 1 MiB, a whole subtree of BLAKE3, so the values of the chunks merge to the plain BLAKE3
//! hash of the file (the BLAKE3 paper, section 2.1: the left subtree of a tree is the largest power of
//! two of its chunks). Whoever has both can check a file piece by piece and as a whole.

use acklab_core::ranges::RangeSet;
use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Bytes of a chunk; the last one of a file may be shorter.
pub const CHUNK: u64 = 1 << 20;
/// Largest number of chunks of one file: 16 TiB.
pub const CHUNKS_MAX: u64 = 1 << 24;

/// A hash or a chaining value.
pub type Value = [u8; 32];

/// How many chunks `size` bytes have.
pub fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK)
}

/// Bytes of chunk `number` of a file of `size` bytes.
pub fn chunk_len(size: u64, number: u64) -> u64 {
    size.saturating_sub(number * CHUNK).min(CHUNK)
}

/// The chunks below `end` that are in none of the sets.
pub fn outside<const N: usize>(end: u64, sets: [&RangeSet; N]) -> RangeSet {
    let mut rest = RangeSet::new();
    rest.insert(0..end);
    for range in sets.into_iter().flat_map(RangeSet::iter) {
        rest.remove(range);
    }
    rest
}

/// BLAKE3 of the bytes of one chunk.
pub struct ChunkHasher(Hasher);

impl ChunkHasher {
    /// For chunk `number` of its file.
    pub fn new(number: u64) -> Self {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(number * CHUNK);
        Self(hasher)
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The chunk's value in a file of `chunks`: of the only chunk the file's hash, else a chaining
    /// value.
    pub fn value(&self, chunks: u64) -> Value {
        if chunks == 1 { self.0.finalize().into() } else { self.0.finalize_non_root() }
    }
}

/// The value of a chunk of `len` zeros.
pub fn zeros(number: u64, len: u64, chunks: u64) -> Value {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut hasher = ChunkHasher::new(number);
    let mut left = len as usize;
    while left > 0 {
        let piece = left.min(ZEROS.len());
        hasher.update(&ZEROS[..piece]);
        left -= piece;
    }
    hasher.value(chunks)
}

/// Merges the values of a file's chunks, given in order, to its hash.
#[derive(Default)]
pub struct Tree {
    /// Roots of finished subtrees, of falling size.
    stack: Vec<Value>,
    /// The last value, which is merged when another one follows: the last merge is a special one.
    last: Option<Value>,
    merged: u64,
}

impl Tree {
    /// Takes the value of the next chunk.
    pub fn push(&mut self, value: Value) {
        let Some(mut left) = self.last.replace(value) else { return };
        self.merged += 1;
        let mut count = self.merged;
        while count & 1 == 0 {
            let Some(sibling) = self.stack.pop() else { break };
            left = merge_subtrees_non_root(&sibling, &left, Mode::Hash);
            count >>= 1;
        }
        self.stack.push(left);
    }

    /// How many values were taken.
    pub fn len(&self) -> u64 {
        self.merged + u64::from(self.last.is_some())
    }

    /// Whether none was taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file's hash.
    pub fn root(mut self) -> Value {
        let Some(mut value) = self.last else { return blake3::hash(&[]).into() };
        while let Some(left) = self.stack.pop() {
            if self.stack.is_empty() {
                return merge_subtrees_root(&left, &value, Mode::Hash).into();
            }
            value = merge_subtrees_non_root(&left, &value, Mode::Hash);
        }
        value
    }
}

/// Values by chunk number, small where they come in order.
#[derive(Debug, Default)]
pub struct Values(Vec<(u32, Value)>);

impl Values {
    pub fn set(&mut self, chunk: u64, value: Value) {
        let chunk = chunk as u32;
        match self.0.last() {
            Some(&(last, _)) if last >= chunk => {
                match self.0.binary_search_by_key(&chunk, |&(number, _)| number) {
                    Ok(at) => self.0[at].1 = value,
                    Err(at) => self.0.insert(at, (chunk, value)),
                }
            }
            _ => self.0.push((chunk, value)),
        }
    }

    /// The value of a chunk, if known.
    pub fn of(&self, chunk: u64) -> Option<Value> {
        let at = self.0.binary_search_by_key(&(chunk as u32), |&(number, _)| number).ok()?;
        Some(self.0[at].1)
    }

    /// Forgets those of these chunks, in one pass.
    pub fn forget(&mut self, chunks: &RangeSet) {
        let mut bad = chunks.iter().peekable();
        self.0.retain(|&(number, _)| {
            let number = u64::from(number);
            while bad.next_if(|range| range.end <= number).is_some() {}
            bad.peek().is_none_or(|range| number < range.start)
        });
    }

    /// All of them in the order of the chunks.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Value)> {
        self.0.iter().map(|&(chunk, value)| (u64::from(chunk), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    fn root_by_chunks(content: &[u8]) -> Value {
        let count = chunks(content.len() as u64);
        let mut tree = Tree::default();
        for (number, chunk) in content.chunks(CHUNK as usize).enumerate() {
            let mut hasher = ChunkHasher::new(number as u64);
            chunk.chunks(100_000).for_each(|piece| hasher.update(piece));
            tree.push(hasher.value(count));
        }
        assert_eq!(tree.len(), count);
        tree.root()
    }

    #[test]
    fn chunks_merge_to_the_plain_hash_of_the_file() {
        let mib = CHUNK as usize;
        for len in [0, 1, 1024, mib - 1, mib, mib + 1, 2 * mib, 3 * mib + 5, 4 * mib, 7 * mib - 1] {
            let content = bytes(len);
            assert_eq!(root_by_chunks(&content), *blake3::hash(&content).as_bytes(), "{len} bytes");
        }
    }

    #[test]
    fn a_hole_has_the_value_of_its_zeros() {
        let content = vec![0; 3 * CHUNK as usize - 9];
        let mut tree = Tree::default();
        for number in 0..3 {
            tree.push(zeros(number, chunk_len(content.len() as u64, number), 3));
        }
        assert_eq!(tree.root(), *blake3::hash(&content).as_bytes());
    }

    #[test]
    fn what_is_outside_of_two_sets_is_what_neither_holds() {
        let (mut held, mut holes) = (RangeSet::new(), RangeSet::new());
        held.insert(0..3);
        held.insert(10..12);
        holes.insert(2..5);
        assert_eq!(outside(20, [&held, &holes]).iter().collect::<Vec<_>>(), [5..10, 12..20]);
        assert_eq!(outside(2, [&held]).total() + outside(0, []).total(), 0);
    }

    #[test]
    fn values_are_kept_in_the_order_of_the_chunks_whatever_order_they_come_in() {
        let mut values = Values::default();
        for chunk in [3, 1, 7, 3, 0] {
            values.set(chunk, [chunk as u8 + 1; 32]);
        }
        let mut bad = RangeSet::new();
        bad.insert(7..8);
        values.forget(&bad);
        let order: Vec<u64> = values.iter().map(|(chunk, _)| chunk).collect();
        assert_eq!(order, [0, 1, 3]);
        assert_eq!(values.of(3), Some([4; 32]));
        assert_eq!(values.of(7), None);
    }

    #[test]
    fn what_is_forgotten_of_a_large_file_takes_one_pass() {
        let (mut values, mut bad) = (Values::default(), RangeSet::new());
        for chunk in 0..1_000_000 {
            values.set(chunk, [0; 32]);
        }
        for chunk in (0..1_000_000).step_by(3) {
            bad.insert(chunk..chunk + 1);
        }
        // A pass for each of them would be 10^11 steps, minutes.
        values.forget(&bad);
        assert_eq!(values.iter().count(), 666_666);
        assert!(values.iter().all(|(chunk, _)| chunk % 3 != 0));
    }
}
