//! A file on its way in: its data under a temporary name, its journal, and the chunk that is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::{NO_HELLO, ReceiveError, Receiver, UNKNOWN};
use crate::transfer::chunk::{CHUNK, ChunkHasher, Value, Values, chunk_len, chunks};
use crate::transfer::journal::{FileId, Journal};
use crate::transfer::name::Name;
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Broken, Entry, FileTime, Kind, Record};
use crate::transfer::store::{Finish, Store};

/// Bytes that are hashed and written at once. BLAKE3 needs many, from a multiple of their number on, to
/// work on all lanes; that is worth the copy.
const GATHER: usize = 256 << 10;

/// So much room of a file is reserved at its start. It takes next to no time but on a tmpfs, which fills it with
/// zeros, in a second.
const RESERVED_MAX: u64 = 4 << 30;

/// A file that was named and is not settled.
pub(super) struct Incoming {
    /// `None` if it was refused for its name.
    name: Option<Name>,
    path: Vec<u8>,
    mode: u32,
    mtime: FileTime,
    pub(super) id: FileId,
    /// Of a stream: as far as it has come.
    pub(super) size: u64,
    stream: bool,
    /// The hash of a stream that has no second chunk.
    whole: Option<Value>,
    pub(super) holes: Ranges,
    pub(super) refused: bool,
    part: Option<File>,
    journal: Option<Journal>,
    /// What is on the disk is of this file.
    resumes: bool,
    pub(super) values: Values,
    /// Chunks that are written and fit their values.
    pub(super) held: Ranges,
    /// Those of them that came over this connection.
    pub(super) fresh: Ranges,
}

/// A chunk whose bytes are coming.
pub(super) struct Writing {
    index: u64,
    chunk: u64,
    len: u64,
    at: u64,
    hasher: ChunkHasher,
    /// The value that follows the bytes, as far as it has come.
    value: Vec<u8>,
    /// The file was refused.
    skip: bool,
}

impl Incoming {
    pub(super) fn new(entry: Entry, name: Name, id: FileId) -> Self {
        Self { name: Some(name), id, ..Self::refused(entry) }.admitted()
    }

    pub(super) fn refused(entry: Entry) -> Self {
        let Entry { mode, mtime, size, holes, path, kind, .. } = entry;
        Self {
            name: None,
            path,
            mode,
            mtime,
            id: FileId::default(),
            size,
            stream: kind == Kind::Stream,
            whole: None,
            holes,
            refused: true,
            part: None,
            journal: None,
            resumes: false,
            values: Values::default(),
            held: Ranges::default(),
            fresh: Ranges::default(),
        }
    }

    fn admitted(mut self) -> Self {
        self.refused = false;
        self
    }

    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    pub(super) fn chunks(&self) -> u64 {
        chunks(self.size)
    }

    /// Chunks that have data and are not here.
    pub(super) fn missing(&self) -> Ranges {
        self.holes.neither(&self.held, self.chunks())
    }

    fn has_journal(&self) -> bool {
        self.chunks() > 1 && !self.stream
    }

    /// Looks for what an interrupted transfer left.
    pub(super) fn find_left(&mut self, store: &Store) -> io::Result<()> {
        let Some(len) = store.part_len(&self.id).filter(|&len| len <= self.size) else {
            return Ok(());
        };
        if !self.has_journal() {
            // All of it was written, and the proof will tell whether it is right.
            self.resumes = len == self.size && self.holes.is_empty();
            if self.resumes {
                self.held.insert(0..1);
            }
            return Ok(());
        }
        if !store.has_journal(&self.id) {
            return Ok(());
        }
        let journal = store.open_journal(&self.id, false)?;
        let Some((_, values)) = Journal::open(journal, self.id, self.size)? else { return Ok(()) };
        // A crash of the machine may have lost data of which the journal tells.
        let end = |chunk: u64| chunk * CHUNK + chunk_len(self.size, chunk);
        let here = |chunk: u64| !self.holes.contains(chunk) && end(chunk) <= len;
        for (chunk, value) in values.iter().filter(|&(chunk, _)| here(chunk)) {
            self.held.insert(chunk..chunk + 1);
            self.values.set(chunk, value);
        }
        self.resumes = true;
        Ok(())
    }

