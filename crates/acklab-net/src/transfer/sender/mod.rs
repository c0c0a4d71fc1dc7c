//! The sender's end of a transfer, sans-IO as far as the network goes: it gives blocks of bytes for the
//! stream to the receiver and takes what comes back.
//!
//! It names files, sends the chunks that the receiver does not hold, hashes what it read, and says at
//! each file's end what the whole of it hashes to (docs/rudp.md section 10). A file that changed while
//! it was read is dropped and named again, three times. What it keeps is one block, the values of one
//! file's chunks, and the names of at most 1024 files that are on their way.

mod current;
mod ledger;
mod stream;

pub use self::current::BLOCK;
pub use self::ledger::{Due, Progress};

use self::current::Current;
use self::ledger::{Ledger, NOT_SENT, Step};
use self::stream::Stream;
use super::inlet::Inlet;
use super::record::{Broken, Record, TransferId, VERSION};
use super::stdin::Input;
use super::walk::{Survey, Totals, Walk};

/// Chunks that are hashed in one call of [`Sender::poll_block`].
const BUDGET: u32 = 4;
/// Bytes of the stream that may wait to be understood; the longest record is shorter.
const WAITING_MAX: usize = 4 << 20;

#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Bytes for the stream.
    Block(Vec<u8>),
    /// Nothing yet, but there is work: ask again soon.
    Busy,
    /// Nothing until the receiver says something.
    Waiting,
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the receiver broke a rule of the transfer: {0}")]
    Peer(#[from] Broken),
    #[error("the receiver speaks version {0} of the transfer, and this is version {VERSION}")]
    Version(u8),
}

/// Where the bytes come from.
enum Origin {
    Tree(Walk),
    Stream(Box<Stream>),
    /// Everything was named.
    Exhausted,
}

/// Which of the transfer's own records has gone or come last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    New,
    Greeted,
    Done,
    Finished,
}

pub struct Sender {
    transfer: TransferId,
    totals: Totals,
    origin: Origin,
    stage: Stage,
    ledger: Ledger,
    current: Option<Current>,
    inlet: Inlet,
}

impl Sender {
    /// Sends what `walk` finds. `asks`: the receiver holds something of an unfinished transfer, so it
    /// is asked before data go.
    pub fn new(walk: Walk, survey: Survey, asks: bool) -> Self {
        Self::with(Origin::Tree(walk), survey, asks)
    }

    /// Asks what it would have to send of what `walk` finds, and sends nothing.
    pub fn rehearsal(walk: Walk, survey: Survey) -> Self {
        let mut sender = Self::with(Origin::Tree(walk), survey, true);
        sender.ledger.rehearse();
        sender
    }

    /// What a rehearsal has found that would have to be sent, since the last call.
    pub fn take_due(&mut self) -> Vec<Due> {
        self.ledger.take_due()
    }

    /// Sends a stream of unknown length, which is called `name` at the receiver.
    pub fn of_stream(input: Input, name: &str, transfer: TransferId) -> Self {
        let totals = Totals { entries: 1, files: 1, ..Totals::default() };
        let stream = Stream::new(input, name.as_bytes().to_vec());
        Self::with(Origin::Stream(Box::new(stream)), Survey { totals, transfer }, false)
    }

    fn with(origin: Origin, survey: Survey, asks: bool) -> Self {
        let Survey { totals, transfer } = survey;
        let (stage, ledger) = (Stage::New, Ledger::new(asks));
        Self { transfer, totals, origin, stage, ledger, current: None, inlet: Inlet::default() }
    }

