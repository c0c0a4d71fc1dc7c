//! The sender's end of a transfer, sans-IO as far as the network goes: it gives blocks of bytes for the
//! stream to the receiver and takes what comes back.
//!
//! It names files, sends the chunks that the receiver does not hold, hashes what it read, and says at
//! each file's end what the whole of it hashes to (docs/rudp.md section 10). A file that changed while
//! it was read is dropped and named again, three times. What it keeps is one block, the values of one
//! file's chunks, and the names of at most 1024 files that are on their way.

mod current;
mod replies;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use self::current::Current;
use self::stream::Stream;
use crate::transfer::chunk::{CHUNK, Tree, Values, chunks};
use crate::transfer::inlet::Inlet;
use crate::transfer::name::shown;
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Broken, Entry, Kind, Record, TransferId, VERSION};
use crate::transfer::source::Source;
use crate::transfer::stdin::Input;
use crate::transfer::walk::{Found, Item, Survey, Totals, Walk};

/// Bytes that are read, hashed and given to the connection at once: large enough that BLAKE3 works on
/// all lanes and a system call costs little, small enough to stay in the processor's cache.
pub const BLOCK: usize = 256 << 10;

/// Files that are named and not stored yet.
const NAMED_MAX: usize = 1024;
/// Files that are named ahead where the receiver is asked what it holds of them.
const AHEAD: usize = 256;
/// How often a file is tried that changes, or whose hash does not fit.
const TRIES: u8 = 3;
/// Chunks that are hashed in one call of [`Sender::poll_block`].
const BUDGET: u32 = 4;

/// How far it is.
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
    /// Bytes of these.
    pub stored_bytes: u64,
}

/// The next thing to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Bytes for the stream.
    Block(Vec<u8>),
    /// Nothing yet, but there is work: ask again soon.
    Busy,
    /// Nothing until the receiver says something.
    Waiting,
}

/// Why a transfer cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The receiver said what cannot be.
    #[error("the receiver broke a rule of the transfer: {0}")]
    Peer(#[from] Broken),
    /// It speaks another version.
    #[error("the receiver speaks version {0} of the transfer, and this is version {VERSION}")]
    Version(u8),
}

/// The sender.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one record was sent")]
pub struct Sender {
    /// Empty where a stream is sent.
    walk: Option<Walk>,
    stream: Option<Stream>,
    walked: bool,
    transfer: TransferId,
    totals: Totals,
    asks: bool,
    greeted: bool,
    done: bool,
    finished: bool,
    next_index: u64,
    named: BTreeMap<u64, Named>,
    /// Files whose chunks can go.
    ready: VecDeque<u64>,
    /// Files that the receiver has refused.
    drops: Vec<u64>,
    current: Option<Current>,
    inlet: Inlet,
    progress: Progress,
    problems: Vec<String>,
    /// Entries that will not be at the receiver.
    failures: u64,
    skipped: u64,
}

/// A file that is named and not settled.
struct Named {
    item: Item,
    holes: Ranges,
    /// What is to be sent of it; `None`: the receiver has not said yet.
    todo: Option<Ranges>,
    /// Open from naming to sending, where that follows at once.
    source: Option<Source>,
    tries: u8,
    rounds: u8,
    confirmed: u64,
}

/// What a step came to.
enum Step {
    Wrote,
    Worked,
    Starved,
}

impl Sender {
    /// Sends what `walk` finds. `asks`: the receiver holds something of an unfinished transfer, so it
    /// is asked before data go.
    pub fn new(walk: Walk, survey: Survey, asks: bool) -> Self {
        Self::with(Some(walk), survey, asks)
    }

    fn with(walk: Option<Walk>, survey: Survey, asks: bool) -> Self {
        let Survey { totals, transfer } = survey;
        Self {
            walk,
            stream: None,
            walked: false,
            transfer,
            totals,
            asks,
            greeted: false,
            done: false,
            finished: false,
            next_index: 0,
            named: BTreeMap::new(),
            ready: VecDeque::new(),
            drops: Vec::new(),
            current: None,
            inlet: Inlet::default(),
            progress: Progress::default(),
            problems: Vec::new(),
            failures: 0,
            skipped: 0,
        }
    }