    fn open(&mut self, store: &Store) -> io::Result<&File> {
        if self.part.is_none() {
            let fresh = !self.resumes;
            let part = store.open_part(&self.id, fresh)?;
            if fresh && self.has_journal() && self.holes.is_empty() {
                reserve(&part, self.size)?;
            }
            // Its length comes with its data, so that a crash leaves nothing that looks complete; but holes
            // are never written.
            if !self.holes.is_empty() {
                part.set_len(self.size)?;
            }
            if self.has_journal() {
                let (file, id) = (store.open_journal(&self.id, fresh)?, self.id);
                self.journal = Some(if fresh {
                    Journal::create(file, id, self.size)?
                } else {
                    let found = Journal::open(file, id, self.size)?;
                    found.ok_or_else(|| io::Error::other("its journal was altered"))?.0
                });
            }
            self.resumes = true;
            self.part = Some(part);
        }
        self.part.as_ref().ok_or_else(|| io::Error::other("its data are gone"))
    }

    /// Gives the descriptors back until data come.
    pub(super) fn close(&mut self) {
        self.part = None;
        self.journal = None;
    }

    /// The value of what is on the disk.
    pub(super) fn hash(
        &mut self,
        store: &Store,
        chunk: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Value> {
        let (len, count) = (chunk_len(self.size, chunk), self.chunks());
        let part = self.open(store)?;
        let mut hasher = ChunkHasher::new(chunk);
        for at in (0..len).step_by(GATHER) {
            buffer.resize((len - at).min(GATHER as u64) as usize, 0);
            part.read_exact_at(buffer, chunk * CHUNK + at)?;
            hasher.update(buffer);
        }
        buffer.clear();
        Ok(hasher.value(count))
    }

    /// These chunks are to come again.
    pub(super) fn forget(&mut self, bad: &Ranges) -> io::Result<()> {
        for chunk in bad.iter().flatten() {
            self.values.forget(chunk);
            self.held.remove(chunk);
            self.fresh.remove(chunk);
        }
        let size = self.size;
        self.journal.as_mut().map_or(Ok(()), |journal| journal.rewrite(size, &self.values))
    }

    /// What a chunk contributes to the hash of the file.
    pub(super) fn value(&self, chunk: u64) -> Option<Value> {
        self.whole.or_else(|| self.values.of(chunk))
    }

    fn verified(&mut self, chunk: u64, value: Value) -> io::Result<()> {
        self.values.set(chunk, value);
        self.held.insert(chunk..chunk + 1);
        self.fresh.insert(chunk..chunk + 1);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&[(chunk, value)]))
    }

    /// It is complete: its data are to be synced.
    pub(super) fn seal(&mut self, store: &mut Store) -> io::Result<()> {
        self.open(store)?;
        let part = self.part.as_ref().ok_or_else(|| io::Error::other("its data are gone"))?;
        store.unsynced().add(part)?;
        // There may be hundreds of them.
        self.close();
        Ok(())
    }

    /// Gives the file, whose data are on the disk, its name.
    pub(super) fn place(&mut self, store: &mut Store) -> io::Result<()> {
        let name = self.name.as_ref().ok_or_else(|| io::Error::other("its name is gone"))?;
        let &mut Self { size, mode, .. } = self;
        let mtime = Some(self.mtime).filter(|_| !self.stream);
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

impl Receiver {
    pub(super) fn on_chunk(
        &mut self,
        index: u64,
        chunk: u64,
        len: u64,
    ) -> Result<(), ReceiveError> {
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        if file.stream && chunk * CHUNK == file.size && (1..=CHUNK).contains(&len) {
            file.size += len;
        }
        let wanted = chunk < file.chunks() && !file.holes.contains(chunk);
        if !wanted || len != chunk_len(file.size, chunk) {
            return Err(Broken("a chunk is not one of its file").into());
        }
        if file.held.contains(chunk) {
            return Err(Broken("a chunk was sent again that was confirmed").into());
        }
        let (hasher, value) = (ChunkHasher::new(chunk), Vec::with_capacity(32));
        let mut skip = file.refused;
        if !skip {
            let store = self.store.as_ref().ok_or(NO_HELLO)?;
            if let Err(error) = file.open(store) {
                self.give_up(index, &error)?;
                skip = true;
            }
        }
        self.writing = Some(Writing { index, chunk, len, at: 0, hasher, value, skip });
        Ok(())
    }

    /// Takes bytes of the chunk that is coming.
    pub(super) fn write(&mut self) -> Result<Option<u64>, ReceiveError> {
        let Some(writing) = &mut self.writing else { return Ok(None) };
        let left = writing.len - writing.at;
        if left == 0 {
            let Some(data) = self.inlet.data(32 - writing.value.len()) else { return Ok(None) };
            writing.value.extend_from_slice(data);
            if writing.value.len() == 32 {
                self.end_chunk()?;
            }
            return Ok(Some(512));
        }
        let most = left.min((GATHER - self.gather.len()) as u64) as usize;
        let Some(data) = self.inlet.data(most) else { return Ok(None) };
        let count = data.len();
        if writing.skip {
            writing.at += count as u64;
            return Ok(Some(count as u64));
        }
        self.gather.extend_from_slice(data);
        writing.at += count as u64;
        if self.gather.len() < GATHER && count as u64 != left {
            return Ok(Some(count as u64 / 4));
        }
        let piece = &self.gather;
        let offset = writing.chunk * CHUNK + writing.at - piece.len() as u64;
        writing.hasher.update(piece);
        let index = writing.index;
        let part = self.files.get(&index).and_then(|file| file.part.as_ref()).ok_or(UNKNOWN)?;
        let outcome = part.write_all_at(piece, offset);
        let cost = piece.len() as u64;
        self.gather.clear();
        if let Err(error) = outcome {
            self.give_up(index, &error)?;
        }
        Ok(Some(cost))
    }

    /// All of a chunk is written: it counts if it is what the sender has hashed.
    fn end_chunk(&mut self) -> Result<(), ReceiveError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let Writing { index, chunk, len, hasher, value, .. } = writing;
        if writing.skip {
            return Ok(());
        }
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        let actual = hasher.value(if file.stream { 2 } else { file.chunks() });
        if actual[..] != value[..] {
            // Missing when ROOT comes, and asked for then.
            return Ok(());
        }
        if file.stream {
            file.whole = (chunk == 0).then(|| hasher.value(1));
        }
        let outcome = file.verified(chunk, actual);
        let confirms = file.has_journal();
        self.received.bytes += len;
        if let Err(error) = outcome {
            return self.give_up(index, &error);
        }
        if confirms {
            self.note_confirmed(index, chunk);
        }
        Ok(())
    }

    fn note_confirmed(&mut self, index: u64, chunk: u64) {
        if self.confirm.as_ref().is_some_and(|&(other, _)| other != index)
            && let Some((index, chunks)) = self.confirm.take()
        {
            Record::Confirm { index, chunks }.put(&mut self.out);
        }
        let (_, chunks) = self.confirm.get_or_insert((index, Ranges::default()));
        chunks.insert(chunk..chunk + 1);
    }

    /// A file cannot be written: the rest of it is skipped, what there is of it stays for another try.
    pub(super) fn give_up(&mut self, index: u64, error: &io::Error) -> Result<(), ReceiveError> {
        if let Some(writing) = self.writing.as_mut().filter(|writing| writing.index == index) {
            writing.skip = true;
        }
        let file = self.files.remove(&index).ok_or(UNKNOWN)?;
        self.fail_file(index, file, error);
        Ok(())
    }
}
