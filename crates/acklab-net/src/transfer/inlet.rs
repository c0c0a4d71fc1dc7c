//! Bytes of a stream on their way into records, without copying what a chunk carries.

use std::collections::VecDeque;

use super::record::{Broken, Record};

/// Blocks that were received and not yet used up.
#[derive(Debug, Default)]
pub struct Inlet {
    /// The start of a record whose end is in a block to come.
    head: Vec<u8>,
    blocks: VecDeque<Vec<u8>>,
    /// Bytes of the first block that are used up.
    used: usize,
    len: usize,
}

impl Inlet {
    /// Takes the next bytes.
    pub fn push(&mut self, block: Vec<u8>) {
        self.len += block.len();
        if !block.is_empty() {
            self.blocks.push_back(block);
        }
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.len
    }

    /// The next record, if it is there as a whole.
    pub fn record(&mut self) -> Result<Option<Record>, Broken> {
        loop {
            self.drop_used();
            if self.head.is_empty() {
                let Some(block) = self.blocks.front() else { return Ok(None) };
                if let Some((record, len)) = Record::parse(&block[self.used..])? {
                    self.use_up(len);
                    return Ok(Some(record));
                }
            } else if let Some((record, _)) = Record::parse(&self.head)? {
                self.head.clear();
                return Ok(Some(record));
            }
            // A record across blocks: by the byte, since nothing behind it may be taken along.
            let Some(&[byte, ..]) = self.blocks.front().map(|block| &block[self.used..]) else {
                return Ok(None);
            };
            self.head.push(byte);
            self.use_up(1);
        }
    }

    /// At most `most` of the bytes that follow the last record.
    pub fn data(&mut self, most: usize) -> Option<&[u8]> {
        self.drop_used();
        let start = self.used;
        let end = self.blocks.front()?.len().min(start + most);
        self.len -= end - start;
        self.used = end;
        // The block itself goes with the next call, when it is not borrowed any more.
        self.blocks.front().map(|block| &block[start..end])
    }

    fn use_up(&mut self, count: usize) {
        self.len -= count;
        self.used += count;
    }

    fn drop_used(&mut self) {
        if self.blocks.front().is_some_and(|block| block.len() == self.used) {
            self.blocks.pop_front();
            self.used = 0;
        }
    }
}
