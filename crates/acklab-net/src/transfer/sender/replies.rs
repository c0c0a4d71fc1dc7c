//! What the receiver says, and what the sender makes of it.

use super::{Progress, SendError, Sender, TRIES};
use crate::transfer::chunk::{chunk_len, chunks};
use crate::transfer::ranges::Ranges;
use crate::transfer::record::{Broken, Kind, Record, VERSION};

/// Bytes of the stream that may wait to be understood; the longest record is shorter.
const WAITING_MAX: usize = 4 << 20;

impl Sender {
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
        match record {
            Record::Welcome { version, .. } if version != VERSION => {
                return Err(SendError::Version(version));
            }
            Record::Welcome { held, .. } => {
                if self.asks && !held {
                    self.send_all();
                }
            }
            Record::Have { index, chunks } => self.on_have(index, &chunks)?,
            Record::Confirm { index, chunks } => self.on_confirm(index, &chunks)?,
            Record::Stored { index, held } => self.on_stored(index, held)?,
            Record::Refused { index, reason } => {
                self.failures += 1;
                self.problems.push(format!("refused: {reason}"));
                if let Some(named) = self.named.remove(&index) {
                    self.progress.confirmed -= named.confirmed;
                    self.drops.push(index);
                }
            }
            Record::Bad { index, chunks } => self.on_bad(index, &chunks)?,
            Record::Finished { .. } => {
                if !self.done || !self.named.is_empty() {
                    return Err(Broken("the transfer was ended before its time").into());
                }
                self.finished = true;
            }
            _ => return Err(Broken("a sender's record came from the receiver").into()),
        }
        Ok(())
    }

    /// Nothing of this transfer is held: what was named goes as a whole.
    fn send_all(&mut self) {
        self.asks = false;
        for (&index, named) in &mut self.named {
            let count = chunks(named.item.facts.size);
            if named.todo.is_none() {
                named.todo = Some(named.holes.neither(&Ranges::default(), count));
                self.ready.push_back(index);
            }
        }
    }

    fn on_have(&mut self, index: u64, held: &Ranges) -> Result<(), SendError> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        if named.todo.is_some() {
            return Err(Broken("a file was answered twice").into());
        }
        let size = named.item.facts.size;
        let data = bytes_of(size, held);
        named.confirmed = data;
        named.todo = Some(named.holes.neither(held, chunks(size)));
        self.ready.push_back(index);
        self.progress.confirmed += data;
        self.progress.resumed += data;
        Ok(())
    }

    fn on_confirm(&mut self, index: u64, chunks: &Ranges) -> Result<(), SendError> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        let size = named.item.facts.size;
        let data = bytes_of(size, chunks);
        named.confirmed += data;
        self.progress.confirmed += data;
        if named.confirmed > size && named.item.kind == Kind::File {
            return Err(Broken("more was confirmed than there is").into());
        }
        Ok(())
    }

    fn on_stored(&mut self, index: u64, held: bool) -> Result<(), SendError> {
        let Some(named) = self.named.remove(&index) else {
            return Err(Broken("a file was stored that was not sent").into());
        };
        let size = named.item.facts.size;
        let Progress { confirmed, resumed, stored, stored_bytes, .. } = &mut self.progress;
        *confirmed = *confirmed - named.confirmed + size;
        *stored += 1;
        *stored_bytes += size;
        if held {
            *resumed += size;
        }
        Ok(())
    }

    fn on_bad(&mut self, index: u64, bad: &Ranges) -> Result<(), SendError> {
        let Some(named) = self.named.get_mut(&index) else { return Ok(()) };
        named.rounds += 1;
        let again = bytes_of(named.item.facts.size, bad);
        if named.item.kind == Kind::Stream {
            self.give_up(index, "cannot be read twice, and did not arrive whole");
            return Ok(());
        }
        if again == 0 || self.current.as_ref().is_some_and(|current| current.index == index) {
            return Err(Broken("chunks are wanted again that were not sent").into());
        }
        if named.rounds > TRIES {
            self.give_up(index, "its hash did not fit at the receiver, three times");
            return Ok(());
        }
        let lost = named.confirmed.min(again);
        named.confirmed -= lost;
        self.progress.confirmed -= lost;
        named.todo = Some(bad.clone());
        self.ready.push_back(index);
        Ok(())
    }
}

impl Sender {
    fn give_up(&mut self, index: u64, why: &str) {
        let Some(named) = self.named.remove(&index) else { return };
        self.drops.push(index);
        self.progress.confirmed -= named.confirmed;
        self.problem(&named.item.path, &why, true);
    }
}

/// Bytes of these chunks in a file of that size.
fn bytes_of(size: u64, held: &Ranges) -> u64 {
    let count = chunks(size);
    let within = held.iter().map(|range| range.start.min(count)..range.end.min(count));
    within
        .filter(|range| !range.is_empty())
        .map(|range| {
            let last = range.end - 1;
            (last - range.start) * super::CHUNK + chunk_len(size, last)
        })
        .sum()
}
