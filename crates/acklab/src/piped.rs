//! Standard input as a capture that is still being written: Ctrl-C is its end.
//!
//! In `tcpdump -w - | acklab diagnose -` Ctrl-C reaches both programs. The writer may still have packets in its
//! buffer, so after the signal what comes is read until the writer closes the pipe, or has been silent for a while.
//! A thread reads, because a read that waits is not interrupted by the signal.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::outcome::{Failure, early_end};

/// Standard input up to its end or to Ctrl-C.
pub(crate) struct Piped {
    chunks: Receiver<io::Result<Vec<u8>>>,
    ended: Arc<AtomicBool>,
    rest: io::Cursor<Vec<u8>>,
}

impl Piped {
    /// Reads standard input from now on. A second Ctrl-C ends the program.
    pub(crate) fn open() -> Result<Self, Failure> {
        Ok(Self::reading(io::stdin(), early_end()?))
    }

    fn reading(mut source: impl Read + Send + 'static, ended: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = source.read(&mut chunk).map(|len| {
                    chunk.truncate(len);
                    chunk
                });
                let is_last = read.as_ref().map_or(true, Vec::is_empty);
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { chunks, ended, rest: io::Cursor::default() }
    }

    /// The next bytes; none at the end.
    fn next(&self) -> io::Result<Vec<u8>> {
        loop {
            let was_ended = self.ended.load(Ordering::Relaxed);
            match self.chunks.recv_timeout(if was_ended { SILENCE } else { LOOK }) {
                Ok(chunk) => return chunk,
                Err(RecvTimeoutError::Timeout) if !was_ended => {}
                Err(_) => return Ok(Vec::new()),
            }
        }
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.position() == self.rest.get_ref().len() as u64 {
            self.rest = io::Cursor::new(self.next()?);
        }
        self.rest.read(buffer)
    }
}

/// Bytes that are read at once: what a pipe holds.
const CHUNK: usize = 64 << 10;
/// Chunks that may wait: 4 MiB.
const CHUNKS: usize = 64;
/// How often the signal is looked for while nothing comes.
const LOOK: Duration = Duration::from_millis(100);
/// After the signal: how long without a byte is the end.
const SILENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_signal_is_read_and_silence_is_the_end() {
        let (mut writer, reader) = {
            let (reader, writer) = io::pipe().unwrap();
            (writer, reader)
        };
        let ended = Arc::new(AtomicBool::new(false));
        let mut piped = Piped::reading(reader, Arc::clone(&ended));
        io::Write::write_all(&mut writer, b"before").unwrap();
        let mut read = [0; 6];
        piped.read_exact(&mut read).unwrap();
        ended.store(true, Ordering::Relaxed);
        io::Write::write_all(&mut writer, b" after").unwrap();
        let mut rest = Vec::new();
        // The writer is still there.
        piped.read_to_end(&mut rest).unwrap();
        assert_eq!((&read, rest.as_slice()), (b"before", &b" after"[..]));
        drop(writer);
    }
}
