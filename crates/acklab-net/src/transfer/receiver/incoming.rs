//! A file on its way in: its data under a temporary name, its journal, and which chunks have come.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use acklab_core::ranges::RangeSet;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::writing::{Coming, GATHER};
use crate::transfer::chunk::{
    CHUNK, ChunkHasher, Value, Values, chunk_len, chunks, outside, zeros,
};
use crate::transfer::journal::{FileId, Journal};
use crate::transfer::name::Name;
use crate::transfer::record::{Broken, Entry, Kind};
use crate::transfer::store::{Finish, Store};

/// So much room of a file is reserved at its start. It takes next to no time but on a tmpfs, which fills it with
/// zeros, in a second.
const RESERVED_MAX: u64 = 4 << 30;

/// A file that was named and is not settled.
pub(super) struct Incoming {
    /// As the sender named it; a stream's size is how far it has come.
    entry: Entry,
    /// `None` if it was refused for its name.
    name: Option<Name>,
    id: FileId,
    refused: bool,
    part: Option<File>,
    journal: Option<Journal>,
    /// What is on the disk is of this file.
    resumes: bool,
    values: Values,
    /// The hash of a stream that has no second chunk.
    whole: Option<Value>,
    /// Chunks that are written and fit their values.
    held: RangeSet,
    /// Those of them that came over this connection.
    fresh: RangeSet,
    basis: Basis,
    /// What all of it hashes to, once proved.
    proved: Option<Value>,
}

/// What is known of the file that stands under the name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Nothing, or that it is another.
    None,
    /// It is taken for the sender's until its hash says otherwise.
    There,
    /// It was compared, and is another.
    Differs,
}

impl Incoming {
    pub(super) fn new(entry: Entry, name: Name, id: FileId) -> Self {
        Self { name: Some(name), id, refused: false, ..Self::refused(entry) }
    }

    pub(super) fn refused(entry: Entry) -> Self {
        Self {
            entry,
            name: None,
            id: FileId::default(),
            refused: true,
            part: None,
            journal: None,
            resumes: false,
            values: Values::default(),
            whole: None,
            held: RangeSet::new(),
            fresh: RangeSet::new(),
            basis: Basis::None,
            proved: None,
        }
    }

    /// It will not be taken: what comes of it is skipped.
    pub(super) fn refuse(&mut self) {
        self.close();
        self.refused = true;
    }

    pub(super) const fn is_refused(&self) -> bool {
        self.refused
    }

    pub(super) const fn index(&self) -> u64 {
        self.entry.index
    }

    pub(super) fn path(&self) -> &[u8] {
        &self.entry.path
    }

    /// What it is to be called; `None` if it was refused for its name.
    pub(super) const fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    pub(super) const fn id(&self) -> &FileId {
        &self.id
    }

    /// Bytes; of a stream, as far as it has come.
    pub(super) const fn size(&self) -> u64 {
        self.entry.size
    }

    pub(super) const fn part(&self) -> Option<&File> {
        self.part.as_ref()
    }

    pub(super) fn chunks(&self) -> u64 {
        chunks(self.entry.size)
    }

    /// Chunks that are written and fit their values.
    pub(super) const fn held(&self) -> &RangeSet {
        &self.held
    }

    pub(super) fn data_chunks(&self) -> RangeSet {
        outside(self.chunks(), [&self.entry.holes])
    }

    /// Chunks that have data and are not here.
    pub(super) fn missing(&self) -> RangeSet {
        outside(self.chunks(), [&self.entry.holes, &self.held])
    }

    /// Chunks that an earlier transfer left.
    pub(super) fn left(&self) -> RangeSet {
        let mut left = self.held.clone();
        for range in self.fresh.iter() {
            left.remove(range);
        }
        left
    }

    pub(super) fn is_stream(&self) -> bool {
        self.entry.kind == Kind::Stream
    }

    pub(super) fn has_journal(&self) -> bool {
        self.chunks() > 1 && !self.is_stream()
    }

