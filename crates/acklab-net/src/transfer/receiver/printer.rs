//! The receiver's end where one file or stream goes to standard output: in order, each chunk once its
//! value fits.
//!
//! Nothing is kept for another try, and what was written stands: a whole whose hash does not fit ends the
//! transfer with an error.

use acklab_core::ranges::RangeSet;
use acklab_core::time::Time;

use super::destination::{Destination, Dialogue, NO_HELLO, Printed, ReceiveError, UNKNOWN};
use crate::transfer::chunk::{CHUNK, ChunkHasher, Tree, Value, chunk_len, chunks};
use crate::transfer::journal::FileId;
use crate::transfer::record::{Broken, Entry, Kind, Record, TransferId, VERSION};
use crate::transfer::stdout::Output;
use crate::transfer::store::file_id;

/// The receiver of one file or stream.
pub struct Printer {
    output: Output,
    dialogue: Dialogue,
    /// What went to the output before, of which the sender may not know.
    before: Option<Printed>,
    printed: Option<Printed>,
    transfer: TransferId,
    greeted: bool,
    next_index: u64,
    file: Option<Current>,
    /// Bytes that the output has not taken yet.
    waiting: Option<Vec<u8>>,
    /// Bytes that it has.
    given: u64,
    done: bool,
    finished: bool,
}

/// The file that is printed.
struct Current {
    index: u64,
    id: FileId,
    size: u64,
    stream: bool,
    holes: RangeSet,
    tree: Tree,
    /// The hash of a stream that has no second chunk.
    whole: Option<Value>,
    chunk: Option<Printing>,
    root: Option<Value>,
}

/// A chunk whose bytes are coming.
struct Printing {
    number: u64,
    len: usize,
    bytes: Vec<u8>,
    value: Vec<u8>,
}

impl Printer {
    /// Prints to `output`, unless that has taken something before, which is not printed again.
    pub fn new(output: Output, before: Option<Printed>) -> Self {
        Self {
            output,
            before,
            printed: before,
            transfer: TransferId::default(),
            dialogue: Dialogue::default(),
            greeted: false,
            next_index: 0,
            file: None,
            waiting: None,
            given: 0,
            done: false,
            finished: false,
        }
    }

    /// Does one thing; false where there is nothing to do.
    fn step(&mut self) -> Result<bool, ReceiveError> {
        if let Some(block) = self.waiting.take() {
            let len = block.len() as u64;
            if let Err(block) = self.output.offer(block) {
                // A reader that is gone is told by what was written.
                self.output.written().map_err(ReceiveError::Output)?;
                self.waiting = Some(block);
                return Ok(false);
            }
            self.given += len;
            return Ok(true);
        }
        if let Some(file) = &mut self.file {
            if let Some(zeros) = file.next_hole() {
                self.waiting = Some(zeros);
                return Ok(true);
            }
            if let Some(hash) = file.root {
                return self.conclude(hash);
            }
            if file.chunk.is_some() {
                return self.take_data();
            }
        }
        if let Some(record) = self.dialogue.record()? {
            self.on_record(record)?;
            return Ok(true);
        }
        if self.done && self.file.is_none() && !self.finished {
            self.dialogue.finish();
            self.finished = true;
        }
        Ok(false)
    }

