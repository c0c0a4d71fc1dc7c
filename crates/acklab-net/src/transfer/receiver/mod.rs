//! The receiver's end of a transfer, sans-IO as far as the network goes: it takes blocks of the
//! sender's stream and gives bytes for the stream back.
//!
//! Data go into a file under a temporary name; a chunk counts when its value fits, and then stands in
//! the journal; a file gets its name when its whole hash fits and its data are on the disk (docs/rudp.md
//! section 10). Long work, hashing what an interrupted transfer left, goes chunk by chunk in
//! [`Destination::advance`], and the disk is waited for in a thread, so that the connection is never left
//! alone for long.

mod admission;
mod destination;
mod incoming;
pub mod printer;
mod proof;
mod ripe;
mod writing;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use acklab_core::time::Time;
use nix::errno::Errno;

use self::admission::{Unwanted, admit, check_room, link};
pub use self::destination::{Destination, Dialogue, Printed, ReceiveError, Received, Standing};
use self::destination::{NO_HELLO, UNKNOWN};
use self::incoming::Incoming;
use self::proof::Proof;
use self::ripe::Ripe;
use self::writing::Writing;
use super::chunk::{CHUNK, Value, chunk_len};
use super::directory::{Directory, Turn};
use super::journal::FileId;
use super::name::{Name, shown};
use super::policy::{Asked, Existing};
use super::record::{Broken, Entry, Kind, Record, VERSION};
use super::store::{Store, file_id};

/// Files that may be named and not settled; the sender stops at half of it.
const NAMED_MAX: usize = 2048;
/// Work in one call of [`Destination::advance`]: bytes written and hashed.
const BUDGET: u64 = 1 << 20;

/// How far the sender's tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Naming,
    /// DONE has come: everything is named.
    Named,
    /// Everything is stored or refused, and FINISHED is said.
    Finished,
}

pub struct Receiver {
    directory: Directory,
    /// From HELLO on.
    store: Option<Store>,
    /// The sender waits for what is held of each file.
    asked: bool,
    dialogue: Dialogue,
    files: BTreeMap<u64, Incoming>,
    next_index: u64,
    writing: Writing,
    proof: Option<Proof>,
    ripe: Ripe,
    /// Files that the user is asked about.
    questions: VecDeque<(Asked, Incoming)>,
    /// Calls for [`Destination::advance`].
    wake: Arc<dyn Fn() + Send + Sync>,
    now: Time,
    /// Something could not be written: what there is of the transfer is kept for another try.
    keeps: bool,
    /// That permissions are not kept was told.
    remarked: bool,
    stage: Stage,
}

impl Receiver {
    /// Receives into `directory`; `wake` is called from another thread when there is more to do.
    pub fn new(directory: Directory, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        Self {
            directory,
            store: None,
            asked: false,
            dialogue: Dialogue::default(),
            files: BTreeMap::new(),
            next_index: 0,
            writing: Writing::default(),
            proof: None,
            ripe: Ripe::new(Arc::clone(&wake)),
            questions: VecDeque::new(),
            wake,
            now: Time::ZERO,
            keeps: false,
            remarked: false,
            stage: Stage::Naming,
        }
    }

    /// Whether the disk or the user is waited for, after which `wake` is called.
    pub fn is_waiting(&self) -> bool {
        self.ripe.is_syncing() || !self.questions.is_empty()
    }

    /// One thing, and what it cost in bytes; `None` where there is nothing to do.
    fn step(&mut self) -> Result<Option<u64>, ReceiveError> {
        if let Some((asked, _)) = self.questions.front()
            && let Some(yes) = asked.poll()
            && let Some((_, file)) = self.questions.pop_front()
        {
            self.on_answer(file, yes)?;
            return Ok(Some(512));
        }
        if let Some(proof) = self.proof.take() {
            return self.prove(proof).map(Some);
        }
        if let Some(index) = self.writing.index() {
            return self.write(index);
        }
        if let Some(record) = self.dialogue.record()? {
            self.on_record(record)?;
            return Ok(Some(512));
        }
        Ok(None)
    }