    /// Chunk `number` of `len` bytes begins: an error unless it is one that has to come.
    pub(super) fn expect(&mut self, number: u64, len: u64) -> Result<(), Broken> {
        let follows = number * CHUNK == self.entry.size && (1..=CHUNK).contains(&len);
        if self.is_stream() && follows {
            self.entry.size += len;
        }
        let wanted = number < self.chunks() && !self.entry.holes.contains(number);
        if !wanted || len != chunk_len(self.entry.size, number) {
            return Err(Broken("a chunk is not one of its file"));
        }
        if self.held.contains(number) {
            return Err(Broken("a chunk was sent again that was confirmed"));
        }
        Ok(())
    }

    /// The file that stands under its name is taken for the sender's until its hash says otherwise: its chunks.
    pub(super) fn take_as_there(&mut self) -> RangeSet {
        self.basis = Basis::There;
        self.held = self.data_chunks();
        self.held.clone()
    }

    /// The file that stands under its name is another.
    pub(super) fn take_as_another(&mut self) {
        self.basis = Basis::Differs;
        self.held = RangeSet::new();
    }

    /// Whether the file that stands under its name is taken for the sender's.
    pub(super) fn is_there(&self) -> bool {
        self.basis == Basis::There
    }

    /// Whether the file that stands under its name was compared, and is another.
    pub(super) fn differs(&self) -> bool {
        self.basis == Basis::Differs
    }

    /// Looks for what an interrupted transfer left.
    pub(super) fn find_left(&mut self, store: &Store) -> io::Result<()> {
        let Some(len) = store.part_len(&self.id).filter(|&len| len <= self.entry.size) else {
            return Ok(());
        };
        if !self.has_journal() {
            // All of it was written, and the proof will tell whether it is right.
            self.resumes = len == self.entry.size && self.entry.holes.is_empty();
            if self.resumes {
                self.held.insert(0..1);
            }
            return Ok(());
        }
        if !store.has_journal(&self.id) {
            return Ok(());
        }
        let journal = store.open_journal(&self.id, false)?;
        let Some((_, values)) = Journal::open(journal, self.id, self.entry.size)? else {
            return Ok(());
        };
        // A crash of the machine may have lost data of which the journal tells.
        let end = |chunk: u64| chunk * CHUNK + chunk_len(self.entry.size, chunk);
        let here = |chunk: u64| !self.entry.holes.contains(chunk) && end(chunk) <= len;
        for (chunk, value) in values.iter().filter(|&(chunk, _)| here(chunk)) {
            self.held.insert(chunk..chunk + 1);
            self.values.set(chunk, value);
        }
        self.resumes = true;
        Ok(())
    }

    /// Opens its data and its journal, if they are not open.
    pub(super) fn open(&mut self, store: &Store) -> io::Result<&File> {
        if self.part.is_none() {
            let fresh = !self.resumes;
            let part = store.open_part(&self.id, fresh)?;
            if fresh && self.has_journal() && self.entry.holes.is_empty() {
                reserve(&part, self.entry.size)?;
            }
            // Its length comes with its data, so that a crash leaves nothing that looks complete; but holes
            // are never written.
            if !self.entry.holes.is_empty() {
                part.set_len(self.entry.size)?;
            }
            if self.has_journal() {
                let (file, id) = (store.open_journal(&self.id, fresh)?, self.id);
                self.journal = Some(if fresh {
                    Journal::create(file, id, self.entry.size)?
                } else {
                    let found = Journal::open(file, id, self.entry.size)?;
                    found.ok_or_else(|| io::Error::other("its journal was altered"))?.0
                });
            }
            self.resumes = true;
            self.part = Some(part);
        }
        self.part.as_ref().ok_or_else(|| io::Error::other("its data are gone"))
    }

    /// Gives the descriptors back until data come.
    fn close(&mut self) {
        self.part = None;
        self.journal = None;
    }

