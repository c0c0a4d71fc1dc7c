//! The receiver's end of a transfer, sans-IO as far as the network goes: it takes blocks of the
//! sender's stream and gives bytes for the stream back.
//!
//! Data go into a file under a temporary name; a chunk counts when its value fits, and then stands in
//! the journal; a file gets its name when its whole hash fits and its data are on the disk (docs/rudp.md
//! section 10). Long work, hashing what an interrupted transfer left, goes chunk by chunk in
//! [`Receiver::advance`], and the disk is waited for in a thread, so that the connection is never left
//! alone for long.

mod file;
pub mod printer;
mod proof;
mod ripe;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use acklab_core::time::Time;
use nix::errno::Errno;

use self::file::{Incoming, Writing};
use self::proof::Proof;
use self::ripe::Batch;
use crate::transfer::chunk::{chunk_len, chunks};
use crate::transfer::inlet::Inlet;
use crate::transfer::journal::FileId;
use crate::transfer::name::{Name, shown};
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Broken, Entry, Kind, Record, TransferId, VERSION};
use crate::transfer::store::{Directory, Store, StoreError, file_id};
use crate::transfer::sync::Syncing;

/// Files that may be named and not settled; the sender stops at half of it.
const NAMED_MAX: usize = 2048;
/// Work in one call of [`Receiver::advance`]: bytes written and hashed.
const BUDGET: u64 = 1 << 20;
/// Bytes of free space that are left alone.
const SPARE: u64 = 1 << 20;

/// Why a transfer cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The sender said what cannot be.
    #[error("the sender broke a rule of the transfer: {0}")]
    Peer(#[from] Broken),
    /// It speaks another version.
    #[error("the sender speaks version {0} of the transfer, and this is version {VERSION}")]
    Version(u8),
    /// The folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk is too small for it.
    #[error("{wanted} bytes do not fit: {free} are free")]
    NoRoom {
        /// Bytes that the sender announced, holes aside.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[source] std::io::Error),
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Entries that the sender announced.
    pub entries: u64,
    /// Bytes that it announced, holes included.
    pub bytes_announced: u64,
    /// Bytes of content received.
    pub bytes: u64,
    /// Bytes that were here before.
    pub resumed: u64,
    /// Files that stand under their names.
    pub stored: u64,
    /// Bytes of these.
    pub stored_bytes: u64,
    /// Entries refused.
    pub refused: u64,
}

/// How far the sender's tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Naming,
    /// DONE has come: everything is named.
    Named,
    /// Everything is stored or refused, and FINISHED is said.
    Finished,
}

/// The receiver of one transfer.
pub struct Receiver {
    directory: Directory,
    store: Option<Store>,
    transfer: TransferId,
    asked: bool,
    inlet: Inlet,
    out: Vec<u8>,
    files: BTreeMap<u64, Incoming>,
    next_index: u64,
    writing: Option<Writing>,
    /// Of the file that is written.
    gather: Vec<u8>,
    proof: Option<Proof>,
    /// Chunks written since the last CONFIRM.
    confirm: Option<(u64, Ranges)>,
    /// Complete files that wait for a sync, and those of the sync under way.
    ripe: Batch,
    synced: Batch,
    syncing: Syncing,
    /// Called when a sync is done.
    wake: Arc<dyn Fn() + Send + Sync>,
    now: Time,
    /// Stored since the list of finished files was written.
    stored: Vec<(u64, FileId)>,
    /// Something could not be written: what there is of the transfer is kept for another try.
    keeps: bool,
    stage: Stage,
    received: Received,
    problems: Vec<String>,
}