    /// Sends a stream of unknown length, which is called `name` at the receiver.
    pub fn of_stream(input: Input, name: &str, transfer: TransferId) -> Self {
        let totals = Totals { entries: 1, files: 1, ..Totals::default() };
        let mut sender = Self::with(None, Survey { totals, transfer }, false);
        sender.stream = Some(Stream::new(input, name.as_bytes().to_vec()));
        sender
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// What it is about.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether everything is stored or refused.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// What could not be sent or was refused, since the last call, in words.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// Files and folders that could not be read, or that the receiver refused.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Links, devices and the like that were left out.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next bytes for the stream, about `room` of them.
    pub fn poll_block(&mut self, room: usize) -> Next {
        let limit = room.min(BLOCK);
        let mut block = Vec::new();
        let mut budget = BUDGET;
        while block.len() < limit && budget > 0 {
            match self.step(&mut block, limit) {
                Step::Wrote => {}
                Step::Worked => budget -= 1,
                Step::Starved if block.is_empty() => return Next::Waiting,
                Step::Starved => break,
            }
        }
        if block.is_empty() { Next::Busy } else { Next::Block(block) }
    }

    fn step(&mut self, block: &mut Vec<u8>, limit: usize) -> Step {
        if !self.greeted {
            self.greeted = true;
            let &mut Self { asks, transfer, totals, .. } = self;
            let Totals { entries: count, bytes, data, .. } = totals;
            Record::Hello { version: VERSION, asks, transfer, count, bytes, data }.put(block);
            return Step::Wrote;
        }
        let within = self.current.as_ref().is_some_and(|current| current.chunk.is_some())
            || self.stream.as_ref().is_some_and(Stream::is_within_chunk);
        if !within && let Some(index) = self.drops.pop() {
            Record::Drop { index }.put(block);
            return Step::Wrote;
        }
        if let Some(current) = self.current.take() {
            return self.go_on(current, block, limit);
        }
        if let Some(stream) = self.stream.take() {
            return self.pour(stream, block, limit);
        }
        let waiting = if self.asks { AHEAD } else { 1 };
        if !self.walked && self.ready.len() < waiting && self.named.len() < NAMED_MAX {
            return self.name_next(block);
        }
        if let Some(index) = self.ready.pop_front() {
            return self.start(index, block);
        }
        if self.walked && !self.done && self.named.values().all(|named| named.todo.is_some()) {
            self.done = true;
            Record::Done.put(block);
            return Step::Wrote;
        }
        Step::Starved
    }

    fn name_next(&mut self, block: &mut Vec<u8>) -> Step {
        match self.walk.as_mut().and_then(Walk::next) {
            Some(Found::Item(item)) => self.name(item, 0, block),
            Some(Found::Skipped(path, what)) => {
                self.skipped += 1;
                self.problem(&path, &format!("skipped: it is {what}"), false);
                Step::Worked
            }
            Some(Found::Unreadable(path, error)) => {
                self.problem(&path, &error, true);
                Step::Worked
            }
            None => {
                self.walked = true;
                Step::Worked
            }
        }
    }

    fn name(&mut self, mut item: Item, tries: u8, block: &mut Vec<u8>) -> Step {
        let mut holes = Ranges::default();
        let mut source = None;
        if item.kind == Kind::File {
            let opened = Source::open(&item.path).and_then(|file| Ok((file.holes()?, file)));
            match opened {
                Ok((found, file)) => {
                    item.facts = *file.facts();
                    holes = found;
                    source = Some(file).filter(|_| !self.asks);
                }
                Err(error) => {
                    self.problem(&item.path, &error, true);
                    return Step::Worked;
                }
            }
        }
        let index = self.next_index;
        self.next_index += 1;
        let (path, size) = (item.name.clone(), item.facts.size);
        let Item { kind, facts, .. } = item;
        let (mode, mtime) = (facts.mode, facts.mtime);
        Record::Entry(Entry { index, kind, mode, mtime, size, holes: holes.clone(), path })
            .put(block);
        if kind == Kind::File {
            let all = holes.neither(&Ranges::default(), chunks(size));
            let todo = Some(all).filter(|_| !self.asks);
            if todo.is_some() {
                self.ready.push_back(index);
            }
            let rounds = 0;
            let named = Named { item, holes, todo, source, tries, rounds, confirmed: 0 };
            self.named.insert(index, named);
        }
        Step::Wrote
    }

    /// Begins to send what is wanted of a file.
    fn start(&mut self, index: u64, block: &mut Vec<u8>) -> Step {
        let Some(named) = self.named.get_mut(&index) else { return Step::Worked };
        let size = named.item.facts.size;
        if size == 0 {
            return Step::Worked;
        }
        let todo = named.todo.clone().unwrap_or_default();
        let source = named.source.take().map_or_else(|| Source::open(&named.item.path), Ok);
        match source {
            Ok(source) => {
                let changed = !source.is_still(&named.item.facts);
                let (values, tree) = (Values::default(), Tree::default());
                let (chunk, failed) = (None, None);
                let current =
                    Current { index, source, size, todo, chunk, values, tree, failed, changed };
                if changed {
                    self.drop_current(current, block);
                } else {
                    self.current = Some(current);
                }
                Step::Worked
            }
            Err(error) => {
                let path = named.item.path.clone();
                self.named.remove(&index);
                self.problem(&path, &error, true);
                Record::Drop { index }.put(block);
                Step::Wrote
            }
        }
    }

    /// The next piece of the present file.
    fn go_on(&mut self, mut current: Current, block: &mut Vec<u8>, limit: usize) -> Step {
        let wanted = self.named.contains_key(&current.index);
        if current.chunk.is_none() {
            if !wanted {
                // Refused: its DROP was sent.
                return Step::Worked;
            }
            if current.changed || current.failed.is_some() {
                self.drop_current(current, block);
                return Step::Wrote;
            }
            let Some(number) = current.todo.first() else { return self.conclude(current, block) };
            current.begin(number, block);
        }
        self.progress.sent += current.piece(block, limit);
        self.current = Some(current);
        Step::Wrote
    }

    /// All chunks are sent: what was not sent is hashed, chunk by chunk, and ROOT ends the file.
    fn conclude(&mut self, mut current: Current, block: &mut Vec<u8>) -> Step {
        let index = current.index;
        let Some(named) = self.named.get(&index) else { return Step::Worked };
        let count = chunks(current.size);
        while current.tree.len() < count {
            let number = current.tree.len();
            let known = current.values.of(number);
            let value = known.unwrap_or_else(|| current.hash(number, &named.holes));
            current.tree.push(value);
            if known.is_none() {
                self.current = Some(current);
                return Step::Worked;
            }
        }
        if current.changed || !current.source.is_still(&named.item.facts) {
            current.changed = true;
            self.drop_current(current, block);
            return Step::Wrote;
        }
        let hash = current.tree.root();
        Record::Root { index, size: current.size, hash }.put(block);
        Step::Wrote
    }

    /// Gives a file up, and names it anew if it may be better next time.
    fn drop_current(&mut self, current: Current, block: &mut Vec<u8>) {
        let index = current.index;
        let Some(named) = self.named.remove(&index) else { return };
        self.progress.confirmed -= named.confirmed;
        let tries = named.tries + 1;
        let path = named.item.path.clone();
        match current.failed {
            Some(why) => self.problem(&path, &why, true),
            None if tries >= TRIES => {
                self.problem(&path, &"changed while it was read, three times", true);
            }
            None => {
                self.name(named.item, tries, block);
            }
        }
        Record::Drop { index }.put(block);
    }

    fn problem(&mut self, path: &Path, what: &dyn Display, counts: bool) {
        let path = shown(path.as_os_str().as_bytes());
        self.failures += u64::from(counts);
        self.problems.push(format!("{path}: {what}"));
    }
}
