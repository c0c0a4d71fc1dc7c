//! The chunk that is coming: gathered, hashed and written piece by piece, and then its value.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::destination::Dialogue;
use crate::transfer::chunk::{CHUNK, ChunkHasher};

/// Bytes that are hashed and written at once. BLAKE3 needs many, from a multiple of their number on, to
/// work on all lanes; that is worth the copy.
pub(super) const GATHER: usize = 256 << 10;

/// Takes chunks, one after the other.
#[derive(Default)]
pub(super) struct Writing {
    chunk: Option<Coming>,
    gather: Vec<u8>,
}

/// A chunk whose bytes are coming.
pub(super) struct Coming {
    pub(super) index: u64,
    pub(super) number: u64,
    pub(super) len: u64,
    at: u64,
    pub(super) hasher: ChunkHasher,
    /// The value that follows the bytes, as far as it has come.
    pub(super) value: Vec<u8>,
    /// The file was refused.
    skip: bool,
}

impl Writing {
    /// A chunk of a file begins; `skip` what was refused.
    pub(super) fn begin(&mut self, index: u64, number: u64, len: u64, skip: bool) {
        let (hasher, value) = (ChunkHasher::new(number), Vec::with_capacity(32));
        self.chunk = Some(Coming { index, number, len, at: 0, hasher, value, skip });
    }

    /// The file of the chunk that is coming.
    pub(super) fn index(&self) -> Option<u64> {
        self.chunk.as_ref().map(|chunk| chunk.index)
    }

    /// The rest of this file's chunk is not written.
    pub(super) fn skip(&mut self, index: u64) {
        if let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.index == index) {
            chunk.skip = true;
        }
    }

    /// Takes what has come and writes it to `part`; what that cost in bytes, `None` where nothing has come.
    pub(super) fn take(
        &mut self,
        dialogue: &mut Dialogue,
        part: Option<&File>,
    ) -> io::Result<Option<u64>> {
        let Some(chunk) = &mut self.chunk else { return Ok(None) };
        let left = chunk.len - chunk.at;
        if left == 0 {
            let data = dialogue.data(32 - chunk.value.len());
            return Ok(data.map(|data| {
                chunk.value.extend_from_slice(data);
                512
            }));
        }
        let most = left.min((GATHER - self.gather.len()) as u64) as usize;
        let Some(data) = dialogue.data(most) else { return Ok(None) };
        let count = data.len() as u64;
        chunk.at += count;
        if chunk.skip {
            self.gather.clear();
            return Ok(Some(count));
        }
        self.gather.extend_from_slice(data);
        if self.gather.len() < GATHER && count != left {
            return Ok(Some(count / 4));
        }
        chunk.hasher.update(&self.gather);
        let offset = chunk.number * CHUNK + chunk.at - self.gather.len() as u64;
        let part = part.ok_or_else(|| io::Error::other("its data are gone"))?;
        let (outcome, cost) = (part.write_all_at(&self.gather, offset), self.gather.len() as u64);
        self.gather.clear();
        outcome.map(|()| Some(cost))
    }

    /// The chunk, once all of it and its value have come.
    pub(super) fn finish(&mut self) -> Option<Coming> {
        self.chunk.take_if(|chunk| chunk.value.len() == 32).filter(|chunk| !chunk.skip)
    }
}
