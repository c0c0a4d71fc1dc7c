//! The proof at the end of a file that what is on the disk is what the sender has read.
//!
//! Chunks that came over this connection were hashed as they were written. What the journal of an
//! interrupted transfer vouches for is hashed anew from the disk, so that whatever happened to it in
//! between (a crash of the machine, another program's writes) is found: what does not fit its journal
//! comes again. If everything fits and the whole does not, the file changed at the sender behind its
//! time, or it has one chunk and no journal: all that was left comes again.

use std::io;

use acklab_core::ranges::RangeSet;

use super::incoming::Incoming;
use crate::transfer::chunk::{Tree, Value};
use crate::transfer::record::Broken;
use crate::transfer::store::Store;

/// A proof under way, chunk by chunk.
pub(super) struct Proof {
    index: u64,
    /// What the sender says.
    hash: Value,
    tree: Tree,
    /// Chunks that are not what the journal says.
    bad: RangeSet,
    buffer: Vec<u8>,
}

impl Proof {
    /// That file `index` has this hash.
    pub(super) fn new(index: u64, hash: Value) -> Self {
        Self { index, hash, tree: Tree::default(), bad: RangeSet::new(), buffer: Vec::new() }
    }

    pub(super) const fn index(&self) -> u64 {
        self.index
    }

    /// Goes on, by one chunk that has to be hashed; whether all values are known.
    pub(super) fn go_on(&mut self, file: &mut Incoming, store: &mut Store) -> io::Result<bool> {
        while self.tree.len() < file.chunks() {
            let chunk = self.tree.len();
            if let Some(value) = file.fresh_value(chunk) {
                self.tree.push(value);
                continue;
            }
            let value = file.hash(store, chunk, &mut self.buffer)?;
            if file.value(chunk).is_some_and(|expected| expected != value) {
                self.bad.insert(chunk..chunk + 1);
            }
            self.tree.push(value);
            return Ok(false);
        }
        Ok(true)
    }

    /// The chunks that must come again; none: the file is what the sender has read.
    pub(super) fn conclude(self, file: &mut Incoming) -> Result<RangeSet, Broken> {
        if !self.bad.is_empty() {
            return Ok(self.bad);
        }
        if self.tree.root() == self.hash {
            file.on_proved(self.hash);
            return Ok(RangeSet::new());
        }
        let doubtful = [file.left(), file.data_chunks()];
        let bad = doubtful.into_iter().find(|chunks| !chunks.is_empty());
        bad.ok_or(Broken("a file of holes has another hash than its zeros"))
    }
}
