//! The files that were named and are not settled, and what the receiver says of them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use acklab_core::ranges::RangeSet;

use super::current::Current;
use crate::transfer::chunk::{CHUNK, Value, chunk_len, chunks, outside};
use crate::transfer::name::shown;
use crate::transfer::record::{Broken, Entry, FileTime, Kind, REASON_MAX, Record};
use crate::transfer::source::Source;
use crate::transfer::walk::{Facts, Found, Item};

/// Files that are named and not stored yet.
const NAMED_MAX: usize = 1024;
/// Files that are named ahead where the receiver is asked what it holds of them.
const AHEAD: usize = 256;
/// How often a file is tried that changes, or whose hash does not fit.
const TRIES: u8 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of content given to the connection.
    pub sent: u64,
    /// Bytes that the receiver has in its journal, or stored.
    pub confirmed: u64,
    /// Bytes that it held before.
    pub resumed: u64,
    /// Files that stand under their names.
    pub stored: u64,
    pub stored_bytes: u64,
    /// Files and folders that could not be read, or that the receiver refused.
    pub failures: u64,
    /// Devices, sockets and pipes that were left out.
    pub skipped: u64,
    /// The BLAKE3 of the one file that was stored, if it was one and was read.
    pub hash: Option<Value>,
}

/// What a step came to.
pub(super) enum Step {
    Wrote,
    Worked,
    Starved,
}

/// What would have to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What it would be called at the receiver.
    pub name: Vec<u8>,
    /// Bytes of it that the receiver does not hold, holes left out.
    pub bytes: u64,
}

pub(super) struct Ledger {
    /// The receiver is asked what it holds before data go.
    asks: bool,
    next_index: u64,
    named: BTreeMap<u64, Named>,
    /// Files whose chunks can go.
    ready: VecDeque<u64>,
    /// Files whose DROP is to be sent.
    drops: Vec<u64>,
    /// What will not come, of which the receiver is to be told.
    failed: Vec<String>,
    progress: Progress,
    problems: Vec<String>,
    /// Nothing is sent: what would have to be, where that is all that is wanted.
    due: Option<Vec<Due>>,
}

/// A file that is named and not settled.
struct Named {
    item: Item,
    holes: RangeSet,
    /// What is to be sent of it; `None`: the receiver has not said yet.
    todo: Option<RangeSet>,
    /// Open from naming to sending, where that follows at once.
    source: Option<Source>,
    tries: u8,
    rounds: u8,
    confirmed: u64,
    /// What the receiver said it held before.
    resumed: u64,
    hash: Option<Value>,
}

impl Ledger {
    pub(super) fn new(asks: bool) -> Self {
        Self {
            asks,
            next_index: 0,
            named: BTreeMap::new(),
            ready: VecDeque::new(),
            drops: Vec::new(),
            failed: Vec::new(),
            progress: Progress::default(),
            problems: Vec::new(),
            due: None,
        }
    }

    /// Nothing is sent.
    pub(super) fn rehearse(&mut self) {
        self.due = Some(Vec::new());
    }

    pub(super) const fn rehearses(&self) -> bool {
        self.due.is_some()
    }

    pub(super) fn take_due(&mut self) -> Vec<Due> {
        self.due.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) const fn asks(&self) -> bool {
        self.asks
    }

    pub(super) const fn progress(&self) -> Progress {
        self.progress
    }

    pub(super) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// Bytes of content were given to the connection.
    pub(super) const fn count_sent(&mut self, bytes: u64) {
        self.progress.sent += bytes;
    }

