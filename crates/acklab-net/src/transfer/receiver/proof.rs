//! The proof at the end of a file that what is on the disk is what the sender has read.
//!
//! Chunks that came over this connection were hashed as they were written. What the journal of an
//! interrupted transfer vouches for is hashed anew from the disk, so that whatever happened to it in
//! between (a crash of the machine, a stranger's hand) is found: what does not fit its journal comes
//! again. If everything fits and the whole does not, the file changed at the sender behind its time, or
//! it has one chunk and no journal: all that was left comes again.

use super::file::Incoming;
use super::{NO_HELLO, ReceiveError, Receiver, UNKNOWN};
use crate::transfer::chunk::{CHUNK, Tree, Value, chunk_len, zeros};
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Broken, Record};

/// A proof under way, chunk by chunk.
pub(super) struct Proof {
    index: u64,
    /// What the sender says.
    hash: Value,
    tree: Tree,
    /// Chunks that are not what the journal says.
    bad: Ranges,
}

impl Receiver {
    pub(super) fn on_root(
        &mut self,
        index: u64,
        size: u64,
        hash: Value,
    ) -> Result<(), ReceiveError> {
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        if file.refused {
            return Ok(());
        }
        let missing = file.missing();
        if size != file.size {
            return Err(Broken("a file ends with another size than it was named with").into());
        }
        if missing.is_empty() {
            let (tree, bad) = (Tree::default(), Ranges::default());
            self.proof = Some(Proof { index, hash, tree, bad });
        } else {
            Record::Bad { index, chunks: missing }.put(&mut self.out);
        }
        Ok(())
    }

    /// Goes on with a proof, by one chunk that has to be hashed; returns what it cost in bytes.
    pub(super) fn prove(&mut self) -> Result<u64, ReceiveError> {
        let Some(mut proof) = self.proof.take() else { return Ok(0) };
        let store = self.store.as_ref().ok_or(NO_HELLO)?;
        let file = self.files.get_mut(&proof.index).ok_or(UNKNOWN)?;
        let count = file.chunks();
        while proof.tree.len() < count {
            let chunk = proof.tree.len();
            let value = match (file.fresh.contains(chunk), file.value(chunk)) {
                (true, Some(value)) => {
                    proof.tree.push(value);
                    continue;
                }
                _ if file.holes.contains(chunk) => {
                    Ok(zeros(chunk, chunk_len(file.size, chunk), count))
                }
                (_, expected) => file.hash(store, chunk, &mut self.gather).inspect(|value| {
                    if expected.is_some_and(|expected| expected != *value) {
                        proof.bad.insert(chunk..chunk + 1);
                    }
                }),
            };
            match value {
                Ok(value) => proof.tree.push(value),
                Err(error) => {
                    self.give_up(proof.index, &error)?;
                    return Ok(CHUNK);
                }
            }
            self.proof = Some(proof);
            return Ok(CHUNK);
        }
        self.conclude(proof)?;
        Ok(CHUNK / 8)
    }

    fn conclude(&mut self, proof: Proof) -> Result<(), ReceiveError> {
        let Proof { index, hash, tree, mut bad } = proof;
        if bad.is_empty() && tree.root() == hash {
            let file = self.files.remove(&index).ok_or(UNKNOWN)?;
            return self.ripen(index, file);
        }
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        if bad.is_empty() {
            bad = left(file);
        }
        if bad.is_empty() {
            bad = file.holes.neither(&Ranges::default(), file.chunks());
        }
        if bad.is_empty() {
            return Err(Broken("a file of holes has another hash than its zeros").into());
        }
        if let Err(error) = file.forget(&bad) {
            return self.give_up(index, &error);
        }
        Record::Bad { index, chunks: bad }.put(&mut self.out);
        Ok(())
    }
}

/// Chunks that an earlier transfer left.
fn left(file: &Incoming) -> Ranges {
    let mut left = file.held.clone();
    file.fresh.iter().flatten().for_each(|chunk| left.remove(chunk));
    left
}
