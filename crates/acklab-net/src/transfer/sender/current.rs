//! The file whose chunks are going: read, hashed and put into blocks piece by piece.

use super::BLOCK;
use crate::transfer::chunk::{CHUNK, ChunkHasher, Tree, Value, Values, chunk_len, chunks, zeros};
use crate::transfer::ranges::Ranges;
use crate::transfer::record::Record;
use crate::transfer::source::Source;

/// Pieces of so many bytes are hashed at full speed.
const SUBTREE: usize = 64 << 10;
/// Bytes of records in front of a piece that do not make it smaller.
const HEADERS: usize = 8 << 10;

/// The file whose chunks are going.
pub(super) struct Current {
    pub(super) index: u64,
    pub(super) source: Source,
    pub(super) size: u64,
    pub(super) todo: Ranges,
    pub(super) chunk: Option<Piecewise>,
    pub(super) values: Values,
    pub(super) tree: Tree,
    /// Why it must be dropped.
    pub(super) failed: Option<String>,
    pub(super) changed: bool,
}

/// A chunk that is partly sent.
pub(super) struct Piecewise {
    number: u64,
    len: u64,
    at: u64,
    hasher: ChunkHasher,
}

impl Current {
    pub(super) fn begin(&mut self, number: u64, block: &mut Vec<u8>) {
        self.todo.remove(number);
        let len = chunk_len(self.size, number);
        Record::Chunk { index: self.index, chunk: number, len }.put(block);
        let hasher = ChunkHasher::new(number);
        self.chunk = Some(Piecewise { number, len, at: 0, hasher });
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
            let value = chunk.hasher.value(chunks(self.size));
            block.extend_from_slice(&value);
            self.values.set(chunk.number, value);
        }
        len as u64
    }

    /// The value of a chunk that is not sent.
    pub(super) fn hash(&mut self, number: u64, holes: &Ranges) -> Value {
        let (len, count) = (chunk_len(self.size, number), chunks(self.size));
        if holes.contains(number) {
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