    fn on_record(&mut self, record: Record) -> Result<(), ReceiveError> {
        if matches!(record, Record::Hello { .. }) == self.greeted {
            return Err(if self.greeted { Broken("HELLO came twice") } else { NO_HELLO }.into());
        }
        match record {
            Record::Hello { version, .. } if version != VERSION => {
                return Err(ReceiveError::Version(version));
            }
            Record::Hello { rehearses: true, .. } => {
                return Err(Broken("standard output holds nothing to compare with").into());
            }
            Record::Hello { asks, transfer, count, bytes, .. } => {
                self.greeted = true;
                self.transfer = transfer;
                self.dialogue.note_announced(count, bytes);
                let held = asks && self.before.is_some();
                self.dialogue.put(&Record::Welcome { version: VERSION, held });
            }
            Record::Entry(entry) => self.on_entry(entry)?,
            Record::Chunk { index, chunk, len } => {
                let file = self.file.as_mut().filter(|file| file.index == index).ok_or(UNKNOWN)?;
                file.begin(chunk, len)?;
            }
            Record::Root { index, size, hash } => {
                let file = self.file.as_mut().filter(|file| file.index == index).ok_or(UNKNOWN)?;
                if size != file.size {
                    return Err(Broken("a file ends with another size than it had").into());
                }
                file.root = Some(hash);
            }
            Record::Drop { index } => {
                if self.file.take_if(|file| file.index == index).is_some() && self.given > 0 {
                    let gone = std::io::Error::other("the sender could not read it to its end");
                    return Err(ReceiveError::Output(gone));
                }
            }
            Record::Failed { reason } => self.dialogue.fail(&reason),
            Record::Done => self.done = true,
            _ => return Err(Broken("a receiver's record came from the sender").into()),
        }
        Ok(())
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), ReceiveError> {
        let Entry { index, kind, size, mtime, holes, path, .. } = entry;
        if index != self.next_index {
            return Err(Broken("entries are out of order").into());
        }
        self.next_index += 1;
        if index > 0 || !matches!(kind, Kind::File | Kind::Stream) {
            return Err(Broken("standard output takes one file or stream, and no folder").into());
        }
        let id = file_id(&self.transfer, &path, size, mtime);
        if let Some(before) = self.before {
            if before != (Printed { transfer: self.transfer, id }) {
                let taken = std::io::Error::other("it has taken another file already");
                return Err(ReceiveError::Output(taken));
            }
            self.dialogue.held(index, size);
            return Ok(());
        }
        let stream = kind == Kind::Stream;
        let (tree, root) =
            (Tree::default(), (size == 0 && !stream).then(|| Tree::default().root()));
        self.file =
            Some(Current { index, id, size, stream, holes, tree, whole: None, chunk: None, root });
        Ok(())
    }

    /// Takes bytes of the chunk that is coming.
    fn take_data(&mut self) -> Result<bool, ReceiveError> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let Some(chunk) = &mut file.chunk else { return Ok(false) };
        let left = chunk.len - chunk.bytes.len();
        let most = if left > 0 { left } else { 32 - chunk.value.len() };
        let Some(data) = self.dialogue.data(most) else { return Ok(false) };
        if left > 0 {
            chunk.bytes.extend_from_slice(data);
            return Ok(true);
        }
        chunk.value.extend_from_slice(data);
        if chunk.value.len() == 32 {
            let bytes = file.end_chunk()?;
            self.dialogue.count(bytes.len() as u64);
            self.waiting = Some(bytes);
        }
        Ok(true)
    }

    /// Everything was given to the output: when it is written, the sender is told.
    fn conclude(&mut self, hash: Value) -> Result<bool, ReceiveError> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let actual = file.whole.unwrap_or_else(|| std::mem::take(&mut file.tree).root());
        if actual != hash {
            return Err(Broken("the whole does not fit its hash, though its parts did").into());
        }
        file.whole = Some(actual);
        if self.output.written().map_err(ReceiveError::Output)? < self.given {
            return Ok(false);
        }
        self.dialogue.count_stored(file.size, Some(actual));
        self.printed = Some(Printed { transfer: self.transfer, id: file.id });
        self.dialogue.put(&Record::Stored { index: file.index, held: false });
        self.file = None;
        Ok(true)
    }
}

impl Destination for Printer {
    fn dialogue(&self) -> &Dialogue {
        &self.dialogue
    }

    fn dialogue_mut(&mut self) -> &mut Dialogue {
        &mut self.dialogue
    }