impl Receiver {
    /// Receives into `directory`; `wake` is called from another thread when there is more to do.
    pub fn new(directory: Directory, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            directory,
            store: None,
            transfer: TransferId::default(),
            asked: false,
            inlet: Inlet::default(),
            out: Vec::new(),
            files: BTreeMap::new(),
            next_index: 0,
            writing: None,
            gather: Vec::new(),
            proof: None,
            confirm: None,
            ripe: Batch::default(),
            synced: Batch::default(),
            syncing: Syncing::default(),
            wake: Arc::new(wake),
            now: Time::ZERO,
            stored: Vec::new(),
            keeps: false,
            stage: Stage::Naming,
            received: Received::default(),
            problems: Vec::new(),
        }
    }

    /// Takes bytes of the sender's stream. [`Receiver::advance`] works on them.
    pub fn handle_block(&mut self, block: Vec<u8>) {
        self.inlet.push(block);
    }

    /// Bytes that were taken and not worked on; above a few MiB no more should be given.
    pub fn waiting(&self) -> usize {
        self.inlet.waiting()
    }

    /// Works for a millisecond or so; true: there is more to do. It wants to be called after `wake` was, and
    /// several times a second.
    pub fn advance(&mut self, now: Time) -> Result<bool, ReceiveError> {
        self.now = now;
        if let Some(store) = &self.store {
            store.check_owner()?;
        }
        let mut budget = BUDGET;
        let more = loop {
            if budget == 0 {
                break true;
            }
            let Some(cost) = self.step()? else { break false };
            budget = budget.saturating_sub(cost);
        };
        self.report()?;
        Ok(more)
    }

    /// Bytes for the stream back to the sender.
    pub fn poll_block(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.out)).filter(|out| !out.is_empty())
    }

    /// How far it is.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Whether everything is stored or refused, and the sender will be told.
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    /// Whether the disk is waited for, after which `wake` is called.
    pub fn is_syncing(&self) -> bool {
        !self.syncing.is_idle()
    }

    /// All is stored or refused, and the sender knows: nothing of the transfer is kept for its next try, unless
    /// there was no room for some of it, or the disk failed.
    pub fn dismiss(&self) {
        if !self.keeps {
            // What cannot be removed is in nobody's way.
            let _ = self.store.as_ref().map(Store::end);
        }
    }

    /// What was refused, since the last call, in words.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// One thing, and what it cost in bytes; `None` where there is nothing to do.
    fn step(&mut self) -> Result<Option<u64>, ReceiveError> {
        if self.proof.is_some() {
            return self.prove().map(Some);
        }
        if self.writing.is_some() {
            return self.write();
        }
        if let Some(record) = self.inlet.record()? {
            self.on_record(record)?;
            return Ok(Some(512));
        }
        Ok(None)
    }

    /// Says what was written and stored.
    fn report(&mut self) -> Result<(), ReceiveError> {
        if let Some((index, chunks)) = self.confirm.take() {
            Record::Confirm { index, chunks }.put(&mut self.out);
        }
        if self.store.is_none() || self.is_finished() {
            return Ok(());
        }
        let settled = self.stage == Stage::Named && self.files.values().all(|file| file.refused);
        let drained = settled && self.proof.is_none() && self.writing.is_none();
        if self.settle(drained)? && drained {
            let Received { stored, refused, .. } = self.received;
            Record::Finished { stored, refused }.put(&mut self.out);
            self.stage = Stage::Finished;
        }
        Ok(())
    }

    fn on_record(&mut self, record: Record) -> Result<(), ReceiveError> {
        let greeting = matches!(record, Record::Hello { .. });
        if greeting == self.store.is_some() {
            return Err(if greeting { Broken("HELLO came twice") } else { NO_HELLO }.into());
        }
        if self.is_finished() {
            return Err(Broken("a record came after the end").into());
        }
        match record {
            Record::Hello { version, .. } if version != VERSION => {
                Err(ReceiveError::Version(version))
            }
            Record::Hello { asks, transfer, count, bytes, data, .. } => {
                self.received.entries = count;
                self.received.bytes_announced = bytes;
                let store = self.directory.begin(transfer, asks)?;
                check_room(&store, data)?;
                self.asked = asks && store.held();
                self.transfer = transfer;
                Record::Welcome { version: VERSION, held: self.asked }.put(&mut self.out);
                self.store = Some(store);
                Ok(())
            }
            Record::Entry(entry) => self.on_entry(entry),
            Record::Chunk { index, chunk, len } => self.on_chunk(index, chunk, len),
            Record::Root { index, size, hash } => self.on_root(index, size, hash),
            Record::Drop { index } => {
                let file = self.files.remove(&index).ok_or(UNKNOWN)?;
                if let Some(store) = self.store.as_ref().filter(|_| !file.refused) {
                    store.remove_part(&file.id);
                }
                Ok(())
            }
            Record::Done if self.stage == Stage::Named => Err(Broken("DONE came twice").into()),
            Record::Done => {
                self.stage = Stage::Named;
                Ok(())
            }
            _ => Err(Broken("a receiver's record came from the sender").into()),
        }
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), ReceiveError> {
        if entry.index != self.next_index || self.files.len() >= NAMED_MAX {
            return Err(Broken("entries are out of order or too many").into());
        }
        self.next_index += 1;
        let Entry { index, kind, mode, mtime, ref path, .. } = entry;
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let name = match Name::new(path) {
            Ok(name) => name,
            Err(why) => {
                self.refuse_entry(entry, why);
                return Ok(());
            }
        };
        let outcome = match kind {
            Kind::Directory => store.make_folder(&name),
            Kind::DirectoryEnd => store.finish_folder(&name, mode, mtime),
            Kind::File | Kind::Stream => return self.on_file(entry, name),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                self.refuse(index, path, &error.to_string());
                Ok(())
            }
        }
    }

    /// A file is named: it is here already, or what is here of it is told, or it is waited for.
    fn on_file(&mut self, entry: Entry, name: Name) -> Result<(), ReceiveError> {
        let Entry { index, mtime, size, kind, .. } = entry;
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let id = file_id(&self.transfer, name.as_bytes(), size, mtime);
        if self.asked && store.is_done(&id, &name, size, mtime) {
            self.received.stored += 1;
            self.received.stored_bytes += size;
            self.received.resumed += size;
            Record::Stored { index, held: true }.put(&mut self.out);
            return Ok(());
        }
        if let Err(why) = admit(store, &entry, &name, &id, self.asked) {
            self.keeps |= matches!(why, Unwanted::NoRoom { .. } | Unwanted::Unreadable(_));
            self.refuse_entry(entry, &why.to_string());
            return Ok(());
        }
        let mut file = Incoming::new(entry, name, id);
        if kind == Kind::Stream {
            self.files.insert(index, file);
            return Ok(());
        }
        if size == 0 {
            return self.ripen(index, file);
        }
        if !self.asked {
            self.files.insert(index, file);
            return Ok(());
        }
        if let Err(error) = file.find_left(store) {
            self.fail_file(index, file, &error);
            return Ok(());
        }
        let chunks = file.held.clone();
        self.received.resumed +=
            chunks.iter().flatten().map(|chunk| chunk_len(size, chunk)).sum::<u64>();
        Record::Have { index, chunks }.put(&mut self.out);
        self.files.insert(index, file);
        Ok(())
    }

    fn refuse_entry(&mut self, entry: Entry, why: &str) {
        let index = entry.index;
        self.refuse(index, &entry.path, why);
        if matches!(entry.kind, Kind::File | Kind::Stream) {
            // Its data may be on their way.
            self.files.insert(index, Incoming::refused(entry));
        }
    }

    /// A file cannot be written; what there is of it is kept unless something else in its place is the reason.
    fn fail_file(&mut self, index: u64, mut file: Incoming, error: &io::Error) {
        use Errno::{EEXIST, EISDIR, ELOOP, ENOTDIR, ENOTEMPTY};
        let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
        self.keeps |= ![EEXIST, EISDIR, ELOOP, ENOTDIR, ENOTEMPTY].contains(&errno);
        let path = file.path().to_vec();
        self.refuse(index, &path, &error.to_string());
        file.close();
        file.refused = true;
        self.files.insert(index, file);
    }

    fn refuse(&mut self, index: u64, path: &[u8], why: &str) {
        self.received.refused += 1;
        let path = shown(path);
        // The end of a long path tells more than its start.
        let start = path.ceil_char_boundary(path.len().saturating_sub(100));
        let reason = format!("{}: {why}", &path[start..]);
        self.problems.push(reason.clone());
        Record::Refused { index, reason }.put(&mut self.out);
    }
}