    /// Whether a file is named and not settled.
    pub(super) fn holds(&self, index: u64) -> bool {
        self.named.contains_key(&index)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Whether the receiver has said of all files what it lacks.
    pub(super) fn is_answered(&self) -> bool {
        self.named.values().all(|named| named.todo.is_some())
    }

    /// Whether more files should be named now.
    pub(super) fn wants_more(&self) -> bool {
        let ahead = if self.asks { AHEAD } else { 1 };
        self.ready.len() < ahead && self.named.len() < NAMED_MAX
    }

    /// The next file whose chunks can go.
    pub(super) fn take_ready(&mut self) -> Option<u64> {
        self.ready.pop_front()
    }

    /// The next file whose DROP is to be sent.
    pub(super) fn take_drop(&mut self) -> Option<u64> {
        self.drops.pop()
    }

    /// Tells the receiver of what will not come; whether there was any.
    pub(super) fn put_failed(&mut self, block: &mut Vec<u8>) -> bool {
        let any = !self.failed.is_empty();
        for reason in self.failed.drain(..) {
            Record::Failed { reason }.put(block);
        }
        any
    }

    /// Names what the walk has found.
    pub(super) fn on_found(&mut self, found: Found, block: &mut Vec<u8>) -> Step {
        match found {
            Found::Item(item) => return self.name(item, 0, block),
            Found::Skipped(path, what) => {
                self.progress.skipped += 1;
                self.problems.push(told(&path, &format!("skipped: it is {what}")));
            }
            Found::Unreadable(path, error) => self.fail(&path, &error),
        }
        Step::Worked
    }

    fn name(&mut self, mut item: Item, tries: u8, block: &mut Vec<u8>) -> Step {
        let (mut holes, mut source) = (RangeSet::new(), None);
        if item.kind == Kind::File {
            let opened = Source::open(&item.path)
                .and_then(|file| file.check_size().map(|()| file))
                .and_then(|file| Ok((file.holes()?, file)));
            match opened {
                Ok((found, file)) => {
                    item.facts = *file.facts();
                    holes = found;
                    source = Some(file).filter(|_| !self.asks);
                }
                Err(error) => {
                    self.fail(&item.path, &error);
                    return Step::Worked;
                }
            }
        }
        let index = self.put_entry(&item, &holes, block);
        if item.kind == Kind::File {
            let all = outside(chunks(item.facts.size), [&holes]);
            let todo = Some(all).filter(|_| !self.asks);
            if todo.is_some() {
                self.ready.push_back(index);
            }
            let named = Named {
                item,
                holes,
                todo,
                source,
                tries,
                rounds: 0,
                confirmed: 0,
                resumed: 0,
                hash: None,
            };
            self.named.insert(index, named);
        }
        Step::Wrote
    }

    /// Names a stream of unknown length, the only entry of its transfer.
    pub(super) fn name_stream(&mut self, name: Vec<u8>, block: &mut Vec<u8>) -> u64 {
        let facts = Facts { mode: 0o644, mtime: FileTime::default(), size: 0, inode: (0, 0) };
        let (path, target) = (PathBuf::from("-"), Vec::new());
        let item = Item { path, name, kind: Kind::Stream, facts, data: 0, target };
        let holes = RangeSet::new();
        let index = self.put_entry(&item, &holes, block);
        let (todo, source) = (Some(RangeSet::new()), None);
        let named = Named {
            item,
            holes,
            todo,
            source,
            tries: 0,
            rounds: 0,
            confirmed: 0,
            resumed: 0,
            hash: None,
        };
        self.named.insert(index, named);
        index
    }

    fn put_entry(&mut self, item: &Item, holes: &RangeSet, block: &mut Vec<u8>) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        let &Item { kind, facts: Facts { mode, mtime, size, .. }, .. } = item;
        let (holes, target, path) = (holes.clone(), item.target.clone(), item.name.clone());
        Record::Entry(Entry { index, kind, mode, mtime, size, holes, target, path }).put(block);
        index
    }

    /// A stream has come to its end.
    pub(super) fn end_stream(&mut self, index: u64, size: u64, hash: Value) {
        if let Some(named) = self.named.get_mut(&index) {
            named.item.facts.size = size;
            named.hash = Some(hash);
        }
    }

    /// What a file hashes to that was sent.
    pub(super) fn note_hash(&mut self, index: u64, hash: Value) {
        if let Some(named) = self.named.get_mut(&index) {
            named.hash = Some(hash);
        }
    }

    /// Opens a file to send what is wanted of it, if anything is.
    pub(super) fn open(&mut self, index: u64) -> Option<Current> {
        let named = self.named.get_mut(&index).filter(|named| named.item.facts.size > 0)?;
        match named.source.take().map_or_else(|| Source::open(&named.item.path), Ok) {
            Ok(source) => {
                let todo = named.todo.clone().unwrap_or_default();
                let (facts, holes) = (named.item.facts, named.holes.clone());
                Some(Current::new(index, source, facts, todo, holes))
            }
            Err(error) => {
                self.give_up(index, &error);
                None
            }
        }
    }

    /// The file is not sent: drops it, and names it anew if it may be better next time.
    pub(super) fn abandon(&mut self, index: u64, failed: Option<&str>, block: &mut Vec<u8>) {
        let Some(named) = self.forget(index) else { return };
        let tries = named.tries + 1;
        let path = named.item.path.clone();
        match failed {
            Some(why) => self.fail(&path, &why),
            None if tries >= TRIES => self.fail(&path, &"changed while it was read, three times"),
            None => {}
        }
        self.put_failed(block);
        Record::Drop { index }.put(block);
        if failed.is_none() && tries < TRIES {
            self.name(named.item, tries, block);
        }
    }

    /// What the receiver says of a file.
    pub(super) fn on_record(&mut self, record: Record) -> Result<(), Broken> {
        match record {
            Record::Have { index, chunks } => self.on_have(index, &chunks),
            Record::Confirm { index, chunks } => self.on_confirm(index, &chunks),
            Record::Stored { index, held } => self.on_stored(index, held),
            Record::Bad { index, chunks } => self.on_bad(index, chunks),
            Record::Refused { index, reason } => {
                self.progress.failures += 1;
                self.problems.push(format!("refused: {reason}"));
                if self.forget(index).is_some() {
                    self.drops.push(index);
                }
                Ok(())
            }
            _ => Err(Broken("a sender's record came from the receiver")),
        }
    }