    /// Says what was written and stored.
    fn report(&mut self) -> Result<(), ReceiveError> {
        self.dialogue.tell_confirmed();
        self.remark_bare();
        if self.store.is_none() || self.is_finished() {
            return Ok(());
        }
        let settled = self.stage == Stage::Named
            && self.questions.is_empty()
            && self.files.values().all(Incoming::is_refused);
        let drained = settled && self.proof.is_none() && self.writing.index().is_none();
        if self.settle(drained)? && drained {
            self.dialogue.finish();
            self.stage = Stage::Finished;
        }
        Ok(())
    }

    /// Says once that permissions or times could not be kept.
    fn remark_bare(&mut self) {
        if !self.remarked && self.store.as_ref().is_some_and(Store::is_bare) {
            self.remarked = true;
            let what =
                "permissions or times are not kept: the file system of the folder refuses them";
            self.dialogue.remark(what.to_owned());
        }
    }

    /// Gives what was synced its names, and syncs what is due. Whether nothing is left to be synced.
    fn settle(&mut self, drained: bool) -> Result<bool, ReceiveError> {
        let store = self.store.as_ref().ok_or(NO_HELLO)?;
        let synced = self.ripe.take_synced(store).map_err(|error| self.directory.failed(error))?;
        self.place(synced)?;
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let settled = self.ripe.sync(self.now, drained, store);
        Ok(settled.map_err(|error| self.directory.failed(error))?)
    }