/// Whether all of a transfer may come, of which nothing is here.
fn check_room(store: &Store, data: u64) -> Result<(), ReceiveError> {
    // What is here takes none, and files that are kept refuse theirs.
    if store.held() || store.directory().keeps() {
        return Ok(());
    }
    let free = store.free_bytes().map_err(|error| store.directory().failed(error))?;
    if fits(data, free) {
        return Ok(());
    }
    let _ = store.end();
    Err(ReceiveError::NoRoom { wanted: data, free })
}

fn fits(wanted: u64, free: u64) -> bool {
    wanted <= SPARE || wanted.saturating_add(SPARE) <= free
}

/// Why a file may not come.
#[derive(Debug, thiserror::Error)]
enum Unwanted {
    #[error("exists already, and --keep was given")]
    Kept,
    #[error("{wanted} bytes do not fit: {free} are free")]
    NoRoom { wanted: u64, free: u64 },
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// Whether a file may come.
fn admit(
    store: &mut Store,
    entry: &Entry,
    name: &Name,
    id: &FileId,
    resumes: bool,
) -> Result<(), Unwanted> {
    if store.directory().keeps() && store.exists(name)? {
        return Err(Unwanted::Kept);
    }
    let data = entry.holes.neither(&Ranges::default(), chunks(entry.size)).count();
    let held = if resumes { store.part_bytes(id) } else { 0 };
    let wanted = (data << 20).min(entry.size).saturating_sub(held);
    let free = store.free_bytes()?;
    if fits(wanted, free) { Ok(()) } else { Err(Unwanted::NoRoom { wanted, free }) }
}

pub(super) const UNKNOWN: Broken = Broken("a record names a file that was not named or is settled");
const NO_HELLO: Broken = Broken("the first record is not HELLO");