    pub fn progress(&self) -> Progress {
        self.ledger.progress()
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether everything is stored or refused.
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    /// What could not be sent or was refused, since the last call, in words.
    pub fn take_problems(&mut self) -> Vec<String> {
        self.ledger.take_problems()
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
        if self.stage == Stage::New {
            self.stage = Stage::Greeted;
            let (asks, transfer) = (self.ledger.asks(), self.transfer);
            let Totals { entries: count, bytes, data, .. } = self.totals;
            let (version, rehearses) = (VERSION, self.ledger.rehearses());
            Record::Hello { version, asks, rehearses, transfer, count, bytes, data }.put(block);
            return Step::Wrote;
        }
        let streaming = matches!(&self.origin, Origin::Stream(it) if it.is_within_chunk());
        let within = streaming || self.current.as_ref().is_some_and(Current::is_within_chunk);
        if !within && self.ledger.put_failed(block) {
            return Step::Wrote;
        }
        if !within && let Some(index) = self.ledger.take_drop() {
            Record::Drop { index }.put(block);
            return Step::Wrote;
        }
        if let Some(current) = self.current.take() {
            return self.go_on(current, block, limit);
        }
        match &mut self.origin {
            Origin::Stream(stream) => {
                let step = stream.pour(&mut self.ledger, block, limit);
                if stream.is_over() {
                    self.origin = Origin::Exhausted;
                }
                return step;
            }
            Origin::Tree(walk) if self.ledger.wants_more() => {
                let Some(found) = walk.next() else {
                    self.origin = Origin::Exhausted;
                    return Step::Worked;
                };
                return self.ledger.on_found(found, block);
            }
            Origin::Tree(_) | Origin::Exhausted => {}
        }
        if let Some(index) = self.ledger.take_ready() {
            self.current = self.ledger.open(index);
            return Step::Worked;
        }
        let exhausted = matches!(self.origin, Origin::Exhausted);
        if exhausted && self.stage < Stage::Done && self.ledger.is_answered() {
            self.stage = Stage::Done;
            Record::Done.put(block);
            return Step::Wrote;
        }
        Step::Starved
    }

    /// The next piece of the present file; after the last, what was not sent is hashed, and ROOT ends it.
    fn go_on(&mut self, mut current: Current, block: &mut Vec<u8>, limit: usize) -> Step {
        if !current.is_within_chunk() {
            if !self.ledger.holds(current.index()) {
                // Refused: its DROP was sent.
                return Step::Worked;
            }
            let all_gone = !current.is_spoilt() && !current.begin(block);
            if all_gone && !current.hash_rest() {
                self.current = Some(current);
                return Step::Worked;
            }
            let hash = if all_gone { current.conclude(block) } else { None };
            if current.is_spoilt() {
                self.ledger.abandon(current.index(), current.failed(), block);
                return Step::Wrote;
            }
            if let Some(hash) = hash {
                self.ledger.note_hash(current.index(), hash);
                return Step::Wrote;
            }
        }
        self.ledger.count_sent(current.piece(block, limit));
        self.current = Some(current);
        Step::Wrote
    }

    /// Takes bytes of the receiver's stream.
    pub fn handle_block(&mut self, block: Vec<u8>) -> Result<(), SendError> {
        self.inlet.push(block);
        while let Some(record) = self.inlet.record()? {
            self.on_record(record)?;
        }
        if self.inlet.waiting() > WAITING_MAX {
            return Err(Broken("a record does not end").into());
        }
        Ok(())
    }

    fn on_record(&mut self, record: Record) -> Result<(), SendError> {
        let going = |index| self.current.as_ref().is_some_and(|it| it.index() == index);
        match record {
            Record::Welcome { version, .. } if version != VERSION => {
                return Err(SendError::Version(version));
            }
            Record::Welcome { held, .. } => {
                if self.ledger.asks() && !held {
                    self.ledger.send_all();
                }
            }
            Record::Bad { index, .. } if going(index) && self.ledger.holds(index) => {
                return Err(NOT_SENT.into());
            }
            Record::Finished { .. } => {
                if self.stage < Stage::Done || !self.ledger.is_empty() {
                    return Err(Broken("the transfer was ended before its time").into());
                }
                self.stage = Stage::Finished;
            }
            record => self.ledger.on_record(record)?,
        }
        Ok(())
    }
}
