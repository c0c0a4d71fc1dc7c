//! A stream of unknown length in place of a tree: standard input.
//!
//! It cannot be read twice: there is no resume, and what does not fit at the receiver is lost.

use std::path::{Path, PathBuf};

use super::{Named, Sender, Step};
use crate::transfer::chunk::{CHUNK, ChunkHasher, Tree, Value};
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Entry, FileTime, Kind, Record};
use crate::transfer::stdin::{Input, Poured};
use crate::transfer::walk::{Facts, Item};

/// Its only entry.
const INDEX: u64 = 0;

/// The stream, and how far it is.
pub(super) struct Stream {
    input: Input,
    name: Vec<u8>,
    named: bool,
    chunk: Option<(Vec<u8>, usize, ChunkHasher)>,
    tree: Tree,
    /// The hash of a stream that has no second chunk.
    whole: Option<Value>,
    size: u64,
}

impl Stream {
    pub(super) fn new(input: Input, name: Vec<u8>) -> Self {
        let (chunk, tree, whole) = (None, Tree::default(), None);
        Self { input, name, named: false, chunk, tree, whole, size: 0 }
    }

    /// Whether the bytes of a chunk are on their way, between which nothing else may stand.
    pub(super) const fn is_within_chunk(&self) -> bool {
        self.chunk.is_some()
    }
}

impl Sender {
    /// The next piece of the stream.
    pub(super) fn pour(&mut self, mut stream: Stream, block: &mut Vec<u8>, limit: usize) -> Step {
        let step = if stream.named {
            self.pour_on(&mut stream, block, limit)
        } else {
            self.name_stream(&mut stream, block)
        };
        if !self.walked {
            self.stream = Some(stream);
        }
        step
    }

    fn name_stream(&mut self, stream: &mut Stream, block: &mut Vec<u8>) -> Step {
        stream.named = true;
        self.next_index = INDEX + 1;
        let facts = Facts { mode: 0o644, mtime: FileTime::default(), size: 0, inode: (0, 0) };
        let name = stream.name.clone();
        let (path, kind) = (PathBuf::from("-"), Kind::Stream);
        let item = Item { path, name: name.clone(), kind, facts, data: 0 };
        let (holes, todo) = (Ranges::default(), Some(Ranges::default()));
        let source = None;
        self.named.insert(
            INDEX,
            Named { item, holes: holes.clone(), todo, source, tries: 0, rounds: 0, confirmed: 0 },
        );
        let Facts { mode, mtime, size, .. } = facts;
        Record::Entry(Entry {
            index: INDEX,
            kind: Kind::Stream,
            mode,
            mtime,
            size,
            holes,
            path: name,
        })
        .put(block);
        Step::Wrote
    }

    fn pour_on(&mut self, stream: &mut Stream, block: &mut Vec<u8>, limit: usize) -> Step {
        if let Some((chunk, at, mut hasher)) = stream.chunk.take() {
            let room = limit.saturating_sub(block.len()).max(1024);
            let piece = &chunk[at..chunk.len().min(at + room)];
            hasher.update(piece);
            block.extend_from_slice(piece);
            self.progress.sent += piece.len() as u64;
            let at = at + piece.len();
            if at < chunk.len() {
                stream.chunk = Some((chunk, at, hasher));
            } else {
                // A chaining value, whatever follows.
                let value = hasher.value(2);
                stream.whole = stream.tree.is_empty().then(|| hasher.value(1));
                stream.tree.push(value);
                block.extend_from_slice(&value);
            }
            return Step::Wrote;
        }
        if !self.named.contains_key(&INDEX) {
            self.walked = true;
            return Step::Worked;
        }
        match stream.input.poll() {
            Poured::Nothing => Step::Starved,
            Poured::Chunk(chunk) => {
                let (number, len) = (stream.size / CHUNK, chunk.len() as u64);
                Record::Chunk { index: INDEX, chunk: number, len }.put(block);
                stream.size += len;
                stream.chunk = Some((chunk, 0, ChunkHasher::new(number)));
                Step::Wrote
            }
            Poured::End => {
                self.walked = true;
                let tree = std::mem::take(&mut stream.tree);
                let hash = stream.whole.unwrap_or_else(|| tree.root());
                Record::Root { index: INDEX, size: stream.size, hash }.put(block);
                if let Some(named) = self.named.get_mut(&INDEX) {
                    named.item.facts.size = stream.size;
                }
                Step::Wrote
            }
            Poured::Failed(error) => {
                self.walked = true;
                self.named.remove(&INDEX);
                self.problem(Path::new("standard input"), &error, true);
                Record::Drop { index: INDEX }.put(block);
                Step::Wrote
            }
        }
    }
}
