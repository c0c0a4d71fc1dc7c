//! A stream of unknown length in place of a tree: standard input.
//!
//! It cannot be read twice: there is no resume, and what does not fit at the receiver is lost.

use super::ledger::{Ledger, Step};
use crate::transfer::chunk::{CHUNK, ChunkHasher, Tree, Value};
use crate::transfer::record::Record;
use crate::transfer::stdin::{Input, Poured};

pub(super) struct Stream {
    input: Input,
    name: Vec<u8>,
    /// Its entry, once named.
    index: Option<u64>,
    chunk: Option<(Vec<u8>, usize, ChunkHasher)>,
    tree: Tree,
    /// The hash of a stream that has no second chunk.
    whole: Option<Value>,
    size: u64,
    over: bool,
}

impl Stream {
    pub(super) fn new(input: Input, name: Vec<u8>) -> Self {
        let (index, chunk, tree, whole) = (None, None, Tree::default(), None);
        Self { input, name, index, chunk, tree, whole, size: 0, over: false }
    }

    /// Whether the bytes of a chunk are on their way, between which nothing else may stand.
    pub(super) const fn is_within_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// Whether nothing more of it will go.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// The next piece.
    pub(super) fn pour(&mut self, ledger: &mut Ledger, block: &mut Vec<u8>, limit: usize) -> Step {
        let Some(index) = self.index else {
            self.index = Some(ledger.name_stream(std::mem::take(&mut self.name), block));
            return Step::Wrote;
        };
        if let Some(chunk) = self.chunk.take() {
            ledger.count_sent(self.pour_chunk(chunk, block, limit));
            return Step::Wrote;
        }
        if !ledger.holds(index) {
            self.over = true;
            return Step::Worked;
        }
        match self.input.poll() {
            Poured::Nothing => return Step::Starved,
            Poured::Chunk(chunk) => {
                let (number, len) = (self.size / CHUNK, chunk.len() as u64);
                Record::Chunk { index, chunk: number, len }.put(block);
                self.size += len;
                self.chunk = Some((chunk, 0, ChunkHasher::new(number)));
            }
            Poured::End => {
                self.over = true;
                let tree = std::mem::take(&mut self.tree);
                let hash = self.whole.unwrap_or_else(|| tree.root());
                Record::Root { index, size: self.size, hash }.put(block);
                ledger.end_stream(index, self.size, hash);
            }
            Poured::Failed(error) => {
                self.over = true;
                ledger.lose_stream(index, &error);
            }
        }
        Step::Wrote
    }

    /// The next piece of a chunk; its length.
    fn pour_chunk(
        &mut self,
        (chunk, at, mut hasher): (Vec<u8>, usize, ChunkHasher),
        block: &mut Vec<u8>,
        limit: usize,
    ) -> u64 {
        let room = limit.saturating_sub(block.len()).max(1024);
        let piece = &chunk[at..chunk.len().min(at + room)];
        hasher.update(piece);
        block.extend_from_slice(piece);
        let (len, at) = (piece.len() as u64, at + piece.len());
        if at < chunk.len() {
            self.chunk = Some((chunk, at, hasher));
        } else {
            // A chaining value, whatever follows.
            let value = hasher.value(2);
            self.whole = self.tree.is_empty().then(|| hasher.value(1));
            self.tree.push(value);
            block.extend_from_slice(&value);
        }
        len
    }
}
