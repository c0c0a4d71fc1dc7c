//! Standard output as a place for what arrives: a thread writes it, so that a reader that pauses stops
//! neither acknowledgments nor keep-alives.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::thread;

/// Blocks that may wait for the reader.
const WAITING: usize = 4;

#[derive(Debug)]
pub struct Output {
    blocks: SyncSender<Vec<u8>>,
    written: Receiver<io::Result<u64>>,
    bytes: u64,
}

impl Output {
    /// Writes `to`; `wake` is called whenever something was written.
    pub fn new(to: impl Write + Send + 'static, wake: impl Fn() + Send + 'static) -> Self {
        let (blocks, inbox) = sync_channel::<Vec<u8>>(WAITING);
        let (report, written) = channel();
        thread::spawn(move || {
            let mut to = to;
            while let Ok(block) = inbox.recv() {
                let outcome = to.write_all(&block).and_then(|()| to.flush());
                let failed = outcome.is_err();
                let told = report.send(outcome.map(|()| block.len() as u64));
                wake();
                if failed || told.is_err() {
                    break;
                }
            }
        });
        Self { blocks, written, bytes: 0 }
    }

    /// Takes a block, or gives it back where others wait.
    pub fn offer(&self, block: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.blocks.try_send(block) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) => Err(block),
        }
    }

    /// How many bytes were written so far.
    pub fn written(&mut self) -> io::Result<u64> {
        loop {
            match self.written.try_recv() {
                Ok(written) => self.bytes += written?,
                Err(TryRecvError::Empty) => return Ok(self.bytes),
                Err(TryRecvError::Disconnected) => {
                    return Err(io::Error::from(io::ErrorKind::BrokenPipe));
                }
            }
        }
    }
}