    /// Gives files their names and says so. The list of finished files is written before, so that nothing that
    /// was said is forgotten.
    fn place(&mut self, files: Vec<Incoming>) -> Result<(), ReceiveError> {
        let mut stored: Vec<(u64, FileId)> = Vec::new();
        for mut file in files {
            let store = self.store.as_mut().ok_or(NO_HELLO)?;
            if let Err(error) = file.place(store) {
                self.fail_file(file, &error);
                continue;
            }
            self.dialogue.count_stored(file.size(), file.proved());
            stored.push((file.index(), *file.id()));
        }
        let (indices, ids): (Vec<u64>, Vec<FileId>) = stored.into_iter().unzip();
        if !ids.is_empty() {
            let store = self.store.as_mut().ok_or(NO_HELLO)?;
            store.note_done(&ids).map_err(|error| self.directory.failed(error))?;
        }
        for index in indices {
            self.dialogue.put(&Record::Stored { index, held: false });
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
            Record::Hello { asks, rehearses, transfer, count, bytes, data, .. } => {
                self.dialogue.note_announced(count, bytes);
                let store = Store::begin(&self.directory, transfer, asks, rehearses)?;
                check_room(&store, data)?;
                self.asked = asks;
                self.dialogue.note_rehearsal(rehearses);
                self.dialogue.put(&Record::Welcome { version: VERSION, held: self.asked });
                self.store = Some(store);
                Ok(())
            }
            Record::Entry(entry) => self.on_entry(entry),
            Record::Chunk { index, chunk, len } => self.on_chunk(index, chunk, len),
            Record::Root { index, size, hash } => self.on_root(index, size, hash),
            Record::Drop { index } => {
                let file = self.files.remove(&index).ok_or(UNKNOWN)?;
                if let Some(store) = self.store.as_ref().filter(|_| !file.is_refused()) {
                    store.remove_part(file.id());
                }
                Ok(())
            }
            Record::Failed { reason } => {
                self.dialogue.fail(&reason);
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
        let named = self.files.len() + self.questions.len() + self.ripe.len();
        if entry.index != self.next_index || named >= NAMED_MAX {
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
            Kind::Link => {
                if let Err(why) = link(store, &entry, &name) {
                    self.refuse_entry(entry, &why.to_string());
                }
                return Ok(());
            }
            Kind::File | Kind::Stream => return self.on_file(entry, name),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                self.dialogue.refuse(index, path, &error.to_string());
                Ok(())
            }
        }
    }

    /// A file is named: it is here already, or it is compared, or it may come.
    fn on_file(&mut self, entry: Entry, name: Name) -> Result<(), ReceiveError> {
        let Entry { index, mtime, size, kind, .. } = entry;
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let id = file_id(store.transfer(), name.as_bytes(), size, mtime);
        let asked = self.asked && kind == Kind::File;
        if asked && store.has(&id, &name, size, mtime) {
            self.dialogue.held(index, size);
            return Ok(());
        }
        let compares = asked
            && !store.is_rehearsed()
            && store.part_len(&id).is_none()
            && store.compares(&name, size);
        let mut file = Incoming::new(entry, name, id);
        // Its data would come over those of the other, which may have been proved.
        let unsettled = self.files.values().chain(self.ripe.files());
        let twice = unsettled.chain(self.questions.iter().map(|(_, file)| file));
        if twice.filter(|file| !file.is_refused()).any(|file| *file.id() == id) {
            self.refuse_file(file, "is named twice");
            return Ok(());
        }
        if compares {
            self.dialogue.have(index, file.take_as_there(), size);
            self.files.insert(index, file);
            return Ok(());
        }
        self.admit(file)
    }

    /// A file may come, or it is refused, or the user is asked.
    fn admit(&mut self, file: Incoming) -> Result<(), ReceiveError> {
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        match admit(&file, store, self.asked) {
            Ok(()) => self.expect(file),
            Err(Unwanted::Question) => {
                if let Existing::Ask(prompter) = &store.directory().policy().existing {
                    let text = format!("{} is there already. Replace it?", shown(file.path()));
                    let asked = prompter.ask(text, Arc::clone(&self.wake));
                    self.questions.push_back((asked, file));
                }
                Ok(())
            }
            Err(why) => {
                self.keeps |= matches!(why, Unwanted::NoRoom { .. } | Unwanted::Unreadable(_));
                self.refuse_file(file, &why.to_string());
                Ok(())
            }
        }
    }

    /// The user has said whether a file is to be replaced.
    fn on_answer(&mut self, file: Incoming, yes: bool) -> Result<(), ReceiveError> {
        if yes {
            return self.expect(file);
        }
        self.refuse_file(file, &Unwanted::Kept.to_string());
        Ok(())
    }

    /// A file comes: what is here of it is told where that was asked.
    fn expect(&mut self, mut file: Incoming) -> Result<(), ReceiveError> {
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let (index, size) = (file.index(), file.size());
        let is_file = !file.is_stream();
        if size == 0 && is_file && !store.is_rehearsed() {
            return self.ripen(file);
        }
        if file.differs() {
            self.dialogue.put(&Record::Bad { index, chunks: file.data_chunks() });
        } else if self.asked && is_file {
            if let Err(error) = file.find_left(store) {
                self.fail_file(file, &error);
                return Ok(());
            }
            let chunks = file.held().clone();
            let bytes = chunks.iter().flatten().map(|chunk| chunk_len(size, chunk)).sum();
            self.dialogue.have(index, chunks, bytes);
        }
        if !store.is_rehearsed() {
            self.files.insert(index, file);
        }
        Ok(())
    }

    fn on_chunk(&mut self, index: u64, number: u64, len: u64) -> Result<(), ReceiveError> {
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        file.expect(number, len)?;
        self.writing.begin(index, number, len, file.is_refused());
        if !file.is_refused() {
            let store = self.store.as_ref().ok_or(NO_HELLO)?;
            if let Err(error) = file.open(store) {
                return self.give_up(index, &error);
            }
        }
        Ok(())
    }

    /// Takes bytes of the chunk that is coming, of file `index`.
    fn write(&mut self, index: u64) -> Result<Option<u64>, ReceiveError> {
        let part = self.files.get(&index).and_then(Incoming::part);
        let cost = match self.writing.take(&mut self.dialogue, part) {
            Ok(cost) => cost,
            Err(error) => {
                self.give_up(index, &error)?;
                return Ok(Some(CHUNK));
            }
        };
        let Some(chunk) = self.writing.finish() else { return Ok(cost) };
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        let accepted = file.accept(&chunk);
        let confirms = file.has_journal();
        if !matches!(accepted, Ok(false)) {
            self.dialogue.count(chunk.len);
        }
        match accepted {
            Ok(true) if confirms => self.dialogue.confirm(index, chunk.number),
            Ok(_) => {}
            Err(error) => self.give_up(index, &error)?,
        }
        Ok(cost)
    }

    fn on_root(&mut self, index: u64, size: u64, hash: Value) -> Result<(), ReceiveError> {
        let file = self.files.get(&index).ok_or(UNKNOWN)?;
        if file.is_refused() {
            return Ok(());
        }
        if size != file.size() {
            return Err(Broken("a file ends with another size than it was named with").into());
        }
        let chunks = file.missing();
        if chunks.is_empty() {
            self.proof = Some(Proof::new(index, hash));
        } else {
            self.dialogue.put(&Record::Bad { index, chunks });
        }
        Ok(())
    }

    /// Goes on with a proof, by one chunk that has to be hashed; what it cost in bytes.
    fn prove(&mut self, mut proof: Proof) -> Result<u64, ReceiveError> {
        let index = proof.index();
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let file = self.files.get_mut(&index).ok_or(UNKNOWN)?;
        match proof.go_on(file, store) {
            Ok(true) => {}
            Ok(false) => {
                self.proof = Some(proof);
                return Ok(CHUNK);
            }
            Err(error) => {
                self.give_up(index, &error)?;
                return Ok(CHUNK);
            }
        }
        let chunks = proof.conclude(file)?;
        if chunks.is_empty() {
            let file = self.files.remove(&index).ok_or(UNKNOWN)?;
            self.ripen(file)?;
        } else if file.is_there() {
            let mut file = self.files.remove(&index).ok_or(UNKNOWN)?;
            file.take_as_another();
            self.dialogue.have_not(file.size());
            self.admit(file)?;
        } else if let Err(error) = file.forget(&chunks) {
            self.give_up(index, &error)?;
        } else {
            self.dialogue.put(&Record::Bad { index, chunks });
        }
        Ok(CHUNK / 8)
    }

    /// A file is complete and proved.
    fn ripen(&mut self, mut file: Incoming) -> Result<(), ReceiveError> {
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        match file.seal(store) {
            Ok(()) => self.ripe.add(self.now, file),
            Err(error) => self.fail_file(file, &error),
        }
        Ok(())
    }

    fn refuse_file(&mut self, mut file: Incoming, why: &str) {
        self.dialogue.refuse(file.index(), file.path(), why);
        file.refuse();
        self.files.insert(file.index(), file);
    }

    fn refuse_entry(&mut self, entry: Entry, why: &str) {
        self.dialogue.refuse(entry.index, &entry.path, why);
        if matches!(entry.kind, Kind::File | Kind::Stream) {
            // Its data may be on their way.
            self.files.insert(entry.index, Incoming::refused(entry));
        }
    }

    /// A file cannot be written: the rest of it is skipped, what there is of it stays for another try.
    fn give_up(&mut self, index: u64, error: &io::Error) -> Result<(), ReceiveError> {
        self.writing.skip(index);
        let file = self.files.remove(&index).ok_or(UNKNOWN)?;
        self.fail_file(file, error);
        Ok(())
    }

    /// A file cannot be written; what there is of it is kept unless something else in its place is the reason.
    fn fail_file(&mut self, file: Incoming, error: &io::Error) {
        use Errno::{EEXIST, EISDIR, ELOOP, ENOTDIR, ENOTEMPTY};
        let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
        self.keeps |= ![EEXIST, EISDIR, ELOOP, ENOTDIR, ENOTEMPTY].contains(&errno);
        self.refuse_file(file, &error.to_string());
    }
}

impl Destination for Receiver {
    fn dialogue(&self) -> &Dialogue {
        &self.dialogue
    }

    fn dialogue_mut(&mut self) -> &mut Dialogue {
        &mut self.dialogue
    }

    fn advance(&mut self, now: Time) -> Result<bool, ReceiveError> {
        self.now = now;
        let turn = self.store.as_ref().map(Store::turn);
        let _turn = turn.as_ref().map(Turn::take).transpose()?;
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

    fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    fn dismiss(&self) {
        if !self.keeps {
            // What cannot be removed does no harm.
            let _ = self.store.as_ref().map(Store::end);
        }
    }
}
