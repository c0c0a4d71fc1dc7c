//! The file whose chunks are going: read, hashed and put into blocks piece by piece.

use acklab_core::ranges::RangeSet;

use crate::transfer::chunk::{CHUNK, ChunkHasher, Tree, Value, Values, chunk_len, chunks, zeros};
use crate::transfer::record::Record;
use crate::transfer::source::Source;
use crate::transfer::walk::Facts;

/// Bytes that are read, hashed and given to the connection at once: large enough that BLAKE3 works on
/// all lanes and a system call costs little, small enough to stay in the processor's cache.
pub const BLOCK: usize = 256 << 10;

/// Pieces of so many bytes are hashed at full speed.
const SUBTREE: usize = 64 << 10;
/// Bytes of records in front of a piece that do not make it smaller.
const HEADERS: usize = 8 << 10;

/// The file whose chunks are going.
pub(super) struct Current {
    index: u64,
    source: Source,
    /// What it was when it was named.
    facts: Facts,
    todo: RangeSet,
    holes: RangeSet,
    chunk: Option<Piecewise>,
    values: Values,
    tree: Tree,
    /// Why it must be dropped.
    failed: Option<String>,
    changed: bool,
}

/// A chunk that is partly sent.
struct Piecewise {
    number: u64,
    len: u64,
    at: u64,
    hasher: ChunkHasher,
}

impl Current {
    pub(super) fn new(
        index: u64,
        source: Source,
        facts: Facts,
        todo: RangeSet,
        holes: RangeSet,
    ) -> Self {
        let changed = !source.is_still(&facts);
        let (values, tree) = (Values::default(), Tree::default());
        let (chunk, failed) = (None, None);
        Self { index, source, facts, todo, holes, chunk, values, tree, failed, changed }
    }

    pub(super) const fn index(&self) -> u64 {
        self.index
    }

    /// Whether the bytes of a chunk are on their way, between which nothing else may stand.
    pub(super) const fn is_within_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// Whether what was read is not the file that was named.
    pub(super) const fn is_spoilt(&self) -> bool {
        self.changed || self.failed.is_some()
    }

    /// Why it cannot be read, if it cannot.
    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Begins the next chunk that is wanted; false: all have gone.
    pub(super) fn begin(&mut self, block: &mut Vec<u8>) -> bool {
        let Some(number) = self.todo.first().map(|range| range.start) else { return false };
        self.todo.remove(number..number + 1);
        let len = chunk_len(self.facts.size, number);
        Record::Chunk { index: self.index, chunk: number, len }.put(block);
        let hasher = ChunkHasher::new(number);
        self.chunk = Some(Piecewise { number, len, at: 0, hasher });
        true
    }

    /// Reads and hashes the next piece of the chunk; returns its length.
    pub(super) fn piece(&mut self, block: &mut Vec<u8>, limit: usize) -> u64 {
        let Some(mut chunk) = self.chunk.take() else { return 0 };
        // A whole number of BLAKE3's larger subtrees, where there is room for one; the headers come on top.
        let whole = limit - limit % SUBTREE;
        let room = if block.len() < HEADERS && whole > 0 {
            whole
        } else {
            limit.saturating_sub(block.len()).max(1024)
        };
        let len = room.min((chunk.len - chunk.at) as usize);
        if block.is_empty() || block.capacity() - block.len() < len {
            // Room for the value and the next records too, so that the block is not moved again.
            block.reserve(len + 1024);
        }
        let start = block.len();
        match self.source.read(block, chunk.number * CHUNK + chunk.at, len) {
            Ok(read) => self.changed |= read < len,
            Err(error) => self.failed = Some(error.to_string()),
        }
        chunk.hasher.update(&block[start..]);
        chunk.at += len as u64;
        if chunk.at < chunk.len {
            self.chunk = Some(chunk);
        } else {
            let value = chunk.hasher.value(chunks(self.facts.size));
            block.extend_from_slice(&value);
            self.values.set(chunk.number, value);
        }
        len as u64
    }

    /// Hashes what was not sent, by one chunk; whether all values are known.
    pub(super) fn hash_rest(&mut self) -> bool {
        while self.tree.len() < chunks(self.facts.size) {
            let number = self.tree.len();
            if let Some(value) = self.values.of(number) {
                self.tree.push(value);
                continue;
            }
            let value = self.hash(number);
            self.tree.push(value);
            return false;
        }
        true
    }

    /// Ends the file, of which all values are known, with its ROOT; its hash, unless it has changed.
    pub(super) fn conclude(&mut self, block: &mut Vec<u8>) -> Option<Value> {
        self.changed |= !self.source.is_still(&self.facts);
        if self.changed {
            return None;
        }
        let (size, hash) = (self.facts.size, std::mem::take(&mut self.tree).root());
        Record::Root { index: self.index, size, hash }.put(block);
        Some(hash)
    }

    /// The value of a chunk that is not sent.
    fn hash(&mut self, number: u64) -> Value {
        let (len, count) = (chunk_len(self.facts.size, number), chunks(self.facts.size));
        if self.holes.contains(number) {
            return zeros(number, len, count);
        }
        let mut hasher = ChunkHasher::new(number);
        let mut buffer = Vec::with_capacity(BLOCK);
        for at in (0..len).step_by(BLOCK) {
            buffer.clear();
            let piece = (len - at).min(BLOCK as u64) as usize;
            match self.source.read(&mut buffer, number * CHUNK + at, piece) {
                Ok(read) => self.changed |= read < piece,
                Err(error) => self.failed = Some(error.to_string()),
            }
            hasher.update(&buffer);
        }
        hasher.value(count)
    }
}