    /// The value of a chunk on the disk, or of a hole.
    pub(super) fn hash(
        &mut self,
        store: &mut Store,
        chunk: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Value> {
        let (len, count) = (chunk_len(self.entry.size, chunk), self.chunks());
        let existing;
        let part = if let Some(name) = self.name.as_ref().filter(|_| self.is_there()) {
            existing = store.open_existing(name)?;
            &existing
        } else if self.entry.holes.contains(chunk) {
            return Ok(zeros(chunk, len, count));
        } else {
            self.open(store)?
        };
        let mut hasher = ChunkHasher::new(chunk);
        for at in (0..len).step_by(GATHER) {
            buffer.resize((len - at).min(GATHER as u64) as usize, 0);
            part.read_exact_at(buffer, chunk * CHUNK + at)?;
            hasher.update(buffer);
        }
        Ok(hasher.value(count))
    }

    /// These chunks are to come again.
    pub(super) fn forget(&mut self, bad: &RangeSet) -> io::Result<()> {
        self.values.forget(bad);
        for range in bad.iter() {
            self.held.remove(range.clone());
            self.fresh.remove(range);
        }
        let size = self.entry.size;
        self.journal.as_mut().map_or(Ok(()), |journal| journal.rewrite(size, &self.values))
    }

    /// What a chunk contributes to the hash of the file, if known.
    pub(super) fn value(&self, chunk: u64) -> Option<Value> {
        self.whole.or_else(|| self.values.of(chunk))
    }

    /// The same of one that came over this connection.
    pub(super) fn fresh_value(&self, chunk: u64) -> Option<Value> {
        self.value(chunk).filter(|_| self.fresh.contains(chunk))
    }

    /// All of a chunk is written: it counts if it is what the sender has hashed.
    pub(super) fn accept(&mut self, chunk: &Coming) -> io::Result<bool> {
        let Coming { number, hasher, .. } = chunk;
        let value = hasher.value(if self.is_stream() { 2 } else { self.chunks() });
        if value[..] != chunk.value[..] {
            // Missing when ROOT comes, and asked for then.
            return Ok(false);
        }
        if self.is_stream() {
            self.whole = (*number == 0).then(|| hasher.value(1));
        }
        self.values.set(*number, value);
        self.held.insert(*number..number + 1);
        self.fresh.insert(*number..number + 1);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&[(*number, value)]))?;
        Ok(true)
    }

    /// What all of it hashes to, once proved.
    pub(super) const fn proved(&self) -> Option<Value> {
        self.proved
    }

    /// All of it is proved to hash to this.
    pub(super) const fn on_proved(&mut self, hash: Value) {
        self.proved = Some(hash);
    }

    /// It is complete: its data are to be synced.
    pub(super) fn seal(&mut self, store: &mut Store) -> io::Result<()> {
        if let Some(name) = self.name.as_ref().filter(|_| self.is_there()) {
            // Another program wrote it.
            let existing = store.open_existing(name)?;
            return store.unsynced().add(existing);
        }
        let part = self.open(store)?;
        store.unsynced().add(part)?;
        // There may be hundreds of them.
        self.close();
        Ok(())
    }

    /// Gives the file, whose data are on the disk, its name.
    pub(super) fn place(&mut self, store: &mut Store) -> io::Result<()> {
        let name = self.name.as_ref().ok_or_else(|| io::Error::other("its name is gone"))?;
        let Entry { size, mode, mtime, .. } = self.entry;
        if self.is_there() {
            return store.dress_existing(name, mode, mtime);
        }
        let mtime = Some(mtime).filter(|_| !self.is_stream());
        let journal = self.has_journal();
        store.place(&self.id, &Finish { name, size, mode, mtime, journal })
    }
}

/// Keeps the room for a file's data, without its length, where the file system can.
fn reserve(part: &File, size: u64) -> io::Result<()> {
    let len = size.min(RESERVED_MAX) as i64;
    match fallocate(part, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, len) {
        Err(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) => {
            // What was reserved is given back.
            part.set_len(0)?;
            Err(errno.into())
        }
        _ => Ok(()),
    }
}