    /// Nothing of this transfer is held: what was named goes as a whole.
    pub(super) fn send_all(&mut self) {
        self.asks = false;
        for (&index, named) in &mut self.named {
            if named.todo.is_none() {
                named.todo = Some(outside(chunks(named.item.facts.size), [&named.holes]));
                self.ready.push_back(index);
            }
        }
    }

    fn on_have(&mut self, index: u64, held: &RangeSet) -> Result<(), Broken> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        if named.todo.is_some() {
            return Err(Broken("a file was answered twice"));
        }
        let size = named.item.facts.size;
        let data = bytes_of(size, held);
        if let Some(due) = &mut self.due {
            let bytes = bytes_of(size, &outside(chunks(size), [&named.holes, held]));
            due.push(Due { name: named.item.name.clone(), bytes });
            self.named.remove(&index);
            return Ok(());
        }
        named.confirmed = data;
        named.resumed = data;
        named.todo = Some(outside(chunks(size), [&named.holes, held]));
        self.ready.push_back(index);
        self.progress.confirmed += data;
        self.progress.resumed += data;
        Ok(())
    }

    fn on_confirm(&mut self, index: u64, chunks: &RangeSet) -> Result<(), Broken> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        let size = named.item.facts.size;
        let data = bytes_of(size, chunks);
        named.confirmed += data;
        self.progress.confirmed += data;
        if named.confirmed > size && named.item.kind == Kind::File {
            return Err(Broken("more was confirmed than there is"));
        }
        Ok(())
    }

    fn on_stored(&mut self, index: u64, held: bool) -> Result<(), Broken> {
        let stored = Broken("a file was stored that was not sent");
        let Named { item, hash, .. } = self.forget(index).ok_or(stored)?;
        let size = item.facts.size;
        self.progress.hash = hash.filter(|_| self.progress.stored == 0);
        self.progress.confirmed += size;
        self.progress.stored += 1;
        self.progress.stored_bytes += size;
        if held {
            self.progress.resumed += size;
        }
        Ok(())
    }

    fn on_bad(&mut self, index: u64, bad: RangeSet) -> Result<(), Broken> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        named.rounds += 1;
        let again = bytes_of(named.item.facts.size, &bad);
        if named.item.kind == Kind::Stream {
            self.give_up(index, &"cannot be read twice, and did not arrive whole");
            return Ok(());
        }
        if again == 0 {
            return Err(NOT_SENT);
        }
        if named.rounds > TRIES {
            self.give_up(index, &"its hash did not fit at the receiver, three times");
            return Ok(());
        }
        let lost = named.confirmed.min(again);
        named.confirmed -= lost;
        self.progress.confirmed -= lost;
        let lost = named.resumed.min(again);
        named.resumed -= lost;
        self.progress.resumed -= lost;
        named.todo = Some(bad);
        self.ready.push_back(index);
        Ok(())
    }

    fn give_up(&mut self, index: u64, why: &dyn Display) {
        if let Some(named) = self.forget(index) {
            self.drops.push(index);
            self.fail(&named.item.path, why);
        }
    }

    /// The stream cannot be read to its end.
    pub(super) fn lose_stream(&mut self, index: u64, error: &io::Error) {
        if self.forget(index).is_some() {
            self.drops.push(index);
        }
        self.fail(Path::new("standard input"), error);
    }

    /// It is settled, or will not be: nothing of it counts as confirmed any more.
    fn forget(&mut self, index: u64) -> Option<Named> {
        let named = self.named.remove(&index)?;
        self.progress.confirmed -= named.confirmed;
        Some(named)
    }

    /// An entry will not be at the receiver.
    fn fail(&mut self, path: &Path, why: &dyn Display) {
        self.progress.failures += 1;
        let reason = told(path, why);
        // The end of a long path tells more than its start, and the reason most.
        let start = reason.ceil_char_boundary(reason.len().saturating_sub(REASON_MAX));
        self.failed.push(reason[start..].to_owned());
        self.problems.push(reason);
    }
}

fn told(path: &Path, what: &dyn Display) -> String {
    format!("{}: {what}", shown(path.as_os_str().as_bytes()))
}

/// The receiver wants again what has not gone.
pub(super) const NOT_SENT: Broken = Broken("chunks are wanted again that were not sent");

/// Bytes of these chunks in a file of that size.
fn bytes_of(size: u64, held: &RangeSet) -> u64 {
    let count = chunks(size);
    let within = held.iter().map(|range| range.start.min(count)..range.end.min(count));
    within
        .filter(|range| !range.is_empty())
        .map(|range| {
            let last = range.end - 1;
            (last - range.start) * CHUNK + chunk_len(size, last)
        })
        .sum()
}