    /// Where the reader pauses there is nothing to do until the output wakes the loop.
    fn advance(&mut self, _now: Time) -> Result<bool, ReceiveError> {
        let mut budget = super::BUDGET / CHUNK + 64;
        while self.step()? {
            budget -= 1;
            if budget == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn may_go_on(&self) -> bool {
        self.given == 0
    }

    fn printed(&self) -> Option<Printed> {
        self.printed
    }
}

impl Current {
    fn chunks(&self) -> u64 {
        chunks(self.size)
    }

    /// The zeros of the next chunk, if it is a hole.
    fn next_hole(&mut self) -> Option<Vec<u8>> {
        let number = self.tree.len();
        if self.whole.is_some() || !self.holes.contains(number) {
            return None;
        }
        let zeros = vec![0; chunk_len(self.size, number) as usize];
        let mut hasher = ChunkHasher::new(number);
        hasher.update(&zeros);
        self.tree.push(hasher.value(self.chunks()));
        Some(zeros)
    }

    fn begin(&mut self, number: u64, len: u64) -> Result<(), Broken> {
        let fits = if self.stream {
            (1..=CHUNK).contains(&len) && number * CHUNK == self.size
        } else {
            number < self.chunks() && len == chunk_len(self.size, number)
        };
        if !fits || number != self.tree.len() {
            return Err(Broken("a chunk is not the next of its file"));
        }
        if self.stream {
            self.size += len;
        }
        let len = len as usize;
        let (bytes, value) = (Vec::with_capacity(len), Vec::with_capacity(32));
        self.chunk = Some(Printing { number, len, bytes, value });
        Ok(())
    }

    /// The bytes of the chunk that has come, if they are what the sender has hashed.
    fn end_chunk(&mut self) -> Result<Vec<u8>, Broken> {
        let count = if self.stream { 2 } else { self.chunks() };
        let Some(Printing { number, bytes, value, .. }) = self.chunk.take() else {
            return Ok(Vec::new());
        };
        let mut hasher = ChunkHasher::new(number);
        hasher.update(&bytes);
        let actual = hasher.value(count);
        if actual[..] != value[..] {
            return Err(Broken("a chunk does not fit its value"));
        }
        if self.stream {
            self.whole = (number == 0).then(|| hasher.value(1));
        }
        self.tree.push(actual);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::transfer::inlet::Inlet;
    use crate::transfer::record::FileTime;

    /// What is written goes to the test.
    struct Paper(Sender<Vec<u8>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A sender's bytes: HELLO, a file of that name, its data unless they are `held`, DONE.
    fn sent(path: &[u8], data: &[u8], held: bool) -> Vec<u8> {
        let (size, hash) = (data.len() as u64, *blake3::hash(data).as_bytes());
        let mut out = Vec::new();
        let (asks, transfer, count, bytes) = (held, [7; 16], 1, size);
        let (version, rehearses) = (VERSION, false);
        Record::Hello { version, asks, rehearses, transfer, count, bytes, data: size }
            .put(&mut out);
        let (mtime, holes, path) = (FileTime::default(), RangeSet::new(), path.to_vec());
        let (kind, target) = (Kind::File, Vec::new());
        Record::Entry(Entry { index: 0, kind, mode: 0o644, mtime, size, holes, target, path })
            .put(&mut out);
        if !held {
            Record::Chunk { index: 0, chunk: 0, len: size }.put(&mut out);
            out.extend_from_slice(data);
            out.extend_from_slice(&hash);
            Record::Root { index: 0, size, hash }.put(&mut out);
        }
        Record::Done.put(&mut out);
        out
    }

    /// What a printer came to, and what it has printed.
    fn print(before: Option<Printed>, bytes: Vec<u8>) -> Result<(Printer, Vec<u8>), ReceiveError> {
        let (paper, pages) = channel();
        let (wake, woken) = channel();
        let output = Output::new(Paper(paper), move || wake.send(()).unwrap_or_default());
        let mut printer = Printer::new(output, before);
        printer.handle_block(bytes);
        loop {
            if !printer.advance(Time::ZERO)? {
                if printer.is_finished() {
                    break;
                }
                woken.recv().expect("the thread that prints");
            }
        }
        Ok((printer, pages.try_iter().flatten().collect()))
    }

    #[test]
    fn what_was_printed_is_not_printed_again_for_a_sender_that_did_not_hear_of_it() {
        let (first, pages) = print(None, sent(b"x", b"words", false)).expect("printed");
        assert_eq!((pages.as_slice(), first.may_go_on()), (&b"words"[..], false));
        let before = first.printed();
        assert!(before.is_some());
        let (mut second, pages) = print(before, sent(b"x", b"words", true)).expect("remembered");
        assert_eq!((pages.len(), second.printed()), (0, before));
        let mut replies = Inlet::default();
        replies.push(second.poll_block().expect("replies"));
        let replies = std::iter::from_fn(|| replies.record().expect("records"));
        let expected = [
            Record::Welcome { version: VERSION, held: true },
            Record::Stored { index: 0, held: true },
            Record::Finished { stored: 1, refused: 0 },
        ];
        assert_eq!(replies.collect::<Vec<_>>(), expected);
        let other = print(before, sent(b"y", b"words", true)).err().expect("one file is all");
        assert!(other.to_string().contains("another file"), "{other}");
    }
}
